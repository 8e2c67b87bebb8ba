//! Choice of types: conversion of the columns of an input.

use crate::format::alternatives;
use crate::kind::{Kind, Target};
use crate::logical::Natural;
use crate::options::InputOptions;
use crate::problem::{fault, problem};
use pleach_builder::SourceError;
use pleach_format::logical::{Form, Logical, Meaning, Ratio, ratio};
use pleach_format::record::FieldKind;
use pleach_format::{KeyType, ValueType};
use std::fmt::Display;

/// The conversion of a column of an input.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<T> {
    /// Type in the file.
    pub(crate) kind: T,
    /// Target of the conversion.
    pub(crate) target: Target,
    /// Logical type, empty if plain.
    pub(crate) logical: String,
}

/// Chooses the conversion of a key column that holds an input type, given by its name and as a type.
pub(crate) fn choose_key(
    input: &str,
    label: &str,
    (held, natural): (String, Option<Natural>),
    options: &InputOptions,
) -> Result<Chosen<KeyType>, SourceError> {
    let natural = natural.ok_or_else(|| {
        let text = fault(
            format!("wrong type: it holds {held}, but keys are {HELD}"),
            "choose another column with --key",
        );
        problem(input, label, text)
    })?;
    let own = natural.extension.as_ref().filter(|_| options.key_type.is_none() && !options.is_raw());
    let stored = own.and_then(|logical| KeyType::from_name(&logical.key_words()?));
    let kind = options.key_type.or(stored).unwrap_or(natural.kind.key_type());
    let meant = Meant { logical: options.key_logical.as_ref().or(own), is_raw: options.is_raw() };
    let target = Some(Target::of_key(kind));
    let (target, logical) = agreed(input, label, &held, &natural, target, (&kind, true), meant)?;
    if logical == Logical::Boolean.meta() {
        // A file would have two of them.
        let advice = "choose another column with --key, or --key-type u32 for 1 and 0";
        return Err(problem(input, label, fault("wrong type: keys cannot be booleans", advice)));
    }
    Ok(Chosen { kind, target, logical })
}

/// Chooses the conversion of a value column.
pub(crate) fn choose_value(
    input: &str,
    label: &str,
    (held, natural): (String, Option<Natural>),
    options: &InputOptions,
) -> Result<Chosen<ValueType>, SourceError> {
    let natural = natural.ok_or_else(|| {
        let text = format!("wrong type: it holds {held}, but values are {HELD}");
        problem(input, label, fault(text, "choose another column with --value, or --value-type none"))
    })?;
    let own = natural.extension.as_ref().filter(|_| options.value_type.is_none() && !options.is_raw());
    let stored = own.and_then(|logical| ValueType::from_name(&logical.value_words()?));
    let kind = options.value_type.or(stored).or(natural.kind.value_type()).ok_or_else(|| {
        let possible = possible(&natural, false);
        let text = format!("wrong type: it holds {held}, which is not a type of values");
        problem(input, label, fault(text, format!("choose {possible} with --value-type, or another column")))
    })?;
    let meant = Meant { logical: options.value_logical.as_ref().or(own), is_raw: options.is_raw() };
    let target = Target::of_value(kind);
    let (target, logical) = agreed(input, label, &held, &natural, target, (&kind, false), meant)?;
    Ok(Chosen { kind, target, logical })
}

/// Returns the requested types of `count` fields.
pub(crate) fn kinds_of_fields(
    input: &str,
    options: &InputOptions,
    count: usize,
) -> Result<Vec<Option<FieldKind>>, SourceError> {
    if let Some(record) = &options.record {
        return Ok(record.fields().iter().map(|field| Some(field.kind)).collect());
    }
    match (options.field_types.as_slice(), options.value_type) {
        // Intervals without values have one field, which says where they end.
        ([], None | Some(ValueType::None)) => Ok(vec![None; count]),
        ([], Some(value_type)) => {
            let meant = options.value_logical.as_ref().and_then(Logical::field_words);
            let name = meant.unwrap_or_else(|| value_type.to_string());
            match FieldKind::from_name(&name) {
                Some(kind) => Ok(vec![Some(kind); count]),
                None => {
                    let text = format!("{value_type} is not a type of the fields of a record");
                    Err(problem(input, "", fault(text, "choose another one with --value-type")))
                }
            }
        }
        (&[kind], _) => Ok(vec![Some(kind); count]),
        (kinds, _) if kinds.len() == count => Ok(kinds.iter().copied().map(Some).collect()),
        (kinds, _) => {
            let text = format!("there are {count} value columns, but {} types", kinds.len());
            Err(problem(input, "", fault(text, "give one for each, or one for all")))
        }
    }
}

/// The requested meaning of a column.
#[derive(Clone, Copy)]
pub(crate) struct Meant<'a> {
    /// A logical type; `None` keeps that of the column.
    pub(crate) logical: Option<&'a Logical>,
    /// Plain integers are taken as its words.
    pub(crate) is_raw: bool,
}

/// Returns the requested logical types of `count` fields.
pub(crate) fn logicals_of_fields(options: &InputOptions, count: usize) -> Vec<Option<Logical>> {
    if let Some(record) = &options.record {
        return record.fields().iter().map(|field| Some(Logical::of_meta(&field.logical))).collect();
    }
    match options.field_logicals.as_slice() {
        [] => vec![options.value_logical.clone(); count],
        [one] => vec![Some(one.clone()).filter(|one| *one != Logical::Plain); count],
        each => each.iter().map(|one| Some(one.clone()).filter(|one| *one != Logical::Plain)).collect(),
    }
}

/// Supported contents of columns, for messages.
const HELD: &str = "integers (8 to 64 bits), floats (32 or 64 bits), dates, times, timestamps, durations, decimals, \
                    booleans, texts or binary strings";

/// Returns true if elements of one kind can be converted to another at all.
fn converts(natural: &Natural, target: Kind) -> bool {
    match (natural.kind, target) {
        // The digits of a decimal are not a float; a decimal with digits after the point becomes only itself.
        (from, to) if from == to => true,
        (_, to) if natural.scale.is_some_and(|scale| scale != 0 || to.is_float()) => false,
        // Numbers kept as text.
        (Kind::Utf8, to) if !to.is_bytes() => true,
        (Kind::Fixed(16), Kind::U128) => true,
        (Kind::Fixed(from), Kind::Fixed(to)) => from == to,
        (from, to) => from.is_bytes() == to.is_bytes(),
    }
}

/// Lists the types that a column can become, for messages.
fn possible(natural: &Natural, key: bool) -> String {
    const KEYS: [Kind; 6] = [Kind::U32, Kind::U64, Kind::U128, Kind::I32, Kind::I64, Kind::F64];
    const VALUES: [Kind; 6] = [Kind::U32, Kind::U64, Kind::I32, Kind::I64, Kind::F32, Kind::F64];
    let numbers = if key { KEYS } else { VALUES };
    let name = |kind: Kind| kind.key_type().to_string();
    let mut names: Vec<String> = numbers
        .into_iter()
        .filter(|&kind| converts(natural, kind))
        .map(|kind| if kind == Kind::F32 { "f32".to_owned() } else { name(kind) })
        .collect();
    match natural.kind {
        Kind::Fixed(_) => names.extend([name(natural.kind), name(Kind::Bytes), name(Kind::Utf8)]),
        Kind::Bytes | Kind::Utf8 => names.extend(["bytesN".to_owned(), name(Kind::Bytes), name(Kind::Utf8)]),
        _ => {}
    }
    alternatives(names)
}

/// Reports whether elements of this kind are those of a logical type, without being texts of it.
fn holds_elements(kind: Kind, logical: &Logical) -> bool {
    match (logical, kind) {
        // As they are on the network and in other libraries.
        (Logical::Uuid | Logical::Ipv6, Kind::Fixed(16)) => true,
        (Logical::Ipv4, Kind::U32 | Kind::U64 | Kind::I64) => true,
        (Logical::Boolean, Kind::U32 | Kind::U64 | Kind::I32 | Kind::I64) => true,
        (Logical::Hex, Kind::Fixed(_) | Kind::Bytes) => true,
        (Logical::HexDigits(count @ 33..), Kind::Fixed(bytes)) => *count == 2 * u32::from(bytes),
        _ => false,
    }
}

/// Returns the target, if the column can become it, and the logical type that is kept: an explicit type turns
/// a logical type into plain numbers.
pub(crate) fn agreed(
    input: &str,
    label: &str,
    held: &str,
    natural: &Natural,
    target: Option<Target>,
    (wish, key): (&dyn Display, bool),
    meant: Meant<'_>,
) -> Result<(Target, String), SourceError> {
    let own = Logical::of_meta(&natural.logical);
    if let (Some(target), Some(logical)) = (target, meant.logical)
        && (*logical != Logical::Plain || own != Logical::Plain)
    {
        let is_text = natural.kind == Kind::Utf8 && !meant.is_raw;
        let is_element = own == Logical::Plain && holds_elements(natural.kind, logical);
        let is_raw = meant.is_raw && own == Logical::Plain && converts(natural, target.kind);
        let from = match ratio(&own, logical) {
            Some(Ratio::ONE) => Some(None),
            Some(ratio) => own.form().map(|form| Some((ratio, form))),
            None if *logical != Logical::Plain && (is_text || is_element || is_raw) => Some(None),
            None => None,
        };
        let Some(from) = from else {
            let (here, role) =
                (Meaning::new(natural.kind.key_type(), &natural.logical), if key { "key" } else { "value" });
            let there = if *logical == Logical::Plain { format!("plain {wish}") } else { logical.name() };
            let text = format!("wrong type: it holds {here}, but {role}s are {there}");
            return Err(problem(input, label, fault(text, "choose a column of that type")));
        };
        let form = logical.form().filter(|form| is_text || from.is_some() || *form == Form::Boolean);
        return Ok((Target { form, from, ..target }, logical.meta()));
    }
    let Some(target) = target.filter(|target| converts(natural, target.kind)) else {
        let option = if key { "--key-type" } else { "--value-type" };
        let possible = possible(natural, key);
        let text = format!("wrong type: {held} can become {possible}, not {wish}");
        return Err(problem(
            input,
            label,
            fault(text, format!("choose one of these with {option}, or another column")),
        ));
    };
    let logical = if natural.kind == target.kind { natural.logical.clone() } else { String::new() };
    let form = target.form.or(Some(Form::Boolean).filter(|_| logical == Logical::Boolean.meta()));
    Ok((Target { form, ..target }, logical))
}
