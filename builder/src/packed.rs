//! The compressed key column, made from the tuple lines: read back once for the records, once for the pages.

use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::pack::{KeyLane, ValueLane};
use crate::section::Extra;
use pleach_format::packed::{GUARD_BYTES, PAGE_KEYS, PackedGeometry, Record, pack, shape_of};
use pleach_format::section::Tag;

/// Passes on the words of whole pages, and last those of a partial page.
fn each_page<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    take: &mut dyn FnMut(&[W]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut words: Vec<W> = Vec::new();
    lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
        words.extend(tuples.iter().map(|tuple| tuple.key));
        let whole = words.len() / PAGE_KEYS * PAGE_KEYS;
        words[..whole].chunks_exact(PAGE_KEYS).try_for_each(&mut *take)?;
        words.drain(..whole);
        Ok(())
    })?;
    if words.is_empty() { Ok(()) } else { take(&words) }
}

/// Makes the section for numeric keys of 4 and 8 bytes.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
) -> Result<Extra<'a>, BuildError> {
    let mut records = Vec::new();
    let mut place = 0;
    each_page::<W, B>(job, lines, &mut |words| {
        let (base, width) = shape_of(words);
        let record = Record { base, place, width };
        records.extend_from_slice(&record.to_bytes());
        place += record.page_bytes();
        Ok(())
    })?;
    let shape = PackedGeometry::new(lines.tuples, W::BYTES, place);
    let (Some(shape), Some(length)) = (shape, shape.and_then(PackedGeometry::bytes)) else {
        return Err(BuildError::TooLarge {
            what: "a packed column",
            found: lines.tuples,
            limit: u64::MAX >> 8,
        });
    };
    records.resize(shape.data_at as usize, 0);
    Ok(Extra {
        tag: Tag::PACK,
        required: false,
        length,
        elements: lines.tuples,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| {
            take(&records)?;
            let mut page = Vec::new();
            each_page::<W, B>(job, lines, &mut |words| {
                page.clear();
                pack(words, &mut page);
                take(&page)
            })?;
            take(&[0; GUARD_BYTES as usize])
        }),
    })
}
