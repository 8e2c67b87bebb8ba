"""The same rows as a file, as a set, and in memory."""

import dataclasses
import pathlib

import pyarrow as pa
import pytest

import pleach_datafusion as pd

ROWS = 30_000


@dataclasses.dataclass(frozen=True)
class Made:
    rows: pa.Table
    file: pathlib.Path
    set: pathlib.Path


def rows():
    """Every third number is a key, twice."""
    numbers = range(ROWS)
    return pa.table(
        {
            "k": pa.array([number // 2 * 3 for number in numbers], pa.int64()),
            "n": pa.array([number * 7919 % 1009 for number in numbers], pa.int32()),
            "s": pa.array([f"text {number % 97}" for number in numbers], pa.large_string()),
        }
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    made = Made(rows(), folder / "orders.pleach", folder / "orders.set")
    session = pd.Session().register("source", made.rows)
    copy = "COPY (SELECT * FROM source ORDER BY n, s) TO '{}' STORED AS PLEACH OPTIONS (key k{})"
    session.sql(copy.format(made.file, ""))
    session.sql(copy.format(made.set, ", partition_tuples 4000"))
    return made


def answers(table):
    """Rows of an Arrow table as tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
