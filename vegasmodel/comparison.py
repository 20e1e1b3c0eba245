"""Compares the models' predictions with a measurement of the same scenario.

A model is a closed form or a simulator of this package. A measurement is a trace, or the result of
a run of a packet-level simulator (ns-2 or ns-3) or of the Linux kernel. The modules of the models
(``equilibrium``, ``engines``) and those that run ns-2 and ns-3 (``packets``) never import each
other. So if a model and a packet-level simulator agree, the reason is not that they share code.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel import measurement
from vegasmodel.fields.by_name import ByName
from vegasmodel.fields.errors import FieldError, in_words
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import format_time
from vegasmodel.measurement import ENGINES
from vegasmodel.metrics import (
    Floats,
    log_ratio_error,
    nrmse,
    percent,
    worst_ratio,
)
from vegasmodel.predictor import MODELS, SIMULATED, check_models, predict_all
from vegasmodel.results import rate_ranges
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.many_predictions import Predictions
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.scatter import as_near
from vegasmodel.results.texts import shown_rate
from vegasmodel.same_case import same_case
from vegasmodel.scenario import Scenario, expect
from vegasmodel.support.html_table import html_table
from vegasmodel.support.text_table import Text

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from vegasmodel.packets.filled import Filled
    from vegasmodel.packets.trace import Trace


@dataclass(frozen=True, repr=False)
class Comparison:
    """Predictions of several models, a measurement of the same scenario, and each model's errors.

    The function ``compare`` returns an object of this class.
    """

    scenario: Scenario
    measured: Prediction
    models: tuple[Prediction, ...]
    estimates: tuple[Filled, ...] = ()

    @property
    def results(self) -> Predictions:
        """All results: those of the models, and then the measurement.

        ``results["rounds"]`` is the prediction of one model.
        """
        return Predictions((*self.models, self.measured))

    @property
    def errors(self) -> dict[str, dict[str, float | None]]:
        """The errors of each model's prediction, by the model's name (see ``model_errors``).

        Models that have no prediction for the scenario are left out.
        """
        answers = (p for p in self.models if p.applicable)
        return ByName((p.model, model_errors(p, self.measured)) for p in answers)

    @property
    def pairing(self) -> list[dict[str, str]]:
        """Which flow of the trace belongs to each flow of the scenario, and how this was decided.

        The list has one entry per flow.  It is empty if the measurement is not a trace.
        """
        return list(self.measured.extra.get("pairing", ()))

    def best_error(self) -> float | None:
        """The smallest throughput error (NRMSE) of all models; ``None`` if no model has one."""
        values = [e["throughput_nrmse"] for e in self.errors.values()]
        return min((v for v in values if v is not None), default=None)

    @property
    def nearest(self) -> tuple[str, ...]:
        """The models whose throughputs are nearest to the measured ones, the nearest first.

        The first model has the smallest throughput error (NRMSE).  Another model is added if its
        larger error may be due to chance, by the standard errors of the throughputs (95 % interval
        by Student's t).  A measurement or model without standard errors is taken as exact.  The
        result is empty if no model has an error.
        """
        errors = {name: e["throughput_nrmse"] for name, e in self.errors.items()}
        known = {name: error for name, error in errors.items() if error is not None}
        if not known:
            return ()
        first, *others = sorted(known, key=lambda name: known[name])
        best = self._prediction_of(first)
        tied = [name for name in others if as_near(best, self._prediction_of(name), self.measured)]
        return (first, *tied)

    def to_json(self) -> dict[str, Any]:
        """The document that ``compare`` prints with ``--json``."""
        from vegasmodel.report.tables import notes_json

        return {
            "scenario": self.scenario.name,
            "estimates": [entry.to_json() for entry in self.estimates],
            "pairing": self.pairing,
            "results": self.results.to_json(),
            "errors": self.errors,
            **notes_json(self.scenario),
        }

    def __repr__(self) -> str:
        """One line: the measurement, and the models with the smallest throughput error.

        If the measurement is a single run with random elements, the line says so.
        """
        text = _errs_least(self.nearest, self.errors)
        # "enough-runs" is unknown only after a single run in which chance has a part
        unknown = [a.name for a in self.measured.assumptions if a.holds is None]
        if self.nearest and "enough-runs" in unknown:
            text += "; one run, so noise unknown"
        return f"<Comparison of {self.scenario.name} with {self.measured.model}: {text}>"

    def _repr_html_(self) -> str:
        """A table for notebooks: a row for each model and the measurement."""
        groups = [group.name for group in self.scenario.flows][:6]
        rows = []
        for result in self.results:
            if result.applicable:
                error = self.errors.get(result.model, {}).get("throughput_nrmse")
                cells = [shown_rate(result, g) for g in groups]
                rows.append([result.model, *cells, "" if error is None else percent(error)])
        columns = ["model", *(f"{name}, pkt/s" for name in groups), "error"]
        title = f"{self.scenario.name}: models beside {self.measured.model}; error: NRMSE of flows"
        return html_table(title, columns, rows)

    def to_dataframe(self) -> pd.DataFrame:
        """A table of all predictions and then of the measurement, one row per flow.

        Models that have no prediction for the scenario are left out.  The columns are those of
        ``Prediction.to_dataframe``.
        """
        return self.results.to_dataframe()

    def to_xarray(self) -> xr.Dataset:
        """One dataset of all predictions and the measurement, joined along a dimension ``model``.

        The measurement is the last entry of ``model``.  Models that have no prediction for the
        scenario are left out.  The variables are those of ``Prediction.to_xarray``, and the errors
        of each model: ``error_throughput_nrmse``, ``error_ratio`` and ``error_base_rtt``.  At the
        measurement the errors are NaN.
        """
        import xarray as xr

        answers = [p for p in self.results if p.applicable]
        names = [p.model for p in answers]
        data = xr.concat([p.to_xarray() for p in answers], "model", combine_attrs="drop_conflicts")
        data = data.assign_coords(model=names)
        for key in ("throughput_nrmse", "ratio", "base_rtt"):
            values = [self.errors.get(name, {}).get(key) for name in names]
            data[f"error_{key}"] = ("model", [np.nan if v is None else v for v in values])
        return data

    def table(self) -> str:
        """The text that ``print_table`` prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.print_table()
        return Text(out.getvalue())

    @property
    def runs(self) -> int | None:
        """Over how many runs ns-2 or ns-3 averaged; ``None`` for any other measurement."""
        return self.measured.scenario.run.times if self.measured.model in ENGINES else None

    def scatter(self) -> float | None:
        """The throughput error (NRMSE) that even a perfect model would have.

        Measured throughputs scatter from run to run.  The error is the root mean square of their
        standard errors, divided by the mean measured throughput.  It is ``None`` if the standard
        errors are unknown.
        """
        error, mean = self.measured.throughput_se, self.measured.throughput
        return None if error is None or mean is None else nrmse(mean + error, mean)

    def print_table(self) -> None:
        """Print tables of the predictions, the measurement and the models' errors.

        If the measurement is a trace, up to two tables come first: which flow of the trace belongs
        to each flow of the scenario, and which keys of the scenario file were estimated from the
        trace.  A note says why a model has no prediction.  If all models were asked, only the two
        simulators get such a note, because most other models are not meant for the scenario.
        """
        from vegasmodel.report import console, tables

        tables.print_pairing(self.pairing)
        tables.print_estimates(self.estimates)
        chosen = len(self.models) < len(MODELS)  # the caller named the models
        shown = [p for p in self.results if chosen or p.applicable or p.model in SIMULATED]
        tables.print_results(self.scenario, shown)
        if self.errors:
            self._print_errors()
        console.paragraphs(tables.in_place_of_defaults(self.estimates))
        if self.scenario.estimated_from is not None:
            text = f"The file has estimates from {self.scenario.estimated_from} (estimated_from)"
            console.paragraphs([f"{text}. Their errors are a part of each model's error."])
        if self.scenario.guesses:
            text = f"Guesses in the file (guesses): {', '.join(self.scenario.guesses)}"
            console.paragraphs([f"{text}. Correct them: if a guess is wrong, models err."])

    def _print_errors(self) -> None:
        """Print the table of the models' errors, and sentences about these errors."""
        from vegasmodel.report import console

        rows = [
            [
                name,
                _percent(e["throughput_nrmse"]),
                f"{console.number(e['ratio'], 3)}{self._worst_pair(name)}",
                format_time(self._base_rtt_error(name)),
            ]
            for name, e in self.errors.items()
        ]
        columns = ["model", "throughput NRMSE", "ln ratio error", "baseRTT error"]
        out = console.console()
        if console.width(console.table(columns, rows)) > out.width:  # break lines
            columns = ["model", "throughput\nNRMSE", "ln ratio\nerror", "baseRTT\nerror"]
            rows = [
                [name, nrmse_text, ratio.replace(" (", "\n(").replace("/", "\n/"), base_rtt]
                for name, nrmse_text, ratio, base_rtt in rows
            ]
        out.print()
        name, runs, scatter = self.measured.model, self.runs, self.scatter()
        many = f", mean of {runs} runs" if runs and runs > 1 else ", one run" if runs else ""
        out.print(console.stacked(columns, rows, f"Errors against {name}{many}"))
        any_error = any(self._base_rtt_error(model) for model in self.errors)
        if any_error and measurement.has_least_rtts(self.measured):
            text = "baseRTT error: by how much a model's baseRTT differs from the least RTT"
            console.paragraphs([f"{text} in {name}. Vegas's own baseRTT in {name} is not known."])
        of_ranges = [rate_ranges.beside(p, self.measured) for p in self.models]
        console.paragraphs([line for line in of_ranges if line])
        if scatter:
            text = f"its scatter over runs gives a perfect model an NRMSE of {percent(scatter)}"
            console.paragraphs([f"{name}: {text}."])

    def _prediction_of(self, model: str) -> Prediction:
        """The prediction of the model with this name."""
        return next(p for p in self.models if p.model == model)

    def _base_rtt_error(self, model: str) -> float | None:
        """The root mean square error of the Vegas flows' baseRTTs, s; ``None`` if it is unknown.

        It is rounded to whole nanoseconds, so a rounding error of the arithmetic is 0.
        """
        known = _over_estimates(self._prediction_of(model), self.measured)
        if known is None:
            return None
        predicted, measured = known
        return round(float(np.sqrt(np.mean((predicted - measured) ** 2))), 9)

    def _worst_pair(self, model: str) -> str:
        """The two groups whose throughput ratio the model predicts worst, as text: `` (a/b)``.

        A group is an entry ``[[flow]]`` of the scenario. The text is empty if no pair of groups has
        both a predicted and a measured ratio.
        """
        ratios = self._prediction_of(model).ratios
        found = worst_ratio(ratios, self.measured.ratios)  # the pair and its error
        return f" ({found[0]})" if found else ""

    def plot(self, path: Path | None = None) -> Figure:
        """Draw bars for each group's throughput, one for each model and one for the measurement.

        A group is an entry ``[[flow]]`` of the scenario.  If ``path`` is given, the figure is also
        saved there.
        """
        from vegasmodel import plots

        figure = plots.throughput_bars(self.scenario, self.results)
        if path is not None:
            plots.save(figure, path)
        return figure


def _errs_least(nearest: Sequence[str], errors: Mapping[str, Mapping[str, float | None]]) -> str:
    """A text on which models have the least throughput error; it names at most three."""
    if not nearest:
        return "no model has an error"
    if len(nearest) == 1:
        return f"{nearest[0]} errs least, {_percent(errors[nearest[0]]['throughput_nrmse'])}"
    shown = [f"{name} {_percent(errors[name]['throughput_nrmse'])}" for name in nearest]
    return f"errors {few(shown)}; which is least may be chance"


def _percent(error: float | None) -> str:
    """An error in percent as text; ``-`` if it is unknown."""
    return "-" if error is None else percent(error)


def model_errors(model: Prediction, measured: Prediction) -> dict[str, float | None]:
    """The errors of one prediction against a measurement.

    - ``throughput_nrmse``: the root mean square error of the flows' throughputs, divided by the
      mean measured throughput. Flows that are not active are left out. If the throughput of an
      active flow is unknown (``Prediction.unknown_flows``), so is the error.
    - ``ratio``: the error of the throughput ratio of two groups (a group is an entry ``[[flow]]``
      of the scenario). For groups a and b, let r be the mean throughput of a's flows divided by
      that of b's flows. The error of this pair is ln(predicted r / measured r). The result is the
      error of the pair for which its magnitude is largest.
    - ``base_rtt``: the error of the over-estimates of baseRTT. A Vegas sender's baseRTT is the
      smallest RTT that it has measured. Its over-estimate is by how much this exceeds the RTT of
      the empty path. The error is the root mean square error of the over-estimates, divided by the
      mean measured one. It is over the Vegas flows whose predicted and measured baseRTTs are known.
      A measurement by ns-2 or ns-3, or a capture, has each flow's least RTT in place of Vegas's own
      baseRTT.

    An error is ``None`` if it cannot be computed, for example without a predicted baseRTT.
    """
    throughput_error = None
    predicted, truth = model.throughput, measured.throughput
    if predicted is not None and truth is not None and not measured.unknown_flows:
        active = np.isfinite(truth)
        throughput_error = nrmse(predicted[active], truth[active])
    return {
        "throughput_nrmse": throughput_error,
        "ratio": log_ratio_error(model.ratios, measured.ratios),
        "base_rtt": _base_rtt_error(model, measured),
    }


def _base_rtt_error(model: Prediction, measured: Prediction) -> float | None:
    """The error ``base_rtt`` of ``model_errors``, of a model's over-estimates of baseRTT.

    It is ``None`` if it cannot be computed.
    """
    known = _over_estimates(model, measured)
    return None if known is None else nrmse(*known)


def _over_estimates(model: Prediction, measured: Prediction) -> tuple[Floats, Floats] | None:
    """By how much baseRTTs exceed the RTT of the empty path, predicted and measured, s.

    The arrays have an entry for each Vegas flow whose predicted and measured baseRTTs are known.
    The result is ``None`` if there is no such flow.
    """
    if model.base_rtt is None or measured.base_rtt is None:
        return None
    members = model.scenario.members
    vegas = np.array([m.flow.keeps_backlog for m in members])
    rtt = np.array([m.rtt for m in members])
    known = vegas & np.isfinite(model.base_rtt) & np.isfinite(measured.base_rtt)
    if not known.any():
        return None
    return (model.base_rtt - rtt)[known], (measured.base_rtt - rtt)[known]


def compare(
    scenario: Scenario | Mapping[str, Any],
    trace: str | Path | Trace | None = None,
    models: str | Sequence[str] = MODELS,
    timeout: float | None = None,
    *,
    runs: int | None = None,
) -> Comparison:
    """Compare the predictions of ``models`` with a measurement of the same scenario.

    ``models`` are names of models, or a single name.

    ``trace`` is the measurement: the name of a file, or what ``packets.read`` returned. Without a
    trace, the measurement is the stored one of exactly this scenario. If none is stored, ns-2 is
    run.

    ``scenario`` may also be the content of a scenario file, as a dictionary. With a trace, the file
    may lack some keys. Their values are then estimated from the trace (``packets.completion``),
    and listed in the result's ``estimates``.

    ``timeout`` is the time limit of a run of ns-2 in s, as for ``run_engine``.  ``runs`` is the
    number of runs of ns-2 over which the measurement is averaged. By default it is the scenario's
    ``runs``. If the scenario gives none, there are 3 runs if random numbers affect them, else one.
    ``runs`` affects neither the models nor a stored measurement.

    Raises ``FieldError`` for a wrong argument or a bad trace, if ns-2 must be run but lacks a
    feature of the scenario, or if ``runs`` is given and the measurement is not by ns-2. Raises
    ``EngineMissing`` if ns-2 must be run and is not installed.
    """
    if runs is not None and trace is not None:
        raise FieldError("runs", runs, "leave it out: a trace is one run")
    if not isinstance(scenario, Mapping):
        expect(scenario, "a Scenario, or the table of a scenario file")
    if trace is not None:
        measurement.expect_trace(trace)
    models = check_models(models)
    if not isinstance(scenario, Scenario):
        if trace is None:
            return compare(Scenario.from_dict(scenario), None, models, timeout, runs=runs)
        return _compare_estimated(scenario, trace, models)
    if runs is not None and measurement.stored_elsewhere(scenario):
        allowed = "leave it out: ns-2 did not make the stored measurement of this scenario"
        raise FieldError("runs", runs, allowed)
    measured = measurement.find(measurement.run_often(scenario, runs), trace, timeout)
    measured = measurement.with_enough_runs(measured)
    results = _with_assumptions(predict_all(scenario, models), same_case(scenario, measured))
    return Comparison(scenario, measured, results)


def _compare_estimated(
    table: Mapping[str, Any], trace: str | Path | Trace, models: Sequence[str]
) -> Comparison:
    """``compare`` for a scenario file whose missing keys are estimated from the trace.

    ``table`` is the content of the file.
    """
    from vegasmodel.packets.completion import complete

    found = measurement.read(trace)
    scenario, filled = complete(table, found)
    measured = measurement.of_trace(found, trace, scenario)
    notes = same_case(scenario, measured, [in_words(entry.key) for entry in filled])
    return Comparison(
        scenario, measured, _with_assumptions(predict_all(scenario, models), notes), filled
    )


def _with_assumptions(
    results: Sequence[Prediction], notes: Sequence[Assumption]
) -> tuple[Prediction, ...]:
    """Add the assumptions ``notes`` to each prediction that has throughputs."""
    return tuple(
        replace(p, assumptions=(*p.assumptions, *notes)) if p.applicable else p for p in results
    )
