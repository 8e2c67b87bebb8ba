"""Reads Pleach files of format 1.n at level 2. The parts have the order of the format document."""

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
APPROXIMATE = r"(?a)(u64 Hash64(\(\d+\))?|utf8 Prefix\(\d+\)|\w+ Hex\(\d+\)) \d+"


class Refusal(ValueError):
    """The file breaks a rule of opening. The text is the name of the rule in the document."""


def refuse(is_broken, rule):
    if is_broken:
        raise Refusal(rule)


def number(data, at, size):  # little-endian; bytes behind the end of the data are zero
    return int.from_bytes(data[at : at + size], "little")


def ceil(count, unit):
    return -(-count // unit)


class Pleach:
    """An open file, of a path or of bytes. A file must not be changed while it is open."""

    def __init__(self, source):
        if not isinstance(source, bytes):
            with open(source, "rb") as file:
                source = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if file.read(1) else b""
        self.data, self.levels = source, []
        self.read_superblock(source)
        self.read_table(source)
        self.read_lines(self.table.get(b"LINE"))
        if b"SPIN" in self.table:
            self.read_spine(self.table[b"SPIN"])
        self.read_columns(self.key_type.is_bytes, self.value_type.is_bytes)
        self.read_meta(self.table.get(b"META"))

    def read_superblock(self, data):  # section 5, superblock: rules 1 to 13
        size, field = len(data), lambda at, size: number(data, at, size)
        refuse(data[:16] != MAGIC[:size], "magic")
        refuse(size < 4096, "truncated")
        refuse(crc32(data[:4092]) != field(4092, 4), "superblock-sum")
        refuse(field(16, 2) != 1, "version")
        refuse(field(24, 8) > 1, "feature")
        refuse(size < field(72, 8), "truncated")
        refuse(size > field(72, 8), "extended")
        refuse(size < 16384 or size % 4096, "pages")
        self.key_type = Type(field(88, 2), field(92, 4), KEY_TYPES, "key-type")
        self.value_type = Type(field(90, 2), field(96, 4), VALUE_TYPES, "value-type")
        refuse(field(100, 4) > 1, "unique")
        refuse(field(104, 8) != 4096 or field(112, 8) != 4096, "table-place")
        refuse(field(120, 4) > 31, "table-entries")
        refuse(crc32(data[4096:8192]) != field(124, 4), "table-sum")
        self.tuples = field(80, 8)

    def read_table(self, data):  # sections 6 and 10: rules 14 to 28
        count, closing = number(data, 120, 4), len(data) - 8192
        rows = [*struct.iter_unpack("<4sIQQQQQI4s64s8s", data[4096 : 4096 + 128 * count])]
        entries = [Entry(*row, end) for row, end in zip(rows, [*(r[2] for r in rows[1:]), closing])]
        refuse(entries and entries[0].offset != 8192, "first-section")
        refuse(any(e.offset % 4096 for e in entries), "alignment")
        refuse(any(e.end < e.offset or e.end > closing for e in entries), "section-order")
        refuse(any(e.offset + 128 * ceil(e.length, 128) > e.end for e in entries), "section-end")
        refuse(any(e.end - e.offset - e.length >= 1 << 21 for e in entries), "section-gap")
        refuse(any(e.length > MOST_BYTES.get(e.tag, 1 << 64) for e in entries), "section-large")
        refuse(any(e.flags > 1 for e in entries), "flags")
        refuse(any(e.flags and e.tag not in TAGS.split() for e in entries), "required-section")
        self.table = table = {e.tag: e for e in entries}
        refuse(len(table) < count, "section-twice")
        refuse(any(any(e.zeros + e.zeros2) for e in entries), "reserved")
        refuse(b"SUMS" not in table or b"SUM2" not in table, "sums-missing")
        sums, sum2 = table[b"SUMS"], table[b"SUM2"]
        refuse(sum2.sums_offset or sum2.sums, "sum2-list")
        refuse(sum2.length != 4 * sums.sums, "sum2-length")
        for e, home in ((e, sum2 if e is sums else sums) for e in entries if e is not sum2):
            refuse(e.sums != ceil(e.end - e.offset, 8192), "sums-count")
            refuse(e.sums_offset % 4 or e.sums_offset < home.offset, "sums-place")
            refuse(e.sums_offset + 4 * e.sums > home.offset + home.length, "sums-place")

    def read_lines(self, line):  # section 8, LINE: rules 29 to 33
        refuse(line is None, "line-missing")
        stored = struct.unpack("<IIII16s8s24s", line.parameters)
        line_bytes, self.word_bytes, value_bytes, line_tuples, base, runs, reserved = stored
        key_bytes = self.word_bytes if self.key_type.is_bytes else self.key_type.size
        refuse(self.word_bytes not in (4, 8, 16) or self.word_bytes > key_bytes, "word-bytes")
        self.words = NumberWords(number(base, 0, 16), runs, 8 * key_bytes, 8 * self.word_bytes)
        self.value_bytes = 0 if self.value_type.is_bytes else self.value_type.size
        self.line_tuples, self.offset = 64 // (self.word_bytes + self.value_bytes), line.offset
        self.lines = self.child_lines = ceil(self.tuples, self.line_tuples)
        refuse(line.length != 128 * ceil(self.lines, 2), "line-length")
        refuse(line.elements != self.tuples, "line-length")
        refuse(line_bytes != 64 or value_bytes != self.value_bytes, "line-parameters")
        refuse(line_tuples != self.line_tuples or any(reserved), "line-parameters")
        refuse(self.word_bytes == key_bytes and any(base + runs), "line-parameters")

    def read_spine(self, spine):  # section 9, SPIN: rule 34
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

    def read_columns(self, has_byte_keys, has_byte_values):  # sections 12 to 14: rules 35 to 48
        table, tuples, of = self.table, self.tuples, self.value_type
        self.keys = self.column(b"KEYS", tuples, self.key_type.size)
        self.tails = self.column(b"TAIL", tuples, None, has_byte_keys)
        self.codes = self.column(b"CODE", tuples)
        count = table[b"VALS"].elements if self.codes and b"VALS" in table else tuples
        self.values = self.column(b"VALS", count, of.size, of.name != "none")
        if self.codes:
            refuse(not has_byte_values or not self.values, "codes")
            code_bytes = 1 if count <= 256 else 2 if count <= 65536 else 4
            refuse(self.codes.size != code_bytes or self.values.most > 1 << 28, "codes")
            refuse(count > min(tuples, 1 << 24) or tuples and not count, "codes")
        self.text = Text(self.data, table[b"TEXT"], tuples) if b"TEXT" in table else None
        refuse(self.text and (not has_byte_keys or self.tails or self.keys), "text")
        refuse(has_byte_values and not self.values, "values-missing")
        refuse(has_byte_keys != (b"MASK" in table), "mask-missing")
        self.whole_keys = None  # where they are, if words and tails are not
        if has_byte_keys:
            self.words = Mask(self.data, table[b"MASK"], self.key_type, 8 * self.word_bytes)
            refuse((self.tails.size if self.tails else 0) != self.words.tail_bytes, "tail")
            if not self.words.lossless and not self.tails:
                self.whole_keys = self.text or self.keys
                refuse(not self.whole_keys, "keys-missing")

    def column(self, tag, elements, size=None, is_due=True):
        if tag in self.table:
            refuse(self.table[tag].elements != elements or not is_due, "column")
            return Column(self.data, self.table[tag], elements, size)

    def read_meta(self, meta):  # section 11, META: rule 49
        records = memoryview(self.data[meta.offset : meta.offset + meta.length] if meta else b"")
        texts = {}
        while len(records) >= 8:
            tag, size = number(records, 0, 2), number(records, 4, 4)
            if size <= min(65536, len(records) - 8):
                texts[tag] = str(records[8 : 8 + size], "utf8", "replace")
            records = records[8 + 8 * ceil(size, 8) :]
        self.names, self.logical_types = (texts.get(1), texts.get(2)), (texts.get(3), texts.get(4))
        fits = re.fullmatch(APPROXIMATE, f"{self.key_type.name} {texts.get(3)} {texts.get(7)}")
        refuse(not fits or int(texts[7]) >> 64 if self.data[24] else 7 in texts, "approximate")

    def word(self, rank):
        line, slot = divmod(rank, self.line_tuples)
        return number(self.data, self.offset + 64 * line + slot * self.word_bytes, self.word_bytes)

    def below(self, word):  # how many tuples have smaller words; any number may be asked for
        group, count, is_exact = 0, self.line_tuples, True
        last_word = lambda line: self.word(min((line + 1) * count, self.tuples) - 1)
        for offset, encoding, code_bytes, slots, children in reversed(self.levels):
            line, query = self.data[offset + 64 * group : offset + 64 * group + 64], word
            if encoding:
                is_exact = is_exact and not line[63] & 1
                distance = word - number(line, 62 - self.word_bytes, self.word_bytes)
                query = min(max(distance, 0) >> line[62], (1 << 8 * code_bytes) - 1)
            codes = [number(line, slot * code_bytes, code_bytes) for slot in range(slots)]
            group = min(group * (slots + 1) + sum(code < query for code in codes), children - 1)
        first = group * self.child_lines
        last = min(first + self.child_lines, self.lines) - 1
        line = bisect_left(range(last), word, first, last, key=last_word)
        if not is_exact and last_word(line) < word:  # behind an INEXACT line of the spine
            line = bisect_left(range(self.lines), word, line, self.lines, key=last_word)
        first, end = (min((line + i) * count, self.tuples) for i in (0, 1))
        return bisect_left(range(end), word, first, end, key=self.word)

    def encoding(self, rank):  # of a key
        if self.whole_keys:
            return self.whole_keys[rank]
        tail = number(self.tails[rank], 0, 1024) if self.tails else 0
        return self.words.key(self.word(rank), tail)

    def value(self, rank):  # its bytes; the last value of a line ends where the line does
        if self.value_type.is_bytes:
            code = number(self.codes[rank], 0, 4) if self.codes else rank
            return self.values[min(code, self.values.elements - 1)]
        line, slot = divmod(rank, self.line_tuples)
        at = self.offset + 64 * (line + 1) - (self.line_tuples - slot) * self.value_bytes
        return self.data[at : at + self.value_bytes]

    def at(self, rank):  # the key and the value of a tuple
        rank = range(self.tuples)[rank]  # or an IndexError
        key = self.key_type.decode_key(self.encoding(rank))
        return key, self.value_type.decode(self.value(rank))

    def lower(self, key, bisect=bisect_left):  # how many tuples have smaller keys
        query = self.key_type.encode_key(key)
        word, is_key = self.words.place(query)
        low, high = self.below(word), self.below(word + is_key)
        return bisect(range(high), query, low, high, key=self.encoding)

    def upper(self, key):  # how many tuples have smaller or equal keys
        return self.lower(key, bisect_right)

    def get(self, key, default=None):  # the value of the first tuple with this key
        rank = self.lower(key)
        return self.at(rank)[1] if rank < self.upper(key) else default

    def floor(self, key):  # the last tuple whose key is at most this
        rank = self.upper(key) - 1
        return None if rank < 0 else self.at(rank)

    def range(self, first, end):  # the tuples from one key up to, not with, another
        return map(self.at, range(self.lower(first), self.lower(end)))

    def check(self):  # verifies all sums; the offset and the code of each fault, in order
        faults, file_id = [], self.data[48:64]
        for e in self.table.values():  # SUM2 is its own list
            at, size = e.sums_offset or e.offset, 4 * e.sums or e.end - e.offset
            if crc32(self.data[at : at + size]) != e.sums_crc:
                faults.append((at, "sums"))
            for block in range(e.sums):
                begin = e.offset + 8192 * block
                bound = crc32(file_id + e.tag + block.to_bytes(8, "little"))
                bound ^= crc32(self.data[begin : min(begin + 8192, e.end)])
                if bound != number(self.data, at + 4 * block, 4):
                    faults.append((begin, "block"))
        return sorted(faults)


class Type:
    """Section 7: a type of keys or values. `size` is the bytes of an element, 0 if they vary."""

    def __init__(self, code, size, numbers, rule):
        self.name = (numbers | {7: f"bytes{size}", 8: "bytes", 9: "utf8"}).get(code, "?")
        self.size, self.is_bytes, self.is_float = size, code > 6, self.name[0] == "f"
        wanted = int(self.name[1:]) // 8 if 0 < code < 7 else 0
        is_wrong = not 0 < size < 65536 if code == 7 else size != wanted
        refuse(self.name == "?" or is_wrong, rule)
        self.sign = 1 << 8 * size - 1 if self.name[0] in "if" else 0

    def decode(self, raw):  # from bytes as in a tuple line or a column
        if self.is_bytes:
            return raw.decode("utf8", "surrogateescape") if self.name == "utf8" else raw
        if self.is_float:
            return struct.unpack("<f" if self.size == 4 else "<d", raw)[0]
        return int.from_bytes(raw, "little", signed=self.sign > 0) if self.size else None

    def encode_key(self, key):  # a number, or the bytes of a byte key
        if self.is_bytes:
            return key.encode("utf8", "surrogateescape") if isinstance(key, str) else bytes(key)
        if not self.is_float:
            return int(key) + self.sign
        bits = number(struct.pack("<d", key + 0.0), 0, 8)  # the sum makes 0.0 of -0.0
        return bits ^ (2 * self.sign - 1 if bits & self.sign else self.sign)

    def decode_key(self, encoding):
        if self.is_bytes:
            return self.decode(encoding)
        is_negative = self.is_float and not encoding & self.sign
        bits = encoding ^ (2 * self.sign - 1 if is_negative else self.sign)
        return self.decode((bits % (1 << 8 * self.size)).to_bytes(self.size, "little"))


def spread(word, kept):  # moves the bits of a word to the places that it keeps
    return sum((word >> at & 1) << place for at, place in enumerate(kept))


def seek(bits, kept, constant, reference):
    """Returns the word of a query and True; of no key, the first word above it and False."""
    differing = (bits ^ reference) & constant
    first = 1 << differing.bit_length() >> 1  # in this bit it differs from all keys: it decides
    is_above = bits & first > 0
    bits = bits & -first | (first - 1) * is_above if differing else bits
    word = sum((bits >> place & 1) << at for at, place in enumerate(kept)) + is_above
    return (0, False) if bits < 0 else (word, not differing)


class NumberWords:
    """Section 7: words of numbers, whole or short. Rule 31."""

    def __init__(self, base, bounds, key_bits, word_bits):
        self.base, runs = base, list(zip(bounds[::2], bounds[1::2]))
        used = [run for run in runs if run[1]]
        if key_bits > word_bits:
            refuse(not used or runs != used + [(0, 0)] * (4 - len(used)), "short-words")
            refuse(any(sum(run) >= after[0] for run, after in zip(used, used[1:])), "short-words")
            refuse(sum(used[-1]) > key_bits or base >> key_bits, "short-words")
            refuse(sum(bits for _, bits in used) > word_bits, "short-words")
        runs = used if key_bits > word_bits else [(0, word_bits)]
        self.kept = [first + bit for first, bits in runs for bit in range(bits)]

    def place(self, encoding):
        return seek(encoding - self.base, self.kept, ~spread(-1, self.kept), 0)

    def key(self, word, _):
        return self.base + spread(word, self.kept)


class Mask:
    """Section 12, MASK: how words and tails keep byte keys. Rule 46.

    A key is a number here: its first `size` bytes, then 17 bits for its length, or a one and zeros
    for the length of a query that is longer than all keys.
    """

    def __init__(self, data, mask, key_type, word_bits):
        section = data[mask.offset : mask.offset + mask.length]
        refuse(len(section) < 32, "mask")
        stored = struct.unpack("<IIHBBH18s", section[:32])
        most, covered, length_mask, lossless, fixed, tail_bytes, reserved = stored
        size = most if tail_bytes else covered
        self.most, self.size, self.tail_bytes, self.lossless = most, size, tail_bytes, lossless
        refuse(most > 65535 or covered > most or mask.length != 32 + 2 * size, "mask")
        refuse(lossless > 1 or fixed > 1 or any(reserved), "mask")
        refuse(lossless and (covered < most or tail_bytes), "mask")
        refuse(tail_bytes > 1024 or length_mask & length_mask + 1, "mask")
        refuse(length_mask and (fixed or not lossless and not tail_bytes), "mask")
        refuse(fixed != bool(key_type.size) or fixed and most != key_type.size, "mask")
        kept = int.from_bytes(section[32 + size :], "big") << 17 | length_mask
        reference = int.from_bytes(section[32 : 32 + size], "big") << 17 | most
        rest = 0 if lossless else 17 + 8 * (size - covered)  # bits that no word covers
        self.reference, self.constant = reference & ~kept, -1 << rest & ~kept
        ones = [place for place, bit in enumerate(bin(kept)[:1:-1]) if bit == "1"]
        self.kept, in_tail = [p for p in ones if p >= rest], [p for p in ones if p < rest]
        # A tail has byte after byte, each from its lowest bit up, and the length behind them.
        self.in_tail = sorted(in_tail, key=lambda place: place < 17 or -((place - 17) // 8))
        refuse(len(self.kept) > word_bits or len(in_tail) > 8 * tail_bytes, "mask")

    def place(self, key):
        length = 1 << 16 if len(key) > self.most else len(key)
        key = key[: self.size].ljust(self.size, b"\0")
        bits = int.from_bytes(key, "big") << 17 | length
        return seek(bits, self.kept, self.constant, self.reference)

    def key(self, word, tail):
        bits = self.reference | spread(word, self.kept) | spread(tail, self.in_tail)
        return (bits >> 17).to_bytes(self.size, "big")[: bits % (1 << 17)]


class Column:
    """Sections 12 to 14: elements of one size, or of any size if that is 0. Rules 35 and 37."""

    def __init__(self, data, column, elements, size, start=0):
        self.data, self.offsets, self.elements = data, column.offset + start, elements
        self.size = 0 if start else number(column.parameters, 0, 4)
        self.offset_bytes, rule = number(column.parameters, 4, 4), "text" if start else "column"
        self.first = column.offset + 128 * ceil(start + (elements + 1) * self.offset_bytes, 128)
        self.most = column.offset + column.length - 64 - self.first
        is_long = self.most >> (32 if start else 31) > 0
        refuse(self.size != size if size is not None else not self.size, rule)
        refuse(self.offset_bytes not in ((0,) if self.size else (4, 8)), rule)
        refuse(any(column.parameters[8:]) or self.offset_bytes == 4 and is_long, rule)
        refuse(self.most < 0 or self.size and self.most != elements * self.size, rule)
        refuse(start and self.offset_bytes == 8 and not is_long, rule)

    def __getitem__(self, i):
        step, size = self.offset_bytes, self.size
        offset = lambda j: number(self.data, self.offsets + j * step, step) if step else j * size
        begin, end = (self.first + min(offset(j), self.most) for j in (i, i + 1))
        return self.data[begin:end]


class Text:
    """Section 14, TEXT: byte keys by page. Rule 37."""

    def __init__(self, data, text, tuples):
        refuse(text.elements != tuples or number(text.parameters, 0, 4) != 16, "text")
        self.pages = Column(data, text, ceil(tuples, 16), 0, start=2304)
        table = data[text.offset : text.offset + 2304]
        self.symbols = [table[at : at + table[at // 8 - 32]] for at in range(256, 2304, 8)]

    def __getitem__(self, rank):  # what a key shares with the head of its page, then its rest
        page, i = self.pages[rank // 16], rank % 16
        head_bytes, base, flags = (number(page, *field) for field in ((0, 2), (2, 2), (4, 1)))
        width = 1 + flags % 2
        at = 51 + 15 * width + head_bytes
        head = page[at - head_bytes : at]
        lengths = [0] + [number(page, 51 + j * width, width) for j in range(i)]
        at += sum(max(length - 1, 0) for length in lengths[:-1])
        codes = page[at : at + max(lengths[i] - 1, 0)]
        text = lambda code: code[1] or self.symbols[code[0][0]]  # code 255 is the escape
        codes = codes if flags & 2 else re.sub(b"(?s)\xff(.)|.", text, codes)
        rest = page[35 + i : 36 + i] + codes if lengths[i] else b""
        return head[: base + number(page, 20 + i, 1)] + rest if i else head
