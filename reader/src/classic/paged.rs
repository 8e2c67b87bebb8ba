//! The descent of a compressed tree: a record and then the lines of one page, level by level.
//!
//! At each page the query becomes a word ([`Probe`]): its distance from the page's base, or its kept nibbles.
//! If no word represents it (it is below the base, above all distances, or differs from the page's keys in a
//! dropped nibble), the probe is a word that compares the same way with all kept words, or the page's last
//! child.
//!
//! The steps are those of [`super::descent`], for N queries at once; a record or a page outside the bytes
//! leads to the first child. Pages of one group may have words of different widths: then the queries of each
//! width go down their pages together.

use super::descent::{ask, child};
use crate::arch::{Simd, prefetch};
use pleach_format::classic::paged::{PageRecord, Paged};
use pleach_format::classic::{LineLevel, PageLevel, TreeWord, nodes};

/// One level of pages.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    levels: u32,
    last: u64,
    /// First byte of the first record.
    records: u64,
    /// Lines by the logarithm of the width (1 to 4), and their d_K.
    lines: [(Vec<LineLevel>, u32); 5],
}

/// Returns the levels of a tree, top first.
pub(super) fn levels(paged: &Paged) -> Vec<Level> {
    let level = |(number, pages): (usize, &PageLevel)| {
        let lines = std::array::from_fn(|log| {
            let tree = paged.tree(1 << log).filter(|_| log > 0);
            let lines = tree.and_then(|tree| Some(tree.pages().get(number)?.lines.clone()));
            (lines.unwrap_or_default(), tree.map_or(1, |tree| tree.geometry().d_k))
        });
        let records = paged.records()[number] * paged.record_bytes() as u64;
        Level { levels: pages.levels, last: pages.last, records, lines }
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
    fn last(level: &Level) -> Self {
        Self { child: nodes(level.levels), ..Self::default() }
    }
}

/// Packs the kept nibbles of a key.
///
/// # Safety
/// The caller guarantees BMI2 with `PEXT`.
#[inline(always)]
unsafe fn extract<W: TreeWord, const PEXT: bool>(record: &PageRecord, mask: u128, key: u128) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if PEXT {
        let (high, low) = ((mask >> 64) as u64, mask as u64);
        // SAFETY: the caller guarantees BMI2 with `PEXT`; no memory is read.
        let (upper, lower) = unsafe {
            use std::arch::x86_64::_pext_u64;
            let upper = if W::BYTES > 8 { _pext_u64((key >> 64) as u64, high) } else { 0 };
            (upper, _pext_u64(key as u64, low))
        };
        return u128::from(upper) << low.count_ones() | u128::from(lower);
    }
    let _ = mask;
    record.packed(key)
}

/// Returns the bits of the nibbles that a record keeps.
///
/// # Safety
/// The caller guarantees BMI2 with `PEXT`.
#[inline(always)]
unsafe fn mask<W: TreeWord, const PEXT: bool>(record: &PageRecord) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if PEXT {
        const FIRST: u64 = u64::MAX / 15;
        // SAFETY: the caller guarantees BMI2 with `PEXT`; no memory is read.
        let bits = |kept: u32| unsafe { std::arch::x86_64::_pdep_u64(kept.into(), FIRST) } * 15;
        let high = if W::BYTES > 8 { bits(record.kept >> 16) } else { 0 };
        return u128::from(high) << 64 | u128::from(bits(record.kept & 0xFFFF));
    }
    record.mask()
}

/// # Safety
/// The caller guarantees BMI2 with `PEXT`.
#[inline(always)]
unsafe fn probe<W: TreeWord, const PEXT: bool>(level: &Level, bytes: &[u8], page: u64, query: W) -> Probe {
    let at = level.records + page * const { PageRecord::bytes(W::BYTES as u32) } as u64;
    let record =
        usize::try_from(at).ok().and_then(|at| PageRecord::decode(W::BYTES as u32, bytes.get(at..)?));
    let Some(record) = record.filter(|record| record.is_sound(W::BYTES as u32)) else {
        return Probe::default();
    };
    let (place, log, child) = (record.place, record.width.ilog2() as usize, 0);
    let query = query.widen();
    let largest = u128::MAX >> (128 - 8 * record.width);
    if record.kept == 0 {
        // Saturate: no word is below 0, which is right for a query under the base.
        let word = query.saturating_sub(record.base);
        return if word > largest { Probe::last(level) } else { Probe { place, log, word, child } };
    }
    // SAFETY: the caller guarantees BMI2 with `PEXT`.
    let (word, above) = unsafe {
        let mask = mask::<W, PEXT>(&record);
        let (key, above) = record.settle(query, mask);
        (extract::<W, PEXT>(&record, mask, key), above)
    };
    if !above {
        Probe { place, log, word, child }
    } else if word >= largest {
        Probe::last(level)
    } else {
        Probe { place, log, word: word + 1, child }
    }
}

/// Queries in pages of one level, and where they are.
struct Group<const N: usize> {
    probes: [Probe; N],
    parts: [usize; N],
    locals: [u64; N],
}

/// Moves the first `count` queries, in pages of words `V`, down the lines of their pages.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn lines<S: Simd, V: TreeWord, const N: usize>(
    level: &Level,
    bytes: &[u8],
    count: usize,
    group: &mut Group<N>,
) {
    let Group { probes, parts, locals } = group;
    let (lines, d_k) = &level.lines[const { V::BYTES.ilog2() as usize }];
    let mut places: [u64; N] = std::array::from_fn(|s| probes[s].place);
    for (depth, line) in lines.iter().enumerate() {
        let next = lines.get(depth + 1);
        for s in 0..count.min(N) {
            let word = V::narrow(probes[s].word);
            // SAFETY: the caller guarantees the CPU features of `S`.
            let child = unsafe { child::<S, V>(bytes, places[s], line.levels, *d_k, word) };
            locals[s] = locals[s] << line.levels | child;
            if let Some(next) = next {
                locals[s] = locals[s].min(next.last[parts[s]]);
                // Forged places can be any number; slots are below 2^52.
                places[s] = probes[s].place.wrapping_add(next.slot(parts[s], locals[s]) * V::BYTES as u64);
                if N > 1 {
                    ask::<V>(next, bytes, places[s]);
                }
            }
        }
    }
}

/// Does the same for pages whose words have `1 << log` bytes.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn lines_of<S: Simd, W: TreeWord, const N: usize>(
    level: &Level,
    bytes: &[u8],
    log: usize,
    count: usize,
    group: &mut Group<N>,
) {
    // SAFETY: the caller guarantees the CPU features of `S`. No search is compiled for words longer than keys.
    unsafe {
        match log {
            1 => lines::<S, u16, N>(level, bytes, count, group),
            2 => lines::<S, u32, N>(level, bytes, count, group),
            3 if W::BYTES >= 8 => lines::<S, u64, N>(level, bytes, count, group),
            4 if W::BYTES >= 16 => lines::<S, u128, N>(level, bytes, count, group),
            _ => {}
        }
    }
}

/// Returns the gaps in which a group's queries end.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and BMI2 with `PEXT`.
#[inline(always)]
pub(super) unsafe fn group<S: Simd, W: TreeWord, const PEXT: bool, const N: usize>(
    tree: &[Level],
    bytes: &[u8],
    queries: &[W; N],
) -> [u64; N] {
    let mut gaps = [0u64; N];
    for (number, level) in tree.iter().enumerate() {
        let mut group = Group { probes: [Probe::default(); N], parts: [0; N], locals: [0; N] };
        for s in 0..N {
            gaps[s] = gaps[s].min(level.last);
            // SAFETY: the caller guarantees BMI2 with `PEXT`.
            let probe = unsafe { probe::<W, PEXT>(level, bytes, gaps[s], queries[s]) };
            group.locals[s] = probe.child;
            group.parts[s] = usize::from(gaps[s] == level.last);
            group.probes[s] = probe;
            if N > 1 {
                prefetch(bytes.as_ptr().wrapping_add(probe.place as usize));
            }
        }
        let log = group.probes[0].log;
        if group.probes.iter().all(|probe| probe.log == log) {
            // SAFETY: the caller guarantees the CPU features of `S`.
            unsafe { lines_of::<S, W, N>(level, bytes, log, N, &mut group) };
        } else {
            // SAFETY: the caller guarantees the CPU features of `S`.
            unsafe { mixed::<S, W, N>(level, bytes, &mut group) };
        }
        let next = tree.get(number + 1).filter(|_| N > 1);
        for (gap, local) in gaps.iter_mut().zip(&group.locals) {
            *gap = *gap << level.levels | local;
            if let Some(next) = next {
                let record = const { PageRecord::bytes(W::BYTES as u32) } as u64;
                let record = next.records + (*gap).min(next.last) * record;
                prefetch(bytes.as_ptr().wrapping_add(record as usize));
            }
        }
    }
    gaps
}

/// Moves queries in pages of different widths down the lines of their pages, one width after the other.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn mixed<S: Simd, W: TreeWord, const N: usize>(level: &Level, bytes: &[u8], all: &mut Group<N>) {
    for log in 1..=const { W::BYTES.ilog2() as usize } {
        let mut some = Group { probes: [Probe::default(); N], parts: [0; N], locals: [0; N] };
        let (mut from, mut count) = ([0; N], 0);
        for s in 0..N {
            if all.probes[s].log == log {
                (some.probes[count], some.parts[count], from[count]) = (all.probes[s], all.parts[s], s);
                count += 1;
            }
        }
        // SAFETY: the caller guarantees the CPU features of `S`.
        unsafe { lines_of::<S, W, N>(level, bytes, log, count, &mut some) };
        for (&to, &local) in from.iter().zip(&some.locals).take(count) {
            all.locals[to] = local;
        }
    }
}
