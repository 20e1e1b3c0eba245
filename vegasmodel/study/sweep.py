"""Evaluates a model over a grid of values of a scenario's fields.

The grid is divided into blocks, which are computed and written one by one or in parallel.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel import measurement
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer
from vegasmodel.laws import digests
from vegasmodel.scenario import Scenario
from vegasmodel.study import grid, models, points, store, together, workers
from vegasmodel.study.fields import Field
from vegasmodel.study.grid import Block, Grid
from vegasmodel.study.points import Figures
from vegasmodel.study.store import Layout
from vegasmodel.support import extras

if TYPE_CHECKING:
    import xarray

__all__ = ["Progress", "sweep"]

POINTS_PER_BLOCK = {  # points per block, by the kind of the model (``_kind``): some seconds of work
    "arrays": 1 << 16,
    "closed": 1 << 8,
    "fluid": 1 << 11,
    "rounds": 1 << 5,
    **dict.fromkeys(measurement.ENGINES, 1 << 4),
}
MAX_BYTES_OF_BLOCK = 1 << 26  # bytes of a block's results
MAX_BYTES_WITHOUT_FOLDER = 1 << 32  # bytes of a sweep's results that are not written to a folder
_RATE = {"units": "packets/s"}
_TIME = {"units": "s"}
# the results in the dataset: by name, the dimensions besides those of the grid, and the attributes
FIGURES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "throughput": (("flow",), {**_RATE, "long_name": "packets delivered per second"}),
    "throughput_se": (("flow",), {**_RATE, "long_name": "its standard error over runs"}),
    "throughput_mbps": (
        ("flow",),
        {"units": "Mbit/s", "long_name": "throughput, headers included"},
    ),
    "share": (("flow",), {"units": "1", "long_name": "part of all bytes delivered"}),
    "share_se": (("flow",), {"units": "1", "long_name": "its standard error over runs"}),
    "group_share": (
        ("group",),
        {"units": "1", "long_name": "part of all bytes that a group's flows deliver together"},
    ),
    "group_share_se": (("group",), {"units": "1", "long_name": "its standard error over runs"}),
    "rtt_mean": (("flow",), {**_TIME, "long_name": "mean round-trip time"}),
    "base_rtt": (("flow",), {**_TIME, "long_name": "least round-trip time that Vegas has seen"}),
    "loss_rate": (("flow",), {"units": "1", "long_name": "packets lost over packets sent"}),
    "ratio": (("pair",), {"units": "1", "long_name": "mean throughput of group a over group b"}),
    "uncertainty": (
        (),
        {
            "units": "1",
            "long_name": "half the 95 % interval of the least sure throughput, over it",
        },
    ),
    "jain": ((), {"units": "1", "long_name": "Jain's fairness index over the flows"}),
    "queue_mean": (("link",), {"units": "packets", "long_name": "mean of the waiting packets"}),
    "queueing_delay": (("link",), {**_TIME, "long_name": "mean queue over the capacity"}),
    "utilization": (("link",), {"units": "1", "long_name": "bytes delivered over capacity"}),
}
Progress = Callable[[int, int], None]  # points done, points in all


def sweep(
    scenario: Scenario,
    over: Mapping[str, ArrayLike | str] | Sequence[str],
    model: str = "rounds",
    out: str | Path | None = None,
    *,
    draw: int | None = None,
    seed: int = 1,
    engine: str = "local",
    scheduler: str | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> xarray.Dataset:
    """Evaluate ``model`` at every point of a grid, and return the results as an xarray dataset.

    - ``over``: the fields that vary, and the values of each.  This is a mapping such as
      ``{"link.buffer": [5, 10, 20]}`` or ``{"flow.rtt": "20ms:200ms:20ms"}``, or a list of texts
      ``FIELD=START:STOP:STEP`` or ``FIELD=a,b,c``.  Plain numbers, as in the first example, are in
      seconds, packets or packets per second.  The grid has all combinations of the values.
    - ``model``: a model of ``predict``, or the packet-level simulator ``ns2`` or ``ns3``.
    - ``draw``: the number of random points that replace the grid.  Each field then has a range
      ``LOW..HIGH`` instead of its values.  The points are drawn uniformly, with the random seed
      ``seed``.  They lie along one dimension, ``point``.
    - ``out``: the Zarr folder to write (needs the extra ``sweep``), in a folder that exists.  It is
      written block by block, so memory stays bounded.  If the process is killed, the same call
      continues the sweep.  A sweep of more than 4 GiB needs a folder.
    - ``processes``: the number of processes, for models in closed form that compute one point at a
      time.  All other models use threads instead.  A script that asks for more than one process
      must call ``sweep`` under ``if __name__ == "__main__"``.
    - ``engine``: ``"local"`` computes on this machine.  ``"dask"`` (needs the extra ``dask``)
      computes on the Dask cluster at the address ``scheduler``, and ignores ``processes``.  Without
      an address, a cluster is started on this machine.
    - ``progress``: a function that is called at the start and after each block, with the number of
      finished points and the number of all points.

    The dataset has variables such as ``throughput`` and ``share``, with the dimension ``flow``.
    ``group_share`` and ``group_share_se`` have the dimension ``group``: they are the share that all
    flows of a group (entry ``[[flow]]``) get together, and its standard error.  If the ``count`` of
    a group varies, the dimension ``flow`` has the groups instead of the flows: ``share`` and
    ``share_se`` are those of the whole group, and the other variables are means over its flows that
    have a throughput.

    The variable ``status`` is 0 at a point for which the model has a result.  At any other point
    ``status`` and ``reason`` say why there is none, and the other variables are NaN.  The variable
    ``broken`` has the names of the assumptions that do not hold at a point, with spaces between the
    names.  To save time, the assumption ``phase-effects`` of ``rounds`` is not tested.  The
    dataset's ``attrs`` hold the model, the scenario, what varies, and ``draw`` and ``seed``, which
    are 0 without random points.  If the scenario has laws that a user has added, ``attrs["laws"]``
    has a digest of each law's code.

    Raises ``FieldError`` for bad input, and ``OSError`` if ``out`` cannot be written.  Raises
    ``ExtraMissing`` or ``EngineMissing`` if something that the sweep needs is not installed.
    """
    import xarray

    _expect_one_model(model)
    models.check_model(model)
    if progress is not None and not callable(progress):
        raise FieldError("progress", progress, "a function of two numbers: points done, points")
    space = grid.make(scenario, over, draw, seed)
    workers.check(engine, scheduler)
    if out is not None:
        extras.need("sweep", "a sweep's Zarr folder")
        if not isinstance(out, (str, Path)) or not str(out) or "\0" in str(out):
            raise FieldError("out", out, "the name of a Zarr folder")
        if not Path(out).parent.is_dir():
            raise FieldError("out", str(out), "a name in a folder that exists")
    Integer(1, 10_000).check(processes, "processes")
    models.ready(model)
    layout = _layout(space, model)
    size = space.size * _bytes_per_point(space)
    if out is None and size > MAX_BYTES_WITHOUT_FOLDER:
        allowed = f"a Zarr folder: {space.size} points take {size / 2**30:.3g} GiB of memory"
        raise FieldError("out", None, allowed)
    if out is not None:
        run(space, model, Path(out), engine, scheduler, processes, progress)
        return store.dataset(Path(out))
    whole = _empty(layout)
    blocks = list(space.blocks(_chunks(space, model)))
    for block, figures in _computed(space, model, blocks, engine, scheduler, processes, progress):
        for name, values in _values(space, block, figures).items():
            whole[name][block] = values
    return xarray.Dataset(
        {
            name: ((*layout.dims, *more), whole[name], attrs)
            for name, (more, attrs) in layout.variables.items()
        },
        coords={name: (dim, *rest) for name, (dim, *rest) in layout.coordinates.items()},
        attrs=layout.attributes,
    )


def _expect_one_model(model: object) -> None:
    """Raise ``FieldError`` unless ``model`` is one name; the error says what to do with several."""
    if not isinstance(model, str):
        join = 'xarray.concat([sweep(scenario, over, each) for each in models], "model")'
        raise FieldError(
            "model", model, f"one model, as text; for several join the datasets: {join}"
        )


def run(
    space: Grid,
    model: str,
    out: Path,
    engine: str,
    scheduler: str | None,
    processes: int,
    progress: Progress | None,
) -> int:
    """Compute and write the blocks of the sweep that are missing in the folder ``out``.

    ``space`` is the grid of the sweep. The points are computed on this machine (``engine`` is
    "local"), with up to ``processes`` processes, or on the Dask cluster at the address
    ``scheduler`` ("dask"). ``progress`` is called with the number of finished points and of all
    points. Returns the number of points in these blocks.
    """
    layout, chunks = _layout(space, model), _chunks(space, model)
    written = 0
    with store.opened(out, layout, chunks) as folder:
        blocks = [block for block in space.blocks(chunks) if not folder.done(block)]
        computed = _computed(space, model, blocks, engine, scheduler, processes, progress)
        for block, figures in computed:
            folder.write(block, _values(space, block, figures))
            written += figures.status.size
    return written


def _computed(
    space: Grid,
    model: str,
    blocks: Sequence[Block],
    engine: str,
    scheduler: str | None,
    processes: int,
    progress: Progress | None,
) -> Iterator[tuple[Block, Figures]]:
    """Compute the blocks of a sweep; yield each block with its results as soon as it is ready.

    ``space`` is the grid of the sweep. ``blocks`` are the blocks still to compute; ``progress``
    counts all other blocks as done. ``engine``, ``scheduler`` and ``processes`` say where the
    blocks are computed (``run``).
    """
    done = space.size - sum(_size(block) for block in blocks)
    if progress is not None:
        progress(done, space.size)
    kind = _kind(space, model)
    # Several blocks at a time: in processes if the model computes one point at a time, in threads
    # if it computes them as arrays. Simulators use threads themselves, within a block.
    n_processes = processes if kind == "closed" else 1
    n_threads = (os.cpu_count() or 1) if kind == "arrays" else 1
    with workers.pool(engine, scheduler, n_processes, n_threads) as pool:
        for block, figures in workers.each(pool, space.points, model, blocks):
            yield block, figures
            done += _size(block)
            if progress is not None:
                progress(done, space.size)


def _size(block: Block) -> int:
    """The number of points of a block."""
    return math.prod(part.stop - part.start for part in block)


def _kind(space: Grid, model: str) -> str:
    """The model's key in ``POINTS_PER_BLOCK``, the table of the number of points per block.

    For a simulator, the key is its name.  For a model in closed form, the key is ``arrays`` if the
    model computes many points in one call, and ``closed`` if it computes them one by one.
    """
    if model != "minicycle":
        return model if model in POINTS_PER_BLOCK else "closed"
    first = space.points(tuple(slice(0, 1) for _ in space.shape))
    return "closed" if together.columns(first) is None else "arrays"


def _chunks(space: Grid, model: str) -> tuple[int, ...]:
    """The shape of a block of the grid for this model.

    A block has ``POINTS_PER_BLOCK`` points, or fewer if their results would take more than
    ``MAX_BYTES_OF_BLOCK`` bytes.
    """
    by_time = POINTS_PER_BLOCK[_kind(space, model)]
    by_memory = MAX_BYTES_OF_BLOCK // _bytes_per_point(space)
    return space.chunks(max(1, min(by_time, by_memory)))


def _bytes_per_point(space: Grid) -> int:
    """The memory that the results of one point take, in bytes: an upper bound, without texts."""
    first = space.points(tuple(slice(0, 1) for _ in space.shape))  # the first point
    groups, links = len(space.scenario.flows), len(space.scenario.links)
    # FIGURES has 8 numbers per flow, one per ordered pair of groups, 2 per group, 3 per link, and 2
    # per point. The sum below is a little larger. A number takes 8 bytes.
    return 8 * (9 * len(first.flows) + groups * groups + 3 * groups + 3 * links + 1)


def _with_beta(space: Grid, field: Field) -> dict[str, str]:
    """The attribute ``long_name`` of a varied field, if Vegas's threshold beta changes with it.

    It is a label for tables and axes, such as "flow.alpha = beta", in a dictionary. The dictionary
    is empty for all other fields. Beta changes with the field alpha if all groups of flows
    (``[[flow]]`` tables) that the field belongs to have alpha = beta, and the sweep does not vary
    beta itself.
    """
    if (field.part, field.key) != ("flow", "alpha"):
        return {}
    groups = [space.scenario.flows[i] for i in field.indices]
    varies_beta = any((one.field.part, one.field.key) == ("flow", "beta") for one in space.axes)
    changes = not varies_beta and all(group.one_threshold for group in groups)
    return {"long_name": f"{field.name} = beta"} if changes else {}


def _layout(space: Grid, model: str) -> Layout:
    """The names, dimensions, units and attributes of the dataset of a sweep."""
    meanings = [word.replace(" ", "_") for word in ("not computed", *points.STATUS)]
    status = {
        "flag_values": list(range(store.NOT_YET, len(points.STATUS))),
        "flag_meanings": " ".join(meanings),
    }
    reason = {"long_name": "why there is no answer; empty if there is one"}
    broken = {"long_name": "assumptions that do not hold: their names, with spaces between"}
    variables = {
        **FIGURES,
        "broken": ((), broken),
        "reason": ((), reason),
        "status": ((), status),
    }
    return Layout(
        dims=space.dims,
        shape=space.shape,
        coordinates=_coordinates(space),
        variables=variables,
        attributes=_attributes(space, model),
    )


def _coordinates(space: Grid) -> dict[str, tuple[str, NDArray[Any], dict[str, Any]]]:
    """The coordinates of the dataset of a sweep: each has a dimension, values and attributes.

    They are the values of the fields that vary, and the names of flows, groups, links and pairs of
    groups.
    """
    scenario = space.scenario
    first = space.points(tuple(slice(0, 1) for _ in space.shape))  # the first point of the grid
    groups = [group.name for group in scenario.flows]
    by_name = {axis.field.name: axis.field for axis in space.axes}
    coordinates: dict[str, tuple[str, NDArray[Any], dict[str, Any]]] = {
        name: (
            dim,
            values,
            {"units": by_name[name].unit or "1", **_with_beta(space, by_name[name])},
        )
        for name, (dim, values) in space.coordinates.items()
    }
    names = {
        "flow": first.flows,
        "group": groups,
        "link": [link.name for link in scenario.links],
        "pair": [f"{a}/{b}" for a in groups for b in groups if a != b],
    }
    coordinates |= {
        dim: (dim, np.array(labels, dtype=np.str_), {}) for dim, labels in names.items()
    }
    if first.by_group:
        text = "groups of flows: share of the group, other values as means over its flows"
        coordinates["flow"][2]["long_name"] = text
    return coordinates


def _attributes(space: Grid, model: str) -> dict[str, Any]:
    """The attributes of the dataset of a sweep: the facts that tell it from other sweeps."""
    import vegasmodel

    scenario = space.scenario
    attributes = {
        "model": model,
        "over": {axis.field.name: _summary(axis.values) for axis in space.axes},
        "draw": space.draw or 0,
        "seed": space.seed if space.draw else 0,
        "version": vegasmodel.__version__,
        "fingerprint": scenario.fingerprint(),
        "scenario": scenario.name,
        "scenario_toml": scenario.to_toml(),
    }
    if own := scenario.own_laws:
        attributes["laws"] = {law.name: digests.of_law(law) for law in own}
    return attributes


def _summary(values: NDArray[Any]) -> list[Any]:
    """Summarise the values of a field as a list, for the attributes of a sweep's dataset.

    Up to 1000 values are listed in full, as text.  If there are more, the list has the first and
    the last value, the number of values and a hash of all of them.
    """
    import hashlib

    if values.size <= 1000:
        return [str(value) for value in values.tolist()]
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
    return [str(values[0]), "..", str(values[-1]), values.size, digest]


def _empty(layout: Layout) -> dict[str, NDArray[Any]]:
    """The variables of the dataset before any point is computed, by name."""
    return {
        name: np.full(layout.lengths(more), *store.BLANKS.get(name, store.BLANK_NUMBER))
        for name, (more, _) in layout.variables.items()
    }


def _values(space: Grid, block: Block, figures: Figures) -> dict[str, NDArray[Any]]:
    """The values of the dataset's variables at the points of a block: one array per variable.

    An array has the dimensions of the grid, then the variable's own dimension, such as ``flow``.
    """
    shape = tuple(part.stop - part.start for part in block)
    groups = range(len(space.scenario.flows))
    mean = figures.group_mean
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = [
            np.where(mean[:, b] > 0, mean[:, a] / mean[:, b], np.nan)
            for a in groups
            for b in groups
            if a != b
        ]
    flat: dict[str, NDArray[Any]] = {
        name: getattr(figures, name) for name in FIGURES if name not in ("ratio", "throughput_mbps")
    }
    flat["ratio"] = np.stack(ratio, axis=1) if ratio else np.empty((len(mean), 0))
    flat["throughput_mbps"] = figures.throughput_bps / 1e6
    flat["status"], flat["reason"] = figures.status, np.array(figures.reasons, object)
    flat["broken"] = np.array(figures.broken, object)
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in flat.items()}
