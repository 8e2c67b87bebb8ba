"""Pleach files and sets in SQL.

`Table` and `register` make a file or a set a table of the package `datafusion`. `Session` runs SQL by an engine of its
own, which also makes joins by look-ups and writes files and sets.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._native import ENGINE, Rows, Session, Table, __version__, check_version
from .errors import DamagedError, InputError, NotFoundError, PleachError, VersionError

if TYPE_CHECKING:
    from datafusion import SessionContext

__all__ = [
    "ENGINE",
    "DamagedError",
    "InputError",
    "NotFoundError",
    "PleachError",
    "Rows",
    "Session",
    "Table",
    "VersionError",
    "__version__",
    "check_version",
    "register",
]


def register(
    ctx: SessionContext, name: str, path: str | os.PathLike[str], generation: int | None = None
) -> Table:
    """Makes the file or the set at `path` a table of a session of the package `datafusion`, and returns it.

    Raises `VersionError` before anything else if that package has another major version than this module.
    """
    check_version()
    table = Table(path, generation)
    ctx.register_table(name, table)
    return table
