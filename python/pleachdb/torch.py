"""Look-ups in programs of torch: an operator and a module that map ids to rows.

    import torch
    import pleachdb as pl
    from pleachdb.torch import IndexMap

    rows = IndexMap(pl.open("rows.pleach"), missing=0)
    embedding(rows(ids))

The operator `torch.ops.pleachdb.index_map(ids, handle, missing)` works on CPU and CUDA tensors of any shape, under
`torch.compile`, in inference mode and in CUDA graphs. On CUDA it queues its work on the current stream and returns. An
`IndexMap` of `pleachdb.live` answers each batch from the generation that is current then.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np
import torch

from ._index import Index, Live
from .errors import ClosedError, TypesError

_numbers = itertools.count(1)
_handles: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_ROWS = ("u32", "u64", "i32", "i64")


def handle(index: Index | Live) -> int:
    """Returns the number by which the operator knows an index. The index must be kept for as long as it is used."""
    number = _known.get(index)
    if number is None:
        number = next(_numbers)
        _known[index] = number
        _handles[number] = index
    return number


def _current(number: int) -> Index:
    index = _handles.get(number)
    if index is None:
        raise ClosedError(f"index {number} is gone: keep the index for as long as it is used")
    return index.current if isinstance(index, Live) else index


@torch.library.custom_op("pleachdb::index_map", mutates_args=())
def index_map(ids: torch.Tensor, index: int, missing: int) -> torch.Tensor:
    """Returns the value of each id as int64, in the shape of `ids`; `missing` for those that are not in the index."""
    current = _current(index)
    words = current._open.value_type
    if words not in _ROWS or current.schema["value"] != words:
        raise TypesError(f"rows are integers, but the file has {current.schema['value']} values: build it with rows")
    flat = ids.reshape(-1)
    if ids.is_cuda:
        rows, _ = current._on(ids.device.index).get(flat, found=False, missing=missing, wide=True)
        return rows.view(ids.shape)
    values, found = current.get_many(flat.contiguous().numpy())
    rows = torch.from_numpy(np.where(found, values.astype(np.int64, copy=False), np.int64(missing)))
    return rows.view(ids.shape)


@index_map.register_fake
def _(ids: torch.Tensor, index: int, missing: int) -> torch.Tensor:
    return torch.empty(ids.shape, dtype=torch.int64, device=ids.device)


class IndexMap(torch.nn.Module):
    """Maps raw ids to the rows that an index has for them, and other ids to the row `missing`."""

    def __init__(self, index: Index | Live, missing: int = 0) -> None:
        super().__init__()
        self._index = index
        self._missing = missing
        self._handle = handle(index)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # The handle is one of this process.
        self._handle = handle(self._index)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.ops.pleachdb.index_map(ids, self._handle, self._missing)
