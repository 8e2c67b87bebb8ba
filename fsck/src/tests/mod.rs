//! Tests that need the inside of the crate: reads that fail or are too many, files in many small pieces,
//! and the fast ways against the slow ones.

mod lines;
mod named;
mod pages;
mod pieces;

use super::{Check, Finding, ReadAt, check_bytes};
use pleach_format::classic::paged::Paged;
use pleach_format::mask::Mask;
use pleach_format::section::{SECTIONS, Tag};
use pleach_format::{Header, ValueType, Word, line};
use pleach_kit::generate::mix;
use pleach_kit::mutate::{extent, flip, header, reseal, victim};
use pleach_kit::{golden, is_long};
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes whose n-th reading fails.
struct Failing {
    bytes: Vec<u8>,
    left: AtomicU64,
}

impl ReadAt for Failing {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.bytes.as_slice().read_exact_at(buffer, offset)
    }
}

/// Bytes that keep a list of what was read.
struct Watched {
    bytes: Vec<u8>,
    read: Mutex<Vec<Range<u64>>>,
}

impl Watched {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: Mutex::default() }
    }
    /// Returns the reads since the last call.
    fn take(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut *self.read.lock().expect("no panic"))
    }
}

impl ReadAt for Watched {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.lock().expect("no panic").push(offset..offset + buffer.len() as u64);
        self.bytes.as_slice().read_exact_at(buffer, offset)
    }
}

/// A check that could not read everything fails.
#[test]
fn every_failed_reading_is_an_error() {
    let bytes = victim().1;
    let mut failed = 0;
    for n in 1.. {
        let source = Failing { bytes: bytes.clone(), left: AtomicU64::new(n) };
        match Check::new(&source, bytes.len() as u64, None).run() {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut, "reading {n}"),
            Ok(report) => {
                assert_eq!(report.findings, []);
                break;
            }
        }
        failed = n;
    }
    assert!(failed > 20, "{failed} readings");
}

/// Returns the rules that have been broken so far.
fn broken<R>(check: &Check<'_, R>) -> Vec<Finding> {
    std::mem::take(&mut *check.rules.lock().expect("no thread has panicked"))
}

/// Returns the first byte and the length of an element of a column in the file.
fn element(whole: &[u8], there: &Header, tag: Tag, rank: u64) -> Option<(u64, u64)> {
    let place = match tag {
        Tag::TAIL => there.tails,
        Tag::KEYS => there.keys,
        _ => there.values,
    }?;
    let offset = |rank: u64| {
        let width = place.shape.offset_bytes as usize;
        pleach_kit::mutate::number(whole, place.offset as usize + rank as usize * width, width)
    };
    let (start, end) = match place.shape.offset_bytes {
        0 => (rank * place.shape.element_bytes, (rank + 1) * place.shape.element_bytes),
        _ => (offset(rank), offset(rank + 1)),
    };
    Some((place.data_offset() + start, end - start))
}

/// Files in many pieces: whole ones are clean, and changes are found where they are, with what was there before.
#[test]
fn small_pieces_find_what_large_ones_do() {
    let step = if is_long() { 1 } else { 17 };
    let (mut trees, mut elements) = (0, 0);
    for (name, whole) in golden() {
        assert_eq!(check_bytes(&whole), [], "{name}");
        let there = header(&whole);
        for tag in [Tag::PACK, Tag::HARMONIA, Tag::FAST, Tag::BTREE] {
            if there.section(tag).is_none() {
                continue;
            }
            // A sample, and what small pages are aligned by.
            let of_gaps = |at: usize| name.contains("_pages") && whole[at] == 0;
            let is_tried = |(turn, at): &(usize, usize)| turn % step == 0 || turn % 2 == 0 && of_gaps(*at);
            for (turn, at) in extent(&whole, tag).enumerate().filter(is_tried) {
                let mut bytes = whole.clone();
                flip(&mut bytes, at * 8 + (mix(turn as u64) % 8) as usize);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                let is_it = |it: &Finding| (it.offset..it.offset + it.length).contains(&(at as u64));
                // What a record says of its page's words shows in the words.
                let records = there.fast.and_then(|(offset, shape)| {
                    let paged = Paged::new(shape.geometry, shape.form)?;
                    Some(offset as usize..(offset + paged.pages_at()) as usize)
                });
                let of_words = records.is_some_and(|records| tag == Tag::FAST && records.contains(&at))
                    && findings.iter().any(|it| it.section == "FAST");
                assert!(of_words || findings.iter().any(is_it), "{name}: byte {at} of {tag}: {findings:?}");
                trees += 1;
            }
        }
        for tag in [Tag::TAIL, Tag::KEYS, Tag::VALUES] {
            // Each bit of a key counts, or a letter of a text is none.
            let is_text = tag == Tag::VALUES && there.value_type == ValueType::Utf8;
            let is_once = tag == Tag::VALUES && there.codes.is_some();
            let count = there.values.filter(|_| is_once).map_or(there.tuples, |place| place.shape.elements);
            for rank in (0..count).step_by(if is_long() { 1 } else { 3 }) {
                let Some((at, length)) = element(&whole, &there, tag, rank) else { break };
                if length == 0 || tag == Tag::VALUES && there.value_type == ValueType::Bytes {
                    continue;
                }
                let mut bytes = whole.clone();
                bytes[(at + length - 1) as usize] ^= 0x80;
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                let is_it = |it: &&Finding| (it.code.name(), it.offset, it.length) == ("column", at, length);
                let Some(it) = findings.iter().find(is_it) else {
                    panic!("{name}: rank {rank} of {tag}: {findings:?}");
                };
                let named = if is_once { format!("value {rank} ") } else { format!("rank {rank} ") };
                assert!(it.text.contains(&named), "{name}: {it}");
                let hex = |bytes: &[u8]| {
                    let element = &bytes[at as usize..(at + length) as usize];
                    element.iter().take(64).map(|byte| format!("{byte:02x}")).collect::<String>()
                };
                if !is_text && tag != Tag::TAIL && !(tag == Tag::KEYS && there.key_type.is_bytes()) {
                    assert_eq!((&it.expected, &it.found), (&hex(&whole), &hex(&bytes)), "{name}: {it}");
                }
                elements += 1;
            }
        }
    }
    assert!(trees > 1000 && elements > 500, "{trees} {elements}");
}

/// Texts of any length, with letters across the borders of pieces.
#[test]
fn texts_are_read_in_pieces() {
    for length in 0..200 {
        for (letter, width) in [("a", 1), ("ä", 2), ("€", 3), ("𝄞", 4)] {
            for before in 0..4 {
                let text = "x".repeat(7 + before) + &letter.repeat(length) + "end";
                let bytes = text.as_bytes();
                let check = Check::new(&bytes, bytes.len() as u64, None);
                let is_text = |from: usize, to: usize| {
                    check.is_text(from as u64, (to - from) as u64).expect("readable")
                };
                assert!(is_text(7, bytes.len()), "{text}");
                if width > 1 && length > 0 {
                    let last = bytes.len() - 3;
                    assert!(!is_text(7, last - 1), "cut: {text}");
                    assert!(!is_text(before + 8, bytes.len()), "cut: {text}");
                }
            }
        }
    }
}

/// Byte keys in order: equal ones only where they may be.
#[test]
fn byte_keys_are_compared_whole() {
    let mut files = 0;
    for (_, whole) in golden() {
        let mut there = header(&whole);
        let Some(section) = &there.mask else { continue };
        let mask = &whole[section.offset() as usize..][..section.entry.length.get() as usize];
        let mask = Mask::parse(mask, there.geometry.key_bytes, section.offset()).expect("a mask");
        let source = whole.as_slice();
        let check = Check::new(&source, whole.len() as u64, None);
        let (line, slot) = there.geometry.place(1);
        let line = whole[there.line_offset(line) as usize..].first_chunk().expect("a line");
        let word = match there.geometry.key_bytes {
            4 => line::key::<u32>(line, slot).to_u128(),
            8 => line::key::<u64>(line, slot).to_u128(),
            _ => line::key::<u128>(line, slot).to_u128(),
        };
        let key = match (element(&whole, &there, Tag::KEYS, 1), there.tails) {
            (Some((at, length)), _) => whole[at as usize..][..length as usize].to_vec(),
            (None, None) => {
                let mut key = Vec::new();
                mask.unpack(word, &mut key);
                key
            }
            (None, Some(_)) => continue,
        };
        let (mut below, mut above) = (key.clone(), key.clone());
        assert!(below.pop().is_some());
        above.push(b'!');
        for unique in [false, true] {
            there.superblock.unique = u32::from(unique).into();
            let is_told = |previous: &[u8]| {
                check.check_byte_key(&there, &mask, 1, &key, word, Some(previous));
                broken(&check).iter().any(|it| it.expected == "a key in order")
            };
            let told = (is_told(&below), is_told(&key), is_told(&above));
            assert_eq!(told, (false, unique, true));
        }
        files += 1;
    }
    assert!(files >= 2, "{files}");
}

/// Each kind of section has a check beyond its sums; the sums check SUMS and SUM2.
#[test]
fn every_kind_of_section_is_checked() {
    let checks = Check::<&[u8]>::section_checks();
    let mut tags: Vec<Tag> = checks.iter().flat_map(|(tags, _)| tags.iter().copied()).collect();
    tags.extend([Tag::SUMS, Tag::SUM2]);
    assert_eq!(tags.len(), SECTIONS.len());
    for kind in SECTIONS {
        assert!(tags.contains(&kind.tag), "{} has no check", kind.tag);
    }
}
