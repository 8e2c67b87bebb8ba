//! Salvage of damaged files: every tuple whose blocks are whole is saved once and in order, and the rest is
//! reported.

use pleach::{FsckOptions, Index, KeyType, ValueType, Verdict, fsck};
use pleach_builder::rebuild::{CompactOptions, Compacted, compact};
use pleach_builder::{
    Btree, BuildError, BuildOptions, Chunk, ChunkSource, Column, Fast, Harmonia, Layout, Schema, Silent,
    Strings, Values, build, build_slice,
};
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::section::{TABLE_OFFSET, Tag};
use pleach_format::superblock::Superblock;
use pleach_tests::figure;
use pleach_tests::generate::{Random, mix};
use pleach_tests::mutate::{extent, flip, header, put, reseal, resealed};
use pleach_tests::whole::wholes;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Tuples of a block of lines: 4 a line, 128 lines.
const OF_BLOCK: usize = 512;

struct Place {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Place {
    fn new(make: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let path = folder.path().join("sound");
        make(&path);
        let bytes = fs::read(&path).expect("a file");
        Self { folder, bytes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Saves what is left of `bytes`, which must stay as they are.
    fn save(&self, bytes: &[u8]) -> Result<Compacted, BuildError> {
        let (bad, out) = (self.path("bad"), self.path("out"));
        fs::write(&bad, bytes).expect("written");
        let options = CompactOptions { salvage: true, threads: 2, ..CompactOptions::default() };
        let done = compact(std::slice::from_ref(&bad), &out, &options, &Silent);
        assert!(fs::read(&bad).expect("read") == bytes, "the input changed");
        if done.is_ok() {
            let report = fsck(&out, &FsckOptions::default()).expect("read");
            assert_eq!(report.verdict, Verdict::Clean);
        }
        done
    }

    /// All tuples of what was saved, as text.
    fn tuples(&self) -> Vec<String> {
        tuples_of(&Index::open(self.path("out")).expect("opens"))
    }
}

fn tuples_of(index: &Index) -> Vec<String> {
    (0..index.len()).map(|rank| format!("{:?}", index.tuple(rank).expect("whole").expect("a rank"))).collect()
}

fn without(mut tuples: Vec<String>, lost: &[Range<u64>]) -> Vec<String> {
    for ranks in lost.iter().rev() {
        tuples.drain(ranks.start as usize..ranks.end as usize);
    }
    tuples
}

fn numbers(tuples: u64) -> Place {
    let tuples: Vec<(u64, u64)> = (0..tuples).map(|i| (i * 3, mix(i))).collect();
    Place::new(|path| {
        // As many tuples to a block as `OF_BLOCK` says.
        build_slice(&tuples, path, &BuildOptions { wide: true, ..BuildOptions::default() }).expect("a build");
    })
}

#[test]
fn every_tuple_of_whole_blocks_comes_once() {
    // The last block is not full.
    let place = numbers(19 * OF_BLOCK as u64 + 77);
    let all = tuples_of(&Index::open(place.path("sound")).expect("opens"));
    let lines = extent(&place.bytes, Tag::LINE);
    let blocks = lines.len().div_ceil(SUM_BLOCK_BYTES);
    assert_eq!(blocks, 20);
    let mut random = Random(1);
    for count in 0..=blocks {
        let mut order: Vec<usize> = (0..blocks).collect();
        order.sort_by_key(|_| random.next());
        let mut bad: Vec<usize> = order[..count].to_vec();
        bad.sort_unstable();
        let mut bytes = place.bytes.clone();
        for &block in &bad {
            let at = lines.start + block * SUM_BLOCK_BYTES;
            let within = (lines.end - at).min(SUM_BLOCK_BYTES);
            flip(&mut bytes, at * 8 + random.below(within as u64 * 8) as usize);
        }
        let done = place.save(&bytes).expect("what is left");
        let mut wanted: Vec<Range<u64>> = Vec::new();
        for &block in &bad {
            let ranks = block * OF_BLOCK..((block + 1) * OF_BLOCK).min(all.len());
            let ranks = ranks.start as u64..ranks.end as u64;
            match wanted.last_mut() {
                Some(last) if last.end == ranks.start => last.end = ranks.end,
                _ => wanted.push(ranks),
            }
        }
        assert_eq!(done.lost, [wanted.clone()], "{count} blocks");
        assert!(place.tuples() == without(all.clone(), &wanted), "{count} blocks");
    }
    figure(
        23,
        &format!(
            "0 to {blocks} of {blocks} blocks of tuples damaged: all others saved once, lost ranks exact"
        ),
    );
}

/// Damages everything but the tuple lines; `holds` says which other sections hold something of the tuples.
fn damage_elsewhere(place: &Place, holds: &[Tag]) -> usize {
    let all = tuples_of(&Index::open(place.path("sound")).expect("opens"));
    let parsed = header(&place.bytes);
    let others = parsed
        .sections
        .iter()
        .filter(|section| section.entry.tag != Tag::LINE && section.end > section.offset());
    let mut places: Vec<(String, Range<usize>)> = others
        .map(|section| (section.entry.tag.to_string(), section.offset() as usize..section.end as usize))
        .collect();
    let end = place.bytes.len();
    for (name, range) in [
        ("superblock", 0..4096),
        ("section table", 4096..8192),
        ("superblock and section table", 0..8192),
        ("closing section table", end - 8192..end - 4096),
        ("closing superblock", end - 4096..end),
    ] {
        places.push((name.to_owned(), range));
    }
    for (name, range) in places {
        for damage in 0..3 {
            let mut bytes = place.bytes.clone();
            match damage {
                0 => flip(&mut bytes, range.start * 8 + 3),
                1 => flip(&mut bytes, range.end * 8 - 1),
                _ => bytes[range.clone()].iter_mut().for_each(|byte| *byte ^= 0x5A),
            }
            let done = place.save(&bytes).unwrap_or_else(|error| panic!("{name}, {damage}: {error}"));
            // Without its sum, a block cannot be known to be whole.
            let is_held = name == Tag::SUMS.to_string() || holds.iter().any(|tag| name == tag.to_string());
            let most = match damage {
                _ if !is_held => 0,
                // Offsets of a block of a column may lead to all of its bytes.
                _ if !holds.is_empty() => all.len(),
                2 => all.len(),
                _ => OF_BLOCK,
            };
            assert!(done.lost_tuples() <= most as u64, "{name}, {damage}");
            assert!(place.tuples() == without(all.clone(), &done.lost[0]), "{name}, {damage}");
        }
    }
    parsed.sections.len()
}

#[test]
fn damage_elsewhere_loses_no_tuple() {
    let layout = Layout {
        spine: true,
        grid: true,
        columns: true,
        packed: true,
        fast: Some(Fast::default()),
        wide: true,
        harmonia: Some(Harmonia { fanout: 8, fill_percent: 70 }),
        btree: Some(Btree { order: 5 }),
        values: Values::Auto,
    };
    let tuples: Vec<(u64, u64)> = (0..5000).map(|i| (i * 3, mix(i))).collect();
    let full = Place::new(|path| {
        build_slice(&tuples, path, &BuildOptions::default().with_layout(layout)).expect("a build");
    });
    let sections = [
        damage_elsewhere(&numbers(5000), &[]),
        damage_elsewhere(&full, &[]),
        damage_elsewhere(&texts(3000, true, Values::Auto), &[Tag::MASK, Tag::TAIL, Tag::KEYS, Tag::VALUES]),
        damage_elsewhere(
            &texts(3000, true, Values::Dictionary),
            &[Tag::MASK, Tag::TAIL, Tag::KEYS, Tag::VALUES, Tag::CODES],
        ),
    ];
    assert!(sections[1] > sections[0] + 3);
    figure(
        23,
        &format!(
            "every other section of files of {sections:?} sections, superblock and section table damaged in three \
             ways: no tuple lost but under lost sums and in columns of strings"
        ),
    );
}

#[test]
fn without_both_tables_nothing_is_made() {
    let place = numbers(5000);
    let mut bytes = place.bytes.clone();
    flip(&mut bytes, TABLE_OFFSET as usize * 8 + 77);
    let copy = bytes.len() - 8192;
    flip(&mut bytes, copy * 8 + 77);
    place.save(&bytes).expect_err("nobody knows where anything is");
    assert!(!place.path("out").exists());
}

/// Keys that are long, and values of all lengths.
fn texts(tuples: usize, columns: bool, form: Values) -> Place {
    Place::new(|path| {
        let (mut keys, mut values) = (Strings::default(), Strings::default());
        for i in 0..tuples as u64 {
            keys.push(format!("a key with a long beginning {:08} and an end", i * 7).as_bytes());
            values.push("value ".repeat(mix(i) as usize % 9).as_bytes());
        }
        let mut chunk = Chunk::new(KeyType::Utf8, ValueType::Utf8);
        chunk.keys = Column::Bytes(keys);
        chunk.values = Column::Bytes(values);
        let schema = Schema::plain(KeyType::Utf8, ValueType::Utf8, Some(tuples as u64));
        let mut source = ChunkSource::new(schema, vec![chunk]);
        let options = BuildOptions { columns, values: form, ..BuildOptions::default() };
        build(&mut source, path, &options, &Silent).expect("a build");
    })
}

#[test]
fn strings_are_saved_or_told() {
    for form in [Values::Plain, Values::Dictionary] {
        saved_or_told(&texts(6000, false, form));
    }
}

fn saved_or_told(place: &Place) {
    let all = tuples_of(&Index::open(place.path("sound")).expect("opens"));
    let parsed = header(&place.bytes);
    let sections: Vec<_> = parsed.sections.iter().filter(|section| section.end > section.offset()).collect();
    let mut random = Random(2);
    let mut saved = 0;
    for round in 0..24 {
        let mut bytes = place.bytes.clone();
        let mut hit = Vec::new();
        for _ in 0..=round / 6 {
            let section = sections[random.below(sections.len() as u64) as usize];
            let (from, to) = (section.offset() as usize, section.end as usize);
            flip(&mut bytes, from * 8 + random.below((to - from) as u64 * 8) as usize);
            hit.push(section.entry.tag);
        }
        // If the mask is lost, and no column has the keys, no file is written.
        let may_refuse = hit.iter().any(|&tag| matches!(tag, Tag::MASK | Tag::SUMS | Tag::SUM2));
        let done = match place.save(&bytes) {
            Err(error) => {
                assert!(may_refuse, "round {round}: {error}");
                continue;
            }
            Ok(done) => done,
        };
        saved += 1;
        assert!(place.tuples() == without(all.clone(), &done.lost[0]), "round {round}");
        // Values that are stored once, and their codes, are in few blocks. One wrong bit is mended, two are not.
        let is_once = parsed.codes.is_some();
        let of_values = |tag: &&Tag| matches!(**tag, Tag::VALUES | Tag::CODES | Tag::SUMS | Tag::SUM2);
        let may_lose = hit.iter().filter(of_values).count() > 1;
        assert!(done.lost_tuples() < 6000 || is_once && may_lose, "round {round}: {hit:?}");
    }
    assert!(saved > 16, "{saved}");
    figure(23, &format!("strings with flipped bits anywhere: {saved} of 24 files saved"));
}

/// Offsets that go back could make an element of the same bytes over and over, a file of megabytes terabytes.
#[test]
fn no_bytes_of_a_column_are_saved_twice() {
    let place = texts(6000, true, Values::Plain);
    let header = header(&place.bytes);
    let values = header.values.expect("a column of values");
    assert_eq!(values.shape.element_bytes, 0);
    let (width, data) = (values.shape.offset_bytes as usize, values.shape.data_bytes);
    let mut bytes = place.bytes.clone();
    for rank in 0..=6000 {
        let offset = if rank % 2 == 0 { 0 } else { data };
        put(&mut bytes, values.offset as usize + rank * width, width, offset);
    }
    reseal(&mut bytes);
    let done = place.save(&bytes).expect("what is left");
    assert!(done.lost_tuples() >= 5999, "{}", done.lost_tuples());
    assert!(fs::metadata(place.path("out")).expect("a file").len() < bytes.len() as u64);
    let options = CompactOptions { salvage: false, threads: 2, ..CompactOptions::default() };
    let done = compact(&[place.path("bad")], place.path("out"), &options, &Silent);
    assert!(matches!(done, Err(BuildError::Damaged { .. })));
}

/// Words of one type are those of another one, but for floats: what is saved has none that no float has.
#[test]
fn words_of_another_type_are_saved_whole_or_refused() {
    let key_type = std::mem::offset_of!(Superblock, key_type);
    let (mut saved, mut refused) = (0, 0);
    for whole in wholes() {
        let there = header(whole);
        let word_bytes = there.short.map_or(there.geometry.key_bytes, |short| short.key_bytes());
        for other in KeyType::NUMERIC.iter().filter(|other| other.bytes() == word_bytes) {
            let place = Place::new(|path| fs::write(path, whole).expect("written"));
            let forged = resealed(whole, |bytes| put(bytes, key_type, 2, other.code().into()));
            match place.save(&forged) {
                Ok(_) => saved += 1,
                Err(error) => {
                    assert!(*other == KeyType::F64 || header(whole).key_type.is_bytes(), "{other}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(saved >= 10 && refused >= 3, "{saved} {refused}");
}

/// Without the mask no byte key can be read: what is certain of it is repaired.
#[test]
fn a_mask_that_can_be_repaired_is() {
    let place = texts(3000, false, Values::Plain);
    let all = tuples_of(&Index::open(place.path("sound")).expect("opens"));
    let parsed = header(&place.bytes);
    assert!(parsed.keys.is_none(), "nothing else has the keys");
    let mask = parsed.section(Tag::MASK).expect("byte keys");
    let start = mask.offset() as usize;
    let (end, sum) = (start + mask.entry.length.get() as usize, mask.entry.sums_offset.get() as usize);
    let spoil = |places: &[(usize, u8)]| {
        let mut bytes = place.bytes.clone();
        places.iter().for_each(|&(at, bits)| bytes[at] ^= bits);
        bytes
    };
    let repaired: [&[(usize, u8)]; 6] = [
        &[(start + 3, 4)],
        &[(end - 1, 0x80)],
        &[(end, 1)],
        &[(mask.end as usize - 1, 0xFF), (end + 9, 0x55)],
        &[(sum, 0xFF)],
        &[(end + 100, 3), (start, 1)],
    ];
    for places in repaired {
        let done = place.save(&spoil(places)).unwrap_or_else(|error| panic!("{places:?}: {error}"));
        assert!(place.tuples() == all && done.lost_tuples() == 0, "{places:?}");
    }
    for places in [&[(start + 3, 3)][..], &[(start + 3, 4), (sum, 1)]] {
        place.save(&spoil(places)).expect_err("nobody knows what was there");
    }
}
