"""The care of files: checking, generations, export."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._build import Path


@dataclass(frozen=True)
class Report:
    """What `fsck` found. It is true if the file is intact."""

    #: "clean", "damaged" or "foreign".
    verdict: str
    #: Blocks and bytes that were checked.
    blocks: int
    bytes: int
    #: None if the file could not be read so far.
    tuples: int | None
    #: A line for each fault: what, where, what to do.
    findings: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether the file is intact."""
        return self.verdict == "clean"

    def __bool__(self) -> bool:
        return self.is_clean


@dataclass(frozen=True)
class Generation:
    """A generation of a file."""

    number: int
    path: str
    tuples: int | None
    file_bytes: int | None
    #: Whether it is the one under the name of the file.
    is_current: bool


def fsck(path: Path, *, threads: int = 0) -> Report:
    """Checks all checksums, the order, separators and padding of a file, or of each file of a set.

    Files of a set are also compared with its manifest. It never writes. O(bytes).
    """
    return Report(**_native.fsck(os.fspath(path), threads))


def generations(path: Path) -> list[Generation]:
    """Lists the generations of a file: those that were kept, oldest first, and the current one. Also those of a set.

    The path of a generation of a set is that of its manifest, which `pleachdb.open` opens.
    """
    found = _native.generations(os.fspath(path))
    return [Generation(**{**entry, "path": os.fspath(entry["path"])}) for entry in found]


def rollback(path: Path, generation: int | None = None, *, keep: int | None = None, force: bool = False) -> int:
    """Publishes a kept generation anew: the one with this number, or the newest. Returns the number of the new one.

    The file itself may be damaged or missing. Raises `BuildError` if the generation is not kept.
    """
    return _native.rollback(os.fspath(path), generation, {"keep": keep, "force": force})[1]


def upgrade(path: Path) -> None:
    """Gives a file of format 0.13, the last before 1.0, and its kept generations the form of this version.

    Tuples, sections and generation stay. Every block is verified, and the file is replaced in one step. A file of
    this version stays as it is. Raises `DamagedError` for a damaged file, and for one of another version.
    """
    _native.execute(["pleach", "upgrade", "--quiet", "--", os.fspath(path)])


def export(source: Any, path: Path, *, format: str | None = None, force: bool = False) -> None:
    """Writes the tuples of an index or a file as a table, in the order of keys: complete or not at all.

    The format is that of the extension of `path` (.csv, .tsv, .parquet, .arrow) or `format`. Memory does not grow
    with the file. Building from the table makes the same file. Raises `DamagedError` if a block is damaged.
    """
    words = ["pleach", "export", "--quiet", "-o", os.fspath(path)]
    words += ["--format", format] if format is not None else []
    words += ["--force"] if force else []
    _native.execute([*words, "--", os.fspath(getattr(source, "path", source))])


def contain_sigbus() -> None:
    """Makes truncation of a mapped file a `DamagedError` instead of the end of the process.

    It installs a handler of SIGBUS for the process; other faults pass to the handler that was there before. Call it
    after `faulthandler.enable()`. Without it, a process that reads a mapped file which another program has truncated
    is ended by SIGBUS, unless it opened the file with `resident=True`.
    """
    _native.contain_sigbus()
