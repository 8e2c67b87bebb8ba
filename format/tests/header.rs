//! Headers of golden files: what they say, what a forger may not write into them under right sums, and the scalar
//! searches that rest on them.

use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::key::Word;
use pleach_format::line::{self, Line};
use pleach_format::rules::Breach;
use pleach_format::section::{TABLE_BYTES, Tag};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::view::{
    Bytes, CLOSING_BYTES, FILE_BYTES_MIN, HEAD_BYTES, Lines, lower_bound, step_right, through_copies, tuple,
    upper_bound,
};
use pleach_format::{FormatError, Header, KeyType, version};
use pleach_kit::generate::Random;
use pleach_kit::mutate::{entry_at, header, number, put, reseal_head, victim};
use std::path::Path;

/// A golden file of this version.
fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let path = folder.join(format!("v{}.{}/{name}.pleach", version::VERSION_MAJOR, version::VERSION_MINOR));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const NAMES: [&str; 19] = [
    "bytes15_u32",
    "bytes60_u32",
    "bytes_u32",
    "delta16",
    "delta32",
    "delta8",
    "empty",
    "f64_u32_columns",
    "i32_f64",
    "i64_none_packed",
    "one",
    "raw",
    "u128_u64",
    "u32_none",
    "u64_u32",
    "u64_u32_harmonia",
    "u64_u64",
    "utf8_tails_u32",
    "utf8_u32",
];

fn parse(bytes: &[u8]) -> Result<Header, FormatError> {
    Header::parse(&bytes[..bytes.len().min(HEAD_BYTES)], bytes.len() as u64)
}

/// Encoded keys and value bits, read from the lines as spec/FORMAT.md has them.
fn tuples(bytes: &[u8], header: &Header) -> Vec<(u128, u64)> {
    let (key, value) = (header.geometry.key_bytes, header.geometry.value_bytes);
    let n = 64 / (key + value);
    let little = |at: usize, width: usize| {
        (0..width).fold(0u128, |word, byte| word | u128::from(bytes[at + byte]) << (8 * byte))
    };
    let start = header.section(Tag::LINE).expect("lines").offset() as usize;
    (0..header.tuples as usize)
        .map(|rank| {
            let (line, slot) = (start + rank / n * 64, rank % n);
            (
                header.key_of(little(line + slot * key, key)),
                little(line + 64 - (n - slot) * value, value) as u64,
            )
        })
        .collect()
}

#[test]
fn golden_headers_say_what_is_there() {
    for name in NAMES {
        let bytes = golden(name);
        let header = header(&bytes);
        assert_eq!(header.file_bytes, bytes.len() as u64, "{name}");
        let mut at = HEAD_BYTES as u64;
        for section in &header.sections {
            assert_eq!(section.offset(), at, "{name}");
            at = section.end;
            assert_eq!(section.extent(), at - section.offset(), "{name}");
            if section.entry.tag != Tag::SUM2 {
                let extent = &bytes[section.offset() as usize..at as usize];
                assert_eq!(section.entry.sums.get(), extent.chunks(SUM_BLOCK_BYTES).len() as u64, "{name}");
                for (block, part) in extent.chunks(SUM_BLOCK_BYTES).enumerate() {
                    let stored = number(&bytes, section.entry.sums_offset.get() as usize + block * 4, 4);
                    assert_eq!(u64::from(header.bound_sum(section.entry.tag, block as u64, part)), stored);
                }
            }
        }
        assert_eq!(at, header.file_bytes - CLOSING_BYTES as u64, "{name}");
        assert_eq!(header.line_offset(3), header.lines_offset + 192);
        assert_eq!(header.is_unique(), number(&bytes, 100, 4) == 1, "{name}");
        let flagged = number(&bytes, entry_at(&bytes, Tag::SPINE) + 72, 8);
        assert_eq!(header.inexact_lines, flagged, "{name}");

        let tuples = tuples(&bytes, &header);
        let ends = tuples.first().zip(tuples.last()).map(|(first, last)| (first.0, last.0));
        assert_eq!(header.key_range(), ends.filter(|_| !header.key_type.is_bytes()), "{name}");
        let kept = header.key_ends();
        assert_eq!(kept.is_some(), !tuples.is_empty(), "{name}");
        if let Some((min, max)) = kept {
            let [min_len, max_len] = [128, 132].map(|at| (number(&bytes, at, 4) as usize).min(64));
            assert_eq!((min, max), (&bytes[136..][..min_len], &bytes[200..][..max_len]), "{name}");
            assert!(!min.is_empty() && min <= max, "{name}");
        }
    }
}

fn check_searches<W: Word>(bytes: &[u8], header: &Header) {
    let tuples = tuples(bytes, header);
    let lines = Bytes(bytes);
    let mut queries: Vec<u128> =
        tuples.iter().flat_map(|&(key, _)| [key, key.wrapping_add(1), key.wrapping_sub(1)]).collect();
    queries.extend([0, W::MAX.to_u128()]);
    for query in queries {
        let word = W::from_u128(query);
        let (low, high) = (word.to_u128(), word.to_u128());
        let expected = tuples.partition_point(|tuple| tuple.0 < low) as u64;
        assert_eq!(lower_bound(header, &lines, word), Ok(expected), "{word:?}");
        let expected = tuples.partition_point(|tuple| tuple.0 <= high) as u64;
        assert_eq!(upper_bound(header, &lines, word), Ok(expected), "{word:?}");
    }
    for (rank, &(key, value)) in tuples.iter().enumerate() {
        assert_eq!(tuple(header, &lines, rank as u64), Ok(Some((W::from_u128(key), value))), "{rank}");
    }
    assert_eq!(tuple::<W, _>(header, &lines, header.tuples), Ok(None));
    assert_eq!(tuple::<W, _>(header, &lines, u64::MAX), Ok(None));
    match header.geometry.key_bytes {
        4 => check_steps::<u32>(bytes, header),
        8 => check_steps::<u64>(bytes, header),
        _ => check_steps::<u128>(bytes, header),
    }
}

/// From each line on, past as many lines as may be. The words are those of the lines.
fn check_steps<W: Word>(bytes: &[u8], header: &Header) {
    let lines = Bytes(bytes);
    let n = header.geometry.tuples_per_line();
    let last_of = |line: u64| {
        let at = header.line_offset(line) as usize;
        let line: &[u8; 64] = bytes[at..].first_chunk().expect("a line");
        line::key::<W>(line, n - 1).to_u128()
    };
    for from in 0..header.lines {
        for to in (from..header.lines).step_by(7).chain([header.lines - 1]) {
            for query in [last_of(to), last_of(to).wrapping_sub(1), last_of(to).saturating_add(1)] {
                let word = W::from_u128(query);
                let reached = (from..header.lines).find(|&line| last_of(line) >= word.to_u128());
                let expected = reached.unwrap_or(header.lines - 1);
                assert_eq!(step_right(header, &lines, from, word), Ok(expected), "{from} {word:?}");
            }
        }
    }
}

#[test]
fn scalar_searches_find_each_tuple() {
    for name in NAMES {
        let bytes = golden(name);
        let header = header(&bytes);
        // Short words are searched by keys.
        match header.short.map_or(header.geometry.key_bytes, |short| short.key_bytes()) {
            4 => check_searches::<u32>(&bytes, &header),
            8 => check_searches::<u64>(&bytes, &header),
            _ => check_searches::<u128>(&bytes, &header),
        }
    }
}

/// Lines that are not the file's: a search must still ask for none but those that the header has proved.
struct Noise<'a>(&'a Header, Vec<Line>);

impl Lines for Noise<'_> {
    type Error = ();
    fn line(&self, offset: u64) -> Result<&Line, ()> {
        let is_inside = |tag: Tag| {
            let section = self.0.section(tag).expect("a section of this tag");
            (section.offset()..section.offset() + section.entry.length.get()).contains(&offset)
        };
        assert!(is_inside(Tag::LINE) || is_inside(Tag::SPINE), "{offset}");
        assert!(offset.is_multiple_of(64));
        Ok(&self.1[(offset / 64) as usize % self.1.len()])
    }
}

#[test]
fn searches_of_noise_stay_inside() {
    let mut random = Random(5);
    for name in NAMES {
        let bytes = golden(name);
        let header = header(&bytes);
        for _ in 0..200 {
            let noise = (0..17).map(|_| std::array::from_fn(|_| random.next() as u8)).collect();
            let noise = Noise(&header, noise);
            let query = random.next();
            let rank = match header.geometry.key_bytes {
                4 => lower_bound(&header, &noise, query as u32),
                8 => lower_bound(&header, &noise, query),
                _ => lower_bound(&header, &noise, u128::from(query) << 64),
            };
            assert!(rank.expect("no error") <= header.tuples, "{name}");
        }
    }
}

#[test]
fn bytes_end_where_they_end() {
    let bytes = [1u8; 200];
    assert_eq!(Bytes(&bytes).line(136), Ok(&[1; 64]));
    let truncated = |expected| Err(FormatError::Truncated { expected, found: 200 });
    assert_eq!(Bytes(&bytes).line(137), truncated(201));
    assert_eq!(Bytes(&bytes).line(500), truncated(564));
    assert_eq!(Bytes(&bytes).line(u64::MAX), truncated(u64::MAX));
}

/// Outcome for a file with replaced numbers in its header and correct sums.
fn forge(bytes: &[u8], fields: &[(usize, usize, u64)]) -> Result<Header, FormatError> {
    let mut bytes = bytes.to_vec();
    for &(at, width, number) in fields {
        put(&mut bytes, at, width, number);
    }
    reseal_head(&mut bytes);
    parse(&bytes)
}

/// That it is refused as it must be: structure, byte, a part of the rule, number.
#[track_caller]
fn refused(outcome: Result<Header, FormatError>, place: (&str, usize), part: &str, number: u64) {
    match outcome.map(drop).expect_err("a forged file") {
        FormatError::Corrupt { what, offset, rule: Breach { text: rule, .. }, found } => {
            assert!(rule.contains(part), "{what} {offset}: {rule}");
            assert_eq!((what, offset, found), (place.0, place.1 as u64, number), "{rule}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn forged_superblocks_are_refused() {
    let bytes = victim().1;
    let length = bytes.len() as u64;
    let one = |at, width, number| forge(&bytes, &[(at, width, number)]);
    let differs = |expected| (expected, length);
    match (one(72, 8, length + 4096), one(72, 8, length - 4096)) {
        (
            Err(FormatError::Truncated { expected: more, found }),
            Err(FormatError::Extended { expected: less, found: also }),
        ) => assert_eq!([(more, found), (less, also)], [differs(length + 4096), differs(length - 4096)]),
        other => panic!("{other:?}"),
    }
    let mut odd = bytes.clone();
    odd.push(0);
    refused(forge(&odd, &[(72, 8, length + 1)]), ("superblock", 72), "whole 4 KiB pages", length + 1);
    let mut small = golden("empty");
    assert_eq!(small.len() as u64, FILE_BYTES_MIN);
    small.truncate(12_288);
    refused(forge(&small, &[(72, 8, 12_288)]), ("superblock", 72), "four at least", 12_288);
    let (key, value) = (number(&bytes, 88, 2), number(&bytes, 90, 2));
    refused(one(88, 2, 99), ("superblock", 88), "key type", 99);
    refused(one(92, 4, 5), ("superblock", 88), "key type", key);
    refused(one(90, 2, 99), ("superblock", 90), "value type", 99);
    refused(one(96, 4, 5), ("superblock", 90), "value type", value);
    refused(one(100, 4, 2), ("superblock", 100), "unique", 2);
    assert!(one(100, 4, 0).is_ok_and(|header| !header.is_unique()));
    refused(one(104, 8, 8192), ("superblock", 104), "second 4 KiB", 8192);
    refused(one(112, 8, 4095), ("superblock", 104), "second 4 KiB", 4096);
    refused(one(120, 4, 32), ("superblock", 120), "at most 31", 32);
    let count = number(&bytes, 120, 4);
    // The next entry is all zeros: no section starts there.
    let empty = 4096 + 128 * count as usize;
    assert!(one(120, 4, 31).is_err_and(|error| !error.to_string().contains("at most 31")));
    assert!(one(120, 4, count + 1).is_err(), "an entry at {empty}");
    for tuples in [0, 1, 1001, 1003, u64::MAX] {
        let line = entry_at(&bytes, Tag::LINE);
        let length = number(&bytes, line + 16, 8);
        refused(one(80, 8, tuples), ("LINE", line), "length must be that of its tuples", length);
    }

    let mut table = bytes.clone();
    table[4200] ^= 1;
    assert!(matches!(
        parse(&table),
        Err(FormatError::Checksum { what: "section table", offset: 4096, expected, found }) if expected != found
    ));
    let short = Header::parse(&bytes[..5000], length).expect_err("no table");
    assert_eq!(short, FormatError::Truncated { expected: 8192, found: 5000 });
}

#[test]
fn forged_tables_are_refused() {
    let bytes = victim().1;
    let closing = (bytes.len() - CLOSING_BYTES) as u64;
    let count = number(&bytes, 120, 4);
    let one = |at, width, number| forge(&bytes, &[(at, width, number)]);
    let [meta, line, sums, sum2] =
        [Tag::META, Tag::LINE, Tag::SUMS, Tag::SUM2].map(|tag| entry_at(&bytes, tag));
    assert_eq!((meta, sum2), (4096, 4096 + 128 * (count as usize - 1)), "first and last");
    let of = |at| number(&bytes, at, 8);

    refused(one(meta + 8, 8, 12_288), ("META", meta + 8), "start at 8192", 12_288);
    refused(one(line + 8, 8, of(line + 8) + 1), ("LINE", line + 8), "start on 4096", of(line + 8) + 1);
    let follow = "follow each other inside";
    refused(one(line + 8, 8, 4096), ("META", meta + 8), follow, 8192);
    refused(one(line + 8, 8, closing + 4096), ("META", meta + 8), follow, 8192);
    let before = "end before the next";
    refused(one(sum2 + 8, 8, closing), ("SUM2", sum2 + 16), before, of(sum2 + 16));
    refused(one(line + 8, 8, 8192), ("META", meta + 16), before, of(meta + 16));
    let extent = of(line + 8) - 8192;
    assert!(one(meta + 16, 8, extent).is_ok(), "all of its extent");
    refused(one(meta + 16, 8, extent + 1), ("META", meta + 16), before, extent + 1);
    refused(one(meta + 16, 8, u64::MAX), ("META", meta + 16), before, u64::MAX);

    let unknown = u64::from(u32::from_le_bytes(*b"NEWS"));
    for flags in [2, 3, 1 << 31] {
        refused(one(meta + 4, 4, flags), ("META", meta + 4), "unknown flags", flags);
    }
    let new = |flags| forge(&bytes, &[(meta, 4, unknown), (meta + 4, 4, flags)]);
    assert!(new(0).is_ok(), "what may be ignored");
    assert_eq!(new(1).expect_err("a feature"), FormatError::Section { tag: Tag(*b"NEWS") });
    assert!(one(meta + 4, 4, 1).is_ok(), "a known section may be required");
    refused(one(meta, 4, number(&bytes, line, 4)), ("LINE", line), "occur once", 1);
    refused(one(line + 52, 4, 7), ("LINE", line + 52), "reserved", 7);
    refused(one(line + 120, 4, 7), ("LINE", line + 120), "reserved", 7);
    refused(one(line + 127, 1, 7), ("LINE", line + 120), "reserved", 7 << 56);
    for (at, part) in [(sums, "a SUMS section"), (sum2, "a SUM2 section")] {
        let outcome = forge(&bytes, &[(at, 4, unknown), (at + 4, 4, 0)]);
        refused(outcome, ("section table", 4096), part, count);
    }

    refused(one(sum2 + 32, 8, 8192), ("SUM2", sum2 + 32), "no list", 0);
    refused(one(sum2 + 40, 8, 1), ("SUM2", sum2 + 32), "no list", 1);
    for (at, name, home) in [(meta, "META", sums), (line, "LINE", sums), (sums, "SUMS", sum2)] {
        let blocks = of(at + 40);
        for wrong in [blocks - 1, blocks + 1, 1 << 62, u64::MAX] {
            refused(one(at + 40, 8, wrong), (name, at + 40), "a sum for each 8 KiB", wrong);
        }
        let (first, end) = (of(home + 8), of(home + 8) + of(home + 16));
        for place in [first, end - blocks * 4] {
            assert!(one(at + 32, 8, place).is_ok(), "{name}: a list may stand there");
        }
        for place in [0, first - 4, first + 1, first + 2, end - blocks * 4 + 4, end, u64::MAX - 3] {
            refused(one(at + 32, 8, place), (name, at + 32), "lie in the SUMS or SUM2", place);
        }
    }
}

#[test]
fn forged_lines_and_spines_are_refused() {
    let bytes = victim().1;
    let count = number(&bytes, 120, 4);
    let one = |at, width, number| forge(&bytes, &[(at, width, number)]);
    let [line, spine] = [Tag::LINE, Tag::SPINE].map(|tag| entry_at(&bytes, tag));
    let of = |at, width| number(&bytes, at, width);
    let news = u64::from(u32::from_le_bytes(*b"NEWS"));
    let without = |at| forge(&bytes, &[(at, 4, news), (at + 4, 4, 0)]);
    refused(without(line), ("section table", 4096), "a LINE section", count);
    // A file without a spine is one of a single group of lines.
    let there = without(spine).expect("a spine is not needed");
    assert!(there.spine.levels.is_empty() && there.spine.child_lines >= there.lines);
    for width in [0, 1, 5, 16] {
        refused(one(line + 60, 4, width), ("LINE", line), "words must be", width);
    }
    // Short words, of runs that no keys have.
    let runs_at = line + 56 + 32;
    for (runs, bits) in [(0, 0), (0x2100, 33), (0x0800_0800, 16), (0x3000, 48), (0x1039, 16)] {
        let forged = forge(&bytes, &[(line + 60, 4, 4), (runs_at, 8, runs)]);
        refused(forged, ("LINE", line), "runs must ascend", bits);
    }
    let length = of(line + 16, 8);
    for wrong in [length - 64, length + 64, 0] {
        refused(one(line + 16, 8, wrong), ("LINE", line), "that of its tuples", wrong);
    }
    for wrong in [of(line + 24, 8) - 1, of(line + 24, 8) + 1, 0] {
        refused(one(line + 24, 8, wrong), ("LINE", line), "that of its tuples", length);
    }
    for at in [56, 64, 72, 76, 80, 84, 92, 119] {
        let found = of(line + 68, 4);
        refused(one(line + at, 1, 9), ("LINE", line), "parameters must be those of its types", found);
    }
    refused(one(line + 68, 4, 5), ("LINE", line), "parameters must be those of its types", 5);

    refused(one(spine + 64, 4, 25), ("SPIN", spine), "at most 24", 25);
    refused(one(spine + 64, 4, 24), ("SPIN", spine), "end in one line", 24);
    for levels in [0, 1, 3] {
        refused(one(spine + 64, 4, levels), ("SPIN", spine), "end in one line", levels);
    }
    refused(one(spine + 81, 1, 9), ("SPIN", spine), "encodings must be known", 9);
    let length = of(spine + 16, 8);
    for wrong in [length - 64, length + 64] {
        refused(one(spine + 16, 8, wrong), ("SPIN", spine), "that of its levels", wrong);
    }
    let elements = of(spine + 24, 8);
    refused(one(spine + 24, 8, elements + 1), ("SPIN", spine), "parameters must be", elements + 1);
    // Groups of lines: of a size that there is not, or of which these levels are not the spine.
    for child_lines in [0, 3, 256, 1 << 31, 16, 128] {
        refused(one(spine + 68, 4, child_lines), ("SPIN", spine), "a power of two", 2);
    }
    for at in [56, 60, 82, 103, 104, 119] {
        refused(one(spine + at, 1, 9), ("SPIN", spine), "parameters must be those of its levels", elements);
    }
    // The number of flagged lines cannot be seen here.
    let inexact = |lines| one(spine + 72, 8, lines).map(|header| header.inexact_lines);
    assert_eq!([inexact(0), inexact(5)], [Ok(0), Ok(5)]);
}

#[test]
fn forged_other_sections_are_refused() {
    let cases = [
        ("f64_u32_columns", Tag::KEYS, "its elements"),
        ("f64_u32_columns", Tag::VALUES, "its elements"),
        ("utf8_tails_u32", Tag::TAIL, "its elements"),
        ("i64_none_packed", Tag::PACK, "its keys"),
        ("u64_u32_harmonia", Tag::HARMONIA, "its tree"),
        ("u64_u32", Tag::GRID, "its units"),
    ];
    for (name, tag, part) in cases {
        let bytes = golden(name);
        let at = entry_at(&bytes, tag);
        let length = number(&bytes, at + 16, 8);
        let place = (tag.name(), at);
        let elements = number(&bytes, at + 24, 8);
        // A unit more or less may take the same bytes.
        let near = if tag == Tag::GRID { [0, 0] } else { [elements - 1, elements + 1] };
        for wrong in near.into_iter().chain([u64::MAX]) {
            refused(forge(&bytes, &[(at + 24, 8, wrong)]), place, part, length);
        }
        for field in [56, 60, 64, 68, 72, 76, 80, 84, 116] {
            if tag == Tag::GRID && (60..96).contains(&field) && field != 68 {
                // Steps and the first segment: slightly different ones may have the same shape.
                continue;
            }
            let wrong = number(&bytes, at + field, 4) + 3;
            // A few children more may give the same tree.
            let wrong = if (tag, field) == (Tag::HARMONIA, 72) { 1 } else { wrong };
            refused(forge(&bytes, &[(at + field, 4, wrong)]), place, part, length);
        }
        // The data of these two may have any length.
        if !matches!(tag, Tag::TAIL | Tag::PACK) {
            refused(forge(&bytes, &[(at + 16, 8, length - 1)]), place, part, length - 1);
        }
    }
    // A column of the right number of bytes, but of elements of another size; and one that is too long by
    // one element.
    let bytes = golden("f64_u32_columns");
    let at = entry_at(&bytes, Tag::KEYS);
    let length = number(&bytes, at + 16, 8);
    let tuples = number(&bytes, at + 24, 8);
    let halves = forge(&bytes, &[(at + 24, 8, tuples * 2), (at + 60, 4, 4)]);
    refused(halves, ("KEYS", at), "its elements", length);
    let narrow = forge(&bytes, &[(at + 60, 4, 4), (at + 16, 8, tuples * 4 + 64)]);
    refused(narrow, ("KEYS", at), "its elements", tuples * 4 + 64);
    let fewer = forge(&bytes, &[(at + 24, 8, tuples - 1), (at + 16, 8, length - 8)]);
    refused(fewer, ("KEYS", at), "its elements", length - 8);
}

#[test]
fn values_of_bytes_want_a_column_and_byte_keys_a_mask() {
    let bytes = golden("u32_none");
    let count = number(&bytes, 120, 4);
    refused(forge(&bytes, &[(90, 2, 8), (96, 4, 0)]), ("section table", 4096), "a VALS section", count);
    let bytes = golden("utf8_u32");
    let count = number(&bytes, 120, 4);
    let mask = entry_at(&bytes, Tag::MASK);
    let news = u64::from(u32::from_le_bytes(*b"NEWS"));
    let without = forge(&bytes, &[(mask, 4, news), (mask + 4, 4, 0)]);
    refused(without, ("section table", 4096), "a MASK section", count);
    // Words of byte keys may be of other sizes than keys of numbers; these lines would be.
    let header = header(&bytes);
    assert!(header.key_type == KeyType::Utf8 && header.mask.is_some() && header.key_range().is_none());
    let line = entry_at(&bytes, Tag::LINE);
    refused(forge(&bytes, &[(line + 60, 4, 12)]), ("LINE", line), "words must be", 12);
    let bytes = golden("u64_u64");
    let count = number(&bytes, 120, 4);
    let meta = entry_at(&bytes, Tag::META);
    let tag = u64::from(u32::from_le_bytes(Tag::MASK.0));
    refused(forge(&bytes, &[(meta, 4, tag)]), ("section table", 4096), "a MASK section", count);
}

#[test]
fn copies_stand_in() {
    let bytes = victim().1;
    let (head, closing) = (&bytes[..HEAD_BYTES], &bytes[bytes.len() - CLOSING_BYTES..]);
    let length = bytes.len() as u64;
    let (superblock, table) = (100, SUPERBLOCK_BYTES + 100);
    for damage in [vec![superblock], vec![table], vec![superblock, table]] {
        let mut head = head.to_vec();
        damage.iter().for_each(|&at| head[at] ^= 4);
        assert!(Header::parse(&head, length).is_err());
        let (repaired, header) = through_copies(&head, closing, length).expect("the copies are whole");
        assert_eq!(repaired, &bytes[..HEAD_BYTES], "{damage:?}");
        assert_eq!((header.tuples, header.file_bytes), (1002, length));
        assert_eq!(through_copies(&head[..HEAD_BYTES - 1], closing, length).map(|it| it.0), None);
        assert_eq!(through_copies(&head, &closing[1..], length).map(|it| it.0), None);
        // The copy of what is damaged is damaged, too.
        let mut lost = closing.to_vec();
        damage.iter().for_each(|&at| lost[(at + TABLE_BYTES) % CLOSING_BYTES] ^= 4);
        assert_eq!(through_copies(&head, &lost, length).map(|it| it.0), None, "{damage:?}");
    }
}

#[test]
fn damage_is_told_from_what_is_not_ours() {
    let bytes = victim().1;
    let damage = |change: fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        parse(&bytes).expect_err("a changed file").is_damage()
    };
    assert!(!damage(|bytes| bytes[3] ^= 1));
    assert!(!damage(|bytes| {
        put(bytes, 16, 2, 999);
        reseal_head(bytes);
    }));
    assert!(!damage(|bytes| {
        put(bytes, 24, 8, 4);
        reseal_head(bytes);
    }));
    assert!(damage(|bytes| bytes[80] ^= 1));
    assert!(damage(|bytes| bytes.truncate(8192)));
    assert!(damage(|bytes| bytes.push(0)));
    assert!(damage(|bytes| {
        put(bytes, 100, 4, 2);
        reseal_head(bytes);
    }));
}
