"""Keys and answers on CUDA devices.

A *world* of a device knows a library: where its arrays are, its current stream, and how to make an array for answers.
Libraries that exchange arrays by DLPack alone (jax) are asked through it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from . import _native
from .errors import DeviceError, InputError, TypesError

#: DLPack's types of devices: CUDA, and unified memory.
_CUDA = (2, 13)
_LANES = {"u": "u", "i": "i", "f": "f"}
#: NumPy's names of the types of numbers in files.
_DTYPES = {"u32": "uint32", "u64": "uint64", "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}


def is_device(keys: Any) -> bool:
    """Returns whether keys are on a CUDA device."""
    if isinstance(keys, (np.ndarray, list, tuple)):
        return False
    module = type(keys).__module__.partition(".")[0]
    if module == "torch":
        return bool(keys.is_cuda)
    if module == "cupy":
        return True
    try:
        if hasattr(keys, "__dlpack_device__"):
            return keys.__dlpack_device__()[0] in _CUDA
        return hasattr(keys, "__cuda_array_interface__")
    except Exception:
        # An array whose library cannot say where it is, is one of the host.
        return False


def ordinal(device: Any) -> int:
    """Returns the number of a device: "cuda", "cuda:1" or 1."""
    name = str(device)
    kind, _, number = name.partition(":")
    if name.isdigit():
        return int(name)
    if kind != "cuda" or (number and not number.isdigit()):
        raise InputError(f"device={name!r} is invalid: use \"cuda\" or \"cuda:0\", or leave it out for the CPU")
    return int(number or 0)


def check(table: Any, wants_values: bool) -> None:
    """Checks that a file can be asked by arrays on a device."""
    if table.key_meaning:
        raise TypesError(f"keys of type {table.key_meaning} are not searched on a device: give keys of the host")
    if wants_values and (table.value_meaning or table.fields is not None):
        held = table.value_meaning or "records"
        raise TypesError(f"{held} values do not fit an array on a device: give keys of the host")


@functools.cache
def _torch_types() -> tuple[Any, dict[Any, str], dict[str, Any]]:
    """Returns torch, the lanes of its types, and its types by NumPy's names."""
    import torch

    names = {
        "uint8": "u8",
        "uint16": "u16",
        "uint32": "u32",
        "uint64": "u64",
        "int8": "i8",
        "int16": "i16",
        "int32": "i32",
        "int64": "i64",
        "float32": "f32",
        "float64": "f64",
    }
    types = {name: getattr(torch, name) for name in (*names, "bool")}
    return torch, {types[name]: lane for name, lane in names.items()}, types


class Torch:
    """Tensors of torch."""

    bools = "bool"

    def __init__(self, keys: Any) -> None:
        torch, lanes, self._types = _torch_types()
        if keys.dim() != 1:
            raise InputError(f"the tensor has {keys.dim()} dimensions: give one of 1 dimension, such as keys.flatten()")
        lane = lanes.get(keys.dtype)
        if lane is None:
            raise TypesError(f"{keys.dtype} cannot be keys on a device: give integers or floats")
        self.keys = keys.contiguous()
        self.device = keys.device
        self.ordinal = self.device.index
        self.length = self.keys.numel()
        self.lane = lane
        self.address = self.keys.data_ptr()
        self._empty = torch.empty
        self.stream = torch.cuda.current_stream(self.ordinal).cuda_stream

    def empty(self, dtype: str, count: int) -> tuple[Any, int]:
        """Makes an array of the library, and returns its address, too."""
        array = self._empty(count, dtype=self._types[dtype], device=self.device)
        return array, array.data_ptr()


class Cupy:
    """Arrays of CuPy."""

    bools = "bool_"

    def __init__(self, keys: Any) -> None:
        import cupy

        if keys.ndim != 1:
            raise InputError(f"the array has {keys.ndim} dimensions: give one of 1 dimension")
        self._cupy = cupy
        self.keys = cupy.ascontiguousarray(keys)
        self.ordinal = int(keys.device.id)
        self.length = keys.size
        self.lane = _lane(self.keys.dtype)
        self.address = self.keys.data.ptr
        self.stream = cupy.cuda.get_current_stream().ptr

    def empty(self, dtype: str, count: int) -> tuple[Any, int]:
        """Makes an array of the library, and returns its address, too."""
        with self._cupy.cuda.Device(self.ordinal):
            array = self._cupy.empty(count, dtype=dtype)
        return array, array.data.ptr


def _lane(dtype: Any) -> str:
    kind = _LANES.get(dtype.kind)
    if kind is None or dtype.itemsize > 8 or dtype.kind + str(dtype.itemsize) == "f2":
        raise TypesError(f"{dtype} cannot be keys on a device: give integers or floats")
    return f"{kind}{8 * dtype.itemsize}"


class _Interface:
    """An array that has only `__cuda_array_interface__`, as one that can be exchanged through CuPy or torch."""

    @staticmethod
    def of(keys: Any) -> Any:
        for name in ("cupy", "torch"):
            module = sys.modules.get(name)
            if module is not None:
                return module.asarray(keys) if name == "cupy" else module.as_tensor(keys, device="cuda")
        raise DeviceError(f"{type(keys).__name__} has no __dlpack__: import torch or cupy, or give a DLPack array")


def world(keys: Any) -> Torch | Cupy | None:
    """Returns the world of keys on a device; None if they are exchanged by DLPack."""
    module = type(keys).__module__.partition(".")[0]
    if module == "torch":
        return Torch(keys)
    if module == "cupy":
        return Cupy(keys)
    if hasattr(keys, "__dlpack__"):
        return None
    return world(_Interface.of(keys))


def exchanged(keys: Any, array: Any) -> Any:
    """Makes an array of the library of the keys of one on a device; itself if the library is not known."""
    if array is None:
        return None
    for module in (type(keys).__module__.partition(".")[0], "jax"):
        if module in ("jax", "jaxlib") and "jax" in sys.modules and not isinstance(keys, _native.DeviceArray):
            return sys.modules["jax"].dlpack.from_dlpack(array)
    return array


class OnDevice:
    """A file on one device."""

    def __init__(self, table: Any, number: int) -> None:
        self._table = table
        self._native = _native.DeviceTable.open(table, number)
        self._dtype = _DTYPES.get(table.value_type)

    def get(
        self,
        keys: Any,
        *,
        values: bool = True,
        found: bool = True,
        ranks: bool = False,
        missing: int | None = None,
        wide: bool = False,
        bounds: bool = False,
    ) -> tuple[Any, Any]:
        """Queues a batch. Returns values (or ranks) and presence; None for what is not wanted.

        In a file of intervals keys are answered by the intervals that hold them, unless `bounds` are wanted.
        """
        how = "interval" if self._table.is_interval and not bounds else "keys"
        return self._ask(keys, how, values=values, found=found, ranks=ranks, missing=missing, wide=wide)[1:]

    def near(self, keys: Any, how: str) -> tuple[Any, Any, Any]:
        """Queues a batch of floors, ceilings or nearest tuples. Returns their keys, values and presence; None for
        values that are nothing."""
        if _DTYPES.get(self._table.key_type) is None:
            held = self._table.key_type
            raise TypesError(f"{held} keys do not fit an array on a device: give keys of the host")
        return self._ask(keys, how, values=self._table.value_type != "none", tuple_keys=True)

    def _ask(
        self,
        keys: Any,
        how: str,
        *,
        values: bool,
        found: bool = True,
        ranks: bool = False,
        tuple_keys: bool = False,
        missing: int | None = None,
        wide: bool = False,
    ) -> tuple[Any, Any, Any]:
        """Queues a batch. Returns keys of tuples, values (or ranks) and presence; None for what is not wanted."""
        check(self._table, values)
        if values and self._dtype is None:
            held = self._table.value_type
            raise TypesError(f"{held} values do not fit an array on a device: give keys of the host")
        many = world(keys)
        if many is None:
            wanted = {"look_up": how, "keys": tuple_keys, "values": values, "ranks": ranks}
            own, answer, flags = self._native.exchange(keys, wanted)
            return exchanged(keys, own), exchanged(keys, answer), exchanged(keys, flags) if found else None
        count = many.length
        batch: dict[str, Any] = {
            "keys": many.address,
            "count": count,
            "lane": many.lane,
            "is_wide": wide,
            "missing": missing,
            "values": 0,
            "found": 0,
            "ranks": 0,
            "look_up": how,
            "tuple_keys": 0,
        }
        own = answer = flags = None
        if tuple_keys:
            own, batch["tuple_keys"] = many.empty(_DTYPES[self._table.key_type], count)
        if ranks:
            answer, batch["ranks"] = many.empty("int64", count)
        elif values:
            answer, batch["values"] = many.empty("int64" if wide else str(self._dtype), count)
        if found and not ranks:
            flags, batch["found"] = many.empty(many.bools, count)
        batch["scratch_bytes"] = self._native.scratch_bytes(count, many.lane, wide)
        scratch, batch["scratch"] = many.empty("uint8", batch["scratch_bytes"])
        self._native.get(many.stream, batch)
        # The libraries free memory in the order of the stream, so that `scratch` and the keys may go now.
        del scratch
        return own, answer, flags

    def get_host(self, keys: np.ndarray, values: np.ndarray | None, found: np.ndarray) -> None:
        """Answers keys of the host, and waits."""
        keys = np.ascontiguousarray(keys)
        if not keys.dtype.isnative:
            keys = keys.astype(keys.dtype.newbyteorder("="))
        asked = (keys.ctypes.data, len(keys), _lane(keys.dtype))
        answer = (0, 0) if values is None else (values.ctypes.data, values.itemsize)
        self._native.find_host(asked, answer, found.ctypes.data)
