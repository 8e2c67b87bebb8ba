//! Duplicates among neighbouring keys.

use pleach_format::Word;

/// Returns true if no key is duplicated among these, or equal to the one before them. O(keys); brings them
/// into the cache.
pub(crate) fn is_distinct<K: Word>(keys: &[K], (from, to): (usize, usize)) -> bool {
    let keys = &keys[from.saturating_sub(1)..to];
    #[cfg(target_arch = "x86_64")]
    if pleach_format::cpu::avx2() {
        // SAFETY: the CPU has AVX2.
        return unsafe { equal_neighbours_avx2(keys) } == 0;
    }
    equal_neighbours(keys) == 0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn equal_neighbours_avx2<K: Word>(keys: &[K]) -> u64 {
    equal_neighbours(keys)
}

/// Counts by a sum, because compilers vectorise sums.
#[inline(always)]
fn equal_neighbours<K: Word>(keys: &[K]) -> u64 {
    let Some((_, next)) = keys.split_first() else { return 0 };
    keys.iter().zip(next).map(|(key, next)| u64::from(key == next)).sum()
}
