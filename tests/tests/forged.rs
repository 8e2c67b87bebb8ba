//! Forged headers under right sums: refused, found or harmless, at the price of a look.
//! No sum keeps a forged field from the parser: `mutate` makes all sums right. Opening must not trust a
//! number: it takes no more memory than the file has bytes (1 MiB at most here), and no time.

use pleach::{FormatError, FsckOptions, Header, Index, KeyType, Report, Verdict, Verify, fsck};
use pleach_builder::{BuildOptions, build_strings_bytes};
use pleach_format::section::{ENTRY_BYTES, Tag};
use pleach_format::version::APPROXIMATE;
use pleach_format::view::HEAD_BYTES;
use pleach_tests::generate::{Random, mix};
use pleach_tests::mutate::{contents, entry_at, header, number, put, reseal, reseal_head, victim};
use pleach_tests::naive::assemble;
use pleach_tests::roam::{roam, roam_all, save};
use pleach_tests::whole::wholes;
use pleach_tests::{figure, is_long};
use rayon::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Counts the memory that a thread holds.
struct Counting;

thread_local! {
    /// Bytes held since [`peak_of`] began, and the most there were.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends has no counter any more.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: memory is the system's; only sizes are counted, in a cell that allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.cast_signed() - layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that this thread held at once while it did something.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set((0, 0));
    let done = work();
    (done, HELD.get().1.cast_unsigned())
}

/// Runs work, and what it does in parallel, on one thread of its own.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread").install(work)
}

fn check_file(path: &Path) -> Report {
    fsck(path, &FsckOptions::default()).expect("readable")
}

/// Returns the findings of `fsck` for these bytes.
fn check_bytes(bytes: &[u8]) -> Report {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").or_else(|_| tempfile::NamedTempFile::new());
    let file = file.expect("a file");
    fs::write(file.path(), bytes).expect("written");
    check_file(file.path())
}

/// Required outcome for a file whose header has another number in a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// `Header::parse` refuses it.
    Refused,
    /// It opens; `fsck` finds the damage.
    Found,
    /// The field may hold anything.
    Free,
}

/// Fields of the superblock: name, byte, width.
const SUPERBLOCK_FIELDS: &[(&str, usize, usize, Fate)] = &[
    ("magic", 0, 8, Fate::Refused),
    ("magic, second half", 8, 8, Fate::Refused),
    ("version_major", 16, 2, Fate::Refused),
    ("version_minor", 18, 2, Fate::Free),
    ("reserved_mark", 20, 4, Fate::Found),
    ("reader_features", 24, 8, Fate::Refused),
    ("writer_features", 32, 8, Fate::Free),
    ("ignorable_features", 40, 8, Fate::Free),
    ("file_id", 48, 8, Fate::Found),
    ("file_id, second half", 56, 8, Fate::Found),
    ("generation", 64, 8, Fate::Free),
    ("file_bytes", 72, 8, Fate::Refused),
    ("tuples", 80, 8, Fate::Refused),
    ("key_type", 88, 2, Fate::Refused),
    ("value_type", 90, 2, Fate::Refused),
    ("key_bytes", 92, 4, Fate::Refused),
    ("value_bytes", 96, 4, Fate::Refused),
    ("table_offset", 104, 8, Fate::Refused),
    ("table_bytes", 112, 8, Fate::Refused),
    ("sections", 120, 4, Fate::Refused),
    ("min_key_len", 128, 4, Fate::Found),
    ("max_key_len", 132, 4, Fate::Found),
    ("min_key", 136, 8, Fate::Found),
    ("min_key, rest", 192, 8, Fate::Found),
    ("max_key", 200, 8, Fate::Found),
    ("lineage of a first generation", 296, 8, Fate::Found),
    ("reserved", 312, 8, Fate::Found),
    ("reserved, last", 4084, 8, Fate::Found),
];

/// Numbers that a forger would try.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    255,
    4095,
    4096,
    8192,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

/// Puts a number into a field, with right sums, and sees what happens.
fn forge(whole: &[u8], what: &str, at: usize, width: usize, value: u64, fate: Fate) {
    let mut bytes = whole.to_vec();
    put(&mut bytes, at, width, value);
    if bytes == whole {
        return;
    }
    reseal_head(&mut bytes);
    let start = Instant::now();
    let parsed = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64);
    assert!(start.elapsed() < Duration::from_secs(1), "{what} = {value}: slow");
    let opened = Index::from_bytes(bytes.clone());
    // Opening also compares the mark of approximate keys with META.
    let is_refused = parsed.is_err() || (what, value) == ("reader_features", APPROXIMATE);
    assert_eq!(opened.is_err(), is_refused, "{what} = {value}");
    let report = check_bytes(&bytes);
    match fate {
        Fate::Refused => {
            let error = parsed.expect_err(&format!("{what} = {value} was accepted"));
            assert!(!error.to_string().contains('\n'), "{error}");
            assert_ne!(report.verdict, Verdict::Clean, "{what} = {value}");
        }
        Fate::Found => {
            assert_eq!(report.verdict, Verdict::Damaged, "{what} = {value}");
            // A file that opens is searched without harm.
            if let Ok(index) = opened {
                roam::<u64, u64>(&index, &[0, 1, u64::MAX, mix(3)], &mut Random(1));
            }
        }
        Fate::Free => assert_eq!(report.findings, [], "{what} = {value}"),
    }
}

#[test]
fn forged_superblocks_are_refused() {
    let (_, whole) = victim();
    let mut failed = Vec::new();
    for &(name, at, width, fate) in SUPERBLOCK_FIELDS {
        let fate_of = |value| match (name, value) {
            // A feature that this version knows, but not without what META says of it.
            ("reader_features", APPROXIMATE) => Fate::Found,
            _ => fate,
        };
        let attempt =
            || NUMBERS.iter().for_each(|&value| forge(&whole, name, at, width, value, fate_of(value)));
        if std::panic::catch_unwind(attempt).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    for (value, fate) in [(0, Fate::Found), (2, Fate::Refused), (u64::MAX, Fate::Refused)] {
        forge(&whole, "unique", 100, 4, value, fate);
    }
    // Types of the same sizes: nothing but the file id can tell.
    for (at, value) in [(88, 4), (90, 4), (90, 6)] {
        let mut bytes = whole.clone();
        put(&mut bytes, at, 2, value);
        reseal_head(&mut bytes);
        let report = check_bytes(&bytes);
        let is_named = report.findings.iter().any(|finding| finding.code.name() == "file-id");
        assert!(report.verdict == Verdict::Damaged && is_named, "{:?}", report.findings);
    }
}

#[test]
fn forged_section_tables_are_refused() {
    let (_, whole) = victim();
    let mut failed = Vec::new();
    for tag in [Tag::META, Tag::LINE, Tag::SPINE, Tag::SUMS, Tag::SUM2] {
        let entry = entry_at(&whole, tag);
        let spine = tag == Tag::SPINE;
        let known = tag == Tag::LINE || spine;
        let refused_if = |condition| if condition { Fate::Refused } else { Fate::Found };
        let mut fields = vec![
            ("offset", 8, 8, Fate::Refused),
            ("sums_offset", 32, 8, Fate::Refused),
            ("sums", 40, 8, Fate::Refused),
            ("sums_crc", 48, 4, Fate::Found),
            ("reserved", 52, 4, Fate::Refused),
            ("elements", 24, 8, refused_if(known)),
            ("reserved2", 120, 8, Fate::Refused),
        ];
        let kind = tag.kind().expect("a kind");
        // Places of parameters, all of them; LINE and SPIN have fields of 4 bytes, and an encoding may be
        // exchanged for another one.
        let places: &[(usize, usize)] = match kind.name {
            "LINE" => {
                &[(0, 4), (4, 4), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8)]
            }
            "SPIN" => &[(0, 4), (4, 4), (8, 4), (12, 4), (32, 8), (40, 8), (48, 8), (56, 8)],
            _ => &[(0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8)],
        };
        assert_eq!(kind.parameters.is_empty(), !known);
        fields.extend(places.iter().map(|&(at, width)| ("parameters", 56 + at, width, refused_if(known))));
        if spine {
            fields.push(("inexact_lines", 56 + 16, 8, Fate::Found));
        }
        if known {
            fields.push(("length", 16, 8, Fate::Refused));
        }
        for (name, at, width, fate) in fields {
            let what = format!("{tag} {name}");
            let attempt =
                || NUMBERS.iter().for_each(|&value| forge(&whole, &what, entry + at, width, value, fate));
            if std::panic::catch_unwind(attempt).is_err() {
                failed.push(what);
            }
        }
        for value in [4097, 1 << 20, 1 << 32, 1 << 63, u64::MAX - 127, u64::MAX] {
            forge(&whole, &format!("{tag} length"), entry + 16, 8, value, Fate::Refused);
        }
        for value in [2, 3, 0x8000_0001, u64::MAX] {
            forge(&whole, &format!("{tag} flags"), entry + 4, 4, value, Fate::Refused);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    let encodings = entry_at(&whole, Tag::SPINE) + 56 + 24;
    for code in 1..=255 {
        // Both levels are of 16-bit codes: another encoding has another length.
        forge(&whole, "encoding", encodings, 1, if code == 1 { 0 } else { code }, Fate::Refused);
    }
    // A root of nine full separators would fill one line too: nothing but the file id can tell.
    forge(&whole, "encoding of the root", encodings + 1, 1, 0, Fate::Found);
    for levels in [0, 1, 3, 24, 25, 255, 1 << 31] {
        forge(&whole, "levels", entry_at(&whole, Tag::SPINE) + 56 + 8, 4, levels, Fate::Refused);
    }
}

/// Refused for its table, whatever the sums say.
fn assert_refused(mut bytes: Vec<u8>, what: &str) -> FormatError {
    reseal_head(&mut bytes);
    let error = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).err();
    let error = error.unwrap_or_else(|| panic!("{what}: accepted"));
    assert!(Index::from_bytes(bytes.clone()).is_err(), "{what}");
    assert_ne!(check_bytes(&bytes).verdict, Verdict::Clean, "{what}");
    error
}

#[test]
fn forged_places_of_sections_are_refused() {
    let (_, whole) = victim();
    let at = |tag| entry_at(&whole, tag);
    let (meta, line, spine, sums) = (at(Tag::META), at(Tag::LINE), at(Tag::SPINE), at(Tag::SUMS));
    let offset = |entry: usize| number(&whole, entry + 8, 8);
    let with = |changes: &[(usize, u64)]| {
        let mut bytes = whole.clone();
        for &(at, value) in changes {
            put(&mut bytes, at, 8, value);
        }
        bytes
    };
    let end = whole.len() as u64;
    for (what, changes) in [
        ("two sections at one place", vec![(spine + 8, offset(line))]),
        ("overlap", vec![(spine + 8, offset(line) + 4096)]),
        ("out of order", vec![(line + 8, offset(spine)), (spine + 8, offset(line))]),
        ("unaligned", vec![(spine + 8, offset(spine) + 64)]),
        ("over the closing superblock", vec![(at(Tag::SUM2) + 8, end - 4096)]),
        ("past the end", vec![(at(Tag::SUM2) + 8, end)]),
        ("far past the end", vec![(at(Tag::SUM2) + 8, 1 << 62)]),
        ("wrapping", vec![(line + 8, u64::MAX - 4095), (line + 16, 8192)]),
        ("in the section table", vec![(meta + 8, 4096)]),
        ("at the start", vec![(meta + 8, 0)]),
        ("a hole at 8192", vec![(meta + 8, 12288)]),
        ("sums in the tuple lines", vec![(line + 32, offset(line))]),
        ("sums of the spine in SUM2", vec![(spine + 32, offset(at(Tag::SUM2)))]),
        ("sums of SUMS in SUMS", vec![(sums + 32, offset(sums))]),
        ("sums unaligned", vec![(line + 32, number(&whole, line + 32, 8) + 2)]),
        ("sums past their section", vec![(line + 32, number(&whole, at(Tag::SUM2) + 8, 8) - 8)]),
        ("sums wrapping", vec![(line + 32, u64::MAX - 3)]),
    ] {
        let error = assert_refused(with(&changes), what);
        assert!(matches!(error, FormatError::Corrupt { .. }), "{what}: {error:?}");
    }
    // The same section twice, and none of a kind.
    for (from, to) in [(line, spine), (spine, line), (line, sums), (meta, line)] {
        let mut bytes = whole.clone();
        bytes.copy_within(from..from + 4, to);
        assert_refused(bytes, "a section twice");
    }
    for count in 0..5u64 {
        let mut bytes = whole.clone();
        put(&mut bytes, 120, 4, count);
        assert_refused(bytes, "fewer sections");
    }
    let mut bytes = whole.clone();
    bytes[spine..spine + 4].copy_from_slice(b"NEWS");
    bytes[spine + 4] = 1;
    assert!(matches!(assert_refused(bytes, "unknown required section"), FormatError::Section { .. }));
}

/// Data that a reader allocates as a whole, or reads before any check, has a size that a forger cannot choose.
#[test]
fn forged_lengths_of_small_sections_are_refused() {
    let rule = |error: FormatError| match error {
        FormatError::Corrupt { rule, .. } => rule.text,
        other => panic!("{other:?}"),
    };
    let texts: Vec<(Vec<u8>, u64)> = (0..3000).map(|i| (format!("{:020}", i * 7).into_bytes(), i)).collect();
    let whole = build_strings_bytes(KeyType::Utf8, &texts, &BuildOptions::default()).expect("builds");
    // Content that is longer than it may be, all else as it must be then.
    for (tag, most) in [(Tag::META, 1usize << 20), (Tag::MASK, 131_102)] {
        for (length, is_refused) in [(most, false), (most + 1, true), (5 << 20, true)] {
            let mut all = contents(&whole);
            let place = all.iter().position(|content| content.0 == tag).expect("a section of this tag");
            all[place].2.resize(length, 0);
            let bytes = assemble(header(&whole).superblock, all);
            match Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64) {
                Ok(_) => assert!(!is_refused, "{tag}: {length}"),
                Err(error) => {
                    assert!(is_refused && rule(error).starts_with("META has at most"), "{tag}: {length}")
                }
            }
        }
    }
    // An empty list whose sum is requested all the same: it would be read when the file is opened.
    for tag in [Tag::META, Tag::MASK, Tag::LINE, Tag::SUMS, Tag::SUM2] {
        let section = *header(&whole).section(tag).expect("a section of this tag");
        let hole = 2usize << 20;
        let mut bytes = whole.clone();
        bytes.splice(section.end as usize..section.end as usize, vec![0; hole]);
        let length = bytes.len() as u64;
        put(&mut bytes, 72, 8, length);
        for later in header(&whole).sections.iter().skip_while(|it| it.entry.tag != tag).skip(1) {
            put(&mut bytes, entry_at(&whole, later.entry.tag) + 8, 8, later.offset() + hole as u64);
        }
        let error = assert_refused(bytes, "a hole");
        assert!(rule(error).starts_with("less than 2 MiB"), "{tag}");
    }
    let mut bytes = whole.clone();
    let at = entry_at(&whole, Tag::SUM2) + 16;
    let length = number(&whole, at, 8);
    put(&mut bytes, at, 8, length + 4);
    assert!(rule(assert_refused(bytes, "a longer SUM2")).starts_with("SUM2 must hold"));
}

/// Costs of a file: bytes of memory to open it, and to search and to check it; the least time of some openings.
#[derive(Clone, Copy, Default)]
struct Costs {
    open: usize,
    all: usize,
    time: Duration,
}

impl Costs {
    fn max(self, other: Self) -> Self {
        Self {
            open: self.open.max(other.open),
            all: self.all.max(other.all),
            time: self.time.max(other.time),
        }
    }
}

/// Opens a forged file from disk, as programs do, searches and checks it; all on this thread, whose memory
/// is counted.
fn open_forged(bytes: &[u8], path: &Path, what: &str, random: &mut Random) -> Costs {
    fs::write(path, bytes).expect("written");
    let mut least = Duration::MAX;
    let mut most = 0;
    // A shared machine may stop us at any moment: what it does not repeat is not ours.
    for _ in 0..5 {
        let start = Instant::now();
        let (opened, peak) = peak_of(|| Index::open(path));
        least = least.min(start.elapsed());
        most = most.max(peak);
        if let Ok(index) = &opened {
            assert_eq!(index.len(), header(bytes).tuples, "{what}");
        }
        if least < Duration::from_millis(10) {
            break;
        }
    }
    assert!(most <= 1 << 20, "{what}: {most} bytes of memory");
    assert!(least < Duration::from_millis(if is_long() { 10 } else { 1000 }), "{what}: {least:?}");
    // Look-ups and checks: their buffers, whatever a count says.
    let ((), peak) = peak_of(|| {
        if let Ok(index) = Index::open(path) {
            roam_all(&index, random);
        }
        let report = check_file(path);
        let full = Index::options().verify(Verify::Full).open(path);
        assert_eq!(full.is_ok(), report.verdict == Verdict::Clean, "{what}: {:?}", report.findings);
    });
    assert!(peak <= 2 * bytes.len() + (12 << 20), "{what}: {peak} bytes of memory");
    if random.below(8) == 0 {
        save(path);
    }
    Costs { open: most, all: peak, time: least }
}

/// The mask of the longest keys is what takes most to open: all of their bytes in the word, and none.
#[test]
fn the_longest_keys_are_opened_in_a_mebibyte() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    let key = |first: u8, last: u8| {
        let mut key = vec![b'k'; usize::from(u16::MAX)];
        (key[0], key[65_534]) = (first, last);
        key
    };
    for keys in
        [vec![key(1, 1), key(1, 2)], vec![key(1, 1), key(2, 1)], (0..200).map(|i| key(i, !i)).collect()]
    {
        let tuples: Vec<(Vec<u8>, u32)> = keys.into_iter().zip(0..).collect();
        let bytes = build_strings_bytes(KeyType::Fixed(u16::MAX), &tuples, &BuildOptions::default());
        let bytes = bytes.expect("builds");
        let most = alone(|| open_forged(&bytes, &path, "keys of 65,535 bytes", &mut Random(3))).open;
        assert!(most < 1 << 20, "{most}");
        // Neither word nor tail covers anything but the last byte.
        let mask = entry_at(&bytes, Tag::MASK);
        assert!(number(&bytes, mask + 16, 8) > 2 * 65_535);
    }
}

/// Every word of the header's fields, of each section's entry and of the first bytes of each section, at the worst
/// numbers, alone and together with another field.
#[test]
fn forged_fields_of_every_kind_of_file_cost_nothing() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let one = |number: usize, whole: &Vec<u8>| {
        let mut random = Random(mix(number as u64));
        let path = folder.path().join(format!("{number}.pleach"));
        let header = header(whole);
        let mut fields: Vec<usize> = (16..304).step_by(4).collect();
        let table = HEAD_BYTES - 4096;
        fields.extend((table..table + header.sections.len() * ENTRY_BYTES).step_by(4));
        for section in &header.sections {
            let start = section.offset() as usize;
            fields.extend((start..(start + 256).min(section.end as usize)).step_by(4));
        }
        let (mut forged, mut costs) = (0u64, Costs::default());
        for (place, &at) in fields.iter().enumerate() {
            for (which, &value) in NUMBERS.iter().enumerate() {
                if !is_long() && (place + which) % 29 != 0 {
                    continue;
                }
                for width in [4, 8] {
                    let mut bytes = whole.clone();
                    put(&mut bytes, at, width, value);
                    if random.below(4) == 0 {
                        let other = fields[random.below(fields.len() as u64) as usize];
                        put(&mut bytes, other, 4, NUMBERS[random.below(14) as usize]);
                    }
                    if bytes == *whole {
                        continue;
                    }
                    reseal_head(&mut bytes);
                    if Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).is_ok() {
                        reseal(&mut bytes);
                    }
                    let what = format!("file {number}, {value} in {width} bytes at {at}");
                    costs = costs.max(open_forged(&bytes, &path, &what, &mut random));
                    forged += 1;
                }
            }
        }
        (forged, costs)
    };
    let outcomes: Vec<(u64, Costs)> =
        wholes().par_iter().enumerate().map(|(number, whole)| alone(|| one(number, whole))).collect();
    let forged: u64 = outcomes.iter().map(|outcome| outcome.0).sum();
    let costs = outcomes.into_iter().map(|outcome| outcome.1).fold(Costs::default(), Costs::max);
    assert!(forged > 500, "{forged}");
    figure(
        5,
        &format!(
            "{forged} forged files of all types and sections: opening took at most {} KiB of memory and {:.1} ms, \
             searching and checking {} KiB",
            costs.open >> 10,
            costs.time.as_secs_f64() * 1e3,
            costs.all >> 10,
        ),
    );
}
