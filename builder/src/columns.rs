//! Sorted columns: the KEYS and VALS sections, made from sorted tuples.

use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::pack::{KeyLane, ValueLane};
use crate::section::{Content, Extra, TakeBytes};
use pleach_format::column::{ColumnGeometry, GUARD_BYTES, push_native_key};
use pleach_format::section::Tag;

/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Makes a column's section of the elements that `each` adds, one by one, whenever it is called.
pub(crate) fn section<'a>(
    tag: Tag,
    required: bool,
    shape: ColumnGeometry,
    each: impl Fn(&mut TakeBytes<'_>) -> Result<(), BuildError> + 'a,
) -> Extra<'a> {
    let content: Content<'a> = Box::new(move |take| {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 64);
        if shape.offset_bytes > 0 {
            let width = shape.offset_bytes as usize;
            let mut end = 0u64;
            buffer.extend_from_slice(&end.to_le_bytes()[..width]);
            each(&mut |element| {
                end += element.len() as u64;
                buffer.extend_from_slice(&end.to_le_bytes()[..width]);
                flush(&mut buffer, BUFFER_BYTES, take)
            })?;
            let padding = shape.data_at - (shape.elements + 1) * shape.offset_bytes;
            buffer.extend(std::iter::repeat_n(0, padding as usize));
        }
        each(&mut |element| {
            buffer.extend_from_slice(element);
            flush(&mut buffer, BUFFER_BYTES, take)
        })?;
        buffer.extend([0; GUARD_BYTES as usize]);
        flush(&mut buffer, 0, take)
    });
    let (length, elements) = (shape.bytes().unwrap_or(u64::MAX), shape.elements);
    Extra { tag, required, length, elements, parameters: shape.parameters().into(), content }
}

fn flush(buffer: &mut Vec<u8>, at_least: usize, take: &mut TakeBytes<'_>) -> Result<(), BuildError> {
    if buffer.len() >= at_least {
        take(buffer)?;
        buffer.clear();
    }
    Ok(())
}

/// Makes the columns of numeric keys and values, read back from the tuple lines.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
) -> Result<Vec<Extra<'a>>, BuildError> {
    let key_type = job.schema.key_type;
    let too_large = || BuildError::TooLarge { what: "a column", found: lines.tuples, limit: u64::MAX >> 8 };
    let shape = |bytes: usize| ColumnGeometry::fixed(lines.tuples, bytes as u64).ok_or_else(too_large);
    let mut sections = vec![section(Tag::KEYS, false, shape(key_type.bytes())?, move |add| {
        let mut native = Vec::new();
        lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
            native.clear();
            for tuple in tuples {
                push_native_key(key_type, lines.key(tuple.key), &mut native);
            }
            add(&native)
        })
    })];
    if B::BYTES > 0 {
        sections.push(section(Tag::VALUES, false, shape(B::BYTES)?, move |add| {
            let mut native = Vec::new();
            lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
                native.clear();
                for tuple in tuples {
                    native.extend_from_slice(&tuple.value.to_u64().to_le_bytes()[..B::BYTES]);
                }
                add(&native)
            })
        }));
    }
    Ok(sections)
}
