"""Answers the requests of the conformance protocol with pleach_reader.py, level 2."""

import copy
import struct
import sys

import pleach_reader

STRUCTURES = {
    "spine": b"SPIN",
    "grid": b"GRID",
    "fast": b"FAST",
    "harmonia": b"HARM",
    "btree": b"BTRE",
    "trie": b"TRIE",
}
# The codes of faults that a file has by the rule for which opening refuses it.
CODES = {
    "superblock-sum": "superblock",
    "table-sum": "table",
    "truncated": "length",
    "extended": "length",
}


def parse(word, kind):
    """Returns the key that a word of a request stands for."""
    if kind == "f64":
        return struct.unpack(">d", bytes.fromhex(word[1:]))[0]
    return bytes.fromhex(word[1:]) if word.startswith("x") else int(word)


def shown(element, raw, kind):
    """Returns the word of a key or a value; `raw` are the bytes that hold it."""
    if element is None:
        return "-"
    if kind in ("f32", "f64"):
        return "f" + raw[::-1].hex()
    if isinstance(element, int):
        return str(element)
    return "x" + (element.encode("utf8", "surrogateescape") if kind == "utf8" else element).hex()


class Driver:
    """The file that was opened last, and the answers about it."""

    def __init__(self):
        self.file = self.rule = None

    def open(self, path):
        self.file = self.rule = None
        try:
            self.file = pleach_reader.Pleach(path)
        except pleach_reader.Refusal as refusal:
            self.rule = str(refusal)
            return f"refuse {self.rule}"
        return "ok"

    def key(self, word):
        return parse(word, self.file.key_type.name)

    def value(self, rank):
        raw, kind = self.file.value(rank), self.file.value_type
        return shown(None if kind.name == "none" else kind.decode(raw), raw, kind.name)

    def tuple(self, rank):
        kind, encoding = self.file.key_type, self.file.encoding(rank)
        key = kind.decode_key(encoding)
        raw = struct.pack("<d", key) if kind.name == "f64" else encoding
        return f"{shown(key, raw, kind.name)} {self.value(rank)}"

    def tuples(self):
        return f"tuples {self.file.tuples}"

    def types(self):
        return f"types {self.file.key_type.name} {self.file.value_type.name}"

    def at(self, rank):
        try:
            self.file.at(int(rank))
        except IndexError:
            return "none"
        return f"tuple {self.tuple(int(rank))}"

    def get(self, key):
        absent = object()
        if self.file.get(self.key(key), absent) is absent:
            return "absent"
        rank = self.file.lower(self.key(key))
        return f"tuple {rank} {self.value(rank)}"

    def lower(self, key):
        return f"rank {self.file.lower(self.key(key))}"

    def upper(self, key):
        return f"rank {self.file.upper(self.key(key))}"

    def floor(self, key):
        if self.file.floor(self.key(key)) is None:
            return "none"
        rank = self.file.upper(self.key(key)) - 1
        return f"tuple {rank} {self.tuple(rank)}"

    def range(self, first, end):
        count, rank = len(list(self.file.range(*map(self.key, (first, end))))), self.file.lower(
            self.key(first)
        )
        return " ".join([f"tuples {count}", *map(self.tuple, range(rank, rank + count))])

    def by(self, structure, key):
        if structure != "lines" and STRUCTURES[structure] not in self.file.table:
            return "none"
        if structure not in ("lines", "spine"):
            return "skip"
        file = copy.copy(self.file)
        if structure == "lines":
            file.levels, file.child_lines = [], file.lines
        return f"rank {file.lower(self.key(key))}"

    def check(self):
        if self.rule:
            return f"damaged {CODES.get(self.rule, 'header')}"
        faults = self.file.check()
        return f"damaged {faults[0][1]}" if faults else "clean"

    def name(self, column):
        return self.text(self.file.names, column)

    def logical(self, column):
        return self.text(self.file.logical_types, column)

    def text(self, texts, column):
        text = texts[("key", "value").index(column)]
        return f"text x{text.encode().hex()}" if text else "none"

    def derive(self, _):
        return "above 3 logical types"

    def answer(self, line):
        request, *words = line.split(" ")
        if request == "open":
            return self.open(line[5:])
        try:
            return getattr(self, request)(*words)
        except Exception as error:
            return f"error {type(error).__name__} {error}".replace("\n", " ")


def main():
    driver = Driver()
    for line in sys.stdin:
        print(driver.answer(line.rstrip("\n")), flush=True)


if __name__ == "__main__":
    main()
