"""Files and sets as tables of the package `datafusion`."""

import datafusion
import pyarrow as pa
import pytest
from conftest import answers

import pleach_datafusion as pd

QUERIES = [
    "SELECT * FROM t",
    "SELECT s, k FROM t WHERE k = 3000",
    "SELECT * FROM t WHERE k = 3001",
    "SELECT * FROM t WHERE k IN (0, 9, 10, 44997, 99999)",
    "SELECT * FROM t WHERE k BETWEEN 11000 AND 13100",
    "SELECT * FROM t WHERE k > 44000 OR k < 30",
    "SELECT * FROM t WHERE k < 3000 AND n % 5 = 1",
    "SELECT * FROM t WHERE abs(n) > 1000 AND k >= 20000",
    "SELECT * FROM t WHERE s = 'text 5' AND k < 9000",
    "SELECT count(*), min(k), max(k) FROM t",
    "SELECT s, count(*), sum(n) FROM t WHERE k < 30000 GROUP BY s",
    "SELECT DISTINCT k FROM t WHERE k < 100",
    "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.n = 7",
    "SELECT * FROM t WHERE k IN (SELECT k + 3 FROM t WHERE n = 12)",
]


def context(table, name="t"):
    ctx = datafusion.SessionContext()
    if isinstance(table, pa.Table):
        ctx.from_arrow(table, name=name)
    else:
        pd.register(ctx, name, table)
    return ctx


def ask(ctx, query):
    return answers(pa.table(ctx.sql(query)))


def plan(ctx, query):
    return "\n".join(row[1] for row in ask(ctx, f"EXPLAIN {query}") if row[0] == "physical_plan")


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_rows_in_memory(made, query):
    expected = sorted(ask(context(made.rows), query))
    assert sorted(ask(context(made.file), query)) == expected
    assert sorted(ask(context(made.set), query)) == expected


def test_order_and_limit(made):
    for path in (made.file, made.set):
        ctx = context(path)
        query = "SELECT k FROM t WHERE k >= 100 ORDER BY k LIMIT 5"
        assert ask(ctx, query) == [(102,), (102,), (105,), (105,), (108,)]
        assert len(ask(ctx, "SELECT * FROM t LIMIT 7")) == 7


def test_conditions_on_the_key_need_no_filter(made):
    for path in (made.file, made.set):
        ctx = context(path)
        for condition in ("k = 3000", "k IN (3, 6)", "k BETWEEN 5 AND 70"):
            text = plan(ctx, f"SELECT * FROM t WHERE {condition}")
            assert "PleachScanExec" in text and "FilterExec" not in text, text
        assert "FilterExec" in plan(ctx, "SELECT * FROM t WHERE n = 3")


def test_only_files_that_can_have_the_key_open(made):
    text = "\n".join(row[1] for row in ask(context(made.set), "EXPLAIN ANALYZE SELECT * FROM t WHERE k = 3000"))
    assert "files_opened=1," in text, text


def test_statistics_cross(made):
    for path in (made.file, made.set):
        ctx = context(path)
        assert "PleachScanExec" not in plan(ctx, "SELECT count(*), min(k), max(k) FROM t")


def test_what_does_not_cross(made):
    """What the README says is missing: when this fails, change it."""
    ctx = context(made.set)
    ctx.from_arrow(made.rows.slice(0, 4).select(["k"]).rename_columns(["q"]), name="few")
    query = "SELECT t.* FROM few JOIN t ON few.q = t.k"
    assert "LookupJoinExec" not in plan(ctx, query)
    # The order crosses, but by an expression that the other module does not know as its column.
    assert "SortExec" in plan(ctx, "SELECT * FROM t ORDER BY k")
    text = "\n".join(row[1] for row in ask(ctx, f"EXPLAIN ANALYZE {query}"))
    assert "FFI_ExecutionPlan: PleachScanExec" in text and "files_opened=8" in text, text


def test_filters_with_functions_of_the_session(made):
    ctx = context(made.file)
    is_even = datafusion.udf(
        lambda array: pa.array([value.as_py() % 2 == 0 for value in array]), [pa.int64()], pa.bool_(), "immutable", "is_even"
    )
    ctx.register_udf(is_even)
    found = ask(ctx, "SELECT k FROM t WHERE is_even(k) AND k < 20")
    assert found == [(0,), (0,), (6,), (6,), (12,), (12,), (18,), (18,)]


def test_data_frames_and_schemas(made):
    ctx = datafusion.SessionContext()
    ctx.catalog().schema().register_table("t", pd.Table(made.file))
    col = datafusion.col
    frame = ctx.table("t").filter(col("k") == datafusion.lit(3000)).select(col("n"))
    assert len(frame.to_pylist()) == 2
    assert len(ctx.read_table(pd.Table(made.set)).limit(3).to_pylist()) == 3


def test_attributes(made):
    table = pd.Table(made.set)
    assert (table.path, table.columns, table.generation) == (str(made.set), ["k", "n", "s"], 1)
    assert len(table) == made.rows.num_rows and "8 files" in repr(table)


def test_generations(tmp_path):
    path = tmp_path / "x.set"
    session = pd.Session()

    def copy(low, high):
        query = f"SELECT value AS k, value * {high} AS v FROM generate_series({low}, {high})"
        session.sql(f"COPY ({query}) TO '{path}' STORED AS PLEACH OPTIONS (key k)")

    copy(1, 5)
    ctx = context(path)
    first = pd.register(ctx, "first", path, generation=1)
    copy(1, 6)
    pd.register(ctx, "again", path, generation=1)
    count = "SELECT count(*), sum(v) FROM {}"
    assert ask(ctx, count.format("t")) == [(6, 126)]
    assert ask(ctx, count.format("first")) == ask(ctx, count.format("again")) == [(5, 75)]
    assert ask(ctx, "SELECT v FROM first WHERE k > 3 AND v > 20 ORDER BY k LIMIT 9") == [(25,)]
    assert (first.generation, pd.Table(path).generation) == (1, 2)
    with pytest.raises(pd.PleachError, match="7"):
        pd.Table(path, generation=7)


def test_errors_are_one_line(made, tmp_path):
    ctx = datafusion.SessionContext()
    with pytest.raises(pd.NotFoundError) as error:
        pd.register(ctx, "t", tmp_path / "missing.pleach")
    assert "missing.pleach" in str(error.value) and "\n" not in str(error.value)
    assert isinstance(error.value, FileNotFoundError)
    (tmp_path / "text").write_text("no file of ours, but long enough to be read as one" * 100)
    with pytest.raises(pd.DamagedError, match="text"):
        pd.Table(tmp_path / "text")
    with pytest.raises(TypeError, match="datafusion.SessionContext"):
        pd.Table(made.file).__datafusion_table_provider__(object())
    with pytest.raises(TypeError):
        pd.Table(7)


def test_a_missing_file_of_a_set_is_an_error(made, tmp_path):
    path = tmp_path / "x.set"
    session = pd.Session()
    query = f"COPY (SELECT value AS k FROM generate_series(1, 3000)) TO '{path}' STORED AS PLEACH"
    session.sql(f"{query} OPTIONS (key k, partition_tuples 1000)")
    ctx = context(path)
    lost = sorted((path / "files").iterdir())[0]
    lost.unlink()
    with pytest.raises(Exception, match=lost.name):
        ask(ctx, "SELECT sum(k) FROM t")
