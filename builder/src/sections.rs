//! The optional sections that every build makes from its tuple lines, in the order of the file.

use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::pack::{KeyLane, ValueLane};
use crate::section::Extra;
use crate::{classic, harmonia, packed};

/// Appends the sections that the options specify.
pub(crate) fn append<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    sections: &mut Vec<Extra<'a>>,
) -> Result<(), BuildError> {
    if job.options.packed {
        sections.push(packed::of_lines::<W, B>(job, lines)?);
    }
    if job.options.classic {
        sections.push(classic::section::of_lines::<W, B>(job, lines)?);
    }
    if let Some(shape) = job.options.harmonia {
        sections.push(harmonia::of_lines::<W, B>(job, lines, shape)?);
    }
    Ok(())
}
