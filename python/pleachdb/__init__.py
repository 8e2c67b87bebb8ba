"""Pleach: a persistent, ordered index of (key, value) tuples in one file, searched in place.

    import numpy as np
    import pleachdb as pl

    pl.build({"order": np.arange(1000), "customer": np.arange(1000) % 7}, "orders.pleach")
    orders = pl.open("orders.pleach")
    values, found = orders.get_many(np.array([5, 900, 5000]))
"""

import os as _os

from ._build import Built, Compacted, Rebuilt, build, compact, rebuild
from ._care import Generation, Report, contain_sigbus, export, fsck, generations, rollback, upgrade
from ._index import Index, Live
from ._index import open_index as open
from ._relation import difference, intersect, join, product, project, reduce, select, union
from ._set import BuiltSet, LeftOut, RebuiltSet, Set, Swept, build_set, rebuild_set, sweep
from .errors import (
    BuildError,
    ClosedError,
    DamagedError,
    DeviceError,
    InputError,
    NotFoundError,
    PleachError,
    TypesError,
)

__version__ = "0.1.0"

_Path = str | _os.PathLike[str]


def live(
    path: _Path,
    *,
    verify: str = "header",
    resident: bool = False,
    structure: str = "auto",
    device: str | int | None = None,
    threads: int | None = None,
    partial: bool = False,
) -> Live:
    """Opens a file or a set whose generations are followed: see `Live`."""
    return Live(
        path,
        verify=verify,
        resident=resident,
        structure=structure,
        device=device,
        threads=threads,
        partial=partial,
    )


def _command() -> None:
    """Runs the command line."""
    import signal
    import sys

    from . import _native

    # The command handles interruptions itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command(["pleach", *sys.argv[1:]]))


__all__ = [
    "BuildError",
    "Built",
    "BuiltSet",
    "ClosedError",
    "Compacted",
    "DamagedError",
    "DeviceError",
    "Generation",
    "Index",
    "InputError",
    "LeftOut",
    "Live",
    "NotFoundError",
    "PleachError",
    "Rebuilt",
    "RebuiltSet",
    "Report",
    "Set",
    "Swept",
    "TypesError",
    "build",
    "build_set",
    "compact",
    "contain_sigbus",
    "difference",
    "export",
    "fsck",
    "generations",
    "intersect",
    "join",
    "live",
    "open",
    "product",
    "project",
    "rebuild",
    "rebuild_set",
    "reduce",
    "rollback",
    "select",
    "sweep",
    "union",
    "upgrade",
]
