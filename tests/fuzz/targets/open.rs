//! Any bytes as a file: opened, checked and searched.
//!
//! An input is a choice among small whole files and a list of changes to it, after which the sums may be
//! put right: without that, nearly every change would end at a checksum, and the checks after it would
//! never be reached. The first choice of all is a whole file as it comes. Invariants: nothing panics,
//! loops, reads outside (address sanitizer) or takes much memory; what opens can be searched; what `fsck`
//! finds whole gives back its tuples in order, each found under its key; and what is saved of damaged bytes
//! is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach::{Header, Index, Isa, Key, KeyType, Verify};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::view::{self, Bytes, CLOSING_BYTES, HEAD_BYTES};
use pleach_format::{FormatError, decode};
use pleach_tests::generate::{Random, Taker, mix};
use pleach_tests::mutate::{reseal, reseal_head};
use pleach_tests::roam::{roam_all, save};
use pleach_tests::whole::wholes;

/// The changes that an input asks for.
fn change(bytes: &mut Vec<u8>, taker: &mut Taker<'_>) {
    while !taker.0.is_empty() && bytes.len() > SUPERBLOCK_BYTES {
        let kind = taker.take(1);
        let length = bytes.len();
        // Most changes are of the superblock and the section table, where the structure is stored.
        let at = match kind >> 6 {
            0 => taker.take(1) as usize,
            1 => SUPERBLOCK_BYTES + taker.take(2) as usize % SUPERBLOCK_BYTES,
            _ => taker.take(3) as usize % length,
        };
        let width = 1 << (kind >> 4 & 3);
        let at = at.min(length - width);
        match kind & 15 {
            0..=5 => {
                let number = taker.take(width);
                bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
            // The worst numbers there are.
            6 => bytes[at..at + width].fill(0xFF),
            7 => bytes[at..at + width].fill(0),
            8 => bytes[at] ^= 1 << (taker.take(1) & 7),
            9 => bytes[at + width - 1] ^= 0x80,
            10 => bytes[at] = bytes[at].wrapping_add(taker.take(1) as u8),
            11 => {
                let end = (at + taker.take(2) as usize).min(length);
                let byte = taker.take(1) as u8;
                bytes[at..end].fill(byte);
            }
            12 | 13 => {
                let to = taker.take(3) as usize % length;
                let count = (taker.take(2) as usize).min(length - at).min(length - to);
                bytes.copy_within(at..at + count, to);
            }
            14 => bytes.truncate(at),
            _ => bytes.resize(length + (taker.take(2) as usize), taker.take(1) as u8),
        }
    }
}

/// A file that `fsck` finds whole answers rightly.
fn is_right<K: Key>(index: &Index) {
    let view = index.typed::<K, ()>().expect("types of the file");
    let keys: Vec<K> = view.range(..).expect("whole").map(|tuple| tuple.expect("whole").0).collect();
    assert_eq!(keys.len() as u64, view.len());
    assert!(keys.windows(2).all(|pair| pair[0].encode() <= pair[1].encode()), "out of order");
    for key in keys.iter().step_by(17) {
        let lower = keys.partition_point(|other| other.encode() < key.encode());
        assert_eq!(view.lower_bound(*key), Ok(lower as u64), "a key is not found where it stands");
        assert_eq!(view.contains(*key), Ok(true));
    }
}

/// Runs the searches of `format` itself on any bytes: ranks of the file, or an error.
fn ranks_of_format<K: Key>(header: &Header, bytes: &[u8], random: &mut Random) {
    let lines = Bytes(bytes);
    let word = <K::Word as pleach_format::Word>::from_u64;
    for query in [word(0), word(random.next() & 0xFFFF), word(u64::MAX)] {
        for rank in [view::lower_bound(header, &lines, query), view::upper_bound(header, &lines, query)] {
            assert!(rank.is_err() || rank.is_ok_and(|rank| rank <= header.tuples));
        }
        let rank = random.below(header.tuples.saturating_add(1).max(1));
        let _: Result<_, FormatError> = view::tuple::<K::Word, _>(header, &lines, rank);
        if let Some((at, tree)) = &header.harmonia {
            let section = &bytes[*at as usize..(at + tree.bytes) as usize];
            let found = tree.lower_bound(section, query).expect("it lies in the file");
            assert!(found <= header.tuples);
        }
    }
}

/// Runs the functions by which tools show a file, on any bytes.
fn shown(bytes: &[u8], parsed: &Result<Header, FormatError>, random: &mut Random) {
    let fields = decode::superblock(bytes, 0);
    assert!(
        fields.iter().all(|field| field.offset + field.length <= bytes.len().min(SUPERBLOCK_BYTES) as u64)
    );
    let table = bytes.get(SUPERBLOCK_BYTES..bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    let (fields, entries) = decode::table(table, Some(random.next() as u32));
    assert!(entries.len() <= table.len() && fields.iter().all(|field| !field.name.is_empty()));
    if let Some(at) = bytes.len().checked_sub(CLOSING_BYTES)
        && let Some((head, header)) = view::through_copies(bytes, &bytes[at..], bytes.len() as u64)
    {
        assert_eq!(Header::parse(&head, bytes.len() as u64).map(|header| header.tuples), Ok(header.tuples));
    }
    match parsed {
        Err(error) => assert!(
            !error.to_string().is_empty()
                && (error.is_damage() || bytes.len() < 64 || {
                    !matches!(error, FormatError::Checksum { .. })
                })
        ),
        Ok(header) => {
            let _ = (header.key_range(), header.key_ends(), header.is_unique(), header.inexact_lines);
            match header.key_type {
                KeyType::U64 => ranks_of_format::<u64>(header, bytes, random),
                KeyType::U32 => ranks_of_format::<u32>(header, bytes, random),
                KeyType::U128 => ranks_of_format::<u128>(header, bytes, random),
                KeyType::I64 => ranks_of_format::<i64>(header, bytes, random),
                KeyType::I32 => ranks_of_format::<i32>(header, bytes, random),
                KeyType::F64 => ranks_of_format::<f64>(header, bytes, random),
                _ => {}
            }
        }
    }
}

fn check(bytes: Vec<u8>, seed: u64) {
    let mut random = Random(seed);
    let parsed = Header::parse(&bytes[..bytes.len().min(HEAD_BYTES)], bytes.len() as u64);
    shown(&bytes, &parsed, &mut random);
    let isas = Isa::available();
    let isa = isas[random.below(isas.len() as u64) as usize];
    let options = Index::options().isa(Some(isa));
    let opened = options.from_bytes(bytes.clone());
    assert!(opened.is_err() || parsed.is_ok());
    if let Ok(index) = opened {
        roam_all(&index, &mut random);
    }
    if let Ok(index) = options.verify(Verify::Touched).from_bytes(bytes.clone())
        && let Ok(view) = index.typed::<u64, ()>()
    {
        let _ = (view.min(), view.max(), view.select(index.len() / 2), view.get(random.next()));
    }
    if random.below(16) == 0 {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let path = folder.path().join("bad");
        std::fs::write(&path, &bytes).expect("written");
        save(&path);
    }
    let Ok(index) = options.verify(Verify::Full).from_bytes(bytes) else { return };
    match index.key_type() {
        KeyType::U64 => is_right::<u64>(&index),
        KeyType::U32 => is_right::<u32>(&index),
        KeyType::U128 => is_right::<u128>(&index),
        KeyType::I64 => is_right::<i64>(&index),
        KeyType::I32 => is_right::<i32>(&index),
        KeyType::F64 => is_right::<f64>(&index),
        // Keys of bytes.
        _ => {
            let view = index.strings::<()>().expect("strings");
            let keys: Vec<Vec<u8>> = view.ranks(0..view.len()).map(|tuple| tuple.expect("whole").0).collect();
            assert!(keys.len() as u64 == view.len() && keys.is_sorted());
            for key in keys.iter().step_by(17) {
                assert_eq!(view.lower_bound(key), Ok(keys.partition_point(|other| other < key) as u64));
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut taker = Taker(data);
    let wholes = wholes();
    let choice = taker.take(1) as usize;
    let seed = mix(choice as u64 + data.len() as u64);
    if choice == 0xFF {
        return check(taker.0.to_vec(), seed);
    }
    let mut bytes = wholes[choice % wholes.len()].clone();
    let sums = taker.take(1);
    change(&mut bytes, &mut taker);
    if bytes.len() >= 4 * SUPERBLOCK_BYTES && sums & 3 != 0 {
        reseal_head(&mut bytes);
        // Sums of sections can be made only where the table still says where they are.
        if sums & 2 != 0 && Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).is_ok() {
            reseal(&mut bytes);
        }
    }
    check(bytes, seed);
});
