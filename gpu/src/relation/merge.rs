//! Joins and set operations: one pass over both relations, into a buffer whose bound is known before.
//!
//! A set operation has at most as many results as both sides have tuples. A join whose right keys are unique
//! has at most one result per left tuple, and one per right tuple without a partner. If the left keys are
//! unique and the right ones are not, the sides are swapped. If neither are, rows of ranks are made, counted
//! and expanded ([`super::expand`]).

use super::columns::{Sorted, refused};
use super::expand::{expand, swap_sides};
use super::joined::{Form, Joined, Outputs};
use super::onepass::ONE_PASS_TEXT;
use crate::driver::LaunchShape;
use crate::kernel::SourceSpec;
use crate::memory::DeviceBuffer;
use crate::{GpuError, Stream};

/// Threads per block; the same as MERGERS in merge.cu.
const THREADS: u32 = 256;
/// Threads per block that cuts; the same as CUTTERS in merge.cu.
const CUTTERS: u32 = 128;
/// Maximum number of tuples of both sides: a rank and a count have 62 bits, a grid 2^31 blocks.
const TUPLES_MAX: u64 = 1 << 42;

/// Number of tuples per key in the result of a set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// At most one: the first.
    Set,
    /// Determined by the multiplicities.
    Multiset,
}

/// Operation on two relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Keys of either side.
    Union(Rule),
    /// Keys that are in both sides.
    Intersection(Rule),
    /// Keys that are in the left side only.
    Difference(Rule),
    /// All tuples of both sides, left before right.
    Concatenation,
    /// Left tuples whose key is in the right side.
    Semi,
    /// Left tuples whose key is not in the right side.
    Anti,
    /// Pairs of equal keys.
    Inner,
    /// Pairs of equal keys, and left tuples without a partner.
    Left,
    /// Pairs of equal keys, and right tuples without a partner.
    Right,
    /// Pairs of equal keys, and all tuples without a partner.
    Full,
}

/// Kinds of tuples, one bit each, as in merge.cu.
const LEFT_ALONE: u32 = 1;
const LEFT_MATCHED: u32 = 2;
const RIGHT_ALONE: u32 = 4;
const RIGHT_MATCHED: u32 = 8;

impl Operation {
    /// Returns the kinds of tuples in the result.
    fn emit(self) -> u32 {
        match self {
            Self::Union(_) | Self::Full => LEFT_ALONE | LEFT_MATCHED | RIGHT_ALONE,
            Self::Intersection(_) | Self::Semi | Self::Inner => LEFT_MATCHED,
            Self::Difference(_) | Self::Anti => LEFT_ALONE,
            Self::Concatenation => LEFT_ALONE | LEFT_MATCHED | RIGHT_ALONE | RIGHT_MATCHED,
            Self::Left => LEFT_ALONE | LEFT_MATCHED,
            Self::Right => LEFT_MATCHED | RIGHT_ALONE,
        }
    }

    fn rule(self) -> Option<Rule> {
        match self {
            Self::Union(rule) | Self::Intersection(rule) | Self::Difference(rule) => Some(rule),
            _ => None,
        }
    }

    /// Returns true if results are pairs of tuples.
    fn is_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    /// Returns the operation with its sides swapped.
    fn swapped(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
            other => other,
        }
    }

    /// Returns the maximum number of results for these numbers of tuples, if the right keys are unique, or if
    /// only left tuples are in the result.
    fn most(self, left: u64, right: u64, are_unique: bool) -> u64 {
        let emit = self.emit();
        let lefts = match emit & (LEFT_ALONE | LEFT_MATCHED) {
            LEFT_MATCHED if are_unique => left.min(right),
            _ => left,
        };
        lefts + if emit & (RIGHT_ALONE | RIGHT_MATCHED) == 0 { 0 } else { right }
    }
}

crate::kernel! {
    /// Joins and set operations.
    MERGE = SourceSpec {
        shared: &[ONE_PASS_TEXT],
        numbers: |instance| numbers(instance.word_bytes),
        ..SourceSpec::new("merge.cu", include_str!("../kernels/merge.cu"))
    };
    /// Cuts the merge of two relations into tiles.
    merge_cuts(merge: Arguments);
    /// Merges both relations; a result has the tuple of one side.
    merge_one(merge: Arguments);
    /// Merges both relations; a result has the tuples of both sides.
    merge_pairs(merge: Arguments);
}

/// Arguments of the kernels; the same as Merge in merge.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    keys: [u64; 2],
    values: [u64; 2],
    counts: [u64; 2],
    keys_to: u64,
    values_to: [u64; 2],
    sides_to: u64,
    cuts: u64,
    told: u64,
    found: u64,
    capacity: u64,
    tiles: u32,
    emit: u32,
    rule: u32,
    general: u32,
    kinds: [u32; 2],
    places: u32,
    unused: u32,
}

/// Returns the number of tuples that a thread merges.
const fn items(word_bytes: u8) -> u32 {
    match word_bytes {
        4 => 27,
        8 => 17,
        _ => 9,
    }
}

/// Returns the number of tuples per tile.
const fn tile_tuples(word_bytes: u8) -> u32 {
    THREADS * items(word_bytes)
}

/// Returns the definitions of merge.cu.
fn numbers(word_bytes: u8) -> Vec<(&'static str, u64)> {
    // Blocks per multiprocessor.
    let (blocks, pair_blocks) = if word_bytes == 4 { (5, 5) } else { (5, 4) };
    vec![
        ("BYTES_OF_MERGE", size_of::<Arguments>() as u64),
        ("ITEMS", items(word_bytes).into()),
        ("MERGE_BLOCKS", blocks),
        ("PAIR_BLOCKS", pair_blocks),
        ("AHEAD", 130),
    ]
}

/// Runs an operation. O(tuples of both sides + results); blocks.
///
/// # Errors
/// [`GpuError::Operator`] for keys of two widths, or for values of two widths where tuples of both sides
/// share one column; [`GpuError::Memory`] if the results do not fit; [`GpuError::Driver`] if a driver call
/// fails.
pub fn merge(
    stream: &Stream,
    operation: Operation,
    (left, right): (&Sorted, &Sorted),
    form: Form,
) -> Result<Joined, GpuError> {
    if left.key_bytes != right.key_bytes {
        let (left, right) = (left.key_bytes, right.key_bytes);
        return Err(refused(format!("keys of {left} bytes with keys of {right}: give keys of one type")));
    }
    let is_pairs = operation.is_pairs();
    let width = |side: &Sorted| side.values.as_ref().map_or(0, |values| values.bytes);
    let from_both = operation.emit() & (RIGHT_ALONE | RIGHT_MATCHED) != 0;
    if !is_pairs && from_both && width(left) != width(right) {
        let (left, right) = (width(left), width(right));
        return Err(refused(format!("values of {left} bytes with values of {right} in one column")));
    }
    if left.tuples.saturating_add(right.tuples) > TUPLES_MAX {
        return Err(refused(format!("{} tuples with {}: at most 2^42 in all", left.tuples, right.tuples)));
    }
    // Properties that do not matter are not determined.
    let has_rule = operation.rule().is_some();
    let right_unique =
        if is_pairs || has_rule { right.is_unique(stream)? } else { right.is_promised_unique() };
    let left_unique = if has_rule || (is_pairs && !right_unique) {
        left.is_unique(stream)?
    } else {
        left.is_promised_unique()
    };
    if is_pairs && !right_unique {
        if left_unique {
            // The left keys are unique, so the order of the right ranks is the order of both.
            let mut joined = one_pass(stream, operation.swapped(), (right, left), form, (false, false))?;
            joined.columns.swap(0, 1);
            if let Some(sides) = &joined.sides {
                swap_sides(stream, left, sides)?;
            }
            return Ok(joined);
        }
        let rows = one_pass(stream, operation, (left, right), Form::Ranks, (false, true))?;
        return expand(stream, operation != Operation::Inner, (left, right), rows, form);
    }
    let is_general = has_rule && !(left_unique && right_unique);
    one_pass(stream, operation, (left, right), form, (left_unique && right_unique, is_general))
}

/// Runs one pass; `are_unique` bounds the number of results, `is_general` selects the loop that handles equal
/// keys on both sides.
fn one_pass(
    stream: &Stream,
    operation: Operation,
    (left, right): (&Sorted, &Sorted),
    form: Form,
    (are_unique, is_general): (bool, bool),
) -> Result<Joined, GpuError> {
    let (gpu, key_bytes) = (left.gpu(), left.key_bytes);
    let is_pairs = operation.is_pairs() || form == Form::Ranks;
    let most = operation.most(left.tuples, right.tuples, are_unique);
    let has_sides = matches!(operation, Operation::Left | Operation::Right | Operation::Full);
    let outputs = Outputs::new((left, right), form, most, operation.is_pairs(), has_sides)?;
    let (keys_to, values_to, sides_to) = outputs.addresses();
    let tile = u64::from(tile_tuples(key_bytes));
    let both = left.tuples + right.tuples;
    let tiles = both.div_ceil(tile);
    // Cuts, tile states, and the sum.
    let control = DeviceBuffer::new(gpu, (tiles + 1) * 8 + tiles * 8 + 8)?;
    control.fill(stream, 0)?;
    let instance = left.instance(&MERGE);
    // A pair of unique keys takes two tuples of a tile, except one whose right tuple is the first of the next
    // tile.
    let is_half = are_unique && operation.emit() == LEFT_MATCHED;
    let places =
        if is_half { (tile_tuples(key_bytes) / 2 + 1).next_multiple_of(8) } else { tile_tuples(key_bytes) };
    let arguments = Arguments {
        keys: [left.keys.address(), right.keys.address()],
        values: [left.values_address(), right.values_address()],
        counts: [left.tuples, right.tuples],
        keys_to,
        values_to,
        sides_to,
        cuts: control.address(),
        told: control.address() + (tiles + 1) * 8,
        found: control.address() + (2 * tiles + 1) * 8,
        capacity: most,
        tiles: u32::try_from(tiles).map_err(|_| refused("more tiles than a grid has blocks"))?,
        emit: operation.emit(),
        rule: match operation.rule() {
            None => 0,
            Some(Rule::Set) => 1,
            Some(Rule::Multiset) => 2,
        },
        general: is_general.into(),
        kinds: outputs.kinds,
        places,
        unused: 0,
    };
    let vector = u64::from(16 / key_bytes);
    // A vector before the keys, the keys, and places of two bytes for the results.
    let shared =
        16 + (tile + 16).div_ceil(vector) * 16 + 2 * (tile + if is_pairs { u64::from(places) } else { 0 });
    let shape = LaunchShape { blocks: arguments.tiles, threads: THREADS, shared_bytes: shared as u32 };
    let cutters =
        LaunchShape { blocks: (arguments.tiles + 1).div_ceil(CUTTERS), threads: CUTTERS, shared_bytes: 0 };
    let start = stream.mark()?;
    let mut milliseconds = 0.0;
    if tiles > 0 {
        // SAFETY: columns hold their tuples, outputs have room for the maximum of results, and control holds
        // a cut per tile and one more, a word per tile, and the sum. All live until the stream was waited
        // for, which every way out does.
        let launched = unsafe {
            merge_cuts(stream, instance, cutters, &arguments).and_then(|()| {
                if is_pairs {
                    merge_pairs(stream, instance, shape, &arguments)
                } else {
                    merge_one(stream, instance, shape, &arguments)
                }
            })
        };
        let end = stream.mark();
        stream.synchronize()?;
        launched?;
        milliseconds = f64::from(start.milliseconds_to(&end?)?);
    }
    let mut sum = [0; 8];
    control.part((2 * tiles + 1) * 8, 8).copy_to_host(stream, &mut sum)?;
    let tuples = u64::from_le_bytes(sum);
    if tuples > most {
        return Err(refused(format!(
            "{tuples} results where {most} are the most: keys are not sorted, or not unique as was promised"
        )));
    }
    Ok(outputs.joined(key_bytes, tuples, milliseconds))
}
