"""The command ``paper``: prints a paper's numbers beside the numbers that this package computes."""

from __future__ import annotations

from pathlib import Path

import click

from vegasmodel.command_line import inputs
from vegasmodel.support import extras
from vegasmodel.support.exits import Shortfall


@click.command()
@click.argument("key", required=False, metavar="[PAPER]")
@click.option("--live", is_flag=True, help="Run ns-2 instead of using stored runs.")
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
    type=int,
    help="Print this many items in full, drawn with --seed, for a reader to check.",
)
@click.option("--seed", type=int, default=1, help="Seed of --draw.")
@inputs.as_json
def paper(
    key: str | None,
    live: bool,
    html: Path | None,
    texts: Path | None,
    draw: int | None,
    seed: int,
    json: bool,
) -> None:
    """The papers' printed values beside computed ones.

    Each item of a paper, such as a figure or a table, has a verdict.  PAPER is tsang, boutremans,
    evaluation, devendictis or podlesny; without it, all five are checked.

    The exit status is 1 if some item is "discrepant": its computed value differs from the printed
    one, and the evidence shows that the printed one is wrong.

    Example: vegasmodel paper devendictis --html devendictis.html
    """
    extras.need_papers("paper")
    import paper_checks
    from vegasmodel import console
    from vegasmodel.fields.rules import Choice

    if key is not None:
        Choice(paper_checks.PAPERS).check(key, "paper")
    papers = paper_checks.PAPERS if key is None else (key,)
    if texts is not None:
        from paper_checks import texts as look_up

        look_up.show(texts, papers, json)
        return
    if draw is not None:
        from paper_checks import reading

        reading.show(papers, draw, seed, json)
        return
    if html is None:
        checks = paper_checks.run(papers, live=live)
    else:
        extras.need("report", "--html")
        console.output_path(html, "--html", (".html",))
        from paper_checks import report

        checks = report.write(html, papers, live)
    rows = [check.to_json() for check in checks]
    if json:
        console.print_json({"checks": rows})
    else:
        console.print_checks(rows)
    short = sum(row["verdict"] == "discrepant" for row in rows)
    if short:
        raise Shortfall(f"{short} of {len(rows)} items are discrepant")
