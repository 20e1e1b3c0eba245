"""Options of benchmarks: a wrong one is refused in one line, and seeds give what they say."""

import importlib
import itertools
import sys

import numpy as np
import pytest

import vegasmodel as vm
from benchmarks import accuracy_basins
from benchmarks.arguments import at_least
from vegasmodel.study.starts import starts

WRONG = {  # module and options: what the line must say
    "accuracy --again x pair/1": "a whole number from 2 on",
    "accuracy --again 2 foo/1": "a case is like mixed/0",
    "accuracy --again 2": "a case is like mixed/0",
    "accuracy --processes 0": "a whole number from 1 on",
    "accuracy --fresh 99": "no stored runs of seed 99; --measure makes them",
    "accuracy_basins --model foo": "invalid choice: 'foo'",
    "accuracy_cubic --cases 0": "a whole number from 1 on",
    "accuracy_feedback --cases 1": "'1' is not allowed; a whole number from 2 to 20",
    "accuracy_feedback --cases 21": "a whole number from 2 to 20",
    "accuracy_hosts --cases 1 --runs 1": "a whole number from 2 on",
    "accuracy_losers --cases 0": "a whole number from 1 on",
    "accuracy_losers --families some": "invalid choice: 'some'",
    "accuracy_own_laws foo": "one of htcp, illinois",
    "accuracy_red --cases 1": "a whole number from 2 on",
    "beside_rivals --seed 98": "no stored runs of seed 98",
    "closed_forms some": "'some' is not allowed; a whole number from 1 on",
    "first_answer --other /nowhere": "a Python interpreter",
    "network --networks 0": "'0' is not allowed; a whole number from 1 on",
    "network --seed -1": "'-1' is not allowed; a whole number from 0 on",
}


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_option_is_one_line(command, monkeypatch, capsys):
    name, *options = command.split()
    module = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, *options])
    with pytest.raises(SystemExit) as left:
        module.main()
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert not out
    last = err.splitlines()[-1]
    assert last.startswith(f"{name}: error: ")
    assert WRONG[command] in last


def test_allowed_numbers_pass():
    assert [at_least(2, 3)(text) for text in ("2", "3")] == [2, 3]
    assert at_least(0)("100") == 100


@pytest.mark.parametrize("seed", [0, 1, 22112417, 2**31 - 1])
def test_basins_give_each_case_starts_of_its_own(seed):
    # a case has two seeds: that of its starts in ns-2, and the next one for the model's others
    cases = itertools.product(range(len(accuracy_basins.FAMILIES)), range(500))
    first = [accuracy_basins.seed_of_starts(seed, *case) for case in cases]
    seeds = first + [each + 1 for each in first]
    assert len(set(seeds)) == len(seeds)
    text = accuracy_basins.draw("bands", np.random.default_rng(seed))[1]
    scenario = vm.Scenario.from_toml(text)
    for each in (min(seeds), max(seeds)):  # ``draw`` refuses a seed that is not allowed
        assert len(starts(scenario).draw(scenario, 1, each)) == 1
