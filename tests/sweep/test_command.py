"""What the command ``sweep`` prints."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import vegasmodel as vm
from tests.sweep.scenes import file_of, mixed
from vegasmodel.command_line import sweep
from vegasmodel.command_line.commands import run
from vegasmodel.study import models


def test_true_and_false_on_the_command_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(place / "s.toml"), "--model", "fluid", "--out", str(place / "m.zarr")]
    line += ["--over", "flow.delayed_ack=true,false"]
    assert run(line) == 0
    shown = [words[0] for words in map(str.split, capsys.readouterr().out.splitlines()) if words]
    assert [word for word in shown if word in ("true", "false")] == ["true", "false"]
    kept = xr.open_zarr(place / "m.zarr", chunks=None)
    assert kept["flow.delayed_ack"].values.tolist() == [True, False]
    assert run([*line[:-1], "flow.delayed_ack=yes,no"]) == 2
    assert "flow.delayed_ack: 'yes' is not allowed; true or false" in capsys.readouterr().err


def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5:60:5", "--model", "minicycle"]
    line += ["--over", "flow.vegas.beta=2,3", "--out", str(place / "m.zarr")]
    assert run([*line, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert document["dims"] == {"link.buffer": 12, "flow.vegas.beta": 2}
    assert (document["points"], document["computed"]) == (24, 24)
    assert document["status"]["values not allowed together"] == 12, "beta below alpha"
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0
    assert run(line) == 0
    out = capsys.readouterr().out
    assert "24 of them there already" in out.replace("\n", " ")
    (row,) = (words for words in map(str.split, out.splitlines()) if words[:2] == ["20", "3"])
    part = vm.predict(mixed().replace({"flow.vegas.beta": 3}), "minicycle").shares["vegas"]
    assert row[row.index("%") - 1] == f"{100 * part:.1f}"
    (row,) = (words for words in map(str.split, out.splitlines()) if words[:2] == ["20", "2"])
    assert row[2:] == ["-", "-", "-"]  # beta below alpha: no assumptions and no shares
    assert "No answer at 12 points: flow.beta: '2 pkt' is not allowed; at least alpha, 3 pkt" in (
        " ".join(out.split())
    )


@pytest.mark.parametrize(
    ("over", "notes"),
    [
        (["flow.reno.alpha=1,2"], ["reno: alpha has no effect; reno has no thresholds."]),
        (["flow.alpha=2,3"], None),  # of the Vegas flow only
        (["flow.reno.alpha=1,2", "flow.reno.law=reno,vegas"], None),  # Vegas has thresholds
    ],
)
def test_a_varied_key_without_effect_is_told(
    place: Path, capsys: pytest.CaptureFixture[str], over: list[str], notes: list[str] | None
) -> None:
    line = ["sweep", str(place / "s.toml"), "--model", "minicycle", "--out", str(place / "m.zarr")]
    line += [word for text in over for word in ("--over", text)]
    assert run(line) == 0
    assert ("has no effect" in capsys.readouterr().out) == bool(notes)
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out).get("notes") == notes


def test_a_key_without_effect_at_some_points_only_is_not_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RED's mean queue reaches ``max_threshold`` if the buffer holds 40 packets, but not if 12."""
    red = 'queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "15 pkt" }'
    file = file_of().replace('buffer = "20 pkt"', f'buffer = "20 pkt"\n{red}')
    (place / "red.toml").write_text(file)
    line = ["sweep", str(place / "red.toml"), "--model", "minicycle", "--csv", str(place / "m.csv")]
    said = []
    for buffers in ("12,40", "12,13", "12,40,12.5", "12,12.5"):
        assert run([*line, "--over", f"link.buffer={buffers}", "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out).get("notes"))
    assert said[:3] == [None, None, None]
    assert ["never reaches max_threshold" in text for text in said[3]] == [True]


def test_the_picture_is_of_the_group_that_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--map-of`` was refused if one field varies, although Python draws the group's line."""
    asked = []
    monkeypatch.setattr(vm.plots, "sweep", lambda _, group: asked.append(group))
    monkeypatch.setattr(vm.plots, "save", lambda *_: None)
    line = ["sweep", str(place / "s.toml"), "--model", "minicycle", "--over", "link.buffer=5,9"]
    line += ["--csv", str(place / "m.csv")]
    plot = ["--plot", str(place / "m.png")]
    two = [*line, *plot, "--over", "flow.rtt=40ms,60ms"]
    assert run([*two, "--map-of", "reno"]) == run(two) == 0
    assert run([*line, *plot, "--map-of", "reno"]) == run([*line, *plot]) == 0
    assert asked == ["reno", None] * 2
    capsys.readouterr()
    assert run([*line, *plot, "--map-of", "ren"]) == run([*line, "--map-of", "reno"]) == 2
    assert capsys.readouterr().err == (
        "vegasmodel: --map-of: 'ren' is not allowed; one of vegas, reno; did you mean 'reno'?\n"
        "vegasmodel: --map-of: 'reno' is not allowed; only with --plot, whose picture it changes\n"
    )


def test_without_any_answer_the_reasons_are_told_and_no_picture_is_drawn(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=inf", "--model", "minicycle"]
    line += ["--out", str(place / "m.zarr"), "--plot", str(place / "m.png")]
    assert run(line) == 1
    out, err = capsys.readouterr()
    assert "No answer at 1 point" in out
    assert "m.png is not drawn: no point of the sweep has an answer" in err
    assert not (place / "m.png").exists()


def test_many_points_have_no_table_but_reasons(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says that it prints no table, and why points have no answer."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5:12:1", "--model", "minicycle"]
    line += ["--over", "flow.vegas.alpha=1:6:1", "--over", "flow.vegas.beta=1:3:1"]
    assert run([*line, "--out", str(place / "many.zarr")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No table is printed for more than 30 points" in said
    assert "many.zarr has their results" in said
    # beta below alpha: (alpha, beta) has 12 such pairs, each at 8 buffers, with 9 texts
    assert "96 of them: values not allowed together." in said
    assert said.count("No answer at 8 points: flow.beta: ") == 3
    assert "9 more reasons are in the variable or column reason." in said


@pytest.mark.parametrize(
    ("flows", "name", "said"),
    [
        (5, "v", ""),
        (6, "v", "1 more flow is"),
        (9, "v", "4 more flows"),
        (5, "of_a_name_with_28_characters_", "3 more flows"),  # two columns of 31 fit 80 characters
    ],
)
def test_flows_without_a_column_are_counted(
    flows: int, name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = '[[link]]\ncapacity = "1000 pkt/s"\n'
    flow = '[[flow]]\nlaw = "vegas"\nname = "{}{}"\nrtt = "60 ms"\n'
    text = link + "".join(flow.format(name, i) for i in range(flows))
    (tmp_path / "s.toml").write_text(text)
    line = ["--over", "flow.rtt=40ms,60ms", "--out", str(tmp_path / "m.zarr"), "--model", "bands"]
    assert run(["sweep", str(tmp_path / "s.toml"), *line]) == 0
    out = capsys.readouterr().out
    rows = [line.split()[:2] for line in out.splitlines() if line.endswith("% ")]
    assert rows == [["40", "ms"], ["60", "ms"]]  # the field has a column
    shown = " ".join(out.split())
    assert ("not in the table" in shown) is bool(said)
    assert said in shown


def test_a_table_has_groups_if_not_all_flows_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three like flows share a column, so that the flow of the last group has one, too."""
    flow = (
        '[[flow]]\nlaw = "vegas"\nname = "{}"\nrtt = "60 ms"\ncount = {}\nalpha = {}\nbeta = {}\n'
    )
    groups = (("many", 3, 2, 2), ("two", 2, 3, 3), ("last", 1, 4, 4))
    text = '[[link]]\ncapacity = "1000 pkt/s"\n' + "".join(flow.format(*g) for g in groups)
    (tmp_path / "s.toml").write_text(text)
    line = ["sweep", str(tmp_path / "s.toml"), "--over", "flow.rtt=40ms", "--model", "equilibrium"]
    assert run([*line, "--out", str(tmp_path / "m.zarr")]) == 0
    out = capsys.readouterr().out
    (head,) = (words.split() for words in out.splitlines() if "many" in words and "two" in words)
    assert head[-5:] == ["many", "(3)", "two", "(2)", "last"]
    (row,) = (words.split() for words in out.splitlines() if words.endswith("% "))
    assert row[-6::2] == ["37.5", "37.5", "25.0"]  # rates are as alpha: 2, 2, 2, 3, 3 and 4 of 16
    assert "NAME (N): a group of N flows" in " ".join(out.split())
    assert "not in the table" not in out


def test_points_with_too_few_runs_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark stands where ``predict`` says that ``enough-runs`` does not hold."""
    text = file_of().replace('send_jitter = "0 s"\n', "")
    (tmp_path / "s.toml").write_text(text)
    line = ["sweep", str(tmp_path / "s.toml"), "--over", "link.buffer=3,12", "--model", "rounds"]
    line += ["--out", str(tmp_path / "m.zarr")]
    assert run(line) == 0
    shown = capsys.readouterr().out
    marked = [words[0] for words in map(str.split, shown.splitlines()) if "%*" in words]
    base, unsure = vm.Scenario.from_toml(text), []
    for buffer in ("3", "12"):
        found = vm.predict(base.replace({"link.buffer": float(buffer)}), "rounds")
        (note,) = (a for a in found.assumptions if a.name == "enough-runs")
        unsure += [] if note.holds else [buffer]
    assert marked == unsure
    assert len(unsure) == 1, "the test needs a point of each kind"
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["too_few_runs"] == 1
    for most, said in ((2, "at 1 point (*): the 95 %"), (1, "at 1 point: the 95 %")):
        monkeypatch.setattr(sweep, "MAX_POINTS_SHOWN", most)  # with 1 there is no table, so no mark
        assert run(line) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_one_run_of_ns2_at_each_point_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ns-2 makes one run unless the file has ``runs``; then ``enough-runs`` is judged, too."""
    made = []

    def measured(scenario: vm.Scenario, _: str, **__: bool) -> vm.Prediction:
        n = scenario.run.times
        made.append(n)
        error = np.array([30.0, 1.0]) if n > 1 else None
        return vm.Prediction("ns2", scenario, np.array([200.0, 800.0]), throughput_se=error)

    monkeypatch.setattr(models, "ready", lambda *_: None)
    monkeypatch.setattr(models.measurement, "run_engine", measured)
    said = {}
    for runs in ("", "runs = 5\n"):
        (tmp_path / "s.toml").write_text(file_of().replace('send_jitter = "0 s"\n', "") + runs)
        line = ["sweep", str(tmp_path / "s.toml"), "--over", "link.buffer=3,12", "--model", "ns2"]
        line += ["--out", str(tmp_path / f"{len(runs)}.zarr")]
        assert run(line) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert run([*line, "--json"]) == 0
        said[runs] = shown, json.loads(capsys.readouterr().out)
    assert made == [1, 1, 5, 5]
    (one, told), (several, of_five) = said.values()
    assert "ns2 made one run at each point." in one
    assert told["notes"][0] in one
    assert told["broken"] == {}
    assert "one run" not in several
    assert "notes" not in of_five
    assert of_five["broken"] == {"enough-runs": 2}
    assert of_five["too_few_runs"] == 2


def test_the_assumptions_that_do_not_hold_are_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row has the letters of those that ``predict`` names there, and lines say which they are."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5,20", "--model", "minicycle"]
    line += ["--out", str(place / "m.zarr")]
    assert run(line) == 0
    shown = capsys.readouterr().out
    case = mixed().replace({"name": "s"})
    broken = {
        buffer: {
            each.name
            for each in vm.predict(case.replace({"link.buffer": buffer}), "minicycle").broken
        }
        for buffer in (5.0, 20.0)
    }
    assert "buffer-holds-bursts" in broken[5.0] - broken[20.0]
    meant = {
        words[0].removesuffix(":"): words[1]
        for words in map(str.split, shown.splitlines())
        if "does not hold at" in " ".join(words)
    }
    for words in map(str.split, shown.splitlines()):
        if words[:1] in (["5"], ["20"]):
            letters = [word for word in words[1:] if word in meant]
            assert {meant[letter] for letter in letters} == broken[float(words[0])]
    assert "buffer-holds-bursts does not hold at 1 of 2 points" in " ".join(shown.split())
    assert run([*line, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["broken"]
    assert counts == {
        name: sum(name in names for names in broken.values()) for name in broken[5.0] | broken[20.0]
    }


def test_json_has_a_row_for_each_point_as_the_printed_table_has(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=20,30", "--model", "minicycle"]
    line += ["--over", "flow.vegas.beta=2,3", "--out", str(place / "m.zarr"), "--json"]
    assert run(line) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["fields"] for row in rows] == [
        {"link.buffer": buffer, "flow.vegas.beta": beta} for buffer in (20, 30) for beta in (2, 3)
    ]
    p = vm.predict(mixed().replace({"link.buffer": 30, "flow.vegas.beta": 3}), "minicycle")
    assert rows[3]["groups"]["vegas"]["share"] == pytest.approx(p.shares["vegas"])
    assert rows[3]["groups"]["reno"]["throughput_pps"] == pytest.approx(p.throughput[1])
    assert rows[3]["links"]["bottleneck"]["utilization"] == pytest.approx(p.utilization[0])
    assert rows[3]["broken"] == [each.name for each in p.broken]
    assert rows[0]["status"] == "values not allowed together"
    assert rows[0]["groups"]["vegas"]["share"] is None
    assert "at least alpha" in rows[0]["reason"]
    many = ["sweep", str(place / "s.toml"), "--over", "link.buffer=1:40:1", "--json"]
    many += ["--model", "minicycle", "--out", str(place / "many.zarr")]
    assert run(many) == 0
    assert json.loads(capsys.readouterr().out)["rows"] is None


def test_a_csv_table_has_a_row_for_each_point(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(place / "s.toml"), "--over", "flow.rtt=60ms,80ms", "--model", "fluid"]
    line += ["--over", "flow.vegas.count=2,3", "--out", str(place / "m.zarr")]
    assert run([*line, "--csv", str(place / "table.csv")]) == 0
    capsys.readouterr()
    with (place / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["flow.rtt, s"], row["flow.vegas.count"]) for row in rows] == [
        (rtt, count) for rtt in ("0.06", "0.08") for count in ("2", "3")
    ]
    for row in rows:
        flows = [float(row["vegas mean pkt/s"])] * int(row["flow.vegas.count"])
        total = sum(flows) + float(row["reno mean pkt/s"])
        assert float(row["vegas share"]) == pytest.approx(sum(flows) / total)
        assert float(row["bottleneck load"]) == pytest.approx(total / 1080.0, rel=1e-6)
        assert row["status"] == "done"


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--out", "table.csv", "the name of a folder; --csv FILE writes a table"),
        ("--csv", "table.xlsx", "a path ending in .csv in a folder that exists"),
    ],
)
def test_a_table_is_no_folder(
    place: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, said: str
) -> None:
    """``--out table.csv`` made a folder of this name."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=20,30", "--model", "minicycle"]
    line += ["--out", str(place / "m.zarr"), option, str(place / name)]
    assert run(line if option == "--csv" else [*line[:-4], *line[-2:]]) == 2
    assert said in capsys.readouterr().err
    assert not (place / name).exists()
    assert not (place / "m.zarr").exists()


def test_values_given_in_another_unit_are_shown_in_it_too(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only packets were shown: 1080 pkt/s of 500 B send 10 ms of the buffer in 10.8 packets."""
    line = ["sweep", str(place / "s.toml"), "--model", "minicycle", "--csv", str(place / "t.csv")]
    over = {
        "link.buffer=10ms:50ms:20ms": ["10.8 (10)", "32.4 (30)", "54 (50)"],
        "link.buffer=0,5000B": ["0 (0)", "10 (5000)"],
        "link.capacity=2Mbit/s,4Mbit/s": ["500 (2)", "1000 (4)"],
        "link.buffer=20pkt,30": ["20", "30"],
        "link.buffer=20pkt,40ms": ["20", "43.2"],
        "flow.rtt=60ms,80ms": ["60 ms", "80 ms"],
    }
    heads = []
    for values, shown in over.items():
        assert run([*line, "--over", values]) == 0
        lines = [row.strip() for row in capsys.readouterr().out.splitlines()]
        heads.append(lines[1].split("  ")[0])
        assert [re.split("  +", row)[0] for row in lines[2 : 2 + len(shown)]] == shown
    assert heads == [
        "buffer, pkt (ms)",
        "buffer, pkt (B)",
        "capacity, pkt/s (Mbit/s)",
        *["buffer, pkt"] * 2,
        "rtt",
    ]


@pytest.mark.parametrize("points", [2, 31])
def test_a_document_alone_has_every_point(
    place: Path, capsys: pytest.CaptureFixture[str], points: int
) -> None:
    """With ``--json`` alone; beside a table or a folder only as many as a printed table has."""
    line = ["sweep", str(place / "s.toml"), "--over", f"link.buffer=10:{9 + points}:1"]
    line += ["--model", "minicycle", "--json"]
    assert run(line) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert document["out"] is None
    assert [row["fields"]["link.buffer"] for row in document["rows"]] == list(
        range(10, 10 + points)
    )
    share = vm.predict(mixed().replace({"link.buffer": 11}), "minicycle").shares["vegas"]
    assert document["rows"][1]["groups"]["vegas"]["share"] == pytest.approx(share)
    assert {path.name for path in place.iterdir()} == {"s.toml"}
    assert run([*line, "--csv", str(place / "m.csv")]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (rows is None) == (points > 30)


def test_an_infinite_buffer_is_a_text_in_a_document(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has no infinite numbers: the command ended with an error of its own."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=20,inf", "--model", "minicycle"]
    assert run([*line, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["fields"]["link.buffer"] for row in rows] == [20.0, "inf"]


def test_a_table_alone_needs_no_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--out`` was required, also where a user wanted only the table."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=20,30", "--model", "minicycle"]
    assert run([*line, "--out", str(place / "m.zarr"), "--csv", str(place / "both.csv")]) == 0
    assert run([*line, "--csv", str(place / "alone.csv")]) == 0
    assert (place / "alone.csv").read_text() == (place / "both.csv").read_text()
    assert "None" not in capsys.readouterr().out
    assert {path.name for path in place.iterdir()} == {"s.toml", "m.zarr", "both.csv", "alone.csv"}
    assert run([*line, "--csv", str(place / "alone.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] is None
    many = [*line[:2], "--over", "link.buffer=1:40:1", *line[4:]]
    assert run([*many, "--csv", str(place / "many.csv")]) == 0
    assert "; the table has their results." in " ".join(capsys.readouterr().out.split())
    assert run(line) == 2
    assert capsys.readouterr().err == (
        "vegasmodel: --out: missing; the name of a folder; or --csv FILE for a table, "
        "or --json to print all points\n"
    )
