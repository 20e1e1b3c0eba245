"""The HTML report of ``vegasmodel paper --html``: printed values beside ours.

Ours are those of closed forms, of the simulators ``fluid`` and ``rounds``, and of ns-2 or ns-3.
Each paper has a chapter: five main results, the findings about it, its equations, its records by
kind.  The report is one file that loads nothing else.  Every text is escaped, by ``mathematics`` or
by the template.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import markdown_it
import markupsafe

from paper_checks import models, records
from paper_checks.answers import Answers, best_closed_form, by_simulator, prime, value
from paper_checks.checks import Check, Record, judge
from paper_checks.findings import page
from paper_checks.headlines import HEADLINES, Row, row
from paper_checks.mathematics import Equation, equations, inline
from paper_checks.pictures import Picture, pictures
from paper_checks.runs import Runs
from paper_checks.scenes import asked
from paper_checks.summary import VERDICTS, summary
from vegasmodel import plots
from vegasmodel.predictor import SIMULATED
from vegasmodel.support.files import atomic_write

if TYPE_CHECKING:
    from markdown_it.token import Token
    from matplotlib.figure import Figure

__all__ = [
    "TITLES",
    "Finding",
    "Line",
    "Paper",
    "build",
    "finding",
    "lines",
    "paragraphs",
    "render",
    "show",
    "write",
]

TITLES = {
    "tsang": "Tsang, Chang: Throughput fairness of TCP Vegas",
    "boutremans": "Boutremans, Le Boudec: A note on the fairness of TCP Vegas (2000)",
    "evaluation": "Reno, SACK and Vegas evaluated with ns-2",
    "devendictis": "De Vendictis, Baiocchi: Modeling a mixed Vegas and Reno scenario (2002)",
    "podlesny": "Podlesny, Williamson: Fairness between NewReno and Vegas with RD network services",
}
FOLDER = Path(__file__).parent
SHOWN = 8  # entries of a list that a cell shows
KINDS = (("equation", "Equations"), ("table", "Tables"), ("figure", "Figures"), ("claim", "Claims"))
FINDINGS = {  # about each paper
    "tsang": ("long_delays",),
    "boutremans": ("arrival_order",),
    "evaluation": ("least_alpha", "send_jitter"),
    "devendictis": ("who_loses",),
    "podlesny": ("few_newreno",),
}


@dataclass(frozen=True)
class Line:
    """A row of the table of records: one record's value from each source, as text."""

    check: Check  # the record's verdict and what led to it
    printed: str  # by the paper
    closed_form: str
    model: str  # the names of the closed forms that gave ``closed_form``
    fluid: str  # by the simulator ``fluid``
    rounds: str  # by the simulator ``rounds``
    packets: str  # by ns-2 or ns-3, or by our own simulation of single packets
    tolerance: str


@dataclass(frozen=True)
class Finding:
    """A finding's page: its text as HTML, and its picture as a data URL."""

    title: str
    text: markupsafe.Markup
    picture: str
    caption: str


@dataclass(frozen=True)
class Paper:
    """A paper's chapter; ``pictures`` as data URLs with their captions."""

    key: str  # of the paper, such as "tsang"
    title: str
    counts: Mapping[str, int]  # by verdict: the number of records
    headlines: Sequence[Row]  # the five main results
    findings: Sequence[Finding]
    equations: Sequence[Equation]
    lines: Sequence[Line]  # one for each record
    models: Sequence[models.Row]  # errors of models against ns-2 in the paper's scenarios
    pictures: Sequence[tuple[str, str]]

    @property
    def kinds(self) -> list[tuple[str, list[Line]]]:
        """The records by kind, equations first, under the kind's title."""
        named = [(title, [e for e in self.lines if e.check.kind == kind]) for kind, title in KINDS]
        return [(title, found) for title, found in named if found]


def build(papers: Sequence[str], live: bool = False) -> list[Paper]:
    """The chapters of ``papers``, from stored runs, or from new ones if ``live``."""
    runs = Runs(live=live)
    return [_paper(key, runs) for key in papers]


def _paper(key: str, runs: Runs) -> Paper:
    """The report's chapter on the paper ``key``; ``runs`` has the results of ns-2 and ns-3."""
    prime(asked(key, runs))  # predictions of all scenarios, in parallel processes
    found = lines(key, records(key), runs)
    forms, simulated = _models()
    opening = [row(key, headline, runs, forms, simulated) for headline in HEADLINES[key]]
    rated = models.rows(runs, chosen=models.families([key], runs))
    drawn = [*pictures(key, runs), _errors(rated)]
    return Paper(
        key=key,
        title=TITLES[key],
        counts=summary([line.check for line in found])[key],
        headlines=opening,
        findings=[finding(name, runs) for name in FINDINGS[key]],
        equations=equations(key),
        lines=found,
        models=rated,
        pictures=[(address(picture.figure), picture.caption) for picture in drawn],
    )


def lines(paper: str, found: Sequence[Record], runs: Runs) -> list[Line]:
    """Every record with its verdict, and the values that models give in the place of ns-2."""
    forms, simulated = _models()
    return [_line(paper, record, runs, forms, simulated) for record in found]


def _models() -> tuple[Answers, dict[str, Answers]]:
    """The answers of closed forms, and those of each simulator, which replace ns-2's runs."""
    simulated = {model: Answers(by_simulator(model)) for model in SIMULATED}
    return Answers(best_closed_form), simulated


def finding(name: str, runs: Runs) -> Finding:
    """The page of the finding ``name``, for the report."""
    made = page(name, runs)
    return Finding(made.title, paragraphs(made.text), address(made.figure), made.caption)


def paragraphs(text: str) -> markupsafe.Markup:
    """Markdown as HTML, with symbols as letters; HTML in the text stays text."""
    reader = markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")

    def words(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
        """A text token of the Markdown as HTML, with symbols as letters."""
        return str(inline(tokens[index].content))

    reader.add_render_rule("text", words)
    wide = reader.render(text).replace("<table>", '<div class="wide"><table>')
    return markupsafe.Markup(wide.replace("</table>", "</table></div>"))  # noqa: S704 - escaped


def _line(
    paper: str, record: Record, runs: Runs, forms: Answers, simulated: Mapping[str, Answers]
) -> Line:
    """The row of ``record``: its value from ns-2 (or ns-3), and from the models in ns-2's place.

    Models have a value only if the record ran a packet simulator: otherwise there is no scenario
    that they could predict.  A value by theory or by arithmetic stands in the column of the closed
    forms.  ``forms`` computes values from predictions of closed forms, and ``simulated`` from those
    of each simulator.
    """
    runs.scenarios.clear()  # ``judge`` adds the scenarios of which the record reads runs
    check = judge(paper, record, runs)
    computed, closed, model, packets = show(check.computed), "", "", ""
    simulator_values = dict.fromkeys(simulated, "")
    if check.source == "packets":
        packets = computed
        if runs.scenarios:
            closed_value, model = value(record, forms)
            closed = show(closed_value)
            for name, answers in simulated.items():
                simulator_values[name] = show(value(record, answers)[0])
            model = "" if closed_value is None else model
    elif check.source == "replay":
        packets = computed
    else:
        closed = computed
        model = "arithmetic on printed numbers" if check.source == "print" else ""
        packets = "" if check.packets is None else show(check.packets)
    # a truth value has no tolerance to show
    no_tolerance = check.tolerance is None or isinstance(check.printed, bool)
    tolerance = "" if no_tolerance else f"{check.tolerance:.2g}"
    return Line(
        check=check,
        printed=show(check.printed),
        closed_form=closed,
        model=model,
        **simulator_values,
        packets=packets,
        tolerance=tolerance,
    )


def show(entry: Any) -> str:
    """A value as the text of a cell; a dash if there is none."""
    if entry is None:
        return "–"
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Sequence):
        texts = [show(part) for part in entry[:SHOWN]]
        return ", ".join(texts) + (" …" if len(entry) > SHOWN else "")
    if hasattr(entry, "item"):  # a number of NumPy
        entry = entry.item()
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    if isinstance(entry, float):
        if math.isnan(entry):
            return "–"
        return f"{entry:.0f}" if 1e4 <= abs(entry) < 1e9 else f"{entry:.4g}"
    return str(entry)


def _errors(rated: Sequence[models.Row]) -> Picture:
    """The picture of each model's errors over all scenarios of a paper."""
    errors: dict[str, list[float]] = {}
    for one in rated:
        errors.setdefault(one.model, []).extend(one.errors)
    return Picture(
        plots.model_errors(errors, title="models against ns-2"),
        "Errors of each model's throughputs against ns-2 in the paper's scenarios, best model "
        "first.",
    )


def address(figure: Figure) -> str:
    """The picture as a data URL: SVG, which is sharp at any size."""
    text = io.BytesIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue()).decode("ascii")


def render(papers: Sequence[Paper]) -> str:
    """The HTML page with the chapters ``papers``, made from the template ``report.html``."""
    import vegasmodel

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"mathematics": inline, "show": show}
    template = environment.get_template("report.html")
    total = {v: sum(paper.counts[v] for paper in papers) for v in VERDICTS}
    return template.render(
        papers=papers,
        verdicts=VERDICTS,
        total=total,
        version=vegasmodel.__version__,
        remarks=models.remarks(),
    )


def write(path: Path, papers: Sequence[str], live: bool = False) -> list[Check]:
    """Write the report of ``papers``, completely or not at all; returns its checks."""
    chapters = build(papers, live)
    with atomic_write(path) as part:
        part.write_text(render(chapters), encoding="utf-8")
    return [line.check for chapter in chapters for line in chapter.lines]
