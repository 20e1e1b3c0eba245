"""Describes the TCP of ns-2: Vegas rounds its backlog to whole packets, and timers are coarse.

``NS2`` has the default parameters that ns-2 had from 1999 to 2001, when most papers on which this
package is based were written. ``NS2_2_35`` has those of its last release, 2.35. ``docs/ns2.md``
describes both, and ``stack.py`` says what each field means. The comment beside a field names what
it follows in ns-2: a source file, a function, a variable or a line of code.
"""

from dataclasses import replace

from vegasmodel.stacks.stack import Stack

NS2 = Stack(
    name="ns2",
    below_alpha=0.5,  # tcp-vegas.cc: delta = int(diff + 0.5)
    above_beta=0.5,
    doubling=2,
    alpha=1.0,
    beta=3.0,
    gamma=1.0,
    decrease=0.75,
    least_window=2.0,
    plain_sums=True,  # tcp-vegas.cc: cwnd_ += v_incr_
    resets_base=True,  # tcp-vegas.cc: rtt < v_baseRTT_ || rttLen <= 1
    untimed_first=True,  # sent at 0 s of Vegas's clock, and 0 stands for "not sent"
    stale_ring=True,  # tcp-vegas.cc: v_sendtime_, v_transmits_; k <= seqno % v_maxwnd_
    probes_base=True,  # our scripts send probes; the timer expires in the pause after them
    overdue_checks=True,  # tcp-vegas.cc: vegastimeout_
    bictcp=True,  # tcp-linux.cc, with the tcp_cubic.c of Linux 2.6
    reno_windows=23.0 / 8.0,  # beta_scale, which ns-2 computes once, from a beta of 819/1024
    packets_per_ack=31.0 / 16.0,  # ca->delayed_ack falls from 32 to 31 and stays: 31 >> 4 is 1
    least_cnt=1.0,
    cnt_before_loss=50.0,  # bictcp_update: loss_cwnd == 0, after the start and after a timeout
    cnt_once_a_tick=False,  # bictcp_update: last_cwnd == cwnd
    acks_before_growth=True,  # bictcp_cong_avoid: snd_cwnd_cnt++
    passes_ssthresh=True,  # bictcp_cong_avoid: snd_cwnd <= snd_ssthresh
    cubic_tick=0.001,  # JIFFY_RATIO
    cubic_agent=(
        ("tick", 0.001),  # tcp-linux.cc: tcp_tick_ = 1.0/JIFFY_RATIO
        ("clock_from_zero", True),  # tcp-linux.cc: tcp_time_stamp
        ("counts_places", True),  # scoreboard1.cc: lost_seq_threshold
        ("dup_thresh", 4.0),  # scoreboard1.cc: fack_ - (dupack_threshold + 1)
        ("grows_when_full", True),  # tcp_cubic.c: tcp_is_cwnd_limited
        ("halves_rate", True),  # tcp-linux.cc: next_pkts_in_flight_
        ("clears_scoreboard", True),  # tcp-linux.cc: ClearScoreBoard
        ("keeps_scoreboard", True),  # tcp-linux.cc: enter_loss, MarkLoss
        ("least_after_loss", 2.0),  # tcp_cubic.c: bictcp_recalc_ssthresh
        ("finds_lost_again", True),  # scoreboard1.cc: GetSndNxt() <= fack_
        ("every_ack_restarts", True),  # tcp-linux.cc: time_processing
        ("floor_before_backoff", True),  # ns-default.tcl: Agent/TCP/Linux set rfc2988_
        ("estimates_first", True),  # timerfix_
        ("first_rto", 3.0),  # ns-default.tcl: Agent/TCP/Linux set rtxcur_init_
        ("longest_rto", 120.0),  # maxrto_
        ("fractional_cut", False),  # its windows are whole numbers, whatever precisionReduce_ is
    ),
    receiver_ssthresh=True,  # tcp.cc: initial_window, wnd_init_option_
    own_packets=("vegas",),  # tcp-vegas.cc has an output() of its own
    swells_uncut=True,  # tcp-reno.cc, tcp-newreno.cc: dupwnd_ = numdupacks_
    must_pass_recover=True,  # tcp.cc: last_ack_ > recover_ (RFC 6582 3.2, step 2)
    sack_exit_rests=True,  # tcp-sack1.cc
    halves_in_slow_start=True,  # tcp.cc: slowdown, "decrease by half even for non-standard values"
    partial_in_pipe=2.0,  # tcp-sack1.cc: pipe_ -= 2 at a partial ACK
    idle_timer=True,  # tcp.cc: newtimer, slow_start_restart_
    tick=0.1,  # tcpTick_
    first_rto=6.0,  # rtxcur_init_ of 1999
    longest_rto=64.0,
    ack_pause=0.1,  # interval_ of Agent/TCPSink/DelAck
    delays_duplicates=True,  # tcp-sink.cc, DelAckSink::recv: seqno == Seqno()
    quick_acks=1.0,  # tcp-sink.cc: SYN_immediate_ack_; packet 0 has data here
    lost_syn_resets=True,  # bugfix_ss_
    limit_counts=1.0,  # drop-tail.cc refuses a packet that would bring the queue to its limit
    marks_up_to=0.1,  # red.cc: mark_p_
    class_based_queueing=True,  # packets/ns2.tcl: cbq.cc
    scheduled_ties=True,  # its scheduler runs events of one time in the order of scheduling
)
NS2_2_35 = replace(
    NS2,
    first_window=2.0,  # windowInit_
    second_packet_first=True,  # delay_growth_
    header=40.0,  # bytes; useHeaders_, tcpip_base_hdr_size_
    limited_transmit=True,  # singledup_, RFC 3042
    fractional_cut=True,  # precisionReduce_
    swells_uncut=False,
    partial_deflates=True,  # newreno_changes1_, partial_window_deflation_: RFC 2582
    tick=0.01,  # tcpTick_ since 2002
    first_rto=3.0,  # rtxcur_init_ since 2006
    longest_rto=60.0,  # maxrto_ since 2007
    floor_before_backoff=True,  # rfc2988_, minrto_
    estimates_first=True,  # timerfix_
    handshake=True,  # packet 0 is a SYN, without data
    quick_acks=0.0,
)
