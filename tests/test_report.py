"""The HTML report is complete, valid and self-contained; hostile strings stay text."""

import base64
import dataclasses
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import sympy

import paper_checks
from paper_checks import models, report
from paper_checks.answers import Answers, best_closed_form, by_simulator, measurement, value
from paper_checks.checks import Found, Record, judge
from paper_checks.devendictis.scenes import with_limit, with_room
from paper_checks.headlines import HEADLINES, row
from paper_checks.mathematics import Equation, equations, inline, mathml
from paper_checks.pictures import Picture
from paper_checks.runs import NoRun, Runs
from tests.helpers import scenario
from vegasmodel import plots
from vegasmodel.command_line.commands import run
from vegasmodel.predictor import SIMULATED, predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

VOID = {"meta", "input", "img", "br", "hr", "link"}
HOSTILE = "<script>alert(1)</script> & \"quoted\" 'x' {{ 7 * 7 }} </td>"


class Page(HTMLParser):
    """Checks that tags are nested, and collects what the tests need."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def chapter(paper: str, item: str | None = None) -> report.Paper:
    """A paper's records with one small picture; or the record of this name."""
    runs = Runs()
    found = paper_checks.records(paper)
    if item is not None:
        found = (Record(item, "claim", item, lambda runs: item, note=item),)
    lines = report.lines(paper, found[:40], runs)
    fig = plots.model_errors({"fluid": [0.1]}, title=item or "")
    counts = dict.fromkeys(report.VERDICTS, 0)
    for line in lines:
        counts[line.check.verdict] += 1
    rated = models.Row(f"{paper}: {item}", "fluid", (0.1,), 1, item or "none")
    drawn = [(report.address(Picture(fig, "").figure), item or "caption")]
    said = item or "alpha <= 3"
    forms, simulated = Answers(best_closed_form), {m: Answers(lambda s: None) for m in SIMULATED}
    opening = [row(paper, h, runs, forms, simulated) for h in HEADLINES[paper][:1]]
    opening = [dataclasses.replace(r, says=said, cause=said, by=said) for r in opening]
    finding = report.Finding(said, report.paragraphs(said), *drawn[0])
    formula = Equation("7", inline(said), mathml(sympy.Symbol("x") / 2), None, said)
    return report.Paper(
        paper,
        item or report.TITLES[paper],
        counts,
        opening,
        [finding],
        [formula],
        lines,
        [rated],
        drawn,
    )


@pytest.fixture(autouse=True, scope="module")
def no_simulation() -> Iterator[None]:
    """No simulators, which take seconds per record; closed forms are enough here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "by_simulator", lambda model: lambda scenario: None)
        yield


@pytest.fixture(scope="module")
def page() -> str:
    """The records of ``tsang`` are replayed packet by packet, which takes ten seconds."""
    return report.render([chapter("evaluation"), chapter("podlesny")])


def test_valid_and_loads_nothing(page: str) -> None:
    found = Page(page)
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert page.startswith("<!DOCTYPE html>")
    for tag, attrs in found.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base"}
        assert not any(name.startswith("on") for name in attrs)
        for name in ("src", "href", "srcset", "action"):
            target = attrs.get(name) or "#"
            assert target.startswith(("#", "data:image/svg+xml;base64,")), target
            if target.startswith("#") and len(target) > 1:
                assert target[1:] in ids
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_pictures_load_nothing_either(page: str) -> None:
    for code in re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page):
        picture = base64.b64decode(code).decode("utf-8")
        assert picture.startswith("<?xml")
        links = re.findall(r'(?:href|src)="([^"]*)"', picture)
        assert all(link.startswith("#") for link in links)


def test_every_record_is_there_with_its_verdict(page: str) -> None:
    found = Page(page)
    text = " ".join("".join(found.text).split())
    for paper in ("evaluation", "podlesny"):
        for record in paper_checks.records(paper)[:40]:
            assert " ".join("".join(Page(str(inline(record.item))).text).split()) in text
    bodies = [attrs.get("class") for tag, attrs in found.tags if tag == "tbody"]
    verdicts = [name for name in bodies if name in report.VERDICTS]
    assert len(verdicts) == 80
    opening = [attrs["class"] for tag, attrs in found.tags if tag == "table"]
    assert opening.index("records headlines") < opening.index("records")


def test_hostile_strings_stay_text() -> None:
    text = report.render([chapter("tsang", HOSTILE)])
    found = Page(text)
    assert "<script" not in text
    assert "49" not in re.sub(r"base64,[^\"]*", "", text[text.index("<header>") :])
    assert HOSTILE in "".join(found.text)
    assert all(tag != "script" for tag, _ in found.tags)
    assert any(attrs.get("alt") == HOSTILE for _, attrs in found.tags)


def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "build", lambda papers, live: [chapter(p) for p in papers])
    path = tmp_path / "r.html"
    status = run(["paper", "tsang", "--html", str(path), "--json"])
    assert status in {0, 1}
    assert '"paper": "tsang"' in capsys.readouterr().out
    Page(path.read_text(encoding="utf-8"))
    assert run(["paper", "tsang", "--html", str(tmp_path / "r.txt")]) == 2
    assert "--html" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_cells() -> None:
    cells = [
        None,
        True,
        np.bool_(False),
        3,
        0.123456,
        123456.7,
        float("nan"),
        "a",
        [1.0, [2, None]],
    ]
    shown = ["–", "yes", "no", "3", "0.1235", "123457", "–", "a", "1, 2, –"]
    assert [report.show(cell) for cell in cells] == shown
    assert report.show(list(range(99))).endswith(" …")


# --- models in the place of ns-2 -------------------------------------------------------------


def test_a_model_answers_a_record() -> None:
    s = with_limit(0.08, 20.0)
    record = Record("ratio", "claim", 0.2, lambda runs: float(np.divide(*runs(s).mean)))
    found, model = value(record, Answers(best_closed_form))
    assert model == "minicycle"  # the one closed form of a mixed scenario
    assert found == pytest.approx(predict(s, "minicycle").ratios["vegas/reno"])


def test_spreads_over_a_models_runs_are_0() -> None:
    s = with_limit(0.08, 20.0)
    record = Record(
        "spread", "claim", 0, lambda runs: Found(runs(s).throughput.std(ddof=1, axis=0))
    )
    found, _ = value(record, Answers(best_closed_form))
    assert found.tolist() == [0, 0]


def test_what_a_model_does_not_give_is_none() -> None:
    s = with_limit(0.08, 20.0)
    for compute in (lambda runs: runs(s).window[0, 0], lambda runs: 1 / 0):
        found, _ = value(Record("i", "claim", 1.0, compute), Answers(best_closed_form))
        assert found is None
    nobody = Answers(lambda scenario: None)
    found, why = value(Record("i", "claim", 1.0, lambda runs: runs(s).mean), nobody)
    assert (found, why) == (None, "no model answers this scenario")


def test_acks_are_deliveries_while_active() -> None:
    s = scenario({"law": "reno", "start": "250 s"}, run={"duration": "600 s", "warmup": "200 s"})
    answers = Answers(lambda s: Prediction("fluid", s, np.array([2.0])))
    assert answers(s).acks.tolist() == [700.0]  # 2 pkt/s from 250 to 600 s


def test_figures_by_group() -> None:
    s = scenario({"law": "reno", "count": 2}, {"law": "vegas"})
    answers = Answers(lambda s: Prediction("fluid", s, np.array([1.0, 3.0, 5.0])))
    assert answers.groups(s).mean.tolist() == [2.0, 5.0]
    with pytest.raises(NoRun, match="loss_rate"):
        _ = answers.groups(s).loss_rate


def test_a_stored_run_is_a_prediction() -> None:
    s = with_limit(0.08, 20.0)
    rows = Runs()(s).throughput
    found = measurement(s, Runs())
    np.testing.assert_allclose(found.throughput, rows.mean(axis=0))
    np.testing.assert_allclose(found.throughput_se, rows.std(axis=0, ddof=1) / len(rows) ** 0.5)
    with pytest.raises(NoRun):
        measurement(dataclasses.replace(s, packet_size=77.0), Runs())


def test_families_hold_every_scenario() -> None:
    """Every scenario for which a record runs ns-2 belongs to a family, or differs in runs only."""
    runs = Runs()
    families = models.families(["evaluation"], runs)
    held = {(s.links, s.flows) for group in families.values() for s in group}
    assert {(s.links, s.flows) for s in runs.scenarios.values()} == held
    assert len(held) > 50


def test_each_simulator_has_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """The column ``fluid`` has that simulator's values, and ``rounds`` has its own."""
    asked = []

    def by_simulator(model: str) -> Callable[[Scenario], Prediction]:
        asked.append(model)
        rates = np.array([{"fluid": 100.0, "rounds": 200.0}[model], 1.0])
        return lambda scenario: Prediction(model, scenario, rates)

    monkeypatch.setattr(report, "by_simulator", by_simulator)
    s = with_limit(0.08, 20.0)
    record = Record("rate", "claim", 0.2, lambda runs: float(runs(s).mean[0]))
    [line] = report.lines("devendictis", [record], Runs())
    assert asked == ["fluid", "rounds"]
    assert (line.fluid, line.rounds) == ("100", "200")
    assert float(line.packets) == pytest.approx(float(Runs()(s).mean[0]), rel=1e-3)


def test_the_models_answer_for_themselves() -> None:
    s = with_limit(0.08, 20.0)
    for model in SIMULATED:
        found = by_simulator(model)(s)
        assert found.model == model
        np.testing.assert_array_equal(found.throughput, predict(s, model).throughput)


# --- headlines, mathematics ------------------------------------------------------------------


@pytest.mark.parametrize("paper", paper_checks.PAPERS)
def test_five_headlines_a_paper(paper: str) -> None:
    runs, forms = Runs(), Answers(best_closed_form)
    items = {headline.item for headline in HEADLINES[paper]}
    assert len(items) == 5
    records = [record for record in paper_checks.records(paper) if record.item in items]
    checks = {record.item: judge(paper, record, runs) for record in records}
    for headline in HEADLINES[paper]:
        found = row(paper, headline, runs, forms, {})
        assert found.check == checks[headline.item]
        assert found.packets is not None, headline.item
        assert bool(found.cause) == (found.check.verdict in ("discrepant", "erratum"))


def test_a_headline_is_one_figure_by_every_source() -> None:
    """Vegas over Reno: the ratio of the same two rates from each source."""
    headline = HEADLINES["devendictis"][0]
    simulated = {
        model: Answers(lambda s, rate=rate: Prediction("m", s, np.array([rate, 2.0])))
        for model, rate in (("fluid", 1.0), ("rounds", 4.0))
    }
    found = row("devendictis", headline, Runs(), Answers(best_closed_form), simulated)
    assert found.simulated == {"fluid": 0.5, "rounds": 2.0}
    rates = Runs()(with_room(0.08, 5.0)).mean  # five packets wait, as in the paper's model
    assert found.packets == pytest.approx(rates[0] / rates[1])
    assert found.closed_form == pytest.approx(7 / 3)  # (1 + lambda)/(3 (1 - lambda)), appendix A


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("alpha <= W_V(N)", "<i>α</i> ≤ <i>W</i><sub>V</sub>(N)"),
        ("x_i = Delta_(i-1)", "<i>x</i><sub>i</sub> = <i>Δ</i><sub>i−1</sub>"),
        ("y_k^2/y_j^2", "<i>y</i><sub>k</sub><sup>2</sup>/<i>y</i><sub>j</sub><sup>2</sup>"),
        ("(3 + sqrt 5)/2 - B_th", "(3 + √5)/2 − <i>B</i><sub>th</sub>"),
        ("1.2 +- 0.1, 2 lambda", "1.2 ± 0.1, 2 <i>λ</i>"),
        ("a < b & <b>c</b>", "a &lt; b &amp; &lt;b&gt;c&lt;/b&gt;"),
        ("windowInit_, Vegas1_3, paper_checks/x.py", "windowInit_, Vegas1_3, paper_checks/x.py"),
        ("start_jitter, v_alpha_, gammas", "start_jitter, v_alpha_, gammas"),
    ],
)
def test_mathematics_in_a_line(text: str, shown: str) -> None:
    assert str(inline(text)) == shown


def test_equations_show_what_is_printed_and_where_it_is_wrong() -> None:
    found = equations("podlesny")
    assert [e.number for e in found if e.derived] == []
    assert {"5", "6", "7"} <= {e.number for e in found}
    wrong = [e for e in equations("devendictis") if e.derived]
    assert len(wrong) == 2  # B_V and appendix A's Delta
    for equation in (*found, *wrong):
        Page(f"<p>{equation.symbol}{equation.printed}{equation.derived or ''}</p>")
        assert "\\" not in equation.symbol
    assert equations("tsang") == []


def test_a_findings_markdown_is_escaped() -> None:
    text = report.paragraphs("| a | b |\n| --- | --- |\n| <b>x</b> | alpha |\n\n**Bold** `<i>`")
    Page(str(text))
    assert "<b>" not in text
    assert "<i>α</i>" in text
    assert '<div class="wide"><table>' in text
