"""Look-ups on a CUDA device from torch, against torch.searchsorted.

    python device.py FOLDER [LOG2_OF_TUPLES [LOG2_OF_KEYS...]]

Builds FOLDER/device-N.pleach: random int64 keys. Half of the keys of a batch are in it. Prints a line for each batch and
way; times are those of the device, medians of 20
turns that alternate: of one call that the device waits for, and of 32 that are queued one after the other.
"""

import os
import sys
import time

import numpy as np
import torch

import pleachdb as pl
from pleachdb.torch import IndexMap


def times(ways, calls, turns=20):
    """Returns the median of a call of each way in milliseconds, of `calls` in a row; the ways take turns."""
    took = {name: [] for name in ways}
    for turn in range(turns + 3):
        for name, way in ways.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(calls):
                way()
            end.record()
            end.synchronize()
            if turn >= 3:
                took[name].append(begin.elapsed_time(end) / calls)
    return {name: float(np.median(all)) for name, all in took.items()}


def main(folder, log2_tuples=24, *log2_keys):
    tuples = 1 << log2_tuples
    rng = np.random.default_rng(1)
    path = os.path.join(folder, f"device-{log2_tuples}.pleach")
    keys = np.unique(rng.integers(-(1 << 62), 1 << 62, tuples))
    rows = np.arange(len(keys), dtype=np.int64)
    if not os.path.exists(path):
        pl.build({"id": keys, "row": rows}, path, sorted=True)
    index = pl.open(path, device="cuda")
    mapped = IndexMap(index, missing=-1)
    on_device = torch.from_numpy(keys).cuda()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {len(keys):,} tuples", flush=True)
    for log2 in log2_keys or (22, 24, 26):
        count = 1 << log2
        asked = keys[rng.integers(0, len(keys), count)]
        asked[::2] ^= 0x55
        ids = torch.from_numpy(asked).cuda()
        values, found = index.get_many(ids)
        places = torch.searchsorted(on_device, ids).clamp_(max=len(keys) - 1)
        is_there = on_device[places] == ids
        assert torch.equal(found, is_there) and torch.equal(values, torch.where(is_there, places, 0))
        assert torch.equal(mapped(ids), torch.where(is_there, places, -1))

        def searchsorted():
            places = torch.searchsorted(on_device, ids)
            places.clamp_(max=len(keys) - 1)
            return torch.where(on_device[places] == ids, places, -1)

        ways = {
            "get_many": lambda: index.get_many(ids),
            "index_map": lambda: mapped(ids),
            "torch.searchsorted": lambda: torch.searchsorted(on_device, ids),
            "searchsorted, compare, where": searchsorted,
        }
        alone, row = times(ways, 1), times(ways, 32)
        for name in ways:
            rates = f"{count / alone[name] / 1e6:7.2f} G/s alone {count / row[name] / 1e6:7.2f} G/s, 32 in a row"
            print(f"2^{log2} keys  {name:30} {rates}", flush=True)
        started = time.perf_counter()
        for _ in range(100):
            index.get_many(ids[:1024])
        host = (time.perf_counter() - started) / 100
        print(f"2^{log2} keys  the host's time of a call of get_many: {host * 1e6:.1f} us", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
