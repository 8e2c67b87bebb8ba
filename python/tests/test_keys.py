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
