"""Relational operators on indexes and on Arrow tables.

A source is an `Index`, the path of one, or a table: of pyarrow, polars or pandas, a stream of batches, a dict of
arrays. The key of a table is its first column and the value its second, unless `key` and `value` say otherwise; it need
not be sorted, and no temporary file is made for it.

The answer is a `pyarrow.Table` in the order of keys. With `stream=True` it is a `pyarrow.RecordBatchReader` that makes
batches on request. With `out` it is written to that file, complete or not at all, and returned as an `Index`.
"""

from __future__ import annotations

import datetime
import decimal
import os
from typing import Any, TypedDict, Unpack

import numpy as np

from . import _native
from ._build import Path, batches
from ._index import Index, open_index
from ._progress import Progress, Wanted
from .errors import InputError


class Options(TypedDict, total=False):
    """Options of all operators."""

    #: File for the answer, which becomes an index.
    out: Path | None
    #: Make a stream of batches.
    stream: bool
    #: Columns of the sources that are tables.
    key: str | None
    value: str | None
    #: For `out`: replace a file that is no index, keep old generations.
    force: bool
    keep: int | None
    #: Permit keys that are hashes or prefixes, although equal ones may stand for different keys.
    approximate: bool
    #: Number of threads; 0 for all processors.
    threads: int
    #: A function of phase, done and total, or True for a bar.
    progress: Wanted


def _native_of(source: Any) -> Any:
    """Makes what the native part takes of a source."""
    if isinstance(source, Index):
        return source._open
    if isinstance(source, (str, os.PathLike)):
        return open_index(source)._open
    return batches(source)


def _distance(distance: Any) -> str | None:
    """Makes the text of a distance between keys."""
    if distance is None or isinstance(distance, str):
        return distance
    if hasattr(distance, "to_timedelta64"):
        # One of pandas, which has nanoseconds.
        distance = distance.to_timedelta64()
    if isinstance(distance, np.timedelta64):
        unit, count = np.datetime_data(distance.dtype)
        unit = {"D": "d", "W": "w"}.get(unit, unit)
        if np.isnat(distance) or unit not in ("ns", "us", "ms", "s", "m", "h", "d", "w"):
            raise InputError(f"invalid distance {distance!r}: use days, hours, minutes, seconds or parts of these")
        return f"{int(distance.astype(np.int64)) * count}{unit}"
    if isinstance(distance, datetime.timedelta):
        return f"{distance // datetime.timedelta(microseconds=1)}us"
    if isinstance(distance, (bool, np.bool_)):
        raise InputError(f"invalid distance {distance!r}: use a number, a timedelta or a text")
    if isinstance(distance, (int, np.integer)):
        return str(int(distance))
    if isinstance(distance, (float, np.floating)):
        distance = decimal.Decimal(repr(float(distance)))
    if isinstance(distance, decimal.Decimal):
        return format(distance, "f")
    raise InputError(f"invalid distance {distance!r}: use a number, a timedelta or a text")


def _related(name: str, sources: tuple[Any, ...], options: Options, **parameters: Any) -> Any:
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"{name}() has no option {sorted(unknown)[0]!r}")
    given: dict[str, Any] = {**options, **parameters}
    out, is_stream = given.pop("out", None), given.pop("stream", False)
    if out is not None and is_stream:
        raise InputError("out and stream=True exclude each other: give one of them")
    out = None if out is None else os.fspath(out)
    with Progress(given.pop("progress", None), name) as callback:
        given["progress"] = callback
        made = _native.relate(name, [_native_of(source) for source in sources], out, is_stream, given)
    if out is not None:
        return open_index(out)
    import pyarrow

    reader = pyarrow.RecordBatchReader.from_stream(made)
    return reader if is_stream else reader.read_all()


def select(source: Any, condition: str, **options: Unpack[Options]) -> Any:
    """Returns the tuples for which a condition holds: an expression of `key` and `value`, or of the columns' names.

    >>> import pleachdb as pl
    >>> pl.select({"id": [3, 1, 2], "size": [30, 10, 20]}, "size >= 20").to_pydict()
    {'id': [2, 3], 'size': [20, 30]}
    """
    return _related("select", (source,), options, text=condition)


def project(source: Any, columns: str, **options: Unpack[Options]) -> Any:
    """Returns new tuples: `columns` names the new key and the new values, separated by commas.

    A column is `key`, `value`, `rank` or a field, with a new name before `=` if wanted. `value[0:8]` is the lowest 8
    bits of a whole number.

    >>> import pleachdb as pl
    >>> pl.project({"id": [3, 1], "size": [30, 10]}, "size, id").to_pydict()
    {'size': [10, 30], 'id': [1, 3]}
    """
    return _related("project", (source,), options, text=columns)


def reduce(source: Any, op: str = "sum", **options: Unpack[Options]) -> Any:
    """Returns one tuple for each key: the "sum", "min", "max", "count", "first" or "avg" (mean) of its values.

    Of records, "sum:amount" is the sum of the field `amount`. Several, separated by commas, make a record, as
    "sum:amount,count". The mean of integers and decimals is the float nearest to the exact mean.

    >>> import pleachdb as pl
    >>> pl.reduce({"id": [1, 2, 1], "size": [1, 5, 2]}).to_pydict()
    {'id': [1, 2], 'size': [3, 5]}
    >>> pl.reduce({"id": [1, 2, 1], "size": [1, 5, 2]}, "avg").to_pydict()
    {'id': [1, 2], 'size': [1.5, 5.0]}
    """
    return _related("reduce", (source,), options, op=op)


def union(*sources: Any, multiset: bool = False, **options: Unpack[Options]) -> Any:
    """Returns the keys of any source, each with its first tuple; with `multiset`, as often as in the source that has
    most of it."""
    return _related("union", sources, options, multiset=multiset)


def intersect(*sources: Any, multiset: bool = False, **options: Unpack[Options]) -> Any:
    """Returns the tuples of the first source whose keys are in all sources."""
    return _related("intersect", sources, options, multiset=multiset)


def difference(left: Any, right: Any, *, multiset: bool = False, **options: Unpack[Options]) -> Any:
    """Returns the tuples of `left` whose keys are not in `right`."""
    return _related("difference", (left, right), options, multiset=multiset)


def join(
    left: Any,
    right: Any,
    how: str = "inner",
    *,
    asof: str | None = None,
    tolerance: Any = None,
    within: Any = None,
    **options: Unpack[Options],
) -> Any:
    """Returns the pairs of tuples with equal keys, as the columns key, `left` and `right`.

    `how` is "inner", "left", "right", "full", "semi" (tuples of `left` that have a partner) or "anti" (those that have
    none). A side without a tuple is null.

    >>> import pleachdb as pl
    >>> a, b = {"id": [1, 2], "a": [10, 20]}, {"id": [2, 3], "b": [0.5, 1.5]}
    >>> pl.join(a, b, "full").to_pydict()
    {'id': [1, 2, 3], 'left': [10, 20, None], 'right': [None, 0.5, 1.5]}

    With `asof`, each left tuple has at most one partner, whose key need not be equal: the last at or before its key
    ("backward"), the first at or after it ("forward"), or the nearer of these ("nearest"; "backward" if both are as
    far). It is at most `tolerance` away. With `within`, its partners are all right tuples at most so far away. Both
    add the column `key_right`; `how` is "inner", "left", "semi" or "anti".

    A distance is a number in units of the key. Between times it is a timedelta of datetime, numpy or pandas, or a text
    such as "5s" or "250us" (ns us ms s m h d w); between dates, a number is one of days.

    >>> pl.join({"t": [3, 9], "a": [1, 2]}, {"t": [1, 8], "b": [5, 6]}, asof="backward", tolerance=1).to_pydict()
    {'t': [9], 'left': [2], 'key_right': [8], 'right': [6]}
    """
    if asof is not None and within is not None:
        raise InputError("asof and within exclude each other: give one of them")
    if asof is None and tolerance is not None:
        raise InputError("tolerance belongs to asof: give asof, or within instead")
    near = {"asof": asof, "tolerance": _distance(tolerance), "within": _distance(within)}
    return _related("join", (left, right), options, how=how, **near)


def product(left: Any, right: Any, values: str = "both", **options: Unpack[Options]) -> Any:
    """Returns all pairs of tuples, by the key of `left`; `values` is "both", or the side whose values are kept."""
    return _related("product", (left, right), options, values=values)
