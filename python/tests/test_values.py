"""Values that are stored once."""

import numpy as np
import pyarrow as pa
import pytest

import pleachdb as pl

COUNT = 5000


def table(kind):
    """Keys, each value many times; texts, byte strings of one length, or records."""
    keys = np.arange(COUNT, dtype=np.uint64) * 3
    number = np.arange(COUNT) * 7919 % 250
    if kind == "texts":
        return pa.table({"k": keys, "v": [f"label {n}" if n else "" for n in number]})
    if kind == "bytes":
        return pa.table({"k": keys, "v": pa.array([b"%09d" % n for n in number], pa.binary(9))})
    return pa.table({"k": keys, "a": pa.array(number, pa.int32()), "b": number / 2 ** 40})


@pytest.mark.parametrize("kind", ["texts", "bytes", "records"])
def test_answers_are_those_of_plain_values(tmp_path, kind):
    value = "a,b" if kind == "records" else "v"
    names = {form: tmp_path / f"{form}.pleach" for form in ["plain", "dictionary"]}
    for form, name in names.items():
        pl.build(table(kind), name, value=value, layout=f"lines,spine,grid,{form}")
    assert names["dictionary"].stat().st_size < names["plain"].stat().st_size
    plain, once = (pl.open(name) for name in names.values())
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 3 * COUNT + 9, 20_000).astype(np.uint64)
    for method in ["get_many", "floor_many", "ceiling_many"]:
        expected, found = getattr(plain, method)(keys), getattr(once, method)(keys)
        # Arrays of pyarrow, or of NumPy.
        listed = [[part.tolist() for part in parts] for parts in (expected, found)]
        assert listed[0] == listed[1], method
    assert list(once.items()) == list(plain.items())
    assert once.get(3) == plain.get(3) and once.get(4) is None
    assert pl.fsck(names["dictionary"])
    auto = tmp_path / "auto.pleach"
    pl.build(table(kind), auto, value=value)
    assert auto.stat().st_size == names["dictionary"].stat().st_size


def test_numbers_have_no_dictionary(tmp_path):
    with pytest.raises(pl.PleachError, match="in the tuple lines"):
        pl.build({"k": [1], "v": [2]}, tmp_path / "n.pleach", layout="lines,dictionary")
