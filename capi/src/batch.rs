//! Batches into the caller's buffers.

use crate::index::pleach_index;
use crate::keys::{pleach_keys, with_keys, with_texts};
use crate::memory::{given, put, slice, slice_mut};
use crate::status::{Failure, Result, guard, input, pleach_status};
use pleach_batch::{Bound, Column, Found, Gathered, Shared, Values};
use reader::Near;
use std::ffi::c_void;

/// The last tuple whose key is at most a key.
pub const PLEACH_FLOOR: u32 = 0;
/// The first tuple whose key is at least a key.
pub const PLEACH_CEILING: u32 = 1;
/// The tuple whose key has the smallest distance from a key, of two the lower.
pub const PLEACH_NEAREST: u32 = 2;

/// Returns the caller's bitmap for `count` keys; nothing is wanted if it is NULL.
///
/// # Safety
/// The pointer is null, or valid for writes of `bytes` bytes that nobody else uses.
unsafe fn bitmap<'a>(found: *mut u8, bytes: usize) -> Result<Found<'a>> {
    if found.is_null() {
        return Ok(Found::None);
    }
    // SAFETY: the caller guarantees the bytes.
    Ok(Found::Bits(unsafe { slice_mut(found, bytes, "found") }?))
}

fn short(name: &str, needed: u64, has: u64) -> Failure {
    let text =
        format!("too short: the buffer `{name}` has {has} bytes, but {needed} are needed: pass a longer one");
    Failure(pleach_status::PLEACH_TOO_SHORT, text)
}

/// Looks up the values of many keys, if values are numbers. `values` has `values_bytes` bytes, room for one of the
/// file's type for each key; a missing key gets 0. `found` has `found_bytes` bytes, a bit for each key, least
/// significant first.
/// `*hits` becomes the number of keys found. `values`, `found` and `hits` may be NULL.
///
/// # Safety
/// `index` is open; `keys` describes arrays that live during the call; the other pointers are NULL or places for the
/// results. Other threads may use the memory of keys and values: what is then in it is arbitrary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_get(
    index: *const pleach_index,
    keys: *const pleach_keys,
    values: *mut c_void,
    values_bytes: usize,
    found: *mut u8,
    found_bytes: usize,
    hits: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the bitmap.
        let (index, mut found) = unsafe { (given(index, "index")?, bitmap(found, found_bytes)?) };
        let value_type = index.table.value_type();
        let mut wanted = Values::None;
        if !values.is_null() {
            let each = value_type.bytes().max(1);
            // SAFETY: the caller guarantees so many bytes.
            let shared = unsafe { Shared::new(value_type, values.cast(), values_bytes / each) };
            wanted = Values::Shared(shared.ok_or_else(|| {
                let text = format!(
                    "{value_type} values do not fit here: values must be numbers and aligned: \
                     use pleach_get_strings for others"
                );
                Failure(pleach_status::PLEACH_TYPES, text)
            })?);
        }
        // SAFETY: the caller guarantees the keys.
        let count = unsafe {
            with_keys(&index.table, keys, |keys, _| {
                Ok(index.table.get(keys, &mut wanted, &mut found, &index.pool())?)
            })
        }?;
        // SAFETY: the caller guarantees the place.
        unsafe { put(hits, count as u64) };
        Ok(())
    })
}

/// Reports which keys are in the file: a bit for each, least significant first. `hits` may be NULL.
///
/// # Safety
/// As `pleach_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_contains(
    index: *const pleach_index,
    keys: *const pleach_keys,
    found: *mut u8,
    found_bytes: usize,
    hits: *mut u64,
) -> pleach_status {
    // SAFETY: the caller guarantees what `pleach_get` requires.
    unsafe { pleach_get(index, keys, std::ptr::null_mut(), 0, found, found_bytes, hits) }
}

/// Looks up the ranks of many keys, from 0. The rank of a missing key is that of its lower bound. `ranks` has room for
/// as many numbers as keys. `found` and `hits` may be NULL.
///
/// # Safety
/// As `pleach_get`; nobody else uses `ranks`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_rank(
    index: *const pleach_index,
    keys: *const pleach_keys,
    ranks: *mut u64,
    ranks_count: usize,
    found: *mut u8,
    found_bytes: usize,
    hits: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index, the bitmap and the ranks.
        let (index, mut found, ranks) = unsafe {
            (given(index, "index")?, bitmap(found, found_bytes)?, slice_mut(ranks, ranks_count, "ranks")?)
        };
        // SAFETY: the caller guarantees the keys.
        let count = unsafe {
            with_keys(&index.table, keys, |keys, _| {
                Ok(index.table.rank(keys, ranks, &mut found, &index.pool())?)
            })
        }?;
        // SAFETY: the caller guarantees the place.
        unsafe { put(hits, count as u64) };
        Ok(())
    })
}

/// # Safety
/// As [`pleach_lower_bound`].
unsafe fn bounds(
    index: *const pleach_index,
    keys: *const pleach_keys,
    bound: Bound,
    ranks: *mut u64,
    ranks_count: usize,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the ranks.
        let (index, ranks) = unsafe { (given(index, "index")?, slice_mut(ranks, ranks_count, "ranks")?) };
        // SAFETY: the caller guarantees the keys.
        unsafe {
            with_keys(&index.table, keys, |keys, _| {
                Ok(index.table.bounds(keys, bound, ranks, &index.pool())?)
            })
        }
    })
}

/// Finds the rank of the tuple near each key: `PLEACH_FLOOR` is the last tuple whose key is at most the key,
/// `PLEACH_CEILING` the first one whose key is at least the key, and `PLEACH_NEAREST` the one of them with the smaller
/// distance, of two the floor. The rank is `UINT64_MAX` if there is none, and for a null.
///
/// # Safety
/// `index` is open; `keys` describes arrays that live during the call; `ranks` has `ranks_count` numbers, which nobody
/// else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_near(
    index: *const pleach_index,
    keys: *const pleach_keys,
    near: u32,
    ranks: *mut u64,
    ranks_count: usize,
) -> pleach_status {
    guard(|| {
        let near = match near {
            PLEACH_FLOOR => Near::Floor,
            PLEACH_CEILING => Near::Ceiling,
            PLEACH_NEAREST => Near::Nearest,
            _ => {
                let text = format!("near is {near}: use PLEACH_FLOOR, PLEACH_CEILING or PLEACH_NEAREST");
                return Err(input(text));
            }
        };
        // SAFETY: the caller guarantees the index and the ranks.
        let (index, ranks) = unsafe { (given(index, "index")?, slice_mut(ranks, ranks_count, "ranks")?) };
        let table = &index.table;
        // SAFETY: the caller guarantees the keys.
        unsafe { with_keys(table, keys, |keys, _| Ok(table.near(keys, near, ranks, &index.pool())?)) }
    })
}

/// Searches for the rank of the first tuple whose key is at least each key; the number of tuples if there is none.
///
/// # Safety
/// `index` is open; `keys` describes arrays that live during the call; `ranks` has `ranks_count` numbers, which nobody
/// else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_lower_bound(
    index: *const pleach_index,
    keys: *const pleach_keys,
    ranks: *mut u64,
    ranks_count: usize,
) -> pleach_status {
    // SAFETY: the caller guarantees the same.
    unsafe { bounds(index, keys, Bound::Lower, ranks, ranks_count) }
}

/// Searches for the rank of the first tuple whose key is above each key; the number of tuples if there is none.
///
/// # Safety
/// As `pleach_lower_bound`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_upper_bound(
    index: *const pleach_index,
    keys: *const pleach_keys,
    ranks: *mut u64,
    ranks_count: usize,
) -> pleach_status {
    // SAFETY: the caller guarantees the same.
    unsafe { bounds(index, keys, Bound::Upper, ranks, ranks_count) }
}

/// Finds the ranks of the tuples whose keys begin with each prefix: from `first` to the one before `end`. Prefixes are
/// texts or bytes: as the keys are, or digits, bases, networks of addresses, or the first parts of composite keys.
///
/// # Safety
/// `index` is open; `prefixes` describes arrays that live during the call; `first` and `end` have `ranks_count`
/// numbers each, which nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_prefix(
    index: *const pleach_index,
    prefixes: *const pleach_keys,
    first: *mut u64,
    end: *mut u64,
    ranks_count: usize,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the ranks.
        let (index, first, end) = unsafe {
            (
                given(index, "index")?,
                slice_mut(first, ranks_count, "first")?,
                slice_mut(end, ranks_count, "end")?,
            )
        };
        // SAFETY: the caller guarantees the prefixes.
        unsafe { with_texts(prefixes, |texts| Ok(index.table.prefix(texts, first, end, &index.pool())?)) }
    })
}

/// Counts the tuples with `low <= key < high`, for each pair of keys.
///
/// # Safety
/// As `pleach_lower_bound`, for `low`, `high` and `counts`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_count(
    index: *const pleach_index,
    low: *const pleach_keys,
    high: *const pleach_keys,
    counts: *mut u64,
    counts_count: usize,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the counts.
        let (index, counts) = unsafe { (given(index, "index")?, slice_mut(counts, counts_count, "counts")?) };
        let pool = index.pool();
        // SAFETY: the caller guarantees the keys.
        let lows = unsafe {
            with_keys(&index.table, low, |keys, count| {
                index.table.bounds(keys, Bound::Lower, counts, &pool)?;
                Ok(count)
            })
        }?;
        let mut ends = vec![0; lows];
        // SAFETY: the caller guarantees the keys.
        unsafe {
            with_keys(&index.table, high, |keys, highs| {
                if highs != lows {
                    return Err(input(format!(
                        "low has {lows} keys and high has {highs}: give as many of both"
                    )));
                }
                Ok(index.table.bounds(keys, Bound::Lower, &mut ends, &pool)?)
            })
        }?;
        counts.iter_mut().zip(ends).for_each(|(low, high)| *low = high.saturating_sub(*low));
        Ok(())
    })
}

/// Writes a column into the caller's buffers.
///
/// # Safety
/// `data` has `data_bytes` bytes and `offsets` is null or has one number more than `count`; nobody else uses them.
/// `needed` is null or a place.
unsafe fn write(
    column: &Column,
    count: usize,
    (data, data_bytes): (*mut c_void, usize),
    offsets: *mut u64,
    needed: *mut u64,
) -> Result<()> {
    let bytes = match column {
        Column::Words(bytes) => bytes,
        Column::Strings(all) => {
            if !offsets.is_null() {
                // SAFETY: the caller guarantees the offsets.
                unsafe { slice_mut(offsets, count + 1, "offsets") }?.copy_from_slice(&all.offsets);
            }
            &all.data
        }
    };
    // SAFETY: the caller guarantees the place.
    unsafe { put(needed, bytes.len() as u64) };
    if bytes.len() > data_bytes {
        return Err(short("data", bytes.len() as u64, data_bytes as u64));
    }
    // SAFETY: the caller guarantees the bytes.
    unsafe { slice_mut(data.cast::<u8>(), bytes.len(), "data") }?.copy_from_slice(bytes);
    Ok(())
}

/// Returns a column of the tuples at many ranks.
///
/// # Safety
/// As [`pleach_keys_at`].
unsafe fn at(
    index: *const pleach_index,
    (ranks, count): (*const u64, usize),
    wants_keys: bool,
    data: (*mut c_void, usize),
    offsets: *mut u64,
    needed: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the ranks.
        let (index, ranks) = unsafe { (given(index, "index")?, slice(ranks, count, "ranks")?) };
        let (keys, values) = index.table.tuples_at(ranks, &index.pool())?;
        let column = if wants_keys { keys } else { values };
        // SAFETY: the caller guarantees the buffers.
        unsafe { write(&column, count, data, offsets, needed) }
    })
}

/// Writes the keys of the tuples at many ranks. Numbers are those of the file's type, in native byte order; those of
/// 128 bits are big-endian. Of strings, `offsets` (one more than ranks; may be NULL) says where each begins in `data`
/// and the last one ends. `*needed` becomes the number of bytes, also if `data` is too short; it may be NULL. A rank
/// past the end gives 0, or an empty string.
///
/// # Safety
/// `index` is open; `ranks` has `count` numbers; `data` has `data_bytes` bytes; nobody else uses the buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_keys_at(
    index: *const pleach_index,
    ranks: *const u64,
    count: usize,
    data: *mut c_void,
    data_bytes: usize,
    offsets: *mut u64,
    needed: *mut u64,
) -> pleach_status {
    // SAFETY: the caller guarantees the same.
    unsafe { at(index, (ranks, count), true, (data, data_bytes), offsets, needed) }
}

/// Writes the values of the tuples at many ranks, as `pleach_keys_at` does the keys.
///
/// # Safety
/// As `pleach_keys_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_values_at(
    index: *const pleach_index,
    ranks: *const u64,
    count: usize,
    data: *mut c_void,
    data_bytes: usize,
    offsets: *mut u64,
    needed: *mut u64,
) -> pleach_status {
    // SAFETY: the caller guarantees the same.
    unsafe { at(index, (ranks, count), false, (data, data_bytes), offsets, needed) }
}

/// Looks up the values of many keys, if values are strings or byte strings of one length. `offsets` has one number more
/// than keys; a missing key has an empty string. `*needed` becomes the number of bytes, also if `data` is too short:
/// call it again with more, or use `pleach_get_arrow`. `found`, `hits` and `needed` may be NULL.
///
/// # Safety
/// As `pleach_get`; nobody else uses the buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_get_strings(
    index: *const pleach_index,
    keys: *const pleach_keys,
    data: *mut c_void,
    data_bytes: usize,
    offsets: *mut u64,
    found: *mut u8,
    found_bytes: usize,
    needed: *mut u64,
    hits: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the bitmap.
        let (index, mut given_found) = unsafe { (given(index, "index")?, bitmap(found, found_bytes)?) };
        if offsets.is_null() {
            return Err(input("offsets is NULL: give a pointer"));
        }
        let (table, pool) = (&index.table, index.pool());
        // SAFETY: the caller guarantees the keys.
        let (all, count, keys) = unsafe {
            with_keys(&index.table, keys, |keys, keys_count| {
                let mut ranks = vec![0; keys_count];
                let mut own = vec![0u8; keys_count.div_ceil(8)];
                // A rank past the end has an empty string.
                let count = table.found_ranks(keys, &mut ranks, &mut Found::Bits(&mut own), &pool)?;
                if let Found::Bits(bits) = &mut given_found {
                    let has = bits.len();
                    let bits = bits.get_mut(..own.len());
                    bits.ok_or_else(|| short("found", own.len() as u64, has as u64))?.copy_from_slice(&own);
                }
                let all: Gathered = table.values_at(&ranks, &pool)?;
                Ok((all, count, keys_count))
            })
        }?;
        // SAFETY: the caller guarantees the places and the buffers.
        unsafe {
            put(hits, count as u64);
            write(&Column::Strings(all), keys, (data, data_bytes), offsets, needed)
        }
    })
}
