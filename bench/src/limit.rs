//! The machine's own limit: one random line of a file's mapped tuple lines for each look-up.
//!
//! No search can be faster that touches a tuple line of its own for each answer, so this is what a
//! look-up is measured against. The lines are drawn by a mixer, prefetched some way ahead, and eight
//! bytes of each are read. Which way is best differs between machines, so all of [`FORMS`] are
//! measured: a *ring* keeps `depth` lines in flight all the time, a *batch* asks for `depth` lines and
//! then reads them, and with depth 0 the processor is on its own.

use crate::BenchError;
use crate::data::{below, mix64};
use memmap2::Mmap;
use pleach::Header;
use pleach_peers::prefetch;
use std::fs::File;
use std::path::Path;

/// Bytes of a line.
const LINE_BYTES: usize = 64;
type Line = [u8; LINE_BYTES];

/// A way to have several lines in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One after the other, without a hint.
    Plain,
    /// A sliding window of this many lines.
    Ring(usize),
    /// This many lines are prefetched, then read.
    Batch(usize),
}

/// Everything that is tried.
pub const FORMS: [Form; 11] = [
    Form::Plain,
    Form::Ring(8),
    Form::Ring(16),
    Form::Ring(32),
    Form::Ring(64),
    Form::Ring(128),
    Form::Batch(8),
    Form::Batch(16),
    Form::Batch(32),
    Form::Batch(64),
    Form::Batch(128),
];

impl Form {
    /// Returns the name in reports: `ring 32`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Plain => "no prefetch".to_owned(),
            Self::Ring(depth) => format!("ring {depth}"),
            Self::Batch(depth) => format!("batch {depth}"),
        }
    }

    /// Reads `count` random lines, the draws `first..first + count`, and returns the sum of their first
    /// eight bytes, which is the same for every form. 0 without lines.
    #[must_use]
    pub fn read(self, lines: &[Line], first: u64, count: u64) -> u64 {
        if lines.is_empty() {
            return 0;
        }
        match self {
            Self::Plain => plain(lines, first, count),
            Self::Ring(8) => ring::<8>(lines, first, count),
            Self::Ring(16) => ring::<16>(lines, first, count),
            Self::Ring(32) => ring::<32>(lines, first, count),
            Self::Ring(64) => ring::<64>(lines, first, count),
            Self::Ring(_) => ring::<128>(lines, first, count),
            Self::Batch(8) => batch::<8>(lines, first, count),
            Self::Batch(16) => batch::<16>(lines, first, count),
            Self::Batch(32) => batch::<32>(lines, first, count),
            Self::Batch(64) => batch::<64>(lines, first, count),
            Self::Batch(_) => batch::<128>(lines, first, count),
        }
    }
}

#[inline(always)]
fn draw(lines: &[Line], i: u64) -> &Line {
    &lines[below(mix64(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)), lines.len() as u64) as usize]
}

#[inline(always)]
fn load(line: &Line) -> u64 {
    line.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline(never)]
fn plain(lines: &[Line], first: u64, count: u64) -> u64 {
    (first..first + count).fold(0, |sum, i| load(draw(lines, i)).wrapping_add(sum))
}

#[inline(never)]
fn ring<const DEPTH: usize>(lines: &[Line], first: u64, count: u64) -> u64 {
    let depth = DEPTH as u64;
    if count < depth {
        return plain(lines, first, count);
    }
    let mut window: [&Line; DEPTH] = std::array::from_fn(|i| draw(lines, first + i as u64));
    window.iter().for_each(|line| prefetch(*line));
    let mut sum = 0u64;
    for i in 0..count - depth {
        let next = draw(lines, first + i + depth);
        prefetch(next);
        let now = std::mem::replace(&mut window[i as usize % DEPTH], next);
        sum = sum.wrapping_add(load(now));
    }
    window.iter().fold(sum, |sum, line| sum.wrapping_add(load(line)))
}

#[inline(never)]
fn batch<const DEPTH: usize>(lines: &[Line], first: u64, count: u64) -> u64 {
    let whole = count - count % DEPTH as u64;
    let mut sum = 0u64;
    for start in (first..first + whole).step_by(DEPTH) {
        let group: [&Line; DEPTH] = std::array::from_fn(|i| {
            let line = draw(lines, start + i as u64);
            prefetch(line);
            line
        });
        sum = group.iter().fold(sum, |sum, line| sum.wrapping_add(load(line)));
    }
    sum.wrapping_add(plain(lines, first + whole, count - whole))
}

/// The tuple lines of a file, mapped as the reader maps them.
pub struct MappedLines {
    map: Mmap,
    offset: usize,
    lines: usize,
}

impl MappedLines {
    /// Maps a file whose header was checked, with the reader's advice (huge pages, then random).
    ///
    /// # Errors
    /// [`BenchError::Io`] if it cannot be opened or mapped.
    pub fn open(path: &Path, header: &Header) -> Result<Self, BenchError> {
        let failed = |operation| move |source| BenchError::Io { operation, path: path.to_owned(), source };
        let file = File::open(path).map_err(failed("open"))?;
        // SAFETY: a published file is never written again, and this one lies in the benchmark's own
        // folder: no process changes or truncates it while it is mapped.
        let map = unsafe { Mmap::map(&file) }.map_err(failed("map"))?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        let too_large = |_| failed("map")(std::io::ErrorKind::FileTooLarge.into());
        let offset = usize::try_from(header.lines_offset).map_err(too_large)?;
        let lines = usize::try_from(header.lines).map_err(too_large)?;
        Ok(Self { map, offset, lines })
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        let bytes = self.map.get(self.offset..).unwrap_or_default();
        let (lines, _) = bytes.as_chunks();
        &lines[..self.lines.min(lines.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_the_same_lines() {
        let lines: Vec<Line> = (0..1000u64)
            .map(|i| {
                let mut line = [0; LINE_BYTES];
                line[..8].copy_from_slice(&mix64(i).to_le_bytes());
                line
            })
            .collect();
        for count in [0, 1, 7, 8, 127, 128, 129, 5000] {
            let expected = Form::Plain.read(&lines, 3, count);
            for form in FORMS {
                assert_eq!(form.read(&lines, 3, count), expected, "{} {count}", form.name());
                assert_eq!(form.read(&[], 3, count), 0);
            }
        }
    }
}
