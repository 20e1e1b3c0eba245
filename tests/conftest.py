"""Fixtures for all tests."""

import shutil

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real ns-2 say in one line that it is missing."""
    if shutil.which("ns") is None:
        missing = pytest.mark.skip(reason="ns-2 is not installed: apt-get install ns2")
        for item in items:
            if "ns2" in item.keywords:
                item.add_marker(missing)
