"""Sets the parameters of ns-2 to its defaults of 1999 to 2001, or of its last release, 2.35.

Most papers whose results this package checks were written at about the time of the older defaults,
and probably used them. Later versions of ns-2 changed the default values of many parameters;
release 2.35 appeared in 2011. A single wrong default can change a throughput a lot. For example,
the parameter useHeaders_ adds header bytes to the packets of Reno but not of Vegas. ``docs/ns2.md``
has measured changes.

The list ``_PAPERS`` holds the old values. Each entry says when ns-2 changed the default. These
dates come from comments in ``ns-default.tcl``, ns-2's own file of defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["SETS", "UNSPACED", "Setting"]


class Setting(NamedTuple):
    """The value that vegasmodel gives to the parameter ``variable`` of an ns-2 class, and why.

    ``why`` says what the value does. In parentheses it says when ns-2 changed the default, and
    often to which value.
    """

    cls: str
    variable: str
    value: str
    why: str


_TCP = "Agent/TCP"
_NEWRENO = "Agent/TCP/Newreno"

_PAPERS = (
    Setting(_TCP, "useHeaders_", "false", "packetSize_ is the whole packet (true since 2001-11)"),
    Setting(_TCP, "syn_", "false", "no SYN; the first packet carries data (true since 2001-05)"),
    Setting(_TCP, "delay_growth_", "false", "the window grows from the first ACK on (2001-05)"),
    Setting(_TCP, "windowInit_", "1", "slow start begins at 1 packet (2 since 2001-05)"),
    Setting(_TCP, "tcpTick_", "0.1", "clock of the coarse timer, s (0.01 since 2002-03)"),
    Setting(_TCP, "minrto_", "0", "no floor under the timeout but two ticks (0.2 s since 2004)"),
    Setting(_TCP, "maxrto_", "64", "s (60 since 2007-03)"),
    Setting(_TCP, "rfc2988_", "false", "timeout from Jacobson's rule (RFC 2988 since 2002-03)"),
    Setting(_TCP, "rtxcur_init_", "6.0", "first timeout, s (3 since 2006-01)"),
    Setting(_TCP, "singledup_", "0", "no limited transmit on duplicate ACKs (1 since 2001-11)"),
    Setting(_TCP, "updated_rttvar_", "false", "old rounding of the RTT's deviation (2006-01)"),
    Setting(_TCP, "timerfix_", "false", "old reset of the retransmit timer (2001-05)"),
    Setting(_TCP, "exitFastRetrans_", "false", "SACK stays in fast retransmit (2003-07)"),
    Setting(_TCP, "bugfix_ss_", "0", "old slow-start threshold on timeout (2006-06)"),
    Setting(_TCP, "precisionReduce_", "false", "window increments are not rounded (2006-01)"),
    Setting(_NEWRENO, "newreno_changes1_", "0", "timer restarts on every partial ACK (2002)"),
    Setting(_NEWRENO, "partial_window_deflation_", "0", "no deflation on a partial ACK (2002)"),
)

# ``UNSPACED`` sets the parameter wait_ of ns-2's RED to false. RED computes a probability p from
# its average queue. If wait_ is true, the default of ns-2, there are 1/p to 2/p packets from one
# random drop to the next. If wait_ is false, there are at most 1/p packets, and RED may drop two
# packets in a row. The RED that Floyd and Jacobson published in 1993 behaves as with wait_ false.
UNSPACED = Setting(
    "Queue/RED", "wait_", "false", "drops by p/(1 - count p) from the first packet on"
)

# Each set in ``SETS`` lists the parameters to which vegasmodel gives other values than the defaults
# of ns-2 2.35. The set "papers" lists the older defaults above. The set "2.35" is empty, so all
# parameters keep the defaults of ns-2 2.35. By these defaults loss-based flows differ from Vegas in
# two ways: their data packets have packetSize_ bytes plus 40 bytes of headers, and their
# connections begin with a SYN. The data packets of Vegas have only packetSize_ bytes, and its
# connections have no SYN.
SETS: Mapping[str, tuple[Setting, ...]] = MappingProxyType({"papers": _PAPERS, "2.35": ()})
