"""Building files, and changing them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Union

from . import _native
from ._progress import Progress, Wanted
from .errors import InputError

#: A path of a file.
Path = Union[str, "os.PathLike[str]"]


#: Names of columns: one, or several, separated by commas or as a list.
Columns = Union[str, "list[str]", "tuple[str, ...]"]


def columns(names: Columns | None) -> str | None:
    """Returns names of columns, separated by commas."""
    return names if names is None or isinstance(names, str) else ",".join(names)


@dataclass(frozen=True)
class Built:
    """What was built: the path, the number of tuples, the size in bytes, and the number of the generation."""

    path: str
    tuples: int
    file_bytes: int
    generation: int
    #: Rows left out for their nulls, and values filled in.
    skipped_rows: int = field(default=0, kw_only=True)
    filled_values: int = field(default=0, kw_only=True)
    #: Windows of sequences left out, because a letter in them is none of A C G T.
    skipped_windows: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class Rebuilt(Built):
    """What a rebuild made, and what became of the changes."""

    #: "merge" or "patch".
    method: str
    #: Tuples of the generation before.
    base_tuples: int
    #: Tuples lost with damaged blocks, if `salvage` was set.
    lost_tuples: int
    #: Rows with "put", "add" and "del".
    puts: int
    adds: int
    dels: int
    #: Changes that a later one of the same batch replaced.
    superseded: int
    #: Deletes that found nothing.
    absent: int


@dataclass(frozen=True)
class Compacted(Built):
    """What a compaction made."""

    #: Tuples lost with damaged blocks, if `salvage` was set.
    lost_tuples: int


def paths(source: Any) -> list[str] | None:
    """Returns the paths that a source consists of; None if it is no path and no list of paths."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, (str, os.PathLike)) for item in source):
        return [os.fspath(item) for item in source]
    return None


def batches(source: Any) -> Any:
    """Makes an object that exports Arrow batches of a table."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    import pyarrow

    if isinstance(source, dict):
        return pyarrow.table(source)
    if hasattr(source, "__iter__"):
        return _stream(iter(source))
    raise InputError(f"{type(source).__name__} is no table: give paths, a table, a dict of arrays or batches")


def _source(source: Any) -> Any:
    found = paths(source)
    return batches(source) if found is None else found


def _stream(items: Any) -> Any:
    """Makes a stream of an iterator of batches, tables or dicts of arrays."""
    import pyarrow

    def made(item: Any) -> Any:
        if isinstance(item, dict):
            return pyarrow.record_batch(item)
        if isinstance(item, pyarrow.RecordBatch):
            return item
        return pyarrow.record_batch(item)

    first = next(items, None)
    if first is None:
        raise InputError("there are no batches, and so no types: give at least one, which may be empty")
    first = made(first)

    def rest() -> Any:
        yield first
        for item in items:
            yield made(item)

    return pyarrow.RecordBatchReader.from_batches(first.schema, rest())


def build(
    source: Any,
    path: Path,
    key: Columns | None = None,
    value: Columns | None = None,
    *,
    key_type: str | None = None,
    value_type: str | None = None,
    unique: str | None = None,
    sorted: bool = False,
    layout: str | None = None,
    keep: int | None = None,
    force: bool = False,
    no_header: bool = False,
    nulls: str = "error",
    interval: str | None = None,
    interval_end: str = "inclusive",
    overlap: str = "error",
    kmers: int | None = None,
    memory_bytes: int | None = None,
    threads: int = 0,
    temp_dir: Path | None = None,
    progress: Wanted = None,
) -> Built:
    """Builds the file `path`: complete or not at all.

    `source` is a path or a list of paths (CSV, TSV, NDJSON, Parquet, Arrow, npy; also compressed, folders, and
    patterns such as `part-*.csv`), a table of pyarrow, polars or pandas, a
    stream of Arrow batches, a dict of arrays, or an iterable of batches, which may be larger than memory. `key` and
    `value` are names of columns: the first and the second by default. Several values, separated by commas, make a
    record, and several keys, also as a list, a composite key: in the order of the first, then of the next. Their
    types are separated by commas, too. A key column of structs is such a key. `key_type="hash64"` and "prefix:auto" make short
    keys of texts, all different; keys that are not there may then be found: see `Index.approximate`. A file under that name is replaced, if it is an index: readers keep theirs.

    `unique` says what is done with equal keys: "first", "last", "error" or "sum" of the values; by default all tuples are kept. `sorted`
    promises sorted input. `nulls` says what becomes of rows with nulls: "error", "skip" (they are left out) or
    "default=V" (values become V; keys must be there). `keep` is the number of old generations to keep. `memory_bytes`
    limits the memory, and `temp_dir` is the folder for what exceeds it. `progress` is a function of phase, done and
    total, or True for a bar.

    `layout` names the sections, such as "lines,spine,grid". With "dictionary" in it equal texts, byte strings and
    records are stored once, with "plain" never, else where that is shorter.

    `interval` names the column of the last keys of intervals, which begin at the keys; with `interval_end="exclusive"`
    it has the first keys behind them. Networks of addresses are `key_type="cidr"`. A look-up then answers by the
    interval that holds the key. `overlap="last"` lets the later row win where intervals overlap.

    `kmers` is the number of bases of the k-mers of FASTA and FASTQ, which are the keys, each with its count; with
    `key_type="dna2"` a k-mer and its reverse complement are two, and `value_type="none"` leaves out the counts.

    Raises `InputError` if the source is refused, `BuildError` if the file cannot be written; nothing is written then.
    Time is that of a sort, about 1 s for 10 million tuples.

    >>> import pleachdb as pl
    >>> built = pl.build({"id": [3, 1, 2], "size": [30, 10, 20]}, "sizes.pleach")
    >>> built.tuples
    3
    """
    options = {
        "key": columns(key),
        "value": columns(value),
        "key_type": key_type,
        "value_type": value_type,
        "unique": unique,
        "sorted": sorted,
        "layout": layout,
        "keep": keep,
        "force": force,
        "no_header": no_header,
        "nulls": nulls,
        "interval": interval,
        "interval_end": interval_end,
        "overlap": overlap,
        "kmers": kmers,
        "memory_bytes": memory_bytes,
        "threads": threads,
        "temp_dir": temp_dir,
    }
    path = os.fspath(path)
    with Progress(progress, "build") as options["progress"]:
        return Built(path, **_native.build(_source(source), path, options))


def rebuild(
    path: Path,
    changes: Any,
    key: Columns | None = None,
    value: Columns | None = None,
    *,
    op: str | None = None,
    nulls: str = "error",
    method: str | None = None,
    keep: int | None = None,
    salvage: bool = False,
    approximate: bool = False,
    memory_bytes: int | None = None,
    threads: int = 0,
    temp_dir: Path | None = None,
    progress: Wanted = None,
) -> Rebuilt:
    """Makes the next generation of the file `path` from a batch of changes, while readers go on.

    `changes` is a table, as for `build`, with the columns `op`, key and value. `op` is "put" (one tuple replaces all
    tuples of the key), "add" (one more tuple) or "del" (all tuples of the key are removed; the value may be null).
    Rows apply in their order. `nulls` is that of `build`. `method` is "merge", "patch" or "auto".
    `approximate` permits a file of hashes or prefixes, in which a change of one key may meet another. Readers that call `refresh` see it.

    Raises `InputError` if the changes are refused and `DamagedError` or `BuildError` if the file cannot be read or
    written; the old generation is still there then. Time is one pass over the file.

    >>> import pleachdb as pl
    >>> _ = pl.build({"id": [3, 1, 2], "size": [30, 10, 20]}, "sizes.pleach")
    >>> done = pl.rebuild("sizes.pleach", {"op": ["put", "del"], "id": [4, 1], "size": [40, None]})
    >>> dict(pl.open("sizes.pleach").items())
    {2: 20, 3: 30, 4: 40}
    """
    options = {
        "key": columns(key),
        "value": columns(value),
        "op": op,
        "nulls": nulls,
        "method": method,
        "keep": keep,
        "salvage": salvage,
        "approximate": approximate,
        "memory_bytes": memory_bytes,
        "threads": threads,
        "temp_dir": temp_dir,
    }
    path = os.fspath(path)
    with Progress(progress, "rebuild") as options["progress"]:
        return Rebuilt(path, **_native.rebuild(path, _source(changes), options))


def compact(
    files: Iterable[Path],
    path: Path,
    *,
    unique: str | None = None,
    layout: str | None = None,
    keep: int | None = None,
    salvage: bool = False,
    force: bool = False,
    approximate: bool = False,
    threads: int = 0,
    progress: Wanted = None,
) -> Compacted:
    """Merges files of the same types into the file `path`: all tuples of all files.

    Among equal keys, those of an earlier file come first; `unique` keeps one. `approximate` permits
    hashes and prefixes, of which equal ones may stand for different keys. `salvage` leaves out damaged blocks
    instead of refusing their file. Raises `TypesError`, `DamagedError` or `BuildError`. Time is one pass over each.
    """
    options = {
        "unique": unique,
        "layout": layout,
        "keep": keep,
        "salvage": salvage,
        "force": force,
        "approximate": approximate,
        "threads": threads,
    }
    path = os.fspath(path)
    with Progress(progress, "compact") as options["progress"]:
        return Compacted(path, **_native.compact([os.fspath(file) for file in files], path, options))
