//! Byte keys on a device.
//!
//! Tuple lines hold words, gathered from the bits in which a file's keys differ. If a word determines the
//! whole key, as for all keys of up to 16 bytes that have the same length, a device can search them.
//!
//! The host encodes the queries as words, on all cores. It also finds queries that cannot be keys of the file
//! because they differ in a bit that all keys share. Such a query still has a place among the words, which
//! determines its rank.

use crate::algorithm::Algorithm;
use crate::host::Asked;
use crate::table::{as_mut_bytes, first_of};
use crate::{GpuError, GpuTable};
use pleach::{Mask, Near, Queries, Value};
use pleach_format::key::Bits;
use pleach_format::mask::{Chunk, Place};
use rayon::prelude::*;

/// Number of queries that a core encodes at a time, a multiple of 64.
const PIECE: usize = 1 << 12;

/// Words of queries as in the lines, and a bit for each query that is not a key whatever its word is.
struct Words {
    bytes: Vec<u8>,
    gaps: Vec<u64>,
}

impl Words {
    /// Encodes queries. For values: the word of each query. For ranks: the word whose lower bound is the
    /// query's; a set bit marks a query after all words.
    fn new<Q: Queries + Sync + ?Sized>(mask: &Mask, word_bytes: usize, queries: &Q, asked: Asked) -> Self {
        let count = queries.len();
        let (mut bytes, mut gaps) = (vec![0; count * word_bytes], vec![0u64; count.div_ceil(64)]);
        let most = if word_bytes == 16 { u128::MAX } else { (1 << (word_bytes * 8)) - 1 };
        let pieces =
            bytes.par_chunks_mut(PIECE * word_bytes).zip(gaps.par_chunks_mut(PIECE / 64)).enumerate();
        pieces.for_each(|(piece, (bytes, gaps))| {
            for (at, bytes) in bytes.chunks_exact_mut(word_bytes).enumerate() {
                let (word, is_gap) = match mask.place(queries.get(piece * PIECE + at), Chunk::compress) {
                    Place::Word(word) => (word, false),
                    Place::Gap { word, after } if asked == Asked::Ranks => match (after, word < most) {
                        (true, true) => (word + 1, false),
                        (true, false) => (most, true),
                        (false, _) => (word, false),
                    },
                    Place::Gap { word, .. } => (word, true),
                };
                bytes.copy_from_slice(&word.to_le_bytes()[..word_bytes]);
                gaps[at / 64] |= u64::from(is_gap) << (at % 64);
            }
        });
        Self { bytes, gaps }
    }
}

impl GpuTable<'_> {
    /// Returns the mask of a file whose words are whole keys.
    fn mask(&self) -> Result<&Mask, GpuError> {
        let header = self.index().header();
        let types = GpuError::Types { key: header.key_type, value: header.value_type };
        self.index().mask().filter(|mask| mask.is_lossless()).ok_or(types)
    }

    /// Looks up the values of byte keys and their presence, as [`pleach::Strings::get_batch`] does. Returns
    /// the number of keys that are present.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch_by`]; [`GpuError::Types`] if words are not whole keys.
    pub fn get_strings_by<V: Value, Q: Queries + Sync + ?Sized>(
        &self,
        algorithm: Algorithm,
        keys: &Q,
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, GpuError> {
        self.index().strings::<V>()?;
        let values = first_of("values", keys.len(), values)?;
        let present = first_of("present", keys.len().div_ceil(64), present)?;
        let asked = Asked::Values(V::Bits::BYTES);
        let words = Words::new(self.mask()?, self.geometry().key_bytes, keys, asked);
        self.search_slices(algorithm, asked, &words.bytes, as_mut_bytes(values), as_mut_bytes(present))?;
        for (at, (present, gaps)) in present.iter_mut().zip(&words.gaps).enumerate() {
            let mut wrong = *present & gaps;
            *present &= !gaps;
            while wrong != 0 {
                values[at * 64 + wrong.trailing_zeros() as usize] = V::default();
                wrong &= wrong - 1;
            }
        }
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }

    /// Finds the ranks of the tuples near byte keys, as [`pleach::Strings::near_batch`] does, from lower bounds.
    /// Returns the number of keys that have one; the rank of others is [`u64::MAX`].
    ///
    /// # Errors
    /// As [`GpuTable::get_strings_by`].
    pub fn near_strings_by<Q: Queries + Sync + ?Sized>(
        &self,
        algorithm: Algorithm,
        near: Near,
        keys: &Q,
        ranks: &mut [u64],
    ) -> Result<usize, GpuError> {
        let ranks = first_of("ranks", keys.len(), ranks)?;
        if near == Near::Ceiling {
            self.lower_bound_strings_by(algorithm, keys, ranks)?;
        } else {
            // The smallest string above another is the one with a zero byte more.
            let next = |at: usize| [keys.get(at), &[0]].concat();
            let nexts: Vec<Vec<u8>> = (0..keys.len()).into_par_iter().map(next).collect();
            self.lower_bound_strings_by(algorithm, &nexts, ranks)?;
            ranks.iter_mut().for_each(|rank| *rank = rank.wrapping_sub(1));
        }
        let tuples = self.index().len();
        let mut found = 0;
        for rank in ranks {
            let is_there = *rank < tuples;
            *rank = if is_there { *rank } else { u64::MAX };
            found += usize::from(is_there);
        }
        Ok(found)
    }

    /// Returns the ranks of the lower bounds of byte keys, as [`pleach::Strings::lower_bound_batch`] does.
    ///
    /// # Errors
    /// As [`GpuTable::get_strings_by`].
    pub fn lower_bound_strings_by<Q: Queries + Sync + ?Sized>(
        &self,
        algorithm: Algorithm,
        keys: &Q,
        ranks: &mut [u64],
    ) -> Result<(), GpuError> {
        let ranks = first_of("ranks", keys.len(), ranks)?;
        let words = Words::new(self.mask()?, self.geometry().key_bytes, keys, Asked::Ranks);
        self.search_slices(algorithm, Asked::Ranks, &words.bytes, as_mut_bytes(ranks), &mut [])?;
        for (at, rank) in ranks.iter_mut().enumerate() {
            if words.gaps[at / 64] >> (at % 64) & 1 == 1 {
                *rank = self.index().len();
            }
        }
        Ok(())
    }
}
