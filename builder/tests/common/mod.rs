//! A naive check of a file's bytes, and sources that misbehave.
#![allow(dead_code, reason = "each test file uses its part")]

use pleach_builder::{Chunk, Column, Schema, Source, SourceError};
use pleach_format::Header;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, crc32};
use pleach_format::key::{Bits, Key, Value, Word};
use pleach_format::layout::section_start;
use pleach_format::section::Tag;
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::view::{self, Bytes, HEAD_BYTES};

/// A mixer: the same everywhere.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

/// Checks every sum, every place and all padding of a file; gives its header.
pub fn check_frame(file: &[u8]) -> Header {
    let header = Header::parse(&file[..file.len().min(HEAD_BYTES)], file.len() as u64).unwrap();
    assert_eq!(
        file[..SUPERBLOCK_BYTES],
        file[file.len() - SUPERBLOCK_BYTES..],
        "the closing superblock is a copy"
    );
    let tags: Vec<Tag> = header.sections.iter().map(|section| section.entry.tag).collect();
    let grid: &[Tag] = if header.grid.is_some() { &[Tag::GRID] } else { &[] };
    assert_eq!(tags, [&[Tag::META, Tag::LINE, Tag::SPINE], grid, &[Tag::SUMS, Tag::SUM2]].concat());
    let superblock = &header.superblock;
    let unique = header.is_unique();
    let mut id = FileId::new(superblock.key_type.get(), superblock.value_type.get(), unique, header.tuples);
    let mut end = HEAD_BYTES as u64;
    for section in &header.sections {
        let entry = &section.entry;
        assert_eq!(
            section.offset(),
            section_start(entry.tag, end, entry.length.get()).unwrap(),
            "{}",
            entry.tag
        );
        assert_eq!(entry.flags.get(), u32::from(![Tag::META, Tag::SPINE, Tag::GRID].contains(&entry.tag)));
        end = section.offset() + entry.length.get();
        let extent = &file[section.offset() as usize..section.end as usize];
        assert!(extent[entry.length.get() as usize..].iter().all(|&byte| byte == 0), "padding is zero");
        if entry.tag == Tag::SUM2 {
            assert_eq!(entry.sums_crc.get(), crc32(extent));
            continue;
        }
        let list = &file[entry.sums_offset.get() as usize..][..entry.sums_bytes() as usize];
        assert_eq!(entry.sums_crc.get(), crc32(list), "{}", entry.tag);
        assert_eq!(entry.sums_offset.get() % 128, 0);
        for (block, (bytes, stored)) in extent.chunks(SUM_BLOCK_BYTES).zip(list.chunks_exact(4)).enumerate() {
            let stored = u32::from_le_bytes(stored.try_into().unwrap());
            assert_eq!(
                stored,
                header.bound_sum(entry.tag, block as u64, bytes),
                "{} block {block}",
                entry.tag
            );
        }
        if entry.tag != Tag::SUMS {
            entry.identify(&mut id, extent.chunks(SUM_BLOCK_BYTES).map(crc32));
        }
    }
    assert_eq!(superblock.file_id, id.finish());
    header
}

/// Checks that a file holds exactly these tuples, in this order, and that searches find them.
pub fn check_file<K: Key, V: Value>(file: &[u8], tuples: &[(K, V)]) -> Header {
    let header = check_frame(file);
    assert_eq!((header.key_type, header.value_type), (K::TYPE, V::TYPE));
    assert_eq!(header.tuples, tuples.len() as u64);
    let words: Vec<u128> = tuples.iter().map(|(key, _)| key.encode().to_u128()).collect();
    assert!(words.is_sorted());
    assert_eq!(header.key_range(), words.first().copied().zip(words.last().copied()));
    let lines = Bytes(file);
    for (rank, (key, value)) in tuples.iter().enumerate() {
        let found = view::tuple::<K::Word, _>(&header, &lines, rank as u64).unwrap();
        assert_eq!(found, Some((key.encode(), value.to_bits().to_u64())), "rank {rank}");
    }
    assert_eq!(view::tuple::<K::Word, _>(&header, &lines, header.tuples).unwrap(), None);
    let max = K::Word::MAX.to_u128();
    let step = (words.len() / 3000).max(1);
    let probes = words
        .iter()
        .step_by(step)
        .chain(words.last())
        .flat_map(|&word| [word.saturating_sub(1), word, word.saturating_add(1).min(max)]);
    for probe in probes.chain([0, max]) {
        let wanted = words.partition_point(|&word| word < probe) as u64;
        let found = view::lower_bound(&header, &lines, K::Word::from_u128(probe)).unwrap();
        assert_eq!(found, wanted, "lower bound of {probe} among {} tuples", words.len());
    }
    header
}

/// Tuples with their input position as value, sorted stably.
pub fn sorted<K: Key, V: Value>(mut tuples: Vec<(K, V)>) -> Vec<(K, V)> {
    tuples.sort_by_key(|(key, _)| key.encode());
    tuples
}

/// `count` tuples whose keys come from `key` and whose values are their input positions.
pub fn numbered<K: Key, V: Value>(count: u64, key: impl Fn(u64) -> u64) -> Vec<(K, V)> {
    (0..count)
        .map(|row| (K::decode(K::Word::from_u64(key(row))), V::from_bits(V::Bits::from_u64(row))))
        .collect()
}

/// A source that yields tuples in chunks of a given size.
pub struct Chunks {
    schema: Schema,
    chunks: std::vec::IntoIter<(Vec<u128>, Vec<u128>)>,
}

impl Chunks {
    pub fn new<K: Key, V: Value>(tuples: &[(K, V)], chunk: usize) -> Self {
        let schema = Schema {
            key_name: "id".into(),
            value_name: "number".into(),
            ..Schema::plain(K::TYPE, V::TYPE, None)
        };
        let chunks: Vec<_> = tuples
            .chunks(chunk)
            .map(|tuples| {
                tuples.iter().map(|(k, v)| (k.encode().to_u128(), u128::from(v.to_bits().to_u64()))).unzip()
            })
            .collect();
        Self { schema, chunks: chunks.into_iter() }
    }
}

impl Source for Chunks {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, _tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        if let Some((keys, values)) = self.chunks.next() {
            let put = |column: &mut Column, words: Vec<u128>| match column {
                Column::None => {}
                Column::U32(column) => column.extend(words.iter().map(|&word| word as u32)),
                Column::U64(column) => column.extend(words.iter().map(|&word| word as u64)),
                Column::U128(column) => column.extend(words),
                Column::Bytes(_) => unreachable!("these tuples are numbers"),
            };
            put(&mut chunk.keys, keys);
            put(&mut chunk.values, values);
        }
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}
