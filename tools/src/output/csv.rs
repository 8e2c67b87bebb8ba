//! CSV and TSV: a header line, then rows. Integers with a logical type are written as text, which `build`
//! reads back; floats are written in the shortest form that reads back as the same number.

use super::table::{Field, Numbers, OutputError, TableWriter, rows};
use crate::message::Message;
use crate::render::text::{Text, put_escaped, put_hex};
use pleach_format::logical::Form;
use std::io::Write;

/// Size from which the buffer is written out.
const PIECE_BYTES: usize = 1 << 20;

/// Writes text into `out`, which needs no buffer of its own.
pub struct Writer<W> {
    out: W,
    delimiter: u8,
    forms: Vec<Option<Form>>,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins with the header.
    pub fn new(fields: &[Field], delimiter: u8, out: W) -> Self {
        let mut buffer = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 2));
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                buffer.push(delimiter);
            }
            match delimiter {
                b'\t' => put_escaped(field.name.as_bytes(), &mut buffer),
                // An empty line would be skipped as blank.
                _ => put_text(field.name.as_bytes(), delimiter, fields.len() == 1, &mut buffer),
            }
        }
        buffer.push(b'\n');
        let forms = fields.iter().map(|field| field.form).collect();
        Self { out, delimiter, forms, buffer }
    }

    fn flush(&mut self) -> Result<(), OutputError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes a text, quoted where necessary: a text alone on its line also if it is empty, since blank lines are
/// skipped.
fn put_text(text: &[u8], delimiter: u8, alone: bool, out: &mut Vec<u8>) {
    let special = |&byte: &u8| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    // A text that begins with a byte order mark would lose it.
    let quoted = text.iter().any(special) || text.starts_with(b"\xef\xbb\xbf") || (alone && text.is_empty());
    if !quoted {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Writes a number in its logical form.
fn put_meant(column: &Numbers<'_>, row: usize, form: Form, out: &mut Vec<u8>) {
    match column {
        Numbers::I32(numbers) => form.put(numbers[row].into(), out),
        Numbers::I64(numbers) => form.put(numbers[row], out),
        Numbers::U8(numbers) => form.put_unsigned(numbers[row].into(), out),
        Numbers::U32(numbers) => form.put_unsigned(numbers[row].into(), out),
        Numbers::U64(numbers) => form.put_unsigned(numbers[row].into(), out),
        Numbers::U128(numbers) => form.put_unsigned(numbers[row], out),
        Numbers::Bytes(strings) => form.put_bytes(strings.get(row), out),
        // Other types have no logical form.
        _ => {}
    }
}

impl<W: Write> TableWriter for Writer<W> {
    fn write_batch(&mut self, columns: &[Numbers<'_>]) -> Result<(), OutputError> {
        for row in 0..rows(columns)? {
            for (index, column) in columns.iter().enumerate() {
                if index > 0 {
                    self.buffer.push(self.delimiter);
                }
                if let Some(form) = self.forms.get(index).copied().flatten() {
                    put_meant(column, row, form, &mut self.buffer);
                    continue;
                }
                match column {
                    Numbers::U8(numbers) => u32::from(numbers[row]).put(&mut self.buffer),
                    Numbers::U16(numbers) => u32::from(numbers[row]).put(&mut self.buffer),
                    Numbers::I8(numbers) => i32::from(numbers[row]).put(&mut self.buffer),
                    Numbers::I16(numbers) => i32::from(numbers[row]).put(&mut self.buffer),
                    Numbers::U32(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::U64(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::I32(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::I64(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::F32(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::F64(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::U128(numbers) => numbers[row].put(&mut self.buffer),
                    Numbers::Bytes(strings) => {
                        self.buffer.extend_from_slice(b"\\x");
                        put_hex(strings.get(row), &mut self.buffer);
                    }
                    Numbers::Utf8(strings) if self.delimiter == b'\t' => {
                        let text = strings.get(row);
                        if text.is_empty() && columns.len() == 1 {
                            let what = "a line of TSV would be blank and so skipped, as its text is empty";
                            return Err(OutputError::Unfit(Message::new(what).advise("choose csv")));
                        }
                        put_escaped(text, &mut self.buffer);
                    }
                    Numbers::Utf8(strings) => {
                        let text = strings.get(row);
                        let alone = columns.len() == 1;
                        put_text(text, self.delimiter, alone, &mut self.buffer);
                    }
                }
            }
            self.buffer.push(b'\n');
            if self.buffer.len() >= PIECE_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        self.flush()?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;
    use std::collections::HashMap;

    fn written(names: &[&str], delimiter: u8, columns: &[Numbers<'_>]) -> String {
        let fields: Vec<Field> = names
            .iter()
            .map(|name| Field {
                name: (*name).to_owned(),
                data_type: DataType::UInt64,
                form: None,
                metadata: HashMap::new(),
            })
            .collect();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&fields, delimiter, &mut bytes);
        writer.write_batch(columns).and_then(|()| writer.finish()).expect("memory takes everything");
        drop(writer);
        String::from_utf8(bytes).expect("is text")
    }

    #[test]
    fn rows_and_names() {
        let keys = Numbers::U64(&[0, u64::MAX]);
        let values = Numbers::F64(&[0.1, -1e300]);
        assert_eq!(
            written(&["a,b", "say \"x\""], b',', &[keys, values]),
            "\"a,b\",\"say \"\"x\"\"\"\n0,0.1\n18446744073709551615,-1e300\n"
        );
        let values = Numbers::F32(&[f32::NAN, f32::NEG_INFINITY]);
        assert_eq!(
            written(&["a\tb", "c"], b'\t', &[keys, values]),
            "a\\tb\tc\n0\tNaN\n18446744073709551615\t-inf\n"
        );
        assert_eq!(written(&[""], b',', &[]), "\"\"\n");
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        let mut texts = pleach_builder::Strings::default();
        ["a", "", "b"].iter().for_each(|text| texts.push(text.as_bytes()));
        let texts = Numbers::Utf8(&texts);
        let fields =
            [Field { name: "t".to_owned(), data_type: DataType::Utf8, form: None, metadata: HashMap::new() }];
        assert_eq!(written(&["t"], b',', &[texts]), "t\na\n\"\"\nb\n");
        assert_eq!(written(&["t", "u"], b'\t', &[texts, texts]), "t\tu\na\ta\n\t\nb\tb\n");
        let refused = Writer::new(&fields, b'\t', Vec::new()).write_batch(&[texts]).unwrap_err().to_string();
        assert!(refused.contains("a line of TSV would be blank and so skipped"), "{refused}");
        // Columns of different lengths are not a table.
        let columns = [Numbers::U32(&[1, 2, 3]), Numbers::U32(&[1, 2])];
        let refused = Writer::new(&fields, b',', Vec::new()).write_batch(&columns).unwrap_err().to_string();
        assert!(refused.contains("3 and 2 rows"), "{refused}");
    }

    #[test]
    fn byte_order_marks_are_quoted() {
        assert_eq!(written(&["\u{feff}k"], b',', &[]), "\"\u{feff}k\"\n");
    }
}
