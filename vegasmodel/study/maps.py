"""Makes the maps of the command ``map``: pictures of how a result depends on two fields.

A map has two panels, which are pictures side by side, and a text that says how to read them. The
axes of a panel are two fields of a scenario, and the colours show the result for each pair of their
values. The result is a flow's share of the throughput, or a ratio: the mean throughput of the flows
of one group divided by that of another group. (Each ``[[flow]]`` table of a scenario is a group.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Choice
from vegasmodel.scenario import Scenario
from vegasmodel.study.sweep import sweep

if TYPE_CHECKING:
    import xarray

__all__ = ["MAPS", "Map", "Panel", "find"]


@dataclass(frozen=True)
class Panel:
    """One of the two pictures of a ``Map``: how a share or a ratio of throughputs varies.

    Two fields of the scenario vary: the first along x, the second along y.  The colour shows the
    share or the ratio.
    """

    title: str
    across: str  # the label of the x axis
    scenario: str  # the file's text
    over: tuple[str, str]  # the two fields and their values, as the argument ``over`` of ``sweep``
    model: str
    figure: tuple[str, str]  # ("share", FLOW) or ("ratio", "GROUP/GROUP")

    def values(self, progress: Callable[[int, int], None] | None = None) -> xarray.DataArray:
        """Run the sweep of this panel; return the share or ratio at each point [y, x].

        The share or ratio is NaN if the model has no result there.  ``sweep`` explains
        ``progress``.
        """
        scenario = Scenario.from_toml(self.scenario)
        data = sweep(scenario, list(self.over), self.model, progress=progress)
        name, label = self.figure  # "share" and a flow, or "ratio" and a pair of groups
        x, y = (each.partition("=")[0] for each in self.over)
        chosen = data[name].sel({"flow" if name == "share" else "pair": label}, drop=True)
        chosen.attrs["packet_size"] = scenario.packet_size
        return chosen.transpose(y, x)


@dataclass(frozen=True)
class Map:
    """A ready-made figure of two panels, each of which sweeps two fields of a scenario.

    ``reading`` is a text on how to read the panels.
    """

    name: str
    title: str
    shown: str  # the meaning of the colours
    up: str  # the label of the y axes
    panels: tuple[Panel, Panel]
    reading: str


# a scenario file without its flows
LINK_AND_RUN = """
name = "{name}"
packet_size = "{size} B"
[[link]]
capacity = "{capacity}"
buffer = "{buffer} pkt"
[run]
duration = "{duration} s"
warmup = "{warmup} s"
runs = {runs}
"""


def _link(
    name: str, capacity: str, buffer: int, duration: int = 120, size: int = 1000, runs: int = 1
) -> str:
    """The beginning of a scenario file: its link and its run.

    ``capacity`` is a text with a unit, such as "10 Mbit/s". ``buffer`` is in packets, and ``size``,
    the size of a packet, in bytes. ``duration`` is in s; its first third is the warm-up.
    """
    return LINK_AND_RUN.format(
        name=name, capacity=capacity, buffer=buffer, size=size, duration=duration,
        warmup=duration // 3, runs=runs,
    )  # fmt: skip


def _flow(name: str, law: str, rtt: str, *more: str) -> str:
    """A ``[[flow]]`` table of a scenario file; ``more`` are further lines of it."""
    lines = ["[[flow]]", f'name = "{name}"', f'law = "{law}"', f'rtt = "{rtt}"', *more]
    return "\n".join([*lines, ""])


def _starvation() -> Map:
    """Two Vegas flows, one of which is misled: by an over-estimated baseRTT, or by a jittery path.

    Both panels have the same scenario, except for the name of the first flow.
    """
    thresholds = ("alpha = 2", "beta = 2", 'variant = "ns2"')
    text = _link("starvation", capacity="10 Mbit/s", buffer=1000, duration=60)
    text += _flow("plain", "vegas", "50 ms", *thresholds)
    known = text + _flow("other", "vegas", "50 ms", *thresholds)
    rates = "link.capacity=1Mbit/s,2Mbit/s,5Mbit/s,10Mbit/s,20Mbit/s"
    return Map(
        name="starvation",
        title="Two Vegas flows, one of which is misled about the delay",
        shown="throughput of the flow that gains over that of the other",
        up="capacity, Mbit/s",
        panels=(
            Panel(
                title="one over-estimates its baseRTT (closed form)",
                across="over-estimate, ms",
                scenario=known.replace('"plain"', '"given"'),
                over=("flow.other.over_estimate=0ms,1ms,2ms,4ms,8ms,16ms", rates),
                model="equilibrium",
                figure=("ratio", "other/given"),
            ),
            Panel(
                title="one has a jittery path (ns-2)",
                across="standard deviation of the jitter, ms",
                scenario=known,
                over=("flow.other.delay_noise=0ms,1ms,2ms,4ms,8ms,16ms", rates),
                model="ns2",
                figure=("ratio", "plain/other"),
            ),
        ),
        reading=(
            "In the map `starvation` two Vegas flows share a link, and one of them is misled about "
            "its queueing delay. The colours show the throughput of the flow that gains, divided "
            "by that of the other. The capacity grows from bottom to top. Each flow keeps alpha "
            "packets in the queue. So at a capacity c the two flows cause a queueing delay of 2 "
            "alpha/c, which is shorter on a faster link. With alpha 2 and packets of 1000 B it is "
            "32 ms at 1 Mbit/s, and 1.6 ms at 20 Mbit/s. So an error of one millisecond in the "
            "misled flow's queueing delay is a larger part of this delay on a faster link, and "
            "changes the ratio more.\n\n"
            "In the left panel of `starvation`, one flow over-estimates its baseRTT by the time on "
            "the horizontal axis: it counts this part of the queueing delay as propagation delay. "
            "Let c be the capacity of the link. If the flow over-estimates its baseRTT by 1.5 "
            "alpha/c, the queueing delay becomes 3 alpha/c. The flow then counts half of the "
            "queueing delay as propagation delay, and gets twice the rate of the other flow.\n\n"
            "In the right panel of `starvation`, the path of one flow has jitter, and this flow "
            "gets less than the other. The horizontal axis has the standard deviation of the "
            "jitter. The baseRTT of the flow with jitter is the smallest RTT that any of its "
            "packets had. Most of its packets have a longer RTT because of the jitter. The flow "
            "counts this additional delay as queueing delay, and reduces its window."
        ),
    )


def _buffer_alpha() -> Map:
    """Vegas's share beside Reno and beside CUBIC, over the buffer and over alpha = beta."""

    def panel(law: str, law_name: str) -> Panel:
        """A panel of Vegas beside a flow with the congestion control ``law``.

        ``law_name`` is its name in the panel's title.
        """
        text = _link("buffer and alpha", capacity="5 Mbit/s", buffer=20, runs=5)
        text += _flow("vegas", "vegas", "50 ms", "alpha = 3", "beta = 3", 'variant = "ns2"')
        text += _flow("rival", law, "50 ms")
        over = ("link.buffer=5:60:5", "flow.vegas.alpha=1:10:1")
        title = f"beside {law_name}"
        return Panel(
            title=title,
            across="buffer, packets",
            scenario=text,
            over=over,
            model="rounds",
            figure=("share", "vegas"),
        )

    return Map(
        name="buffer-alpha",
        title="Which alpha is fair beside a loss-based flow, at which buffer",
        shown="Vegas's share of the throughput",
        up="alpha = beta, packets",
        panels=(panel("reno", "Reno"), panel("cubic", "CUBIC")),
        reading=(
            "In the map `buffer-alpha` a Vegas flow shares a link with a Reno flow (left panel) or "
            "a CUBIC flow (right panel). The buffer grows from left to right, and alpha = beta "
            "from bottom to top. The colours show Vegas's share of the throughput: on the line "
            "marked 0.5 both flows get the same. Each cell is the mean of five runs.\n\n"
            "In the left panel of `buffer-alpha`, beside Reno, the line of equal shares runs from "
            "alpha 1 at a buffer of 7 packets to alpha 10 at a buffer of 28. So no single alpha "
            "gives equal shares at every buffer: a larger buffer needs a larger alpha. Left of the "
            "line, at smaller buffers, Vegas gets more than half, up to 0.84 of the throughput. "
            "Right of the line Vegas gets less than half: Reno fills the buffer, while Vegas keeps "
            "only alpha packets in it.\n\n"
            "In the right panel of `buffer-alpha`, beside CUBIC, the line of equal shares runs "
            "from alpha 3 at a buffer of 10 packets to alpha 10 at a buffer of 26. Right of the "
            "line, at larger buffers, Vegas gets less than CUBIC. At a buffer of 5 both flows get "
            "about the same with every alpha above 1."
        ),
    )


def _rtt_bias() -> Map:
    """Two NewReno flows with different RTTs, over one RTT and over the buffer.

    In the left panel the senders do not wait. In the right panel they wait at random.
    """

    def panel(title: str, wait: str, runs: int) -> Panel:
        """A panel; ``wait`` is a line with ``send_jitter`` for both flows, or empty."""
        more = ['variant = "ns2"', *([wait] if wait else [])]
        text = _link("RTT bias", capacity="2 Mbit/s", buffer=20, duration=300, size=500, runs=runs)
        text += _flow("short", "newreno", "40 ms", *more)
        text += _flow("long", "newreno", "40 ms", *more)
        return Panel(
            title=title,
            across="RTT of the other flow, ms",
            scenario=text,
            over=("flow.long.rtt=40ms:200ms:10ms", "link.buffer=5:50:5"),
            model="rounds",
            figure=("ratio", "short/long"),
        )

    return Map(
        name="rtt-bias",
        title="Two NewReno flows with different RTTs, one of 40 ms",
        shown="throughput of the flow with 40 ms over that of the other",
        up="buffer, packets",
        panels=(
            panel("senders do not wait: phase effects", 'send_jitter = "0 s"', 1),
            panel("senders wait for up to a packet's time", "", 3),
        ),
        reading=(
            "In the map `rtt-bias` a NewReno flow with a round trip of 40 ms shares a link with a "
            "NewReno flow of a longer round trip. The longer round trip grows from left to right, "
            "and the buffer from bottom to top. The colours show the throughput of the flow with "
            "40 ms, divided by that of the other. In general the flow with the longer round trip "
            "gets less. With a larger buffer the shares are more equal: the queueing delay is "
            "longer, and is the same for both flows, so their round trips differ by a smaller "
            "factor.\n\n"
            "In the left panel of `rtt-bias` senders send at once when their windows allow it. "
            "Then the order of arrivals and departures at the full queue decides which flow loses "
            "a packet, and this order repeats itself (phase effects). A slightly different round "
            "trip may change the order, and with it the ratio of the two throughputs. So the lines "
            "of equal ratio in the picture are ragged. Sometimes the flow with the longer round "
            "trip gets more: with 50 ms it gets up to three times as much as the flow with 40 ms. "
            "Each cell is one run.\n\n"
            "In the right panel of `rtt-bias` each sender waits for a random time before it sends, "
            "at most one packet's transmission time (2 ms). Over most of the panel the flow with "
            "the shorter round trip gets a larger share than without waits. There are two possible "
            "causes: waits prevent phase effects, and they add delay. The picture does not tell "
            "which of the two matters more. Each cell is the mean of three runs."
        ),
    )


def _linux_order() -> Map:
    """Two Linux Vegas flows, over an initial window and over the time between the two starts."""

    def panel(title: str, varied: str) -> Panel:
        """A panel in which the initial window of the flow ``varied`` varies."""
        text = _link("Linux", capacity="10 Mbit/s", buffer=200, duration=90, size=1500, runs=5)
        text += _flow("early", "vegas", "40 ms", 'variant = "linux"', "initial_window = 10")
        text += _flow("late", "vegas", "40 ms", 'variant = "linux"', "initial_window = 10")
        over = (
            f"flow.{varied}.initial_window=2,3,4,6,8,10,14,20,30",
            "flow.late.start=0ms,20ms,40ms,100ms,200ms,500ms,1s,2s,5s",
        )
        return Panel(
            title=title,
            across="initial window, packets",
            scenario=text,
            over=over,
            model="rounds",
            figure=("share", "late"),
        )

    return Map(
        name="linux-order",
        title="Two Linux Vegas flows, of which one starts later",
        shown="the later flow's share of the throughput",
        up="time between the two starts, s",
        panels=(
            panel("initial window of the earlier flow (the other has 10)", "early"),
            panel("initial window of the later flow (the other has 10)", "late"),
        ),
        reading=(
            "In the map `linux-order` one Linux Vegas flow starts after another; the time between "
            "the two starts grows from bottom to top. In blue cells the flow that starts later "
            "gets more than half of the throughput. Linux's Vegas assumes that the smallest RTT "
            "that it has measured is the RTT without queueing. A flow that starts while the queue "
            "is long never measures this RTT: the queue does not become empty afterwards. So what "
            "happens in the first seconds still decides the shares in a run of 90 s. Each cell is "
            "the mean of five runs.\n\n"
            "In `linux-order`, a flow that starts 0.5 to 2 s after the other one finds the queue "
            "that the slow start of the earlier flow has filled. The later flow counts the delay "
            "of this queue as propagation delay, and gets about nine tenths of the link or more. "
            "If it starts 5 s after the earlier flow, it finds a shorter queue. Then it usually "
            "gets a smaller share, but still more than half.\n\n"
            "In the left panel of `linux-order` the initial window of the earlier flow varies. "
            "With a smaller initial window the earlier flow takes longer to build up a queue. So "
            "the later flow must start later to find a long queue. If both flows start at the same "
            "time with equal initial windows, each gets half. If they start at the same time with "
            "different initial windows, the flow with the larger one gets more.\n\n"
            "In the right panel of `linux-order` the initial window of the later flow varies. If "
            "this flow starts 0.1 to 2 s after the other, its initial window hardly matters."
        ),
    )


MAPS = {each.name: each for each in (_starvation(), _buffer_alpha(), _rtt_bias(), _linux_order())}


def find(name: str) -> Map:
    """The map called ``name``. Raises ``FieldError`` for an unknown name."""
    if isinstance(name, str) and name.endswith(".toml"):
        allowed = f"one of {', '.join(MAPS)}; for a map of a scenario: sweep with --over twice, "
        raise FieldError("name", name, f"{allowed}and --plot")
    Choice(tuple(MAPS)).check(name, "name")
    return MAPS[name]
