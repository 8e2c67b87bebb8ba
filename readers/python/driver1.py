"""Answers the requests of the conformance protocol with level1.py, for valid files only."""

import sys

import level1

TAGS = {"grid": b"GRID", "fast": b"FAST", "harmonia": b"HARM", "btree": b"BTRE", "trie": b"TRIE"}


class Driver:
    """The file that was opened last, and the answers about it."""

    def open(self, path):
        with open(path, "rb") as file:
            data = file.read()
        try:
            self.file = level1.Level1(data)
        except (KeyError, ValueError):
            return "above 2 not a file of integers and numbers"
        return "ok"

    def value(self, rank):
        raw, name = self.file.value(rank), self.file.value_name
        if name == "none":
            return "-"
        if name[0] == "f":
            return "f" + raw[::-1].hex()
        return str(int.from_bytes(raw, "little", signed=name[0] == "i"))

    def shown(self, rank):
        return f"{self.file.key(rank)} {self.value(rank)}"

    def tuples(self):
        return f"tuples {self.file.tuples}"

    def types(self):
        return f"types {self.file.key_name} {self.file.value_name}"

    def at(self, rank):
        return f"tuple {self.shown(int(rank))}" if int(rank) < self.file.tuples else "none"

    def get(self, key):
        rank = self.file.lower(int(key))
        is_there = rank < self.file.tuples and self.file.key(rank) == int(key)
        return f"tuple {rank} {self.value(rank)}" if is_there else "absent"

    def lower(self, key):
        return f"rank {self.file.lower(int(key))}"

    def upper(self, key):
        return f"rank {self.file.lower(int(key) + 1)}"

    def floor(self, key):
        rank = self.file.lower(int(key) + 1) - 1
        return "none" if rank < 0 else f"tuple {rank} {self.shown(rank)}"

    def range(self, first, end):
        ranks = range(self.file.lower(int(first)), self.file.lower(int(end)))
        return " ".join([f"tuples {len(ranks)}", *map(self.shown, ranks)])

    def by(self, structure, key):
        if structure == "spine":
            return self.lower(key) if b"SPIN" in self.file.table else "none"
        return "skip" if structure == "lines" or TAGS[structure] in self.file.table else "none"

    def check(self):
        return "clean"

    def answer(self, line):
        request, *words = line.split(" ")
        if request == "open":
            return self.open(line[5:])
        if request in ("name", "logical", "derive"):
            return "above 3 META"
        return getattr(self, request)(*words)


if __name__ == "__main__":
    driver = Driver()
    for line in sys.stdin:
        print(driver.answer(line.rstrip("\n")), flush=True)
