"""The laws that every test of this folder may name."""

from __future__ import annotations

import pytest

import vegasmodel as vm
from vegasmodel import laws


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Each test begins without user-defined laws."""
    monkeypatch.setattr(laws, "_outside", {})
    monkeypatch.setattr(laws, "_files", {})

    @vm.register_law("own-reno")
    def reno(f):
        return 1.0

    @vm.register_law("own-vegas", decrease=0.75, delay_based=True)
    def vegas(f):
        if f.backlog < f.alpha:
            return 1.0
        return -1.0 if f.backlog > f.beta else 0.0
