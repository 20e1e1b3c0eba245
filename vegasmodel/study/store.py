"""Stores the results of a sweep in a folder, as a Zarr group.

A sweep evaluates a model over a grid of values of a scenario's fields. The grid is divided into
blocks. The results of each block are written as soon as they are computed.

If a sweep is interrupted, only the blocks in progress are lost. The same sweep, run again, computes
the missing blocks only. The variable ``status`` of a block is written last, so a block that has a
status is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.study.grid import Block
from vegasmodel.support.files import PART, named

if TYPE_CHECKING:
    import xarray

__all__ = ["NOT_YET", "Layout", "Store", "opened"]

NOT_YET = -1  # the status of a point that is not computed
# A variable's value before a point is computed, and its type: ``BLANK_NUMBER`` for most variables,
# ``BLANKS`` for those with these names.
BLANK_NUMBER = (np.nan, np.float64)
BLANKS: dict[str, tuple[Any, Any]] = {
    "status": (NOT_YET, np.int8),
    "reason": ("", object),
    "broken": ("", object),
}
WRITTEN_LAST = ("status",)  # variables that are written after the others of a block
DIFFERENCES = {  # a stored sweep's attributes, and what an error message calls them
    "scenario_toml": "the scenario",
    "laws": "the code of a law",
    "model": "the model",
    "over": "what varies",
    "draw": "the number of random points (draw)",
    "seed": "the seed",
    "version": "the version of vegasmodel",
}
TEMPORARY_FILES = "*.partial"  # temporary files of Zarr


@dataclass(frozen=True)
class Layout:
    """The names, dimensions and units of the coordinates and variables of a sweep's dataset.

    A sweep evaluates a model over a grid of values of a scenario's fields.

    - ``dims``, ``shape``: the names and lengths of the grid's dimensions.
    - ``coordinates``: for each field that varies, its dimension, its values and its attributes.
    - ``variables``: for each result, the dimensions besides those of the grid, and its attributes.
    - ``attributes``: those of the whole dataset, such as the model.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: Mapping[str, tuple[str, NDArray[Any], dict[str, Any]]]
    variables: Mapping[str, tuple[tuple[str, ...], dict[str, Any]]]
    attributes: Mapping[str, Any]

    def lengths(self, other_dims: tuple[str, ...]) -> tuple[int, ...]:
        """The shape of a variable with the grid's dimensions, then those called ``other_dims``.

        ``other_dims`` holds names of dimensions, such as ``flow``.
        """
        return (*self.shape, *(self.coordinates[name][1].size for name in other_dims))


class Store:
    """The folder of a sweep on disk: a Zarr group to which results are written block by block.

    A block is a part of the sweep's grid; its indices are a tuple of slices.
    """

    def __init__(self, group: Any, path: Path) -> None:
        self.group, self.path = group, path

    def done(self, block: Block) -> bool:
        """Whether all results of the block have been written."""
        return bool(np.all(self.group["status"][block] != NOT_YET))

    def write(self, block: Block, values: Mapping[str, NDArray[Any]]) -> None:
        """Write the results of a block, which is a part of the sweep's grid of points.

        ``values`` has an array for each variable of the sweep, by name.  ``status`` is written
        last, because it marks the block as complete.  Raises ``OSError`` if the block cannot be
        written.  The blocks written before then remain readable.
        """
        ordered = sorted(values, key=lambda name: name in WRITTEN_LAST)
        with named(self.path):
            for name in ordered:
                array = self.group[name]
                array[(*block, *(slice(None),) * (array.ndim - len(block)))] = values[name]


@contextlib.contextmanager
def opened(path: Path, layout: Layout, chunks: tuple[int, ...]) -> Iterator[Store]:
    """Open the folder ``path`` in which a sweep is stored, and lock it for this process.

    The folder is created if it does not exist; ``layout`` says what it is to hold, and ``chunks``
    is the shape of a block of the grid.  Raises ``FieldError`` in these cases:

    - ``path`` exists and is not a stored sweep.
    - The stored sweep differs from ``layout`` in the scenario, the points, the model, the code of a
      law, the variables, or the version of this package.
    - Another process is writing to it.

    Raises ``OSError`` if the folder cannot be created.
    """
    import zarr

    with named(path):
        _make(path, layout, chunks)
    handle = os.open(path, os.O_RDONLY)  # for the lock
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FieldError("out", str(path), "a place where no other sweep is at work") from None
        except OSError:  # some network file systems have no locks
            pass
        for stale in path.rglob(TEMPORARY_FILES):
            stale.unlink(missing_ok=True)
        with _quiet():
            group = zarr.open_group(path, mode="r+")
        _expect_same(path, dict(group.attrs), layout)
        for name in sorted(set(layout.variables) - set(group.array_keys())):
            allowed = f"a new name; another version wrote the sweep there (it has no {name})"
            raise FieldError("out", str(path), allowed)
        yield Store(group, path)
    finally:
        os.close(handle)


def _make(path: Path, layout: Layout, chunks: tuple[int, ...]) -> None:
    """Create an empty store at ``path``, unless there is one.

    All files are first written to a temporary folder beside ``path``.  At the end this folder is
    renamed to ``path``.  So a process that is killed leaves no incomplete store at ``path``.
    ``chunks`` is the shape of a block of the grid.

    Raises ``FieldError`` if ``path`` exists and is no store.
    """
    if path.exists():
        if not (path / "zarr.json").is_file():
            raise FieldError("out", str(path), "a new name, or the folder of a sweep to go on with")
        return
    files = _empty(layout, chunks)
    part = path.with_name(f"{PART}{path.name}")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for name, content in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(content)
        part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _empty(layout: Layout, chunks: tuple[int, ...]) -> dict[str, bytes]:
    """The files of an empty store: each file's path in the store's folder, and its contents.

    The coordinates have their values.  Each variable has its blank value (``BLANKS``,
    ``BLANK_NUMBER``) at every point, as nothing is computed yet.  ``chunks`` is the shape of a
    block of the grid; each file of a variable will hold one block.
    """
    import zarr
    from zarr.abc.buffer import Buffer
    from zarr.storage import MemoryStore

    files: dict[str, Buffer] = {}
    memory = MemoryStore(files)
    with _quiet():
        group = zarr.open_group(memory, mode="w", attributes=_plain(layout.attributes))
        for name, (dim, values, attrs) in layout.coordinates.items():
            array = group.create_array(
                name,
                shape=values.shape,
                dtype=str if values.dtype.kind == "U" else values.dtype,
                dimension_names=(dim,),
                attributes=attrs,
            )
            array[:] = values.astype(object) if values.dtype.kind == "U" else values
        for name, (other_dims, attrs) in layout.variables.items():
            shape, grid_dims = layout.lengths(other_dims), len(layout.shape)
            blank, kind = BLANKS.get(name, BLANK_NUMBER)
            group.create_array(
                name,
                shape=shape,
                chunks=(*chunks, *(max(n, 1) for n in shape[grid_dims:])),
                dtype=str if kind is object else kind,
                fill_value=blank,
                dimension_names=(*layout.dims, *other_dims),
                attributes=attrs,
            )
        # the metadata of all arrays in one file, so that the sweep opens faster; they are final
        zarr.consolidate_metadata(memory)
    return {name: content.to_bytes() for name, content in files.items()}


def _expect_same(path: Path, stored: Mapping[str, Any], layout: Layout) -> None:
    """Raise ``FieldError`` unless the sweep stored at ``path`` has the attributes of the new sweep.

    ``stored`` are the attributes of the stored sweep, and ``layout`` is that of the new one. The
    message says in what the two differ.
    """
    wanted = _plain(layout.attributes)
    if all(stored.get(key) == value for key, value in wanted.items()):
        return
    allowed = "give a new name"
    for key, what in DIFFERENCES.items():
        if stored.get(key) != wanted.get(key):
            two_texts = _differing(stored.get(key), wanted.get(key))
            old, new = _shortened(*two_texts)
            allowed = f"give a new name: {what} differs, {old} there and {new} now"
            break
    raise FieldError("out", str(path), allowed, wrong="holds another sweep")


def _differing(stored: Any, wanted: Any) -> tuple[str, str]:
    """Two texts that show the first difference between the values of an attribute in two sweeps.

    ``stored`` is the value in the stored sweep, and ``wanted`` that in the new one. Texts are
    compared line by line, and tables entry by entry. Any other values are compared as a whole.
    ``stored`` is None if the sweep was stored by an older version of this package that did not
    write the attribute.
    """
    if isinstance(stored, str) and isinstance(wanted, str):
        parts = [text.splitlines() for text in (stored, wanted)]
    elif isinstance(wanted, Mapping):
        parts = [
            [f"{k}={v if isinstance(v, str) else ','.join(map(str, v))}" for k, v in each.items()]
            for each in (stored or {}, wanted)
        ]
    else:
        parts = [[str(stored)], [str(wanted)]]
    old, new = ([part for part in each if part] for each in parts)
    found = next(((a, b) for a, b in zip(old, new, strict=False) if a != b), None)
    if found is None:  # one text is the beginning of the other
        n = min(len(old), len(new))
        return (old[n:] or ["nothing"])[0], (new[n:] or ["nothing"])[0]
    return found


def _shortened(*texts: str) -> list[str]:
    """The texts, each cut to about 60 letters in which their first difference can be seen.

    A text is, for example, ``link.buffer=5.0,6.0,7.0``.  Long texts may begin alike.  Of this
    common beginning only the name and the last value are kept: ``link.buffer=..,6.0,7.0``.
    """
    pairs = zip(*texts, strict=False)
    common_length = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    if common_length < 40:
        return [text[:60] for text in texts]
    name, equals, _ = texts[0][:common_length].partition("=")
    head = f"{name[:30]}{equals}.." if equals else ".."
    begin = max(texts[0].rfind(",", 0, common_length - 1), common_length - 20)
    return [head + text[begin : begin + 60 - len(head)] for text in texts]


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as they look after they have been written to JSON and read back.

    For example, a tuple becomes a list. So they can be compared with attributes read from a folder.
    """
    import json

    plain: dict[str, Any] = json.loads(json.dumps(attributes))
    return plain


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Switch off warnings in the ``with`` block.

    The library Zarr would warn that some features of its files are not yet part of its standard.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def dataset(path: Path) -> xarray.Dataset:
    """The stored sweep as an xarray dataset; values are read from disk when they are used."""
    import xarray

    with _quiet():
        data: xarray.Dataset = xarray.open_zarr(path, chunks=None)
        return data
