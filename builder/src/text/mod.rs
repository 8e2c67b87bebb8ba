//! Byte keys by page and the trie over the pages: the sections TEXT and TRIE, made from sorted keys.
//!
//! While the kind of words is chosen, pages are sampled; their rests make the table of symbols. One pass over the
//! keys then codes the pages, on all threads, and collects what parts them, from which the trie is made. Pages,
//! their lengths and separators beyond a share of the memory limit go to spill files.

mod blocks;
mod symbols;
mod trie;

use crate::error::BuildError;
use crate::external::Spills;
use crate::job::Job;
use crate::overflow::Overflow;
use crate::parallel;
use crate::records::Sorted;
use crate::section::Extra;
use pleach_format::section::Tag;
use pleach_format::text::{self, GUARD_BYTES, PAGE_KEYS, TextGeometry};
use pleach_format::trie::{NODE_BYTES, NODES_MAX, PAGES_MAX, TrieGeometry};
use symbols::Coder;
use trie::Separators;

/// Minimum number of sampled pages, if there are as many; less than twice as many are sampled.
const SAMPLED_PAGES: usize = 512;
/// Bytes of a rest that are sampled.
const SAMPLED_BYTES: usize = 64;
/// Pages of a task.
const TASK_PAGES: usize = 64;
/// Keys that are coded at once.
const BATCH_KEYS: usize = 32 * TASK_PAGES * PAGE_KEYS;
/// Bytes of keys that are coded at once, at most, but for the last page.
const BATCH_BYTES: usize = 8 << 20;
/// Share of the memory limit that one list may have.
const MEMORY_SHARE: u64 = 16;
/// Bytes of a list that stay in memory whatever the limit is.
const MEMORY_BYTES_MIN: usize = 1 << 16;

/// Rests of the keys of pages at even steps.
#[derive(Default)]
pub(crate) struct Sample {
    keys: u64,
    /// A page is sampled if its number is a multiple of this power of two.
    step: u64,
    head: Vec<u8>,
    pages: Vec<Vec<Vec<u8>>>,
}

impl Sample {
    /// Adds the next key.
    pub(crate) fn add(&mut self, key: &[u8]) {
        let (page, slot) = (self.keys / PAGE_KEYS as u64, self.keys % PAGE_KEYS as u64);
        self.keys += 1;
        self.step = self.step.max(1);
        if !page.is_multiple_of(self.step) {
            return;
        }
        if slot == 0 {
            if self.pages.len() == 2 * SAMPLED_PAGES {
                self.step *= 2;
                let mut number = 0;
                self.pages.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                if !page.is_multiple_of(self.step) {
                    return;
                }
            }
            self.pages.push(Vec::new());
            self.head.clear();
            self.head.extend_from_slice(key);
            return;
        }
        // The byte after the shared ones is not coded.
        let rest = key.get(text::common(&self.head, key) + 1..).unwrap_or_default();
        if let Some(page) = self.pages.last_mut() {
            page.push(rest[..rest.len().min(SAMPLED_BYTES)].to_vec());
        }
    }

    fn coder(self) -> Coder {
        let rests: Vec<Vec<u8>> = self.pages.into_iter().flatten().collect();
        Coder::of_sample(&rests)
    }
}

/// Keys that were read, one after the other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }
    fn len(&self) -> usize {
        self.ends.len()
    }
    fn is_full(&self) -> bool {
        self.len().is_multiple_of(PAGE_KEYS) && (self.len() >= BATCH_KEYS || self.bytes.len() >= BATCH_BYTES)
    }
    fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Pages, and what they are made of.
pub(crate) struct Pages<'a> {
    keys: u64,
    coder: Coder,
    spills: Spills<'a>,
    data: Overflow<u8>,
    /// Bytes of each page, four bytes each.
    lengths: Overflow<u8>,
    /// Nodes of the trie, if there is one.
    nodes: Overflow<u8>,
    levels: u32,
}

impl<'a> Pages<'a> {
    /// Makes the pages of sorted keys, and the trie if `has_trie` and there are pages to part. O(bytes of all keys).
    pub(crate) fn new(
        job: &Job<'a>,
        sorted: &Sorted<'_>,
        sample: Sample,
        has_trie: bool,
    ) -> Result<Self, BuildError> {
        let limit = usize::try_from(job.options.memory_bytes / MEMORY_SHARE)
            .unwrap_or(usize::MAX)
            .max(MEMORY_BYTES_MIN);
        let list = || Overflow::new(limit);
        let (data, lengths, nodes, spills) = (list(), list(), list(), job.spills);
        let mut this = Self { keys: 0, coder: sample.coder(), spills, data, lengths, nodes, levels: 0 };
        let mut separators = Separators::new(job.spills, limit);
        let (mut batch, mut last) = (Batch::default(), Vec::new());
        sorted.each(&mut |key, _| {
            if has_trie {
                if this.keys > 0 && this.keys.is_multiple_of(PAGE_KEYS as u64) {
                    separators.push(&last, key)?;
                }
                if this.keys % PAGE_KEYS as u64 == PAGE_KEYS as u64 - 1 {
                    last.clear();
                    last.extend_from_slice(key);
                }
            }
            this.keys += 1;
            batch.push(key);
            if batch.is_full() {
                this.take(&batch)?;
                batch.clear();
            }
            Ok(())
        })?;
        this.take(&batch)?;
        if has_trie && this.keys.div_ceil(PAGE_KEYS as u64) < PAGES_MAX {
            let nodes = &mut this.nodes;
            this.levels = trie::make(&separators, &mut |node| nodes.extend(node, job.spills))?;
        }
        Ok(this)
    }

    /// Codes the pages of a batch.
    fn take(&mut self, batch: &Batch) -> Result<(), BuildError> {
        let pages = batch.len().div_ceil(PAGE_KEYS);
        let coder = &self.coder;
        let made = parallel::map(pages.div_ceil(TASK_PAGES), |task| {
            let (mut bytes, mut lengths, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
            for page in task * TASK_PAGES..pages.min((task + 1) * TASK_PAGES) {
                let start = bytes.len();
                let keys = page * PAGE_KEYS..batch.len().min((page + 1) * PAGE_KEYS);
                let code = |text: &[u8], out: &mut Vec<u8>| coder.code(text, &mut scratch, out);
                text::pack(keys.map(|number| batch.get(number)), code, &mut bytes);
                lengths.extend_from_slice(&((bytes.len() - start) as u32).to_le_bytes());
            }
            (bytes, lengths)
        });
        for (bytes, lengths) in made {
            self.data.extend(&bytes, self.spills)?;
            self.lengths.extend(&lengths, self.spills)?;
        }
        Ok(())
    }

    /// Returns the sections.
    pub(crate) fn sections(&self) -> Result<Vec<Extra<'_>>, BuildError> {
        let too_large = || BuildError::TooLarge { what: "a column", found: self.keys, limit: u64::MAX >> 8 };
        let shape = TextGeometry::new(self.keys, self.data.len()).ok_or_else(too_large)?;
        let mut sections = vec![Extra {
            tag: Tag::TEXT,
            required: true,
            length: shape.bytes().ok_or_else(too_large)?,
            elements: self.keys,
            parameters: shape.parameters().into(),
            content: Box::new(move |take| {
                take(&self.coder.table().to_bytes())?;
                let (mut place, width) = (0u64, shape.place_bytes as usize);
                take(&place.to_le_bytes()[..width])?;
                let (mut places, mut held) = (Vec::new(), Vec::new());
                self.lengths.read(&mut |bytes| {
                    held.extend_from_slice(bytes);
                    let (whole, rest) = held.as_chunks::<4>();
                    for length in whole {
                        place += u64::from(u32::from_le_bytes(*length));
                        places.extend_from_slice(&place.to_le_bytes()[..width]);
                    }
                    held = rest.to_vec();
                    take(&places)?;
                    places.clear();
                    Ok(())
                })?;
                let padding = shape.pages_at - shape.place_at(shape.pages + 1);
                take(&vec![0; padding as usize])?;
                self.data.read(take)?;
                take(&[0; GUARD_BYTES as usize])
            }),
        }];
        let trie = TrieGeometry { nodes: self.nodes.len() / NODE_BYTES as u64, levels: self.levels };
        if (1..NODES_MAX).contains(&trie.nodes) {
            sections.push(Extra {
                tag: Tag::TRIE,
                required: false,
                length: self.nodes.len(),
                elements: trie.nodes,
                parameters: trie.parameters().into(),
                content: Box::new(|take| self.nodes.read(take)),
            });
        }
        Ok(sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;
    use std::path::Path;

    /// Keys with long common parts, sorted.
    fn keys() -> Vec<Vec<u8>> {
        let part = |number: u64| format!("/part-{}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60);
        let mut keys: Vec<Vec<u8>> =
            (0..6000u64).map(|i| (0..9).map(|at| part(i >> at)).collect::<String>().into_bytes()).collect();
        keys.sort();
        keys
    }

    #[test]
    fn nodes_do_not_depend_on_memory() {
        let storage = MemoryStorage::default();
        let spills = Spills { storage: &storage, folder: Path::new("/") };
        let keys = keys();
        let made = [1 << 20, 3000, 1].map(|limit_bytes| {
            let mut separators = Separators::new(spills, limit_bytes);
            for pair in keys.windows(2).skip(PAGE_KEYS - 1).step_by(PAGE_KEYS) {
                separators.push(&pair[0], &pair[1]).expect("kept");
            }
            let mut nodes = Vec::new();
            let levels = trie::make(&separators, &mut |node| {
                nodes.push(*node);
                Ok(())
            });
            (levels.expect("made"), nodes)
        });
        assert!(made[0].0 > 2 && made[0].1.len() > 30, "{} nodes", made[0].1.len());
        assert!(made[1] == made[0] && made[2] == made[0], "other nodes in little memory");
    }

    #[test]
    fn a_sample_is_of_even_steps() {
        let keys = keys();
        let mut sample = Sample::default();
        keys.iter().cycle().take(16 * 5000).for_each(|key| sample.add(key));
        assert_eq!(sample.step, 8, "5000 pages");
        assert_eq!(sample.pages.len(), 625);
        assert!(sample.pages.iter().all(|page| page.len() == PAGE_KEYS - 1));
        // What is coded comes back.
        let (coder, mut scratch) = (sample.coder(), Vec::new());
        let table = coder.table();
        for text in [&b"/part-1/part-2"[..], b"", b"\xFF\x00\x00", b"never seen: \xFE"] {
            let (mut codes, mut back) = (Vec::new(), Vec::new());
            coder.code(text, &mut scratch, &mut codes);
            table.decode(&codes, usize::MAX, &mut back);
            assert_eq!(back, text);
        }
        let (mut short, mut long) = (Vec::new(), Vec::new());
        coder.code(b"/part-3/part-4/part-5", &mut scratch, &mut short);
        assert!(short.len() < 11, "{} codes of 21 bytes", short.len());
        coder.code(b"!!!!", &mut scratch, &mut long);
        assert_eq!(long.len(), 8, "escapes");
    }
}
