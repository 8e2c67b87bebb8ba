//! The descent of a compressed tree: a record and then the lines of one page, level by level.
//!
//! At each page the query becomes a word ([`Probe`]): its distance from the page's base, or its kept nibbles.
//! If no word represents it (it is below the base, above all distances, or differs from the page's keys in a
//! dropped nibble), the probe is a word that compares the same way with all kept words, or the page's last
//! child.
//!
//! The steps are those of [`super::descent`], for N queries at once; a record or a page outside the bytes
//! leads to the first child.

use super::descent::child;
use crate::arch::{Simd, prefetch};
use pleach_format::classic::TreeWord;
use pleach_format::classic::packed::{DELTA_BYTES, Delta, Form, PARTIAL_BYTES, Paged, Partial};
use pleach_format::classic::{LineLevel, nodes};

/// One level of pages.
#[derive(Clone, Debug)]
pub(super) struct Level {
    levels: u32,
    last: u64,
    /// First byte of the first record.
    records: u64,
    /// Lines by the logarithm of the width (1 to 4), and their d_K.
    lines: [(Vec<LineLevel>, u32); 5],
    /// For partial keys: width, first page, and bytes from one page to the next.
    width: u32,
    place: u64,
    stride: u64,
}

/// Returns the levels of a tree, top first.
pub(super) fn levels(paged: &Paged) -> Vec<Level> {
    let (places, _) = paged.partial_places();
    let first_width = if let Form::Partial { first } = paged.form() { first } else { 4 };
    let level = |(number, pages): (usize, &pleach_format::classic::PageLevel)| {
        let lines = std::array::from_fn(|log| {
            let tree = paged.tree(1 << log).filter(|_| log > 0);
            let lines = tree.and_then(|tree| Some(tree.pages().get(number)?.lines.clone()));
            (lines.unwrap_or_default(), tree.map_or(1, |tree| tree.geometry().d_k))
        });
        let width = if number == 0 { first_width } else { 4 };
        Level {
            levels: pages.levels,
            last: pages.last,
            records: paged.records()[number] * paged.record_bytes() as u64,
            lines,
            width,
            place: places.get(number).copied().unwrap_or(0),
            stride: paged.partial_stride(width, number),
        }
    };
    paged.levels().iter().enumerate().map(level).collect()
}

/// A query in a page.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// First byte of the page.
    place: u64,
    /// Logarithm of the width; 0 if there is nothing to compare.
    log: usize,
    word: u128,
    /// The child, if there is nothing to compare.
    child: u64,
}

impl Probe {
    fn first() -> Self {
        Self::default()
    }
    fn last(level: &Level) -> Self {
        Self { child: nodes(level.levels), ..Self::default() }
    }
}

/// Form of the records, which decides how queries become words.
pub(super) trait Records<W>: Copy + Send + Sync {
    /// Bytes of a record.
    const BYTES: usize;
    /// Returns true if pages can have words of `bytes` bytes; no other search is compiled.
    fn has_width(bytes: usize) -> bool;
}

/// Records of distances.
#[derive(Clone, Copy)]
pub(super) struct Distances;
/// Records of kept nibbles.
#[derive(Clone, Copy)]
pub(super) struct Nibbles;

impl<W> Records<W> for Distances {
    const BYTES: usize = DELTA_BYTES;
    #[inline(always)]
    fn has_width(bytes: usize) -> bool {
        bytes <= size_of::<W>().min(8)
    }
}
impl<W> Records<W> for Nibbles {
    const BYTES: usize = PARTIAL_BYTES;
    #[inline(always)]
    fn has_width(bytes: usize) -> bool {
        bytes >= 4
    }
}

/// Packs the kept bits of a key.
///
/// # Safety
/// The caller guarantees BMI2 with `PEXT`.
#[inline(always)]
unsafe fn extract<const PEXT: bool>(record: &Partial, key: u128) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if PEXT {
        let (high, low) = ((record.mask >> 64) as u64, record.mask as u64);
        // SAFETY: the caller guarantees BMI2 with `PEXT`; no memory is read.
        let (upper, lower) = unsafe {
            use std::arch::x86_64::_pext_u64;
            (_pext_u64((key >> 64) as u64, high), _pext_u64(key as u64, low))
        };
        return u128::from(upper) << low.count_ones() | u128::from(lower);
    }
    record.word(key)
}

/// # Safety
/// The caller guarantees BMI2 with `PEXT`.
#[inline(always)]
unsafe fn probe<R: Records<W>, W: TreeWord, const PEXT: bool>(
    level: &Level,
    bytes: &[u8],
    page: u64,
    query: W,
) -> Probe {
    let at = (level.records + page * R::BYTES as u64) as usize;
    let record = bytes.get(at..).unwrap_or_default();
    if R::BYTES == DELTA_BYTES {
        let Some(record) = record.first_chunk() else { return Probe::first() };
        let Delta { base, place, width } = Delta::decode(*record);
        if !matches!(width, 2 | 4 | 8) {
            return Probe::first();
        }
        let query = query.widen() as u64;
        // Saturate: no word is below 0, which is right for a query under the base.
        let word = query.saturating_sub(base);
        if word > u64::MAX >> (64 - 8 * width) {
            return Probe::last(level);
        }
        Probe { place, log: width.ilog2() as usize, word: word.into(), child: 0 }
    } else {
        let Some(record) = record.first_chunk() else { return Probe::first() };
        let record = Partial::decode(record);
        let bits = 8 * level.width;
        let (key, above) = record.settle(query.widen(), bits);
        // SAFETY: the caller guarantees BMI2 with `PEXT`.
        let word = unsafe { extract::<PEXT>(&record, key) };
        let place = level.place + page * level.stride;
        let probe = Probe { place, log: level.width.ilog2() as usize, word, child: 0 };
        if !above {
            probe
        } else if word >= u128::MAX >> (128 - bits) {
            Probe::last(level)
        } else {
            Probe { word: word + 1, ..probe }
        }
    }
}

/// Moves queries in pages of words `V` down the lines of their pages.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn lines<S: Simd, V: TreeWord, const N: usize>(
    level: &Level,
    bytes: &[u8],
    probes: &[Probe; N],
    parts: &[usize; N],
    locals: &mut [u64; N],
) {
    let (lines, d_k) = &level.lines[const { V::BYTES.ilog2() as usize }];
    let words: [V; N] = std::array::from_fn(|s| V::narrow(probes[s].word));
    let mut places: [u64; N] = std::array::from_fn(|s| probes[s].place);
    for (depth, line) in lines.iter().enumerate() {
        let next = lines.get(depth + 1);
        for s in 0..N {
            // SAFETY: the caller guarantees the CPU features of `S`.
            let child = unsafe { child::<S, V>(bytes, places[s], line.levels, *d_k, words[s]) };
            locals[s] = locals[s] << line.levels | child;
            if let Some(next) = next {
                locals[s] = locals[s].min(next.last[parts[s]]);
                // Forged places can be any number below 2^56, and slots are below 2^52: no overflow.
                places[s] = probes[s].place + next.slot(parts[s], locals[s]) * V::BYTES as u64;
                if N > 1 {
                    prefetch(bytes.as_ptr().wrapping_add(places[s] as usize));
                }
            }
        }
    }
}

/// Returns the gaps in which a group's queries end.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and BMI2 with `PEXT`.
#[inline(always)]
pub(super) unsafe fn group<S: Simd, R: Records<W>, W: TreeWord, const PEXT: bool, const N: usize>(
    tree: &[Level],
    bytes: &[u8],
    queries: &[W; N],
) -> [u64; N] {
    let mut gaps = [0u64; N];
    for (number, level) in tree.iter().enumerate() {
        let mut probes = [Probe::default(); N];
        let mut locals = [0u64; N];
        for s in 0..N {
            gaps[s] = gaps[s].min(level.last);
            // SAFETY: the caller guarantees BMI2 with `PEXT`.
            probes[s] = unsafe { probe::<R, W, PEXT>(level, bytes, gaps[s], queries[s]) };
            locals[s] = probes[s].child;
            if N > 1 {
                prefetch(bytes.as_ptr().wrapping_add(probes[s].place as usize));
            }
        }
        // The queries of a group are nearly always in pages of one width, and then all take the same steps.
        let log = probes[0].log;
        let same = probes.iter().all(|probe| probe.log == log);
        let parts: [usize; N] = std::array::from_fn(|s| usize::from(gaps[s] == level.last));
        // SAFETY: the caller guarantees the CPU features of `S`.
        unsafe {
            match log {
                _ if !same => {
                    for s in 0..N {
                        let (probe, local) = ([probes[s]], &mut [locals[s]]);
                        match probe[0].log {
                            1 if R::has_width(2) => {
                                lines::<S, u16, 1>(level, bytes, &probe, &[parts[s]], local)
                            }
                            2 if R::has_width(4) => {
                                lines::<S, u32, 1>(level, bytes, &probe, &[parts[s]], local)
                            }
                            3 if R::has_width(8) => {
                                lines::<S, u64, 1>(level, bytes, &probe, &[parts[s]], local)
                            }
                            4 if R::has_width(16) => {
                                lines::<S, u128, 1>(level, bytes, &probe, &[parts[s]], local)
                            }
                            _ => {}
                        }
                        locals[s] = local[0];
                    }
                }
                1 if R::has_width(2) => lines::<S, u16, N>(level, bytes, &probes, &parts, &mut locals),
                2 if R::has_width(4) => lines::<S, u32, N>(level, bytes, &probes, &parts, &mut locals),
                3 if R::has_width(8) => lines::<S, u64, N>(level, bytes, &probes, &parts, &mut locals),
                4 if R::has_width(16) => lines::<S, u128, N>(level, bytes, &probes, &parts, &mut locals),
                _ => {}
            }
        }
        for s in 0..N {
            gaps[s] = gaps[s] << level.levels | locals[s];
            if let Some(next) = tree.get(number + 1)
                && N > 1
            {
                let record = next.records + gaps[s].min(next.last) * R::BYTES as u64;
                prefetch(bytes.as_ptr().wrapping_add(record as usize));
            }
        }
    }
    gaps
}
