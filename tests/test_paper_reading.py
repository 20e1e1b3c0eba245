"""For a reader with the papers: values looked up in the texts, records drawn and printed."""

import json
from pathlib import Path

import pytest

import paper_checks
from paper_checks import reading, texts
from paper_checks.checks import FORMULA_AT_OUR_NUMBERS, OURS, Record, by_theory, judge
from paper_checks.runs import Runs
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError


def record(printed: object, prints: tuple[str, ...] | None = None) -> Record:
    return Record("i", "claim", printed, by_theory(1.0), prints=prints)


@pytest.mark.parametrize(
    ("printed", "text", "away"),
    [
        (0.965, "an index of 0.965.", []),
        (0.965, "an index of 0.9651 or 10.965", ["0.965"]),
        (13337, "13,337 packets", []),
        (3337, "13,337 packets", ["3337"]),
        (1.0, "it is 1.00", []),
        (1.7, "1.70", []),
        (5, "up to five times", []),
        ([74, 24], "74% and 25%", ["24"]),
        ("vegas", "TCP **Vegas**", []),
        ("Figure 2", "figure 23", ["Figure 2"]),
        (True, "nothing", []),
        (None, "nothing", []),
    ],
)
def test_a_value_stands_in_a_text_or_not(printed: object, text: str, away: list[str]) -> None:
    assert texts.absent(record(printed), text) == away


def test_a_record_may_say_how_it_is_printed() -> None:
    assert texts.absent(record(0.01, ("10 ms",)), "after $10$ ms") == []
    assert texts.absent(record(0.01, ("10 ms",)), "after 0.01 s") == ["10 ms"]


def folder(path: Path) -> Path:
    (path / "a.txt").write_text(
        "Providing  Fairness Between TCP\nNewReno and TCP Vegas.  " + "92 " * 9, encoding="utf-8"
    )
    (path / "tsang.txt").write_text("no title", encoding="utf-8")
    (path / "b.txt").write_text("some other paper", encoding="utf-8")
    return path


def test_texts_are_known_by_name_or_title(tmp_path: Path) -> None:
    assert set(texts.read(folder(tmp_path))) == {"podlesny", "tsang"}
    with pytest.raises(FieldError, match="--texts"):
        texts.read(tmp_path / "nowhere")


def test_what_was_looked_up_adds_up() -> None:
    for paper in paper_checks.PAPERS:
        looked = texts.look(paper, "")
        total = looked.found + len(looked.missing) + looked.derived + looked.in_words
        assert total == len(paper_checks.records(paper))
        assert looked.found == 0


def test_a_value_of_ours_says_so() -> None:
    runs = Runs()
    for paper in paper_checks.PAPERS:
        for one in paper_checks.records(paper):
            if one.prints == FORMULA_AT_OUR_NUMBERS:
                assert OURS in judge(paper, one, runs).note


def test_the_command_looks_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paper", "--texts", str(folder(tmp_path))]) == 1
    out, err = capsys.readouterr()
    assert "evaluation: skipped, the folder has no text of it\n" in out
    assert "  section IV-D, index at 10 Mbit/s: 0.61\n" in out
    assert "do not stand" in err
    assert err.count("\n") == 1
    assert run(["paper", "boutremans", "--texts", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["skipped"] == ["boutremans"]
    assert run(["paper", "--texts", str(tmp_path / "x")]) == 2


def test_a_draw_is_the_seeds_and_nobody_elses() -> None:
    one, again = (reading.drawn(["devendictis"], 7, 3) for _ in range(2))
    assert one == again
    assert len({check.item for check in one}) == 7
    assert {c.item for c in reading.drawn(["devendictis"], 7, 4)} != {c.item for c in one}
    every = len(paper_checks.records("devendictis"))
    assert len(reading.drawn(["devendictis"], every, 0)) == every
    for number, seed, option in ((0, 1, "draw"), (every + 1, 1, "draw"), (1, -1, "seed")):
        with pytest.raises(FieldError, match=f"^--{option}: "):
            reading.drawn(["devendictis"], number, seed)


def test_a_drawn_record_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paper", "devendictis", "--draw", "3", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    for check in reading.drawn(["devendictis"], 3, 2):
        for part in (
            check.item,
            check.verdict,
            check.note,
            str(check.printed),
            str(check.computed),
        ):
            assert part in out


def test_the_records_of_one_item_are_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """The item "equation 1" is not that of equation 10 or 15."""
    known = [record.item for record in paper_checks.records("devendictis")]
    wanted = [item for item in known if item == "equation 1" or item.startswith("equation 1,")]
    assert wanted
    assert any(item.startswith("equation 1") and item not in wanted for item in known)
    assert run(["paper", "devendictis", "--item", "Equation 1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["checks"]
    assert [check["item"] for check in found] == wanted
    assert run(["paper", "devendictis", "--item", "equation 1"]) == 0
    out = capsys.readouterr().out
    assert all(str(check[key]) in out for check in found for key in ("item", "printed", "note"))


@pytest.mark.parametrize(
    "options",
    [["equation 99"], [" "], ["equation 1", "--verdict", "erratum"], ["equation 1", "--draw", "2"]],
)
def test_an_item_that_cannot_be_printed_is_one_line(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["paper", "devendictis", "--item", *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("vegasmodel: --item: ")
    assert said.count("\n") == 1


def test_a_discrepant_item_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """As the whole command does."""
    run(["paper", "devendictis", "--json", "--verdict", "discrepant"])
    check, *_ = json.loads(capsys.readouterr().out)["checks"]
    assert run(["paper", "devendictis", "--item", check["item"]]) == 1
