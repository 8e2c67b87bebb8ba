"""Sets: equal to one file of the same rows, whatever their files."""

import bisect
import glob
import os
import pickle
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pleachdb as pl

KEYS = {
    "u32": lambda rng, count: rng.integers(0, 5000, count).astype(np.uint32),
    "u64": lambda rng, count: rng.integers(0, 1 << 40, count).astype(np.uint64),
    "i32": lambda rng, count: rng.integers(-5000, 5000, count).astype(np.int32),
    "i64": lambda rng, count: rng.integers(-(1 << 62), 1 << 62, count),
    "f64": lambda rng, count: np.round(rng.normal(0, 100, count), 1),
    "utf8": lambda rng, count: np.array([f"k{number:05}" for number in rng.integers(0, 9000, count)]),
    "bytes": lambda rng, count: pa.array([b"x" * int(n % 7) + str(n).encode() for n in rng.integers(0, 9000, count)]),
    "u128": lambda rng, count: [int(number) << 64 for number in rng.integers(0, 9000, count)],
}
VALUES = {
    "u32": lambda count: np.arange(count, dtype=np.uint32),
    "f64": lambda count: np.arange(count) / 4,
    "utf8": lambda count: pa.array([f"value {number}" for number in range(count)]),
}


def arrow(key_type, keys):
    if key_type == "u128":
        return pa.array([key.to_bytes(16, "big") for key in keys], pa.binary(16))
    return keys


def pair(folder, key_type, value_type, count, tuples, unique=None):
    """Builds a set and a file of the same rows."""
    keys = KEYS[key_type](np.random.default_rng(count), count)
    rows = {"k": arrow(key_type, keys), "v": VALUES[value_type](count)}
    options = {"unique": unique, "key_type": key_type if key_type == "u128" else None}
    built = pl.build_set(rows, folder / "set", partition_tuples=tuples, **options)
    pl.build(rows, folder / "file", **options)
    found, one = pl.open(folder / "set"), pl.open(folder / "file")
    assert (built.tuples, built.generation, built.files) == (len(one), 1, found.files)
    return found, one, keys


def probes(key_type, keys):
    """Keys that are there, keys beside them, and keys beyond both ends."""
    if key_type in ("u32", "u64", "i32", "i64"):
        wide = np.array(keys).astype(np.int64)
        return np.concatenate([wide, wide + 1, wide - 1, [-(1 << 63), (1 << 63) - 1]])
    if key_type == "f64":
        return np.concatenate([keys, keys + 0.05, [-np.inf, np.inf, np.nan]])
    if key_type == "u128":
        return [key for base in keys for key in (base, base + 1)] + [0, (1 << 128) - 1]
    texts = np.array(keys).tolist() if key_type == "utf8" else keys.to_pylist()
    more = "!" if key_type == "utf8" else b"!"
    return pa.array([None, *texts, *[text + more for text in texts], more[:0], more * 5, "~" if more == "!" else b"~"])


def same(left, right):
    if isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right):
            same(one, other)
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right)
    else:
        assert left.equals(right), (left, right)


@pytest.mark.parametrize("value_type", VALUES)
@pytest.mark.parametrize("key_type", KEYS)
@pytest.mark.parametrize("tuples", [7, 100, 5000])
def test_equal_to_one_file(tmp_path, key_type, value_type, tuples):
    found, one, keys = pair(tmp_path, key_type, value_type, 600, tuples)
    assert isinstance(found, pl.Set) and isinstance(found, pl.Index)
    asked = probes(key_type, keys)
    for threads in (1, 2):
        same(found.get_many(asked, threads=threads), one.get_many(asked, threads=threads))
        same(found.contains_many(asked, threads=threads), one.contains_many(asked, threads=threads))
        same(found.rank_many(asked, threads=threads), one.rank_many(asked, threads=threads))
        same(found.lower_bound_many(asked, threads=threads), one.lower_bound_many(asked, threads=threads))
        same(found.upper_bound_many(asked, threads=threads), one.upper_bound_many(asked, threads=threads))
        same(found.floor_many(asked, threads=threads), one.floor_many(asked, threads=threads))
        same(found.ceiling_many(asked, threads=threads), one.ceiling_many(asked, threads=threads))
        same(found.get_all_many(asked, threads=threads), one.get_all_many(asked, threads=threads))
        if key_type not in ("utf8", "bytes"):
            same(found.nearest_many(asked, threads=threads), one.nearest_many(asked, threads=threads))
    assert found.to_arrow().equals(one.to_arrow())
    assert list(found.items()) == list(one.items())
    assert (found.min(), found.max(), len(found), found.schema) == (one.min(), one.max(), len(one), one.schema)
    ranks = np.random.default_rng(1).integers(0, len(one) + 3, 500)
    same(found.select_many(ranks), one.select_many(ranks))
    same(found.select_many([len(one) + 1, 1 << 60]), one.select_many([len(one) + 1, 1 << 60]))
    for key in list(one.keys())[::50]:
        assert found[key] == one[key] and key in found
        assert (found.floor(key), found.ceiling(key)) == (one.floor(key), one.ceiling(key))
        assert found.range(None, key).read_all().equals(one.range(None, key).read_all())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    asked=st.lists(st.integers(-2, 42), max_size=20),
    tuples=st.integers(1, 12),
)
def test_oracle(tmp_path_factory, keys, asked, tuples):
    folder = tmp_path_factory.mktemp("set")
    values = list(range(len(keys)))
    pl.build_set({"k": pa.array(keys, pa.uint64()), "v": values}, folder / "s", partition_tuples=tuples, threads=1)
    found, ordered = pl.open(folder / "s"), sorted(keys)
    first = {}
    for key, value in zip(keys, values):
        first.setdefault(key, value)
    numbers = np.array(asked, np.int64)
    got, flags = found.get_many(numbers)
    assert got.tolist() == [first.get(key, 0) for key in asked]
    assert flags.tolist() == [key in first for key in asked]
    ranks, flags = found.rank_many(numbers)
    assert ranks.tolist() == [bisect.bisect_left(ordered, key) for key in asked]
    assert flags.tolist() == [key in first for key in asked]
    assert found.upper_bound_many(numbers).tolist() == [bisect.bisect_right(ordered, key) for key in asked]
    lows = [[key for key in ordered if key <= it] for it in asked]
    assert found.floor_many(numbers)[0].to_pylist() == [low[-1] if low else None for low in lows]
    nearest = [min(ordered, key=lambda key: (abs(key - max(it, 0)), key)) for it in asked]
    assert found.nearest_many(numbers)[0].to_pylist() == nearest


def test_borders_and_duplicates(tmp_path):
    keys = np.repeat(np.arange(50, dtype=np.uint64) * 10, 6)
    rows = {"k": keys, "v": np.arange(300, dtype=np.int64)}
    pl.build_set(rows, tmp_path / "s", partition_tuples=7)
    found = pl.open(tmp_path / "s")
    assert found.files > 20
    offsets, values = found.get_all_many(np.array([0, 5, 490, 250]))
    assert offsets.tolist() == [0, 6, 6, 12, 18]
    assert values.to_pylist() == [*range(6), *range(294, 300), *range(150, 156)]
    assert found.count_many([0, 15], [500, 16]).tolist() == [300, 0]
    # A border is known without a file.
    one = pl.open(tmp_path / "s")
    assert one.lower_bound_many([0, 495, 1000]).tolist() == [0, 300, 300]
    assert one.open_files == 0
    assert one[0] == 0 and one.open_files == 1


def test_other_containers(tmp_path):
    found, one, keys = pair(tmp_path, "u32", "utf8", 300, 20)
    asked = pa.chunked_array([pa.array([*keys[:5].tolist(), None], pa.uint32()), pa.array([1 << 31], pa.uint32())])
    assert found.get_many(asked).equals(one.get_many(asked))
    assert found.get_many(keys.tolist())[0].equals(one.get_many(keys.tolist())[0])
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(keys[:9])
    assert found.get_many(series).equals(one.get_many(series))
    found, one, keys = pair(tmp_path / "numbers", "i64", "f64", 300, 20) if (tmp_path / "numbers").mkdir() is None else ()
    out = np.empty(300, np.float64)
    assert found.get_many(keys[::-1], out=out)[0] is out
    same(out, one.get_many(keys[::-1])[0])


def test_logical_types_and_records(tmp_path):
    times = pa.array([datetime * 3_600_000_000 for datetime in range(200)], pa.timestamp("us"))
    rows = pa.table({"t": times, "a": pa.array(range(200), pa.int32()), "b": [f"b{n}" for n in range(200)]})
    pl.build_set(rows, tmp_path / "s", "t", "a,b", partitions=9)
    pl.build(rows, tmp_path / "f", "t", "a,b")
    found, one = pl.open(tmp_path / "s"), pl.open(tmp_path / "f")
    asked = np.array(["1970-01-01T05", "1970-01-02T00:00:01", "2000-01-01"], "datetime64[s]")
    same(found.get_many(asked), one.get_many(asked))
    same(found.nearest_many(asked), one.nearest_many(asked))
    assert found.schema == one.schema and found.to_arrow().equals(one.to_arrow())
    key = times[7].as_py()
    assert found[key] == one[key]


def test_intervals(tmp_path):
    lows = np.arange(0, 3000, 10, dtype=np.uint32)
    rows = {"k": lows, "end": lows + 6, "v": np.arange(300, dtype=np.uint32)}
    pl.build(rows, tmp_path / "f", "k", "v", interval="end")
    pl.build_set(rows, tmp_path / "s", "k", "v", interval="end", partition_tuples=9)
    found, one = pl.open(tmp_path / "s"), pl.open(tmp_path / "f")
    asked = np.arange(-2, 3010)
    same(found.get_many(asked), one.get_many(asked))
    same(found.rank_many(asked), one.rank_many(asked))
    assert found.contains_many([6, 7, 10]).tolist() == [True, False, True]
    assert found.to_arrow().equals(one.to_arrow()) and found[2995] == one[2995]


def test_rebuild_generations_rollback_sweep(tmp_path):
    pl.build_set({"k": range(100), "v": range(100)}, tmp_path / "s", partition_tuples=10)
    before = pl.open(tmp_path / "s")
    live = pl.live(tmp_path / "s")
    assert not before.refresh() and before[50] == 50
    done = pl.rebuild_set(tmp_path / "s", {"op": ["put", "del", "add"], "k": [11, 12, 13], "v": [70, None, 71]})
    assert (done.touched_files, done.carried_files, done.generation, done.tuples) == (1, 9, 2, 100)
    assert (done.puts, done.adds, done.dels, done.base_tuples) == (1, 1, 1, 100)
    assert before[11] == 11 and 12 in before and before.generation == 1
    kept = pickle.loads(pickle.dumps(before))
    assert before.refresh() and live.refresh()
    assert before[11] == 70 and 12 not in before and before.generation == 2
    assert isinstance(live.current, pl.Set) and live.current[11] == 70
    assert kept[11] == 11 and kept.generation == 1
    assert [one.number for one in pl.generations(tmp_path / "s")] == [1, 2]
    assert pl.open(pl.generations(tmp_path / "s")[0].path)[11] == 11
    assert pl.rollback(tmp_path / "s") == 3
    assert before.refresh() and before[11] == 11
    swept = pl.sweep(tmp_path / "s", keep=1, grace_s=0, dry_run=True)
    assert swept.generations == [1, 2] and len(glob.glob(f"{tmp_path}/s/manifests/*")) >= 3
    swept = pl.sweep(tmp_path / "s", keep=1)
    assert swept.kept == [1, 2, 3]
    time.sleep(0.05)
    swept = pl.sweep(tmp_path / "s", keep=1, grace_s=0)
    assert swept.kept == [3] and len(swept.files) == 1 and swept.bytes > 0
    assert pl.open(tmp_path / "s").to_arrow().num_rows == 100
    with pytest.raises(pl.InputError, match="keep=0"):
        pl.sweep(tmp_path / "s", keep=0)
    again = pl.build_set({"k": range(5), "v": range(5)}, tmp_path / "s")
    assert (again.generation, again.files, pl.open(tmp_path / "s")[4]) == (4, 1, 4)


@pytest.fixture
def broken(tmp_path):
    """A set whose second file is missing."""
    pl.build_set({"k": range(100), "v": range(100)}, tmp_path / "s", partition_tuples=10)
    name = sorted(glob.glob(f"{tmp_path}/s/files/*"), key=lambda path: pl.open(path).min())[1]
    os.rename(name, tmp_path / "gone")
    return tmp_path / "s", os.path.basename(name)


def test_missing_file(broken):
    path, name = broken
    found = pl.open(path)
    assert found.get_many([5, 35])[0].tolist() == [5, 35]
    for ask in (
        lambda: found.get_many([5, 12]),
        lambda: found.contains_many([12]),
        lambda: found.rank_many([12]),
        lambda: found.get(12),
        lambda: 12 in found,
        lambda: found.select_many([12]),
        lambda: found.floor_many([12]),
        lambda: list(found.items()),
    ):
        with pytest.raises((pl.NotFoundError, pa.ArrowException, OSError), match=name):
            ask()
    report = pl.fsck(path)
    assert not report and any(name in finding for finding in report.findings)


def test_partial(broken):
    path, name = broken
    found = pl.open(path, partial=True)
    assert found.partial and found.left_out == []
    values, flags = found.get_many(range(100))
    assert flags.tolist() == [not 10 <= key < 20 for key in range(100)]
    assert values.tolist() == [0 if 10 <= key < 20 else key for key in range(100)]
    assert found.contains_many([9, 10, 19, 20]).tolist() == [True, False, False, True]
    assert found.get(12) is None and 12 not in found
    [out] = found.left_out
    assert out.name.endswith(name) and out.tuples == 10 and name in out.reason
    assert found.to_arrow().num_rows == 90 and len(list(found.keys())) == 90
    # Ranks need the file.
    with pytest.raises(pl.NotFoundError, match=name):
        found.rank_many([12])
    assert found.rank_many([25])[0].tolist() == [25]
    with pytest.raises(pl.InputError, match="partial"):
        pl.open(next(path.glob("files/*")), partial=True)


def test_damaged_file(tmp_path):
    pl.build_set({"k": range(1000), "v": range(1000)}, tmp_path / "s", partition_tuples=100)
    name = sorted(glob.glob(f"{tmp_path}/s/files/*"), key=lambda path: pl.open(path).min())[3]
    os.chmod(name, 0o644)
    middle = os.path.getsize(name) // 2
    with open(name, "r+b") as file:
        file.seek(middle)
        byte = file.read(1)
        file.seek(middle)
        file.write(bytes([byte[0] ^ 255]))
    base = os.path.basename(name)
    assert not pl.fsck(tmp_path / "s") and any(base in it for it in pl.fsck(tmp_path / "s").findings)
    found = pl.open(tmp_path / "s", verify="full")
    assert found[5] == 5
    with pytest.raises(pl.DamagedError, match=base):
        found.get_many([350])
    partial = pl.open(tmp_path / "s", verify="full", partial=True)
    assert partial.contains_many([5, 350, 450]).tolist() == [True, False, True]


def test_refused(tmp_path):
    rows = {"k": range(100), "v": range(100)}
    pl.build_set(rows, tmp_path / "s", partition_tuples=10)
    found = pl.open(tmp_path / "s")
    with pytest.raises(pl.TypesError, match="texts or bytes"):
        found.get_many(["a"])
    with pytest.raises(pl.TypesError, match="float"):
        found.get_many([0.5])
    with pytest.raises(pl.TypesError, match="not sets"):
        pl.open(tmp_path / "s", device="cuda")
    with pytest.raises(pl.NotFoundError):
        pl.rebuild_set(tmp_path / "none", {"op": ["del"], "k": [1], "v": [None]})
    with pytest.raises(pl.InputError, match="partition"):
        pl.build_set(rows, tmp_path / "t", partition_tuples=0)
    with pytest.raises(pl.InputError, match="exclude"):
        pl.build_set(rows, tmp_path / "t", partition_tuples=1, partitions=1)
    with pytest.raises(pl.InputError):
        pl.build_set({"k": [1, 1], "v": [1, 2]}, tmp_path / "t", unique="error")
    assert not (tmp_path / "t").exists()
    found.close()
    with pytest.raises(pl.ClosedError):
        found.get(1)
    assert repr(found) == "<pleachdb.Set, closed>"


def test_relational_operators(tmp_path):
    rows = {"k": range(100), "v": range(100)}
    pl.build_set(rows, tmp_path / "s", partition_tuples=10)
    pl.build(rows, tmp_path / "f")
    other = {"k": [5, 50, 500], "w": [1, 2, 3]}
    joined = pl.join(pl.open(tmp_path / "s"), other)
    assert joined.equals(pl.join(pl.open(tmp_path / "f"), other)) and joined.num_rows == 2
    assert pl.select(tmp_path / "s", "key >= 90").num_rows == 10


def test_empty(tmp_path):
    pl.build_set({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}, tmp_path / "s")
    found = pl.open(tmp_path / "s")
    assert (len(found), found.files, found.min(), list(found)) == (0, 0, None, [])
    assert found.get_many([1, 2])[1].tolist() == [False, False]
    assert found.nearest_many([1])[0].to_pylist() == [None] and found.to_arrow().num_rows == 0
    assert "0 files" in repr(found)


def test_interrupted(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pl.build_set({"k": np.arange(300_000), "v": np.arange(300_000)}, tmp_path / "s", progress=stop)
    assert not (tmp_path / "s").exists()


def test_million_keys_over_many_files(tmp_path):
    count, files = 1_000_000, 200
    keys = np.arange(count, dtype=np.uint64) * 3
    pl.build_set({"k": keys, "v": keys}, tmp_path / "s", partitions=files, sorted=True)
    found = pl.open(tmp_path / "s")
    assert found.files == files
    asked = np.random.default_rng(5).integers(0, 3 * count, count)
    values, flags = found.get_many(asked)
    same(flags, asked % 3 == 0)
    same(values, np.where(flags, asked, 0).astype(np.uint64))
    assert found.open_files == files
