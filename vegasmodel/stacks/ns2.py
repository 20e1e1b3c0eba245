"""ns-2: its agents count whole packets, and its clock ticks (``docs/ns2.md``)."""

from vegasmodel.stacks.stack import Stack

NS2 = Stack(
    name="ns2",
    below_alpha=0.5,  # tcp-vegas.cc: delta = int(diff + 0.5)
    above_beta=0.5,
    limit_counts=1.0,  # drop-tail.cc refuses a packet that would bring the queue to its limit
    doubling=2,
    least_window=2.0,
    alpha=1.0,
    beta=3.0,
    gamma=1.0,
    decrease=0.75,
)
