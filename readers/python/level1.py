"""The shortest reader of Pleach files that is useful: keys that are integers, values that are numbers.

It verifies the sums of the superblock and the section table, and trusts that a sound program wrote
the rest: it looks neither at other sums nor at other rules, as pleach_reader.py does.
"""

import struct
from bisect import bisect_left
from zlib import crc32

KEYS = {1: ("u32", "<I"), 2: ("u64", "<Q"), 3: ("i32", "<i"), 4: ("i64", "<q")}
VALUES = {0: ("none", "<"), **KEYS, 5: ("f32", "<f"), 6: ("f64", "<d")}


def number(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


class Level1:
    def __init__(self, data):
        # The superblock: the first 4096 bytes.
        if data[:8] != b"\x89PLEACH\r" or crc32(data[:4092]) != number(data, 4092, 4):
            raise ValueError("no Pleach file, or a damaged one")
        if number(data, 16, 2) != 1 or number(data, 24, 8) or number(data, 72, 8) != len(data):
            raise ValueError("another version, an unknown feature, or another length")
        self.data, self.tuples, sections = data, number(data, 80, 8), number(data, 120, 4)
        if crc32(data[4096:8192]) != number(data, 124, 4):
            raise ValueError("a damaged section table")
        self.key_name, self.key_code = KEYS[number(data, 88, 2)]
        self.value_name, self.value_code = VALUES[number(data, 90, 2)]
        self.key_bytes = struct.calcsize(self.key_code)
        self.value_bytes = struct.calcsize(self.value_code)
        # The section table: entries of 128 bytes, in the order of their sections.
        entries = [data[at : at + 128] for at in range(4096, 4096 + 128 * sections, 128)]
        self.table = {entry[:4]: entry for entry in entries}
        self.ends = [number(entry, 8, 8) for entry in entries[1:]] + [len(data) - 8192]
        # Tuple lines: 64 bytes with `count` words from their start and as many values to their end.
        line = self.table[b"LINE"]
        self.offset, self.word_bytes = number(line, 8, 8), number(line, 60, 4)
        self.count = 64 // (self.word_bytes + self.value_bytes)
        self.lines = -(-self.tuples // self.count)
        # Short words keep runs of bits of a key's distance from a base; others are one run.
        self.base, runs = number(line, 72, 16), list(zip(line[88:96:2], line[89:96:2]))
        runs = runs if self.word_bytes < self.key_bytes else [(0, 8 * self.word_bytes)]
        self.kept = [first + bit for first, bits in runs for bit in range(bits)]
        # The spine: levels from the bottom one up, which comes last in the section.
        spine, self.levels, self.group = self.table.get(b"SPIN"), [], self.lines
        if spine:
            self.group, at = number(spine, 68, 4), number(spine, 8, 8) + number(spine, 16, 8)
            children = -(-self.lines // self.group)
            for encoding in spine[80 : 80 + number(spine, 64, 4)]:
                size = (self.word_bytes, 2, 4, 1)[encoding]
                slots = (62 - self.word_bytes if encoding else 64) // size
                children = -(-children // (slots + 1))
                at -= 128 * -(-children // 2)
                self.levels.insert(0, (at, encoding, size, slots))

    def word(self, rank):
        line, slot = divmod(rank, self.count)
        return number(self.data, self.offset + 64 * line + slot * self.word_bytes, self.word_bytes)

    def last_word(self, line):
        return self.word(min((line + 1) * self.count, self.tuples) - 1)

    def key(self, rank):
        word = self.word(rank)
        key = self.base + sum((word >> i & 1) << place for i, place in enumerate(self.kept))
        return key - (1 << 8 * self.key_bytes - 1 if self.key_name[0] == "i" else 0)

    def value(self, rank):  # its bytes; struct.unpack(value_code, ...) makes a number of them
        line, slot = divmod(rank, self.count)
        end = self.offset + 64 * (line + 1) - (self.count - slot - 1) * self.value_bytes
        return self.data[end - self.value_bytes : end]

    def lower(self, key):
        """Returns the number of tuples with smaller keys."""
        key += 1 << 8 * self.key_bytes - 1 if self.key_name[0] == "i" else 0
        distance, kept = max(key - self.base, 0), sum(1 << place for place in self.kept)
        lost = (distance & ~kept).bit_length()  # the highest bit that words do not keep decides
        distance |= (1 << lost) - 1
        word = sum((distance >> place & 1) << i for i, place in enumerate(self.kept)) + (lost > 0)
        child = 0
        for offset, encoding, size, slots in self.levels:
            line, query = self.data[offset + 64 * child : offset + 64 * child + 64], word
            if encoding:
                base = number(line, 62 - self.word_bytes, self.word_bytes)
                query = min(max(word - base, 0) >> line[62], (1 << 8 * size) - 1)
            below = sum(number(line, slot * size, size) < query for slot in range(slots))
            child = child * (slots + 1) + below
        # The line is in this group, or, behind a line of the spine that is INEXACT, later.
        line = min(child * self.group, max(self.lines - 1, 0))
        line = bisect_left(range(self.lines), word, line, key=self.last_word)
        end = min((line + 1) * self.count, self.tuples)
        return bisect_left(range(end), word, min(line * self.count, end), end, key=self.word)
