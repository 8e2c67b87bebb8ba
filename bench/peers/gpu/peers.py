"""PyTorch and CuPy as peers: searchsorted of a batch of queries, then the values at the ranks.

    python3 peers.py ENGINE BATCH REPETITIONS KEY_TYPE:TUPLES...     as in: peers.py torch 67108864 7 u64:67108864

Keys, values and queries are those of gpu/src/kernels/measure.cu, made here on the device by the same formulas, as in
thrust.cu beside this file, which says more. A line of JSON for each case and order; a line with "absent" if ENGINE is
not there. PyTorch searches no unsigned numbers: its keys and queries are signed, the upper bit turned.
"""

import importlib
import json
import sys

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
VALUE = 0x5851F42D4C957F2D
GROUP = 1024


def mix(x):
    """The mixer of numbers of the host, modulo 2^64."""
    x = (x ^ x >> 30) * FIRST % 2**64
    x = (x ^ x >> 27) * SECOND % 2**64
    return x ^ x >> 31


def signed(x):
    """The signed number with the same 64 bits."""
    return x - 2**64 if x >= 2**63 else x


class Torch:
    """Numbers are int64, whose products wrap; shifts to the right are masked, since they keep the sign."""

    name = "torch"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("torch sees no device")
        self.version = self.torch.__version__

    def shift(self, x, bits):
        return (x >> bits) & (2 ** (64 - bits) - 1)

    def mix(self, x):
        x = (x ^ self.shift(x, 30)) * signed(FIRST)
        x = (x ^ self.shift(x, 27)) * signed(SECOND)
        return x ^ self.shift(x, 31)

    def numbers(self, first, count):
        return self.torch.arange(first, first + count, dtype=self.torch.int64, device="cuda")

    def mix32(self, x):
        low = 0xFFFFFFFF
        x = ((x ^ x >> 16) * 0x85EBCA6B) & low
        x = ((x ^ x >> 13) * 0xC2B2AE35) & low
        return x ^ x >> 16

    def table(self, is_narrow, tuples):
        """Sorted keys, upper bit turned, and their values."""
        if is_narrow:
            keys = self.mix32(self.numbers(1, tuples))
            keys = (keys - 2**31).to(self.torch.int32).sort().values
            plain = keys.to(self.torch.int64) + 2**31
            values = self.mix(plain ^ VALUE) & 0xFFFFFFFF
            # The same 32 bits, signed.
            values = self.torch.where(values >= 2**31, values - 2**32, values).to(self.torch.int32)
            return keys, values
        turn = signed(2**63)
        keys = (self.mix(self.numbers(1, tuples)) ^ turn).sort().values
        return keys, self.mix(keys ^ turn ^ VALUE)

    def queries(self, keys, batch, seed, is_sorted):
        tuples = keys.numel()
        at = self.numbers(0, batch)
        number = self.shift(self.mix((at + 1) * signed(GOLDEN) + signed(mix(seed))), 32)
        if not is_sorted:
            return keys[number * tuples >> 32]
        groups = (batch + GROUP - 1) // GROUP
        group = at // GROUP
        low, high = group * tuples // groups, (group + 1) * tuples // groups
        return keys[low + (number * (high - low) >> 32)].sort().values

    def search(self, keys, values, queries):
        ranks = self.torch.searchsorted(keys, queries, out_int32=True)
        return values.index_select(0, ranks)

    def timed(self, work):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        start.record()
        result = work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end), result

    def sum(self, is_narrow, answers):
        answers = answers.to(self.torch.int64)
        if is_narrow:
            answers = answers & 0xFFFFFFFF
        return int(answers.sum().item()) % 2**64

    def release(self):
        self.torch.cuda.empty_cache()


class Cupy:
    """Numbers are uint64."""

    name = "cupy"

    def __init__(self):
        self.cupy = importlib.import_module("cupy")
        if self.cupy.cuda.runtime.getDeviceCount() == 0:
            raise ImportError("cupy sees no device")
        self.version = self.cupy.__version__

    def wide(self, x):
        return self.cupy.uint64(x)

    def mix(self, x):
        x = (x ^ (x >> self.wide(30))) * self.wide(FIRST)
        x = (x ^ (x >> self.wide(27))) * self.wide(SECOND)
        return x ^ (x >> self.wide(31))

    def numbers(self, first, count):
        return self.cupy.arange(first, first + count, dtype=self.cupy.uint64)

    def table(self, is_narrow, tuples):
        """Sorted keys and their values."""
        numbers = self.numbers(1, tuples)
        if not is_narrow:
            keys = self.cupy.sort(self.mix(numbers))
            return keys, self.mix(keys ^ self.wide(VALUE))
        narrow = self.cupy.uint32
        x = numbers.astype(narrow)
        x = (x ^ (x >> narrow(16))) * narrow(0x85EBCA6B)
        x = (x ^ (x >> narrow(13))) * narrow(0xC2B2AE35)
        keys = self.cupy.sort(x ^ (x >> narrow(16)))
        return keys, self.mix(keys.astype(self.cupy.uint64) ^ self.wide(VALUE)).astype(narrow)

    def queries(self, keys, batch, seed, is_sorted):
        tuples = self.wide(keys.size)
        at = self.numbers(0, batch)
        number = self.mix((at + self.wide(1)) * self.wide(GOLDEN) + self.wide(mix(seed))) >> self.wide(32)
        if not is_sorted:
            return keys[(number * tuples) >> self.wide(32)]
        groups = self.wide((batch + GROUP - 1) // GROUP)
        group = at // self.wide(GROUP)
        low, high = group * tuples // groups, (group + self.wide(1)) * tuples // groups
        return self.cupy.sort(keys[low + ((number * (high - low)) >> self.wide(32))])

    def search(self, keys, values, queries):
        return values.take(self.cupy.searchsorted(keys, queries))

    def timed(self, work):
        start, end = (self.cupy.cuda.Event() for _ in range(2))
        self.cupy.cuda.Device().synchronize()
        start.record()
        result = work()
        end.record()
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end), result

    def sum(self, is_narrow, answers):
        return int(answers.sum(dtype=self.cupy.uint64))

    def release(self):
        self.cupy.get_default_memory_pool().free_all_blocks()


def main():
    name, batch, repetitions, *cases = sys.argv[1:]
    batch, repetitions = int(batch), int(repetitions)
    try:
        engine = {"torch": Torch, "cupy": Cupy}[name]()
    except Exception as error:
        print(json.dumps({"engine": name, "absent": f"{type(error).__name__}: {error}"}), flush=True)
        return
    for case in cases:
        key_type, tuples = case.split(":")
        is_narrow, tuples = key_type == "u32", int(tuples)
        keys, values = engine.table(is_narrow, tuples)
        for is_sorted in (False, True):
            ms, sums = [], []
            for seed in range(repetitions + 1):
                queries = engine.queries(keys, batch, seed, is_sorted)
                elapsed, answers = engine.timed(lambda: engine.search(keys, values, queries))
                if seed > 0:
                    ms.append(elapsed)
                sums.append(str(engine.sum(is_narrow, answers)))
            row = {
                "engine": engine.name,
                "version": engine.version,
                "key_type": key_type,
                "tuples": tuples,
                "order": "sorted" if is_sorted else "random",
                "ms": ms,
                "sums": sums,
            }
            print(json.dumps(row), flush=True)
            del queries, answers
        del keys, values
        engine.release()


if __name__ == "__main__":
    main()
