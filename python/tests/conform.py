"""A driver of the conformance kit over the Python interface: spec/PROTOCOL.md.

    pleach-conformance run --level 3 --binding -- python python/tests/conform.py

The interface does not tell which rule a file breaks, nor the text of logical types, and gives keys and values of
logical types as those: files that have them are skipped. It has no search by lines or by the trie alone.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
import pyarrow as pa

import pleachdb as pl

NUMBERS = {"u32": np.uint32, "u64": np.uint64, "i32": np.int32, "i64": np.int64, "f64": np.float64}
STRUCTURES = ("spine", "grid", "fast", "harmonia", "btree")


def is_text(kind: str) -> bool:
    """Whether elements of a type are byte strings."""
    return kind.startswith(("bytes", "utf8"))


def one(word: str, kind: str) -> Any:
    """Returns an array of the one key that a word stands for."""
    if kind == "utf8":
        return pa.array([bytes.fromhex(word[1:]).decode()], pa.string())
    if is_text(kind):
        return pa.array([bytes.fromhex(word[1:])], pa.binary())
    if kind == "u128":
        return [int(word)]
    number = struct.unpack(">d", bytes.fromhex(word[1:]))[0] if kind == "f64" else int(word)
    return np.array([number], NUMBERS[kind])


def words(elements: Any, kind: str, count: int) -> list[str]:
    """Returns the words of an Arrow array of keys or values."""
    if kind == "none":
        return ["-"] * count
    if isinstance(elements, pa.ChunkedArray):
        elements = elements.combine_chunks()
    if kind in ("f32", "f64"):
        # The bits, since NaN has many.
        bits = elements.view(pa.uint32() if kind == "f32" else pa.uint64()).to_pylist()
        return [f"f{word:0{8 if kind == 'f32' else 16}x}" for word in bits]
    listed = elements.to_pylist()
    if kind == "u128":
        return [str(int.from_bytes(element, "big")) for element in listed]
    if kind == "utf8":
        return ["x" + element.encode().hex() for element in listed]
    if is_text(kind):
        return ["x" + element.hex() for element in listed]
    return [str(element) for element in listed]


class Driver:
    """An open file, or none."""

    def __init__(self) -> None:
        self.index: Any = None
        self.path = ""
        self.key = self.value = "none"

    def open(self, path: str) -> str:
        """Opens a file."""
        self.index, self.path = None, path
        try:
            index = pl.open(path)
        except pl.DamagedError:
            return "refuse -"
        schema = index.schema
        table = index._open
        if table.key_meaning or table.value_meaning or "fields" in schema:
            return "skip"
        self.index, self.key, self.value = index, schema["key"], schema["value"]
        return "ok"

    def tuple_at(self, rank: int) -> tuple[str, str]:
        """Returns the words of a tuple."""
        keys, values = self.index.select_many([rank])
        return words(keys, self.key, 1)[0], words(values, self.value, 1)[0]

    def search(self, request: str, word: str) -> str:
        """Answers about one key."""
        key = one(word, self.key)
        if request == "get":
            ranks, found = self.index.rank_many(key)
            return f"tuple {ranks[0]} {self.tuple_at(int(ranks[0]))[1]}" if found[0] else "absent"
        if request in ("lower", "upper"):
            many = self.index.lower_bound_many if request == "lower" else self.index.upper_bound_many
            return f"rank {many(key)[0]}"
        keys, values = self.index.floor_many(key)
        if keys[0].as_py() is None:
            return "none"
        rank = int(self.index.upper_bound_many(key)[0]) - 1
        return f"tuple {rank} {words(keys, self.key, 1)[0]} {words(values, self.value, 1)[0]}"

    def by(self, structure: str, word: str) -> str:
        """Searches by one structure."""
        if structure not in STRUCTURES:
            return "skip"
        try:
            index = pl.open(self.path, structure=structure)
        except pl.InputError:
            return "none"
        return f"rank {index.lower_bound_many(one(word, self.key))[0]}"

    def range(self, low: str, high: str) -> str:
        """Reads a range of keys."""
        first, end = (int(self.index.lower_bound_many(one(word, self.key))[0]) for word in (low, high))
        count = int(self.index.count_many(one(low, self.key), one(high, self.key))[0])
        assert count == max(end - first, 0)
        keys, values = self.index.select_many(range(first, first + count))
        pairs = zip(words(keys, self.key, count), words(values, self.value, count), strict=True)
        return " ".join(["tuples", str(count), *(word for pair in pairs for word in pair)])

    def check(self) -> str:
        """Checks the whole file."""
        report = pl.fsck(self.path)
        # A finding begins with its code.
        return "clean" if report else "damaged " + report.findings[0].partition(":")[0]

    def answer(self, request: str) -> str:
        """Answers a request."""
        if request.startswith("open "):
            return self.open(request[5:])
        match request.split(" "):
            case ["tuples"]:
                return f"tuples {len(self.index)}"
            case ["types"]:
                return f"types {self.key} {self.value}"
            case ["at", rank]:
                return "tuple " + " ".join(self.tuple_at(int(rank))) if int(rank) < len(self.index) else "none"
            case ["range", low, high]:
                return self.range(low, high)
            case ["by", structure, word]:
                return self.by(structure, word)
            case ["check"]:
                return self.check()
            case ["name", column]:
                text = self.index.schema[f"{column}_name"]
                return f"text x{text.encode().hex()}" if text else "none"
            case ["logical" | "derive", _]:
                return "skip"
            case [("get" | "lower" | "upper" | "floor") as kind, word]:
                return self.search(kind, word)
        raise ValueError(f"unknown request {request}")


def main() -> None:
    """Answers requests until there are no more."""
    driver = Driver()
    for line in sys.stdin:
        try:
            answer = driver.answer(line.rstrip("\n"))
        except pl.DamagedError as error:
            # An answer as good as any where the file has a fault, and wrong elsewhere.
            answer = f"damaged {error}".replace("\n", " ")
        except Exception as error:  # noqa: BLE001
            answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
