"""Keys that have a form of their own: addresses, digits, DNA, uuids, dates; and the tuples near them."""

import datetime
import ipaddress
import random
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pleachdb as pl

KEYS = {
    "ipv4": ["0.0.0.1", "10.0.0.0", "192.0.2.1", "255.255.255.255"],
    "ipv6": ["::", "2001:db8::", "2001:db8::1", "ffff::"],
    "ip": ["9.9.9.9", "255.0.0.0", "::", "::1", "2001:db8::1"],
    "hex": ["00", "5baa61", "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"],
    "hex:5": ["00000", "5baa6", "fffff"],
    "hex:16": ["0123456789abcdef", "f000000000000000"],
    "hex:40": ["0123456789abcdef0123456789abcdef01234567", "f" * 40],
    "dna2": ["A", "ACGT", "ACGTT", "T"],
    "dna2:canonical": ["AC", "ACG", "CG"],
    "date": ["1969-12-31", "2024-02-29"],
    "timestamp[us,UTC]": ["1969-12-31T23:59:59Z", "2024-02-29T12:00:00.5Z"],
    "decimal(10,2)": ["-0.50", "7675.00"],
}


def built(tmp_path, kind, keys, name="t.pleach", **options):
    table = pa.table({"k": pa.array(keys), "v": pa.array(range(1, len(keys) + 1), pa.uint32())})
    pl.build(table, tmp_path / name, key_type=kind, force=True, **options)
    return pl.open(tmp_path / name)


@pytest.mark.parametrize("kind", KEYS)
def test_texts_are_keys(tmp_path, kind):
    keys = KEYS[kind]
    index = built(tmp_path, kind, keys)
    assert index.schema["key"] == kind
    for number, key in enumerate(keys, 1):
        assert index[key] == number and key in index and index.get(key) == number
    expected = list(range(1, len(keys) + 1))
    for asked in (keys, np.array(keys), pa.array(keys), pa.array(keys, pa.large_string())):
        values = index.get_many(asked)
        values = values[0].tolist() if isinstance(values, tuple) else values.to_pylist()
        assert values == expected
    assert index.get_many([keys[0], None])[1].tolist() == [True, False]
    assert index.rank_many(keys)[0].tolist() == [number - 1 for number in expected]
    with pytest.raises(pl.TypesError, match="key 1 is not"):
        index.get_many([keys[0], "no such thing"])


@pytest.mark.parametrize("kind", [kind for kind in KEYS if kind.startswith(("ip", "hex", "dna"))])
def test_arrow_has_the_texts(tmp_path, kind):
    keys = KEYS[kind]
    index = built(tmp_path, kind, keys)
    assert list(index) == keys and list(index.items()) == list(zip(keys, range(1, len(keys) + 1)))
    assert index.min() == keys[0] and index.max() == keys[-1]
    table = index.to_arrow()
    assert table["k"].to_pylist() == keys
    assert table.schema.field("k").metadata[b"ARROW:extension:name"] == b"pleach.text"
    # A table that came out goes in again, with its type.
    pl.build(table, tmp_path / "again.pleach")
    again = pl.open(tmp_path / "again.pleach")
    assert again.schema == index.schema and list(again) == keys
    both = pl.intersect(index, again)
    assert both["k"].to_pylist() == keys


def test_objects_are_keys(tmp_path):
    addresses = [ipaddress.ip_address(text) for text in KEYS["ip"]]
    index = built(tmp_path, "ip", KEYS["ip"])
    assert index.get_many(addresses)[0].tolist() == [1, 2, 3, 4, 5]
    assert index[ipaddress.ip_address("::ffff:9.9.9.9")] == 1
    assert ipaddress.ip_address("1.1.1.1") not in index
    ids = sorted(uuid.UUID(int=number) for number in [7, 1 << 100, 1 << 127])
    for number, raw in enumerate(([str(one) for one in ids], pa.array([one.bytes for one in ids], pa.binary(16)))):
        index = built(tmp_path, "uuid", raw, f"{number}.pleach")
        assert list(index) == ids and index[ids[1]] == 2 and index[str(ids[1])] == 2
        assert index.floor(uuid.UUID(int=8)) == (ids[0], 1)
    # Numbers are addresses, too.
    index = built(tmp_path, "ipv4", pa.array([0x0A000000, 0x0B000000], pa.uint32()), "numbers.pleach")
    assert index.get_many(np.array([0x0B000000, 7], np.uint32))[0].tolist() == [2, 0]
    assert list(index) == ["10.0.0.0", "11.0.0.0"]
    with pytest.raises(pl.TypesError):
        built(tmp_path, "ip", KEYS["ip"], "i.pleach").get_many(np.array([5]))


def test_tuples_near_keys(tmp_path):
    rng = random.Random(7)
    keys = sorted(rng.randrange(-10_000, 10_000) for _ in range(3000))
    index_path = tmp_path / "n.pleach"
    pl.build({"k": np.array(keys, np.int64), "v": np.arange(3000, dtype=np.uint32)}, index_path)
    index = pl.open(index_path)
    asked = np.array([rng.randrange(-11_000, 11_000) for _ in range(5000)] + [-(2**63), 2**63 - 1])
    array = np.array(keys)
    below = np.searchsorted(array, asked, side="right") - 1
    above = np.searchsorted(array, asked, side="left")
    at = lambda rank: (int(array[rank]), int(rank)) if 0 <= rank < 3000 else (None, None)
    floors, ceilings, nearest = (
        list(zip(keys.to_pylist(), values.to_pylist()))
        for keys, values in (index.floor_many(asked), index.ceiling_many(asked), index.nearest_many(asked))
    )
    assert floors == [at(rank) for rank in below] and ceilings == [at(rank) for rank in above]
    for query, low, high, found in zip(asked.tolist(), floors, ceilings, nearest):
        known = [tuple_ for tuple_ in (low, high) if tuple_[0] is not None]
        assert found == min(known, key=lambda tuple_: abs(tuple_[0] - query))
    for query, low, high in list(zip(asked, floors, ceilings))[:50]:
        assert index.floor(query) == (None if low[0] is None else low)
        assert index.ceiling(int(query)) == (None if high[0] is None else high)
    assert index.nearest(2**63 - 1) == (keys[-1], 2999)
    # Nulls have nothing near them.
    for answer in (index.floor_many([5, None]), index.ceiling_many([5, None]), index.nearest_many([5, None])):
        assert answer[0].is_valid().to_pylist() == [True, False]
    words = built(tmp_path, "utf8", ["b", "d"], "w.pleach")
    assert words.floor("c") == ("b", 1) and words.ceiling("c") == ("d", 2) and words.floor("a") is None
    with pytest.raises(pl.TypesError, match="no distance"):
        words.nearest("c")
    days = built(tmp_path, "date", ["2024-01-01", "2024-03-01"], "d.pleach")
    assert days.nearest(datetime.date(2024, 2, 29)) == (datetime.date(2024, 3, 1), 2)


def test_nulls(tmp_path):
    table = pa.table({"k": [1, None, 3, 4], "v": [10, 20, None, 40]})
    with pytest.raises(pl.InputError, match="it is null"):
        pl.build(table, tmp_path / "n.pleach")
    done = pl.build(table, tmp_path / "n.pleach", nulls="skip")
    assert (done.tuples, done.skipped_rows, done.filled_values) == (2, 2, 0)
    assert dict(pl.open(tmp_path / "n.pleach").items()) == {1: 10, 4: 40}
    done = pl.build(table.filter(pc.is_valid(table["k"])), tmp_path / "n.pleach", nulls="default=-1")
    assert (done.tuples, done.skipped_rows, done.filled_values) == (3, 0, 1)
    assert dict(pl.open(tmp_path / "n.pleach").items()) == {1: 10, 3: -1, 4: 40}
    with pytest.raises(pl.InputError, match="is not a value of type"):
        pl.build(table.slice(2), tmp_path / "x.pleach", nulls="default=x")
    with pytest.raises(pl.InputError, match="use error, skip or default=V"):
        pl.build(table, tmp_path / "x.pleach", nulls="drop")
    changes = {"op": ["put", "del", "put"], "k": [5, 1, 6], "v": [None, None, 60]}
    done = pl.rebuild(tmp_path / "n.pleach", changes, nulls="skip")
    assert (done.skipped_rows, done.puts, done.dels) == (1, 1, 1)
    assert dict(pl.open(tmp_path / "n.pleach").items()) == {3: -1, 4: 40, 6: 60}


def test_intervals(tmp_path):
    rng = random.Random(3)
    borders = sorted(rng.sample(range(1 << 16), 2000))
    # Intervals between borders, of which every third is a gap; some touch.
    rows = [(first, last - 1, number) for number, (first, last) in enumerate(zip(borders, borders[1:])) if number % 3]
    rng.shuffle(rows)
    first, last, value = (np.array(column, np.uint32) for column in zip(*rows))
    table = {"first": first, "last": last, "value": value}
    done = pl.build(table, tmp_path / "i.pleach", interval="last", value="value")
    assert done.tuples == len(rows)
    index = pl.open(tmp_path / "i.pleach")
    line = np.full(1 << 16, -1)
    for start, end, number in rows:
        line[start : end + 1] = number
    asked = np.arange(1 << 16, dtype=np.uint32)
    values, found = index.get_many(asked)
    assert (found == (line >= 0)).all()
    assert [row["value"] if row else -1 for row in values.to_pylist()] == line.tolist()
    assert (index.contains_many(asked) == found).all() and int(found.sum()) == int((line >= 0).sum())
    ranks, also = index.rank_many(asked)
    assert (also == found).all() and (ranks[~found] == np.iinfo(np.uint64).max).all()
    assert index.get_many(pa.array([int(first[0]), None])).null_count == 1
    assert index.get(int(first[0]))["last"] == last[0] and index.get(1 << 20) is None
    # Out, and in again.
    again = index.to_arrow()
    flat = pa.table({"first": again["first"], **{name: again["value"].combine_chunks().field(name) for name in ("last", "value")}})
    pl.build(flat, tmp_path / "again.pleach", interval="last", value="value")
    assert (tmp_path / "again.pleach").read_bytes() == (tmp_path / "i.pleach").read_bytes()
    with pytest.raises(pl.InputError, match="intervals overlap"):
        pl.build({"a": [1, 5], "b": [5, 9], "v": [1, 2]}, tmp_path / "x.pleach", interval="b", value="v")
    pl.build({"a": [1, 5], "b": [5, 9], "v": [1, 2]}, tmp_path / "x.pleach", interval="b", value="v", overlap="last")
    assert [pl.open(tmp_path / "x.pleach")[key]["v"] for key in (4, 5)] == [1, 2]
    pl.build({"a": [1, 5], "b": [5, 9], "v": [1, 2]}, tmp_path / "x.pleach", interval="b", interval_end="exclusive")
    assert pl.open(tmp_path / "x.pleach")[5] == {"b": 8, "v": 2}
    pl.build({"net": ["10.0.0.0/8", "2001:db8::/32"], "v": [1, 2]}, tmp_path / "c.pleach", key_type="cidr")
    networks = pl.open(tmp_path / "c.pleach")
    assert networks["10.1.2.3"] == {"last": "10.255.255.255", "v": 1} and "11.0.0.0" not in networks
    assert networks[ipaddress.ip_address("2001:db8::7")]["v"] == 2


def test_composite_keys(tmp_path):
    random.seed(5)
    names = ["", "a", "a,b", 'say "x"', "b", "é"]
    rows = [(random.choice(names), random.randrange(-5, 5), random.randrange(3)) for _ in range(500)]
    table = pa.table({
        "name": [row[0] for row in rows],
        "shift": pa.array([row[1] for row in rows], pa.int16()),
        "day": pa.array([row[2] for row in rows], pa.int32()).cast(pa.date32()),
        "n": pa.array(range(500), pa.uint32()),
    })
    path = tmp_path / "c.pleach"
    pl.build(table, path, key=["name", "shift", "day"], value="n")
    index = pl.open(path)
    assert index.schema["key"] == "(utf8, i16, date)" and index.schema["key_name"] == "name,shift,day"
    days = [datetime.date(1970, 1, 1 + day) for day in range(3)]
    keys = [(name, shift, days[day]) for name, shift, day in rows]
    first = {key: row for row, key in reversed(list(enumerate(keys)))}
    assert [key for key, _ in index.items()] == sorted(keys, key=lambda key: (key[0].encode(), *key[1:]))
    asked = keys + [("zz", 0, days[0]), ("a", 6, days[0])]
    values, found = index.get_many(asked)
    assert found.tolist() == [True] * 500 + [False] * 2
    assert values.tolist() == [first[key] for key in keys] + [0, 0]
    assert index[keys[3]] == first[keys[3]] and keys[3] in index and ("zz", 0, days[0]) not in index
    # Tables, frames and structs, with nulls.
    parts = table.select(["day", "name", "shift"])
    assert index.get_many(parts).to_pylist() == values[:500].tolist()
    assert index.get_many(parts.to_pandas()).tolist() == values[:500].tolist()
    polars = pytest.importorskip("polars")
    assert index.get_many(polars.from_arrow(parts)).to_list() == values[:500].tolist()
    holes = pa.array([{"name": "a", "shift": None, "day": days[0]}, None], index.to_arrow()[0].type)
    assert index.get_many(holes).null_count == 2
    # Prefixes of one and two parts, and ranges between them.
    for prefix in [("a",), ("a", 2), ("zz",)]:
        wanted = sorted(key for key in keys if key[: len(prefix)] == prefix)
        assert sorted(index.prefix(prefix).read_all()["n"].to_pylist()) == sorted(
            row for row, key in enumerate(keys) if key[: len(prefix)] == prefix
        ), wanted
    begin, end = index.prefix_many([("a",), ("b",)])
    assert index.range(("a",), ("b",)).read_all().num_rows == begin[1] - begin[0] and end[0] <= begin[1]
    # It comes back: structs build the same file.
    pl.build(index.to_arrow(), tmp_path / "d.pleach")
    assert pl.open(tmp_path / "d.pleach").to_arrow().equals(index.to_arrow())
    gone = {"op": ["del"], "name": ["a"], "shift": [0], "day": [days[0]], "n": pa.array([None], pa.uint32())}
    done = pl.rebuild(path, pa.table(gone))
    assert done.dels == 1 and index.refresh() and ("a", 0, days[0]) not in index
    with pytest.raises(pl.TypesError, match="give its 3 parts"):
        index.get_many([("a", 1)])
    with pytest.raises(pl.TypesError, match="40000 does not fit i16"):
        index.get_many(pa.table({"name": ["a"], "shift": [40000], "day": [days[0]]}))
    for kind in ["u8", "u32,u32"]:
        with pytest.raises(pl.InputError, match="types of parts need several key columns"):
            pl.build(table, tmp_path / "x.pleach", key="shift", key_type=kind)
    with pytest.raises(pl.InputError, match="two columns of the key"):
        pl.build(table, tmp_path / "x.pleach", key=["name", "name"])


def test_prefixes(tmp_path):
    index = built(tmp_path, "utf8", ["", "a", "ab", "abc", "b"])
    first, end = index.prefix_many(["", "a", "ab", "c"])
    assert list(zip(first.tolist(), end.tolist())) == [(0, 5), (1, 4), (2, 4), (5, 5)]
    assert index.prefix("ab").read_all()["v"].to_pylist() == [3, 4]
    digits = built(tmp_path, "hex", ["00", "5baa61", "5bab"], name="h.pleach")
    assert digits.prefix_many(np.array(["5", "5baa", "6"]))[1].tolist() == [3, 2, 3]
    networks = built(tmp_path, "ip", KEYS["ip"], name="i.pleach")
    assert networks.prefix("9.0.0.0/8").read_all().num_rows == 1
    with pytest.raises(pl.TypesError, match="have no prefixes"):
        built(tmp_path, "date", KEYS["date"], name="d.pleach").prefix("2024")
    with pytest.raises(pl.TypesError, match="numbers are no prefixes"):
        index.prefix_many(np.array([1, 2]))


def test_shorter_keys(tmp_path):
    keys = [f"https://example.org/{number * number}/é" for number in range(2000)]
    for kind in ["hash64", "prefix:auto"]:
        index = built(tmp_path, kind, keys, name=f"{kind[:4]}.pleach")
        values, found = index.get_many(keys)
        assert found.all() and values.tolist() == list(range(1, 2001))
        assert index.approximate is not None
        with pytest.raises(pl.PleachError, match="approximate"):
            pl.join(index, index)
        assert pl.join(index, index, approximate=True).num_rows == 2000
        assert index.schema["key"].startswith(kind[:6])
    assert pl.open(tmp_path / "hash.pleach").approximate == 2000 / 2**64
    changes = {"op": ["put"], "k": [keys[5]], "v": [9]}
    with pytest.raises(pl.PleachError, match="approximate"):
        pl.rebuild(tmp_path / "hash.pleach", changes)
    pl.rebuild(tmp_path / "hash.pleach", changes, approximate=True)
    assert pl.open(tmp_path / "hash.pleach")[keys[5]] == 9
    assert built(tmp_path, "utf8", keys, name="e.pleach").approximate is None
