"""Describes the TCP of the papers: after slow start its Vegas does not round the backlog.

The papers are those on which this package is based, such as Boutremans and Le Boudec (2000). They
do not describe timers and loss recovery, so this TCP has the timers and the loss recovery of ns-2.
Where the papers describe a mechanism and ns-2 differs from them, this TCP follows the papers.
``Stack`` (``stack.py``) says what each field means. A comment such as "boutremans (1)" names a
paper, by its first author, and the number of an equation in it.
"""

from dataclasses import replace

from vegasmodel.stacks.ns2 import NS2

PAPER = replace(
    NS2,
    name="paper",
    laws=("vegas",),
    below_alpha=0.0,  # boutremans (1)
    above_beta=0.0,
    upper_edge_rests=True,
    doubling=2,  # devendictis (2)
    decrease=0.75,  # devendictis, section 2
    least_window=1.0,
    real_numbers=True,
    bictcp=False,  # CUBIC is that of RFC 9438
    halves_in_slow_start=False,  # every loss has the law's factor
    plain_sums=False,
    resets_base=False,  # baseRTT is the least RTT sample
    untimed_first=False,
    stale_ring=False,
    probes_base=False,
    receiver_ssthresh=False,
    own_packets=(),
    limit_counts=0.0,
    marks_up_to=float("inf"),
    scheduled_ties=False,
)
