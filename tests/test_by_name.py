"""Results are found by name; the error for a wrong name lists the names that exist."""

import copy
import json

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.comparison import Comparison
from vegasmodel.fields.by_name import ByName
from vegasmodel.results.prediction import Prediction


def mixed() -> vm.Scenario:
    return vm.Scenario(
        (vm.Link(1000.0, buffer=20.0),),
        (vm.Flow("vegas", 0.08), vm.Flow("cubic", 0.08), vm.Flow("reno", 0.08, count=2)),
    )


def answer(scenario: vm.Scenario, model: str = "fluid") -> Prediction:
    runs = np.array([[100.0, 200.0, 300.0, 300.0], [110.0, 190.0, 300.0, 300.0]])
    more = {"throughput_runs": runs}
    return Prediction(model, scenario, runs.mean(axis=0), extra=more)


@pytest.mark.parametrize("figures", ["groups", "groups_se", "group_bps", "shares"])
def test_the_error_for_a_wrong_group_lists_the_groups(figures: str) -> None:
    found = getattr(answer(mixed()), figures)
    assert found["vegas"] == dict(found)["vegas"]
    with pytest.raises(vm.FieldError) as error:
        found["cubc"]
    said = "name: 'cubc' is unknown; the names are vegas, cubic, reno; did you mean 'cubic'?"
    assert str(error.value) == said
    with pytest.raises(KeyError):  # as of any dictionary
        found["sack"]
    assert found.get("sack") is None
    assert "sack" not in found


def test_the_error_for_a_wrong_pair_lists_pairs() -> None:
    with pytest.raises(vm.FieldError, match=r"the names are vegas/cubic, .*did you mean 'vegas/re"):
        answer(mixed()).ratios["vegas/renoo"]


def test_the_error_for_a_wrong_model_lists_the_models() -> None:
    s = mixed()
    models = (answer(s), answer(s, "rounds"))
    with pytest.raises(vm.FieldError, match="the names are fluid, rounds; did you mean 'rounds'"):
        Comparison(s, answer(s, "ns2"), models).errors["round"]


def test_the_results_of_a_comparison_are_found_by_name() -> None:
    s = mixed()
    models = (answer(s), answer(s, "rounds"))
    both = Comparison(s, answer(s, "ns2"), models)
    assert both.results["rounds"] is models[1]
    assert both.results["ns2"] is both.measured
    with pytest.raises(vm.FieldError, match="one of fluid, rounds, ns2"):
        both.results["ns3"]


def test_without_an_answer_the_error_says_that_there_are_no_results() -> None:
    empty = Prediction.not_applicable("red", mixed(), "no RED")
    with pytest.raises(vm.FieldError, match="'vegas' is unknown; there are no results"):
        empty.shares["vegas"]


def test_a_long_list_of_names_is_cut() -> None:
    many = ByName((f"group-{i}", 1.0) for i in range(300))
    with pytest.raises(vm.FieldError, match="group-9 and 290 more"):
        many["other"]


def test_results_by_name_are_as_plain_as_a_dictionary() -> None:
    found = answer(mixed()).shares
    plain = {"vegas": found["vegas"], "cubic": found["cubic"], "reno": found["reno"]}
    assert found == plain
    assert repr(found) == repr(plain)
    assert json.loads(json.dumps(found)) == plain
    assert copy.deepcopy(found) == plain


def test_the_ratios_of_uncertainty_are_found_by_name() -> None:
    s = mixed().replace({"link.buffer": 30.0})
    s = vm.Scenario(s.links, s.flows[::2])
    found = vm.uncertainty(s, "minicycle", {"link.capacity": "5 %"})
    with pytest.raises(vm.FieldError, match="did you mean 'vegas/reno'"):
        found.ratios["vegas/rno"]
