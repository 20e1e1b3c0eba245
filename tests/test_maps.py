"""Ready-made maps: each can be drawn, shows its numbers, and has a text on how to read it."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import vegasmodel as vm
from vegasmodel import plots
from vegasmodel.command_line.commands import run
from vegasmodel.study import grid, maps, models

PAGE = (Path(__file__).parents[1] / "docs/maps.md").read_text()


@pytest.mark.parametrize("name", maps.MAPS)
def test_a_map_can_be_asked_and_is_explained(name: str) -> None:
    chosen = maps.find(name)
    for panel in chosen.panels:
        case = vm.Scenario.from_toml(panel.scenario)
        space = grid.make(case, list(panel.over), None, 1)
        assert len(space.shape) == 2
        models.check_model(panel.model)
        kind, of = panel.figure
        names = [member.name for member in case.members]
        assert kind in ("share", "ratio")
        assert set(of.split("/")) <= set(names)
    assert " ".join(chosen.reading.split()) in " ".join(PAGE.split())
    assert f"vegasmodel map {name} --out {name}.png" in PAGE


def panel(kind: str) -> xr.DataArray:
    values = np.array([[0.5, 2.0, np.nan], [0.25, 4.0, 8.0]])
    return xr.DataArray(
        values / (1.0 if kind == "ratio" else 8.0),
        dims=("link.capacity", "flow.b.rtt"),
        coords={
            "link.capacity": ("link.capacity", [125.0, 250.0], {"units": "packets/s"}),
            "flow.b.rtt": ("flow.b.rtt", [0.04, 0.08, 0.16], {"units": "s"}),
        },
        name=kind,
        attrs={"packet_size": 1000.0},
    )


@pytest.mark.parametrize("kind", ["ratio", "share"])
def test_the_picture_has_a_cell_for_each_point_with_its_axes_in_plain_units(kind: str) -> None:
    drawn = panel(kind)
    fig = plots.heat([drawn, drawn], ["$left", "right"], ["x", "x"], title="t", shown="s", up="y")
    left = fig.axes[0]
    shown = left.collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.isnan(drawn.values))
    np.testing.assert_array_equal(shown.compressed(), drawn.values[np.isfinite(drawn.values)])
    assert [text.get_text() for text in left.get_xticklabels()] == ["40", "80", "160"]
    assert [text.get_text() for text in left.get_yticklabels()] == ["1", "2"]  # Mbit/s
    middle = 1.0 if kind == "ratio" else 0.5
    assert left.collections[0].norm(middle) == pytest.approx(0.5)


def test_the_command_writes_the_picture_and_tells_its_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The closed form by hand: a/D + a/(D - x) = c, so the ratio is D/(D - x)."""
    whole = maps.find("starvation")
    small = dataclasses.replace(whole, panels=(whole.panels[0], whole.panels[0]))
    monkeypatch.setitem(maps.MAPS, "starvation", small)
    out = tmp_path / "a.png"
    assert run(["map", "starvation", "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    c, a, x = 2500.0, 2.0, 0.016  # 20 Mbit/s
    delay = max(np.roots([c, -(c * x + 2 * a), a * x]).real)
    assert document["panels"][0]["greatest"] == pytest.approx(delay / (delay - x))
    assert document["panels"][0]["least"] == pytest.approx(1.0)
    assert document["panels"][0]["without_answer"] == 0
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_bad_maps_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["starvatoin", "--out", "a.png"], ["rtt-bias", "--out", str(tmp_path / "a.txt")]):
        assert run(["map", *line]) == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert "MAP: 'starvatoin'" in said or "--out" in said
