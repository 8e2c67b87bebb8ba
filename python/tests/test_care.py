"""Changing files, and their care."""

import faulthandler
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import pleachdb as pl


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "c.pleach"
    pl.build({"k": np.arange(1, 6), "v": np.arange(1, 6) * 10}, path)
    return path


def test_rebuild(path, tmp_path):
    index = pl.open(path)
    done = pl.rebuild(path, {"op": ["put", "add", "del", "del"], "k": [1, 2, 3, 9], "v": [11, 21, None, None]}, keep=1)
    assert (done.generation, done.base_tuples, done.tuples) == (2, 5, 5)
    assert (done.puts, done.adds, done.dels, done.absent) == (1, 1, 2, 1)
    assert list(pl.open(path).items()) == [(1, 11), (2, 20), (2, 21), (4, 40), (5, 50)]
    assert dict(index.items())[1] == 10 and index.refresh() and index[1] == 11
    names = pl.rebuild(path, pa.table({"what": ["put"], "id": [7], "x": [70]}), "id", "x", op="what")
    assert names.tuples == 6 and pl.open(path)[7] == 70
    (tmp_path / "changes.csv").write_text("op,k,v\nput,8,80\n")
    assert pl.rebuild(path, tmp_path / "changes.csv", method="merge").method == "merge"
    assert [one.number for one in pl.generations(path)] == [1, 4]
    assert [one.is_current for one in pl.generations(path)] == [False, True]
    assert pl.rollback(path) == 5
    assert dict(pl.open(path).items()) == {1: 10, 2: 20, 3: 30, 4: 40, 5: 50}


def test_refused_changes_leave_the_file(path):
    before = path.read_bytes()
    for changes in [
        {"op": ["move"], "k": [1], "v": [1]},
        {"op": ["put"], "k": [1], "v": [None]},
        {"k": [1], "v": [1]},
        {"op": ["put"], "k": ["x"], "v": [1]},
        {"op": ["put"], "k": [1.5], "v": [1]},
    ]:
        with pytest.raises(pl.InputError):
            pl.rebuild(path, changes)
    with pytest.raises(pl.InputError):
        pl.rebuild(path, {"op": ["put"], "k": [1], "v": [1]}, method="magic")
    with pytest.raises(pl.PleachError):
        pl.rebuild(path.with_name("none.pleach"), {"op": ["put"], "k": [1], "v": [1]})
    with pytest.raises(pl.BuildError):
        pl.rollback(path, 77)
    assert path.read_bytes() == before


def test_upgrade(path, tmp_path):
    before = path.read_bytes()
    pl.upgrade(path)
    assert path.read_bytes() == before, "it is of this version"
    old = pathlib.Path(__file__).parents[2] / "tests/data/v0.13/u64_u32.pleach"
    copy = tmp_path / "old.pleach"
    copy.write_bytes(old.read_bytes())
    with pytest.raises(pl.DamagedError, match="pleach upgrade"):
        pl.open(copy)
    pl.upgrade(copy)
    assert len(pl.open(copy)) > 0 and pl.fsck(copy).is_clean
    copy.write_bytes(old.read_bytes()[:-1])
    with pytest.raises(pl.DamagedError):
        pl.upgrade(copy)


def test_compact(path, tmp_path):
    other = tmp_path / "d.pleach"
    pl.build({"k": [2, 8], "v": [22, 88]}, other)
    done = pl.compact([path, other], tmp_path / "all.pleach")
    assert done.tuples == 7 and done.lost_tuples == 0
    done = pl.compact([path, other], tmp_path / "all.pleach", unique="last")
    assert dict(pl.open(tmp_path / "all.pleach").items()) == {1: 10, 2: 22, 3: 30, 4: 40, 5: 50, 8: 88}
    pl.build({"k": ["x"], "v": [1]}, other)
    with pytest.raises(pl.TypesError):
        pl.compact([path, other], tmp_path / "all.pleach")
    with pytest.raises(pl.PleachError):
        pl.compact([], tmp_path / "all.pleach")


def test_export(path, tmp_path):
    pl.export(path, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[:2] == ["k,v", "1,10"]
    pl.export(pl.open(path), tmp_path / "t.parquet")
    assert pa.parquet.read_table(tmp_path / "t.parquet").num_rows == 5
    pl.export(path, tmp_path / "t", format="arrow")
    assert pl.build(tmp_path / "t.parquet", tmp_path / "again.pleach").tuples == 5
    with pytest.raises(pl.InputError, match="extension"):
        pl.export(path, tmp_path / "t")
    with pytest.raises(pl.NotFoundError):
        pl.export(tmp_path / "none.pleach", tmp_path / "t.csv")
    with pytest.raises(pl.PleachError):
        pl.export(path, path)
    assert pl.fsck(path)


def test_damage_is_refused(path, tmp_path):
    raw = bytearray(path.read_bytes())
    raw[5000] ^= 1
    path.write_bytes(raw)
    report = pl.fsck(path)
    assert not report and report.findings
    with pytest.raises(pl.DamagedError):
        pl.export(path, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()
    with pytest.raises(pl.PleachError):
        pl.compact([path], tmp_path / "c2.pleach")
    with pytest.raises(pl.PleachError):
        pl.rebuild(path, {"op": ["del"], "k": [1], "v": pa.nulls(1, pa.int64())})


@pytest.mark.parametrize("before", ["", "faulthandler.enable()"])
def test_truncation_is_contained(path, before):
    program = f"""
        import faulthandler, numpy as np, os, pleachdb as pl
        {before}
        pl.build({{"k": np.arange(1 << 20), "v": np.arange(1 << 20)}}, "big.pleach")
        index = pl.open("big.pleach")
        pl.contain_sigbus()
        os.truncate("big.pleach", 8192)
        try:
            index.get_many(np.arange(1 << 20))
        except pl.DamagedError as error:
            print("contained", error)
        os.kill(os.getpid(), 11) if {bool(before)} else None
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=path.parent, capture_output=True, text=True
    )
    assert done.stdout.startswith("contained"), done
    # The handlers of others are still there.
    assert ("Segmentation fault" in done.stderr) == bool(before)


def test_progress_bars(path, monkeypatch, capsys):
    seen = []
    pl.rebuild(path, {"op": ["put"], "k": [1], "v": [12]}, progress=lambda *now: seen.append(now))
    assert seen and all(len(now) == 3 for now in seen)
    for module in [None, "tqdm"]:
        if module is None:
            monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        else:
            monkeypatch.delitem(sys.modules, "tqdm.auto", raising=False)
        assert pl.build({"k": [1], "v": [2]}, path, progress=True).tuples == 1

    class Terminal:
        text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    from pleachdb._progress import Line

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    line = Line("build")
    line.show("read", 1, 4)
    line.close()
    assert "25.0 %" in terminal.text and terminal.text.endswith("\r\033[K")


def test_an_interruption_leaves_nothing(path, tmp_path):
    program = f"""
        import os, signal, threading, pleachdb as pl, numpy as np
        keys = np.random.default_rng(1).permutation(1 << 23)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                pl.build({{"k": keys, "v": keys}}, "i.pleach", force=True)
                os.remove("i.pleach")
        except KeyboardInterrupt:
            print("interrupted", sorted(os.listdir()))
    """
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=empty, capture_output=True, text=True
    )
    assert done.stdout.split("[")[0].strip() == "interrupted", done
    assert not [name for name in os.listdir(empty) if name != "i.pleach"], os.listdir(empty)
