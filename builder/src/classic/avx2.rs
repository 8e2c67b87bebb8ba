//! Line kernels with AVX2.
//!
//! A short line at the bottom of a page is a permutation of one or two registers; a longer or higher one is
//! gathered. A store may touch slots after its line: these are written again by a later line, or hold all
//! ones, as free slots must. Each kernel reports whether it filled the run; if not, or on other processors,
//! the scalar kernel does.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{fill32, fill64};

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    use crate::classic::run::Run;
    pub(crate) fn fill32(_: &Run<'_, u32>, _: &mut [[u8; 4]]) -> bool {
        false
    }
    pub(crate) fn fill64(_: &Run<'_, u64>, _: &mut [[u8; 8]]) -> bool {
        false
    }
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::{fill32, fill64};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::classic::run::{Run, scalar};
    use pleach_format::classic::TreeWord;
    use std::arch::x86_64::*;

    /// Returns the number of lines, from the run's first, for which `read` words from their base and `write`
    /// slots from their first slot exist. Both places ascend with the line, so all lines before have them
    /// too.
    fn reach<W: TreeWord>(run: &Run<'_, W>, out: usize, read: usize, write: usize) -> usize {
        let fits = |line: usize| run.base(line) + read <= run.words.len() && run.slot(line) + write <= out;
        let mut count = run.count;
        while count > 0 && !fits(count - 1) {
            count -= 1;
        }
        count
    }

    /// Returns the order of a short line, padded with `u32::MAX`, which marks free slots.
    fn padded_order<const N: usize>(order: &[u32]) -> [u32; N] {
        let mut lanes = [u32::MAX; N];
        lanes[..order.len()].copy_from_slice(order);
        lanes
    }

    /// Returns the distance of each lane's word from the line's base, for the 8 ranks of the order from `at`
    /// on.
    #[target_feature(enable = "avx2")]
    fn offsets(order: &[u32], at: usize, below: u32) -> __m256i {
        let ranks: &[u32; 8] = order[at..at + 8].first_chunk().unwrap_or(&[0; 8]);
        // SAFETY: the array has exactly the 32 bytes that are read; the load needs no alignment.
        let ranks = unsafe { _mm256_loadu_si256(ranks.as_ptr().cast()) };
        let shift = _mm_cvtsi32_si128(below.cast_signed());
        let ones = _mm256_set1_epi32(1);
        _mm256_sub_epi32(_mm256_sll_epi32(_mm256_add_epi32(ranks, ones), shift), ones)
    }

    /// Fills lines of four-byte words.
    pub(crate) fn fill32(run: &Run<'_, u32>, out: &mut [[u8; 4]]) -> bool {
        // SAFETY: `Vectors::avx2` detected AVX2 before it allowed a kernel.
        unsafe {
            match (run.lines.order.len(), run.lines.below) {
                (1..=7, 0) => short32(run, out),
                (15, 0) => long32(run, out),
                (8.., below) if run.lines.levels + below < 31 => gather32(run, out),
                _ => return false,
            }
        }
        true
    }

    #[target_feature(enable = "avx2")]
    fn short32(run: &Run<'_, u32>, out: &mut [[u8; 4]]) {
        let count = reach(run, out.len(), 8, 8);
        let lanes = padded_order::<8>(&run.lines.order);
        // SAFETY: the array has exactly the 32 bytes that are read; the load needs no alignment.
        let order = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        let free = _mm256_cmpeq_epi32(order, _mm256_set1_epi32(-1));
        for line in 0..count {
            // SAFETY: `reach` proved 8 words from the base and 8 slots from the first slot; neither
            // access needs alignment.
            unsafe {
                let words = _mm256_loadu_si256(run.words.as_ptr().add(run.base(line)).cast());
                let placed = _mm256_or_si256(_mm256_permutevar8x32_epi32(words, order), free);
                _mm256_storeu_si256(out.as_mut_ptr().add(run.slot(line)).cast(), placed);
            }
        }
        scalar(run, count, out);
    }

    #[target_feature(enable = "avx2")]
    fn long32(run: &Run<'_, u32>, out: &mut [[u8; 4]]) {
        let count = reach(run, out.len(), 16, 16);
        let lanes = padded_order::<16>(&run.lines.order);
        // SAFETY: the array has exactly the 64 bytes that the two loads read; they need no alignment.
        let orders: [__m256i; 2] =
            unsafe { [0, 8].map(|at| _mm256_loadu_si256(lanes.as_ptr().add(at).cast())) };
        let upper = orders.map(|order| _mm256_cmpgt_epi32(order, _mm256_set1_epi32(7)));
        let free = orders.map(|order| _mm256_cmpeq_epi32(order, _mm256_set1_epi32(-1)));
        for line in 0..count {
            // SAFETY: `reach` proved 16 words from the base and 16 slots from the first slot.
            unsafe {
                let words = run.words.as_ptr().add(run.base(line));
                let [low, high] = [0, 8].map(|at| _mm256_loadu_si256(words.add(at).cast()));
                let place = out.as_mut_ptr().add(run.slot(line));
                for half in 0..2 {
                    let low = _mm256_permutevar8x32_epi32(low, orders[half]);
                    let high = _mm256_permutevar8x32_epi32(high, orders[half]);
                    let placed = _mm256_blendv_epi8(low, high, upper[half]);
                    _mm256_storeu_si256(place.add(8 * half).cast(), _mm256_or_si256(placed, free[half]));
                }
            }
        }
        scalar(run, count, out);
    }

    #[target_feature(enable = "avx2")]
    fn gather32(run: &Run<'_, u32>, out: &mut [[u8; 4]]) {
        let n = run.lines.order.len();
        let count = reach(run, out.len(), n << run.lines.below, n);
        for line in 0..count {
            let (base, slot) = (run.base(line), run.slot(line));
            let mut at = 0;
            loop {
                let offsets = offsets(&run.lines.order, at, run.lines.below);
                // SAFETY: ranks are below n, so each lane's word is below base + (n << below), which
                // `reach` proved, and its distance below 2^31; slots slot + at .. + 8 lie below
                // slot + n, which it proved as well.
                unsafe {
                    let words = run.words.as_ptr().add(base).cast();
                    let placed = _mm256_i32gather_epi32::<4>(words, offsets);
                    _mm256_storeu_si256(out.as_mut_ptr().add(slot + at).cast(), placed);
                }
                if at + 8 == n {
                    break;
                }
                // The last step overlaps the one before it.
                at = (at + 8).min(n - 8);
            }
        }
        scalar(run, count, out);
    }

    /// Fills lines of eight-byte words.
    pub(crate) fn fill64(run: &Run<'_, u64>, out: &mut [[u8; 8]]) -> bool {
        if run.lines.below != 0 || !matches!(run.lines.order.len(), 1..=3 | 7) {
            return false;
        }
        // SAFETY: `Vectors::avx2` detected AVX2 before it allowed a kernel.
        unsafe { if run.lines.order.len() == 7 { long64(run, out) } else { short64(run, out) } };
        true
    }

    /// Converts the order of four 8-byte lanes to that of the eight 4-byte lanes of which they consist.
    fn halves(order: [u32; 4]) -> [u32; 8] {
        std::array::from_fn(|lane| order[lane / 2].wrapping_mul(2).wrapping_add(lane as u32 % 2))
    }

    #[target_feature(enable = "avx2")]
    fn short64(run: &Run<'_, u64>, out: &mut [[u8; 8]]) {
        let count = reach(run, out.len(), 4, 4);
        let lanes = padded_order::<4>(&run.lines.order);
        let free = lanes.map(|rank| if rank == u32::MAX { -1i64 } else { 0 });
        let lanes = halves(lanes);
        // SAFETY: both arrays have exactly the 32 bytes that are read; the loads need no alignment.
        let (order, free) =
            unsafe { (_mm256_loadu_si256(lanes.as_ptr().cast()), _mm256_loadu_si256(free.as_ptr().cast())) };
        for line in 0..count {
            // SAFETY: `reach` proved 4 words from the base and 4 slots from the first slot.
            unsafe {
                let words = _mm256_loadu_si256(run.words.as_ptr().add(run.base(line)).cast());
                let placed = _mm256_or_si256(_mm256_permutevar8x32_epi32(words, order), free);
                _mm256_storeu_si256(out.as_mut_ptr().add(run.slot(line)).cast(), placed);
            }
        }
        scalar(run, count, out);
    }

    #[target_feature(enable = "avx2")]
    fn long64(run: &Run<'_, u64>, out: &mut [[u8; 8]]) {
        let count = reach(run, out.len(), 8, 8);
        let ranks = padded_order::<8>(&run.lines.order);
        let quarter = |at: usize| std::array::from_fn::<u32, 4, _>(|lane| ranks[at + lane]);
        let [low, high] = [0, 4].map(quarter);
        let lanes = [halves(low), halves(high)];
        let flag = |yes: bool| if yes { -1i64 } else { 0 };
        let upper = [low, high].map(|half| half.map(|rank| flag(rank > 3)));
        let free = [low, high].map(|half| half.map(|rank| flag(rank == u32::MAX)));
        // SAFETY: each array of the three pairs has exactly the 32 bytes that are read; the loads need no
        // alignment.
        let (orders, upper, free) = unsafe {
            (
                [0, 1].map(|half: usize| _mm256_loadu_si256(lanes[half].as_ptr().cast())),
                [0, 1].map(|half: usize| _mm256_loadu_si256(upper[half].as_ptr().cast())),
                [0, 1].map(|half: usize| _mm256_loadu_si256(free[half].as_ptr().cast())),
            )
        };
        for line in 0..count {
            // SAFETY: `reach` proved 8 words from the base and 8 slots from the first slot.
            unsafe {
                let words = run.words.as_ptr().add(run.base(line));
                let [low, high] = [0, 4].map(|at| _mm256_loadu_si256(words.add(at).cast()));
                let place = out.as_mut_ptr().add(run.slot(line));
                for half in 0..2 {
                    let low = _mm256_permutevar8x32_epi32(low, orders[half]);
                    let high = _mm256_permutevar8x32_epi32(high, orders[half]);
                    let placed = _mm256_blendv_epi8(low, high, upper[half]);
                    _mm256_storeu_si256(place.add(4 * half).cast(), _mm256_or_si256(placed, free[half]));
                }
            }
        }
        scalar(run, count, out);
    }
}
