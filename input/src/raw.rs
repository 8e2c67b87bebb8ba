//! Raw tuples: little-endian keys and values of the types that the options specify.

use crate::body::Body;
use crate::kind::{Kind, Target, Wanted};
use crate::logical::Natural;
use crate::names::{Asked, Names};
use crate::problem::{fault, problem};
use crate::records::{Item, Lane, Records, ragged};
use crate::selection::Selection;
use pleach_builder::{Source, SourceError};
use std::fmt::Display;

/// Opens raw tuples.
pub(crate) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (key_type, value_type) = options.raw.ok_or_else(|| {
        problem(input, "", "raw tuples have no types: give them with --raw, such as u64,u64")
    })?;
    let column = |target: Target, name: &dyn Display, at: usize| {
        let item = Item::of(target.kind).ok_or_else(|| {
            let text = format!("raw tuples have a fixed length, but {name} has none");
            let advice = "give --raw a type like bytes16, or convert it to another format";
            problem(input, "", fault(text, advice))
        })?;
        Ok((name.to_string(), target.kind, item, at))
    };
    let mut columns: Vec<(String, Kind, Item, usize)> = vec![column(Target::of_key(key_type), &key_type, 0)?];
    if let Some(target) = Target::of_value(value_type) {
        columns.push(column(target, &value_type, key_type.bytes())?);
    }
    let stride = key_type.bytes() + value_type.bytes();
    let names = Names::Numbered(columns.len());
    let choice = names.choose(input, options)?;
    if choice.fields.is_some() {
        let text =
            "raw tuples have one value: give --raw a type like bytes12, or convert it to another format";
        return Err(problem(input, "", text));
    }
    if !choice.parts.is_empty() {
        let text = "raw tuples have one key: give --raw a type like bytes12, or convert it to another format";
        return Err(problem(input, "", text));
    }
    let held = |index: usize| {
        let (name, kind, ..) = &columns[index];
        let logical = String::new();
        (name.clone(), Some(Natural { kind: *kind, logical, scale: None, narrow: None, extension: None }))
    };
    let Selection { key, value, mut schema, .. } = Selection::new(input, names, choice, options, held)?;
    let lane = |wanted: Wanted| {
        let (.., item, at) = columns[wanted.index];
        let Wanted { target, label, .. } = wanted;
        Lane { at, item, swapped: false, lowest_is_null: false, padded: false, target, label }
    };
    let (reader, bytes) = body.into_stream();
    if let Some(left) = bytes.map(|bytes| bytes % stride as u64).filter(|&left| left > 0) {
        return Err(ragged(input, stride, left));
    }
    schema.rows = bytes.map(|bytes| bytes / stride as u64);
    Ok(Box::new(Records::new(input, reader, schema, stride, (lane(key), value.map(lane)), None, 0)))
}
