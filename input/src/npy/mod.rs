//! NumPy arrays (`.npy`, versions 1 to 3).
//!
//! A file is a header, which is the text of a Python dictionary, and records of fixed length: see
//! [`crate::records`]. An array of one dimension holds keys. One of two dimensions has columns by number, in
//! either order of its elements. The fields of a structured array are columns by name.
//!
//! `datetime64` and `timedelta64` in seconds or finer become timestamps and durations; NaT is null. `bool` becomes
//! booleans. Bytes
//! (`S16`, `V16`) keep their length and all their bytes; if requested as `bytes` or `utf8`, those of `S` lose
//! the zeros with which NumPy pads them. Texts (`U16`) become `utf8`, always without padding.

mod header;

use crate::body::{Body, fill};
use crate::columnar::Columnar;
use crate::kind::Wanted;
use crate::names::{Asked, Names};
use crate::problem::{caused, fault, problem, unreadable};
use crate::records::{Lane, Records};
use crate::selection::Selection;
use header::{Header, Layout};
use pleach_builder::{Source, SourceError};
use std::io::Read;

/// Maximum bytes of a header. NumPy itself accepts 10,000 bytes; wide structured arrays have more.
const HEADER_BYTES_MAX: usize = 4 << 20;

/// Opens an array.
pub(crate) fn open(input: &str, mut body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (text, header_bytes) = match &mut body {
        Body::File(file, _) => read_header(input, file)?,
        Body::Stream(stream, _) => read_header(input, &mut **stream)?,
    };
    let header = Header::parse(&text).map_err(|what| {
        problem(input, "", fault(format!("invalid NumPy header ({what})"), "write it again"))
    })?;
    let table = header.table().map_err(|what| problem(input, "", what))?;
    let names = match &table.names {
        Some(names) => Names::Named(names),
        None => Names::Numbered(table.columns.len()),
    };
    let held = |index: usize| {
        let column = &table.columns[index];
        (column.held.clone(), column.item.as_ref().map(|item| item.natural.clone()))
    };
    let choice = names.choose(input, options)?;
    let Selection { key, value, fields, mut schema } = Selection::new(input, names, choice, options, held)?;
    schema.rows = Some(table.rows);
    let no_item =
        || problem(input, &*key.label, "it holds no supported type: choose another column with --key");
    let mut key_lane = lane(&table, &key).ok_or_else(no_item)?;
    let mut value_lane = value.and_then(|wanted| lane(&table, &wanted));
    let mut fields = fields.map(|fields| {
        // A column that has a type has an item.
        let lanes: Vec<Lane> = fields.columns.iter().filter_map(|wanted| lane(&table, wanted)).collect();
        (fields, lanes)
    });
    // Columns stored one after the other need a file; a stream is copied to one without the header.
    let (body, start) = match body {
        Body::Stream(..) if table.by_column => {
            let (file, bytes) = body.into_file(input)?;
            (Body::File(file, bytes), 0)
        }
        body => (body, header_bytes),
    };
    if let Body::File(_, bytes) = &body {
        check_length(input, &table, bytes.saturating_sub(start))?;
    }
    let (reader, stride): (Box<dyn Read + Send>, _) = match body {
        Body::File(file, _) if table.by_column => {
            let lanes = fields.iter_mut().flat_map(|(_, lanes)| lanes);
            let lanes = std::iter::once(&mut key_lane).chain(&mut value_lane).chain(lanes);
            let width = table.stride / table.columns.len();
            // Each lane reads a column; the records have only these columns.
            let columns = lanes.enumerate().map(|(place, lane)| {
                let column = (lane.at / width) as u64;
                lane.at = place * width;
                column
            });
            let records = Columnar::new(file, start, table.rows, width, columns.collect());
            let stride = records.stride();
            (Box::new(records), stride)
        }
        body => (body.into_stream().0, table.stride),
    };
    Ok(Box::new(Records::new(input, reader, schema, stride, (key_lane, value_lane), fields, header_bytes)))
}

/// Returns the place of a column in the records, if it can be read.
fn lane(table: &Layout, wanted: &Wanted) -> Option<Lane> {
    let column = &table.columns[wanted.index];
    let item = column.item.as_ref()?;
    Some(Lane {
        at: column.at,
        item: item.item,
        swapped: item.swapped,
        lowest_is_null: !item.natural.logical.is_empty(),
        padded: item.padded,
        target: wanted.target,
        label: wanted.label.clone(),
    })
}

/// Compares the bytes after the header with the rows that it promises.
fn check_length(input: &str, table: &Layout, there: u64) -> Result<(), SourceError> {
    let rows = table.rows;
    let wanted = u128::from(rows) * table.stride as u128;
    if u128::from(there) < wanted {
        let text = format!("its header declares {rows} rows ({wanted} bytes), but {there} bytes follow");
        return Err(problem(input, "", fault(text, "it is truncated")));
    }
    if u128::from(there) > wanted {
        return Err(problem(input, "", fault(format!("more bytes follow its {rows} rows"), "cut them off")));
    }
    Ok(())
}

/// Reads the header; returns its text, and the number of bytes before the data.
fn read_header(input: &str, reader: &mut dyn Read) -> Result<(String, u64), SourceError> {
    let mut take = |bytes: &mut [u8]| match fill(reader, bytes) {
        Ok(read) if read == bytes.len() => Ok(()),
        Ok(_) => Err(problem(input, "", "it ends inside the header of a NumPy array: it is truncated")),
        Err(error) => Err(unreadable(input, "", error)),
    };
    let mut start = [0; 8];
    take(&mut start)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(problem(input, "", "not a NumPy array: check the format of the file"));
    }
    let (length, head_bytes) = match start[6] {
        1 => {
            let mut length = [0; 2];
            take(&mut length)?;
            (usize::from(u16::from_le_bytes(length)), 10)
        }
        2 | 3 => {
            let mut length = [0; 4];
            take(&mut length)?;
            (u32::from_le_bytes(length) as usize, 12)
        }
        version => {
            let text =
                fault(format!("it is a NumPy array of version {version}"), "versions 1 to 3 are supported");
            return Err(problem(input, "", text));
        }
    };
    if length > HEADER_BYTES_MAX {
        let text = fault(
            format!("its header has {length} bytes"),
            format!("at most {HEADER_BYTES_MAX} are supported"),
        );
        return Err(problem(input, "", text));
    }
    let mut text = vec![0; length];
    take(&mut text)?;
    let text = match start[6] {
        // Latin-1, whose bytes are the first 256 characters.
        1 | 2 => text.into_iter().map(char::from).collect(),
        _ => String::from_utf8(text).map_err(|error| caused(input, "", "its header is not UTF-8", error))?,
    };
    Ok((text, head_bytes + length as u64))
}
