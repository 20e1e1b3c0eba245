"""Defines ``Prediction``, the throughputs and other results of one model or one measurement.

``vegasmodel.predict`` returns a ``Prediction``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vegasmodel.results import texts, writers
from vegasmodel.results.result import Result
from vegasmodel.scenario import Scenario
from vegasmodel.support.shown import Shown, Table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Result, Shown):
    """The throughput of each flow, and the other results that a model or a measurement gives.

    ``table`` gives a text with a line for each group, and the assumptions that do not hold.
    Predictions are equal only if they are the same object; compare their fields, such as
    ``throughput``, instead.

    An array has one entry per flow, in the order of ``scenario.members`` (``names``), unless
    another shape is given.  It is read-only; its method ``copy`` gives one that is not.  A result
    that was not computed or measured is ``None``.  If a result is missing for only some flows,
    their entries are NaN.

    - ``model``: the name of the model, or that of the measurement, such as ``ns2``.
    - ``scenario``: the scenario that the result is for.
    - ``throughput``: packets delivered per second while the flow is active.
    - ``applicable``, ``reason``: if the model cannot be evaluated for the scenario, ``applicable``
      is False, ``reason`` says why, and the results are missing.
    - ``throughput_range``: [n_flows, 2] pkt/s, the lower and the upper end, if the model predicts a
      range for each flow.
    - ``throughput_se``: standard error of ``throughput`` over runs, pkt/s.
    - ``base_rtt``: the flow's baseRTT, s: the least round-trip time that it has seen, or the value
      that the scenario gives.  If there are several runs, it is the mean over them.  It is NaN for
      loss-based flows, and if no baseRTT is known.
    - ``rtt_mean``: mean round-trip time, s.  In the simulators, ns-2 and ns-3 it does not include
      the time for which packets behind a lost one wait for its retransmission.
    - ``loss_rate``: packets lost over packets sent, but at most 1: packets that were sent in the
      warm-up may be lost after it.
    - ``acks``: number of packets newly acknowledged; if measured from a trace, number of ACKs.
    - ``retransmits``: number of packets that were sent again.
    - ``delivered``: packets delivered from the end of the warm-up to the end of the run.  In ns-2
      and in the simulators, packets that are acknowledged after the flow's ``stop`` do not count.
    - ``delivered_time``: for how many seconds ``delivered`` was counted.  ``None`` means from the
      end of the warm-up to the end of the run.
    - ``queue_mean``: [n_links] mean number of packets that wait.
    - ``utilization_links``: [n_links] the utilization of each link, if the model or the measurement
      gives it.  Users should read ``utilization`` instead, which is computed from the throughputs
      if ``utilization_links`` is missing.  The entry ``utilization[0]`` is for the first link.
    - ``assumptions``: each with ``name``, ``holds`` and ``detail``; ``broken`` has those that fail.
    - ``seconds``: computing time, s.
    - ``extra``: more figures, which depend on the model.
    """

    @classmethod
    def not_applicable(cls, model: str, scenario: Scenario, reason: str) -> Prediction:
        """The result of a model that cannot be evaluated for the scenario; ``reason`` says why."""
        return cls(model, scenario, None, applicable=False, reason=reason)

    def __repr__(self) -> str:
        """One line: the model, its throughputs, and how many of its assumptions do not hold.

        A group is a ``[[flow]]`` table, and its throughput is the mean of its flows. If the model
        gives a range of this mean, the range follows in parentheses. With more than six groups, the
        line has the first six and says how many more there are. If the model cannot be evaluated
        for the scenario, the line has the model and the reason.
        """
        return texts.one_line(self)

    @property
    def _shown(self) -> Table:
        """The table that ``table`` writes as text."""
        return texts.table(self)

    def to_dataframe(self) -> pd.DataFrame:
        """The prediction as a pandas table with one row per flow.

        The columns ``model``, ``flow``, ``law`` and ``group`` hold texts. All other columns hold
        numbers.
        ``share`` is the flow's share of all delivered bits. ``share`` and ``delivered_bps`` are
        averages over the whole time from warm-up to end. The throughputs are averages over the part
        of this time in which the flow is active. If a column has a unit, its name ends with the
        unit: ``throughput_pps`` is in packets per second, ``throughput_bps`` in bit/s and
        ``rtt_mean_s`` in seconds. NaN means that the model gives no value.
        """
        return writers.dataframe(self)

    def to_xarray(self) -> xr.Dataset:
        """The prediction as an xarray dataset with the dimensions ``flow`` and ``link``.

        The numerical columns of ``to_dataframe``, except ``delivered_bps``, become variables over
        ``flow``.  They have the same names as in ``sweep``, without a unit at the end, such as
        ``throughput`` and ``rtt_mean``; only ``throughput_mbps``, in Mbit/s, keeps a unit.  The
        units are in the ``attrs`` of the variables.  The columns ``law`` and ``group`` become
        coordinates of ``flow``, and ``model`` becomes an attribute of the dataset.  Two more
        variables are over ``link``: the mean queue in packets (``queue_mean``) and the
        ``utilization``.
        """
        return writers.dataset(self)

    def to_json(self) -> dict[str, Any]:
        """The prediction as an entry of the list ``results`` in a command's JSON document.

        An unknown value is ``None``.  ``links`` has the utilization and the mean queue of each
        link.  The same two values of the first link also stand outside ``links``.
        """
        return writers.document(self)
