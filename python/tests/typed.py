"""A program of a user, for the checker of types."""

import numpy as np

import pleachdb as pl


def main(path: str) -> int:
    pl.build({"k": np.arange(10), "v": np.arange(10)}, path, unique="first")
    index: pl.Index = pl.open(path, verify="touched", threads=2)
    values, found = index.get_many([1, 2, 30])
    missing = int((~found).sum())
    with index as same:
        for key, value in same.items():
            missing += int(key != value)
    live: pl.Live = pl.live(path)
    report: pl.Report = pl.fsck(path)
    return missing if report.is_clean and not live.refresh() else 1
