"""Relational operators, against plain Python."""

import collections
import itertools
import os
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
