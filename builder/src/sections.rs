//! The optional sections that every build makes from its tuple lines, in the order of the file.

use crate::error::BuildError;
use crate::job::Job;
use crate::layout::Fast;
use crate::lines::Lines;
use crate::pack::{KeyLane, ValueLane};
use crate::section::Extra;
use crate::{btree, classic, harmonia, packed};
use std::any::Any;

/// Appends the sections that the options specify.
pub(crate) fn append<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    sections: &mut Vec<Extra<'a>>,
) -> Result<(), BuildError> {
    if job.options.packed {
        sections.push(packed::of_lines::<W, B>(job, lines)?);
    }
    if let Some(wanted) = job.options.fast {
        sections.push(fast::<W, B>(job, lines, wanted)?);
    }
    if let Some(shape) = job.options.harmonia {
        sections.push(harmonia::of_lines::<W, B>(job, lines, shape)?);
    }
    if let Some(shape) = job.options.btree {
        sections.push(btree::of_lines::<W, B>(job, lines, shape)?);
    }
    Ok(())
}

/// Makes the FAST section: the words of a tree are of a trait of their own, which these three types have.
fn fast<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    wanted: Fast,
) -> Result<Extra<'a>, BuildError> {
    let any: &'a dyn Any = lines;
    if let Some(lines) = any.downcast_ref::<Lines<u32>>() {
        return classic::section::of_lines::<u32, B>(job, lines, wanted);
    }
    if let Some(lines) = any.downcast_ref::<Lines<u64>>() {
        return classic::section::of_lines::<u64, B>(job, lines, wanted);
    }
    if let Some(lines) = any.downcast_ref::<Lines<u128>>() {
        return classic::section::of_lines::<u128, B>(job, lines, wanted);
    }
    unreachable!("words have 4, 8 or 16 bytes")
}
