//! Selection of columns: by name if there are names, otherwise by number.
//!
//! The options select the columns of the first input. From then on its *names* hold: every other input has
//! the columns of these names, in any order, unless a column was requested by its number, which then holds
//! for every input. A table of changes uses the names of the file that it changes. An input with other names,
//! or with one of them twice, is refused with both lists.

use crate::options::{InputOptions, Interval};
use crate::problem::{fault, problem};
use crate::similar::similar;
use pleach_builder::SourceError;
use pleach_format::{Logical, ValueType};
use std::cell::RefCell;
use std::ops::Deref;

/// Columns that become the fields of a record, in its order.
pub(crate) type FieldIndices = Vec<usize>;

/// The key columns, and the value column or the columns of a record, if there are values.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The key column, or the first one of a composite key.
    pub(crate) key: usize,
    /// The other columns of a composite key.
    pub(crate) parts: Vec<usize>,
    pub(crate) value: Option<usize>,
    pub(crate) fields: Option<FieldIndices>,
}

/// The request to an input: the options, and the columns of the first input.
#[derive(Debug)]
pub(crate) struct Asked {
    options: InputOptions,
    first: Option<First>,
    /// The choice of the last input that did not follow another one.
    chosen: RefCell<Option<First>>,
}

impl Deref for Asked {
    type Target = InputOptions;

    fn deref(&self) -> &InputOptions {
        &self.options
    }
}

/// The choice of the first input.
#[derive(Clone, Debug)]
pub(crate) struct First {
    pub(crate) input: String,
    /// Names of all its columns.
    pub(crate) names: Option<Vec<String>>,
    pub(crate) choice: Choice,
}

impl Asked {
    pub(crate) fn new(options: InputOptions) -> Self {
        Self { options, first: None, chosen: RefCell::new(None) }
    }

    /// Fixes the choice of the last input for all later ones.
    pub(crate) fn settle(&mut self) {
        if self.first.is_none() {
            self.first = self.chosen.take();
        }
    }

    /// Returns the choice that holds.
    pub(crate) fn first(&self) -> Option<&First> {
        self.first.as_ref()
    }
}

/// The columns of an input.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a> {
    /// They have names, which may be empty or duplicated.
    Named(&'a [String]),
    /// Number of columns without names.
    Numbered(usize),
}

impl Names<'_> {
    fn len(self) -> usize {
        match self {
            Self::Named(names) => names.len(),
            Self::Numbered(count) => count,
        }
    }

    /// Formats `column "id"` or `column 3`.
    pub(crate) fn label(self, index: usize) -> String {
        match self {
            Self::Named(names) => format!("column {:?}", names[index]),
            Self::Numbered(_) => format!("column {index}"),
        }
    }

    /// Returns the name that the file stores.
    pub(crate) fn kept(self, index: usize, role: &str) -> String {
        match self {
            Self::Named(names) => names[index].clone(),
            Self::Numbered(_) => role.to_owned(),
        }
    }

    /// Returns the name of a field of a record.
    pub(crate) fn field(self, index: usize) -> String {
        match self {
            Self::Named(names) => names[index].clone(),
            Self::Numbered(_) => format!("c{index}"),
        }
    }

    fn list(self) -> String {
        match self {
            Self::Numbered(1) => "there is only column 0".to_owned(),
            Self::Numbered(count) => format!("there are {count} columns, numbered from 0"),
            Self::Named(names) => format!("the columns are {}", shown(names)),
        }
    }

    /// Returns a question for the column that a misspelt name is like.
    fn meant(self, wish: &str) -> String {
        let Self::Named(names) = self else { return String::new() };
        let meant = similar(wish, names.iter().map(String::as_str));
        meant.map_or(String::new(), |name| format!("did you mean {name:?}? "))
    }

    /// Returns the only column of this name.
    fn named(self, name: &str) -> Option<usize> {
        let Self::Named(names) = self else { return None };
        let mut hits = names.iter().enumerate().filter(|(_, found)| *found == name).map(|(index, _)| index);
        hits.next().filter(|_| hits.next().is_none())
    }

    fn has(self, name: &str) -> bool {
        matches!(self, Self::Named(names) if names.iter().any(|found| found == name))
    }

    fn find(self, input: &str, wish: &str) -> Result<usize, SourceError> {
        if let Self::Named(names) = self {
            let mut hits = names.iter().enumerate().filter(|(_, name)| *name == wish).map(|(index, _)| index);
            match (hits.next(), hits.count()) {
                (Some(index), 0) => return Ok(index),
                (Some(_), more) => {
                    let text =
                        fault(format!("column {wish:?} occurs {} times", more + 1), "choose it by number");
                    return Err(problem(input, "", text));
                }
                (None, _) => {}
            }
        }
        match wish.parse::<usize>() {
            Ok(index) if index < self.len() => Ok(index),
            _ => {
                let text = fault(format!("no column {wish:?}"), self.meant(wish) + &self.list());
                Err(problem(input, "", text))
            }
        }
    }

    /// Returns the value columns if there are several: those of a list that is not itself the name of a
    /// column.
    fn choose_fields(
        self,
        input: &str,
        options: &InputOptions,
        keys: usize,
    ) -> Result<Option<FieldIndices>, SourceError> {
        if options.value_type == Some(ValueType::None) {
            return Ok(None);
        }
        if let Some(record) = &options.record
            && options.value.is_none()
        {
            let mut names = record.fields().iter().map(|field| &field.name);
            let first = keys + usize::from(options.changes);
            // Fields from columns without names are named by their numbers.
            let nameless = record.fields().iter().all(|field| is_numbered(&field.name));
            let is_there = |name: &String| self.has(name);
            return if names.clone().all(is_there) && matches!(self, Self::Named(_)) {
                names.map(|name| self.find(input, name)).collect::<Result<_, _>>().map(Some)
            } else if ((nameless && !names.clone().any(is_there)) || matches!(self, Self::Numbered(_)))
                && self.len() >= first + record.len()
            {
                Ok(Some((first..first + record.len()).collect()))
            } else {
                // The message names the missing one.
                names.try_for_each(|name| self.find(input, name).map(drop))?;
                Ok(None)
            };
        }
        let Some(list) = options.value.as_deref() else { return Ok(None) };
        if options.record.is_none() && (self.has(list) || !list.contains(',')) {
            return Ok(None);
        }
        list.split(',').map(|name| self.find(input, name.trim())).collect::<Result<_, _>>().map(Some)
    }

    /// Chooses the key column, and the value column or the columns of a record, if there are values.
    pub(crate) fn choose(self, input: &str, asked: &Asked) -> Result<Choice, SourceError> {
        if let Some(first) = asked.first()
            && let (Self::Named(here), Some(there)) = (self, &first.names)
        {
            return follow(input, here, asked, first, there);
        }
        let choice = self.choose_alone(input, asked)?;
        let names = if let Self::Named(names) = self { Some(names.to_vec()) } else { None };
        *asked.chosen.borrow_mut() = Some(First { input: input.to_owned(), names, choice: choice.clone() });
        Ok(choice)
    }

    fn choose_alone(self, input: &str, options: &InputOptions) -> Result<Choice, SourceError> {
        if let Some(interval) = options.interval.as_ref().filter(|_| !options.changes) {
            return self.choose_interval(input, options, interval);
        }
        if options.key_logical == Some(Logical::Boolean) {
            let text = fault("keys cannot be booleans", "choose --key-type u32 for 1 and 0");
            return Err(problem(input, "", text));
        }
        let parts = self.choose_parts(input, options)?;
        if parts.is_empty() && options.key_type.is_none() && !options.part_types.is_empty() {
            let text = fault("types of parts need several key columns", "name them, separated by commas");
            return Err(problem(input, "", text));
        }
        let fields = self.choose_fields(input, options, parts.len().max(1))?;
        let alone = InputOptions { value: None, ..options.clone() };
        let options = if fields.is_some() { &alone } else { options };
        let (key, value) = match parts.first() {
            Some(&key) => (key, self.choose_behind(input, options, &fields, &parts)?),
            None => self.choose_one(input, options, &fields)?,
        };
        if fields.is_none() && !options.field_types.is_empty() {
            let text = "types of fields need several value columns: name them with --value a,b";
            return Err(problem(input, "", text));
        }
        let parts = parts.into_iter().skip(1).collect();
        Ok(Choice { key, parts, value: value.filter(|_| fields.is_none()), fields })
    }

    /// Chooses the columns of a composite key; none if the key is one column.
    fn choose_parts(self, input: &str, options: &InputOptions) -> Result<Vec<usize>, SourceError> {
        let known = match &options.key_logical {
            Some(Logical::Composite(composite)) => Some(composite.columns()),
            _ => None,
        };
        let list = options.key.as_deref().filter(|list| !self.has(list) && list.contains(','));
        let columns: Vec<usize> = match (list, known) {
            (Some(list), _) => {
                list.split(',').map(|name| self.find(input, name.trim())).collect::<Result<_, _>>()?
            }
            (None, Some(columns)) if columns.iter().all(|(name, _)| self.has(name)) => {
                columns.iter().map(|(name, _)| self.find(input, name)).collect::<Result<_, _>>()?
            }
            (None, Some(columns)) if matches!(self, Self::Numbered(_)) || self.goes_by_number(options) => {
                let first = usize::from(options.changes);
                (first..first + columns.len()).collect()
            }
            // The message names the missing one.
            (None, Some(columns)) => {
                columns.iter().map(|(name, _)| self.find(input, name)).collect::<Result<_, _>>()?
            }
            (None, None) => Vec::new(),
        };
        match known {
            _ if columns.iter().any(|&column| column >= self.len()) => {
                let text = fault("it has fewer columns than the key", self.list());
                Err(problem(input, "", text))
            }
            Some(known) if known.len() != columns.len() => {
                let text = format!("the key has {} columns, but {} are named", known.len(), columns.len());
                Err(problem(input, "", fault(text, "name one for each with --key a,b")))
            }
            _ => Ok(columns),
        }
    }

    /// Chooses the value column of a table with a composite key.
    fn choose_behind(
        self,
        input: &str,
        options: &InputOptions,
        fields: &Option<FieldIndices>,
        keys: &[usize],
    ) -> Result<Option<usize>, SourceError> {
        if options.value_type == Some(ValueType::None) || fields.is_some() {
            return Ok(None);
        }
        let by_name = options.changes && matches!(self, Self::Named(_)) && !self.goes_by_number(options);
        match options.value.as_deref() {
            Some(wish) => self.find(input, wish).map(Some),
            None if by_name => {
                self.of_base(input, ("value", "--value"), options.value_name.as_deref()).map(Some)
            }
            None => {
                let first = usize::from(options.changes);
                Ok((first..self.len()).find(|index| !keys.contains(index)))
            }
        }
    }

    /// Chooses the column of the starts, and that of the ends with the columns of values.
    fn choose_interval(
        self,
        input: &str,
        options: &InputOptions,
        interval: &Interval,
    ) -> Result<Choice, SourceError> {
        if options.key.as_deref().is_some_and(|list| list.contains(',') && !self.has(list)) {
            let text = fault("intervals need keys of one column", "name one with --key");
            return Err(problem(input, "", text));
        }
        let key = options.key.as_deref().map_or(Ok(0), |wish| self.find(input, wish))?;
        let end = interval.end.as_deref().map_or(Ok(key), |wish| self.find(input, wish))?;
        let values = match options.value.as_deref() {
            _ if options.value_type == Some(ValueType::None) => Vec::new(),
            Some(list) if self.has(list) => vec![self.find(input, list)?],
            Some(list) => {
                list.split(',').map(|name| self.find(input, name.trim())).collect::<Result<_, _>>()?
            }
            None => (0..self.len()).find(|&index| index != key && index != end).into_iter().collect(),
        };
        if interval.end.is_some() && end == key {
            let text = fault("starts and ends are one column", "name another one with --interval");
            return Err(problem(input, "", text));
        }
        let fields = Some(std::iter::once(end).chain(values).collect());
        Ok(Choice { key, parts: Vec::new(), value: None, fields })
    }

    /// Chooses the key column, and the value column if there are values.
    fn choose_one(
        self,
        input: &str,
        options: &InputOptions,
        fields: &Option<FieldIndices>,
    ) -> Result<(usize, Option<usize>), SourceError> {
        if self.len() == 0 {
            return Err(problem(input, "", "it has no columns"));
        }
        if self.len() <= usize::from(options.changes) {
            return Err(problem(
                input,
                "",
                "it has one column: changes have an operation, a key and a value",
            ));
        }
        let by_name = options.changes && matches!(self, Self::Named(_)) && !self.goes_by_number(options);
        let key = match options.key.as_deref() {
            Some(wish) => self.find(input, wish)?,
            None if by_name => self.of_base(input, ("key", "--key"), options.key_name.as_deref())?,
            None => usize::from(options.changes),
        };
        if options.value_type == Some(ValueType::None) {
            return Ok((key, None));
        }
        let value = match options.value.as_deref() {
            Some(wish) => Some(self.find(input, wish)?),
            None if fields.is_some() => None,
            None if by_name => {
                Some(self.of_base(input, ("value", "--value"), options.value_name.as_deref())?)
            }
            None if options.changes => (self.len() > 2).then_some(2),
            None if self.len() == 1 => None,
            None => Some(usize::from(key != 1)),
        };
        if value.is_none() && fields.is_none() && options.value_type.is_some() {
            let text = "a value type without a value column: leave it out, or name a column";
            return Err(problem(input, "", text));
        }
        Ok((key, value))
    }

    /// Returns true if the columns of changes are selected by number, although they have names: the file has
    /// no column names, and the table does not use the usual names either.
    fn goes_by_number(self, options: &InputOptions) -> bool {
        let nameless = |name: &Option<String>, usual| {
            name.as_deref().is_none_or(|name| name.is_empty() || name == usual)
        };
        let is_base = nameless(&options.key_name, "key")
            && (nameless(&options.value_name, "value") || options.value_name.as_deref() == Some("row"));
        let usual = ["key", "value"].iter().any(|name| self.has(name))
            || options.value_name.as_deref().is_some_and(|name| self.has(name));
        is_base && !usual && self.named("op").is_none_or(|index| index == 0)
    }

    /// Finds a column of changes by the name that it has in the file, or by the usual one.
    fn of_base(self, input: &str, role: (&str, &str), base: Option<&str>) -> Result<usize, SourceError> {
        let (usual, option) = role;
        let base = base.filter(|name| !name.is_empty() && *name != usual);
        let wish = base.filter(|name| self.has(name)).unwrap_or(usual);
        if self.has(wish) {
            return self.find(input, wish);
        }
        let wanted = match base {
            Some(base) => {
                format!("neither a column {base:?}, which is the {usual} of the file, nor {usual:?}")
            }
            None => format!("no column {usual:?}"),
        };
        let advice = format!("name it with {option}, or give --no-header if the first line is a change");
        Err(problem(input, "", fault(format!("it has {wanted}: {}", self.list()), advice)))
    }

    /// Chooses the column of operations in a table of changes.
    pub(crate) fn choose_op(self, input: &str, options: &InputOptions) -> Result<Option<usize>, SourceError> {
        if !options.changes {
            return Ok(None);
        }
        if let Some(wish) = &options.op {
            return self.find(input, wish).map(Some);
        }
        match self {
            Self::Named(_) if !self.goes_by_number(options) => {
                self.of_base(input, ("op", "--op"), None).map(Some)
            }
            _ => Ok(Some(0)),
        }
    }

    /// Returns true if a column was requested by a name that exists here; in a table of changes, the column
    /// of operations. A number may also be meant as a name.
    pub(crate) fn is_asked(self, options: &InputOptions) -> bool {
        Self::wishes(options).any(|name| name.parse::<usize>().is_err() && self.has(name))
    }

    /// Returns all texts that may be names of requested columns; in a table of changes, of the operations.
    pub(crate) fn wishes(options: &InputOptions) -> impl Iterator<Item = &str> {
        let wishes = if options.changes { [&options.op, &None] } else { [&options.key, &options.value] };
        let end = options.interval.as_ref().and_then(|interval| interval.end.as_ref());
        let wishes = wishes.into_iter().flatten().chain(end);
        wishes.flat_map(|wish| wish.split(',').map(str::trim).chain([wish.as_str()]))
    }
}

/// Lists names, shortened: a table of a thousand columns must not fill the screen.
fn shown(names: &[String]) -> String {
    let list: Vec<String> = names.iter().take(20).map(|name| format!("{name:?}")).collect();
    let more = if names.len() > 20 { format!(" and {} more", names.len() - 20) } else { String::new() };
    format!("{}{more}", list.join(", "))
}

/// Returns true if it is the name of a field whose column had no name.
fn is_numbered(name: &str) -> bool {
    name.strip_prefix('c').is_some_and(|digits| digits.parse::<usize>().is_ok())
}

/// Finds the columns of an input with names, after a first one with names.
fn follow(
    input: &str,
    here: &[String],
    asked: &Asked,
    first: &First,
    there: &[String],
) -> Result<Choice, SourceError> {
    let Choice { key, parts, value, fields } = &first.choice;
    if here == there {
        return Ok(first.choice.clone());
    }
    let names = Names::Named(here);
    let find = |role: &str, option: &str, wish: Option<&str>, index: usize| {
        if let Some(number) = wish.filter(|wish| !Names::Named(there).has(wish))
            && number.parse::<usize>().is_ok()
        {
            return names.find(input, number);
        }
        let name = &there[index];
        if let (Some(found), Some(_)) = (names.named(name), Names::Named(there).named(name)) {
            return Ok(found);
        }
        let count = here.iter().filter(|found| *found == name).count();
        let of = format!("which is the {role} of {}", first.input);
        let text = match count {
            0 => format!("it has no column {name:?}, {of}"),
            1 => format!("it has column {name:?}, {of} and occurs there more than once"),
            count => format!("it has column {name:?}, {of}, {count} times"),
        };
        let both = format!("its columns are {}, those of {} are {}", shown(here), first.input, shown(there));
        let advice = format!("give all inputs the same names, or choose columns by number with {option}");
        Err(problem(input, "", fault(format!("{text}: {both}"), advice)))
    };
    let list = asked.key.as_deref().filter(|_| !parts.is_empty());
    let mut of_parts = list.into_iter().flat_map(|list| list.split(',')).map(str::trim);
    let wish = if parts.is_empty() { asked.key.as_deref() } else { of_parts.next() };
    let key = find("key", "--key", wish, *key)?;
    let parts = parts.iter().map(|&index| find("key", "--key", of_parts.next(), index));
    let parts = parts.collect::<Result<_, _>>()?;
    let value = value.map(|index| find("value", "--value", asked.value.as_deref(), index)).transpose()?;
    let mut wishes: Vec<&str> =
        asked.value.as_deref().map_or_else(Vec::new, |list| list.split(',').collect());
    if let Some(interval) = &asked.interval {
        wishes.insert(0, interval.end.as_deref().or(asked.key.as_deref()).unwrap_or("0"));
    }
    let field = |(at, &index): (usize, &usize)| {
        find("value", "--value", wishes.get(at).map(|wish| wish.trim()), index)
    };
    let fields = fields.as_ref().map(|fields| fields.iter().enumerate().map(field).collect()).transpose()?;
    Ok(Choice { key, parts, value, fields })
}
