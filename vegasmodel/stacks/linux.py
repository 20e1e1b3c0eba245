"""The Linux kernel: tcp_vegas divides by baseRTT and rounds down (``docs/linux.md``)."""

from vegasmodel.stacks.stack import Stack

LINUX = Stack(
    name="linux",
    below_alpha=0.0,  # tcp_vegas.c: diff = floor(W (RTT - base) / base)
    above_beta=1.0,
    limit_counts=0.0,
    doubling=1,
    least_window=2.0,
    alpha=2.0,
    beta=4.0,
    gamma=1.0,
    decrease=0.5,  # tcp_reno_ssthresh
)
