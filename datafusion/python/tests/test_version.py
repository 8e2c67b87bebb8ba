"""Another major version of the package `datafusion` is refused before anything crosses."""

import sys

import datafusion
import pytest

import pleach_datafusion as pd


def test_versions_are_equal():
    pd.check_version()
    assert pd.ENGINE.split(".")[0] == datafusion.__version__.split(".")[0] == "55"


class Trap:
    """A session that nobody may touch."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize("theirs", ["54.0.0", "56.1.0", "5.5.0", "unknown", ""])
def test_another_major_version_is_refused(made, monkeypatch, theirs):
    monkeypatch.setattr(datafusion, "__version__", theirs)
    calls = [
        pd.check_version,
        lambda: pd.register(Trap(), "t", made.file),
        lambda: pd.Table(made.file).__datafusion_table_provider__(Trap()),
        lambda: datafusion.SessionContext().register_table("t", pd.Table(made.file)),
    ]
    for call in calls:
        with pytest.raises(pd.VersionError) as error:
            call()
        text = str(error.value)
        assert f"it is {theirs}," in text and "needs 55" in text and "pip install 'datafusion==55.*'" in text
        assert isinstance(error.value, ImportError) and "\n" not in text


def test_an_old_package_passes_no_session(made, monkeypatch):
    monkeypatch.setattr(datafusion, "__version__", "51.0.0")
    with pytest.raises(pd.VersionError, match="51.0.0"):
        pd.Table(made.file).__datafusion_table_provider__()


def test_another_minor_version_is_taken(made, monkeypatch):
    monkeypatch.setattr(datafusion, "__version__", "55.9.1")
    ctx = datafusion.SessionContext()
    pd.register(ctx, "t", made.file)
    assert ctx.sql("SELECT k FROM t LIMIT 1").to_pylist() == [{"k": 0}]


def test_a_missing_package(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(pd.VersionError, match="missing package 'datafusion'"):
        pd.check_version()
    # Sessions of this module do not need it.
    assert pd.Session().register("t", made.file).sql("SELECT k FROM t LIMIT 1").to_arrow()["k"].to_pylist() == [0]
