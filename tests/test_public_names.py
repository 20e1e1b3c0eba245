"""Every package shows its public names and no others, and each is documented."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vegasmodel as vm
from vegasmodel.fields.checked import Tables
from vegasmodel.fields.rules import Texts
from vegasmodel.scenario.special_rules import PacketNumbers

PACKAGES = ["vegasmodel"] + [
    info.name for info in pkgutil.walk_packages(vm.__path__, "vegasmodel.") if info.ispkg
]


def names(package: str) -> list[tuple[str, object]]:
    module = importlib.import_module(package)
    return [(f"{package}.{name}", getattr(module, name)) for name in dir(module)]


def said_below(name: str) -> bool:
    """Names of data that have a docstring below their assignment."""
    for path in Path(vm.__file__).parent.rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for line, below in pairwise(body):
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", 0)]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                value = getattr(below, "value", None)
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return True
    return False


def undocumented(name: str, thing: object) -> list[str]:
    """The name itself and a class's own methods and properties, as far as undocumented."""
    if not isinstance(thing, ModuleType) and not inspect.isclass(thing):
        own = inspect.getdoc(thing) if inspect.isroutine(thing) else said_below(name.split(".")[-1])
        return [] if own else [name]
    missing = [] if inspect.getdoc(thing) else [name]
    if inspect.isclass(thing) and thing.__module__.startswith("vegasmodel"):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (
                inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "func")
            ):
                missing += [] if inspect.getdoc(value) else [f"{name}.{member}"]
    return missing


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_shows_its_public_names_and_nothing_else(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in dir(module) if name.startswith("_")]
    assert all(getattr(module, name) is not None for name in dir(module))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for name in dir(package):
        inner = getattr(package, name)
        if isinstance(inner, ModuleType):
            yield from modules(inner) if hasattr(inner, "__path__") else [inner]


def test_a_module_shows_its_own_names_and_no_imports() -> None:
    import vegasmodel.testing.strategies as strategies

    assert dir(strategies) == sorted(strategies.__all__)
    seen = list(modules(vm))
    assert len(seen) > 40
    for module in seen:
        things = [getattr(module, name) for name in dir(module)]
        assert things
        if hasattr(module, "__all__"):
            assert dir(module) == sorted(module.__all__)
        else:
            assert {thing.__module__ for thing in things} == {module.__name__}


def test_what_a_user_needs_stands_at_the_top() -> None:
    wanted = """Red DropTail RateDelay Trace predict predict_all MODELS EngineMissing batch Scenario
        Link Flow Run load simulate compare limit_cycle register_law FieldError Prediction
        Comparison equilibrium packets plots"""
    assert set(wanted.split()) <= set(dir(vm))


def test_they_show_before_anything_is_loaded() -> None:
    """In a new process the names are there before NumPy is loaded."""
    code = (
        "import sys, vegasmodel as vm; names = dir(vm); "
        "print(len(names), 'numpy' in sys.modules, 'pint' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(vm.__all__)), "False", "False"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package: str) -> None:
    for name, thing in names(package):
        assert undocumented(name, thing) == []
        if isinstance(thing, ModuleType):
            for inner in getattr(thing, "__all__", ()):
                value = getattr(thing, inner)
                if inspect.isclass(value) or inspect.isroutine(value):
                    assert undocumented(f"{name}.{inner}", value) == []


@pytest.mark.parametrize("cls", [vm.Link, vm.Flow, vm.Run, vm.Prediction, vm.Source])
def test_help_on_a_class_explains_each_field(cls: type) -> None:
    said = inspect.getdoc(cls) or ""
    listed = [line.partition(":")[0] for line in said.splitlines() if line.startswith("- ``")]
    wanted = [f"``{name}``" for name in getattr(cls, "_fields", inspect.signature(cls).parameters)]
    assert ", ".join(listed).removeprefix("- ").replace("- ", "").split(", ") == wanted


@pytest.mark.parametrize("cls", [vm.Scenario, vm.Link, vm.Flow, vm.Drop])
def test_a_type_checker_allows_a_list_where_a_field_takes_one(cls: Any) -> None:
    """With a tuple as annotation, it would refuse the lists of the examples in the docs."""
    for field in dataclasses.fields(cls):
        takes_a_list = isinstance(field.metadata["rule"], (Tables, Texts, PacketNumbers))
        assert str(field.type).startswith("Listed") == takes_a_list


def test_a_closed_form_loads_no_library_that_it_does_not_use() -> None:
    """Imports take most of the time of a first answer: ``benchmarks/first_answer.py``."""
    code = (
        "import sys; from vegasmodel.command_line.commands import run; "
        "run('ratio --capacity 1.5Mbit/s --rtt 60ms --buffer 20pkt vegas reno --json'.split()); "
        "print([n for n in ('pint', 'scipy', 'numba', 'pandas', 'xarray') if n in sys.modules], "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
