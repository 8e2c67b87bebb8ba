"""Sets: tables of several files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Iterator

from . import _native
from ._build import Built, Columns, Path, _source, columns
from ._index import Index, _python, open_index
from ._progress import Progress, Wanted
from .errors import TypesError


@dataclass(frozen=True)
class LeftOut:
    """A file that answers were made without: its name, the number of its tuples, and why it cannot be opened."""

    name: str
    tuples: int
    reason: str


@dataclass(frozen=True)
class BuiltSet(Built):
    """A generation of a set that was built: see `Built`. `path` is the folder."""

    #: Number of files.
    files: int = field(kw_only=True)


@dataclass(frozen=True)
class RebuiltSet(BuiltSet):
    """What a rebuild of a set made, and what became of the changes: see `Rebuilt`."""

    #: Tuples of the generation before.
    base_tuples: int = field(kw_only=True)
    #: Files that the changes met, files that were written, and files that both generations have.
    touched_files: int = field(kw_only=True)
    written_files: int = field(kw_only=True)
    carried_files: int = field(kw_only=True)
    #: Rows with "put", "add" and "del".
    puts: int = field(kw_only=True)
    adds: int = field(kw_only=True)
    dels: int = field(kw_only=True)
    #: Changes that a later one of the same batch replaced.
    superseded: int = field(kw_only=True)
    #: Deletes that found nothing.
    absent: int = field(kw_only=True)


@dataclass(frozen=True)
class Swept:
    """What a sweep did."""

    #: Generations that are kept, and those whose manifests were deleted.
    kept: list[int]
    generations: list[int]
    #: Files that were deleted, and files that no kept generation names and that are too young to be deleted.
    files: list[str]
    young: list[str]
    #: Bytes of the files that were deleted.
    bytes: int


class Set(Index):
    """An open set, one generation of it. Made by `pleachdb.open` of a folder.

    It answers as one file of its tuples would: it has the methods of an `Index`. A batch of keys is divided among the
    files that can have them, and files are opened as they are asked. A file that is missing or damaged is an error
    that names it, unless the set was opened with `partial=True`. Relational operators copy it into
    memory, and devices take files alone.
    """

    __slots__ = ()

    def __copy__(self) -> Set:
        return Set(self._open, self._options)

    def __reduce__(self) -> Any:
        return _opened, (os.path.abspath(self._open.manifest), self._options)

    def __repr__(self) -> str:
        if self._table is None:
            return "<pleachdb.Set, closed>"
        schema, files = self.schema, self.files
        tuples = f"{len(self):,} {'tuple' if len(self) == 1 else 'tuples'}"
        of = f"{files:,} {'file' if files == 1 else 'files'}"
        return f"<pleachdb.Set {self.path!r}: {of}, {tuples}, {schema['key']} -> {schema['value']}>"

    @property
    def files(self) -> int:
        """The number of files."""
        return int(self._open.files)

    @property
    def open_files(self) -> int:
        """The number of files that are open now."""
        return int(self._open.open_files)

    @property
    def partial(self) -> bool:
        """Whether the set answers without files that cannot be opened."""
        return bool(self._options.get("partial"))

    @property
    def left_out(self) -> list[LeftOut]:
        """The files that answers were made without so far, in the order of their keys; none unless `partial` is set."""
        return [LeftOut(*out) for out in self._open.left_out]

    def refresh(self) -> bool:
        """Switches to the newest generation. Returns whether there was a newer one. Files that both have stay open."""
        table = self._open.next()
        if table is not None:
            self._table = table
        return table is not None

    def _on(self, number: int) -> Any:
        text = f"a device takes files, not sets: {self.path}: open a file of the set, or ask by keys of the host"
        raise TypesError(text)

    def _pieces(self) -> Iterator[tuple[list[Any], list[Any]]]:
        table = self._open
        for batch in self.range(batch_rows=4096):
            values = batch.column(1).to_pylist() if batch.num_columns > 1 else [None] * batch.num_rows
            yield _python(batch.column(0), table), values


def _opened(path: str, options: dict[str, Any]) -> Index:
    return open_index(path, **options)


def build_set(
    source: Any,
    path: Path,
    key: Columns | None = None,
    value: Columns | None = None,
    *,
    partition_tuples: int | None = None,
    partitions: int | None = None,
    key_type: str | None = None,
    value_type: str | None = None,
    unique: str | None = None,
    sorted: bool = False,
    layout: str | None = None,
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
) -> BuiltSet:
    """Builds a set in the folder `path`, or its next generation if there is one: complete or not at all.

    Options are those of `build`. `partition_tuples` is the number of tuples of a file, or `partitions` the number of
    files. Tuples with equal keys are always in one file. Files are written several at a time, as far as `memory_bytes`
    allows. The generation before stays until a `sweep`.

    Raises `InputError` if the source is refused, and `BuildError` if a file cannot be written or if another process
    published a generation meanwhile; the set is then as it was.

    >>> import pleachdb as pl
    >>> built = pl.build_set({"id": range(1000), "size": range(1000)}, "sizes", partition_tuples=100)
    >>> built.files, len(pl.open("sizes"))
    (10, 1000)
    """
    options: dict[str, Any] = {
        "key": columns(key),
        "value": columns(value),
        "partition_tuples": partition_tuples,
        "partitions": partitions,
        "key_type": key_type,
        "value_type": value_type,
        "unique": unique,
        "sorted": sorted,
        "layout": layout,
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
        return BuiltSet(path, **_native.build_set(_source(source), path, options))


def rebuild_set(
    path: Path,
    changes: Any,
    key: Columns | None = None,
    value: Columns | None = None,
    *,
    op: str | None = None,
    nulls: str = "error",
    memory_bytes: int | None = None,
    threads: int = 0,
    temp_dir: Path | None = None,
    progress: Wanted = None,
) -> RebuiltSet:
    """Makes the next generation of the set `path` from a batch of changes, while readers go on.

    `changes` are those of `rebuild`. Only the files that they meet are written anew; the generations share all others.
    A file that grows past twice the tuples of a partition is divided. Readers that call `refresh` see the changes.

    Raises `InputError` if the changes are refused, and `DamagedError` or `BuildError` if a file cannot be read or
    written, or if another process published a generation meanwhile; the set is then as it was.

    >>> import pleachdb as pl
    >>> _ = pl.build_set({"id": range(100), "size": range(100)}, "parcels", partition_tuples=10)
    >>> done = pl.rebuild_set("parcels", {"op": ["put", "del"], "id": [11, 12], "size": [40, None]})
    >>> done.touched_files, pl.open("parcels")[11]
    (1, 40)
    """
    options: dict[str, Any] = {
        "key": columns(key),
        "value": columns(value),
        "op": op,
        "nulls": nulls,
        "memory_bytes": memory_bytes,
        "threads": threads,
        "temp_dir": temp_dir,
    }
    path = os.fspath(path)
    with Progress(progress, "rebuild") as options["progress"]:
        return RebuiltSet(path, **_native.rebuild_set(path, _source(changes), options))


def sweep(path: Path, *, keep: int = 2, grace_s: float = 24 * 60 * 60, dry_run: bool = False) -> Swept:
    """Deletes old generations of a set, and files that no kept generation names.

    `keep` is the number of generations to keep, the current one included. Files that are younger than `grace_s`
    seconds stay: a build may not have published them yet, and a reader may use them. `dry_run` deletes nothing.
    """
    return Swept(**_native.sweep(os.fspath(path), keep, grace_s, dry_run))
