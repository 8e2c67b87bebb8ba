"""Relational operators, against plain Python."""

import collections
import datetime
import itertools
import os
import re
import threading

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import pleachdb as pl

try:
    import polars
except ImportError:  # it has no wheel for free-threaded builds of CPython
    polars = None

A = {"id": [5, 1, 3, 3], "a": [50, 10, 30, 31]}
B = {"id": [3, 4, 5, 5], "b": [0.3, 0.4, 0.5, 0.55]}


def pairs(table, *names):
    return list(zip(*(table[name].to_pylist() for name in table.column_names)))


@pytest.fixture(params=["tables", "files", "paths", "mixed"])
def inputs(request, tmp_path):
    for name, table in [("a", A), ("b", B)]:
        pl.build(table, tmp_path / f"{name}.pleach")
    return {
        "tables": (pa.table(A), polars.DataFrame(B) if polars else pa.table(B)),
        "files": (pl.open(tmp_path / "a.pleach"), pl.open(tmp_path / "b.pleach")),
        "paths": (tmp_path / "a.pleach", str(tmp_path / "b.pleach")),
        "mixed": (A, pl.open(tmp_path / "b.pleach")),
    }[request.param]


def test_every_operator(inputs):
    a, b = inputs
    assert pairs(pl.select(a, "value > 30")) == [(3, 31), (5, 50)]
    assert pairs(pl.project(a, "rank, value")) == [(0, 10), (1, 30), (2, 31), (3, 50)]
    # A projection may change the order; the answer is in the order of the new keys.
    assert pairs(pl.project(a, "low=value[0:3], key")) == [(2, 1), (2, 5), (6, 3), (7, 3)]
    for op, expected in [("sum", 61), ("min", 30), ("max", 31), ("count", 2), ("first", 30)]:
        assert dict(pairs(pl.reduce(a, op)))[3] == expected
    assert [key for key, *_ in pairs(pl.union(a, {"id": [2, 3], "a": [0, 0]}))] == [1, 2, 3, 5]
    assert [key for key, *_ in pairs(pl.union(a, a, {"id": [9], "a": [0]}, multiset=True))] == [1, 3, 3, 5, 9]
    assert pairs(pl.intersect(a, b)) == [(3, 30), (5, 50)]
    assert pairs(pl.difference(a, b)) == [(1, 10)]
    assert pairs(pl.join(a, b)) == [(3, 30, 0.3), (3, 31, 0.3), (5, 50, 0.5), (5, 50, 0.55)]
    full = pl.join(a, b, "full")
    assert full.column_names == ["id", "left", "right"]
    assert (1, 10, None) in pairs(full) and (4, None, 0.4) in pairs(full) and len(full) == 6
    assert len(pl.join(a, b, "left")) == 5 and len(pl.join(a, b, "right")) == 5
    assert pairs(pl.join(a, b, "semi")) == [(3, 30), (3, 31), (5, 50)]
    assert pairs(pl.join(a, b, how="anti")) == [(1, 10)]
    assert len(pl.product(a, b)) == 16 and pl.product(a, b, "right").column_names[0] == "id"


def test_joins_by_distance(inputs):
    a, b = inputs
    joined = pl.join(a, b, asof="backward")
    assert joined.column_names == ["id", "left", "key_right", "right"]
    assert pairs(joined) == [(3, 30, 3, 0.3), (3, 31, 3, 0.3), (5, 50, 5, 0.55)]
    assert pairs(pl.join(a, b, asof="forward"))[-1] == (5, 50, 5, 0.5)
    left = pl.join(a, b, "left", asof="nearest", tolerance=1)
    assert pairs(left)[0] == (1, 10, None, None) and left.column_names == joined.column_names
    assert pairs(pl.join(a, b, asof="nearest"))[0] == (1, 10, 3, 0.3)
    assert len(pl.join(a, b, within=1)) == 7 and len(pl.join(a, b, within=1.9)) == 7
    assert pairs(pl.join(a, b, "anti", within=0)) == [(1, 10)]
    assert pairs(pl.join(a, b, "semi", within=np.int64(2)))[0] == (1, 10)
    assert pl.join(a, b, within="1", stream=True).read_all().equals(pl.join(a, b, within=1))


def test_distances_of_joins(tmp_path):
    times = np.array(["2024-01-01T00:00:00", "2024-01-01T00:00:10"], "datetime64[us]")
    a = pa.table({"t": times, "v": [1, 2]})
    b = pa.table({"t": (times + np.timedelta64(1500, "ms")).astype("datetime64[ms]"), "v": [3, 4]})
    for near, far in [
        (datetime.timedelta(milliseconds=1500), datetime.timedelta(seconds=1)),
        (np.timedelta64(1500, "ms"), np.timedelta64(1499, "ms")),
        (np.timedelta64(1, "h"), np.timedelta64(1, "s")),
        (pandas.Timedelta("1.5s"), pandas.Timedelta("1499999999ns")),
        ("1.5s", "1499ms"),
    ]:
        for rule in [{"within": near}, {"asof": "forward", "tolerance": near}]:
            joined = pl.join(a, b, **rule)
            assert joined["right"].to_pylist()[:1] == [3] and joined["key_right"].type == pa.timestamp("us")
        assert len(pl.join(a, b, within=far)) == len(pl.join(a, b, asof="nearest", tolerance=far)) == 0
    floats = {"x": [0.0, 1e300], "v": [1, 2]}
    assert len(pl.join(floats, floats, within=1e-300)) == 2 and len(pl.join(floats, floats, within=1e301)) == 4
    assert len(pl.join(floats, floats, within=float("inf"))) == 4
    made = pl.join(a, b, "left", asof="backward", out=tmp_path / "j.pleach")
    assert made.schema["fields"] == {"left": "i64", "key_right": "i64", "right": "i64", "sides": "u8"}
    texts = {"k": ["a", "c"], "v": [1, 2]}
    assert pl.join(texts, {"k": ["b"], "v": [3]}, asof="backward").to_pydict()["key_right"] == ["b"]
    for error, text, options in [
        (pl.errors.InputError, "exclude", {"asof": "nearest", "within": 1}),
        (pl.errors.InputError, "belongs to asof", {"tolerance": 1}),
        (pl.errors.InputError, "is invalid: use one of", {"asof": "next"}),
        (pl.errors.InputError, "invalid distance '-5us'", {"within": datetime.timedelta(microseconds=-5)}),
        (pl.errors.InputError, "invalid distance '5'", {"within": 5}),
        (pl.errors.InputError, "invalid distance", {"within": True}),
        (pl.errors.InputError, "invalid distance", {"within": [1]}),
        (pl.errors.InputError, "invalid distance", {"within": np.timedelta64("NaT")}),
        (pl.errors.InputError, "invalid distance", {"within": np.timedelta64(1, "M")}),
        (pl.errors.InputError, "cannot make a full as-of join", {"asof": "nearest", "how": "full"}),
    ]:
        with pytest.raises(error, match=re.escape(text)):
            pl.join(a, b, **options)
    with pytest.raises(pl.errors.TypesError, match="no distance between utf8 keys"):
        pl.join(texts, texts, within=1)


def test_joins_of_a_day_are_those_of_pandas():
    random = np.random.default_rng(5)
    left = pandas.DataFrame({"t": np.sort(random.integers(0, 4000, 700)), "a": np.arange(700)})
    right = pandas.DataFrame({"t": np.sort(random.integers(0, 4000, 300)), "b": np.arange(300)})
    for direction, tolerance in itertools.product(["backward", "forward", "nearest"], [None, 3]):
        options = {"tolerance": tolerance} if tolerance else {}
        wanted = pandas.merge_asof(left, right, on="t", direction=direction, **options)
        found = pl.join(left, right, "left", asof=direction, tolerance=tolerance).to_pandas()
        is_equal = (found["right"] == wanted["b"]) | (found["right"].isna() & wanted["b"].isna())
        assert len(found) == len(wanted) and is_equal.all(), direction


def test_no_temporary_files(inputs, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    pl.intersect(*inputs, inputs[0])
    pl.project(inputs[0], "low=value[0:3], key")
    assert sorted(os.listdir(tmp_path)) == before


def test_answers_as_files_and_streams(inputs, tmp_path):
    made = pl.join(*inputs, out=tmp_path / "j.pleach")
    assert isinstance(made, pl.Index) and len(made) == 4 and pl.fsck(made.path)
    assert made.schema["fields"] == {"left": "i64", "right": "f64"}
    stream = pl.join(*inputs, stream=True)
    assert isinstance(stream, pa.RecordBatchReader) and stream.read_all().equals(pl.join(*inputs))
    stream = pl.product(*inputs, stream=True)
    stream.read_next_batch()
    del stream
    with pytest.raises(pl.PleachError):
        pl.join(tmp_path / "j.pleach", pl.open(tmp_path / "j.pleach"), out=tmp_path / "j.pleach")
    with pytest.raises(pl.PleachError):
        pl.join(*inputs, out=tmp_path)
    with pytest.raises(pl.InputError):
        pl.join(*inputs, out=tmp_path / "x.pleach", stream=True)


def test_streams_of_many_tuples(tmp_path):
    keys = np.arange(1 << 20)
    pl.build({"k": keys, "v": keys}, tmp_path / "m.pleach")
    index = pl.open(tmp_path / "m.pleach")
    total = 0
    for batch in pl.join(index, index, stream=True):
        total += batch.num_rows
    assert total == 1 << 20
    # A stream that nobody reads to its end stops its thread.
    for _ in range(5):
        stream = pl.product(index, {"k": keys[:100], "v": keys[:100]}, stream=True)
        stream.read_next_batch()
        del stream
    assert all("pleach-answer" not in thread.name for thread in threading.enumerate())


def test_texts_and_booleans_meet(tmp_path):
    left = pa.table({"k": [1, 2, 3], "name": ["a", "", "c"]})
    right = pa.table({"k": [2, 3, 4], "ok": [True, False, True]})
    joined = pl.join(left, right, "full")
    assert joined["left"].to_pylist() == ["a", "", "c", None]
    assert joined["right"].to_pylist() == [None, True, False, True]
    file = pl.join(left, right, "full", out=tmp_path / "j.pleach")
    assert file[2] == {"left": "", "right": True, "sides": 3}
    assert file[4] == {"left": "", "right": True, "sides": 2}
    assert pl.select(file, "left = 'c' and right = 0").num_rows == 1
    assert pl.fsck(tmp_path / "j.pleach").is_clean


def test_columns_types_and_records(tmp_path):
    table = pa.table({"x": [1, 2], "name": ["b", "a"], "when": pa.array([5, 6], pa.timestamp("us"))})
    assert pl.select(table, "key = 'a'", key="name", value="when")["when"].to_pylist() == [table["when"][1].as_py()]
    table = pandas.DataFrame({"k": [2, 1], "x": [1.5, 2.5], "y": np.array([1, 2], np.int8)})
    pl.build(table, tmp_path / "r.pleach", "k", "x,y")
    joined = pl.join(pl.open(tmp_path / "r.pleach"), {"k": [2, 9], "t": ["yes", "no"]}, "left")
    assert joined.to_pylist() == [
        {"k": 1, "left": {"x": 2.5, "y": 2}, "right": None},
        {"k": 2, "left": {"x": 1.5, "y": 1}, "right": "yes"},
    ]
    assert pl.join(pl.open(tmp_path / "r.pleach"), {"k": [2, 9]}, "full").column_names == ["k", "left", "sides"]
    empty = pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})
    assert pl.join(empty, empty).num_rows == 0 and pl.join(empty, empty).column_names == ["k", "left", "right"]


def test_refusals(tmp_path):
    with pytest.raises(pl.InputError, match="column"):
        pl.select(A, "value >")
    with pytest.raises(pl.TypesError):
        pl.join(A, {"k": ["x"], "v": [1]})
    with pytest.raises(pl.InputError):
        pl.join(A, B, "sideways")
    with pytest.raises(pl.InputError):
        pl.union(A)
    with pytest.raises(pl.InputError):
        pl.reduce(A, "median")
    with pytest.raises(TypeError, match="colour"):
        pl.join(A, B, colour="red")
    with pytest.raises(pl.InputError):
        pl.reduce({"k": [1, 1], "v": np.array([2**63 - 1, 5])}, "sum")
    with pytest.raises(pl.NotFoundError):
        pl.join(tmp_path / "none.pleach", A)
    with pytest.raises(pl.InputError):
        pl.join(A, 7)
    path = tmp_path / "d.pleach"
    pl.build({"k": np.arange(10000), "v": np.arange(10000)}, path)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 4
    path.write_bytes(raw)
    wide = {"k": np.arange(10000), "v": np.arange(10000)}
    with pytest.raises(pl.DamagedError):
        pl.join(pl.open(path), wide)
    with pytest.raises(pa.ArrowException, match="damaged"):
        list(pl.join(pl.open(path), wide, stream=True))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-99, 99)), max_size=20),
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-99, 99)), max_size=20),
)
def test_joins_against_loops(left, right):
    def table(tuples):
        keys, values = [key for key, _ in tuples], [value for _, value in tuples]
        return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.int64())})

    inner = [(k, v, w) for (k, v), (m, w) in itertools.product(left, right) if k == m]
    assert sorted(pairs(pl.join(table(left), table(right)))) == sorted(inner)
    keys = {key for key, _ in right}
    lone = [(k, v, None) for k, v in left if k not in keys]
    by = lambda row: (row[0], row[1], row[2] is None, row[2] or 0)
    assert sorted(pairs(pl.join(table(left), table(right), "left")), key=by) == sorted(inner + lone, key=by)
    sums = collections.defaultdict(int)
    for key, value in left:
        sums[key] += value
    assert pairs(pl.reduce(table(left))) == sorted(sums.items())
