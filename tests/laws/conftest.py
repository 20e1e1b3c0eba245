"""The laws that every test of this folder may name."""

import pytest

import vegasmodel as vm


@pytest.fixture(autouse=True)
def _registered(no_own_laws):
    @vm.register_law("own-reno")
    def reno(f):
        return 1.0

    @vm.register_law("own-vegas", decrease=0.75, delay_based=True)
    def vegas(f):
        if f.backlog < f.alpha:
            return 1.0
        return -1.0 if f.backlog > f.beta else 0.0
