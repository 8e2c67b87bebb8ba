"""A million floors, ceilings, intervals and prefixes, against arrays that have the answer for every key."""

import numpy as np

import pleachdb as pl

KEYS = 1 << 21
ROWS = 1 << 18
QUERIES = 1_000_000


def made():
    rng = np.random.default_rng(1)
    return rng.integers(0, KEYS, ROWS), rng.integers(0, KEYS, QUERIES)


def filled(at, values):
    """For every key the value of the last key that has one and is not above; -1 without."""
    which = np.full(KEYS, -1)
    which[at] = at
    which = np.maximum.accumulate(which)
    return which, np.where(which < 0, -1, values[which])


def test_floors_and_ceilings(tmp_path):
    keys, queries = made()
    rows = np.arange(ROWS)
    path = tmp_path / "t.pleach"
    pl.build({"k": keys.astype(np.uint32), "v": rows.astype(np.uint32)}, path)
    index = pl.open(path)
    last, first = np.full(KEYS, -1), np.full(KEYS, -1)
    last[keys] = rows
    first[keys[::-1]] = rows[::-1]
    below, floors = filled(np.flatnonzero(last >= 0), last)
    above, ceilings = filled(KEYS - 1 - np.flatnonzero(first >= 0), first[::-1])
    above, ceilings = KEYS - 1 - above[::-1], ceilings[::-1]
    for method, near, expected in [("floor_many", below, floors), ("ceiling_many", above, ceilings)]:
        found_keys, values = getattr(index, method)(queries.astype(np.uint32))
        found = expected[queries] >= 0
        assert (np.asarray(values.is_valid()) == found).all()
        assert (np.asarray(found_keys.fill_null(0))[found] == near[queries][found]).all()
        assert (np.asarray(values.fill_null(0))[found] == expected[queries][found]).all()


def test_intervals(tmp_path):
    keys, queries = made()
    starts = np.unique(keys)
    room = np.diff(starts, append=KEYS)
    at = np.arange(len(starts))
    ends = starts + np.choose(at % 3, [np.zeros_like(room), room - 1, room // 2])
    path = tmp_path / "i.pleach"
    table = {name: column.astype(np.uint32) for name, column in {"s": starts, "e": ends, "v": at}.items()}
    pl.build(table, path, key="s", value="v", interval="e")
    which, holders = filled(starts, np.searchsorted(starts, np.arange(KEYS)))
    holders[np.arange(KEYS) > ends[np.maximum(holders, 0)]] = -1
    values, found = pl.open(path).get_many(queries.astype(np.uint32))
    expected = holders[queries]
    assert (found == (expected >= 0)).all()
    for name, held in [("v", at), ("e", ends)]:
        assert (np.asarray(values.field(name).fill_null(0))[found] == held[expected[found]]).all()


def test_prefixes(tmp_path):
    keys, queries = made()
    path = tmp_path / "p.pleach"
    pl.build({"k": [f"{key:06x}" for key in keys], "v": np.arange(ROWS)}, path, key_type="utf8")
    below = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=KEYS))])
    short = np.arange(QUERIES) % 6
    numbers = queries >> (4 * short)
    first, end = pl.open(path).prefix_many([f"{n:0{6 - s}x}" for n, s in zip(numbers, short, strict=True)])
    assert (first == below[np.minimum(numbers << (4 * short), KEYS)]).all()
    assert (end == below[np.minimum((numbers + 1) << (4 * short), KEYS)]).all()
