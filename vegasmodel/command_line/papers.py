"""Runs the command ``paper``, which prints a paper's numbers beside those of our models."""

from __future__ import annotations

from pathlib import Path

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.errors import FieldError
from vegasmodel.support import extras
from vegasmodel.support.exits import Shortfall


def _verdicts(_: click.Context) -> tuple[str, ...]:
    """The names of the verdicts, which the tab key offers."""
    from paper_checks.summary import VERDICTS

    return VERDICTS


def _papers(_: click.Context) -> tuple[str, ...]:
    """The names of the papers, which the tab key offers."""
    from paper_checks import PAPERS

    return PAPERS


@click.command()
@click.argument("key", required=False, metavar="[PAPER]", shell_complete=inputs.offer(_papers))
@click.option(
    "--verdict",
    multiple=True,
    shell_complete=inputs.offer(_verdicts),
    help="Only records with this verdict: reproduced, consistent, erratum, discrepant or blocked; "
    "may be repeated.",
)
@click.option(
    "--item", help='Print in full the records whose item has these words, such as "equation 5".'
)
@click.option("--live", is_flag=True, help="Run ns-2 and ns-3 instead of using stored runs.")
@click.option(
    "--html",
    type=inputs.FILE,
    help="Write a report of printed, computed and simulated values; takes minutes.",
)
@click.option(
    "--texts",
    type=inputs.FILE,
    help="Only look up the printed values in this folder of the papers' texts (.txt).",
)
@click.option(
    "--draw",
    type=inputs.WHOLE,
    help="Print this many records in full, drawn with --seed, for a reader to check.",
)
@click.option("--seed", type=inputs.WHOLE, help="Seed of --draw. Default: 1.")
@inputs.as_json
def paper(
    key: str | None,
    verdict: tuple[str, ...],
    item: str | None,
    live: bool,
    html: Path | None,
    texts: Path | None,
    draw: int | None,
    seed: int | None,
    json: bool,
) -> None:
    """The papers' printed values beside computed ones.

    A record compares an equation, a table cell, a figure or a claim of a paper with our result, and
    has a verdict.  PAPER is tsang, boutremans, evaluation, devendictis or podlesny; without it, all
    five are checked.

    With --verdict, only some records are printed, but the last table counts all.  With --item, the
    records of one item are printed in full, such as those of "equation 5".

    The exit status is 1 if some record is "discrepant": its computed value differs from the printed
    one, and the evidence shows that the printed one is wrong.  This is a finding about the paper,
    and no failure of the command.  The wrong formulas are listed in docs/errata.md.

    Example: vegasmodel paper tsang --verdict discrepant --verdict erratum
    """
    extras.need_papers("paper")
    import paper_checks
    from paper_checks import summary
    from vegasmodel.fields.rules import Choice
    from vegasmodel.report import console

    if key is not None:
        Choice(paper_checks.PAPERS).check(key, "key")
    for each in verdict:
        Choice(summary.VERDICTS).check(each, "--verdict")
    _check_together(verdict, item, live, html, texts, draw, seed)
    papers = paper_checks.PAPERS if key is None else (key,)
    if texts is not None:
        from paper_checks import texts as look_up

        look_up.show(texts, papers, json)
        return
    if draw is not None:
        from paper_checks import reading

        reading.show(reading.drawn(papers, draw, 1 if seed is None else seed), json)
        return
    if item is not None:
        from paper_checks import reading

        checks = reading.of_item(papers, item, live)
    elif html is None:
        checks = paper_checks.run(papers, live=live)
    else:
        extras.need("report", "--html")
        console.output_path(html, "--html", (".html",))
        from paper_checks import report

        checks = report.write(html, papers, live)
    rows = [check.to_json() for check in checks]
    wanted = verdict or summary.VERDICTS
    if item is not None:
        reading.show(checks, json)
    elif json:
        console.print_json({"checks": [row for row in rows if row["verdict"] in wanted]})
    else:
        summary.print_checks(rows, wanted)
        console.written(html)
    short = sum(row["verdict"] == "discrepant" for row in rows)
    if short:
        text = "the printed values are wrong there. The command itself has not failed"
        raise Shortfall(f"{short} of {len(rows)} records are discrepant: {text}")


def _check_together(
    verdict: tuple[str, ...],
    item: str | None,
    live: bool,
    html: Path | None,
    texts: Path | None,
    draw: int | None,
    seed: int | None,
) -> None:
    """Raise ``FieldError`` for an option that has no effect together with the other options.

    The arguments are the values of the options with the same names, such as ``--verdict``.
    """
    if texts is not None and draw is not None:
        raise FieldError("--draw", draw, "not beside --texts")
    if item is not None and (verdict or html is not None or texts is not None or draw is not None):
        raise FieldError("--item", item, "not beside --verdict, --html, --texts or --draw")
    if seed is not None and draw is None:
        raise FieldError("--seed", seed, "only with --draw")
    if texts is not None or draw is not None:
        text = "not beside --texts or --draw"
        if verdict:
            raise FieldError("--verdict", verdict[0], text)
        if live:
            raise FieldError("--live", live, text, wrong="is given")
        if html is not None:
            raise FieldError("--html", str(html), text)
