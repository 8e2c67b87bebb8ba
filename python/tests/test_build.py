"""Building from every kind of source."""

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
import subprocess
import sys
import os

import pleachdb as pl

try:
    import polars
except ImportError:  # it has no wheel for free-threaded builds of CPython
    polars = None

TABLE = pa.table({"k": pa.array([3, 1, 2], pa.int64()), "v": pa.array([30, 10, 20], pa.int32())})


def sources(folder):
    pyarrow.parquet.write_table(TABLE, folder / "t.parquet")
    (folder / "t.csv").write_text("k,v\n3,30\n1,10\n2,20\n")
    yield str(folder / "t.parquet")
    yield folder / "t.parquet"
    yield [folder / "t.parquet"]
    yield TABLE
    yield TABLE.to_batches()[0]
    yield TABLE.to_reader()
    if polars:
        yield polars.from_arrow(TABLE)
    yield pandas.DataFrame({"k": [3, 1, 2], "v": np.array([30, 10, 20], np.int32)})
    yield {"k": [3, 1, 2], "v": np.array([30, 10, 20], np.int32)}
    yield iter([{"k": [3, 1], "v": pa.array([30, 10], pa.int32())}, {"k": [2], "v": pa.array([20], pa.int32())}])
    yield (batch for batch in TABLE.to_batches(max_chunksize=1))


def test_sources(tmp_path):
    for number, source in enumerate(sources(tmp_path)):
        built = pl.build(source, tmp_path / "t.pleach", key="k", value="v")
        assert built.tuples == 3, number
        index = pl.open(tmp_path / "t.pleach")
        assert dict(index.items()) == {1: 10, 2: 20, 3: 30}, number
        assert index.schema["key_name"] == "k"
    built = pl.build(tmp_path / "t.csv", tmp_path / "t.pleach", key_type="u32", value_type="f64")
    assert dict(pl.open(tmp_path / "t.pleach").items()) == {1: 10.0, 2: 20.0, 3: 30.0}


def test_options(tmp_path):
    path = tmp_path / "o.pleach"
    twice = {"k": [1, 1, 2], "v": [1, 2, 3]}
    pl.build(twice, path, unique="last")
    assert dict(pl.open(path).items()) == {1: 2, 2: 3}
    with pytest.raises(pl.InputError):
        pl.build(twice, path, unique="error")
    with pytest.raises(pl.InputError):
        pl.build({"k": [2, 1], "v": [1, 2]}, path, sorted=True)
    assert dict(pl.open(path).items()) == {1: 2, 2: 3}
    phases = set()
    pl.build(twice, path, progress=lambda phase, done, total: phases.add(phase))
    assert phases
    for bad in [{"unique": "some"}, {"layout": "x"}, {"key_type": "u7"}, {"key": "none"}]:
        with pytest.raises(pl.PleachError):
            pl.build(twice, path, **bad)
    with pytest.raises(pl.InputError):
        pl.build(iter([]), path)
    with pytest.raises(pl.PleachError):
        pl.build(5, path)

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        pl.build({"k": np.arange(1 << 20), "v": np.arange(1 << 20)}, tmp_path / "s.pleach", progress=stop)
    assert not (tmp_path / "s.pleach").exists()
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(pl.BuildError):
        pl.build(twice, tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_command(tmp_path):
    command = os.path.join(os.path.dirname(sys.executable), "pleach")
    (tmp_path / "t.csv").write_text("k,v\n3,30\n1,10\n")
    run = lambda *words: subprocess.run([command, *words], cwd=tmp_path, capture_output=True, text=True)
    assert run("build", "t.csv", "-o", "t.pleach").returncode == 0
    assert run("get", "t.pleach", "3").stdout.split() == ["3", "30"]
    assert run("get", "none.pleach", "3").returncode not in (0, 1)
    assert run("--version").returncode == 0


def test_build_from_folders_patterns_and_compressed_files(tmp_path):
    import gzip

    folder = tmp_path / "t" / "year=2024"
    folder.mkdir(parents=True)
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"id,v\n1,10\n"))
    (folder / "b.csv").write_text("id,v\n2,20\n")
    for source in (tmp_path / "t", str(folder / "*.csv*"), [folder / "a.csv.gz", folder / "b.csv"]):
        pl.build(source, tmp_path / "o.pleach")
        assert dict(pl.open(tmp_path / "o.pleach").items()) == {1: 10, 2: 20}
    pl.build(tmp_path / "t", tmp_path / "o.pleach", value="year")
    assert dict(pl.open(tmp_path / "o.pleach").items()) == {1: 2024, 2: 2024}
    (tmp_path / "t.ndjson").write_text('{"id":"x","v":1}\n{"id":"y","v":2}\n')
    pl.build(tmp_path / "t.ndjson", tmp_path / "o.pleach")
    assert dict(pl.open(tmp_path / "o.pleach").items()) == {"x": 1, "y": 2}
    with pytest.raises(pl.InputError, match="no file matches"):
        pl.build(str(tmp_path / "none-*.csv"), tmp_path / "o.pleach")
