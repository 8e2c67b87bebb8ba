//! Parquet, with Snappy, which every reader supports. The Arrow schema is stored too, so that types which
//! Parquet itself does not have are restored.

use super::arrow::{arrow_error, batch, refused, schema};
use super::table::{Field, Numbers, OutputError, TableWriter};
use crate::message::Message;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::io::{self, Write};

/// Writes a Parquet file into `out`.
pub struct Writer<W: Write + Send> {
    schema: SchemaRef,
    /// `None` after [`TableWriter::finish`].
    writer: Option<ArrowWriter<W>>,
}

impl<W: Write + Send> Writer<W> {
    /// Begins the file.
    pub fn new(fields: &[Field], out: W) -> Result<Self, OutputError> {
        let schema = schema(fields);
        let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        // Keys hardly repeat: a dictionary of them would be useless.
        if let Some(key) = fields.first() {
            let path = ColumnPath::new(vec![key.name.clone()]);
            properties = properties.set_column_dictionary_enabled(path, false);
        }
        let writer =
            ArrowWriter::try_new(out, schema.clone(), Some(properties.build())).map_err(parquet_error)?;
        Ok(Self { schema, writer: Some(writer) })
    }
}

fn parquet_error(error: ParquetError) -> OutputError {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => OutputError::Io(*error),
            Err(error) => match error.downcast() {
                Ok(error) => arrow_error(*error),
                Err(error) => refused(&error),
            },
        },
        other => refused(&other),
    }
}

impl<W: Write + Send> TableWriter for Writer<W> {
    fn write_batch(&mut self, columns: &[Numbers<'_>]) -> Result<(), OutputError> {
        let batch = batch(&self.schema, columns)?;
        match &mut self.writer {
            Some(writer) => writer.write(&batch).map_err(parquet_error),
            None => {
                let message = Message::new("rows after the end of a table").advise("please report this");
                Err(OutputError::Unfit(message))
            }
        }
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        match self.writer.take() {
            Some(writer) => writer.close().map(drop).map_err(parquet_error),
            None => Ok(()),
        }
    }
}
