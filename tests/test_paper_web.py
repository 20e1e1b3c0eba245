"""Stored answers of ``rounds`` on Web traffic: complete, marked if outdated, and used."""

import dataclasses

import numpy as np
import pytest

from paper_checks import web
from paper_checks.answers import answer
from paper_checks.models import remarks
from paper_checks.runs import Runs
from paper_checks.scenes import asked
from vegasmodel.scenario import Scenario


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [scenario for scenario in asked("podlesny", Runs()) if scenario.random_arrivals]


def test_every_scenario_has_an_answer(scenarios: list[Scenario]) -> None:
    assert len(scenarios) > 10
    for scenario in scenarios:
        found = web.stored(scenario)
        assert found.applicable
        assert found.throughput is not None
        assert found.throughput.shape == (len(scenario.members),)
        assert np.all(found.throughput >= 0)
        assert found.utilization is not None
        assert np.all(found.utilization <= 1 + 1e-6)


def test_the_table_reads_them(scenarios: list[Scenario]) -> None:
    read, stored = answer(scenarios[0], "rounds").throughput, web.stored(scenarios[0]).throughput
    assert read is not None
    assert stored is not None
    np.testing.assert_array_equal(read, stored)


def test_another_scenario_has_none(scenarios: list[Scenario]) -> None:
    run = dataclasses.replace(scenarios[0].run, seed=98765)
    found = web.stored(dataclasses.replace(scenarios[0], run=run))
    assert not found.applicable
    assert "paper_checks.web" in str(found.reason)


def test_an_earlier_version_is_said_to_be_one(
    scenarios: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "version", lambda: "another")
    assert web.stored(scenarios[0]).reason == web.OLDER
    assert "earlier version" in remarks()
    assert web.main(["--check"]) == 1
