//! Results on standard output.

use crate::arguments::Format;
use crate::failure::Failure;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use std::io::{self, BufWriter, StdoutLock, Write};

/// Runs a query, and prints its rows. Those of CSV and JSON are printed as they come.
pub async fn write(frame: DataFrame, format: Format) -> Result<(), Failure> {
    let engine = |error: DataFusionError| Failure::engine(&error);
    if format == Format::Table {
        let schema = frame.schema().inner().clone();
        let mut batches = frame.collect().await.map_err(engine)?;
        if schema.fields().is_empty() {
            return Ok(());
        }
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        let text = pretty_format_batches(&batches).map_err(|error| of_arrow(&error))?;
        return put(format!("{text}\n").as_bytes());
    }
    let mut stream = frame.execute_stream().await.map_err(engine)?;
    let mut is_first = true;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(engine)?;
        if batch.num_columns() == 0 {
            continue;
        }
        let mut text = Vec::new();
        let written = match format {
            Format::Csv => WriterBuilder::new().with_header(is_first).build(&mut text).write(&batch),
            Format::Json | Format::Table => LineDelimitedWriter::new(&mut text).write(&batch),
        };
        written.map_err(|error| of_arrow(&error))?;
        is_first = false;
        put(&text)?;
    }
    if is_first && format == Format::Csv && !stream.schema().fields().is_empty() {
        let mut text = Vec::new();
        let empty = RecordBatch::new_empty(stream.schema());
        WriterBuilder::new()
            .with_header(true)
            .build(&mut text)
            .write(&empty)
            .map_err(|error| of_arrow(&error))?;
        put(&text)?;
    }
    Ok(())
}

fn put(bytes: &[u8]) -> Result<(), Failure> {
    let mut out: BufWriter<StdoutLock<'_>> = BufWriter::new(io::stdout().lock());
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::io("write", "standard output", &error))
}

fn of_arrow(error: &ArrowError) -> Failure {
    Failure::failed(format!("a result cannot be printed: {error}: choose another --format"))
}
