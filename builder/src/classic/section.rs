//! The FAST section: the classic tree of a file's words.

use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::pack::{KeyLane, ValueLane};
use crate::section::Extra;
use pleach_format::classic::Geometry;
use pleach_format::classic::packed::Form;
use pleach_format::classic::section::store;
use pleach_format::section::Tag;

/// Makes the tree of all words, in the paper's geometry with padded lines. Words and tree are held in memory;
/// the section is for measurements.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
) -> Result<Extra<'a>, BuildError> {
    let too_large = || BuildError::TooLarge { what: "a classic tree", found: lines.tuples, limit: 1 << 48 };
    let mut words: Vec<W> = Vec::with_capacity(usize::try_from(lines.tuples).map_err(|_| too_large())?);
    lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
        words.extend(tuples.iter().map(|tuple| tuple.key));
        Ok(())
    })?;
    let geometry = Geometry { padded: true, ..Geometry::paper(lines.tuples, W::BYTES as u32) };
    let bytes = geometry.tree().ok_or_else(too_large)?.bytes();
    let mut tree = vec![0; usize::try_from(bytes).map_err(|_| too_large())?];
    W::classic(&words, &geometry, &mut tree).map_err(|_| too_large())?;
    Ok(Extra {
        tag: Tag::FAST,
        required: false,
        length: bytes,
        elements: lines.tuples,
        parameters: store(&geometry, Form::Full),
        content: Box::new(move |take| tree.chunks(1 << 20).try_for_each(&mut *take)),
    })
}
