"""Reads Pleach files of format 1.n at level 2, with the standard library alone.

The parts have the order and the names of the format document. Numbers of Python have no size: a
word that is too large for its type needs no care here, as it is above all words of the file.
"""

import mmap
import re
import struct
from bisect import bisect_left, bisect_right
from collections import namedtuple
from zlib import crc32

MAGIC = b"\x89PLEACH\r\n\x1a\n\0\0\0\0\0"
FIELDS = "tag flags offset length elements sums_offset sums sums_crc zeros parameters zeros2 end"
Entry = namedtuple("Entry", FIELDS)
TAGS = b"META LINE SPIN GRID MASK TAIL KEYS TEXT TRIE VALS CODE PACK FAST HARM BTRE SUMS SUM2"
MOST_BYTES = {b"META": 1 << 20, b"MASK": 32 + 2 * 65535}
KEY_TYPES = dict(enumerate("u32 u64 i32 i64 u128 f64".split(), 1))
VALUE_TYPES = dict(enumerate("none u32 u64 i32 i64 f32 f64".split()))
APPROXIMATE = r"Hash64(\(\d+\))?|Hex\(\d+\)|Prefix\(\d+\)"


class Refusal(ValueError):
    """The file breaks a rule of opening. The text is the name of the rule in the document."""


def refuse(is_broken, rule):
    """Every check of opening is a call of this function."""
    if is_broken:
        raise Refusal(rule)


def number(data, at, size):
    """Returns a little-endian number. Bytes beyond the end of the data count as zero."""
    return int.from_bytes(data[at : at + size], "little")


def ceil(count, unit):
    return -(-count // unit)


def check_superblock(data):
    """Section 2: the superblock, rules 1 to 13. Returns the types of keys and values."""
    size, field = len(data), lambda at, size: number(data, at, size)
    refuse(data[:16] != MAGIC[:size], "magic")
    refuse(size < 4096, "truncated")
    refuse(crc32(data[:4092]) != field(4092, 4), "superblock-sum")
    refuse(field(16, 2) != 1, "version")
    refuse(field(24, 8) > 1, "feature")
    refuse(size < field(72, 8), "truncated")
    refuse(size > field(72, 8), "extended")
    refuse(size < 16384 or size % 4096, "pages")
    key_type = Type(field(88, 2), field(92, 4), KEY_TYPES, "key-type")
    value_type = Type(field(90, 2), field(96, 4), VALUE_TYPES, "value-type")
    refuse(field(100, 4) > 1, "unique")
    refuse(field(104, 8) != 4096 or field(112, 8) != 4096, "table-place")
    refuse(field(120, 4) > 31, "table-entries")
    refuse(crc32(data[4096:8192]) != field(124, 4), "table-sum")
    return key_type, value_type


class Type:
    """Section 3: a type. `size` is the bytes of an element, 0 if they vary."""

    def __init__(self, code, size, numbers, rule):
        self.name = (numbers | {7: f"bytes{size}", 8: "bytes", 9: "utf8"}).get(code)
        refuse(self.name is None, rule)
        self.size, self.is_bytes, self.kind = size, code > 6, self.name[0]
        wanted = int(self.name[1:]) // 8 if self.kind in "uif" and code < 7 else 0
        refuse(not 0 < size < 65536 if code == 7 else size != wanted, rule)
        self.sign = 1 << 8 * size - 1 if self.kind in "if" else 0

    def decode(self, raw):
        """Returns the element with these bytes, as they stand in a tuple line or a column."""
        if self.is_bytes:
            return raw.decode("utf8", "surrogateescape") if self.kind == "u" else raw
        if self.kind == "f":
            return struct.unpack("<f" if self.size == 4 else "<d", raw)[0]
        return int.from_bytes(raw, "little", signed=self.sign > 0) if self.size else None

    def encode_key(self, key):
        """Returns the encoding of a key: a number, or the bytes of a byte key."""
        if self.is_bytes:
            return key.encode("utf8", "surrogateescape") if isinstance(key, str) else bytes(key)
        if self.kind != "f":
            return int(key) + self.sign
        if key != key:
            raise ValueError("NaN is no key")
        bits = number(struct.pack("<d", key + 0.0), 0, 8)  # the sum makes 0.0 of -0.0
        return bits ^ (2 * self.sign - 1 if bits & self.sign else self.sign)

    def decode_key(self, encoding):
        if self.is_bytes:
            return self.decode(encoding)
        encoding %= 1 << 8 * self.size
        if self.kind != "f":
            return encoding - self.sign
        bits = encoding ^ (self.sign if encoding & self.sign else 2 * self.sign - 1)
        return self.decode(bits.to_bytes(8, "little"))


def places(bits):
    """Returns the places of the ones of a number, from the lowest one on."""
    return [place for place, bit in enumerate(bin(bits)[:1:-1]) if bit == "1"]


def spread(word, kept):
    """Moves the bits of a word to the places that it keeps."""
    return sum((word >> at & 1) << place for at, place in enumerate(kept))


def seek(bits, kept, constant, reference):
    """Returns the word of a query and True; of no key, the first word above it and False.

    The topmost bit that no word keeps and in which the query differs from all keys decides.
    """
    if bits < 0:
        return 0, False
    differing = (bits ^ reference) & constant
    first = 1 << differing.bit_length() >> 1
    is_above = bits & first > 0
    if differing:
        bits = bits & -first | (first - 1) * is_above
    return sum((bits >> place & 1) << at for at, place in enumerate(kept)) + is_above, not first


class NumberWords:
    """Section 3: words of numbers, all of them or, in short words, up to four runs: rule 31."""

    def __init__(self, base, bounds, key_bits, word_bits):
        self.base, runs = base, list(zip(bounds[::2], bounds[1::2]))
        used = [run for run in runs if run[1]]
        if key_bits > word_bits:
            refuse(not used or runs != used + [(0, 0)] * (4 - len(used)), "short-words")
            refuse(any(sum(run) >= after[0] for run, after in zip(used, used[1:])), "short-words")
            refuse(sum(used[-1]) > key_bits or base >> key_bits, "short-words")
            refuse(sum(bits for _, bits in used) > word_bits, "short-words")
        else:
            refuse(base or runs != [(0, 0)] * 4, "line-parameters")
            used = [(0, word_bits)]
        self.kept = [first + bit for first, bits in used for bit in range(bits)]

    def place(self, encoding):
        return seek(encoding - self.base, self.kept, ~spread(-1, self.kept), 0)

    def key(self, word, tail):
        return self.base + spread(word, self.kept)


def read_table(data):
    """Section 4: the entries by tag, each with the end of its extent, rules 14 to 28."""
    count, closing = number(data, 120, 4), len(data) - 8192
    unpack = struct.Struct("<4sIQQQQQI4s64s8s").unpack
    rows = [unpack(data[at : at + 128]) for at in range(4096, 4096 + 128 * count, 128)]
    ends = [row[2] for row in rows[1:]] + [closing]
    entries = [Entry(*row, end) for row, end in zip(rows, ends)]
    refuse(entries and entries[0].offset != 8192, "first-section")
    refuse(any(e.offset % 4096 for e in entries), "alignment")
    refuse(any(e.end < e.offset or e.end > closing for e in entries), "section-order")
    refuse(any(e.offset + 128 * ceil(e.length, 128) > e.end for e in entries), "section-end")
    refuse(any(e.end - e.offset - e.length >= 1 << 21 for e in entries), "section-gap")
    refuse(any(e.length > MOST_BYTES.get(e.tag, 1 << 64) for e in entries), "section-large")
    refuse(any(e.flags > 1 for e in entries), "flags")
    refuse(any(e.flags and e.tag not in TAGS.split() for e in entries), "required-section")
    table = {e.tag: e for e in entries}
    refuse(len(table) < count, "section-twice")
    refuse(any(any(e.zeros + e.zeros2) for e in entries), "reserved")
    refuse(b"SUMS" not in table or b"SUM2" not in table, "sums-missing")
    sums, sum2 = table[b"SUMS"], table[b"SUM2"]
    refuse(sum2.sums_offset or sum2.sums, "sum2-list")
    refuse(sum2.length != 4 * sums.sums, "sum2-length")
    lists = [(e, sum2 if e is sums else sums) for e in entries if e is not sum2]
    refuse(any(e.sums != ceil(e.end - e.offset, 8192) for e, _ in lists), "sums-count")
    for e, home in lists:
        refuse(e.sums_offset % 4 or e.sums_offset < home.offset, "sums-place")
        refuse(e.sums_offset + 4 * e.sums > home.offset + home.length, "sums-place")
    return table


class Lines:
    """Sections 5 and 6: the tuple lines, and the spine above them, rules 29 to 34."""

    def __init__(self, data, table, tuples, key_type, value_type):
        refuse(b"LINE" not in table, "line-missing")
        line = table[b"LINE"]
        self.data, self.offset, self.tuples = data, line.offset, tuples
        stored = struct.unpack("<IIII16s8s24s", line.parameters)
        self.word_bytes, self.value_bytes = stored[1], 0 if value_type.is_bytes else value_type.size
        key_bytes = self.word_bytes if key_type.is_bytes else key_type.size
        refuse(self.word_bytes not in (4, 8, 16) or self.word_bytes > key_bytes, "word-bytes")
        base, sizes = number(stored[4], 0, 16), (8 * key_bytes, 8 * self.word_bytes)
        self.words = NumberWords(base, stored[5], *sizes)
        self.count = 64 // (self.word_bytes + self.value_bytes)
        self.lines = ceil(tuples, self.count)
        refuse(line.length != 128 * ceil(self.lines, 2) or line.elements != tuples, "line-length")
        wanted = (64, self.word_bytes, self.value_bytes, self.count)
        refuse(stored[:4] != wanted or any(stored[6]), "line-parameters")
        self.levels, self.child_lines = [], self.lines  # without a spine all lines are one group
        if b"SPIN" in table:
            self.read_spine(table[b"SPIN"])

    def read_spine(self, spine):
        stored = struct.unpack("<IIIIQ24s16s", spine.parameters)
        line_bytes, word_bytes, levels, self.child_lines, _, encodings, reserved = stored
        refuse(line_bytes != 64 or word_bytes != self.word_bytes or any(reserved), "spine")
        refuse(self.child_lines not in (1, 2, 4, 8, 16, 32, 64, 128), "spine")
        refuse(levels > 24 or any(encodings[levels:]) or max(encodings) > 3, "spine")
        children, at, total = ceil(self.lines, self.child_lines), spine.offset + spine.length, 0
        for encoding in encodings[:levels]:
            refuse(children < 2, "spine")
            code_bytes = (word_bytes, 2, 4, 1)[encoding]
            slots = (62 - word_bytes if encoding else 64) // code_bytes
            count = ceil(children, slots + 1)
            at, total = at - 128 * ceil(count, 2), total + count
            self.levels.append((at, encoding, code_bytes, slots, children))
            children = count
        refuse(children > 1 or at != spine.offset or spine.elements != total, "spine")

    def word(self, rank):
        line, slot = divmod(rank, self.count)
        return number(self.data, self.offset + 64 * line + slot * self.word_bytes, self.word_bytes)

    def value(self, rank):
        """Returns the bytes of a value. The last value of a line ends where the line does."""
        line, slot = divmod(rank, self.count)
        at = self.offset + 64 * (line + 1) - (self.count - slot) * self.value_bytes
        return self.data[at : at + self.value_bytes]

    def last_word(self, line):
        return self.word(min((line + 1) * self.count, self.tuples) - 1)

    def group(self, word):
        """Returns the group of tuple lines to which the spine leads."""
        group = 0
        for offset, encoding, code_bytes, slots, children in reversed(self.levels):
            line = self.data[offset + 64 * group : offset + 64 * group + 64]
            query = word
            if encoding:
                distance = word - number(line, 62 - self.word_bytes, self.word_bytes)
                query = min(max(distance, 0) >> line[62], (1 << 8 * code_bytes) - 1)
            codes = [number(line, slot * code_bytes, code_bytes) for slot in range(slots)]
            group = min(group * (slots + 1) + sum(code < query for code in codes), children - 1)
        return group

    def below(self, word):
        """Returns the number of tuples whose words are below this one."""
        if not self.tuples:
            return 0
        first = self.group(word) * self.child_lines
        last = min(first + self.child_lines, self.lines) - 1
        line = bisect_left(range(last), word, first, last, key=self.last_word)
        if self.last_word(line) < word:  # behind an INEXACT line of the spine, or above all keys
            line = bisect_left(range(self.lines), word, line, self.lines, key=self.last_word)
        first, end = (min((line + i) * self.count, self.tuples) for i in (0, 1))
        return bisect_left(range(end), word, first, end, key=self.word)


class Mask:
    """Section 7: from byte keys to words and tails, rule 46.

    A key is a number here: its described bytes, then 17 bits for its length. The topmost of these
    marks a query that is longer than all keys.
    """

    def __init__(self, data, mask, key_type, word_bits):
        section = data[mask.offset : mask.offset + mask.length]
        refuse(len(section) < 32, "mask")
        stored = struct.unpack("<IIHBBH18s", section[:32])
        most, covered, length_mask, self.lossless, fixed, self.tail_bytes, reserved = stored
        self.most, self.described = most, most if self.tail_bytes else covered
        refuse(most > 65535 or covered > most or len(section) != 32 + 2 * self.described, "mask")
        refuse(self.lossless > 1 or fixed > 1 or any(reserved), "mask")
        refuse(self.lossless and (covered < most or self.tail_bytes), "mask")
        refuse(self.tail_bytes > 1024 or length_mask & length_mask + 1, "mask")
        refuse(length_mask and (fixed or not self.lossless and not self.tail_bytes), "mask")
        refuse(fixed != bool(key_type.size) or fixed and most != key_type.size, "mask")
        kept = int.from_bytes(section[32 + self.described :], "big") << 17 | length_mask
        reference = int.from_bytes(section[32 : 32 + self.described], "big") << 17 | most
        in_word = -1 if self.lossless else -1 << 17 + 8 * (self.described - covered)
        self.kept, self.constant, self.reference = (
            places(kept & in_word),
            in_word & ~kept,
            reference & ~kept,
        )
        # A tail has byte after byte, each from its lowest bit up, and the length behind them.
        order = {place: place < 17 or -((place - 17) // 8) for place in places(kept & ~in_word)}
        self.in_tail = sorted(order, key=order.get)
        refuse(len(self.kept) > word_bits or len(self.in_tail) > 8 * self.tail_bytes, "mask")

    def place(self, key):
        length = 1 << 16 if len(key) > self.most else len(key)
        key = key[: self.described].ljust(self.described, b"\0")
        bits = int.from_bytes(key, "big") << 17 | length
        return seek(bits, self.kept, self.constant, self.reference)

    def key(self, word, tail):
        bits = self.reference | spread(word, self.kept) | spread(tail, self.in_tail)
        return (bits >> 17).to_bytes(self.described, "big")[: bits % (1 << 17)]


class Column:
    """Sections 7 and 8: elements of one size, or of any size if that is 0. Rule 35."""

    def __init__(self, data, column, elements, size):
        self.data, self.at, self.elements = data, column.offset, elements
        self.size, self.offset_bytes, *reserved = struct.unpack("<II56B", column.parameters)
        refuse(self.size != size if size is not None else not self.size, "column")
        refuse(column.elements != elements or any(reserved), "column")
        refuse(self.offset_bytes not in ((0,) if self.size else (4, 8)), "column")
        self.first = column.offset + 128 * ceil((elements + 1) * self.offset_bytes, 128)
        self.most = column.offset + column.length - 64 - self.first
        refuse(self.size and self.most != elements * self.size, "column")
        refuse(self.most < 0 or self.offset_bytes == 4 and self.most >> 31, "column")

    def __getitem__(self, i):
        at = self.at + i * self.offset_bytes
        ends = [i * self.size, (i + 1) * self.size]
        if not self.size:
            ends = [number(self.data, at + j, self.offset_bytes) for j in (0, self.offset_bytes)]
        begin, end = (self.first + min(end, self.most) for end in ends)
        return self.data[begin:end]


class Text(Column):
    """Section 8: byte keys by page, rule 37. The pages are elements of any size."""

    def __init__(self, data, text, tuples):
        page_keys, place_bytes, *reserved = struct.unpack("<II56B", text.parameters)
        refuse(page_keys != 16 or place_bytes not in (4, 8) or any(reserved), "text")
        refuse(text.elements != tuples, "text")
        self.data, self.at, self.size, self.offset_bytes = data, text.offset + 2304, 0, place_bytes
        self.first = text.offset + 128 * ceil(2304 + (ceil(tuples, 16) + 1) * place_bytes, 128)
        self.most = text.offset + text.length - 64 - self.first
        refuse(self.most < 0 or (self.most >> 32 > 0) != (place_bytes == 8), "text")
        table = data[text.offset : self.at]
        self.symbols = [table[at : at + table[at // 8 - 32]] for at in range(256, 2304, 8)]

    def key(self, rank):
        """Returns a key: what it shares with the head of its page, then its rest."""
        page, follower = self[rank // 16], rank % 16
        head_bytes, base, flags = (number(page, at, size) for at, size in ((0, 2), (2, 2), (4, 1)))
        width = 1 + flags % 2
        at = 51 + 15 * width + head_bytes
        head = page[at - head_bytes : at]
        lengths = [number(page, 51 + i * width, width) for i in range(follower)]
        if not follower:
            return head
        at += sum(max(length - 1, 0) for length in lengths[:-1])
        key = head[: base + number(page, 20 + follower, 1)]
        if lengths[-1]:
            key += page[35 + follower : 36 + follower]
            codes = page[at : at + lengths[-1] - 1]
            key += codes if flags & 2 else self.decode(codes)
        return key

    def decode(self, codes):
        text, at = b"", 0
        while at < len(codes):
            is_escape = codes[at] == 255
            text += codes[at + 1 : at + 2] if is_escape else self.symbols[codes[at]]
            at += 1 + is_escape
        return text


def read_meta(records):
    """Section 9: the texts of META by tag, as far as its records can be read."""
    texts, at = {}, 0
    while at + 8 <= len(records):
        tag, size = number(records, at, 2), number(records, at + 4, 4)
        if size > min(65536, len(records) - at - 8):
            break
        texts[tag] = records[at + 8 : at + 8 + size].decode("utf8", "replace")
        at += 8 + 8 * ceil(size, 8)
    return texts


class Pleach:
    """An open file. `data` are all its bytes, or a map of them."""

    def __init__(self, data):
        self.data, (self.key_type, self.value_type) = data, check_superblock(data)
        self.table, self.tuples = read_table(data), number(data, 80, 8)
        table, tuples, is_bytes = self.table, self.tuples, self.key_type.is_bytes
        self.lines = Lines(data, table, tuples, self.key_type, self.value_type)
        self.keys = self.column(b"KEYS", tuples, self.key_type.size)
        self.tails, self.codes = self.column(b"TAIL", tuples), self.column(b"CODE", tuples)
        count = table[b"VALS"].elements if self.codes and b"VALS" in table else tuples
        self.values = self.column(b"VALS", count, self.value_type.size)
        if self.codes:
            refuse(not self.value_type.is_bytes or not self.values, "codes")
            code_bytes = 1 if count <= 256 else 2 if count <= 65536 else 4
            refuse(self.codes.size != code_bytes or self.values.most > 1 << 28, "codes")
            refuse(count > min(tuples, 1 << 24) or tuples and not count, "codes")
        self.text = Text(data, table[b"TEXT"], tuples) if b"TEXT" in table else None
        refuse(self.text and (not is_bytes or self.tails or self.keys), "text")
        refuse(self.value_type.is_bytes and not self.values, "values-missing")
        refuse(is_bytes != (b"MASK" in table), "mask-missing")
        self.words = self.lines.words
        if is_bytes:
            self.words = Mask(data, table[b"MASK"], self.key_type, 8 * self.lines.word_bytes)
            refuse((self.tails.size if self.tails else 0) != self.words.tail_bytes, "tail")
            is_elsewhere = self.tails or self.keys or self.text
            refuse(not self.words.lossless and not is_elsewhere, "keys-missing")
        meta = table.get(b"META")
        self.meta = read_meta(data[meta.offset : meta.offset + meta.length]) if meta else {}
        self.names = self.meta.get(1), self.meta.get(2)
        self.logical_types = self.meta.get(3), self.meta.get(4)
        count, is_flagged = self.meta.get(7), number(data, 24, 8) == 1
        refuse(is_flagged != (count is not None), "approximate")
        is_known = re.fullmatch(APPROXIMATE, self.meta.get(3, ""))
        refuse(is_flagged and not (is_known and re.fullmatch("[0-9]+", count)), "approximate")

    def column(self, tag, elements, size=None):
        return Column(self.data, self.table[tag], elements, size) if tag in self.table else None

    def encoding(self, rank):
        """Returns the encoding of a key."""
        if self.text and not self.words.lossless:
            return self.text.key(rank)
        if self.keys and self.key_type.is_bytes and not (self.words.lossless or self.tails):
            return self.keys[rank]
        tail = number(self.tails[rank], 0, 1024) if self.tails else 0
        return self.words.key(self.lines.word(rank), tail)

    def value_bytes(self, rank):
        """Returns the bytes of a value."""
        if not self.value_type.is_bytes:
            return self.lines.value(rank)
        if self.codes:
            rank = min(number(self.codes[rank], 0, 4), self.values.elements - 1)
        return self.values[rank]

    def at(self, rank):
        """Returns the key and the value of a tuple."""
        if not 0 <= rank < self.tuples:
            raise IndexError(rank)
        key = self.key_type.decode_key(self.encoding(rank))
        return key, self.value_type.decode(self.value_bytes(rank))

    def lower(self, key, bisect=bisect_left):
        """Returns the number of tuples with smaller keys."""
        query = self.key_type.encode_key(key)
        word, is_key = self.words.place(query)
        low = self.lines.below(word)
        high = self.lines.below(word + 1) if is_key else low
        return bisect(range(high), query, low, high, key=self.encoding)

    def upper(self, key):
        """Returns the number of tuples with smaller or equal keys."""
        return self.lower(key, bisect_right)

    def find(self, key):
        """Returns the rank of the first tuple with a key, or None."""
        rank, query = self.lower(key), self.key_type.encode_key(key)
        return rank if rank < self.tuples and self.encoding(rank) == query else None

    def get(self, key, default=None):
        """Returns the value of the first tuple with a key."""
        rank = self.find(key)
        return default if rank is None else self.at(rank)[1]

    def floor(self, key):
        """Returns the last tuple whose key is at most this, or None."""
        rank = self.upper(key) - 1
        return None if rank < 0 else self.at(rank)

    def range(self, first, end):
        """Yields the tuples from one key up to, not with, another."""
        yield from map(self.at, range(self.lower(first), self.lower(end)))

    def check(self):
        """Section 9: verifies all sums. Returns offset and code of each fault, in order."""
        faults, file_id = [], self.data[48:64]
        for e in self.table.values():
            at, size = (
                (e.sums_offset, 4 * e.sums) if e.tag != b"SUM2" else (e.offset, e.end - e.offset)
            )
            if crc32(self.data[at : at + size]) != e.sums_crc:
                faults.append((at, "sums"))
            for block in range(e.sums):
                begin = e.offset + 8192 * block
                sum_ = crc32(self.data[begin : min(begin + 8192, e.end)])
                sum_ ^= crc32(file_id + e.tag + block.to_bytes(8, "little"))
                if sum_ != number(self.data, at + 4 * block, 4):
                    faults.append((begin, "block"))
        return sorted(faults)


def open_file(path):
    """Opens and maps a file. It must not be changed while it is open."""
    with open(path, "rb") as file:
        is_empty = file.seek(0, 2) == 0
        return Pleach(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
