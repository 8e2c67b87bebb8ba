"""Sessions of the engine that is part of the module."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import answers
from test_table import QUERIES

import pleach_datafusion as pd

# Seconds of work, of which no row is written.
LONG = "SELECT count(*) FROM generate_series(1, 60000) a, generate_series(1, 60000) b WHERE (a.value * b.value) % 7 = 8"


def plan(session, query):
    return "\n".join(session.sql(f"EXPLAIN {query}").to_arrow()["plan"].to_pylist())


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_rows_in_memory(made, query):
    tables = [made.rows, made.file, made.set, pd.Table(made.set, generation=1)]
    expected, *others = (sorted(answers(pa.table(pd.Session().register("t", table).sql(query)))) for table in tables)
    assert all(other == expected for other in others)


def test_a_million_keys(made):
    """Keys that are there and others, each several times."""
    keys = pa.array([number * 7919 % 60_000 for number in range(1_000_000)], pa.int64())
    session = pd.Session().register("few", pa.table({"q": keys}))
    totals = []
    for table in (made.rows, made.file, made.set):
        session.register("t", table)
        totals.append(answers(session.sql("SELECT count(*), sum(n), sum(q) FROM few JOIN t ON q = k").to_arrow()))
    assert totals[0] == totals[1] == totals[2]
    assert totals[0][0][0] == 2 * pc.sum(pc.and_(pc.equal(pc.multiply(pc.divide(keys, 3), 3), keys), pc.less(keys, 45_000))).as_py()


def test_joins_are_look_ups(made):
    session = pd.Session().register("t", made.set).register("few", pa.table({"q": pa.array([3, 9000, 1], pa.int64())}))
    query = "SELECT q, n FROM few JOIN t ON few.q = t.k"
    text = plan(session, query)
    assert "LookupJoinExec" in text or "DynamicFilter" in text, text
    assert len(answers(session.sql(query).to_arrow())) == 4


def test_rows_are_streams(made):
    rows = pd.Session(options={"datafusion.execution.batch_size": "100"}).register("t", made.set).sql("SELECT k FROM t")
    assert rows.columns == ["k"]
    assert pa.schema(rows).names == ["k"]
    reader = pa.RecordBatchReader.from_stream(rows)
    assert reader.read_next_batch().num_rows <= 100
    reader.close()
    # A query runs each time, and its partitions come as they are ready.
    once, again, stream = (table.sort_by("k") for table in (rows.to_arrow(), rows.to_arrow(), pa.table(rows)))
    assert once == again == stream and once.num_rows > 100
    none = pd.Session().register("t", made.set).sql("SELECT k FROM t WHERE k = 1")
    assert pa.table(none).num_rows == none.to_arrow().num_rows == 0 and none.to_arrow().column_names == ["k"]


def test_rows_are_tables_of_other_sessions(made):
    rows = pd.Session().register("t", made.file).sql("SELECT k, n FROM t WHERE k < 10")
    total = pd.Session().register("u", rows).sql("SELECT count(*) AS c FROM u").to_arrow()
    assert total["c"].to_pylist() == [8]


def test_statements_run_at_once(made, tmp_path):
    session = pd.Session()
    path = tmp_path / "part.pleach"
    session.sql(f"CREATE EXTERNAL TABLE t STORED AS PLEACH LOCATION '{made.set}'")
    copied = session.sql(f"COPY (SELECT k, n FROM t WHERE k < 300) TO '{path}' STORED AS PLEACH OPTIONS (key k)")
    assert path.exists()
    assert copied.to_arrow()["count"].to_pylist() == [200]
    assert len(pd.Table(path)) == 200
    assert session.sql(f"SELECT count(*) AS c FROM '{path}'").to_arrow()["c"].to_pylist() == [200]
    session.sql("SET datafusion.execution.batch_size = 64")
    assert session.sql("SHOW datafusion.execution.batch_size").to_arrow()["value"].to_pylist() == ["64"]


def test_a_name_takes_another_table(made):
    session = pd.Session().register("t", made.rows.slice(0, 5))
    session.register("t", made.rows.slice(0, 6))
    assert session.sql("SELECT * FROM t").to_arrow().num_rows == 6


def test_errors_are_one_line(made, tmp_path):
    session = pd.Session().register("t", made.file)
    cases = [
        (pd.InputError, "SELEC 1"),
        (pd.InputError, "SELECT missing FROM t"),
        (pd.InputError, "SELECT * FROM nowhere"),
        (pd.NotFoundError, f"SELECT * FROM '{tmp_path}/missing.pleach'"),
        (pd.InputError, f"COPY t TO '{tmp_path}/x.pleach' STORED AS PLEACH OPTIONS (key missing)"),
    ]
    for kind, query in cases:
        with pytest.raises(kind) as error:
            session.sql(query)
        assert "\n" not in str(error.value) and str(error.value)
    with pytest.raises(pd.NotFoundError):
        session.register("u", tmp_path / "missing.pleach")
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        session.register("u", 7)
    with pytest.raises(pd.InputError):
        pd.Session(options={"datafusion.no.such": "1"})
    with pytest.raises(pd.PleachError):
        session.sql("SELECT 1 / (k - k) FROM t").to_arrow()


def test_memory_is_limited(made):
    session = pd.Session(memory_bytes=100_000, partitions=1).register("t", made.rows)
    with pytest.raises(pd.PleachError):
        session.sql("SELECT k, s, count(*) FROM t GROUP BY k, s ORDER BY s").to_arrow()


def test_threads_share_a_session(made):
    session = pd.Session().register("t", made.set)
    found = []

    def ask(key):
        found.append(session.sql(f"SELECT k FROM t WHERE k = {key}").to_arrow()["k"].to_pylist() == [key, key])

    threads = [threading.Thread(target=ask, args=(number * 300,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_ctrl_c_ends_a_query_and_other_threads_run_meanwhile():
    rows = pd.Session().sql(LONG)
    ticks = []

    def interrupt():
        start = time.monotonic()
        while time.monotonic() - start < 1:
            ticks.append(time.sleep(0.01))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rows.to_arrow()
    assert time.monotonic() - start < 10
    assert len(ticks) > 10
    thread.join()


def test_ctrl_c_ends_a_stream():
    program = f"""
        import os, signal, threading
        import pyarrow as pa
        import pleach_datafusion as pd
        rows = pd.Session().sql({LONG!r})
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            try:
                pa.table(rows)
            except OSError as error:
                print(error)
                for _ in range(100):
                    pass
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
    """
    program = textwrap.dedent(program)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout.splitlines()[-1] == "interrupted", run


def test_a_forked_process_is_told():
    program = """
        import os
        import pleach_datafusion as pd
        session = pd.Session()
        session.sql("SELECT 1").to_arrow()
        if os.fork() == 0:
            try:
                session.sql("SELECT 2").to_arrow()
            except pd.PleachError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
    """
    program = textwrap.dedent(program)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "forked" in run.stdout, run
