"""What holds for all commands: hostile names, wrong options, help, few imports."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import vegasmodel as vm
from tests.commands.scenes import RATIO, document
from tests.helpers import MIXED
from vegasmodel.command_line.commands import ONLY_IN_PYTHON, app, run

HOSTILE = ["[exec touch x]", "$env(HOME); touch x", "a;`touch x`", '"quoted" {brace', "[bold]b[/]"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = json.dumps(name)
    path = tmp_path / f"{name.replace('/', '|')}.toml"
    path.write_text(
        f'name = {quoted}\n[[link]]\nname = {quoted}\ncapacity = "250 pkt/s"\nbuffer = "9 pkt"\n'
        f'[[flow]]\nname = {quoted}\nlaw = "vegas"\nrtt = "40 ms"\n[[flow]]\nlaw = "reno"\n'
        'rtt = "40 ms"\n'
    )
    doc = document(capsys, ["predict", str(path), "--json"])
    assert doc["scenario"] == name
    assert doc["results"][0]["flows"][0]["name"] == name
    assert run(["predict", str(path)]) == 0
    out, _ = capsys.readouterr()
    assert name in out.replace("\n", " ")
    picture = tmp_path / f"{name.replace('/', '|')}.png"
    assert run(["predict", str(path), "--plot", str(picture)]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {path.name, picture.name}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_command_without_an_example_is_not_documented() -> None:
    for name, command in app.commands.items():
        assert f"Example: vegasmodel {name}" in (command.help or "")


def test_help_and_no_heavy_imports() -> None:
    code = (
        "import sys, io, contextlib\n"
        "from vegasmodel.command_line.commands import run\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    assert run({[*RATIO, '--json']!r}) == 0\n"
        "heavy = {'jax', 'numba', 'scipy.optimize', 'matplotlib', 'sympy', 'xarray', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("3", "3")])
def test_a_command_needs_one_thread_for_matrices_unless_the_user_says_otherwise(
    given: str | None, used: str
) -> None:
    code = (
        "import os, sys\n"
        "from vegasmodel.__main__ import main\n"
        "sys.argv = ['vegasmodel', '--version']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    print(os.environ['OPENBLAS_NUM_THREADS'])\n"
    )
    others = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True,
        env=others if given is None else {**others, "OPENBLAS_NUM_THREADS": given},
    )  # fmt: skip
    assert done.stdout.split()[-1] == used


def test_a_function_without_a_command_is_said_to_be_in_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ONLY_IN_PYTHON:
        assert callable(getattr(vm, name))
        assert name not in app.commands
    for word in ("limit_cycle", "limit-cycle"):
        assert run([word, "s.toml"]) == 2
        there = "In Python there is vegasmodel.limit_cycle."
        assert capsys.readouterr().err == f"vegasmodel: No such command '{word}'. {there}\n"
    assert run(["simulate", "--help"]) == 0
    assert "vegasmodel.limit_cycle" in capsys.readouterr().out


def test_no_command_begins_with_an_empty_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(
        "time,flow,cwnd,bytes_acked,snd_mss,rtt_us\n"
        + "".join(f"{0.1 * i:.1f},a,9,{9000 * i},1000,{40000 + 9 * (i % 7)}\n" for i in range(200))
    )
    file = Path("s.toml")
    for command in [
        ["explain", "load"],
        ["convert", "t.csv", "--out", "t.parquet"],
        ["new", str(file), "--from-trace", "t.parquet"],
        ["inspect", "t.parquet"],
        ["compare", str(file), "--trace", "t.parquet", "--model", "fluid"],
        ["stability", str(file)],
    ]:
        assert run(command) == 0, command
        assert capsys.readouterr().out[0] not in "\n ", command


def test_a_command_says_which_files_it_has_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long = "a-" * 60 + ".parquet"  # its line is not broken
    case = vm.Scenario([vm.Link(100.0, buffer=9)], [vm.Flow("vegas", 0.05), vm.Flow("reno", 0.05)])
    Path("s.toml").write_text(case.replace({"run.duration": 20, "run.warmup": 5}).to_toml())
    sweep = ["sweep", "s.toml", "--over", "link.buffer=5,9", "--model", "minicycle"]
    for command, files in [
        (["simulate", "s.toml", "--out", long, "--plot", "a.png"], [long, "a.png"]),
        (["convert", long, "--out", "b.parquet"], ["b.parquet"]),
        (["predict", "s.toml", "--model", "minicycle", "--plot", "c.png"], ["c.png"]),
        (["compare", "s.toml", "--trace", long, "--model", "fluid", "--plot", "d.png"], ["d.png"]),
        ([*sweep, "--out", "e.zarr", "--csv", "e.csv", "--plot", "e.png"], ["e.csv", "e.png"]),
    ]:
        assert run(command) == 0, command
        said = [line for line in capsys.readouterr().out.splitlines() if "is written" in line]
        assert said == [f"{file} is written." for file in files]
        assert run([*command, "--json"]) == 0
        assert "is written" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("twice", [["--rtt", "1s", "--rtt", "2s"], ["--rtt=1s", "--rtt=1s"]])
def test_an_option_of_one_value_is_not_given_twice(
    capsys: pytest.CaptureFixture[str], twice: list[str]
) -> None:
    assert run(["ratio", "--capacity", "9pkt/s", "vegas", "reno", *twice]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "vegasmodel: Option '--rtt' is given more than once.\n")
    assert run([*RATIO, "--json", "--json"]) == 0  # a flag has no value


def test_design_says_how_to_meet_a_second_target(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["design", "s.toml", "--solve", "link.buffer", "--for", "jain>=0.9"]
    assert run([*line, "--for", "delay<=20ms"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("vegasmodel: Option '--for' is given more than once. design takes one ")
    assert "with the command sweep" in err
    assert err.count("\n") == 1
    assert run([*line, "--solve", "link.capacity"]) == 2  # of which there is nothing to say
    assert capsys.readouterr().err == "vegasmodel: Option '--solve' is given more than once.\n"


def test_explain_lists_the_names_of_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    said = capsys.readouterr().out.replace("\n  ", "")
    assert "phase-effects" in said
    assert "own-law-repairs" in said


def test_an_error_about_an_option_calls_a_number_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message has no word that only programmers use, such as float."""
    assert run(["rd", "--rate", "abc", "--delay", "3", "--capacity", "9pkt/s"]) == 2
    said = capsys.readouterr().err
    assert said == ("vegasmodel: --rate-flows: 'abc' is not allowed; a number\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["paper", "nosuch"], "PAPER: 'nosuch' is not allowed; one of tsang, "),
        (["map", "nosuch", "--out", "a.png"], "MAP: 'nosuch' is not allowed; one of starvation, "),
        (["completion", "nosuch"], "SHELL: 'nosuch' is not allowed; one of bash, zsh, fish"),
        (["explain", "nosuch"], "MODEL: 'nosuch' is not allowed; one of equilibrium, "),
        (["arrivals", "--n", "1.5"], "--n: '1.5' is not allowed; a whole number"),
        (["paper", "tsang", "--draw", "x"], "--draw: 'x' is not allowed; a whole number"),
    ],
)
def test_an_error_names_the_argument_as_the_help_does(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors named ``paper`` and ``map``, or were click's, which did not say what is allowed."""
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"vegasmodel: {said}")
    assert err.count("\n") == 1


def test_an_unknown_command_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["comparre", "s.toml"]) == 2
    assert "No such command 'comparre'. Did you mean 'compare'?" in capsys.readouterr().err
    assert run(["xyzzy"]) == 2
    said = "No such command 'xyzzy'. 'vegasmodel --help' lists the commands."
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (["inspect", ""], "TRACE"),
        (["predict", ""], "SCENARIO.toml"),
        (["compare", "s.toml", "--trace", ""], "--trace"),
        (["new", ""], "SCENARIO.toml"),  # had the brackets of the usage, [SCENARIO.toml]
    ],
)
def test_an_empty_name_is_not_the_current_folder(
    capsys: pytest.CaptureFixture[str], line: list[str], field: str
) -> None:
    assert run(line) == 2
    said = f"vegasmodel: {field}: '' is not allowed; the name of a file\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (["basins"], "SCENARIO.toml"),
        (["paper", "--texts"], "--texts"),
        (["sweep", "s.toml", "--over", "link.buffer=5", "--out"], "--out"),
        (["inspect"], "TRACE"),
    ],
)
def test_a_name_that_is_too_long_for_a_file_is_wrong_input(
    capsys: pytest.CaptureFixture[str], line: list[str], field: str
) -> None:
    """Some commands ended with the status of a machine that fails, and showed the whole name."""
    assert run([*line, "w" * 300]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"vegasmodel: {field}: 'wwww")
    assert err.endswith("... is too long; a shorter name\n")
    assert err.count("\n") == 1


def test_the_advised_command_can_be_copied_into_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ("two words " * 9 + ".toml")
    assert run(["new", str(file)]) == 0
    told = capsys.readouterr().out.partition("try: ")[2]
    assert shlex.split(told) == ["vegasmodel", "predict", str(file), "--model", "all"]


def test_a_pipe_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command, what in (("inspect", "trace"), ("predict", "scenario")):
        said = f"standard input and pipes are not read: write the {what} to a file first"
        for name in ("-", str(tmp_path / "pipe")):
            assert run([command, name]) == 2
            assert said in capsys.readouterr().err
        assert run([command, str(tmp_path)]) == 2
        assert "pipes are not read" not in capsys.readouterr().err


def test_the_boundary_of_stability_needs_two_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message had the text of a Python dictionary."""
    (tmp_path / "s.toml").write_text(MIXED, encoding="utf-8")
    for more in ([], ["--over", "flow.rtt=20ms:50ms"]):
        line = ["stability", str(tmp_path / "s.toml"), "--over", "flow.rtt=20ms:500ms", *more]
        assert run(line) == 2
        err = capsys.readouterr().err
        assert "--over A=LOW:HIGH --over B=" in err
        assert "{" not in err


def test_a_blank_line_parts_the_uncertainty_from_the_text_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*RATIO, "--uncertain", "rtt=5%"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (table,) = (i for i, line in enumerate(lines) if line.endswith("sd, %"))
    assert lines[table - 1] == ""
    assert lines[table - 2] != ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["basins", "--phase", "700s"], "--phase: '700s' is not allowed; a time such as "),
        (["basins", "--tolerance", "0 %"], "--tolerance: '0 %' is not allowed; a fraction "),
        (["basins", "--tolerance", "100%"], "--tolerance: '100%' is not allowed; a fraction "),
        (
            ["stability", "--over", "flow.rtt=90ms:20ms", "--over", "link.capacity=5pkt/s:9pkt/s"],
            "--over: 'flow.rtt=90ms:20ms' is not allowed; FIELD=LOW:HIGH with finite numbers and ",
        ),
        (
            ["design", "--solve", "flow.rtt", "--for", "jain=0.9", "--between", "90ms:20ms"],
            "--between: '90ms:20ms' is not allowed; two finite numbers, LOW:HIGH, the lower end ",
        ),
    ],
)
def test_a_value_out_of_range_is_shown_as_the_user_wrote_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: list[str], said: str
) -> None:
    """The messages showed 700.0, 0.0, 1.0 and 0.09:0.02, and one named "over flow.rtt"."""
    (tmp_path / "s.toml").write_text(MIXED, encoding="utf-8")
    assert run([line[0], str(tmp_path / "s.toml"), *line[1:]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"vegasmodel: {said}")
    assert err.count("\n") == 1
