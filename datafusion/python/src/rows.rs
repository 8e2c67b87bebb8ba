//! Answers of queries, as streams of arrays.

use crate::{capsule, errors, wait};
use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ffi::FFI_ArrowSchema;
use datafusion::arrow::ffi_stream::FFI_ArrowArrayStream;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// The rows of a query. Any consumer of Arrow reads them by `__arrow_c_stream__`: `pyarrow.table(rows)`,
/// `pyarrow.RecordBatchReader.from_stream(rows)`, `polars.DataFrame(rows)`.
#[pyclass(frozen, module = "pleach_datafusion")]
pub(crate) struct Rows {
    schema: SchemaRef,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// A query, which runs when it is read.
    Query(Box<DataFrame>),
    /// What a query has returned.
    Batches(Vec<RecordBatch>),
}

impl Rows {
    pub(crate) fn of_query(frame: DataFrame) -> Self {
        Self { schema: Arc::clone(frame.schema().inner()), content: Content::Query(Box::new(frame)) }
    }

    /// Runs the query, and returns all rows.
    pub(crate) async fn read(self) -> EngineResult<Self> {
        match self.content {
            Content::Query(frame) => {
                let batches = frame.collect().await?;
                // The plan may know better which columns have nulls.
                let schema = batches.first().map_or(self.schema, RecordBatch::schema);
                Ok(Self { schema, content: Content::Batches(batches) })
            }
            Content::Batches(_) => Ok(self),
        }
    }
}

#[pymethods]
impl Rows {
    /// Returns the rows in a capsule, as an Arrow stream. The query runs while the stream is read.
    ///
    /// Rows are not cast: `requested_schema` changes nothing. A signal, such as Ctrl-C, ends the query.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader: Box<dyn RecordBatchReader + Send> = match self.content.clone() {
            Content::Query(frame) => {
                let stream = wait::wait(py, frame.execute_stream())?;
                Box::new(Reader { schema: stream.schema(), stream: Some(stream) })
            }
            Content::Batches(batches) => {
                let batches = batches.into_iter().map(Ok);
                Box::new(datafusion::arrow::array::RecordBatchIterator::new(
                    batches,
                    Arc::clone(&self.schema),
                ))
            }
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), capsule::STREAM)
    }

    /// Returns the names and types of the columns in a capsule, as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema);
        let schema = schema.map_err(|error| errors::exception(py, "PleachError", error.to_string()))?;
        PyCapsule::new_with_value(py, schema, capsule::SCHEMA)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Runs the query, and returns all rows as a `pyarrow.Table`.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = Self { schema: Arc::clone(&self.schema), content: self.content.clone() };
        let rows = wait::wait(py, rows.read())?;
        py.import("pyarrow")?.call_method1("table", (rows,))
    }
}

/// A stream that the consumer's thread reads. It holds nothing but the batch that is next.
struct Reader {
    schema: SchemaRef,
    /// `None` after the end or an error.
    stream: Option<SendableRecordBatchStream>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut stream = self.stream.take()?;
        // The consumer may have the interpreter's lock or not; `wait` gives it back while it waits.
        let read = Python::try_attach(|py| {
            let next = wait::wait(py, async move {
                let batch = stream.next().await.transpose()?;
                Ok(batch.map(|batch| (batch, stream)))
            });
            next.map_err(|error| interrupted(py, &error))
        });
        match read {
            Some(Ok(Some((batch, stream)))) => {
                self.stream = Some(stream);
                Some(Ok(batch))
            }
            Some(Ok(None)) => None,
            // Consumers in Python raise it as an `OSError`.
            Some(Err(text)) => Some(Err(ArrowError::IoError(text, std::io::ErrorKind::Other.into()))),
            None => Some(Err(ArrowError::ExternalError("the interpreter has ended".into()))),
        }
    }
}

/// Returns the text of an exception: a stream has no others. Ctrl-C is raised again, so that it is not lost.
fn interrupted(py: Python<'_>, error: &PyErr) -> String {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // If this fails, the consumer still has the error.
        let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        return "the query was interrupted".to_owned();
    }
    error.value(py).to_string()
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
