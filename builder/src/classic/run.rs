//! Lines of a page that a kernel fills in one run, and the kernel that runs on every CPU.

use pleach_format::classic::TreeWord;

/// Lines of one depth of a page.
#[derive(Debug)]
pub(crate) struct Lines {
    pub levels: u32,
    /// Number of levels under them, inside the page.
    pub below: u32,
    pub pitch: usize,
    pub group: u32,
    pub start: [usize; 2],
    pub last: [u64; 2],
    /// Rank in its line of the key stored in each slot.
    pub order: Vec<u32>,
}

/// Returns the first slot of a line, relative to the first line of its depth.
#[inline(always)]
pub(crate) fn slot_of(lines: &Lines, line: usize) -> usize {
    let inside = line & ((1 << lines.group) - 1);
    (line >> lines.group) * lines.pitch + inside * lines.order.len()
}

/// A run of whole groups of lines, which begins with line `first` of the page.
pub(crate) struct Run<'a, W> {
    pub lines: &'a Lines,
    pub words: &'a [W],
    pub first: usize,
    /// Number of lines whose words all exist.
    pub count: usize,
}

impl<W> Run<'_, W> {
    /// Returns the first word of a line, counted from the run's first word.
    #[inline(always)]
    pub(crate) fn base(&self, line: usize) -> usize {
        (self.first + line) << (self.lines.levels + self.lines.below)
    }

    /// Returns the first slot of a line in the run's output.
    #[inline(always)]
    pub(crate) fn slot(&self, line: usize) -> usize {
        slot_of(self.lines, line)
    }
}

/// Fills lines `from..run.count`: the reference kernel.
pub(crate) fn scalar<W: TreeWord>(run: &Run<'_, W>, from: usize, out: &mut [W::Bytes]) {
    let below = run.lines.below;
    let n = run.lines.order.len();
    for line in from..run.count {
        let base = run.base(line);
        let words = &run.words[base..base + (n << below)];
        let slot = run.slot(line);
        for (out, &rank) in out[slot..slot + n].iter_mut().zip(&run.lines.order) {
            *out = words[((rank as usize + 1) << below) - 1].to_bytes();
        }
    }
}
