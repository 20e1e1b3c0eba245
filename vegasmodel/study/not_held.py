"""Names the assumptions that do not hold in each case of a study.

A study evaluates a model for many cases, such as the points of a sweep. The assumptions are those
of the model. The result for a case is one text: the names of the assumptions that do not hold in
this case, in alphabetical order, with spaces between them. ``counted`` says in how many cases each
assumption does not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.results.prediction import Prediction

__all__ = ["counted", "of_arrays", "of_prediction"]


def of_prediction(answer: Prediction | tuple[int, str]) -> str:
    """The names of the assumptions that do not hold in the scenario of a prediction, as one text.

    ``answer`` is an entry of what ``models.predictions`` returns. If it is not a prediction but a
    reason why there is none, the text is empty.
    """
    return _text([each.name for each in answer.broken]) if isinstance(answer, Prediction) else ""


def of_arrays(holding: Mapping[str, NDArray[np.bool_]]) -> NDArray[Any]:
    """The names of the assumptions that do not hold, one text for each point of a sweep.

    ``holding`` maps the name of an assumption to an array [point]: whether it holds there.
    """
    names = np.array(list(holding))
    fails = ~np.array(list(holding.values()))
    # Each point gets a whole number, whose bits tell which assumptions fail there (no model has 63
    # of them). So the text has to be made only once for all points with the same number.
    codes = (1 << np.arange(names.size)) @ fails
    _, example_points, case_of_point = np.unique(codes, return_index=True, return_inverse=True)
    texts = np.array([_text(names[fails[:, case]].tolist()) for case in example_points], object)
    return np.asarray(texts[case_of_point])


def counted(texts: Iterable[str]) -> dict[str, int]:
    """In how many cases each assumption does not hold, by its name; the most frequent comes first.

    ``texts`` has one text for each case: the names of the assumptions that do not hold there, with
    spaces between them.
    """
    found = Counter(name for text in texts for name in str(text).split())
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _text(names: Sequence[str]) -> str:
    """The names in one text, in alphabetical order, with spaces between them."""
    return " ".join(sorted(names))
