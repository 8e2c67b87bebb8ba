"""Look-ups of many keys in pleachdb and in what Python programs use instead. Answers are compared.

    python against.py [TUPLES [KEYS]]

Keys are random 64-bit integers in shuffled order. Each row is a median of 5 runs, in nanoseconds a key. Rows whose
library is not installed are left out, and that is said.
"""

import os
import statistics
import sys
import tempfile
import time

import numpy as np

import pleachdb as pl


def measured(name, keys, ask, expected, check, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = ask()
        times.append(time.perf_counter() - start)
    answer = check(answer)
    assert (answer == expected).all(), f"{name}: wrong answers"
    print(f"{name:34} {statistics.median(times) * 1e9 / len(keys):10.1f} ns a key", flush=True)


def main():
    tuples = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    count = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10_000_000
    random = np.random.default_rng(1)
    keys = random.integers(-(2**63), 2**63 - 1, tuples)
    values = random.integers(0, 2**62, tuples)
    asked = keys[random.integers(0, tuples, count)]
    half = asked.copy()
    half[::2] = random.integers(-(2**63), 2**63 - 1, len(half[::2]))
    order = np.argsort(keys)
    ordered, by_key = keys[order], values[order]
    at = np.minimum(np.searchsorted(ordered, half), tuples - 1)
    expected = np.where(ordered[at] == half, by_key[at], 0)
    print(f"{tuples} tuples, {count} keys, half of them missing, {os.cpu_count()} processors")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.pleach")
        pl.build({"k": keys, "v": values}, path)
        start = time.perf_counter()
        index = pl.open(path)
        index.get_many(half[:1000], threads=1)
        print(f"{'pleachdb: open and first batch':34} {(time.perf_counter() - start) * 1e3:10.2f} ms")
        for threads in (1, 0):
            name = f"pleachdb.get_many, {threads or 'all'} thread{'s' if threads != 1 else ''}"
            measured(name, half, lambda: index.get_many(half, threads=threads), expected, lambda pair: pair[0])

        def searched():
            at = np.searchsorted(ordered, half)
            at[at == tuples] = 0
            return np.where(ordered[at] == half, by_key[at], 0)

        measured("numpy.searchsorted and take", half, searched, expected, lambda answer: answer, 1)
        some = half[: min(count, 1_000_000)]
        table = dict(zip(keys.tolist(), values.tolist()))
        listed = some.tolist()
        measured("dict, one by one", some, lambda: [table.get(key, 0) for key in listed], expected[: len(some)], np.array)
        del table
        try:
            import pandas

            series = pandas.Series(values, index=keys)
            series = series[~series.index.duplicated()]
            series.index.get_indexer(half[:10])
            measured("pandas reindex", half, lambda: series.reindex(half, fill_value=0).to_numpy(), expected, lambda a: a, 2)
        except ImportError:
            print("pandas is not installed")
        try:
            import polars

            right = polars.DataFrame({"k": keys, "v": values})
            left = polars.DataFrame({"k": half})
            joined = lambda: left.join(right, on="k", how="left", maintain_order="left")["v"].fill_null(0).to_numpy()
            measured("polars join", half, joined, expected, lambda answer: answer, 2)
        except ImportError:
            print("polars is not installed")


if __name__ == "__main__":
    main()
