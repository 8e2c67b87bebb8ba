//! The first line of a text table: names of columns, those of the first input, or a row that must not be
//! lost.

use super::dialect::unescape;
use super::rows::Text;
use crate::fields::Fields;
use crate::folders::Folders;
use crate::kind::{Kind, Target, Wanted};
use crate::names::{Asked, Choice, First, Names};
use crate::options::Header;
use crate::parse::Shown;
use crate::parts::Parts;
use crate::problem::{caused, fault, problem};
use pleach_builder::{Column, Op, SourceError, Strings};
use pleach_format::{Logical, ValueType};

impl Text {
    /// Returns the names in the first line.
    pub(super) fn header(&self, tabs: bool) -> Result<Vec<String>, SourceError> {
        (0..self.fields).map(|index| header_name(&self.input, self.row.field(index), tabs)).collect()
    }

    /// Returns the names of the columns of an input whose header is in the first input. `None` if there are none.
    pub(super) fn inherit(
        &self,
        first: &First,
        tabs: bool,
        asked: &Asked,
    ) -> Result<Option<Vec<String>>, SourceError> {
        let Some(there) = &first.names else { return Ok(None) };
        // Columns of the path follow those of the header.
        let (own, behind) = there.split_at(self.fields.min(there.len()));
        let folders = Folders::asked(&self.input, own, asked)?;
        if self.fields != own.len() || !folders.names().eq(behind.iter().cloned()) {
            let text = format!(
                "it has {} fields, but the header of {} has {}",
                self.fields,
                first.input,
                there.len()
            );
            return Err(problem(&self.input, "row 1", fault(text, "give parts of one table")));
        }
        if self.header(tabs).is_ok_and(|here| here == *own) {
            let text =
                fault(format!("it repeats the header of {}", first.input), "give --header, without =first");
            return Err(problem(&self.input, "first line", text));
        }
        Ok(Some(own.to_vec()))
    }

    /// Chooses among the columns.
    pub(super) fn take_columns(&mut self, columns: Names<'_>, options: &Asked) -> Result<(), SourceError> {
        let input = self.input.clone();
        let key_target = self.key.target;
        let is_checked = options.header == Header::Checked && !options.no_header;
        let value_type = options.value_type.unwrap_or(ValueType::U64);
        let target = Target::of_value(value_type).map(|target| target.meant(options.value_texts()));
        let (op, choice) = match (columns.choose_op(&input, options), columns.choose(&input, options)) {
            (Ok(op), Ok(choice)) => (op, choice),
            (Err(error), _) | (_, Err(error)) => {
                // Missing names may be data.
                if is_checked && options.changes {
                    self.refuse_data(options, Some(0), &[])?;
                } else if let Some(Choice { key, value, .. }) =
                    options.first().map(|first| &first.choice).filter(|_| is_checked)
                {
                    let mut taken = vec![(*key, key_target)];
                    taken.extend(value.zip(target));
                    self.refuse_data(options, None, &taken)?;
                    let more = "if only the first input has a header, give --header=first";
                    let advice = match error.advice.as_str() {
                        "" => more.to_owned(),
                        advice => format!("{advice}; {more}"),
                    };
                    return Err(SourceError { advice, ..error });
                }
                return Err(error);
            }
        };
        let Choice { key, parts, value, fields } = choice;
        self.op = op;
        self.key = Wanted { index: key, target: key_target, label: columns.label(key) };
        self.schema.key_name = columns.kept(key, "key");
        let mut composite = None;
        if !parts.is_empty() {
            let indices: Vec<usize> = std::iter::once(key).chain(parts).collect();
            let (parts, mut wanted) = Parts::choose(&input, columns, &indices, options, |_| None)?;
            self.key = wanted.remove(0);
            composite = Some((parts, wanted));
        }
        let mut taken = vec![(key, self.key.target)];
        if let Some(index) = value {
            let target = target.ok_or_else(|| {
                problem(&input, "", fault(format!("{value_type} values cannot be read from text"), ""))
            })?;
            taken.push((index, target));
            self.value = Some(Wanted { index, target, label: columns.label(index) });
            self.schema.value_type = value_type;
            self.schema.value_logical = options.value_logical.as_ref().map(Logical::meta).unwrap_or_default();
            self.schema.value_name = columns.kept(index, "value");
        }
        let fields = fields.map(|fields| {
            let key = (self.schema.key_type, &*self.schema.key_logical);
            Fields::choose(&input, columns, &fields, options, key, |_| None)
        });
        let fields = match (fields.transpose()?, composite) {
            (fields, Some((parts, others))) => {
                Some(Fields::with_parts(fields, parts, others, &self.key.label))
            }
            (fields, None) => fields,
        };
        if let Some(fields) = fields {
            fields.describe(&mut self.schema);
            taken.extend(fields.columns.iter().map(|column| (column.index, column.target)));
            self.record = Some(fields);
        }
        // The names of a later input are those of the first, so they are names.
        if is_checked && options.first().is_none() && !columns.is_asked(options) {
            self.refuse_data(options, op, &taken)?;
        }
        Ok(())
    }

    /// Returns true if the first line, which is in `self.row`, reads as a row: an operation, if there are
    /// any, and what the types of the chosen columns need. Plain texts and bytes can be anything, and do not decide.
    fn is_data(&self, op: Option<usize>, columns: &[(usize, Target)]) -> bool {
        if let Some(index) = op {
            // No column of operations has the name of an operation.
            return index < self.row.ends.len() && Op::from_name(self.row.field(index)).is_some();
        }
        let mut plain = Vec::new();
        // A column of the path says nothing about the line.
        let decides = |&(index, target): &(usize, Target)| {
            index < self.fields && (target.form.is_some() || !matches!(target.kind, Kind::Utf8 | Kind::Bytes))
        };
        let mut own = columns.iter().copied().filter(decides).peekable();
        own.peek().is_some()
            && own.all(|(index, target)| {
                let mut column = if target.kind.is_bytes() {
                    Column::Bytes(Strings::default())
                } else {
                    Column::with_width(16)
                };
                let wanted = Wanted { index, target, label: String::new() };
                index < self.row.ends.len() && self.take(&wanted, &mut plain, &mut column).is_ok()
            })
    }

    /// Returns the first line for messages.
    fn first_line(&self) -> String {
        let fields: Vec<&[u8]> = (0..self.row.ends.len()).map(|index| self.row.field(index)).collect();
        Shown(&fields.join(&self.dialect.delimiter)).to_string()
    }

    /// Fails if the header reads as data.
    fn refuse_data(
        &self,
        asked: &Asked,
        op: Option<usize>,
        columns: &[(usize, Target)],
    ) -> Result<(), SourceError> {
        if !self.is_data(op, columns) {
            return Ok(());
        }
        let line = self.first_line();
        let text = match asked.first() {
            None => fault(
                format!("{line} may be data or a header"),
                "give --no-header if it is data, or --header if it is a header",
            ),
            Some(first) => fault(
                format!("{line} is data, not a header like that of {}", first.input),
                "give --header=first if only the first input has a header, --no-header if none has one, or \
                 --header if it is a header",
            ),
        };
        Err(problem(&self.input, "first line", text))
    }
}

fn header_name(input: &str, field: &[u8], tabs: bool) -> Result<String, SourceError> {
    let mut name = Vec::new();
    if tabs {
        unescape(field, &mut name);
    } else {
        name.extend_from_slice(field);
    }
    String::from_utf8(name).map_err(|error| caused(input, "header", "a name is not UTF-8", error))
}
