"""Writes the state of senders and queue as an array of numbers, so that two states can be compared.

A search for periodic motion looks for a state that occurs a second time. The array contains
everything that determines the future of a simulation, with two exceptions:

- the state of RED and of random loss;
- the positions of trains. A train consists of the packets of one flow that travel close together
  (``trains.py``). Trains matter only while the windows do not fill the link.

If RED, random loss or trains matter in a scenario, random numbers decide which packets are lost. So
no state is expected to occur a second time.
"""

from __future__ import annotations

from vegasmodel.engines.fluid.sampled.records import FLOW, LinkState, Sender
from vegasmodel.engines.states import Kinds, Now, fields, memory, put, write
from vegasmodel.engines.tables import Table, jit
from vegasmodel.metrics import Floats

# the fields of a sender's record that ``_FIELDS`` leaves out, by the reason
PAST = ("lost", "rounds_at_rest", "timeouts")  # they do not affect the window
RED = (  # they matter under RED only
    "bunch", "bunch_left", "acks_left", "round_lasts", "hears_in", "burst_lost", "sent_since",
    "new_in_flight", "new_beyond", "new_at_end", "block", "block_began", "block_next", "block_size",
    "passed", "clean", "first_block", "lost_before", "lost_beyond", "from_begin", "run",
    "short_round",
)  # fmt: skip
SINCE = ("trips",)  # it follows from the time since the last loss
LAW = ("kept",)  # they matter if the flow's law keeps numbers
INSTANTS = ("timeout_ends", "last_loss")  # they are times; ``write_state`` writes them itself
TRAINS = (  # they say where the flows' trains are
    "arriving", "front", "end", "train", "train_rate", "phase",
)  # fmt: skip
WITHIN_A_STEP = (  # they get new values in each step
    "sent", "window_sent", "at_once", "extra", "extra_lost", "decided", "in_place", "early_ago",
    "freed", "freed_ago", "train_sent", "arrives", "resend_lost", "interval", "still",
    "growth_before", "delivery_rate",
)  # fmt: skip
_NAMES = list(FLOW.names or ())
# the fields of a sender's record that belong to the state, without those that come otherwise
_MOVING = tuple(
    name
    for name in _NAMES[_NAMES.index("active") :]
    if name not in (*PAST, *RED, *SINCE, *LAW, *INSTANTS, *TRAINS, *WITHIN_A_STEP)
)
# the tables of these fields, by which ``write_state`` writes a state
_FIELDS, _LAW = fields(FLOW, Kinds(plain=_MOVING)), fields(FLOW, Kinds(plain=LAW))
LOSSES = 2  # numbers of each flow that stand first: packets lost so far, and seconds since a loss
# numbers of each flow, at most: beside the fields the time to its timeout, and room for the link's
# delay, which is written once
SIZE = LOSSES + len(_MOVING) + len(_LAW) + 2


@jit
def write_state(out: Floats, flows: Table[Sender], state: Table[LinkState]) -> int:
    """Write the state of senders and queue into ``out``, as numbers; returns how many they are.

    ``steady.py`` compares such arrays to find a state that returns. First come the numbers of
    packets that the flows have lost, and then the times in seconds since their last losses.
    """
    # ``write`` converts none of these fields, so the last two numbers of ``now`` do not matter
    n, senders, now = 0, memory(flows), Now(state[0].time, 0.0, 1.0)
    for i in range(len(flows)):
        n = put(out, n, flows[i].lost)
    for i in range(len(flows)):
        n = put(out, n, now.time - flows[i].last_loss)
    for i in range(len(flows)):
        n = write(out, n, senders, i, _FIELDS, 0.0, now)
        if flows[i].keeps_numbers:
            n = write(out, n, senders, i, _LAW, 0.0, now)
        n = put(out, n, max(flows[i].timeout_ends - now.time, 0.0))
    return put(out, n, state[0].delay)
