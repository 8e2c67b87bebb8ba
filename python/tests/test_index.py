"""Look-ups of every kind of keys, against a dict and sorted lists."""

import bisect
import copy
import datetime
import decimal
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import uuid
import weakref

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pleachdb as pl

try:
    import polars
except ImportError:  # it has no wheel for free-threaded builds of CPython
    polars = None


@pytest.fixture
def squares(tmp_path):
    path = tmp_path / "squares.pleach"
    keys = np.arange(0, 3000, 3, dtype=np.uint64)
    pl.build({"n": keys, "square": keys * keys}, path)
    return pl.open(path)


DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">u4", ">i8", ">u2"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 1024, 5001])
@pytest.mark.parametrize("threads", [1, 2])
def test_numpy(squares, dtype, size, threads):
    limit = np.iinfo(dtype).max
    keys = (np.arange(size) * 7 % min(4000, limit)).astype(dtype)
    values, found = squares.get_many(keys, threads=threads)
    assert values.dtype == np.uint64 and found.dtype == np.bool_
    wide = keys.astype(np.int64)
    expected = (wide % 3 == 0) & (wide < 3000)
    assert (found == expected).all()
    assert (values == np.where(expected, wide.astype(np.uint64) ** 2, 0)).all()
    assert (squares.contains_many(keys) == expected).all()
    ranks, also = squares.rank_many(keys)
    assert (also == expected).all()
    assert (ranks == np.minimum((wide + 2) // 3, 1000)).all()
    assert (squares.lower_bound_many(keys) == ranks).all()
    assert (squares.upper_bound_many(keys) == np.minimum(wide // 3 + 1, 1000)).all()


def test_layouts(squares):
    keys = np.arange(100, dtype=np.int64)
    expected = squares.get_many(keys)[0]
    spread = np.zeros((100, 3), np.int64)
    spread[:, 1] = keys
    assert (squares.get_many(spread[:, 1])[0] == expected).all()
    assert (squares.get_many(keys[::-1])[0] == expected[::-1]).all()
    assert (squares.get_many(keys[::5])[0] == expected[::5]).all()
    read_only = keys.copy()
    read_only.flags.writeable = False
    assert (squares.get_many(read_only)[0] == expected).all()
    assert (squares.get_many(memoryview(keys))[0] == expected).all()
    assert (squares.get_many(list(range(100)))[0] == expected).all()
    assert (squares.get_many(np.arange(100, dtype=object))[0] == expected).all()
    unaligned = np.frombuffer(b"x" + keys.tobytes(), dtype=np.uint8)[1:].view(np.int64)
    assert (squares.get_many(unaligned)[0] == expected).all()
    assert (squares.get_many(np.broadcast_to(np.int64(9), 50))[0] == 81).all()


def test_out(squares):
    keys = np.array([3, 6, 7])
    out = np.full(5, 99, np.uint64)
    values, found = squares.get_many(keys, out=out)
    assert values is out and out.tolist() == [9, 36, 0, 99, 99] and found.tolist() == [True, True, False]
    for bad, error in [
        (np.empty(2, np.uint64), pl.InputError),
        (np.empty(3, np.uint32), pl.TypesError),
        (np.empty(6, np.uint64)[::2], pl.InputError),
        (np.empty(3, ">u8"), pl.InputError),
    ]:
        with pytest.raises(error):
            squares.get_many(keys, out=bad)
    same = np.array([3, 6, 7], np.uint64)
    with pytest.raises(pl.InputError):
        squares.get_many(same, out=same)
    frozen = np.empty(3, np.uint64)
    frozen.flags.writeable = False
    with pytest.raises(pl.InputError):
        squares.get_many(keys, out=frozen)
    with pytest.raises(pl.InputError):
        squares.get_many(pa.array([1]), out=out)


def test_arrow(squares):
    keys = pa.array([3, None, 7, 9], pa.int32())
    values = squares.get_many(keys)
    assert values.equals(pa.array([9, None, None, 81], pa.uint64()))
    assert squares.get_many(keys.slice(1)).to_pylist() == [None, None, 81]
    chunked = pa.chunked_array([[3, 6], [], [7]], pa.int64())
    assert squares.get_many(chunked).to_pylist() == [9, 36, None]
    assert isinstance(squares.get_many(chunked), pa.ChunkedArray)
    assert squares.contains_many(chunked).tolist() == [True, True, False]
    assert squares.lower_bound_many(chunked).tolist() == [1, 2, 3]
    dictionary = pa.array([3, 6, None, 3], pa.int64()).dictionary_encode()
    assert squares.get_many(dictionary).to_pylist() == [9, 36, None, 9]
    assert squares.get_many(pa.array([], pa.int64())).to_pylist() == []


@pytest.mark.skipif(polars is None, reason="polars is not here")
def test_polars(squares):
    keys = polars.Series("id", [3, None, 7, 9])
    values = squares.get_many(keys)
    assert isinstance(values, polars.Series) and values.name == "id" and values.to_list() == [9, None, None, 81]
    both = polars.concat([keys, keys], rechunk=False)
    assert squares.get_many(both).to_list() == [9, None, None, 81] * 2


def test_pandas(squares):
    keys = pandas.Series([3, 7, 9], index=["a", "b", "c"], name="id")
    values = squares.get_many(keys)
    assert isinstance(values, pandas.Series) and list(values.index) == ["a", "b", "c"]
    assert values["a"] == 9 and pandas.isna(values["b"]) and values["c"] == 81
    nullable = pandas.Series([3, None, 9], dtype="Int64")
    assert squares.get_many(nullable).isna().tolist() == [False, True, False]
    assert squares.contains_many(pandas.Index([3, 4])).tolist() == [True, False]


def test_one(squares):
    assert squares[9] == 81 and squares.get(9) == 81
    assert squares.get(10) is None and squares.get(10, 5) == 5 and squares.get(-1) is None
    assert 9 in squares and 10 not in squares and -5 not in squares and 1 << 70 not in squares
    assert squares[np.int32(9)] == 81
    with pytest.raises(KeyError):
        squares[10]
    for bad in ["9", 9.0, None, b"9"]:
        with pytest.raises(TypeError):
            squares[bad]
    assert len(squares) == 1000 and squares.min() == 0 and squares.max() == 2997
    assert list(squares)[:3] == [0, 3, 6] and list(squares.values())[:3] == [0, 9, 36]
    assert dict(squares.items()) == {key: key * key for key in range(0, 3000, 3)}


def test_order(squares):
    keys, values = squares.floor_many([0, 1, 5, 9999])
    assert keys.to_pylist() == [0, 0, 3, 2997] and values.to_pylist() == [0, 0, 9, 2997**2]
    assert squares.floor_many(np.array([-1]))[0].to_pylist() == [None]
    keys, values = squares.ceiling_many([0, 1, 5, 9999])
    assert keys.to_pylist() == [0, 3, 6, None]
    assert squares.count_many([0, 5, 9], [10, 5, 3]).tolist() == [4, 0, 0]
    table = squares.range(10, 20).read_all()
    assert table.to_pydict() == {"n": [12, 15, 18], "square": [144, 225, 324]}
    assert squares.range(10, 20, batch_rows=2).read_all() == table
    assert squares.to_arrow().num_rows == 1000
    assert squares.range(20, 10).read_all().num_rows == 0


def test_duplicates(tmp_path):
    pl.build({"k": [1, 1, 2, 5], "v": [10, 11, 20, 50]}, tmp_path / "d.pleach")
    index = pl.open(tmp_path / "d.pleach")
    offsets, values = index.get_all_many([1, 3, 5])
    assert offsets.tolist() == [0, 2, 2, 3] and values.to_pylist() == [10, 11, 50]


def test_texts(tmp_path):
    words = {f"word{number}": number for number in range(2000)}
    pl.build({"w": list(words), "n": list(words.values())}, tmp_path / "w.pleach")
    index = pl.open(tmp_path / "w.pleach")
    asked = ["word7", "nothing", "", "word1999", "wörd"]
    expected = [7, None, None, 1999, None]
    for keys in [
        pa.array(asked),
        pa.array(asked, pa.large_string()),
        pa.array(asked, pa.string_view()),
        pa.array(asked).dictionary_encode(),
        pa.array([word.encode() for word in asked]),
        *([polars.Series(asked)] if polars else []),
        pandas.Series(asked),
    ]:
        answer = index.get_many(keys)
        answer = answer.to_pylist() if hasattr(answer, "to_pylist") else list(answer)
        assert [None if value != value or value is None else value for value in answer] == expected
    for keys in [asked, np.array(asked), np.array(asked, dtype=object), np.array(asked).astype(">U8")]:
        values, found = index.get_many(keys)
        assert found.tolist() == [value is not None for value in expected]
    values, found = index.get_many(np.array([b"word7", b"x"]))
    assert found.tolist() == [True, False] and values[0] == 7
    assert index.get_many(pa.array(["word3", None])).to_pylist() == [3, None]
    assert index["word9"] == 9 and "nothing" not in index and b"word9" in index
    assert list(index)[:2] == ["word0", "word1"]
    assert index.range("word1", "word10").read_all()["w"].to_pylist() == ["word1"]


def test_values_of_texts_and_records(tmp_path):
    pl.build({"k": [3, 1, 2], "v": ["three", "one", ""]}, tmp_path / "t.pleach")
    index = pl.open(tmp_path / "t.pleach")
    assert index[3] == "three"
    assert index.get_many(pa.array([3, 9, 2])).to_pylist() == ["three", None, ""]
    values, found = index.get_many([3, 9])
    assert values.to_pylist() == ["three", None] and found.tolist() == [True, False]
    for width, other in [("f4", np.float32), ("f8", np.float64)]:
        table = {"k": [3, 1], "x": np.array([7, 8], np.uint32), "y": np.array([0.5, 1.5], width)}
        pl.build(table, tmp_path / "r.pleach", key="k", value="x,y")
        index = pl.open(tmp_path / "r.pleach")
        assert index[1] == {"x": 8, "y": 1.5}
        assert index.get_many(pa.array([1, 5])).to_pylist() == [{"x": 8, "y": 1.5}, None]
        assert index.schema["fields"]["x"] == "u32"
        assert list(index.values()) == [{"x": 8, "y": 1.5}, {"x": 7, "y": 0.5}]


def test_texts_and_booleans_in_records(tmp_path):
    ids, names = [3, 1, 2], ["three", "", "zwei é"]
    blobs, flags = [b"\0\xff", b"", b"x"], [True, False, True]
    columns = {"k": ids, "n": names, "b": pa.array(blobs, pa.binary()), "f": flags, "x": np.array([1, 2, 3], "i2")}
    fields = zip(ids, names, blobs, flags, [1, 2, 3])
    rows = {key: {"n": name, "b": blob, "f": flag, "x": x} for key, name, blob, flag, x in fields}
    tables = [columns, pa.table(columns)]
    polars = pytest.importorskip("polars")
    tables.append(polars.from_arrow(pa.table(columns)))
    tables.append(pa.table(columns).to_pandas())
    for table in tables:
        pl.build(table, tmp_path / "r.pleach", key="k", value=["n", "b", "f", "x"])
        index = pl.open(tmp_path / "r.pleach")
        assert index.schema["fields"] == {"n": "utf8", "b": "bytes", "f": "u8", "x": "i16"}
        assert {key: index[key] for key in ids} == rows and index[1]["f"] is False
        assert dict(index.items()) == rows
        assert index.get_many(pa.array([2, 9, None, 3])).to_pylist() == [rows[2], None, None, rows[3]]
        values, found = index.get_many([1, 7])
        assert values.to_pylist() == [rows[1], None] and found.tolist() == [True, False]
        children = {field.name: field.type for field in values.type}
        assert children == {"n": pa.large_string(), "b": pa.large_binary(), "f": pa.bool_(), "x": pa.int16()}
        assert index.floor(5) == (3, rows[3])
        assert pl.fsck(index.path).is_clean
    series = index.get_many(polars.Series([3, 8]))
    assert series.to_list() == [rows[3], None]
    # A range is a table, of which its columns build the same file.
    table = index.to_arrow()
    assert table["value"].to_pylist() == [rows[key] for key in sorted(ids)]
    pl.export(index.path, tmp_path / "r.parquet")
    pl.build(tmp_path / "r.parquet", tmp_path / "s.pleach", key="k", value="n,b,f,x")
    assert dict(pl.open(tmp_path / "s.pleach").items()) == rows
    # Text has no types: a list of them.
    (tmp_path / "t.csv").write_text("k,n,f\n1,one,true\n2,,0\n")
    pl.build(tmp_path / "t.csv", tmp_path / "t.pleach", value="n,f", value_type="utf8,bool")
    assert dict(pl.open(tmp_path / "t.pleach").items()) == {1: {"n": "one", "f": True}, 2: {"n": "", "f": False}}
    # Changes.
    changes = {"op": ["put", "del"], "k": [1, 2], "n": ["new", None], "f": [False, None]}
    pl.rebuild(tmp_path / "t.pleach", changes)
    assert dict(pl.open(tmp_path / "t.pleach").items()) == {1: {"n": "new", "f": False}}


def test_booleans(tmp_path):
    flags = np.array([True, False, True])
    for values in [flags, flags.tolist(), pa.array(flags)]:
        pl.build({"k": [3, 1, 2], "v": values}, tmp_path / "b.pleach")
        index = pl.open(tmp_path / "b.pleach")
        assert index.schema["value"] == "bool" and index[1] is False and index[3] is True
        found, present = index.get_many(np.array([1, 2, 9]))
        assert found.dtype == np.bool_ and found.tolist() == [False, True, False]
        assert present.tolist() == [True, True, False]
        answer = index.get_many(pa.array([2, 9]))
        assert answer.type == pa.bool_() and answer.to_pylist() == [True, None]
        assert list(index.values()) == [False, True, True]
        assert index.floor(7) == (3, True)
        with pytest.raises(pl.TypesError):
            index.get_many([1], out=np.empty(1, np.uint32))
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    assert index.get_many(polars.Series([1, 5])).to_list() == [False, None]
    assert index.get_many(pandas.Series([1, 2])).tolist() == [False, True]
    np.save(tmp_path / "b.npy", np.array([(1, True), (2, False)], [("k", "u4"), ("v", "?")]))
    pl.build(tmp_path / "b.npy", tmp_path / "n.pleach")
    assert dict(pl.open(tmp_path / "n.pleach").items()) == {1: True, 2: False}
    with pytest.raises(pl.InputError, match="keys cannot be booleans"):
        pl.build({"k": flags, "v": [1, 2, 3]}, tmp_path / "x.pleach")
    with pytest.raises(pl.InputError, match="keys cannot be booleans"):
        pl.build({"k": ["true"], "v": [1]}, tmp_path / "x.pleach", key_type="bool")


def test_keys_alone(tmp_path):
    pl.build(pa.table({"k": [5, 7]}), tmp_path / "k.pleach")
    index = pl.open(tmp_path / "k.pleach")
    assert index.contains_many([5, 6]).tolist() == [True, False] and 7 in index
    with pytest.raises(KeyError):
        index[6]
    assert index[5] is None and index.get(6, 1) == 1
    # Keys with a meaning, too.
    import datetime

    days = pa.array([datetime.date(2024, 1, 1)])
    pl.build(pa.table({"d": days}), tmp_path / "d.pleach")
    dates = pl.open(tmp_path / "d.pleach")
    missing = datetime.date(2024, 1, 2)
    assert dates.get(datetime.date(2024, 1, 1), 1) is None and dates.get(missing, 1) == 1 and missing not in dates
    with pytest.raises(KeyError):
        dates[missing]
    assert index.get(5, 1) is None and index.range().read_all().to_pydict() == {"k": [5, 7]}


def test_times(tmp_path):
    days = pa.array([10, 20, 30], pa.int32()).cast(pa.date32())
    times = pa.array([1_000, 2_000, 3_000], pa.timestamp("ms"))
    pl.build(pa.table({"t": times, "d": days}), tmp_path / "t.pleach")
    index = pl.open(tmp_path / "t.pleach")
    assert index.schema["key"] == "timestamp[ms]"
    keys = np.array(["1970-01-01T00:00:01", "1970-01-01T00:00:04"], "datetime64[s]")
    assert index.contains_many(keys).tolist() == [True, False]
    fine = np.array(["1970-01-01T00:00:01.000", "1970-01-01T00:00:01.000001"], "datetime64[us]")
    assert index.contains_many(fine).tolist() == [True, False]
    assert index.contains_many(np.array(["NaT"], "datetime64[s]")).tolist() == [False]
    assert index.lower_bound_many(fine).tolist() == [0, 1]
    import datetime

    assert index[datetime.datetime(1970, 1, 1, 0, 0, 2)] == datetime.date(1970, 1, 21)
    assert index.min() == datetime.datetime(1970, 1, 1, 0, 0, 1)
    with pytest.raises(pl.TypesError):
        index.get_many([1000])
    with pytest.raises(pl.TypesError):
        index.get_many(pa.array([1], pa.timestamp("s", "UTC")))


def test_lists_of_objects(tmp_path):
    """Python's own dates, decimals and uuids are keys, alone and in lists, with None among them."""
    day, moment = datetime.date(2024, 5, 17), datetime.datetime(2024, 5, 17, 12, 30)
    ids = sorted(uuid.UUID(int=number) for number in [7, 1 << 100, 1 << 127])
    tables = {
        "dates": (pa.array([day, day + datetime.timedelta(2)]), day, day + datetime.timedelta(1)),
        "times": (pa.array([moment], pa.timestamp("us")), moment, moment + datetime.timedelta(seconds=1)),
        "spans": (pa.array([datetime.timedelta(hours=5)]), datetime.timedelta(hours=5), datetime.timedelta(hours=6)),
        "decimals": (
            pa.array([decimal.Decimal("1.25")], pa.decimal128(9, 2)),
            decimal.Decimal("1.25"),
            decimal.Decimal("1.50"),
        ),
    }
    for name, (keys, there, absent) in tables.items():
        pl.build(pa.table({"k": keys, "v": pa.array(range(len(keys)), pa.int64())}), tmp_path / f"{name}.pleach")
        index = pl.open(tmp_path / f"{name}.pleach")
        assert index[there] == 0 and absent not in index and index.get(absent, "no") == "no", name
        values, found = index.get_many([there, absent, None])
        assert found.tolist() == [True, False, False] and values[0] == 0, name
    raw = pa.array([one.bytes for one in ids], pa.binary(16))
    pl.build(pa.table({"k": raw, "v": [1, 2, 3]}), tmp_path / "ids.pleach", key_type="uuid")
    index = pl.open(tmp_path / "ids.pleach")
    assert index[ids[1]] == 2 and uuid.UUID(int=5) not in index
    assert index.get_many([ids[2], uuid.UUID(int=5), None])[1].tolist() == [True, False, False]
    pl.build({"k": [1, 5], "v": [10, 50]}, tmp_path / "n.pleach")
    assert pl.open(tmp_path / "n.pleach").get_many([5, None, 1])[0].tolist() == [50, 0, 10]
    with pytest.raises(pl.TypesError):
        index.get_many([ids[0], 5])
    with pytest.raises(pl.TypesError):
        pl.open(tmp_path / "dates.pleach").get_many([day, "x"])


def test_out_is_used_by_others(squares):
    """Arrays that another thread writes meanwhile may give wrong answers; the process lives, and so do other arrays."""
    keys = np.arange(1 << 18, dtype=np.int64)
    out = np.empty(1 << 18, np.uint64)
    stop = threading.Event()

    def scribble():
        while not stop.is_set():
            keys[::5] = -1
            keys[:] = np.arange(1 << 18)
            out[:] = 7

    other = threading.Thread(target=scribble)
    other.start()
    for _ in range(30):
        squares.get_many(keys, out=out)
    stop.set()
    other.join()
    squares.get_many(keys, out=out)
    assert (out[:3000:3] == np.arange(0, 3000, 3, dtype=np.uint64) ** 2).all()


def test_wide_keys(tmp_path):
    keys = [1, 1 << 64, (1 << 128) - 1]
    raw = pa.array([key.to_bytes(16, "big") for key in keys], pa.binary(16))
    pl.build(pa.table({"k": raw, "v": [1, 2, 3]}), tmp_path / "w.pleach", key_type="u128")
    index = pl.open(tmp_path / "w.pleach")
    assert index.get_many([1, 2, 1 << 64, (1 << 128) - 1, -1])[1].tolist() == [True, False, True, True, False]
    assert index[1 << 64] == 2 and list(index) == keys


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), max_size=300),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=100),
)
def test_like_a_dict(tmp_path_factory, table, others):
    path = tmp_path_factory.mktemp("h") / "i.pleach"
    keys, values = pa.array(list(table), pa.int64()), pa.array(list(table.values()), pa.int32())
    pl.build(pa.table({"k": keys, "v": values}), path)
    index = pl.open(path)
    asked = list(table) + others
    assert index.get_many(pa.array(asked, pa.int64())).to_pylist() == [table.get(key) for key in asked]
    order = sorted(table)
    numbers = np.array(asked, np.int64)
    assert index.lower_bound_many(numbers).tolist() == [bisect.bisect_left(order, key) for key in asked]
    assert index.upper_bound_many(numbers).tolist() == [bisect.bisect_right(order, key) for key in asked]
    assert list(index) == order


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=12), st.integers(0, 2**32 - 1), min_size=1, max_size=100), st.lists(st.text()))
def test_like_a_dict_of_texts(tmp_path_factory, table, others):
    path = tmp_path_factory.mktemp("h") / "i.pleach"
    pl.build(pa.table({"k": list(table), "v": pa.array(list(table.values()), pa.uint32())}), path)
    index = pl.open(path)
    asked = list(table) + others
    assert index.get_many(pa.array(asked, pa.string())).to_pylist() == [table.get(key) for key in asked]
    values, found = index.get_many(asked)
    assert found.tolist() == [key in table for key in asked]


def test_structures(tmp_path):
    """Every structure of a file gives the same answers; one that it does not have is refused."""
    keys = np.arange(0, 90_000, 3, dtype=np.uint64) ** 2
    path = tmp_path / "trees.pleach"
    table = pa.table({"k": keys, "v": np.arange(30_000, dtype=np.uint32)})
    pl.build(table, path, layout="lines,spine,fast:auto,harmonia,btree")
    queries = np.concatenate([keys[::7], keys[::7] + 1])
    wanted = pl.open(path).get_many(queries)
    for structure in ["auto", "spine", "fast", "harmonia", "btree"]:
        with pl.open(path, structure=structure) as index:
            values, found = index.get_many(queries)
            assert (values == wanted[0]).all() and (found == wanted[1]).all()
            assert (index.rank_many(keys[:9])[0] == np.arange(9)).all()
    for structure in ["grid", "tree"]:
        with pytest.raises(pl.InputError):
            pl.open(path, structure=structure)


def test_refusals(squares, tmp_path):
    for bad in [np.array([1.5]), np.array([[1]]), np.array([1j]), np.array(["a"]), pa.array(["a"]), "abc", 5, [1.5], ["x"]]:
        with pytest.raises((pl.TypesError, pl.InputError)):
            squares.get_many(bad)
    with pytest.raises(FileNotFoundError):
        pl.open(tmp_path / "none.pleach")
    (tmp_path / "foreign").write_bytes(b"x" * 10_000)
    with pytest.raises(pl.DamagedError):
        pl.open(tmp_path / "foreign")
    with pytest.raises(pl.InputError):
        pl.open(squares.path, verify="some")
    raw = bytearray(open(squares.path, "rb").read())
    raw[len(raw) // 2] ^= 255
    (tmp_path / "bad.pleach").write_bytes(raw)
    with pytest.raises(pl.DamagedError):
        pl.open(tmp_path / "bad.pleach", verify="full")
    assert not pl.fsck(tmp_path / "bad.pleach") and pl.fsck(squares.path).is_clean
    with pl.open(squares.path) as index:
        assert 3 in index
    with pytest.raises(pl.ClosedError):
        index[3]


def test_generations(tmp_path):
    path = tmp_path / "g.pleach"
    pl.build({"k": [1], "v": [1]}, path)
    index, live = pl.open(path), pl.live(path)
    saved, old = pickle.dumps(index), live.current
    assert not index.refresh() and not live.refresh()
    assert pickle.loads(saved)[1] == 1
    pl.build({"k": [1], "v": [2]}, path, keep=1)
    assert index[1] == 1 and old[1] == 1
    assert pickle.loads(saved)[1] == 1
    assert live.refresh() and live.current[1] == 2 and old[1] == 1
    assert index.refresh() and index[1] == 2 and index.generation == 2
    for number in (3, 4):
        pl.build({"k": [1], "v": [number]}, path, keep=1)
    with pytest.raises(pl.PleachError, match="is gone"):
        pickle.loads(saved)
    assert copy.copy(index)[1] == 2 and copy.deepcopy(index)[1] == 2


def answer(index):
    return index.get_many(np.arange(100_000), threads=2)[1].sum()


def test_fork(squares):
    expected = answer(squares)
    child = os.fork()
    if child == 0:
        # The parent's threads are not here.
        os._exit(0 if answer(squares) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes(squares, method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(answer, [squares] * 3) == [answer(squares)] * 3


def test_threads(squares):
    keys, wrong = np.arange(50_000), []

    def work():
        for _ in range(10):
            if squares.get_many(keys, threads=2)[1].sum() != 1000:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    # Numbers that change meanwhile give arbitrary answers, and nothing else.
    moving = np.arange(50_000)
    for number in range(20):
        moving[:] = number
        squares.get_many(moving)
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_leaks(squares):
    keys = np.arange(10_000)
    gc.collect()
    before = sys.getrefcount(keys)
    for _ in range(20):
        squares.get_many(keys)
    assert sys.getrefcount(keys) == before
    reference = weakref.ref(squares)
    assert reference() is squares
    array = pl.open(squares.path).get_many(pa.array([3]))
    gc.collect()
    assert array.to_pylist() == [9]


def test_interrupted(tmp_path):
    def batches():
        for number in range(1_000_000):
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield {"k": np.arange(1000) + number * 1000, "v": np.arange(1000)}

    with pytest.raises(KeyboardInterrupt):
        pl.build(batches(), tmp_path / "i.pleach")
    assert os.listdir(tmp_path) == []


def test_repr(squares):
    assert "1,000 tuples" in repr(squares) and "u64 -> u64" in repr(squares)
    assert "<table>" in squares._repr_html_()
    assert squares.describe()
