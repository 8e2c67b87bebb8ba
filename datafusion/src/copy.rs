//! `COPY (query) TO 'x.pleach' STORED AS PLEACH`: the rows of a query as a file or a set.

use crate::error::Error;
use crate::factory::FORMAT;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, not_impl_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;
use pleach_builder::{BuildOptions, Observer, Phase, Unique};
use pleach_input::InputOptions;
use pleach_set::{Committer, Folder, Partition, Store, Writer};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{Receiver, channel};

/// Batches that wait for the build.
const AHEAD: usize = 4;
/// Extension of a file.
const EXTENSION: &str = "pleach";

/// Makes the format of `COPY ... STORED AS PLEACH`, with its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct PleachFormatFactory;

impl GetExt for PleachFormatFactory {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }
}

impl FileFormatFactory for PleachFormatFactory {
    fn create(
        &self,
        _: &dyn Session,
        options: &HashMap<String, String>,
    ) -> EngineResult<Arc<dyn FileFormat>> {
        Ok(Arc::new(PleachFormat { options: CopyOptions::read(options)? }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(PleachFormat { options: CopyOptions::default() })
    }
}

/// Options of `COPY`.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// Key column, or several separated by commas; the first column if `None`.
    pub key: Option<String>,
    /// Value column, or several separated by commas, which become a record; all other columns if `None`.
    pub value: Option<String>,
    /// What becomes of rows with equal keys; `None` keeps them all.
    pub unique: Option<Unique>,
    /// Memory limit of the build in bytes.
    pub memory_bytes: Option<u64>,
    /// Number of tuples of a file of a set.
    pub partition_tuples: Option<u64>,
    /// Also replace a file that is not a Pleach file.
    pub force: bool,
}

impl CopyOptions {
    /// Reads the options of a statement.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such option, or if its value is not valid.
    pub fn read(options: &HashMap<String, String>) -> Result<Self, Error> {
        let mut own = Self::default();
        for (name, value) in options {
            let name = name.strip_prefix("format.").unwrap_or(name);
            let refused = |advice: &str| {
                Error::Usage(format!("not a value of the option `{name}`: {value}: use {advice}"))
            };
            match name {
                "key" => own.key = Some(value.clone()),
                "value" => own.value = Some(value.clone()),
                "unique" => {
                    own.unique = unique(value).ok_or_else(|| refused("error, first, last, sum or no"))?
                }
                "memory" => {
                    let bytes = bytes_of(value).ok_or_else(|| refused("bytes, such as 512MiB or 4GB"))?;
                    own.memory_bytes = Some(bytes);
                }
                "partition_tuples" => {
                    let tuples = bytes_of(value).filter(|&tuples| tuples > 0);
                    own.partition_tuples = Some(tuples.ok_or_else(|| refused("a number, 1 or more"))?);
                }
                "force" => own.force = value.parse().map_err(|_| refused("true or false"))?,
                _ => {
                    return Err(Error::Usage(format!(
                        "no such option: {name}: COPY: use key, value, unique, memory, partition_tuples or force"
                    )));
                }
            }
        }
        Ok(own)
    }

    /// Returns the columns of keys and values among those of the query.
    fn input(&self, schema: &SchemaRef) -> Result<InputOptions, Error> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let Some(first) = names.first() else {
            return Err(Error::Usage("a query without columns: COPY: select a key at least".into()));
        };
        let key = self.key.clone().unwrap_or_else(|| (*first).to_owned());
        let value = self.value.clone().or_else(|| {
            let is_key = |name: &&&str| **name == key || key.split(',').any(|part| part.trim() == **name);
            let others: Vec<&str> = names.iter().filter(|name| !is_key(name)).copied().collect();
            (!others.is_empty()).then(|| others.join(","))
        });
        let value_type = value.is_none().then_some(pleach::ValueType::None);
        Ok(InputOptions { key: Some(key), value, value_type, ..InputOptions::default() })
    }
}

fn unique(text: &str) -> Option<Option<Unique>> {
    let known = [Unique::Error, Unique::First, Unique::Last, Unique::Sum];
    match text.to_ascii_lowercase().as_str() {
        "no" | "false" => Some(None),
        "true" => Some(Some(Unique::Error)),
        name => known.into_iter().find(|unique| unique.name() == name).map(Some),
    }
}

/// Reads a number with a unit: `512MiB`, `4GB`, `1000000`; `None` if it is none.
#[must_use]
pub fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The format: it writes. Tables are read by [`PleachTable`](crate::PleachTable).
#[derive(Debug)]
struct PleachFormat {
    options: CopyOptions,
}

#[async_trait]
impl FileFormat for PleachFormat {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }

    fn get_ext_with_compression(&self, _: &FileCompressionType) -> EngineResult<String> {
        Ok(EXTENSION.to_owned())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        _: &[ObjectMeta],
    ) -> EngineResult<SchemaRef> {
        not_impl_err!(
            "a listing of Pleach files is no table: use CREATE EXTERNAL TABLE ... STORED AS {FORMAT}"
        )
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _: &ObjectMeta,
    ) -> EngineResult<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        _: &dyn Session,
        _: FileScanConfig,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        not_impl_err!(
            "a listing of Pleach files is no table: use CREATE EXTERNAL TABLE ... STORED AS {FORMAT}"
        )
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        if !config.table_partition_cols.is_empty() {
            let text = "PARTITIONED BY is for other formats: COPY: give partition_tuples to make a set";
            return Err(Error::Usage(text.into()).into());
        }
        let path = crate::factory::local_path(&config.original_url)?;
        let schema = Arc::clone(config.output_schema());
        let sink = PleachSink { path, options: self.options.clone(), schema };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }

    fn file_source(&self, table: TableSchema) -> Arc<dyn FileSource> {
        // Asked only for scans of listings, which `infer_schema` refuses.
        Arc::new(datafusion::datasource::physical_plan::ArrowSource::new_file_source(table))
    }
}

/// Builds a file or a set of the rows of a query.
#[derive(Debug)]
struct PleachSink {
    path: PathBuf,
    options: CopyOptions,
    schema: SchemaRef,
}

impl PleachSink {
    /// Returns true if the target is a set: anything that is not named as a file.
    fn is_set(&self) -> bool {
        self.options.partition_tuples.is_some()
            || self.path.is_dir()
            || self.path.extension().is_none_or(|extension| extension != EXTENSION)
    }
}

impl DisplayAs for PleachSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_set() { "set" } else { "file" };
        write!(f, "PleachSink: {kind}={}", self.path.display())
    }
}

/// Ends a build whose query failed or was dropped.
#[derive(Debug, Default)]
struct Cancel(AtomicBool);

impl Observer for Cancel {
    fn progress(&self, _: Phase, _: u64, _: Option<u64>) {}
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels the build when it is dropped before the end.
struct CancelOnDrop(Arc<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl DataSink for PleachSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        _: &Arc<TaskContext>,
    ) -> EngineResult<u64> {
        let (sender, receiver) = channel::<RecordBatch>(AHEAD);
        let cancel = Arc::new(Cancel::default());
        let guard = CancelOnDrop(Arc::clone(&cancel));
        let is_complete = Arc::new(AtomicBool::new(false));
        let job = Job {
            path: self.path.clone(),
            is_set: self.is_set(),
            input: self.options.input(&self.schema)?,
            options: self.options.clone(),
            schema: Arc::clone(&self.schema),
            cancel,
            is_complete: Arc::clone(&is_complete),
        };
        let build = tokio::task::spawn_blocking(move || job.run(receiver));
        let mut failed = None;
        while let Some(batch) = data.next().await {
            match batch {
                Ok(batch) => {
                    if sender.send(batch).await.is_err() {
                        // The build has ended with an error.
                        break;
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if failed.is_none() {
            is_complete.store(true, Ordering::Release);
        }
        drop(sender);
        let built = build.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        drop(guard);
        match failed {
            Some(error) => Err(error),
            None => Ok(built?),
        }
    }
}

/// A build on a thread of its own.
struct Job {
    path: PathBuf,
    is_set: bool,
    input: InputOptions,
    options: CopyOptions,
    schema: SchemaRef,
    cancel: Arc<Cancel>,
    /// True once all batches were sent; rows that end before are those of a query that failed.
    is_complete: Arc<AtomicBool>,
}

impl Job {
    /// Builds from the batches, and returns the number of rows.
    fn run(self, batches: Receiver<RecordBatch>) -> Result<u64, Error> {
        let rows = Arc::new(Mutex::new(0));
        let batches = Batches {
            receiver: batches,
            is_complete: Arc::clone(&self.is_complete),
            rows: Arc::clone(&rows),
            is_ended: false,
        };
        let place = self.path.display().to_string();
        let mut source = pleach_input::open_batches("query", &self.schema, batches, &self.input)
            .map_err(|error| Error::Usage(error.to_string()))?;
        let mut options = BuildOptions {
            unique: self.options.unique,
            force: self.options.force,
            ..BuildOptions::default()
        };
        options.memory_bytes = self.options.memory_bytes.unwrap_or(options.memory_bytes);
        if self.is_set {
            self.build_set(&mut *source, &options)?;
        } else {
            pleach_builder::build(&mut *source, &self.path, &options, &*self.cancel)
                .map_err(|error| Error::File(pleach::Error::from(error).at(Path::new(&place))))?;
        }
        let rows = *rows.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(rows)
    }

    fn build_set(
        &self,
        source: &mut dyn pleach_builder::Source,
        options: &BuildOptions,
    ) -> Result<(), Error> {
        let is_new = !self.path.exists();
        let store: Arc<dyn Store> = Arc::new(Folder::create(&self.path)?);
        let partition = match self.options.partition_tuples {
            Some(tuples) => Partition::Tuples(tuples),
            None => pleach_set::current(&*store).map_or_else(
                |_| Partition::default(),
                |manifest| Partition::Tuples(manifest.schema().partition_tuples),
            ),
        };
        let published = Writer::new(Arc::clone(&store))
            .write(source, partition, options, &*self.cancel)
            .and_then(|(written, _)| {
                let publish = || {
                    let mut committer = Committer::begin(Arc::clone(&store))?;
                    committer.add_own(&written)?;
                    committer.publish()
                };
                publish().inspect_err(|error| pleach_set::discard(&*store, &written.entries, error))
            });
        if published.is_err() && is_new {
            // Only folders without anything in them are removed.
            for folder in ["files", "manifests", ""] {
                let _ = std::fs::remove_dir(self.path.join(folder));
            }
        }
        published?;
        Ok(())
    }
}

/// Batches as the build takes them. A query that failed is an error, and not the end.
struct Batches {
    receiver: Receiver<RecordBatch>,
    is_complete: Arc<AtomicBool>,
    rows: Arc<Mutex<u64>>,
    is_ended: bool,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_ended {
            return None;
        }
        match self.receiver.blocking_recv() {
            Some(batch) => {
                *self.rows.lock().unwrap_or_else(PoisonError::into_inner) += batch.num_rows() as u64;
                Some(Ok(batch))
            }
            None => {
                self.is_ended = true;
                let is_complete = self.is_complete.load(Ordering::Acquire);
                (!is_complete).then(|| Err(ArrowError::ExternalError("the query did not end".into())))
            }
        }
    }
}
