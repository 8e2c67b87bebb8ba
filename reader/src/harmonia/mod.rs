//! Search in Harmonia's B+tree, if a file has one (Yan et al., PPoPP 2019, sections 3.1 and 3.2.1).
//!
//! Nodes hold only keys. A small array of prefix sums leads from a node to its children, so a level costs the
//! lines of one node and an entry that is usually cached. Leaves are contiguous, so a range is a scan of
//! them. Ranks are those of the tuple lines.

pub(crate) mod engine;
#[cfg(test)]
mod tests;

use crate::Isa;
use crate::error::ReadError;
use crate::index::Index;
use crate::nodes;
use engine::Tree;
use pleach_format::harmonia::HarmoniaGeometry;
use pleach_format::key::Bits;
use pleach_format::short::Seek;
use pleach_format::{Key, Short, Value, Word};
use std::marker::PhantomData;

/// Keys encoded at a time.
const PIECE: usize = 1024;

/// The tree of an open file, with compile-time types. A file has one if it was built with
/// `--layout lines,spine,harmonia`. Look-ups by it are also those of [`Structure::Harmonia`](crate::Structure).
///
/// With [`Verify::Touched`](crate::Verify::Touched) the whole section is verified when the view is made. On
/// bytes that were not verified a rank may be wrong, but it is at most the number of tuples.
#[derive(Clone, Debug)]
pub struct Harmonia<'a, K, V> {
    index: &'a Index,
    shape: &'a HarmoniaGeometry,
    section: &'a [u8],
    tree: Tree<'a>,
    isa: Isa,
    types: PhantomData<(K, V)>,
}

impl Index {
    /// Returns Harmonia's tree, if the file has one of these types. O(section) with
    /// [`Verify::Touched`](crate::Verify::Touched), otherwise O(levels).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block of the tree does not match its sum, which only
    /// [`Verify::Touched`](crate::Verify::Touched) checks; [`ReadError::MappingLost`] if the file was
    /// truncated while it was mapped.
    pub fn harmonia<K: Key, V: Value>(&self) -> Result<Option<Harmonia<'_, K, V>>, ReadError> {
        Harmonia::new(self)
    }
}

impl<'a, K: Key, V: Value> Harmonia<'a, K, V> {
    /// Creates the view; `Ok(None)` if the file has no tree of these types.
    pub(crate) fn new(index: &'a Index) -> Result<Option<Self>, ReadError> {
        let fits = index.typed::<K, V>().is_ok();
        let Some((offset, shape)) = index.header().harmonia.as_ref().filter(|_| fits) else {
            return Ok(None);
        };
        if let Some(verified) = index.verified() {
            verified.check_range(*offset, shape.bytes)?;
        }
        let found = index.bytes().len() as u64;
        let section = usize::try_from(*offset).ok().and_then(|at| index.bytes().get(at..));
        let section = section.and_then(|bytes| bytes.get(..usize::try_from(shape.bytes).ok()?));
        let parts = section.and_then(|section| Some((section, Tree::new(shape, section)?)));
        let expected = offset.saturating_add(shape.bytes);
        let short = ReadError::from(pleach_format::FormatError::Truncated { expected, found });
        let (section, tree) = parts.ok_or(short)?;
        Ok(Some(Self { index, shape, section, tree, isa: index.isa(), types: PhantomData }))
    }

    /// Returns the shape of the tree.
    #[must_use]
    pub fn shape(&self) -> &HarmoniaGeometry {
        self.shape
    }

    /// Sets the instruction set. Answers do not depend on it.
    #[must_use]
    pub fn with(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// Returns the rank of the first tuple whose key is at least `key`; the number of tuples if there is
    /// none. O(levels) nodes.
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn lower_bound(&self, key: K) -> Result<u64, ReadError> {
        let mut rank = [0];
        self.lower_bounds(&[key], &mut rank)?;
        Ok(rank[0])
    }

    /// Writes the ranks of many keys, up to the length of `ranks`. The cache misses of queries overlap.
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn lower_bounds(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), ReadError> {
        match &self.index.header().short {
            None => self.search(keys, ranks, |key| (key.encode(), false)),
            Some(short) if short.word_bytes() == 4 => {
                self.search(keys, ranks, |key| place::<u32>(short, key))
            }
            Some(short) => self.search(keys, ranks, |key| place::<u64>(short, key)),
        }
        self.index.check_mapping()
    }

    /// Searches for the words that `place` returns; with `true` the rank is behind all tuples.
    fn search<W: Word>(&self, keys: &[K], ranks: &mut [u64], place: impl Fn(K) -> (W, bool)) {
        let (mut words, mut ends) = ([W::default(); PIECE], [false; PIECE]);
        for (keys, ranks) in keys.chunks(PIECE).zip(ranks.chunks_mut(PIECE)) {
            let count = keys.len().min(ranks.len());
            for ((word, is_end), &key) in words.iter_mut().zip(&mut ends).zip(&keys[..count]) {
                (*word, *is_end) = place(key);
            }
            nodes::search(&self.tree, self.isa, &words[..count], &mut ranks[..count]);
            for (rank, _) in ranks.iter_mut().zip(&ends[..count]).filter(|(_, is_end)| **is_end) {
                *rank = self.shape.tuples;
            }
        }
    }

    /// Returns the value of the first tuple with this key.
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn get(&self, key: K) -> Result<Option<V>, ReadError> {
        let rank = self.lower_bound(key)?;
        Ok(self.tuple(rank)?.filter(|(found, _)| found.encode() == key.encode()).map(|(_, value)| value))
    }

    /// Returns the tuple at `rank`, from its leaf; `None` past the end. O(1).
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn tuple(&self, rank: u64) -> Result<Option<(K, V)>, ReadError> {
        let tuple = self.leaf_tuple(rank);
        self.index.check_mapping()?;
        Ok(tuple)
    }

    fn leaf_tuple(&self, rank: u64) -> Option<(K, V)> {
        if rank >= self.shape.tuples {
            return None;
        }
        let (leaf, slot) = (rank / u64::from(self.shape.node_keys), rank % u64::from(self.shape.node_keys));
        let word_bytes = u64::from(self.shape.word_bytes);
        let key = (self.shape.inner + leaf) * self.shape.stride_bytes + slot * word_bytes;
        let key = self.section.get(usize::try_from(key).ok()?..)?.get(..word_bytes as usize)?;
        let width = V::Bits::BYTES;
        let value = if width == 0 {
            V::Bits::default()
        } else {
            let place = leaf * u64::from(self.shape.fanout) + slot;
            let at = self.shape.values_at + place * width as u64;
            V::Bits::read(self.section.get(usize::try_from(at).ok()?..)?.get(..width)?)
        };
        let key = match (&self.index.header().short, word_bytes) {
            (None, _) => K::Word::read(key),
            (Some(short), 4) => short.key(<u32 as Word>::read(key).into()),
            (Some(short), _) => short.key(<u64 as Word>::read(key)),
        };
        Some((K::decode(key), V::from_bits(value)))
    }

    /// Returns an iterator over the tuples with keys in `low..high`, in order: a scan of the leaves (section
    /// 3.2.1).
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn range(
        &self,
        low: K,
        high: K,
    ) -> Result<impl Iterator<Item = Result<(K, V), ReadError>> + '_, ReadError> {
        let (from, to) = (self.lower_bound(low)?, self.lower_bound(high)?);
        Ok((from..to).filter_map(|rank| self.tuple(rank).transpose()))
    }
}

/// Returns the short word whose lower bound is that of a key; or any word and true if the key is above all that
/// have a word.
fn place<S: Word>(short: &Short, key: impl Key) -> (S, bool) {
    match short.seek(key.encode()) {
        Seek::Word(word) | Seek::Before(word) => (S::from_u64(word), false),
        Seek::End => (S::MAX, true),
    }
}
