"""The native part; `src/*.rs` has its documentation. Programs use `pleach_datafusion`."""

import os
from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

ENGINE: str
__version__: str

def check_version() -> None: ...

class Table:
    path: str
    generation: int
    columns: list[str]

    def __new__(cls, path: str | os.PathLike[str], generation: int | None = None) -> Table: ...
    def __len__(self) -> int: ...
    def __datafusion_table_provider__(self, session: Any = None) -> Any: ...

class Session:
    def __new__(
        cls,
        *,
        partitions: int | None = None,
        memory_bytes: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Session: ...
    def register(self, name: str, table: str | os.PathLike[str] | Table | ArrowStream) -> Session: ...
    def sql(self, query: str) -> Rows: ...

class Rows:
    columns: list[str]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def to_arrow(self) -> pyarrow.Table: ...
