"""Look-ups of many keys in pleachdb and in what Python programs use instead. Answers are compared.

    python against.py FOLDER TUPLES [KEYS [RATE]]

Keys are random 64-bit integers in shuffled order; half of those asked are missing. The first table is of numbers, the
second of texts. A row is the median of its runs, which alternate with those of pleachdb, in nanoseconds a key. RATE is
the program of `cargo build --release -p pleach-batch --example rate`, which answers the same arrays in Rust. Rows whose
library is not installed are left out, and that is said.
"""

import gc
import os
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

import pleachdb as pl

TURNS = 3
#: Keys that are asked one by one.
SOME = 1_000_000


def seconds(ask):
    started = time.perf_counter()
    answer = ask()
    return time.perf_counter() - started, answer


class Rows:
    """Prints rows, and compares their answers."""

    def __init__(self, count, expected):
        self.count, self.expected = count, expected

    def row(self, name, ask, answer=lambda found: found, count=None, turns=TURNS):
        count = count or self.count
        times = []
        for _ in range(turns):
            took, found = seconds(ask)
            times.append(took)
        assert (np.asarray(answer(found)) == self.expected[:count]).all(), f"{name}: wrong answers"
        self.tell(name, statistics.median(times) * 1e9 / count)
        gc.collect()

    def tell(self, name, nanoseconds, unit="ns a key"):
        print(f"  {name:44} {nanoseconds:9.1f} {unit}", flush=True)


def rust(program, path, threads, *arrays):
    done = subprocess.run([program, path, str(threads), *arrays], capture_output=True, text=True, check=True)
    return float(done.stdout)


def pleach(rows, index, path, keys, arrays, program, answer):
    """pleachdb and Rust, in turns."""
    for threads in (1, 0):
        ask = lambda: index.get_many(keys, threads=threads)
        ask()
        python, native = [], []
        for _ in range(5):
            took, found = seconds(ask)
            python.append(took * 1e9 / rows.count)
            if program:
                native.append(rust(program, path, threads, *arrays))
        assert (np.asarray(answer(found)) == rows.expected).all()
        name = "1 thread" if threads else f"{os.cpu_count()} threads"
        rows.tell(f"pleachdb.get_many, {name}", statistics.median(python))
        if native:
            rows.tell(f"the same in Rust, {name}", statistics.median(native))
            rows.tell("ratio", statistics.median(python) / statistics.median(native), "")


def fresh(path, key):
    """A process that has just started: import, open, first batch of 1,000 keys."""
    program = f"""
import time, numpy as np
started = time.perf_counter()
import pleachdb as pl
imported = time.perf_counter()
keys = {key}
index = pl.open({path!r})
index.get_many(keys, threads=1)
print(1e3 * (time.perf_counter() - imported), 1e3 * (imported - started))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    opened, imported = map(float, done.stdout.split())
    print(f"  a fresh process: open and first batch {opened:.2f} ms, import {imported:.0f} ms", flush=True)


def lmdb_rows(rows, folder, ordered, by_key, asked):
    try:
        import lmdb
    except ImportError:
        print("  lmdb is not installed")
        return
    path = os.path.join(folder, "lmdb")
    shutil.rmtree(path, ignore_errors=True)
    with lmdb.open(path, map_size=1 << 36, sync=False) as environment:
        with environment.begin(write=True) as write:
            raw, values = (ordered ^ np.int64(-(2**63))).astype(">i8").tobytes(), by_key.astype("<i8").tobytes()
            items = ((raw[8 * at : 8 * at + 8], values[8 * at : 8 * at + 8]) for at in range(len(ordered)))
            with write.cursor() as cursor:
                cursor.putmulti(items, append=True)
        some = (asked[:SOME] ^ np.int64(-(2**63))).astype(">i8").tobytes()
        listed = [some[at : at + 8] for at in range(0, len(some), 8)]

        def ask():
            with environment.begin() as read, read.cursor() as cursor:
                return {key: value for key, value in cursor.getmulti(listed)}

        def answer(found):
            return [int.from_bytes(found[key], "little") if key in found else 0 for key in listed]

        rows.row("py-lmdb, cursor.getmulti", ask, answer, min(SOME, rows.count))


def frames(rows, keys, values, asked):
    """Data frames: what keeps an index between calls, and what makes one for each."""
    try:
        import pandas

        series = pandas.Series(values, index=keys)
        series.index.get_indexer(asked[:10])
        rows.row("pandas reindex (index kept)", lambda: series.reindex(asked, fill_value=0).to_numpy())
        left, right = pandas.DataFrame({"k": asked}), pandas.DataFrame({"k": keys, "v": values})
        del series
        merge = lambda: left.merge(right, on="k", how="left")["v"].fillna(0)
        # A merge makes floats of integers with gaps: the answers are compared by floats.
        expected, rows.expected = rows.expected, rows.expected.astype(float)
        rows.row("pandas merge", merge, lambda found: found.to_numpy(), turns=2)
        rows.expected = expected
        del left, right
    except ImportError:
        print("  pandas is not installed")
    try:
        import polars

        right, left = polars.DataFrame({"k": keys, "v": values}), polars.DataFrame({"k": asked})
        join = lambda: left.join(right, on="k", how="left", maintain_order="left")["v"].fill_null(0)
        rows.row("polars join", join, lambda found: found.to_numpy(), turns=2)
    except ImportError:
        print("  polars is not installed")


def duckdb_row(rows, keys, values, asked):
    try:
        import duckdb
    except ImportError:
        print("  duckdb is not installed")
        return
    right, left = pa.table({"k": keys, "v": values}), pa.table({"n": np.arange(len(asked)), "k": asked})
    connection = duckdb.connect()
    connection.register("r", right)
    connection.register("l", left)
    query = "select n, coalesce(v, 0) v from l left join r using (k)"

    def answer(found):
        order = np.argsort(found["n"].to_numpy())
        return found["v"].to_numpy()[order]

    rows.row("DuckDB join of Arrow tables", lambda: connection.sql(query).to_arrow_table(), answer, turns=2)


def of_numbers(folder, tuples, count, program):
    random = np.random.default_rng(1)
    keys = random.integers(-(2**63), 2**63 - 1, tuples)
    values = random.integers(0, 2**52, tuples)
    asked = keys[random.integers(0, tuples, count)]
    asked[::2] = random.integers(-(2**63), 2**63 - 1, len(asked[::2]))
    order = np.argsort(keys)
    ordered, by_key = keys[order], values[order]
    at = np.minimum(np.searchsorted(ordered, asked), tuples - 1)
    expected = np.where(ordered[at] == asked, by_key[at], 0)
    del order, at
    path, saved = os.path.join(folder, f"n{tuples}.pleach"), os.path.join(folder, "asked.npy")
    pl.build({"k": ordered, "v": by_key}, path, sorted=True)
    np.save(saved, asked)
    rows = Rows(count, expected)
    print(f"{tuples:,} tuples (int64, int64), {count:,} keys", flush=True)
    index = pl.open(path)
    fresh(path, "np.arange(1000)")
    pleach(rows, index, path, asked, [saved], program, lambda pair: pair[0])

    def searched():
        at = np.searchsorted(ordered, asked)
        at[at == tuples] = 0
        return np.where(ordered[at] == asked, by_key[at], 0)

    rows.row("numpy.searchsorted, take, where (kept)", searched, turns=2)
    lmdb_rows(rows, folder, ordered, by_key, asked)
    frames(rows, keys, values, asked)
    duckdb_row(rows, keys, values, asked)
    table = dict(zip(keys.tolist(), values.tolist()))
    listed = asked[:SOME].tolist()
    rows.row("dict, one by one (kept)", lambda: [table.get(key, 0) for key in listed], count=min(SOME, count))
    del table
    rows.row("pleachdb, index[key] one by one", lambda: [index.get(key, 0) for key in listed], count=min(SOME, count), turns=1)


def of_texts(folder, tuples, count, program):
    random = np.random.default_rng(2)
    numbers = np.unique(random.integers(0, 2**60, tuples))
    random.shuffle(numbers)
    letters = pa.array([f"id-{number:x}" for number in numbers])
    values = pa.array(np.arange(len(numbers)))
    path = os.path.join(folder, "texts.pleach")
    pl.build(pa.table({"k": letters, "v": values}), path)
    ranks = random.integers(0, len(numbers), count)
    missing = np.arange(count) % 2 == 0
    texts = letters.take(pa.array(ranks)).to_pylist()
    asked = pa.array([text + "!" if gone else text for text, gone in zip(texts, missing)], pa.large_utf8())
    expected = np.where(missing, 0, ranks)
    rows = Rows(count, expected)
    saved = [os.path.join(folder, "offsets.npy"), os.path.join(folder, "bytes.npy")]
    np.save(saved[0], np.frombuffer(asked.buffers()[1], np.int64)[: count + 1])
    np.save(saved[1], np.frombuffer(asked.buffers()[2], np.uint8))
    print(f"{len(numbers):,} tuples (utf8, int64), {count:,} keys", flush=True)
    index = pl.open(path)
    pleach(rows, index, path, asked, saved, program, lambda found: found.fill_null(0))
    table = dict(zip(letters.to_pylist(), values.to_pylist()))
    listed = asked[:SOME].to_pylist()
    rows.row("dict, one by one (kept)", lambda: [table.get(key, 0) for key in listed], count=min(SOME, count))


def main(folder, tuples, count="10000000", program=None):
    tuples, count = int(float(tuples)), int(float(count))
    print(f"{os.cpu_count()} processors, pleachdb {pl.__version__}, numpy {np.__version__}, pyarrow {pa.__version__}")
    of_numbers(folder, tuples, count, program)
    if tuples <= 10_000_000:
        of_texts(folder, min(tuples, 4_000_000), min(count, 4_000_000), program)


if __name__ == "__main__":
    main(*sys.argv[1:])
