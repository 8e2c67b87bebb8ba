//! The FAST section of a file, with the words of the tuple lines in which its searches end.

use super::Classic;
use crate::{Index, ReadError, Word};
use pleach_format::classic::packed::Form;
use pleach_format::classic::{Geometry, TreeWord, section};
use pleach_format::line;
use pleach_format::section::Tag;

/// The FAST section of a file, and a copy of its words. Searches return no errors: if a mapped file was
/// truncated in the meantime, which [`Index::check_mapping`] reports, ranks are meaningless.
#[derive(Clone, Debug)]
pub struct ClassicTree<'a, W> {
    geometry: Geometry,
    form: Form,
    bytes: &'a [u8],
    words: Vec<W>,
}

impl<'a, W: TreeWord + Word> ClassicTree<'a, W> {
    /// Opens the tree of a file; `Ok(None)` if the file has none of words `W`. O(tuples).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block of the tree or of the tuples does not match its sum, which only
    /// [`Verify::Touched`](crate::Verify::Touched) checks; [`ReadError::MappingLost`] if the file was
    /// truncated while it was mapped.
    pub fn open(index: &'a Index) -> Result<Option<Self>, ReadError> {
        let header = index.header();
        if let (Some(verified), Some(section)) = (index.verified(), header.section(Tag::FAST)) {
            verified.check_range(section.offset(), section.entry.length.get())?;
            let lines = header.line_offset(header.lines) - header.lines_offset;
            verified.check_range(header.lines_offset, lines)?;
        }
        let tree = Self::read(index);
        index.check_mapping()?;
        Ok(tree)
    }

    fn read(index: &'a Index) -> Option<Self> {
        let header = index.header();
        let entry = header.section(Tag::FAST)?.entry;
        let (geometry, form) = section::load(&entry.parameters, entry.elements.get())?;
        if header.geometry.key_bytes != <W as Word>::BYTES || geometry.keys != index.len() {
            return None;
        }
        let bytes = index.bytes().get(usize::try_from(entry.offset.get()).ok()?..)?;
        let bytes = bytes.get(..usize::try_from(entry.length.get()).ok()?)?;
        let lines = index.bytes().get(usize::try_from(header.lines_offset).ok()?..)?;
        let (lines, _) = lines.as_chunks::<64>();
        let words = lines.iter().take(usize::try_from(header.lines).ok()?).enumerate();
        let words = words.flat_map(|(number, line)| {
            let tuples = header.geometry.tuples_in_line(number as u64, index.len());
            (0..tuples).map(|slot| line::key::<W>(line, slot))
        });
        Some(Self { geometry, form, bytes, words: words.collect() })
    }

    /// Returns the tree to search in; `None` if the file is damaged.
    #[must_use]
    pub fn search(&self) -> Option<Classic<'_, W>> {
        Classic::new(&self.geometry, self.form, self.bytes, &self.words)
    }
}
