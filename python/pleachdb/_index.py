"""An open file."""

from __future__ import annotations

import html
import os
import uuid
from typing import Any, Iterator

import numpy as np

from . import _native
from ._device import OnDevice, is_device, ordinal
from ._worlds import composite, world
from .errors import ClosedError, InputError, PleachError, TypesError

_DTYPES = {"u32": "uint32", "u64": "uint64", "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}
_TIMES = {"date": "datetime64[D]", "date[ms]": "datetime64[ms]"}
#: Tuples that iteration reads at a time.
_PIECE = 4096


def _dtype(words: str, meaning: str) -> np.dtype | None:
    """Returns the dtype of values in NumPy; None if they come as an Arrow array."""
    if words not in _DTYPES:
        return None
    if meaning == "bool":
        return np.dtype(np.bool_)
    if meaning in _TIMES:
        return np.dtype(_TIMES[meaning]) if words == "i64" else None
    if meaning.startswith(("timestamp[", "duration[")):
        unit = meaning[meaning.index("[") + 1 : -1].partition(",")[0]
        return np.dtype(f"{'datetime64' if meaning[0] == 't' else 'timedelta64'}[{unit}]")
    return None if meaning else np.dtype(_DTYPES[words])


class Index:
    """An open file, one generation of it. Made by `pleachdb.open`.

    It is a mapping from keys to values. Look-ups of many keys at once are the fast way: an index answers some ten
    million keys a second on one thread. All methods can be called by any thread, and by children of a fork.
    """

    __slots__ = ("_table", "_options", "_devices", "__weakref__")

    def __init__(self, table: Any, options: dict[str, Any]) -> None:
        self._table = table
        self._options = options
        self._devices: dict[int, OnDevice] = {}
        if options.get("device") is not None:
            self._on(ordinal(options["device"]))

    def _on(self, number: int) -> OnDevice:
        """Returns the file on a device; it is copied there when that is first used."""
        table, devices = self._open, self._devices
        if number not in devices:
            devices[number] = OnDevice(table, number)
        return devices[number]

    def _host_device(self) -> OnDevice | None:
        """Returns the device that answers keys of the host."""
        device = self._options.get("device")
        return None if device is None else self._on(ordinal(device))

    # Looking at it.

    @property
    def _open(self) -> Any:
        if self._table is None:
            raise ClosedError("the index was closed: open it again")
        return self._table

    @property
    def path(self) -> str:
        """The path it was opened with."""
        return os.fspath(self._open.path)

    @property
    def generation(self) -> int:
        """The number of this generation of the file."""
        return self._open.generation

    @property
    def schema(self) -> dict[str, Any]:
        """Types and names: `key`, `value`, `key_name`, `value_name`, and `fields` if values are records."""
        table = self._open
        schema = {
            "key": table.key_meaning or table.key_type,
            "value": table.value_meaning or table.value_type,
            "key_name": table.key_name,
            "value_name": table.value_name,
        }
        if table.fields is not None:
            schema["fields"] = dict(table.fields)
        return schema

    @property
    def approximate(self) -> float | None:
        """The share of absent keys that are found, if keys are hashes or prefixes; None if answers are exact.

        It holds for keys that are as evenly spread as hashes, and is NaN for prefixes of texts, for which it is not
        known.
        """
        is_approximate, rate = self._open.approximate
        return (float("nan") if rate is None else rate) if is_approximate else None

    def describe(self) -> str:
        """Returns one line about the file."""
        return self._open.describe()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        if self._table is None:
            return "<pleachdb.Index, closed>"
        schema = self.schema
        tuples = f"{len(self):,} {'tuple' if len(self) == 1 else 'tuples'}"
        return f"<pleachdb.Index {self.path!r}: {tuples}, {schema['key']} -> {schema['value']}>"

    def _repr_html_(self) -> str:
        if self._table is None:
            return html.escape(repr(self))
        schema = self.schema
        rows = [
            ("path", self.path),
            ("tuples", f"{len(self):,}"),
            ("keys", f"{schema['key_name']} {schema['key']}".strip()),
            ("values", f"{schema['value_name']} {schema['value']}".strip()),
            ("bytes", f"{self._open.file_bytes:,}"),
            ("generation", str(self.generation)),
        ]
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>pleachdb.Index</caption>{cells}</table>"

    # Its life.

    def close(self) -> None:
        """Releases the file, when no array of answers needs it any more."""
        self._table = None
        self._devices = {}

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Index:
        return Index(self._open, self._options)

    def __deepcopy__(self, _: Any) -> Index:
        return self.__copy__()

    def __reduce__(self) -> Any:
        path = os.path.abspath(self.path)
        return _unpickled, (path, self._options, self.generation, self._open.file_id)

    def refresh(self) -> bool:
        """Switches to the file that now has this name. Returns whether there was another one."""
        table = self._open.next()
        if table is not None:
            # Devices first: if one has no room, the old generation stays everywhere.
            devices = {number: OnDevice(table, number) for number in self._devices}
            self._table, self._devices = table, devices
        return table is not None

    # One key.

    def __contains__(self, key: Any) -> bool:
        table = self._open
        if table.key_meaning or table.is_interval:
            return bool(self.contains_many(_single(key))[0])
        return table.contains_one(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of the first tuple with this key, or `default`."""
        table = self._open
        if table.value_type == "none":
            return None if key in self else default
        if table.key_meaning or table.value_meaning or table.is_interval:
            array = self._arrow_of(_single(key))
            return default if not array[0].is_valid else array[0].as_py()
        found = table.get_one(key)
        return default if found is None else found[0]

    def __getitem__(self, key: Any) -> Any:
        missing = object()
        value = self.get(key, missing)
        if value is missing:
            raise KeyError(key)
        return value

    def _arrow_of(self, keys: Any) -> Any:
        import pyarrow

        return pyarrow.array(self._open.find_arrow(self._world(keys).keys, 1))

    # All tuples, in order.

    def _pieces(self) -> Iterator[tuple[list[Any], list[Any]]]:
        import pyarrow

        table = self._open
        for first in range(0, len(table), _PIECE):
            ranks = np.arange(first, min(first + _PIECE, len(table)), dtype=np.uint64)
            keys, values = table.at(ranks, 1)
            yield _python(pyarrow.array(keys), table), pyarrow.array(values).to_pylist()

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def keys(self) -> Iterator[Any]:
        """Iterates over the keys, ascending."""
        return (key for keys, _ in self._pieces() for key in keys)

    def values(self) -> Iterator[Any]:
        """Iterates over the values, in the order of the keys."""
        return (value for _, values in self._pieces() for value in values)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterates over keys and values, in the order of the keys."""
        return (item for keys, values in self._pieces() for item in zip(keys, values))

    def min(self) -> Any:
        """Returns the smallest key; None if there are no tuples."""
        return self._key_at(0)

    def max(self) -> Any:
        """Returns the largest key; None if there are no tuples."""
        return self._key_at(len(self) - 1)

    def _key_at(self, rank: int) -> Any:
        table = self._open
        if not 0 <= rank < len(table):
            return None
        if table.key_meaning:
            import pyarrow

            keys, _ = table.at(np.array([rank], np.uint64), 1)
            return _python(pyarrow.array(keys), table)[0]
        return table.tuple(rank)[0]

    # Many keys.

    def _threads(self, threads: int | None) -> int:
        threads = self._options.get("threads") if threads is None else threads
        if threads is None:
            return 0
        if threads < 0:
            raise InputError(f"threads={threads} is invalid: use 0 for all processors, or a number of threads")
        return threads

    def _world(self, keys: Any) -> Any:
        return world(keys, self._open.key_type == "u128")

    def get_many(self, keys: Any, *, out: np.ndarray | None = None, threads: int | None = None) -> Any:
        """Looks up many keys.

        `keys` is a NumPy array, an Arrow array, a Series of polars or pandas, a buffer or a list. For NumPy arrays and
        lists the answer is a pair of arrays, `(values, found)`: a value is 0 where `found` is false. `out` receives
        the values, if they are numbers. Booleans are arrays of `numpy.bool_`. For others the answer is a container of the same library, with nulls for the
        keys that are missing. Values that are not numbers are Arrow arrays.

        Keys on a CUDA device (torch, CuPy, jax and others that know DLPack) are answered there, on the current stream,
        by arrays of the same library: the call returns before the work is done.
        """
        if is_device(keys):
            if out is not None:
                raise InputError("out is for NumPy keys: leave it out")
            return self._device_of(keys).get(keys)
        table, many = self._open, self._world(keys)
        threads = self._threads(threads)
        if many.is_arrow:
            if out is not None:
                raise InputError("out is for NumPy keys: give NumPy keys, or leave it out")
            return many.wrap([table.find_arrow(part, threads) for part in many.parts])
        found = np.empty(many.length, np.uint8)
        dtype = _dtype(table.value_type, table.value_meaning) if table.fields is None else None
        if dtype is None or dtype.kind == "b":
            if out is not None:
                raise TypesError("out is for values that are numbers: leave it out")
        if dtype is None:
            import pyarrow

            values = pyarrow.array(table.find_arrow(many.keys, threads))
            if table.value_type == "none":
                return values, values.to_numpy(zero_copy_only=False)
            return values, values.is_valid().to_numpy(zero_copy_only=False)
        device = self._host_device() if out is None else None
        if out is None:
            # Booleans are numbers of 32 bits in the file.
            out = np.empty(many.length, np.uint32 if dtype.kind == "b" else dtype)
        elif len(out) < many.length:
            raise InputError(f"out has {len(out)} elements, but {many.length} are needed: give a longer array")
        elif np.may_share_memory(many.keys, out):
            raise InputError("out shares memory with the keys: give another array")
        if device is not None and many.keys.dtype.kind in "iuf" and not table.key_meaning:
            device.get_host(many.keys, out, found)
        else:
            table.find(many.keys, out, found, threads)
        if dtype.kind == "b":
            out = out != 0
        return many.own(out), many.own(found.view(np.bool_))

    def _device_of(self, keys: Any) -> OnDevice:
        """Returns the file on the device of these keys."""
        number = getattr(getattr(keys, "device", None), "index", None)
        if not isinstance(number, int) and hasattr(keys, "__dlpack_device__"):
            number = keys.__dlpack_device__()[1]
        return self._on(int(number or 0))

    def contains_many(self, keys: Any, *, threads: int | None = None) -> Any:
        """Returns an array of bools: whether each key is in the file. A null is not."""
        if is_device(keys):
            return self._device_of(keys).get(keys, values=False)[1]
        table, many = self._open, self._world(keys)
        found = np.empty(many.length, np.uint8)
        at = 0
        for part in many.parts:
            table.find(part, None, found[at : at + len(part)], self._threads(threads))
            at += len(part)
        return found.view(np.bool_)

    def _ranks(self, keys: Any, how: str, threads: int | None) -> tuple[Any, Any]:
        if is_device(keys):
            device = self._device_of(keys)
            if how == "upper":
                raise TypesError("upper bounds are not searched for on a device: give keys of the host")
            ranks, _ = device.get(keys, values=False, ranks=True, bounds=how != "rank")
            return ranks, device.get(keys, values=False)[1] if how == "rank" else None
        table, many = self._open, self._world(keys)
        ranks, found = np.empty(many.length, np.uint64), np.zeros(many.length, np.uint8)
        at = 0
        for part in many.parts:
            end = at + len(part)
            flags = found[at:end] if how == "rank" else None
            table.ranks(part, how, ranks[at:end], flags, self._threads(threads))
            at = end
        return ranks, found.view(np.bool_)

    def rank_many(self, keys: Any, *, threads: int | None = None) -> tuple[Any, Any]:
        """Returns the ranks of many keys, from 0, and whether each was found."""
        return self._ranks(keys, "rank", threads)

    def lower_bound_many(self, keys: Any, *, threads: int | None = None) -> Any:
        """Returns the rank of the first tuple whose key is at least each key: `len(index)` if there is none."""
        return self._ranks(keys, "lower", threads)[0]

    def upper_bound_many(self, keys: Any, *, threads: int | None = None) -> np.ndarray:
        """Returns the rank of the first tuple whose key is above each key: `len(index)` if there is none."""
        return self._ranks(keys, "upper", threads)[0]

    def count_many(self, low: Any, high: Any, *, threads: int | None = None) -> np.ndarray:
        """Returns the number of tuples with `low <= key < high`, for each pair."""
        lower = self.lower_bound_many(low, threads=threads)
        upper = self.lower_bound_many(high, threads=threads)
        if len(lower) != len(upper):
            raise InputError(f"low has {len(lower)} keys and high has {len(upper)}: give as many of both")
        return np.where(upper > lower, upper - lower, 0).astype(np.uint64)

    def select_many(self, ranks: Any, *, threads: int | None = None) -> tuple[Any, Any]:
        """Returns keys and values at many ranks, as Arrow arrays. A rank past the end gives nulls."""
        import pyarrow

        ranks = np.array(ranks, dtype=np.uint64)
        keys, values = self._open.at(ranks, self._threads(threads))
        return pyarrow.array(keys), pyarrow.array(values)

    def _near(self, keys: Any, how: str, threads: int | None) -> tuple[Any, ...]:
        if is_device(keys):
            return self._device_of(keys).near(keys, how)
        return self.select_many(self._ranks(keys, how, threads)[0], threads=threads)

    def floor_many(self, keys: Any, *, threads: int | None = None) -> tuple[Any, ...]:
        """Returns the last tuple whose key is at most each key, as Arrow arrays of keys and values.

        Of equal keys it is the last. There are nulls where there is no such tuple, and for keys that are null.

        Keys on a CUDA device are answered there, by three arrays of the same library: keys, values (None for a file
        without values), and whether there is such a tuple. The first batch of a kind also makes what it needs.
        """
        return self._near(keys, "floor", threads)

    def ceiling_many(self, keys: Any, *, threads: int | None = None) -> tuple[Any, ...]:
        """Returns the first tuple whose key is at least each key, as Arrow arrays of keys and values.

        Of equal keys it is the first. There are nulls where there is no such tuple, and for keys that are null. Keys
        on a CUDA device are answered as by `floor_many`.
        """
        return self._near(keys, "ceiling", threads)

    def nearest_many(self, keys: Any, *, threads: int | None = None) -> tuple[Any, ...]:
        """Returns the tuple whose key is nearest to each key, of two the lower, as Arrow arrays of keys and values.

        Keys are numbers, or mean numbers: dates, times, addresses. Keys on a CUDA device are answered as by
        `floor_many`.
        """
        return self._near(keys, "nearest", threads)

    def _near_one(self, key: Any, how: str) -> tuple[Any, Any] | None:
        table = self._open
        rank = int(self._ranks(_single(key), how, 1)[0][0])
        if rank >= len(table):
            return None
        if not table.key_meaning and not table.value_meaning:
            return table.tuple(rank)
        keys, values = self.select_many([rank], threads=1)
        return _python(keys, table)[0], values[0].as_py()

    def floor(self, key: Any) -> tuple[Any, Any] | None:
        """Returns the last tuple whose key is at most `key`, as a pair; None if there is none."""
        return self._near_one(key, "floor")

    def ceiling(self, key: Any) -> tuple[Any, Any] | None:
        """Returns the first tuple whose key is at least `key`, as a pair; None if there is none."""
        return self._near_one(key, "ceiling")

    def nearest(self, key: Any) -> tuple[Any, Any] | None:
        """Returns the tuple whose key is nearest to `key`, of two the lower, as a pair; None if there are no tuples."""
        return self._near_one(key, "nearest")

    def get_all_many(self, keys: Any, *, threads: int | None = None) -> tuple[np.ndarray, Any]:
        """Returns all values of many keys: offsets, one more than keys, and an Arrow array of the values."""
        first = self.lower_bound_many(keys, threads=threads)
        end = self.upper_bound_many(keys, threads=threads)
        counts = (end - first).astype(np.int64)
        offsets = np.zeros(len(first) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        ranks = np.repeat(first - offsets[:-1].astype(np.uint64), counts) + np.arange(offsets[-1], dtype=np.uint64)
        return offsets, self.select_many(ranks, threads=threads)[1]

    # Ranges.

    def range(self, low: Any = None, high: Any = None, *, batch_rows: int = 1 << 16) -> Any:
        """Reads the tuples with `low <= key < high` as a `pyarrow.RecordBatchReader`. None is no bound.

        A bound of composite keys may have their first parts alone.
        """
        import pyarrow

        table = self._open
        first = 0 if low is None else self._start(low)
        end = len(table) if high is None else self._start(high)
        return pyarrow.RecordBatchReader.from_stream(table.tuples(first, end, batch_rows, self._threads(None)))

    def _start(self, bound: Any) -> int:
        if isinstance(bound, tuple):
            return int(self.prefix_many([bound], threads=1)[0][0])
        return int(self.lower_bound_many(_single(bound), threads=1)[0])

    def prefix_many(self, prefixes: Any, *, threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ranks of the tuples whose keys begin with each prefix: those from `first` up to before `end`.

        A prefix is text, bytes, digits, bases or a network of addresses, as the keys are. Of composite keys it is a
        tuple with their first parts.
        """
        if isinstance(prefixes, (list, tuple)):
            prefixes = [composite(prefix) if isinstance(prefix, tuple) else prefix for prefix in prefixes]
        many = world(prefixes, False)
        first, end = np.empty(many.length, np.uint64), np.empty(many.length, np.uint64)
        at = 0
        for part in many.parts:
            to = at + len(part)
            self._open.prefix(part, first[at:to], end[at:to], self._threads(threads))
            at = to
        return first, end

    def prefix(self, prefix: Any, *, batch_rows: int = 1 << 16) -> Any:
        """Reads the tuples whose keys begin with `prefix` as a `pyarrow.RecordBatchReader`: see `prefix_many`."""
        import pyarrow

        first, end = self.prefix_many([prefix], threads=1)
        tuples = self._open.tuples(int(first[0]), int(end[0]), batch_rows, self._threads(None))
        return pyarrow.RecordBatchReader.from_stream(tuples)

    def to_arrow(self) -> Any:
        """Reads all tuples as a `pyarrow.Table`."""
        return self.range().read_all()


def _python(array: Any, table: Any) -> list[Any]:
    if table.key_meaning.startswith("("):
        return [tuple(parts.values()) for parts in array.to_pylist()]
    if table.key_meaning == "uuid":
        return [uuid.UUID(bytes=key) for key in array.to_pylist()]
    if table.key_type == "u128" and not table.key_meaning:
        return [int.from_bytes(key, "big") for key in array.to_pylist()]
    return array.to_pylist()


def _single(key: Any) -> Any:
    """Makes an array of one key."""
    return np.array([key]) if isinstance(key, np.generic) else [key]


def open_index(
    path: Any,
    *,
    verify: str = "header",
    resident: bool = False,
    structure: str = "auto",
    device: str | int | None = None,
    threads: int | None = None,
    partial: bool = False,
) -> Index:
    """Opens a file, or a set in a folder. O(1), unless it is verified or copied to memory.

    `verify` is "header", "touched" (what a look-up reads) or "full" (all of it, now). `resident` copies the file into
    memory, where nobody can change it. `structure` is the part of the file by which keys are found: "spine", "grid",
    "fast", "harmonia" or "btree"; all give the same answers. `device` is "cuda" or "cuda:1": the file is copied there, and batches of numbers
    are answered there, also those of the host. `threads` is the number of threads of a batch; all processors by default.

    The folder of a set gives a `Set`, and so does the manifest of one of its generations. Its files are opened as they
    are asked, each by these options. With `partial` a set answers without files that cannot be opened, instead of
    failing, and `Set.left_out` lists them.
    """
    options = {
        "verify": verify,
        "resident": resident,
        "structure": structure,
        "device": device,
        "threads": threads,
    }
    table = _native.Table.open(os.fspath(path), verify, resident, structure, partial)
    if table.files is None:
        return Index(table, options)
    from ._set import Set

    return Set(table, {**options, "partial": partial})


def _unpickled(path: str, options: dict[str, Any], generation: int, file_id: str) -> Index:
    index = open_index(path, **options)
    table = index._open
    if table.file_id == file_id and table.generation == generation:
        return index
    # The generation may have been kept under another name.
    kept = f"{path}.g{table.generation - generation}"
    if table.generation > generation and os.path.exists(kept):
        older = open_index(kept, **options)
        if older._open.file_id == file_id:
            return older
    raise PleachError(
        f"generation {generation} is gone: {path}: it is generation {table.generation} now: "
        "open it again in each worker, or keep generations (keep=1)"
    )


class Live:
    """The current generation of a file, shared by threads. Made by `pleachdb.live`."""

    __slots__ = ("_current", "__weakref__")

    def __init__(self, path: Any, **options: Any) -> None:
        self._current = open_index(path, **options)

    @property
    def current(self) -> Index:
        """The current generation. Keep it for as long as answers must agree with each other."""
        return self._current

    def refresh(self) -> bool:
        """Switches to the next generation, if there is one. Returns whether there was."""
        index = self._current
        table = index._open.next()
        if table is not None:
            current = type(index)(table, index._options)
            for number in index._devices:
                current._on(number)
            self._current = current
        return table is not None

    def __repr__(self) -> str:
        return f"<pleachdb.Live of {self._current!r}>"
