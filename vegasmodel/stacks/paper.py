"""The law as the papers print it: no rounding, no timers."""

from vegasmodel.stacks.stack import Stack

PAPER = Stack(
    name="paper",
    below_alpha=0.0,  # boutremans (1)
    above_beta=0.0,
    limit_counts=0.0,
    doubling=2,  # devendictis (2)
    least_window=1.0,
    alpha=1.0,
    beta=3.0,
    gamma=1.0,
    decrease=0.75,  # devendictis, section 2
)
