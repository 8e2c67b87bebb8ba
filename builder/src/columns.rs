//! Sorted columns: from sorted tuples to the KEYS and VALS sections.

use crate::error::BuildError;
use crate::finish::{Content, Extra, TakeBytes};
use crate::flow::Job;
use crate::lines::Lines;
use crate::pack::{KeyLane, Tuple, ValueLane, unpack};
use pleach_format::column::{ColumnGeometry, GUARD_BYTES};
use pleach_format::section::Tag;
use pleach_format::{Key, KeyType};

/// Bytes that are handed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// A column's section, of the elements that `each` adds, one by one, whenever it is called.
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
    Extra { tag, required, length, elements, geometry: shape.stored(), content }
}

fn flush(buffer: &mut Vec<u8>, at_least: usize, take: &mut TakeBytes<'_>) -> Result<(), BuildError> {
    if buffer.len() >= at_least {
        take(buffer)?;
        buffer.clear();
    }
    Ok(())
}

/// The columns of numeric keys and values, read back from the tuple lines.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
) -> Result<Vec<Extra<'a>>, BuildError> {
    let key_type = job.schema.key_type;
    let too_large = || BuildError::TooLarge { what: "a column", found: lines.tuples, limit: u64::MAX >> 8 };
    let shape = |bytes: usize| ColumnGeometry::fixed(lines.tuples, bytes as u64).ok_or_else(too_large);
    let mut sections = vec![section(Tag::KEYS, false, shape(W::BYTES)?, move |add| {
        let (mut bytes, mut native) = ([0; 16], Vec::new());
        each_batch::<W, B>(job, lines, &mut |tuples| {
            native.clear();
            for tuple in tuples {
                tuple.key.write(&mut bytes);
                let key = &mut bytes[..W::BYTES];
                key.reverse();
                native_key(key_type, key, &mut native);
            }
            add(&native)
        })
    })];
    if B::BYTES > 0 {
        sections.push(section(Tag::VALUES, false, shape(B::BYTES)?, move |add| {
            let mut native = Vec::new();
            each_batch::<W, B>(job, lines, &mut |tuples| {
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

/// Hands out all tuples of finished lines, in order.
fn each_batch<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    take: &mut dyn FnMut(&[Tuple<W, B>]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    const LINES: usize = 1 << 12;
    let n = crate::pack::per_line::<W, B>() as u64;
    let (mut left, mut tuples) = (lines.tuples, Vec::new());
    lines.each_piece(job.output, job.watch, &mut |piece| {
        for piece in piece.chunks(LINES) {
            let count = left.min(piece.len() as u64 * n);
            tuples.clear();
            unpack(piece, count as usize, &mut tuples);
            left -= count;
            take(&tuples)?;
        }
        Ok(())
    })
}

/// A key as the key column holds it, from its encoded bytes, most significant first.
pub(crate) fn native_key(key_type: KeyType, key: &[u8], out: &mut Vec<u8>) {
    let word = || key.iter().fold(0, |word, &byte| word << 8 | u128::from(byte));
    match key_type {
        KeyType::U32 => out.extend_from_slice(&(word() as u32).to_le_bytes()),
        KeyType::U64 => out.extend_from_slice(&(word() as u64).to_le_bytes()),
        KeyType::I32 => out.extend_from_slice(&i32::decode(word() as u32).to_le_bytes()),
        KeyType::I64 => out.extend_from_slice(&i64::decode(word() as u64).to_le_bytes()),
        KeyType::F64 => out.extend_from_slice(&f64::decode(word() as u64).to_le_bytes()),
        _ => out.extend_from_slice(key),
    }
}
