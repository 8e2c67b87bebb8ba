//! Permutation of one page: its sorted keys are moved to their places in its lines.
//!
//! Line `k` of a depth with `below` levels under it (inside the page) takes, for the key of rank `r` in the
//! line, word `(k << (levels + below)) + ((r + 1) << below) - 1` of the page. A kernel fills the lines whose
//! last word exists. The few others are filled slot by slot, with all ones for words that do not exist.

use super::avx2;
use super::run::{Lines, Run, scalar, slot_of};
use crate::parallel;
use pleach_format::classic::{PageLevel, Tree, TreeWord, nodes};

/// Number of words of a page that is filled in one step.
pub(crate) const SMALL: usize = 256;
/// Not a valid rank in such a page: it has at most 255 words.
const FREE: u8 = 255;

/// Lines of the pages of one level.
#[derive(Debug)]
pub(crate) struct Shape {
    pub lines: Vec<Lines>,
    /// For small pages: the rank in the page of the key stored in each slot of a whole page; [`FREE`] for
    /// free slots.
    pub(crate) small: Vec<u8>,
    direct: bool,
}

impl Shape {
    pub(crate) fn new(tree: &Tree, level: &PageLevel) -> Self {
        let lines = level.lines.iter().map(|line| Lines {
            levels: line.levels,
            below: line.below - level.below,
            pitch: line.pitch as usize,
            group: line.group,
            start: line.start.map(|slot| slot as usize),
            last: line.last,
            order: line_order(line.levels, tree.geometry().d_k),
        });
        let lines: Vec<Lines> = lines.collect();
        let mut small = Vec::new();
        if !level.joined && level.levels <= SMALL.ilog2() {
            small.resize(level.slots[0] as usize, FREE);
            for line in &lines {
                let n = line.order.len();
                for number in 0..=line.last[0] as usize {
                    let first = line.start[0] + slot_of(line, number);
                    let base = number << (line.levels + line.below);
                    for (slot, &rank) in small[first..first + n].iter_mut().zip(&line.order) {
                        *slot = (base + ((rank as usize + 1) << line.below) - 1) as u8;
                    }
                }
            }
        }
        let direct = !small.is_empty() && !small.contains(&FREE);
        Self { lines, small, direct }
    }

    /// Fills a small page that is not the last one. `words` begins with the words of the page; the others are
    /// not used, but if the page has free slots, word 255 must be all ones.
    #[inline(always)]
    pub(crate) fn fill_small<W: TreeWord>(&self, words: &[W; SMALL], out: &mut [W::Bytes]) {
        for (out, &rank) in out.iter_mut().zip(&self.small) {
            *out = words[usize::from(rank)].to_bytes();
        }
    }

    /// Returns true if whole pages are small, so that [`Shape::fill_small`] fills them.
    #[inline(always)]
    pub(crate) fn is_small(&self) -> bool {
        !self.small.is_empty()
    }

    /// Returns true if whole pages are small and without free slots, so that words need not be copied first.
    #[inline(always)]
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }
}

/// Returns, for each slot of a line of `levels` levels, the rank in the line of the key stored there.
fn line_order(levels: u32, d_k: u32) -> Vec<u32> {
    let rank = |slot| pleach_format::classic::rank_in_line(levels, d_k, slot) as u32;
    (0..nodes(levels)).map(rank).collect()
}

/// A word type with a kernel.
pub trait Lane: TreeWord {
    /// Fills the lines of a run.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn fill(run: &Run<'_, Self>, avx2: bool, out: &mut [Self::Bytes]);
}

macro_rules! lanes {
    ($($t:ident $kernel:path),*) => {$(
        impl Lane for $t {
            #[inline]
            #[allow(private_interfaces)]
            fn fill(run: &Run<'_, Self>, avx2: bool, out: &mut [Self::Bytes]) {
                if !(avx2 && $kernel(run, out)) {
                    scalar(run, 0, out);
                }
            }
        }
    )*};
}
lanes!(u16 none, u32 avx2::fill32, u64 avx2::fill64, u128 none);

fn none<W: TreeWord>(_: &Run<'_, W>, _: &mut [W::Bytes]) -> bool {
    false
}

/// Number of slots per task inside one page.
const TASK_SLOTS: usize = 1 << 16;

/// Fills one page from its words; missing words at the end count as all ones. `part` is 1 for the last page
/// of its level.
pub(crate) fn permute<W: Lane>(
    shape: &Shape,
    part: usize,
    words: &[W],
    avx2: bool,
    parallel: bool,
    out: &mut [W::Bytes],
) {
    for (depth, lines) in shape.lines.iter().enumerate() {
        let end = shape.lines.get(depth + 1).map_or(out.len(), |next| next.start[part]);
        let out = &mut out[lines.start[part]..end];
        let total = lines.last[part] as usize + 1;
        if !parallel || out.len() <= TASK_SLOTS {
            fill_lines(lines, words, 0, total, avx2, out);
            continue;
        }
        let groups = (TASK_SLOTS / lines.pitch).max(1);
        parallel::jobs(out.chunks_mut(groups * lines.pitch).enumerate(), |(task, out)| {
            let first = (task * groups) << lines.group;
            fill_lines(lines, words, first, (total - first).min(groups << lines.group), avx2, out);
        });
    }
}

#[inline]
pub(crate) fn fill_lines<W: Lane>(
    lines: &Lines,
    words: &[W],
    first: usize,
    total: usize,
    avx2: bool,
    out: &mut [W::Bytes],
) {
    let n = nodes(lines.levels) as usize;
    if lines.pitch != n {
        out.fill(W::MAX.to_bytes());
    }
    // Line k is whole if word (k << levels + below) + (n << below) - 1 exists.
    let height = lines.levels + lines.below;
    let whole = (words.len() + (1 << lines.below)) >> height;
    let count = whole.saturating_sub(first).min(total);
    let run = Run { lines, words, first, count };
    W::fill(&run, avx2, out);
    for line in count..total {
        let (base, slot) = (run.base(line), run.slot(line));
        for (out, &rank) in out[slot..slot + n].iter_mut().zip(&lines.order) {
            let word = words.get(base + ((rank as usize + 1) << lines.below) - 1);
            *out = word.copied().unwrap_or(W::MAX).to_bytes();
        }
    }
}
