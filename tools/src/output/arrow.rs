//! Arrow IPC files, and the record batches that Parquet uses too.

use super::table::{Field, Numbers, OutputError, TableWriter};
use crate::message::Message;
use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, StringArray, make_array,
};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field as ArrowField, Schema, SchemaRef};
use pleach_format::logical::Form;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

/// Maximum bytes of the strings of an array: its offsets have 32 bits.
const STRINGS_BYTES_MAX: usize = i32::MAX as usize;

/// Returns the Arrow schema of a table. No column has nulls.
pub fn schema(fields: &[Field]) -> SchemaRef {
    let field = |field: &Field| {
        ArrowField::new(&field.name, field.data_type.clone(), false).with_metadata(field.metadata.clone())
    };
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

/// Makes a record batch of these columns.
pub fn batch(schema: &SchemaRef, columns: &[Numbers<'_>]) -> Result<RecordBatch, OutputError> {
    let arrays = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, &numbers)| match pleach_input::extension_of(field).and_then(|logical| logical.form()) {
            Some(form) if *field.data_type() == DataType::Utf8 => texts(form, numbers),
            _ => array(field.data_type(), numbers),
        })
        .collect::<Result<Vec<ArrayRef>, OutputError>>()?;
    RecordBatch::try_new(schema.clone(), arrays).map_err(arrow_error)
}

/// Makes an array of the texts of a logical type.
fn texts(form: Form, numbers: Numbers<'_>) -> Result<ArrayRef, OutputError> {
    let (mut texts, mut text) = (StringBuilder::new(), Vec::new());
    for row in 0..numbers.len() {
        text.clear();
        match numbers {
            Numbers::U32(numbers) => form.put_unsigned(numbers[row].into(), &mut text),
            Numbers::U64(numbers) => form.put_unsigned(numbers[row].into(), &mut text),
            Numbers::U128(numbers) => form.put_unsigned(numbers[row], &mut text),
            Numbers::Bytes(strings) => form.put_bytes(strings.get(row), &mut text),
            _ => return array(&DataType::Utf8, numbers),
        }
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Arc::new(texts.finish()))
}

fn array(data_type: &DataType, numbers: Numbers<'_>) -> Result<ArrayRef, OutputError> {
    let unfit = |error: ArrowError| arrow_error(error);
    match (data_type, numbers) {
        (DataType::FixedSizeBinary(_), Numbers::U128(numbers)) => {
            let bytes = numbers.iter().map(|number| number.to_be_bytes());
            return Ok(Arc::new(FixedSizeBinaryArray::try_from_iter(bytes).map_err(unfit)?));
        }
        (DataType::FixedSizeBinary(_), Numbers::Bytes(strings)) => {
            return Ok(Arc::new(FixedSizeBinaryArray::try_from_iter(strings.iter()).map_err(unfit)?));
        }
        (DataType::Boolean, Numbers::U8(numbers)) => {
            return Ok(Arc::new(BooleanArray::from_iter(numbers.iter().map(|&number| Some(number != 0)))));
        }
        (DataType::Boolean, Numbers::U32(numbers)) => {
            return Ok(Arc::new(BooleanArray::from_iter(numbers.iter().map(|&number| Some(number != 0)))));
        }
        (_, Numbers::Bytes(strings) | Numbers::Utf8(strings)) if strings.data_bytes() > STRINGS_BYTES_MAX => {
            let bytes = strings.data_bytes();
            let what =
                format!("strings of {bytes} bytes in a batch, at most {STRINGS_BYTES_MAX} fit into Arrow");
            return Err(OutputError::Unfit(Message::new(what).advise("choose csv")));
        }
        (_, Numbers::Bytes(strings)) => {
            return Ok(Arc::new(BinaryArray::from_iter_values(strings.iter())));
        }
        (_, Numbers::Utf8(strings)) => {
            let texts: Result<Vec<&str>, _> = strings.iter().map(std::str::from_utf8).collect();
            let texts = texts.map_err(|error| {
                let message = Message::new(format!("a text is not UTF-8 ({error})"));
                OutputError::Unfit(message.advise("run pleach fsck"))
            })?;
            return Ok(Arc::new(StringArray::from_iter_values(texts)));
        }
        _ => {}
    }
    let buffer = match (data_type, numbers) {
        (DataType::Decimal32(precision, scale), Numbers::I64(numbers)) => {
            check_digits(numbers, *precision, *scale)?;
            // At most nine digits fit into 32 bits.
            Buffer::from_vec(numbers.iter().map(|&number| number as i32).collect())
        }
        (DataType::Decimal64(precision, scale), Numbers::I64(numbers)) => {
            check_digits(numbers, *precision, *scale)?;
            Buffer::from_slice_ref(numbers)
        }
        (DataType::Decimal128(precision, scale), Numbers::I64(numbers)) => {
            check_digits(numbers, *precision, *scale)?;
            Buffer::from_vec(numbers.iter().map(|&number| i128::from(number)).collect())
        }
        (_, Numbers::U8(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::U16(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::I8(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::I16(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::U32(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::U64(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::I32(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::I64(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::F32(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::F64(numbers)) => Buffer::from_slice_ref(numbers),
        (_, Numbers::U128(_) | Numbers::Bytes(_) | Numbers::Utf8(_)) => {
            let message = Message::new(format!("{data_type} cannot hold the values"));
            return Err(OutputError::Unfit(message.advise("choose another format")));
        }
    };
    let data = ArrayData::builder(data_type.clone()).len(numbers.len()).add_buffer(buffer).build();
    Ok(make_array(data.map_err(arrow_error)?))
}

/// Checks the precision of decimals: the writers narrow them without checking.
fn check_digits(numbers: &[i64], precision: u8, scale: i8) -> Result<(), OutputError> {
    let limit = 10_i128.pow(u32::from(precision));
    match numbers.iter().find(|&&number| i128::from(number).abs() >= limit) {
        None => Ok(()),
        Some(number) => {
            let digits = format!("the {precision} digits of its decimal type (scale {scale})");
            let message = Message::new(format!("{number} has more than {digits}"));
            Err(OutputError::Unfit(message.advise("export it as CSV")))
        }
    }
}

/// Converts a refusal of a format's library to an error; the library's own words are in brackets.
pub fn refused(error: &impl Display) -> OutputError {
    let message = Message::new(format!("the format refuses it ({error})"));
    OutputError::Unfit(message.advise("choose another format"))
}

/// Converts an error of Arrow; returns the system's error if that is the cause.
pub fn arrow_error(error: ArrowError) -> OutputError {
    match error {
        ArrowError::IoError(_, error) => OutputError::Io(error),
        ArrowError::ExternalError(error) => match error.downcast::<io::Error>() {
            Ok(error) => OutputError::Io(*error),
            Err(error) => refused(&error),
        },
        other => refused(&other),
    }
}

/// Writes an IPC file into `out`.
pub struct Writer<W: Write> {
    schema: SchemaRef,
    writer: FileWriter<io::BufWriter<W>>,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    pub fn new(fields: &[Field], out: W) -> Result<Self, OutputError> {
        let schema = schema(fields);
        let out = io::BufWriter::with_capacity(1 << 20, out);
        let writer = FileWriter::try_new(out, &schema).map_err(arrow_error)?;
        Ok(Self { schema, writer })
    }
}

/// Writes an IPC stream into `out`.
pub struct Stream<W: Write> {
    schema: SchemaRef,
    writer: StreamWriter<io::BufWriter<W>>,
}

impl<W: Write> Stream<W> {
    /// Begins the stream.
    pub fn new(fields: &[Field], out: W) -> Result<Self, OutputError> {
        let schema = schema(fields);
        let out = io::BufWriter::with_capacity(1 << 20, out);
        let writer = StreamWriter::try_new(out, &schema).map_err(arrow_error)?;
        Ok(Self { schema, writer })
    }
}

impl<W: Write> TableWriter for Stream<W> {
    fn write_batch(&mut self, columns: &[Numbers<'_>]) -> Result<(), OutputError> {
        self.writer.write(&batch(&self.schema, columns)?).map_err(arrow_error)
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        self.writer.finish().map_err(arrow_error)?;
        Ok(self.writer.get_mut().flush()?)
    }
}

impl<W: Write> TableWriter for Writer<W> {
    fn write_batch(&mut self, columns: &[Numbers<'_>]) -> Result<(), OutputError> {
        self.writer.write(&batch(&self.schema, columns)?).map_err(arrow_error)
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        self.writer.finish().map_err(arrow_error)?;
        Ok(self.writer.get_mut().flush()?)
    }
}
