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
    done: pl.Rebuilt = pl.rebuild(path, {"op": ["put"], "k": [3], "v": [4]}, keep=1, progress=True)
    merged: pl.Compacted = pl.compact([path], path + "2", unique="first")
    pl.export(index.path, path + ".csv")
    newest: list[pl.Generation] = pl.generations(path)
    missing += done.puts + merged.tuples + newest[-1].number
    joined = pl.join({"k": [1], "v": [2]}, path, "left", threads=1)
    joined = pl.join({"k": [1], "v": [2]}, path, asof="nearest", tolerance=2, threads=1)
    missing += len(joined)
    live: pl.Live = pl.live(path)
    report: pl.Report = pl.fsck(path)
    return missing if report.is_clean and not live.refresh() else 1


def sets(path: str) -> int:
    built: pl.BuiltSet = pl.build_set({"k": np.arange(10), "v": np.arange(10)}, path, partition_tuples=3, threads=1)
    index = pl.open(path, partial=True)
    assert isinstance(index, pl.Set)
    missing: list[pl.LeftOut] = index.left_out
    done: pl.RebuiltSet = pl.rebuild_set(path, {"op": ["put"], "k": [3], "v": [4]})
    swept: pl.Swept = pl.sweep(path, keep=1, grace_s=60, dry_run=True)
    return built.files + index.files + len(missing) + done.touched_files + len(swept.young)
