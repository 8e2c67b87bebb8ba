"""Building files, and checking them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable

from . import _native
from .errors import InputError


@dataclass(frozen=True)
class Built:
    """What was built."""

    path: str
    tuples: int
    file_bytes: int


@dataclass(frozen=True)
class Report:
    """What `fsck` found."""

    verdict: str
    blocks: int
    bytes: int
    tuples: int | None
    findings: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether the file is intact."""
        return self.verdict == "clean"

    def __bool__(self) -> bool:
        return self.is_clean


def _source(source: Any) -> Any:
    """Makes a list of paths, or an object with Arrow batches, of what is to be built."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, (str, os.PathLike)) for item in source):
        return [os.fspath(item) for item in source]
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    import pyarrow

    if isinstance(source, dict):
        return pyarrow.table(source)
    if hasattr(source, "__iter__"):
        return _stream(iter(source))
    raise InputError(f"{type(source).__name__} cannot be built: give paths, a table, a dict of arrays or batches")


def _stream(batches: Any) -> Any:
    """Makes a stream of an iterator of batches, tables or dicts of arrays."""
    import pyarrow

    def made(item: Any) -> Any:
        if isinstance(item, dict):
            return pyarrow.record_batch(item)
        if isinstance(item, pyarrow.RecordBatch):
            return item
        return pyarrow.record_batch(item)

    first = next(batches, None)
    if first is None:
        raise InputError("there are no batches, and so no types: give at least one, which may be empty")
    first = made(first)

    def rest() -> Any:
        yield first
        for item in batches:
            yield made(item)

    return pyarrow.RecordBatchReader.from_batches(first.schema, rest())


def build(
    source: Any,
    path: Any,
    key: str | None = None,
    value: str | None = None,
    *,
    key_type: str | None = None,
    value_type: str | None = None,
    unique: str | None = None,
    sorted: bool = False,
    layout: str | None = None,
    keep: int | None = None,
    force: bool = False,
    no_header: bool = False,
    memory_bytes: int | None = None,
    threads: int = 0,
    temp_dir: Any = None,
    progress: Callable[[str, int, int | None], object] | None = None,
) -> Built:
    """Builds the file `path`: complete or not at all.

    `source` is a path or a list of paths (CSV, TSV, Parquet, Arrow, npy), a table of pyarrow, polars or pandas, a
    stream of Arrow batches, a dict of arrays, or an iterable of batches, which may be larger than memory. `key` and
    `value` are names of columns: the first and the second by default. Several values, separated by commas, make a
    record. `unique` is "first", "last" or "error". `progress` is called with the phase, what is done, and the total.
    """
    options = {
        "key": key,
        "value": value,
        "key_type": key_type,
        "value_type": value_type,
        "unique": unique,
        "sorted": sorted,
        "layout": layout,
        "keep": keep,
        "force": force,
        "no_header": no_header,
        "memory_bytes": memory_bytes,
        "threads": threads,
        "temp_dir": temp_dir,
        "progress": progress,
    }
    path = os.fspath(path)
    tuples, file_bytes = _native.build(_source(source), path, options)
    return Built(path, tuples, file_bytes)


def fsck(path: Any, *, threads: int = 0) -> Report:
    """Checks all checksums, the order, separators and padding of a file. It never writes."""
    return Report(**_native.fsck(os.fspath(path), threads))
