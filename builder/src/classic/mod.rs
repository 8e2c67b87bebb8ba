//! Builds classic FAST trees: sorted keys in, the paper's blocked layout out, on the caller's pool.
//!
//! ```text
//! mod.rs      levels of pages: what is read, what is written, who does it
//! keys.rs     keys of a tree, their samples, and why a tree is refused
//! permute.rs  one page: its keys in order into its lines
//! run.rs      lines filled in one run; the scalar kernel
//! avx2.rs     the same with vector permutes and gathers
//! narrow.rs   keys of a page as narrow words: distances, partial keys
//! page.rs     one page of a compressed tree: record, narrow words, then permute.rs
//! paged.rs    compressed trees in memory
//! stream.rs   the levels of a tree of any size: keys that are read again, in pieces
//! section.rs  the FAST section of a file, made from such pieces
//! ```
//! Each level of pages is one parallel pass over its output. The lowest level, which is almost all of the
//! tree, reads each key once, in order. A level above first reads every 2^below-th key into a short list, so
//! that its own permutation stays in the cache. Kim et al., TODS 36(4), 2011, section 5.1.1.

mod avx2;
mod keys;
mod narrow;
mod page;
mod paged;
mod permute;
mod run;
pub(crate) mod section;
mod stream;
#[cfg(test)]
mod tests;

use crate::parallel;
use keys::{check, sample};
use permute::{Shape, permute};
use pleach_format::classic::{Geometry, SLACK_BYTES};

pub use keys::{ClassicError, Vectors};
pub use page::TreeKey;
pub use paged::Compressed;

/// Writes the tree of `keys` to `out`, whose length is
/// [`Tree::bytes`](pleach_format::classic::Tree::bytes).
///
/// Keys must ascend; equal keys are allowed. If they do not ascend, the tree gives wrong answers. O(keys)
/// work on the threads of the current pool; extra memory for the keys of the upper pages, 1/2^levels of all.
///
/// # Errors
/// [`ClassicError`] if the geometry is not valid for the keys or aligned, or a length does not match it.
pub fn build<W: TreeKey>(
    keys: &[W],
    geometry: &Geometry,
    vectors: Vectors,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let tree = geometry.tree().filter(|_| geometry.key_bytes as usize == W::BYTES && !geometry.aligned);
    let tree = tree.ok_or(ClassicError::Geometry)?;
    check(keys, geometry)?;
    if out.len() as u64 != tree.bytes() {
        return Err(ClassicError::Output { expected: tree.bytes(), found: out.len() as u64 });
    }
    let bytes = tree.slots() as usize * W::BYTES;
    let (slots, rest) = out.split_at_mut(bytes);
    debug_assert!(rest.len() as u64 >= SLACK_BYTES);
    rest.fill(0);
    let avx2 = vectors.avx2();
    let mut slots = W::slots_mut(slots);
    for level in tree.pages() {
        let span = level.last * level.slots[0] + level.slots[1];
        let (pages, after) = slots.split_at_mut(span as usize);
        slots = after;
        let shape = Shape::new(&tree, level);
        let samples;
        // One list for the level: its keys and, between two pages, the separator above them.
        let words = if level.below == 0 {
            keys
        } else {
            samples = sample(keys, level.below);
            &samples
        };
        let whole = level.slots[0] as usize;
        if level.last < 64 {
            for (page, out) in pages.chunks_mut(whole.max(1)).take(level.last as usize + 1).enumerate() {
                let words = words.get(page << level.levels..).unwrap_or_default();
                permute(&shape, usize::from(page as u64 == level.last), words, avx2, true, out);
            }
            continue;
        }
        let per_task = (TASK_SLOTS / whole).max(1);
        // Unless lines fill a few registers, a small page is filled fastest slot by slot.
        let direct = shape.is_direct();
        parallel::jobs(pages.chunks_mut(whole * per_task).enumerate(), |(task, pages)| {
            for (page, out) in pages.chunks_mut(whole).enumerate() {
                let page = task * per_task + page;
                let words = words.get(page << level.levels..).unwrap_or_default();
                let part = usize::from(page as u64 == level.last);
                match words.first_chunk() {
                    Some(words) if direct && part == 0 => shape.fill_small(words, out),
                    _ => permute(&shape, part, words, avx2, false, out),
                }
            }
        });
    }
    Ok(())
}

/// Requests huge pages for a buffer that a tree will be written to. Call it before the buffer is touched: a
/// search over 4 KiB pages pays for the address of nearly every line. A hint only.
pub fn advise_huge<T>(buffer: &mut [T]) {
    crate::hint::advise_huge(buffer);
}

/// Number of slots written by one task.
const TASK_SLOTS: usize = 1 << 16;
