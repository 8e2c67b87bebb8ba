//! The header of a NumPy array: the text of a Python dictionary.

use crate::kind::Kind;
use crate::logical::{Natural, fixed, logical_text};
use crate::problem::{Fault, fault};
use crate::records::{Item, RECORD_BYTES_MAX};
use arrow_schema::{DataType, TimeUnit};
use pleach_format::record::FieldKind;

/// A Python literal, as far as headers use them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Literal {
    Text(String),
    Number(u64),
    Bool(bool),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
    Dictionary(Vec<(Literal, Literal)>),
}

/// Maximum nesting of a header; a structured type inside another costs two levels.
const DEPTH_MAX: usize = 32;

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn accept(&mut self, letter: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, letter: char) -> Result<(), String> {
        if self.accept(letter) { Ok(()) } else { Err(format!("missing '{letter}'")) }
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, String> {
        if depth > DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        self.skip_space();
        match self.rest.chars().next() {
            Some('{') => self.dictionary(depth),
            Some('(') => self.sequence('(', ')', depth),
            Some('[') => self.sequence('[', ']', depth),
            Some(quote @ ('\'' | '"')) => self.text(quote),
            Some('0'..='9') => {
                let digits =
                    self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let (number, rest) = self.rest.split_at(digits);
                // Python 2 wrote 3L.
                self.rest = rest.strip_prefix('L').unwrap_or(rest);
                number.parse().map(Literal::Number).map_err(|_| format!("{number} is too large"))
            }
            _ => {
                for (word, value) in [("True", true), ("False", false)] {
                    if let Some(rest) = self.rest.strip_prefix(word) {
                        self.rest = rest;
                        return Ok(Literal::Bool(value));
                    }
                }
                Err("a value that is not a text, number, tuple, list or dictionary".to_owned())
            }
        }
    }

    fn text(&mut self, quote: char) -> Result<Literal, String> {
        let mut text = String::new();
        let mut letters = self.rest[1..].char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, escaped @ ('\\' | '\'' | '"'))) => text.push(escaped),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    _ => return Err("unknown escape in a text".to_owned()),
                },
                _ if letter == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(Literal::Text(text));
                }
                _ => text.push(letter),
            }
        }
        Err("unterminated text".to_owned())
    }

    fn sequence(&mut self, open: char, close: char, depth: usize) -> Result<Literal, String> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.accept(close) {
            items.push(self.literal(depth + 1)?);
            if !self.accept(',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(Literal::Sequence(items))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Literal, String> {
        self.expect('{')?;
        let mut items = Vec::new();
        while !self.accept('}') {
            let key = self.literal(depth + 1)?;
            self.expect(':')?;
            items.push((key, self.literal(depth + 1)?));
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(Literal::Dictionary(items))
    }
}

/// Contents of the header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    descr: Literal,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Parses the text of a header; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let Literal::Dictionary(items) = parser.literal(0)? else {
            return Err("not a dictionary".to_owned());
        };
        parser.skip_space();
        if !parser.rest.is_empty() {
            return Err("text after the dictionary".to_owned());
        }
        let get = |name: &str| {
            items
                .iter()
                .find(|(key, _)| matches!(key, Literal::Text(text) if text == name))
                .map(|(_, value)| value.clone())
                .ok_or_else(|| format!("missing '{name}'"))
        };
        let Literal::Bool(fortran) = get("fortran_order")? else {
            return Err("'fortran_order' is neither True nor False".to_owned());
        };
        let Literal::Sequence(dimensions) = get("shape")? else {
            return Err("'shape' is not a tuple".to_owned());
        };
        let shape = dimensions
            .iter()
            .map(|dimension| match dimension {
                Literal::Number(length) => Ok(*length),
                _ => Err("an element of 'shape' is not a number".to_owned()),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { descr: get("descr")?, fortran, shape })
    }

    /// Returns columns and rows; the error says what is not supported, and what to do.
    pub(crate) fn table(&self) -> Result<Layout, Fault> {
        let structured = matches!(self.descr, Literal::Sequence(_));
        let (rows, width) = match (self.shape.as_slice(), structured) {
            (&[rows], _) | (&[rows, 1], true) => (rows, 1),
            (&[rows, width], false) => (rows, width),
            _ => {
                let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
                let advice = "one or two dimensions are supported, one if it is structured";
                return Err(fault(format!("its shape is ({})", shape.join(", ")), advice));
            }
        };
        let mut columns = Vec::new();
        let mut names = None;
        let stride = match &self.descr {
            Literal::Text(descr) => {
                let (bytes, item) = element(descr)?;
                let width = usize::try_from(width)
                    .ok()
                    .filter(|&width| {
                        width.checked_mul(bytes.max(1)).is_some_and(|stride| stride <= RECORD_BYTES_MAX)
                    })
                    .ok_or_else(too_long)?;
                columns.extend((0..width).map(|index| NpyColumn {
                    at: index * bytes,
                    held: descr.clone(),
                    item: item.clone(),
                }));
                width * bytes
            }
            Literal::Sequence(fields) => {
                let mut at = 0_usize;
                let mut found = Vec::new();
                for field in fields {
                    let (name, bytes, column) = field_of(field, 0)?;
                    // Padding has no name.
                    if !name.is_empty() {
                        found.push(name);
                        columns.push(NpyColumn { at, ..column });
                    }
                    at = at.checked_add(bytes).filter(|&at| at <= RECORD_BYTES_MAX).ok_or_else(too_long)?;
                }
                names = Some(found);
                at
            }
            _ => return Err("unsupported type: save it as an array of numbers".into()),
        };
        if stride == 0 || columns.is_empty() {
            return Err("its rows are empty: there is nothing to build from".into());
        }
        if rows.checked_mul(stride as u64).is_none() {
            return Err(fault(format!("its header declares {rows} rows of {stride} bytes"), "it is damaged"));
        }
        let by_column = self.fortran && width > 1 && rows > 1;
        Ok(Layout { names, columns, stride, rows, by_column })
    }
}

fn too_long() -> Fault {
    fault(format!("its rows have more than {RECORD_BYTES_MAX} bytes"), "save the columns you need")
}

/// Places of the columns of an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) names: Option<Vec<String>>,
    pub(crate) columns: Vec<NpyColumn>,
    pub(crate) stride: usize,
    pub(crate) rows: u64,
    /// Its columns are stored one after the other (Fortran order).
    pub(crate) by_column: bool,
}

/// A column of an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NpyColumn {
    pub(crate) at: usize,
    /// Its type in NumPy's notation.
    pub(crate) held: String,
    pub(crate) item: Option<NpyItem>,
}

/// The elements of a column that can be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NpyItem {
    pub(crate) item: Item,
    pub(crate) swapped: bool,
    pub(crate) padded: bool,
    pub(crate) natural: Natural,
}

/// Parses a field `(name, type)` or `(name, type, shape)`: returns its name, its bytes, and its column at
/// offset 0.
fn field_of(field: &Literal, depth: usize) -> Result<(String, usize, NpyColumn), Fault> {
    let unclear = || Fault::from("a field of unsupported type: save it as an array of numbers");
    let Literal::Sequence(parts) = field else { return Err(unclear()) };
    let (name, descr, shape) = match parts.as_slice() {
        [name, descr] => (name, descr, None),
        [name, descr, Literal::Sequence(shape)] => (name, descr, Some(shape)),
        _ => return Err(unclear()),
    };
    let name = match name {
        Literal::Text(name) => name,
        // (title, name)
        Literal::Sequence(pair) => match pair.as_slice() {
            [_, Literal::Text(name)] => name,
            _ => return Err(unclear()),
        },
        _ => return Err(unclear()),
    };
    let (bytes, item, held) = match descr {
        Literal::Text(descr) => {
            let (bytes, item) = element(descr)?;
            (bytes, item, descr.clone())
        }
        Literal::Sequence(fields) if depth < DEPTH_MAX => {
            let mut bytes = 0_usize;
            for field in fields {
                bytes = bytes.checked_add(field_of(field, depth + 1)?.1).ok_or_else(too_long)?;
            }
            (bytes, None, "a structure".to_owned())
        }
        _ => return Err(unclear()),
    };
    let Some(shape) = shape else {
        return Ok((name.clone(), bytes, NpyColumn { at: 0, held, item }));
    };
    let mut total = bytes;
    for dimension in shape {
        let Literal::Number(length) = dimension else { return Err(unclear()) };
        total = usize::try_from(*length).ok().and_then(|n| total.checked_mul(n)).ok_or_else(too_long)?;
    }
    Ok((name.clone(), total, NpyColumn { at: 0, held: "an array".to_owned(), item: None }))
}

/// Returns the bytes of an element, and its type if it can be stored.
fn element(descr: &str) -> Result<(usize, Option<NpyItem>), Fault> {
    let unclear = || fault(format!("unsupported type '{}'", descr.escape_debug()), "save numbers");
    let mut letters = descr.chars();
    let (order, kind) = match letters.next().ok_or_else(unclear)? {
        order @ ('<' | '>' | '|' | '=') => (order, letters.next().ok_or_else(unclear)?),
        kind => ('<', kind),
    };
    let rest = letters.as_str();
    let (size, unit) = match rest.split_once('[') {
        Some((size, unit)) => (size, unit.strip_suffix(']').ok_or_else(unclear)?),
        None => (rest, ""),
    };
    if kind == 'O' {
        return Err("it holds Python objects: save numbers".into());
    }
    let size: usize = size.parse().map_err(|_| unclear())?;
    let bytes = if kind == 'U' { size.checked_mul(4).ok_or_else(too_long)? } else { size };
    let time_unit = match unit {
        "s" => Some(TimeUnit::Second),
        "ms" => Some(TimeUnit::Millisecond),
        "us" => Some(TimeUnit::Microsecond),
        "ns" => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    let padded = kind == 'S';
    let (item, kind, logical) = match (kind, size, time_unit) {
        ('b', 1, _) => (Item::U8, Kind::U32, Some(DataType::Boolean)),
        ('u', 1, _) => (Item::U8, Kind::U32, None),
        ('u', 2, _) => (Item::U16, Kind::U32, None),
        ('u', 4, _) => (Item::U32, Kind::U32, None),
        ('u', 8, _) => (Item::U64, Kind::U64, None),
        ('i', 1, _) => (Item::I8, Kind::I32, None),
        ('i', 2, _) => (Item::I16, Kind::I32, None),
        ('i', 4, _) => (Item::I32, Kind::I32, None),
        ('i', 8, _) => (Item::I64, Kind::I64, None),
        ('f', 4, _) => (Item::F32, Kind::F32, None),
        ('f', 8, _) => (Item::F64, Kind::F64, None),
        ('M', 8, Some(unit)) => (Item::I64, Kind::I64, Some(DataType::Timestamp(unit, None))),
        ('m', 8, Some(unit)) => (Item::I64, Kind::I64, Some(DataType::Duration(unit))),
        ('S' | 'V', ..) => (Item::Bytes(size), fixed(size), None),
        ('U', ..) => (Item::Letters(size), Kind::Utf8, None),
        _ => return Ok((bytes, None)),
    };
    let logical = logical.as_ref().and_then(logical_text).unwrap_or_default();
    let narrow = match item {
        Item::U8 => Some(FieldKind::U8),
        Item::U16 => Some(FieldKind::U16),
        Item::I8 => Some(FieldKind::I8),
        Item::I16 => Some(FieldKind::I16),
        _ => None,
    };
    let natural = Natural { kind, logical, scale: None, narrow, extension: None };
    Ok((bytes, Some(NpyItem { item, swapped: order == '>', padded, natural })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed() {
        let text = "{'descr': '<u8', 'fortran_order': False, 'shape': (3L, 2), }   \n";
        let header = Header::parse(text).expect("is one");
        assert_eq!(header.shape, [3, 2]);
        let layout = header.table().expect("is a table");
        assert_eq!((layout.stride, layout.rows, layout.columns.len()), (16, 3, 2));
        assert_eq!(layout.columns[1].at, 8);

        let text = r#"{"descr": [('a', '|u1'), ('', '|V3'), (('title', 'b'), '>f4'), ('c', '<i2', (2, 2)),
                       ('d', [('x', '<i4'), ('y', '<U3')])], "fortran_order": True, "shape": (5,)}"#;
        let layout = Header::parse(text).expect("is one").table().expect("is a table");
        assert_eq!(layout.names, Some(vec!["a".into(), "b".into(), "c".into(), "d".into()]));
        assert_eq!(layout.columns.iter().map(|column| column.at).collect::<Vec<_>>(), [0, 4, 8, 16]);
        assert_eq!(layout.stride, 32);
        assert!(layout.columns[1].item.as_ref().is_some_and(|item| item.swapped));
        assert!(layout.columns[2].item.is_none() && layout.columns[3].item.is_none());
    }

    #[test]
    fn bad_headers_are_refused() {
        let bad = [
            "",
            "{",
            "[]",
            "{'descr': '<u8'}",
            "{'descr': '<u8', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': ('x',)}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (1,)} x",
            "{'descr': '<u8",
        ];
        for text in bad {
            assert!(Header::parse(text).is_err(), "{text}");
        }
        assert!(Header::parse(&"(".repeat(100_000)).is_err());
        let unfit = [
            "{'descr': '<u8', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2, 3)}",
            "{'descr': '|S0', 'fortran_order': False, 'shape': (2, 9999999999999)}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (2, 0)}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (2, 999999999)}",
            "{'descr': '<u8', 'fortran_order': False, 'shape': (9999999999999999999,)}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': [], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': [('a', '<V18446744073709551615'), ('b', '<u8')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': 5, 'fortran_order': False, 'shape': (2,)}",
        ];
        for text in unfit {
            assert!(Header::parse(text).expect("is a header").table().is_err(), "{text}");
        }
    }
}
