"""Containers of keys, and containers of answers of the same library.

A *world* says how answers look: NumPy arrays with a mask, Arrow arrays with nulls, or a Series of pandas or polars. It
also turns the keys into what the native part takes: NumPy arrays, or objects with one Arrow array each.
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import uuid
from typing import Any, Iterable

import numpy as np

from .errors import TypesError


#: Objects whose arrays have a meaning of their own in Arrow.
_MEANT = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal)


class Numpy:
    """NumPy in, NumPy out."""

    is_arrow = False

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        self.length = len(keys)
        self.parts: list[Any] = [keys]

    def wrap(self, parts: list[Any]) -> Any:
        """Makes an answer of Arrow arrays, one for each part."""
        return parts[0]

    def own(self, array: np.ndarray) -> Any:
        """Makes an answer of the library of the keys of a NumPy array, without a copy."""
        return array


class Torch(Numpy):
    """A tensor of the host in, tensors out."""

    def __init__(self, keys: Any) -> None:
        super().__init__(keys.detach().numpy())

    def own(self, array: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(array)


class Arrow:
    """Arrow in, an array of pyarrow out."""

    is_arrow = True

    def __init__(self, keys: Any) -> None:
        self.keys = keys
        chunks = getattr(keys, "chunks", None)
        self.is_chunked = chunks is not None
        self.parts = list(chunks) if chunks is not None else [keys]
        self.length = sum(len(part) for part in self.parts)

    def wrap(self, parts: list[Any]) -> Any:
        import pyarrow

        arrays = [pyarrow.array(part) for part in parts]
        if not self.is_chunked:
            return arrays[0]
        return pyarrow.chunked_array(arrays) if arrays else pyarrow.chunked_array([], pyarrow.null())


class Polars:
    """A polars Series in, a polars Series out."""

    is_arrow = True

    def __init__(self, keys: Any) -> None:
        if hasattr(keys, "to_struct"):
            # The columns of a DataFrame are the parts of composite keys.
            keys = keys.to_struct("key")
        self.keys = keys
        # One chunk is one Arrow array, without a copy.
        self.parts = [_One(chunk) for chunk in keys.get_chunks()]
        self.length = len(keys)

    def wrap(self, parts: list[Any]) -> Any:
        import polars

        series = [polars.Series(self.keys.name, polars.from_arrow(_pyarrow(part))) for part in parts]
        return polars.concat(series, rechunk=False) if len(series) > 1 else series[0]


class _One:
    """A Series of one chunk, as an object with one Arrow array."""

    def __init__(self, series: Any) -> None:
        self._array = series.to_arrow()

    def __len__(self) -> int:
        return len(self._array)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


class Pandas:
    """A pandas Series or Index in, a Series with the same index out."""

    is_arrow = True

    def __init__(self, keys: Any) -> None:
        import pandas

        self.keys = keys
        self.length = len(keys)
        self.index = keys.index if isinstance(keys, (pandas.Series, pandas.DataFrame)) else None
        if isinstance(keys, pandas.DataFrame):
            # Its columns are the parts of composite keys.
            import pyarrow

            structs = pyarrow.Table.from_pandas(keys, preserve_index=False).to_struct_array()
            self.parts = list(structs.chunks) if hasattr(structs, "chunks") else [structs]
            return
        values = keys.array
        if hasattr(values, "__arrow_array__"):
            import pyarrow

            array = pyarrow.array(values)
            self.parts = list(array.chunks) if hasattr(array, "chunks") else [array]
        else:
            plain = keys.to_numpy()
            self.parts = [plain if plain.dtype != object else texts(plain.tolist())]

    def wrap(self, parts: list[Any]) -> Any:
        import pandas

        pieces = [_pyarrow(part).to_pandas() for part in parts]
        series = pieces[0] if len(pieces) == 1 else pandas.concat(pieces, ignore_index=True)
        # A frame may have a column that is called so.
        name = None if isinstance(self.keys, pandas.DataFrame) else getattr(self.keys, "name", None)
        series = pandas.Series(series, name=name)
        if self.index is not None:
            series.index = self.index
        return series


def _pyarrow(array: Any) -> Any:
    # Batches of numbers in NumPy arrays do without it, and importing it takes a while.
    import pyarrow

    return pyarrow.array(array)


def texts(values: Iterable[Any]) -> Any:
    """Makes an array of a list of texts or bytes."""
    values = list(values)
    if all(isinstance(value, str) for value in values):
        if any("\0" in value for value in values):
            return _pyarrow(values)
        return np.array(values, dtype=str) if values else np.zeros(0, "U1")
    if all(isinstance(value, (bytes, bytearray)) for value in values):
        return _bytes(values)
    if all(value is None or isinstance(value, str) for value in values):
        return _pyarrow(values)
    if all(value is None or isinstance(value, (bytes, bytearray)) for value in values):
        return _pyarrow(values)
    raise TypesError("these keys have several types: give numbers, texts or bytes")


def _bytes(values: list[Any]) -> Any:
    if any(value[-1:] == b"\0" for value in values):
        return _pyarrow(values)
    return np.array(values, dtype=bytes)


def composite(parts: tuple[Any, ...]) -> str:
    """Returns the text of a composite key: its parts, separated by commas."""

    def text(part: Any) -> str:
        if isinstance(part, (bytes, bytearray)):
            return bytes(part).hex()
        if isinstance(part, datetime.timedelta):
            return f"{part // datetime.timedelta(microseconds=1)}us"
        if isinstance(part, np.generic) and part.dtype.kind in "iub":
            return str(int(part))
        if not isinstance(part, str):
            return str(part)
        is_special = any(letter in ',"' or letter < " " for letter in part)
        return '"' + part.replace('"', '""') + '"' if is_special else part

    return ",".join(map(text, parts))


def listed(keys: Any, is_wide: bool) -> Any:
    """Makes an array of a list, a tuple or another sequence."""
    keys = list(keys)
    if not keys:
        return np.zeros(0, np.uint64)
    some = next((key for key in keys if key is not None), None)
    if isinstance(some, tuple):
        if not all(key is None or isinstance(key, tuple) for key in keys):
            raise TypesError("these keys have several types: give tuples with the parts of composite keys")
        return texts([None if key is None or None in key else composite(key) for key in keys])
    if some is None or isinstance(some, (str, bytes, bytearray)):
        return texts(keys)
    if isinstance(some, uuid.UUID):
        return _uuids(keys)
    if isinstance(some, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return texts([None if key is None else str(key) for key in keys])
    if is_wide and all(key is None or isinstance(key, int) for key in keys):
        return wide(keys)
    if isinstance(some, _MEANT) or any(key is None for key in keys):
        return _meant(keys)
    try:
        array = np.asarray(keys)
    except (ValueError, OverflowError) as error:
        raise TypesError(f"these keys cannot be one array ({error}): give numbers, texts or bytes") from None
    if array.dtype == object:
        raise TypesError("these keys have no common type of 64 bits: give numbers, texts or bytes")
    if array.dtype.kind == "f" and any(isinstance(key, int) and abs(key) > 1 << 53 for key in keys):
        raise TypesError("integers below 0 and above 2^63 have no common type: give an array of one type")
    return array


def _meant(keys: list[Any]) -> Any:
    """Makes an array of times or decimals, or of numbers of which some are None."""
    import pyarrow

    try:
        return pyarrow.array(keys)
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise TypesError(f"these keys cannot be one array ({error}): give keys of one type") from None


def _uuids(keys: list[Any]) -> Any:
    import pyarrow

    if not all(key is None or isinstance(key, uuid.UUID) for key in keys):
        raise TypesError("these keys have several types: give numbers, texts or bytes")
    return pyarrow.array([None if key is None else key.bytes for key in keys], pyarrow.binary(16))


def wide(keys: list[int | None]) -> Any:
    """Makes an array of integers of 128 bits."""
    import pyarrow

    # Others are in no file.
    keys_or_none = [key if key is not None and 0 <= key < 1 << 128 else None for key in keys]
    raw = [None if key is None else key.to_bytes(16, "big") for key in keys_or_none]
    return pyarrow.array(raw, pyarrow.binary(16))


def world(keys: Any, is_wide: bool) -> Any:
    """Returns the world of a container of keys."""
    if isinstance(keys, np.ndarray):
        if keys.dtype == object:
            return Numpy(listed(keys.tolist(), is_wide))
        return Numpy(keys)
    module = type(keys).__module__.partition(".")[0]
    if module == "torch":
        return Torch(keys)
    if module == "polars":
        return Polars(keys)
    if module == "pandas":
        return Pandas(keys)
    if hasattr(keys, "to_struct_array"):
        # The columns of a table are the parts of composite keys.
        return Arrow(keys.to_struct_array())
    if hasattr(keys, "__arrow_c_array__") or hasattr(keys, "chunks"):
        return Arrow(keys)
    if hasattr(keys, "__arrow_c_stream__"):
        return Arrow(_pyarrow_chunks(keys))
    if isinstance(keys, (str, bytes)) or not hasattr(keys, "__iter__"):
        raise TypesError(f"{type(keys).__name__} is not many keys: give an array, a Series or a list")
    try:
        return Numpy(np.asarray(memoryview(keys)))
    except TypeError:
        return Numpy(listed(keys, is_wide))


def _pyarrow_chunks(keys: Any) -> Any:
    import pyarrow

    return pyarrow.chunked_array(keys)
