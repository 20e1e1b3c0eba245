"""Fixtures for all tests."""

import shutil

import pytest

from vegasmodel.packets import ns3_build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real simulators say in one line that one is missing."""
    missing = {
        "ns2": shutil.which("ns") is None and "ns-2 is not installed: apt-get install ns2",
        "ns3": not (ns3_build.find() and shutil.which("g++"))
        and "ns-3 is not installed: apt-get install libns3-dev g++",
    }
    for item in items:
        for engine, reason in missing.items():
            if reason and engine in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))
