//! A tree of an open file, and the ranks to which it leads.

use crate::arch::Isa;
use crate::{btree, classic, harmonia::engine as harmonia, nodes};
use pleach_format::Header;
use pleach_format::key::Word;

/// Queries that go down the tree together; a multiple of a group.
pub(super) const CHUNK: usize = 64;

/// A tree of an open file.
#[derive(Clone, Copy)]
pub(crate) struct TreePlan<'a> {
    kind: Kind<'a>,
    isa: Isa,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Fast(&'a classic::Layout, &'a [u8]),
    Harmonia(harmonia::Tree<'a>),
    Btree(btree::Tree<'a>),
}

/// Returns the bytes of a section.
fn section(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(offset).ok()?..)?.get(..usize::try_from(length).ok()?)
}

impl<'a> TreePlan<'a> {
    /// Returns the file's FAST tree of this layout.
    pub(crate) fn fast(
        header: &Header,
        bytes: &'a [u8],
        layout: &'a classic::Layout,
        isa: Isa,
    ) -> Option<Self> {
        let (offset, shape) = header.fast?;
        let section = section(bytes, offset, shape.bytes)?;
        Some(Self { kind: Kind::Fast(layout, section), isa })
    }

    /// Returns Harmonia's tree of the file.
    pub(crate) fn harmonia(header: &'a Header, bytes: &'a [u8], isa: Isa) -> Option<Self> {
        let (offset, shape) = header.harmonia.as_ref()?;
        let tree = harmonia::Tree::new(shape, section(bytes, *offset, shape.bytes)?)?;
        Some(Self { kind: Kind::Harmonia(tree), isa })
    }

    /// Returns the contiguous B+tree of the file.
    pub(crate) fn btree(header: &'a Header, bytes: &'a [u8], isa: Isa) -> Option<Self> {
        let (offset, shape) = header.btree.as_ref()?;
        let tree = btree::Tree::new(shape, section(bytes, *offset, shape.bytes)?)?;
        Some(Self { kind: Kind::Btree(tree), isa })
    }

    /// Reports whether ranks are only near.
    pub(super) fn is_lossy(&self) -> bool {
        matches!(self.kind, Kind::Fast(layout, _) if layout.is_lossy)
    }

    /// Writes the ranks to which queries lead, at most [`CHUNK`] of them. The rank of a key above all may be that
    /// of the last key.
    pub(super) fn ranks<W: Word>(&self, queries: &[W], ranks: &mut [u64]) {
        let (isa, count) = (self.isa, queries.len().min(ranks.len()).min(CHUNK));
        let (queries, ranks) = (&queries[..count], &mut ranks[..count]);
        match &self.kind {
            Kind::Harmonia(tree) => nodes::search(tree, isa, queries, ranks),
            Kind::Btree(tree) => nodes::search(tree, isa, queries, ranks),
            Kind::Fast(layout, bytes) => {
                // The words of a tree are of a trait of their own: a copy of so few costs nothing beside the search.
                macro_rules! search {
                    ($word:ty) => {{
                        let mut words: [$word; CHUNK] = [0; CHUNK];
                        words
                            .iter_mut()
                            .zip(queries)
                            .for_each(|(word, query)| *word = query.to_u128() as $word);
                        layout.gaps(isa, bytes, &words[..count], ranks);
                    }};
                }
                match W::BYTES {
                    4 => search!(u32),
                    8 => search!(u64),
                    _ => search!(u128),
                }
            }
        }
    }

    /// Returns the rank to which a query leads.
    pub(super) fn rank<W: Word>(&self, query: W) -> u64 {
        let mut rank = [0];
        self.ranks(&[query], &mut rank);
        rank[0]
    }
}
