"""A command gives every scenario of the paper checks as a file, or those of an item."""

from pathlib import Path

import pytest

import paper_checks
from paper_checks import record, scenes
from paper_checks.checks import judge
from paper_checks.files import to_toml
from paper_checks.runs import Runs
from vegasmodel import scenario as sc
from vegasmodel.scenario import Scenario, load

FOLDER = Path(paper_checks.__file__).parent


@pytest.fixture(scope="module")
def used() -> dict[str, Scenario]:
    runs = Runs()
    for paper in ("boutremans", "podlesny"):
        for entry in paper_checks.records(paper):
            judge(paper, entry, runs)
    return runs.scenarios


def test_files_come_back_as_their_scenarios(used: dict[str, Scenario]) -> None:
    """A third of them, since pint takes a millisecond per number."""
    some = list(used.values())[::3]
    assert len(some) > 10
    for scenario in some:
        back = Scenario.from_toml(to_toml(scenario))
        assert back == scenario, scenario.name


def test_every_field_is_written() -> None:
    """A scenario in which no field has its default."""
    flow = sc.Flow(
        law="vegas",
        rtt=sc.Uniform(0.0401, 1 / 3),
        name='a "name" \\ \u00e9',
        count=3,
        start=sc.Staggered(0.5, 1 / 7),
        stop=59.9,
        size=sc.Pareto(31.7, 1.3),
        alpha=2.0,
        beta=2.5,
        gamma=3.0,
        decrease=0.8,
        over_estimate=0.0123,
        max_window=64.0,
        delayed_ack=True,
        packet_size=1500.0,
        direction="reverse",
        service="rate",
        path=("one", "two"),
        access=12345.678,
        delay_noise=1e-3 / 3,
    )
    short = sc.Flow(
        law="reno", rtt=0.2, name="short", size=12.5, arrivals=sc.ParetoArrivals(0.7, 1.1)
    )
    shorter = sc.Flow(law="sack", rtt=0.2, name="poisson", size=3.0, arrivals=sc.Poisson(1 / 3))
    red = sc.Red(5.5, 15.25, 0.05, 1 / 900, ecn=True, gentle=True)
    links = (
        sc.Link(1000 / 3, "one", 33.0, 1e-4 / 3, red, 0.01, (sc.Drop("short", (3, 1)),)),
        sc.Link(187.5, "two", 40.0, 2e-3, sc.RateDelay(2.0, 0.3)),
    )
    run = sc.Run(60.0, 7.7, 5, 3, 0.25, "2.35")
    whole = Scenario(links, (flow, short, shorter), 576.0, "whole", 52.0, run)
    assert Scenario.from_toml(to_toml(whole)) == whole


def test_items() -> None:
    assert {r.item for r in scenes.matching("podlesny", ["figure 1"])} == {
        "figure 1, NewReno's share"
    }
    assert len(scenes.matching("evaluation", [])) == len(paper_checks.records("evaluation"))
    with pytest.raises(ValueError, match=r"figure 17.*figure 1;"):
        scenes.matching("evaluation", ["figure 17"])


def test_item_as_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Section 3.3.2.1 sweeps two laws over five buffers."""
    assert scenes.main(["evaluation", "section 3.3.2.1", "--out", str(tmp_path)]) == 0
    names = capsys.readouterr().out.split()
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    found = [load(tmp_path / name) for name in names]
    cases = {(s.flows[0].law, s.flows[1].law, s.links[0].buffer) for s in found}
    assert cases == {
        (law, "vegas", buffer)
        for law in ("reno", "sack")
        for buffer in (4.0, 7.0, 10.0, 15.0, 50.0)
    }
    stored = Runs()
    for scenario in found:  # the very runs that the records use
        stored(scenario)


def test_unknown_item(capsys: pytest.CaptureFixture[str]) -> None:
    for main in (scenes.main, record.main):
        assert main(["tsang", "table 9"]) == 2
        assert "table 9" in capsys.readouterr().err


def test_names_tell_files_apart() -> None:
    one = load(FOLDER / "boutremans" / "arrivals20.toml")
    other = load(FOLDER / "devendictis" / "figure3.toml")
    alike = Scenario(other.links, other.flows, other.packet_size, one.name)
    assert len(scenes.files([one, other, alike])) == 3
