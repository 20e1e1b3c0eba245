"""Describes how the TCP of the Linux kernel differs from the one in papers and RFCs.

Windows are whole packets. Every flow has SACK, RACK and proportional rate reduction.
``docs/linux.md`` describes all differences, and ``stack.py`` says what each field means. The
comment beside a field names what it follows: an RFC, or a function, variable or setting of the
kernel.
"""

from vegasmodel.stacks.stack import Stack

LINUX = Stack(
    name="linux",
    below_alpha=0.0,  # tcp_vegas.c: diff = floor(W (RTT - base) / base)
    above_beta=1.0,
    shared_thresholds=True,  # tcp_vegas.c: module_param(alpha, int, 0644)
    backlog_over_base=True,
    doubling=1,
    alpha=2.0,
    beta=4.0,
    gamma=1.0,
    decrease=0.5,  # tcp_reno_ssthresh
    least_window=2.0,
    whole_window=True,  # snd_cwnd; tcp_cong_avoid_ai counts in snd_cwnd_cnt
    decides_late=True,  # tcp_vegas.c: pkts_acked comes before cong_avoid
    least_of_round=True,  # tcp_vegas.c: minRTT
    restarts_rounds=True,  # tcp_vegas_state, tcp_vegas_cwnd_event
    bictcp=True,  # tcp_cubic.c: bictcp_update
    hystart=True,  # hystart_update
    first_window=10.0,  # RFC 6928
    always_sack=True,  # net.ipv4.tcp_sack
    finds_lost_again=True,  # tcp_rack_detect_loss
    rack=True,  # RFC 8985, tcp_recovery.c
    paced_recovery=True,  # RFC 6937, tcp_cwnd_reduction
    limited_transmit=True,  # RFC 3042
    least_after_loss=2.0,  # tcp_reno_ssthresh
    one_cut_in_loss=True,  # tcp_enter_loss
    timestamps=True,  # tcp_ack_update_rtt
    first_deviation=0.5,  # tcp_rtt_estimator: mdev_us = rtt/2
    longest_rto=120.0,  # TCP_RTO_MAX
    timer_wheel=True,
    tail_probe=True,  # tcp_schedule_loss_probe
    ack_pause=0.04,  # TCP_ATO_MIN
    adapts_ack_pause=True,  # tcp_event_data_recv, tcp_delack_timer_handler
    late_duplicates=0.001,  # tcp_comp_sack_delay_ns
    counts_packets=True,  # tcp_slow_start, tcp_cong_avoid_ai
    waits_in_queue=True,  # netem at the sender (docs/linux.md)
    quick_acks=16.0,  # TCP_MAX_QUICKACKS
    handshake=True,
    syn_is_ack=True,
    third_ack=True,
    bursts_at_once=True,  # the stored runs have no access links
    stamps_departure=True,  # without access links a burst enters the queue at its time stamp
    random_ties=True,  # a few instructions decide which timer runs first
)
