"""Scenarios at the limits of what is allowed: answered or refused, without a warning."""

import json
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from vegasmodel.fields.errors import FieldError
from vegasmodel.predictor import CLOSED_FORMS


def spread(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of every magnitude."""
    return st.floats(low, high).map(lambda power: 10.0**power)


FLOW = st.fixed_dictionaries(
    {
        "law": st.sampled_from(["vegas", "reno", "sack", "cubic"]),
        "rtt": spread(-1, 3).map(lambda value: f"{value!r} s"),
        "count": st.sampled_from([1, 1, 2, 200]),
        "variant": st.sampled_from(["paper", "ns2", "linux"]),
    },
    optional={
        "over_estimate": spread(-12, 4).map(lambda value: f"{value!r} s"),
        "size": spread(0, 9).map(lambda value: f"{value!r} pkt"),
        "max_window": spread(0, 9).map(lambda value: f"{value!r} pkt"),
        "decrease": st.sampled_from([0.01, 0.5, 0.99]),
    },
)
LINK = st.fixed_dictionaries(
    {"capacity": spread(1.5, 9).map(lambda value: f"{value!r} pkt/s")},
    optional={
        "buffer": (spread(0, 9) | spread(-300, 300)).map(lambda value: f"{value!r} pkt"),
        "loss": spread(-12, -0.1) | spread(-320, -12) | spread(-16, -1).map(lambda few: 1 - few),
        "delay": st.just("0 s"),
    },
)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(LINK, st.lists(FLOW, min_size=1, max_size=4), st.sampled_from(["1 s", "60 s", "1000000 s"]))
def test_no_warning_reaches_the_user(link: dict, flows: list[dict], duration: str) -> None:
    table = {"link": [link], "flow": [{**flow, "name": f"f{i}"} for i, flow in enumerate(flows)]}
    table["run"] = {"duration": duration, "warmup": "0 s"}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            answers = vm.predict_all(vm.Scenario.from_dict(table), CLOSED_FORMS)
        except FieldError:
            return
        json.dumps([answer.to_json() for answer in answers], allow_nan=False)
    assert [str(one.message) for one in heard] == []
