//! Opens the changes of a rebuild, in the types of what they change, and says what became of them.

use crate::cli::{Global, RebuildArgs};
use crate::render::json::int;
use pleach_builder::rebuild::Applied;
use pleach_builder::source::{Schema, Source, SourceError};
use pleach_input::{Header, InputOptions, NullCounts};
use serde_json::Value;

/// Opens a table of changes.
pub fn open(
    args: &RebuildArgs,
    schema: &Schema,
    global: &Global,
    counts: &NullCounts,
) -> Result<Box<dyn Source>, SourceError> {
    let options = InputOptions {
        format: args.format,
        key: args.key.clone(),
        value: args.value.clone(),
        key_type: Some(schema.key_type),
        // The fields of a record have types of their own.
        value_type: Some(schema.value_type),
        record: schema.record(),
        // Changes in another unit are converted to that of the file; those with another meaning are refused.
        key_logical: Some(schema.key_meaning().logical),
        value_logical: Some(schema.value_meaning().logical).filter(|_| schema.record().is_none()),
        raw_values: global.raw_values,
        delimiter: args.delimiter,
        no_header: args.no_header,
        header: if args.header { Header::Each } else { Header::Checked },
        changes: true,
        op: args.op.clone(),
        key_name: Some(schema.key_name.clone()),
        value_name: Some(schema.value_name.clone()),
        nulls: args.nulls.clone(),
        null_counts: counts.clone(),
        ..InputOptions::default()
    };
    pleach_input::open(std::slice::from_ref(&args.apply), &options)
}

/// Returns what became of changes as JSON.
pub fn json(applied: &Applied) -> Value {
    serde_json::json!({
        "rows": int(applied.rows()),
        "puts": int(applied.puts),
        "adds": int(applied.adds),
        "dels": int(applied.dels),
        "superseded": int(applied.superseded),
        "absent": int(applied.absent),
        "removed": int(applied.removed),
        "written": int(applied.written),
    })
}
