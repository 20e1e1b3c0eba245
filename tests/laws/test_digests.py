"""The digest of a law: it changes with what the law does, and with nothing else."""

import math
import subprocess
import sys
import types

import numba
import numpy as np
import pytest

from vegasmodel.laws import digests

SETTINGS = types.ModuleType("settings")
SETTINGS.GAIN = 1.0

FILE = """
import math, random
import numpy as np
import settings
GAIN = {gain}
TABLE = np.array({table})
STEPS = {steps}
def inner(f, power={power}):
    return outer(f) if f.window < 0 else f.window ** power
def made(factor):
    return lambda f: factor * f.window
def outer(f):
    def scaled(x):
        return STEPS[0] * x
    if f.window in {{"a", "b", "c"}}:
        return random.random()
    return np.minimum(inner(f), TABLE[0]) * settings.GAIN + scaled(math.log(GAIN)) + around(f)
around = made({factor})
"""
FIRST = {"gain": 1.0, "table": [1.0, 2.0], "steps": (1, 2), "power": 0.5, "factor": 3.0}


def outer(monkeypatch: pytest.MonkeyPatch, **other: object) -> types.FunctionType:
    monkeypatch.setitem(sys.modules, "settings", SETTINGS)
    known: dict[str, object] = {}
    exec(FILE.format(**(FIRST | other)), known)  # noqa: S102 - as a user's file is run
    found = known["outer"]
    assert isinstance(found, types.FunctionType)
    return found


@pytest.mark.parametrize(
    "other",
    [
        {"gain": 1},  # an integer divides otherwise than a float
        {"gain": -0.0},
        {"table": [1.0, 3.0]},
        {"steps": (1.5, 2)},
        {"power": 0.6},
        {"factor": 2.0},
    ],
    ids=str,
)
def test_what_a_function_reads_changes_its_digest(
    other: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Globals, arrays, defaults of a function that it calls, and the variables around that one."""
    same, changed = outer(monkeypatch), outer(monkeypatch, **other)
    assert digests.of(same) == digests.of(outer(monkeypatch))
    assert digests.of(same) != digests.of(changed)


def test_a_number_of_another_module_changes_the_digest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = outer(monkeypatch)
    before = digests.of(rule)
    monkeypatch.setattr(SETTINGS, "UNUSED", 2.0, raising=False)
    assert digests.of(rule) == before
    monkeypatch.setattr(SETTINGS, "GAIN", 2.0)
    assert digests.of(rule) != before


def test_a_function_that_numba_has_compiled_has_the_digest_of_its_python_function() -> None:
    def one(f: float) -> float:
        return 1.0

    def two(f: float) -> float:
        return 2.0

    assert digests.of(numba.njit(one)) == digests.of(one) != digests.of(two)


def test_comments_names_of_variables_and_the_place_in_the_file_do_not_count() -> None:
    def one(f: float) -> float:
        """Adds one."""
        grown = f + 1.0
        return math.floor(grown)

    first = one

    def one(f: float) -> float:
        """Adds a packet."""
        # in each round trip
        sum_of_both = f + 1.0
        return math.floor(sum_of_both)

    assert digests.of(first) == digests.of(one)


def test_the_digest_is_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python shuffles its sets of texts, and places its objects, anew in every process."""
    code = "import sys, types\nsettings = types.ModuleType('settings')\nsettings.GAIN = 1.0\n"
    code += f"sys.modules['settings'] = settings\n{FILE.format(**FIRST)}"
    code += "from vegasmodel.laws import digests\nprint(digests.of(outer))"
    for seed in ("1", "2"):
        line = [sys.executable, "-c", code]
        done = subprocess.run(
            line, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == digests.of(outer(monkeypatch))


def test_a_number_of_numpy_is_a_number() -> None:
    assert digests.of(np.float64(1.0)) != digests.of(np.float64(2.0))
