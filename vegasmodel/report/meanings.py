"""Explains the names and column headings that results and printed tables show.

``ASSUMPTIONS`` explains the names of assumptions, such as ``fifo-queue``. The result of a model or
of a measurement lists its assumptions by these names. ``COLUMNS`` explains some column headings of
printed tables, and some fields of the steady states that ``limit_cycle`` returns. ``WORDS``
explains the verdicts of the command ``paper``, the unit BDP, and two keys of scenario files. The
command ``explain`` and the page docs/reference/messages.md show these meanings.
"""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["ASSUMPTIONS", "COLUMNS", "WORDS"]

ASSUMPTIONS = MappingProxyType(
    {
        "alike-in-class": "the flows of each class of a Rate-Delay link have the same law, RTT, "
        "alpha and beta, so they divide the rate of their class equally",
        "all-flows-present": "no flow starts after the warm-up, and none stops early",
        "average-within-thresholds": "RED's average queue stays on one straight piece of the curve "
        "of RED's drop probability, for example between the two thresholds, while the window of a "
        "single flow rises and is cut. Otherwise the mean drop probability is not that of the mean "
        "queue",
        "backlogs-of-half-a-packet": "beta of each Vegas flow is at least half a packet: windows "
        "move by whole packets, so they cannot keep a smaller backlog. For a flow that is alone "
        "this does not matter, because it fills the link in any case",
        "base-rtt-above-propagation": "each Vegas flow's baseRTT is at least its RTT without "
        "queueing; ns-2's Vegas may measure a far too small baseRTT after a timeout",
        "base-rtt-is-the-rtt": "each Vegas flow's baseRTT is its RTT without queueing. "
        "`rate-delay` tests this for flows that start after another Vegas flow of their class, "
        "and count that flow's queueing delay as propagation delay. The assumption then fails if "
        "this changes some rate by more than 10 %, or if the model does not compute by how much",
        "base-rtt-measured": "each Vegas flow measures its baseRTT; the scenario does not give "
        "it (`over_estimate`)",
        "bottleneck-is-the-link": "access links are at least twice as fast as the bottleneck "
        "(`fluid`: 10 times, if several flows share a full drop-tail queue)",
        "buffer-holds-bursts": "the buffer holds the bursts in which packets are sent: it has room "
        "for 12 packets or more (`red` counts only the room beyond the mean queue)",
        "defaults-of-the-papers": "ns-2 has the default settings of 1999 to 2001, the years of "
        "most papers (`ns2_defaults`). If it has those of ns-2 2.35, the assumption fails only "
        "where they change the throughputs and the model leaves them out: for flows with ns-2's "
        "TCP whose law is not Vegas, and in closed forms also at links with RED or random loss",
        "delay-buffer-large-enough": "the low-delay queue D of a Rate-Delay router has room for "
        "all packets that its flows keep queued, and for a burst of 4 packets",
        "empty-buffer-after-loss": "the buffer runs empty after a loss",
        "enough-runs": "the mean over the runs is precise enough: the 95 % interval of each "
        "flow's mean throughput reaches at most 10 % of it to either side, or 1 % of the mean "
        "over all flows if that is more. It is not known whether this holds after a single run "
        "whose result depends on chance; the key `runs` of a scenario asks for more runs",
        "every-ack-arrives": "no ACK is lost",
        "fast-retransmit": "losses are recovered without a timeout (`fluid` tests this for random "
        "losses only)",
        "fifo-queue": "one first-in-first-out queue, so all flows see one queueing delay",
        "first-windows-fit": "the link and its buffer hold the initial windows of all flows",
        "given-base-rtt-stays": "Vegas keeps the baseRTT that the scenario gives "
        "(`over_estimate`). In ns-2 it does not: if it sends at most one packet in a round trip, "
        "it takes the RTT of this round trip, with all queueing, as its baseRTT",
        "infinite-buffer": "the buffer has room for all packets that the flows keep queued",
        "insensitive-to-starts": "the predicted throughputs hardly depend on start times and "
        "random waits: no flow's throughput has a standard deviation above 10 % of its mean over "
        "the runs. It is not known whether this holds after a single run. It is not known either "
        "if the runs agree, but all have the same start times, because `start_jitter` is 0. If "
        "nothing is random, `rounds` tries four other starts if the file has estimates "
        "(`estimated_from`) and phase effects are possible (`phase-effects`): a small error of an "
        "estimate has the same effect as another start. The command `basins` counts which "
        "outcomes many starts lead to",
        "large-bandwidth-delay": "the bandwidth-delay product exceeds the buffer",
        "long-lived-flows": "every flow has data to send until the end of the run",
        "losses-are-random-only": "the buffer never overflows",
        "losses-end-growth": "each loss-based window meets a limit, or losses that reduce it, so "
        "it does not grow for ever",
        "many-packets-queued": "a slightly shorter queue would hardly change the rates. A Vegas "
        "flow that starts late takes the least queueing delay that it finds for propagation "
        "delay. So the model computes the rates again for a queue that is shorter when such a "
        "flow starts: by one packet, or by a few (`fluid` beside loss-based flows takes other "
        "queues). The assumption fails if a rate then differs by more than 10 % of the mean rate. "
        "The section *The test of many-packets-queued* in docs/reference/messages.md has the "
        "details",
        "mean-field": "only one flow uses the link. With several flows, the model is an "
        "approximation (mean field): each flow finds a queue of constant length, the mean queue "
        "of the others, and their bursts are left out",
        "narrow-band": "the flows keep nearly equal backlogs (tested only if all flows are Vegas "
        "flows). It fails if the largest backlog at which a window stays constant is at least "
        "twice the smallest. It counts as true if all RTTs are equal and `start_jitter` is above "
        "0: the start times then decide which backlogs the flows keep, and each run has other "
        "start times, so `insensitive-to-starts` is tested instead. With the variant `paper` at a "
        "drop-tail link without random loss, the assumption can fail only if flows start at the "
        "same time: the order of their first packets, which the model does not know, then decides "
        "which backlogs they keep",
        "no-delay-noise": "propagation delays are constant",
        "no-forced-drops": "no packet is dropped on purpose",
        "no-queueing-of-acks": "ACKs meet no queue",
        "no-random-loss": "packets are lost at a full buffer only",
        "nobody-starves": "every flow gets at least a hundredth of the mean throughput",
        "one-ack-a-packet": "every packet is acknowledged by itself",
        "one-arrival-at-a-time": "no two flows start at the same time",
        "one-cycle": "the flows have only one steady cycle, not also a second one in which Vegas "
        "loses no packets",
        "one-source-of-each-kind": "one Vegas and one loss-based flow",
        "only-growing-windows-lose": "only flows whose windows grow lose packets when the buffer "
        "overflows, as `minicycle` assumes for ns-2's and Linux's Vegas; not known if senders wait "
        "at random (`send_jitter`), propagation delays vary (`delay_noise`), ACKs of Vegas are "
        "delayed, or access links are slower than the default",
        "own-law-grows": "the window of a user-defined law grows beyond one packet",
        "own-law-grows-slowly": "the window of a user-defined law grows by at most 3 packets or a "
        "tenth of itself in a round trip",
        "own-law-repairs": "flows with a user-defined law lose at most a tenth of their packets",
        "own-law-returns-change": "in a round trip the window of a user-defined law grows by at "
        "most 3 packets or three quarters of itself; if it grows by more, the function may have "
        "returned the new window by mistake",
        "own-law-swings-little": "a user-defined law does not move the window up and down in turn "
        "by more than a tenth of itself in a round trip, or beside Vegas by more than beta packets",
        "packets-one-by-one": "near losses the simulator handles each packet by itself, not groups "
        "of packets",
        "packets-spread-evenly": "packets do not arrive in bunches, which would decide who loses "
        "packets at a full buffer. It fails if the flows that lose packets there have different "
        "RTTs, or if one of them is delay-based and not all flows have the same RTT",
        "paper-equation": "Vegas computes its backlog as W (RTT - baseRTT)/RTT, as in the "
        "papers and ns-2; Linux divides by baseRTT instead",
        "proper-marking": "loss-based flows are in class R of the Rate-Delay router, and "
        "Vegas flows in class D",
        "quasi-static": "earlier flows can shrink their windows as fast as the window of a "
        "new flow grows",
        "queue-empties-at-start": "each of several flows that start together finds none of "
        "the others' packets in the queue at some time, so each measures the propagation delay",
        "rates-fill-the-link": "the predicted rates add up to the capacity; those of "
        "`arrivals-bonald` seldom do",
        "receiver-window": "no window in the computed cycle exceeds the receiver's limit, "
        "`max_window`",
        "recovery-as-taken": "every law recovers from a loss in the way that the model assumes; "
        "if not, a message names both ways, and the predicted rates may be wrong; `rounds` "
        "simulates each law's own recovery",
        "settles-in-time": "windows reach the steady state within the warm-up; if not, averages "
        "may still change if the run goes on; a longer `warmup` and `duration` help",
        "sends-after-warm-up": "every flow sends after the warm-up; a flow that has stopped "
        "before, or has sent all its data, has no throughput",
        "short-ack-pauses": "the time for which a receiver delays an ACK is shorter than the time "
        "between two losses of the flow",
        "short-waits": "random waits of senders (`send_jitter`) are short. Two things are tested. "
        "In a mean wait of a Vegas sender, at most alpha packets collect, which then leave in one "
        "burst (`random-loss` tests this for the longest wait; `minicycle` does not test it). And "
        "no wait is longer than a tenth of the RTT (`random-loss`, and closed forms for Vegas "
        "alone, do not test this). Waits of at most the default are short",
        "single-threshold": "Vegas keeps its window at one backlog only; if it does so over a "
        "range of backlogs, the model takes the middle of the range (`minicycle` tests whether "
        "alpha = beta, but its equations do not need this)",
        "stable-queue": "the equilibrium is stable under feedback delay: no small oscillation of "
        "the queue grows",
        "steady-queue": "RED's drop probability does not jump at the mean queue that the "
        "model finds",
        "synchronised-losses": "both flows lose packets when the buffer overflows, as the paper "
        '`devendictis` assumes; `minicycle` assumes this only for `variant = "paper"`',
        "thresholds-reached": "beside loss-based flows, the backlog of a Vegas flow reaches alpha "
        "or beta as the queue rises and falls; if it does not, the window stays where slow start "
        "or a rare loss has left it, and chance decides the rates; in `fluid` the assumption also "
        "fails if the thresholds keep two windows of which one is half of the other; with "
        "`delay_noise` such a failure is not certain, because the noise may move the backlog to a "
        "threshold",
        "vegas-acks-undelayed": "at equal RTTs, no Vegas flow with delayed ACKs shares a full "
        "queue with a loss-based flow without delayed ACKs",
        "vegas-acts-in-time": "beside loss-based flows, Vegas can react before the buffer "
        "overflows: for each flow there is room for 4 packets in the buffer",
        "windows-above-three": "windows are larger than 3 packets, so a loss brings three "
        "duplicate ACKs",
        "windows-fill-the-link": "loss-based windows fill the link most of the time; `rate-delay` "
        "tests whether the windows of class R fill the part of the link that this class gets",
        "window-not-limited": "no flow has a receiver's limit, `max_window`; the model leaves "
        "such limits out",
        "whole-laws": "the model includes every mechanism of the flows' laws; if not, a message "
        "names what is missing, and CUBIC flows may get another throughput: `fluid` lacks the "
        "HyStart of Linux's CUBIC, and CUBIC's formulas assume `decrease = 0.7`. Then use "
        "`rounds` with the variant `linux` or `ns2`: it computes CUBIC as their code does",
        "whole-thresholds": "alpha and beta are whole numbers in ns-2 and Linux, whose Vegas "
        "counts the backlog in whole packets",
        "whole-stack": "the model includes every mechanism of the flows' TCP implementation; if "
        "not, a message names what is missing, for example Linux's timers, and throughputs with "
        "losses may be wrong; `rounds` has these mechanisms",
        "same-vegas": "the model and the measurement have the same "
        "variant of Vegas (paper, ns-2, Linux)",
        "same-starts": "flows start in the model when they start in the trace (`start`)",
        "same-stops": "flows stop in the model when they stop in the trace (`stop`). What the "
        "trace has of a flow after its `stop` is left out of the averages. If a flow stops earlier "
        "in the trace, its average includes the time in which it sends nothing",
        "same-delayed-acks": "receivers delay their ACKs in the model as they do in the trace "
        "(`delayed_ack`)",
        "same-jitter": "before they send, senders wait for as long in the model as in the "
        "measurement (`send_jitter`). Waits may change which flow loses packets at a full queue. "
        "A trace seldom tells how long its senders waited; if you do not know it either, predict "
        'with `send_jitter = "0 s"`, too: if the throughputs stay the same, the waits do not '
        "matter",
        "phase-effects": "the throughputs are about the same whether or not senders wait before "
        "they send (`send_jitter`): no flow's throughput differs by more than 10 % of the mean "
        "throughput. Phase effects are the cause of such a difference: if senders never wait, "
        "packets of several flows may reach the full queue in the same order again and again. "
        "Then it is always the same flow that loses, and the throughputs depend on tiny "
        "differences of the RTTs. If a difference may be due to chance, it is not known whether "
        "the assumption holds; more in docs/scenario.md, What `send_jitter` does",
        "estimated-parameters": "no value of the scenario file is missing, an estimate "
        "(`estimated_from`) or a guess (`guesses`). Otherwise it is not known how much of a "
        "model's error comes from wrong values. Write the values that you know into the file, and "
        "delete their names from `guesses`",
        "fixed-starts": "start times are not random (`start_jitter` is 0), or they do not matter, "
        "because there is one flow or no flow measures its baseRTT",
        "flow-pairing": "it is certain which flow of the trace is which flow "
        "of the scenario; otherwise they were paired by their order",
        "congestion-control": "the flows of the trace ran the laws that the file states",
        "no-other-flows": "no other flows use the link: the scenario's flows deliver more than "
        "99.9 % of the trace's packets",
        "no-idle-flows": "every flow of the trace has data to send nearly all the time, unless the "
        "scenario says that it has not",
        "one-queue": "the RTTs of all flows rise and fall together, as those of flows that share a "
        "queue do",
        "warm-up-left-out": "the measured averages leave out the warm-up, as the models' do",
        "known-throughput": "the trace tells the throughput of every flow for at least 90 % of the "
        "time measured; the averages leave out the rest, and if a throughput is unknown "
        "throughout, shares, Jain's index and the throughput error are unknown, too",
        "whole-run": "the trace covers at least 90 % of the time from the warm-up to the end of "
        "the run; the measured averages leave out the rest",
        "packet-size": "packets in the trace have the size that the file states; with another size "
        "a capacity in bit/s is another number of packets per second",
        "stored-runs-intact": "no stored run is damaged",
        "one-stored-trace": "exactly one stored trace is of this scenario",
        "ns2-buffer": "as many packets can wait as `buffer` says; ns-2's drop-tail limit also "
        "counts the packet in transmission, so one packet fewer can wait",
        "ns2-passes-packets": "the buffer is large enough for ns-2 to let packets through: at "
        "least 2 packets, or 1 with RED; with less, ns-2 drops every packet, even if the link is "
        "idle",
        "ns2-headers": "packets have the size that the file states; stock ns-2.35 adds headers",
        "ns2-rate-delay": "the router is that of the paper `podlesny`; in ns-2, class-based "
        "queueing takes its place",
        "ns2-slow-start": "Vegas begins in slow start; in ns-2 a Vegas flow with a known baseRTT "
        "begins with a window of 2 instead, without slow start",
        "ns2-initial-window": "Vegas begins with its `initial_window`; in ns-2.35 its window has "
        "this size only from the ACK of its second packet on",
        "ns2-placement": "random noise of the delay (`delay_noise`) is added where the scenario's "
        "path has it; in ns-2 it is added before the first link",
        "ns3-packets": "ACKs have the scenario's `ack_size`, and connections need no SYN; in ns-3 "
        "ACKs have a size of their own, and a connection begins with a SYN",
        "ns3-vegas": "Vegas changes its window as in the papers; ns-3's Vegas has its own rules",
        "ns3-cubic": "CUBIC is that of RFC 9438; ns-3's has a HyStart "
        "of its own and may lack the Reno-friendly region",
        "ns3-recovery": "each law recovers from losses in its own way; in ns-3 every law recovers "
        "by SACK",
        "ns3-red": "RED counts every packet that waits; in ns-3 it leaves out the packet in the "
        "device of the link",
        "captured-at-the-sender": "the capture was made at the sender, so "
        "what was in flight is known",
        "every-frame-captured": "the capture contains all data that was acknowledged; data that it "
        "lacks counts as delivered, and so does a jump of the sequence numbers if ports were used "
        "again and the capture lacks the FIN and the SYN",
        "every-event": "the kernel's event log lost no event",
        "data-captured": "the capture holds the data of every flow whose ACKs it holds",
        "whole-file": "the file is complete: a capture ends with a whole frame, a table with a "
        "whole row, a trace of ns-2 or ns-3 with a whole line",
        "whole-headers": "frames hold their whole TCP header",
        "whole-rtt": "the whole RTT can be measured at the place of the capture",
        "steady-clock": "the capture's clock never went back",
        "retransmissions-told-from-copies": "of a packet that was captured twice or late, it is "
        "known whether the sender sent it again; IPv4 identifiers that count, or TCP timestamps, "
        "usually tell this",
        "acknowledgements-seen": "ACKs pass the place at which the capture was made, so the "
        "capture has them",
        "bytes-arrived": "bytes are counted where they arrive, at the receiver, not where the "
        "sender's kernel takes them",
        "known-columns": "every column of a CSV table is known; an unknown one is not read",
        "known-packet-size": "the trace tells how large packets are",
        "one-packet-size": "a flow's packets have one size",
        "same-ends": "all flows go on until the last of them ends; if not, a scenario needs the "
        "`stop` of the others, which `new --from-trace` writes",
        "usual-units": "RTTs, windows and throughputs have plausible values, and bytes count from "
        "a flow's start; so their units are probably those assumed",
    }
)
COLUMNS = MappingProxyType(
    {
        "pkt/s": "packets that a flow delivers per second, each counted once, averaged over the "
        "time in which it is active; for a group, the mean over its flows",
        "mean pkt/s": "the column `pkt/s` of a group of several flows: the mean over its flows",
        "Mbit/s": "bits that all flows of a group deliver per second, headers included, averaged "
        "from warm-up to end",
        "load": "the part of the link's capacity that the delivered packets of the forward flows "
        "use; retransmissions and ACKs do not count; if there are several links, a table of its "
        "own has their loads; in the table of laws, the part that the flows of a law use",
        "Jain": "Jain's fairness index over the flows: 1 if all get "
        "the same, 1/n if one of n gets all",
        "share": "the group's part of all bits delivered from warm-up to end; in the table of "
        "laws, the part of all flows of a law",
        "±": "the standard error of the mean over the runs, which may be too small by chance if "
        "there are few runs; for a group, the standard error of the mean over its flows and runs, "
        "which does not tell how the flows differ",
        "ratio": "the mean throughput of the flows of one group, divided by that of the flows of "
        "another group",
        "sd": "in the output of `--uncertain`: the standard deviation of a ratio of throughputs "
        "that the errors of the fields cause, to first order in these errors; the model's own "
        "error is not included",
        "sd, %": "in the output of `--uncertain`: the column `sd` in percent of the ratio",
        "throughput NRMSE": "root mean square error of the flows' throughputs, divided by their "
        "mean measured throughput",
        "ln ratio error": "ln(model / measured) of the throughput ratio a/b of two groups a and b, "
        "for the two groups with the largest error; if it is above 0, group a gets too much in the "
        "model",
        "baseRTT error": "the root mean square error of baseRTT over the Vegas flows; ns-2, ns-3 "
        "and captures do not tell Vegas's own baseRTT, so the least RTT of each flow is taken "
        "instead",
        "pkt/ACK": "of `inspect`: packets that an ACK acknowledges, the median over a flow's "
        "packets; 2 if the receiver delays its ACKs (`delayed_ack`)",
        "baseRTT": "the RTT without queueing that a Vegas flow assumes: the least that it has "
        "measured, unless `over_estimate` states another; ns-2, ns-3 and captures do not tell it, "
        "so the least RTT of the flow is taken instead; of `inspect`: the last one that the trace "
        "tells",
        "RTT": "the flow's mean round-trip time, queueing included",
        "loss": "dropped data packets, divided by the data packets sent; if a trace does not "
        "record drops, retransmissions count instead",
        "ACKs": "the number of packets acknowledged from warm-up to end, the mean over the runs",
        "rexmit": "the number of packets that the flow sent again; in a table of several runs, the "
        "mean over them",
        "delivered": "of `inspect`: the number of packets that reached the receiver, each counted "
        "once",
        "lost": "of `inspect`: the number of packets of the flow that were dropped",
        "control": "of `inspect`: the congestion control that the trace names for the flow, such "
        "as cubic",
        "first": "of `inspect`: the time of the flow's first packet in the trace",
        "last": "of `inspect`: the time of the flow's last packet in the trace",
        "range": "the lowest and the highest throughput of the flow, in packets per second, if the "
        "model gives a set of equilibria (`bands`)",
        "queue pkt": "the mean number of packets that wait at the link",
        "queueing delay": "the mean time that a packet waits at the link: the mean queue divided "
        "by the capacity",
        "status": "of `sweep`, in JSON, in its folder and in its table: `done`, or why a point has "
        "no throughputs: `no answer` (the model cannot compute the point), `values not allowed "
        "together` or `run failed`; of `design`: whether it found `one` value, `several` or "
        "`none`; of `equilibrium` and `arrivals`: whether the solver converged",
        "reason": "in JSON, and in the folder and the table of `sweep`: why there is no result; "
        "null or empty if there is one",
        "least RTT": "of `inspect`: the smallest round-trip time of the flow in the trace",
        "packet B": "of `inspect`: the size of the flow's data packets in bytes, headers included",
        "broken": "of `sweep`: letters of the assumptions that do not hold at the point; the lines "
        "below the table say which letter stands for which assumption",
        "uncertainty": "of `sweep`: the largest relative uncertainty of any flow's throughput, "
        "which is half the width of its 95 % interval, divided by its mean; the divisor is at "
        "least a tenth of the mean throughput of all flows",
        "window": "packets that a sender may have in flight; `rounds` includes what fast recovery "
        "without SACK adds until the lost packets are repaired, one packet per duplicate ACK",
        "overflows": "of a steady state (`limit_cycle`), in one period: by the continuous form of "
        "`fluid` (variant `paper` at a drop-tail queue without random loss), how often the buffer "
        "overflows; by the sampled form of `fluid` and by `rounds`, how often a window falls",
        "losses": "of a steady state (`limit_cycle`), in one period: by `fluid`, how often a loss "
        "cuts each flow's window; by `rounds`, how many packets each flow loses",
        "spread": "of a steady state (`limit_cycle`): the standard error of each flow's "
        "throughput, in packets per second; 0 if a fixed point or a periodic motion was found. It "
        "follows from the differences between parts of the run and, if the motion is random, from "
        "those between equal flows. It is too small if rates change more slowly than the run lasts "
        "and no equal flows show it",
        "multipliers": "of a steady state (`limit_cycle`): the Floquet multipliers, by which small "
        "disturbances of the windows change in one period (at a fixed point, in the longest round "
        "trip). The state is stable if all their moduli are below 1. Empty if they were not "
        "computed; NaN (JSON: null) if an upward and a downward disturbance have different effects",
        "residual": "of a steady state (`limit_cycle`): by how many packets a window or a queue "
        "still changes at most from one period to the next (at a fixed point, a window in one "
        "round trip); 0 if the motion repeats itself exactly",
        "hint": "of a steady state (`limit_cycle`): how a periodic motion may be found, if neither "
        "a fixed point nor a periodic motion was found. It is empty if one was found, or if chance "
        "keeps the motion from repeating",
    }
)
WORDS = MappingProxyType(
    {
        "reproduced": "a verdict of the command `paper`: the printed value and ours differ by at "
        "most the tolerance; ours comes from a derivation, a model or a packet simulation",
        "consistent": "a verdict of the command `paper`: the printed value and ours differ by at "
        "most the tolerance; ours is only arithmetic on other numbers that the paper prints",
        "erratum": "a verdict of the command `paper`: the printed value or formula is wrong; a "
        "derivation gives the right one, or shows that the printed one is impossible",
        "discrepant": "a verdict of the command `paper`: the printed value differs from ours, and "
        "the evidence shows that the printed one is wrong",
        "blocked": "a verdict of the command `paper`: it cannot be decided whether the printed "
        "value is right; the record's note says what is missing",
        "BDP": "the bandwidth-delay product, a unit of `buffer`: the link's capacity times the "
        "mean RTT (without queueing) of all flows that cross it, in packets",
        "guesses": "the keys of a scenario file whose values are guesses; `new --from-trace` "
        "writes this list, and `compare` prints it",
        "estimated_from": "the trace from which the values of a scenario file were estimated; `new "
        "--from-trace` writes this key, and `compare` names the trace",
    }
)
