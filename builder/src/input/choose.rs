//! Which columns of an input are read, and what they become.

use super::convert::{Kind, Target};
use super::logical::Natural;
use super::{InputOptions, problem};
use crate::source::SourceError;
use pleach_format::logical::{Logical, Meaning, Ratio, ratio};
use pleach_format::record::FieldKind;
use pleach_format::{KeyType, ValueType};
use std::fmt::Display;

/// Columns that become the fields of a record, in its order.
pub(super) type FieldIndices = Vec<usize>;

/// The columns of an input.
#[derive(Clone, Copy)]
pub(super) enum Names<'a> {
    /// They have names, which may be empty or occur twice.
    Named(&'a [String]),
    /// There are so many.
    Numbered(usize),
}

impl Names<'_> {
    fn len(self) -> usize {
        match self {
            Self::Named(names) => names.len(),
            Self::Numbered(count) => count,
        }
    }

    /// `column "id"` or `column 3`.
    pub(super) fn label(self, index: usize) -> String {
        match self {
            Self::Named(names) => format!("column {:?}", names[index]),
            Self::Numbered(_) => format!("column {index}"),
        }
    }

    /// The name that the file keeps.
    pub(super) fn kept(self, index: usize, role: &str) -> String {
        match self {
            Self::Named(names) => names[index].clone(),
            Self::Numbered(_) => role.to_owned(),
        }
    }

    /// The name of a field of a record.
    pub(super) fn field(self, index: usize) -> String {
        match self {
            Self::Named(names) => names[index].clone(),
            Self::Numbered(_) => format!("c{index}"),
        }
    }

    fn list(self) -> String {
        match self {
            Self::Numbered(1) => "there is one column, 0".to_owned(),
            Self::Numbered(count) => format!("there are {count} columns, from 0"),
            Self::Named(names) => {
                // A table of a thousand columns must not fill the screen.
                let shown: Vec<String> = names.iter().take(20).map(|name| format!("{name:?}")).collect();
                let more =
                    if names.len() > 20 { format!(" and {} more", names.len() - 20) } else { String::new() };
                format!("the columns are {}{more}", shown.join(", "))
            }
        }
    }

    fn find(self, input: &str, wish: &str) -> Result<usize, SourceError> {
        if let Self::Named(names) = self {
            let mut hits = names.iter().enumerate().filter(|(_, name)| *name == wish).map(|(index, _)| index);
            match (hits.next(), hits.count()) {
                (Some(index), 0) => return Ok(index),
                (Some(_), more) => {
                    let text = format!("column {wish:?} is there {} times: choose it by number", more + 1);
                    return Err(problem(input, "", text));
                }
                (None, _) => {}
            }
        }
        match wish.parse::<usize>() {
            Ok(index) if index < self.len() => Ok(index),
            _ => Err(problem(input, "", format!("column {wish:?} is not there: {}", self.list()))),
        }
    }

    /// The columns of values, if they are several: those of a list that is the name of no column.
    fn choose_fields(self, input: &str, options: &InputOptions) -> Result<Option<FieldIndices>, SourceError> {
        if options.value_type == Some(ValueType::None) {
            return Ok(None);
        }
        if let Some(record) = &options.record
            && options.value.is_none()
        {
            let named = |name: &String| match self {
                Self::Named(names) => names.contains(name),
                Self::Numbered(_) => false,
            };
            let mut names = record.fields().iter().map(|field| &field.name);
            let first = 1 + usize::from(options.changes);
            return if names.clone().all(named) {
                names.map(|name| self.find(input, name)).collect::<Result<_, _>>().map(Some)
            } else if self.len() >= first + record.len() {
                Ok(Some((first..first + record.len()).collect()))
            } else {
                // Which one is missing says the message.
                names.try_for_each(|name| self.find(input, name).map(drop))?;
                Ok(None)
            };
        }
        let Some(list) = options.value.as_deref() else { return Ok(None) };
        let whole = matches!(self, Self::Named(names) if names.iter().any(|name| name == list));
        if options.record.is_none() && (whole || !list.contains(',')) {
            return Ok(None);
        }
        list.split(',').map(|name| self.find(input, name.trim())).collect::<Result<_, _>>().map(Some)
    }

    /// The key column, and the value column or the columns of a record, if there are values.
    pub(super) fn choose(
        self,
        input: &str,
        options: &InputOptions,
    ) -> Result<(usize, Option<usize>, Option<FieldIndices>), SourceError> {
        let fields = self.choose_fields(input, options)?;
        let alone = InputOptions { value: None, ..options.clone() };
        let (key, value) = self.choose_one(input, if fields.is_some() { &alone } else { options })?;
        if fields.is_none() && !options.field_types.is_empty() {
            let text = "types of fields are for several columns of values: name them with --value a,b";
            return Err(problem(input, "", text));
        }
        Ok((key, value.filter(|_| fields.is_none()), fields))
    }

    /// The key column, and the value column if there are values.
    fn choose_one(self, input: &str, options: &InputOptions) -> Result<(usize, Option<usize>), SourceError> {
        if self.len() == 0 {
            return Err(problem(input, "", "it has no columns"));
        }
        let first = usize::from(options.changes);
        if self.len() <= first {
            return Err(problem(
                input,
                "",
                "it has one column: changes have an operation, a key and a value",
            ));
        }
        let key = options.key.as_deref().map_or(Ok(first), |wish| self.find(input, wish))?;
        if options.value_type == Some(ValueType::None) {
            return Ok((key, None));
        }
        let value = match options.value.as_deref() {
            Some(wish) => Some(self.find(input, wish)?),
            None if options.changes => (self.len() > 2).then_some(2),
            None if self.len() == 1 => None,
            None => Some(usize::from(key != 1)),
        };
        if value.is_none() && options.value_type.is_some() {
            let text = "there is no value column, but a value type: leave it out, or name a column";
            return Err(problem(input, "", text));
        }
        Ok((key, value))
    }

    /// The column of operations, in a table of changes.
    pub(super) fn choose_op(self, input: &str, options: &InputOptions) -> Result<Option<usize>, SourceError> {
        if !options.changes {
            return Ok(None);
        }
        options.op.as_deref().map_or(Ok(0), |wish| self.find(input, wish)).map(Some)
    }
}

/// What a column of an input becomes.
#[derive(Clone, Debug)]
pub(super) struct Chosen<T> {
    /// Type in the file.
    pub(super) kind: T,
    /// What it is converted to.
    pub(super) target: Target,
    /// Logical type, empty if plain.
    pub(super) logical: String,
}

/// What a key column that holds `natural` (an input type of name `held`) becomes.
pub(super) fn choose_key(
    input: &str,
    label: &str,
    held: &str,
    natural: Option<Natural>,
    options: &InputOptions,
) -> Result<Chosen<KeyType>, SourceError> {
    let natural = natural.ok_or_else(|| {
        let text =
            format!("wrong type: it holds {held}, but keys are {HELD}: choose another column with --key");
        problem(input, label, text)
    })?;
    let kind = options.key_type.unwrap_or(natural.kind.key_type());
    let meant = Meant { logical: options.key_logical.as_ref(), is_raw: options.is_raw() };
    let (target, logical) = agreed(input, label, held, &natural, Target::of_key(kind), (&kind, true), meant)?;
    Ok(Chosen { kind, target, logical })
}

/// What a value column that holds `natural` becomes.
pub(super) fn choose_value(
    input: &str,
    label: &str,
    held: &str,
    natural: Option<Natural>,
    options: &InputOptions,
) -> Result<Chosen<ValueType>, SourceError> {
    let natural = natural.ok_or_else(|| {
        let text = format!("wrong type: it holds {held}, but values are {HELD}");
        problem(input, label, format!("{text}: choose another column with --value, or --value-type none"))
    })?;
    let kind = options.value_type.or(natural.kind.value_type()).ok_or_else(|| {
        let possible = possible(&natural, false);
        let text = format!("wrong type: it holds {held}, and no values are of that type");
        problem(input, label, format!("{text}: choose {possible} with --value-type, or another column"))
    })?;
    let meant = Meant { logical: options.value_logical.as_ref(), is_raw: options.is_raw() };
    let target = Target::of_value(kind);
    let (target, logical) = agreed(input, label, held, &natural, target, (&kind, false), meant)?;
    Ok(Chosen { kind, target, logical })
}

/// The types that are asked for as those of `count` fields.
pub(super) fn kinds_of_fields(
    input: &str,
    options: &InputOptions,
    count: usize,
) -> Result<Vec<Option<FieldKind>>, SourceError> {
    if let Some(record) = &options.record {
        return Ok(record.fields().iter().map(|field| Some(field.kind)).collect());
    }
    match (options.field_types.as_slice(), options.value_type) {
        ([], None) => Ok(vec![None; count]),
        ([], Some(value_type)) => match FieldKind::from_name(&value_type.to_string()) {
            Some(kind) => Ok(vec![Some(kind); count]),
            None => {
                let text = format!("{value_type} has no fixed width, which the fields of a record have");
                Err(problem(input, "", format!("{text}: choose a type like bytes16 with --value-type")))
            }
        },
        (&[kind], _) => Ok(vec![Some(kind); count]),
        (kinds, _) if kinds.len() == count => Ok(kinds.iter().copied().map(Some).collect()),
        (kinds, _) => {
            let text = format!("there are {count} columns of values, but {} types", kinds.len());
            Err(problem(input, "", format!("{text}: give one for each, or one for all")))
        }
    }
}

/// What a column is asked to mean.
#[derive(Clone, Copy)]
pub(super) struct Meant<'a> {
    /// A logical type; `None`: that of the column.
    pub(super) logical: Option<&'a Logical>,
    /// Plain integers are its words.
    pub(super) is_raw: bool,
}

/// The logical types that are asked for as those of `count` fields.
pub(super) fn logicals_of_fields(options: &InputOptions, count: usize) -> Vec<Option<Logical>> {
    if let Some(record) = &options.record {
        return record.fields().iter().map(|field| Some(Logical::of_meta(&field.logical))).collect();
    }
    match options.field_logicals.as_slice() {
        [] => vec![options.value_logical.clone(); count],
        [one] => vec![Some(one.clone()).filter(|one| *one != Logical::Plain); count],
        each => each.iter().map(|one| Some(one.clone()).filter(|one| *one != Logical::Plain)).collect(),
    }
}

/// What columns may hold.
const HELD: &str = "integers (8 to 64 bits), floats (32 or 64 bits), dates, times, timestamps, durations, decimals, \
                    texts or binary strings";

/// Whether elements of one kind can be converted to another at all.
fn converts(natural: &Natural, target: Kind) -> bool {
    match (natural.kind, target) {
        // The digits of a decimal are no float, and with some behind the point nothing but themselves.
        (from, to) if from == to => true,
        (_, to) if natural.scale.is_some_and(|scale| scale != 0 || to.is_float()) => false,
        (Kind::Utf8 | Kind::Fixed(16), Kind::U128) => true,
        (Kind::Fixed(from), Kind::Fixed(to)) => from == to,
        (from, to) => from.is_bytes() == to.is_bytes(),
    }
}

/// The types that a column can become, for messages.
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
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// The target if the column can become it, and the logical type that is kept: a type of one's choice
/// makes plain numbers of a logical type.
pub(super) fn agreed(
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
        let is_uuid = *logical == Logical::Uuid && natural.kind == Kind::Fixed(16);
        let is_raw = meant.is_raw && own == Logical::Plain && converts(natural, target.kind);
        let from = match ratio(&own, logical) {
            Some(Ratio::ONE) => Some(None),
            Some(ratio) => own.form().map(|form| Some((ratio, form))),
            None if *logical != Logical::Plain && (is_text || is_uuid || is_raw) => Some(None),
            None => None,
        };
        let Some(from) = from else {
            let (here, role) =
                (Meaning::new(natural.kind.key_type(), &natural.logical), if key { "key" } else { "value" });
            let there = if *logical == Logical::Plain { format!("plain {wish}") } else { logical.name() };
            let text = format!("wrong meaning: it holds {here}, but {role}s are {there}");
            return Err(problem(input, label, format!("{text}: give a column that means the same")));
        };
        let form = logical.form().filter(|_| is_text || from.is_some());
        return Ok((Target { form, from, ..target }, logical.meta()));
    }
    let Some(target) = target.filter(|target| converts(natural, target.kind)) else {
        let option = if key { "--key-type" } else { "--value-type" };
        let possible = possible(natural, key);
        let text = format!("wrong type: {held} becomes {possible}, not {wish}");
        return Err(problem(
            input,
            label,
            format!("{text}: choose one of these with {option}, or another column"),
        ));
    };
    let logical = if natural.kind == target.kind { natural.logical.clone() } else { String::new() };
    Ok((target, logical))
}
