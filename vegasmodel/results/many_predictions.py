"""Holds several predictions in one object, which a notebook shows as a table.

``predict_all`` returns ``Predictions``: the predictions of several models for one scenario.
``batch`` returns a ``Batch``: the predictions of one model for many scenarios.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from vegasmodel.fields.rules import Choice
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.texts import of_errors, shown_rate
from vegasmodel.support.shown import Shown, Table

if TYPE_CHECKING:
    import pandas as pd


class Predictions(Shown, list[Prediction]):
    """The predictions of several models for one scenario: a list that a notebook shows as a table.

    An index may also be the name of a model, as in ``predictions["rounds"]``.

    ``table`` gives a text with a line for each model.  A line has the groups' throughputs, and the
    names of the model's assumptions that do not hold.  The attribute ``broken`` of a prediction has
    these assumptions with the reasons.  A line for a model without a prediction says why there is
    none.  Models with the same reason share a line.
    """

    @overload
    def __getitem__(self, index: SupportsIndex | str) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Predictions: ...
    def __getitem__(self, index: SupportsIndex | str | slice) -> Prediction | Predictions:
        """One prediction, by its place or by its model's name; or several, by a slice.

        Raises ``FieldError`` if there is no model of this name.
        """
        if isinstance(index, str):
            known = [each.model for each in self]
            Choice(tuple(known)).check(index, "model")
            return super().__getitem__(known.index(index))
        found = super().__getitem__(index)
        return Predictions(found) if isinstance(found, list) else found

    def _ipython_key_completions_(self) -> list[str]:
        """The names of the models, which IPython offers after ``predictions[``."""
        return [each.model for each in self]

    def to_dataframe(self) -> pd.DataFrame:
        """One pandas table of all predictions, with one row per model and flow.

        Models that have no prediction for the scenario are left out.  The columns are those of
        ``Prediction.to_dataframe``.
        """
        return _one_table([each.to_dataframe() for each in self if each.applicable])

    def to_json(self) -> list[dict[str, Any]]:
        """The predictions as plain data, like the list ``results`` in the output of ``--json``."""
        return [each.to_json() for each in self]

    @property
    def _shown(self) -> Table:
        """A table with a row per model; models without an answer share a row if reasons agree."""
        models_by_reason: dict[str, list[str]] = {}  # for models without an answer
        for each in self:
            if not each.applicable:
                models_by_reason.setdefault(str(each.reason), []).append(each.model)
        rows = []
        for each in self:
            models = [each.model] if each.applicable else models_by_reason.pop(str(each.reason), [])
            if len(models) == 1:
                rows.append((each.model, each, _why_or_broken(each)))
            elif models:  # one row for all models with this reason
                rows.append((f"{len(models)} models", each, f"{', '.join(models)}: {each.reason}"))
        return _table(self[0].scenario.name if self else "no model", "model", rows)


class Batch(Shown, tuple[Prediction, ...]):
    """The predictions of one model for many scenarios: a tuple that a notebook shows as a table.

    They are in the order of the scenarios, so ``batch[3]`` is the prediction for ``scenarios[3]``.
    A slice of a batch is a plain tuple.

    ``table`` gives a text with a line for each scenario, which begins with its index.  A line has
    the groups' throughputs, and the names of the model's assumptions that do not hold.  If there is
    no prediction, the line says why.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """One line: the model, the number of scenarios, and for how many there is no prediction."""
        if not self:
            return "<Batch of no scenario>"
        without = sum(not each.applicable for each in self)
        text = f", {without} without an answer" if without else ""
        return f"<Batch {self[0].model}: {len(self)} scenario{'s' * (len(self) > 1)}{text}>"

    def to_dataframe(self) -> pd.DataFrame:
        """One pandas table of all predictions, with one row per scenario and flow.

        The column ``scenario`` is the index of the scenario.  Scenarios for which the model has no
        prediction are left out.  The other columns are those of ``Prediction.to_dataframe``.
        """
        frames = []
        for i, each in enumerate(self):
            if each.applicable:
                frame = each.to_dataframe()
                frame.insert(0, "scenario", i)
                frames.append(frame)
        return _one_table(frames)

    def to_json(self) -> list[dict[str, Any]]:
        """The predictions as plain data: a list in the order of the scenarios.

        An entry is like one of the list ``results`` that commands print with ``--json``.
        """
        return [each.to_json() for each in self]

    @property
    def _shown(self) -> Table:
        """A table with a row per scenario."""
        rows = [(str(i), each, _why_or_broken(each)) for i, each in enumerate(self)]
        return _table(self[0].model if self else "no scenario", "scenario", rows)


def _one_table(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables below one another; an empty table if there are none."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _why_or_broken(each: Prediction) -> str:
    """The names of the assumptions that do not hold, or why there is no prediction."""
    return ", ".join(a.name for a in each.broken) if each.applicable else str(each.reason)


def _table(about: str, label_name: str, rows: list[tuple[str, Prediction, str]]) -> Table:
    """A table of throughputs; each row is given as its label, a prediction, and its last cell.

    ``about`` begins the title: it is the name of the scenario or model that all rows share.
    ``label_name`` is the name of the column with the labels.
    """
    answers = [each for _, each, _ in rows]
    names = list(dict.fromkeys(name for each in answers for name in each.groups))
    title = f"{about}: pkt/s per flow{of_errors(answers)}" if rows else about
    return Table(
        title,
        [label_name, *names, "does not hold, or why there is no answer"],
        [[label, *(shown_rate(each, name) for name in names), text] for label, each, text in rows],
    )
