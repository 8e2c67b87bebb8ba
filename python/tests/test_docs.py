"""The programs of the guide run as written, and so do the examples of docstrings."""

import doctest
import importlib
import importlib.util
import os
import pathlib
import re

import pytest

import pleachdb
import pleachdb._build
import pleachdb._relation
import pleachdb._set

GUIDE = pathlib.Path(os.environ.get("PLEACH_GUIDE") or pathlib.Path(__file__).parents[2] / "docs" / "PYTHON.md")


def programs():
    """Blocks of the guide: what they need, and their text."""
    return re.findall(r"^```python ?(\w*)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def is_there(need):
    if need == "cuda":
        return is_there("torch") and importlib.import_module("torch").cuda.is_available()
    return not need or importlib.util.find_spec(need) is not None


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """The names that the plain programs make, one after the other, in an empty folder."""
    folder = tmp_path_factory.mktemp("tour")
    before = os.getcwd()
    os.chdir(folder)
    names = {}
    for number, (need, text) in enumerate(programs()):
        if not need:
            exec(compile(text, f"{GUIDE.name}, program {number}", "exec"), names)
    yield names
    os.chdir(before)


def test_the_tour_runs(tour):
    assert sum(not need for need, _ in programs()) >= 6


@pytest.mark.parametrize("number", [number for number, (need, _) in enumerate(programs()) if need])
def test_recipes(tour, number, monkeypatch):
    need, text = programs()[number]
    if not is_there(need):
        pytest.skip(f"{need} is not here")
    if need == "ray":
        monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    names = dict(tour)
    if need == "torch" and "class Rows" in text:
        # Workers that are started by `spawn` import the class from a file.
        text = text.replace("num_workers=2", "num_workers=2, multiprocessing_context='fork'")
    exec(compile(text, f"{GUIDE.name}, program {number}", "exec"), names)


@pytest.mark.parametrize("module", [pleachdb._build, pleachdb._relation, pleachdb._set])
def test_docstrings(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(module)
    assert results.attempted > 2 and results.failed == 0


def test_everything_public_has_a_docstring():
    for name in pleachdb.__all__:
        assert (getattr(pleachdb, name).__doc__ or "").strip(), name
