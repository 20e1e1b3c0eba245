"""The record of a single sender in ``rounds``, for tests of one of its mechanisms."""

import numpy as np

from vegasmodel import stacks
from vegasmodel.engines.rounds.flows import mechanisms
from vegasmodel.engines.rounds.state import FLOW
from vegasmodel.laws import find


def sender(law: str, variant: stacks.Variant, defaults: str = "papers", **given: float) -> np.void:
    """The record of a flow, with ``given`` values; all other values are 0."""
    record = np.zeros(1, FLOW)
    mechanisms(find(law), stacks.find(variant, defaults), record)
    for name, value in given.items():
        record[name] = value
    return record[0]
