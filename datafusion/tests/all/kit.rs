//! Tables to ask, twice: as Pleach files or sets, and as rows in memory.

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, LargeStringArray,
    RecordBatch, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use pleach_builder::{BuildOptions, Silent, Unique};
use pleach_datafusion::{PleachScanExec, PleachTable};
use pleach_input::InputOptions;
use pleach_set::{Committer, Folder, Partition, Store, Writer};
use std::path::Path;
use std::sync::Arc;

/// Rows, some literals among their keys, and how they are written in SQL.
pub struct Rows {
    pub name: &'static str,
    pub batch: RecordBatch,
    pub is_unique: bool,
    /// A literal near the start, in the middle and near the end of the keys.
    pub keys: [String; 3],
    /// A literal that is no key, and one above all keys.
    pub others: [String; 2],
}

/// Returns true if tests ask all that they can: `PLEACH_ALL` is set. Otherwise each query is asked in some forms only.
pub fn is_whole() -> bool {
    std::env::var_os("PLEACH_ALL").is_some()
}

/// Returns the number of a row, by which rows with equal keys differ.
fn numbers(rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|row| row * 7 - 300)))
}

fn texts(rows: usize) -> ArrayRef {
    Arc::new(LargeStringArray::from_iter_values((0..rows).map(|row| format!("row {}", row * 31 % 1009))))
}

/// Makes a batch of a key column, a number and a text.
pub fn batch(keys: ArrayRef) -> RecordBatch {
    let columns = vec![("k", keys.clone()), ("n", numbers(keys.len())), ("s", texts(keys.len()))];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns are of one length")
}

/// Returns the rows in another order.
pub fn shuffled(batch: &RecordBatch) -> RecordBatch {
    let rows = batch.num_rows() as u64;
    // A prime that does not divide the number of rows.
    let order = UInt64Array::from_iter_values((0..rows).map(|row| row * 7919 % rows));
    take_record_batch(batch, &order).expect("ranks are those of rows")
}

/// All cases: key `i` of a case stands for `i * 3`, and every key is there `times` times.
pub fn cases() -> Vec<Rows> {
    let rows = 3000_usize;
    let each = |times: usize| (0..rows).map(move |row| (row / times * 3) as i64);
    let plain = |text: fn(i64) -> String| [30, 1500, 2700].map(text);
    let others = |text: fn(i64) -> String| [1501, 1_000_000].map(text);
    let number: fn(i64) -> String = |key| key.to_string();
    let day: fn(i64) -> String = |key| {
        let (year, rest) = (1970 + key / 360, key % 360);
        format!("DATE '{year}-{:02}-{:02}'", 1 + rest / 30, 1 + rest % 28)
    };
    let days = |key: i64| (key / 360 * 365 + key % 360) as i32;
    let second: fn(i64) -> String =
        |key| format!("arrow_cast({}, 'Timestamp(Microsecond, None)')", key * 1_000_000);
    let text: fn(i64) -> String = |key| format!("'key {key:07}'");
    let cents: fn(i64) -> String = |key| format!("CAST('{}.{:02}' AS DECIMAL(15, 2))", key / 100, key % 100);
    let float: fn(i64) -> String = |key| format!("{}", key as f64 / 4.0 - 100.0);
    let decimals = Decimal128Array::from_iter_values(each(1).map(i128::from));
    let decimals = decimals.with_precision_and_scale(15, 2).expect("15 digits are enough");
    let case = |name, keys: ArrayRef, is_unique, [a, b, c]: [String; 3], [d, e]: [String; 2]| Rows {
        name,
        batch: shuffled(&batch(keys)),
        is_unique,
        keys: [a, b, c],
        others: [d, e],
    };
    vec![
        case(
            "u32",
            Arc::new(UInt32Array::from_iter_values(each(1).map(|key| key as u32))),
            true,
            plain(number),
            others(number),
        ),
        case(
            "u64",
            Arc::new(UInt64Array::from_iter_values(each(4).map(|key| key as u64))),
            false,
            plain(number),
            others(number),
        ),
        case(
            "i64",
            Arc::new(Int64Array::from_iter_values(each(1).map(|key| key - 1500))),
            true,
            plain(|key| (key - 1500).to_string()),
            others(|key| (key - 1500).to_string()),
        ),
        case(
            "i32",
            Arc::new(Int32Array::from_iter_values(each(7).map(|key| key as i32))),
            false,
            plain(number),
            others(number),
        ),
        case(
            "f64",
            Arc::new(Float64Array::from_iter_values(each(1).map(|key| key as f64 / 4.0 - 100.0))),
            true,
            plain(float),
            others(float),
        ),
        case(
            "utf8",
            Arc::new(LargeStringArray::from_iter_values(each(3).map(|key| format!("key {key:07}")))),
            false,
            plain(text),
            others(text),
        ),
        case(
            "date",
            Arc::new(Date32Array::from_iter_values(each(2).map(days))),
            false,
            plain(day),
            others(day),
        ),
        case(
            "timestamp",
            Arc::new(TimestampMicrosecondArray::from_iter_values(each(1).map(|key| key * 1_000_000))),
            true,
            plain(second),
            others(second),
        ),
        case("decimal", Arc::new(decimals), true, plain(cents), others(cents)),
    ]
}

fn input(batch: &RecordBatch) -> InputOptions {
    let names: Vec<&str> =
        batch.schema_ref().fields().iter().skip(1).map(|field| field.name().as_str()).collect();
    InputOptions {
        key: Some(batch.schema_ref().field(0).name().clone()),
        value: Some(names.join(",")),
        ..InputOptions::default()
    }
}

fn options(is_unique: bool) -> BuildOptions {
    BuildOptions {
        unique: is_unique.then_some(Unique::Error),
        threads: 1,
        memory_bytes: 256 << 20,
        ..BuildOptions::default()
    }
}

/// Builds a file by these options.
pub fn build_with(path: &Path, batch: &RecordBatch, input: &InputOptions, is_unique: bool) {
    let batches = std::iter::once(Ok(batch.clone()));
    let mut source =
        pleach_input::open_batches("rows", batch.schema_ref(), batches, input).expect("columns fit");
    pleach_builder::build(&mut *source, path, &options(is_unique), &Silent).expect("the build succeeds");
}

/// Builds a file of rows.
pub fn build_file(path: &Path, batch: &RecordBatch, is_unique: bool) {
    build_with(path, batch, &input(batch), is_unique);
}

/// Builds the next generation of a set, of files of so many tuples.
pub fn build_set(path: &Path, batch: &RecordBatch, is_unique: bool, tuples: u64) {
    let input = input(batch);
    let batches = std::iter::once(Ok(batch.clone()));
    let mut source =
        pleach_input::open_batches("rows", batch.schema_ref(), batches, &input).expect("columns fit");
    let store: Arc<dyn Store> = Arc::new(Folder::create(path).expect("the folder can be made"));
    let writer = Writer::new(Arc::clone(&store));
    let (written, _) = writer
        .write(&mut *source, Partition::Tuples(tuples), &options(is_unique), &Silent)
        .expect("files can be written");
    let mut committer = Committer::begin(store).expect("the set can be read");
    committer.add(&written).expect("files fit");
    committer.publish().expect("nobody else publishes");
}

/// Returns a session with small batches and so many partitions.
pub fn session(partitions: usize, batch_rows: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_rows);
    let state = datafusion::execution::SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(pleach_datafusion::register_formats(state).build())
}

/// Registers a file or a set.
pub fn register(session: &SessionContext, name: &str, path: &Path) {
    let table = PleachTable::open(path).expect("the table can be opened");
    session.register_table(name, Arc::new(table)).expect("the name is free");
}

/// Registers rows in memory.
pub fn register_rows(session: &SessionContext, name: &str, batch: &RecordBatch) {
    let table =
        MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).expect("rows are of their schema");
    session.register_table(name, Arc::new(table)).expect("the name is free");
}

/// Returns the rows of a query as texts, in their order.
pub async fn rows(session: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = session.sql(sql).await?.collect().await?;
    Ok(shown(&batches))
}

/// Returns rows as texts.
pub fn shown(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let options = FormatOptions::default().with_null("null");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).expect("values can be shown"))
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            rows.push(values.join("|"));
        }
    }
    rows
}

/// Returns the physical plan of a query.
pub async fn plan(session: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let frame = session.sql(sql).await.expect("the query is right");
    frame.create_physical_plan().await.expect("the query can be planned")
}

/// Returns the text of a plan.
pub fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

/// Runs a plan, and returns its rows.
pub async fn run(session: &SessionContext, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<String>> {
    Ok(shown(&collect(Arc::clone(plan), session.task_ctx()).await?))
}

/// Returns the scans of a plan.
pub fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    if plan.downcast_ref::<PleachScanExec>().is_some() {
        return vec![Arc::clone(plan)];
    }
    plan.children().into_iter().flat_map(scans).collect()
}

/// Returns a metric of all scans of a plan that was run.
pub fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let metrics = scans(plan).into_iter().filter_map(|scan| scan.metrics());
    let value = |metrics: MetricsSet| match name {
        // It has a kind of its own, and no name.
        "output_rows" => metrics.output_rows(),
        _ => metrics.sum_by_name(name).map(|value| value.as_usize()),
    };
    metrics.filter_map(value).sum()
}
