//! The flow of a build: optimistic streaming, sorting if needed, publishing.

use crate::bytes;
use crate::error::BuildError;
use crate::external::Spills;
use crate::intervals::Checked;
use crate::job::{Extras, Job};
use crate::layout::{Harmonia, Layout, Values};
use crate::observe::{Observer, Watch};
use crate::options::{BuildOptions, Summary, Unique};
use crate::publish::{Descent, Output, Publication, Rules};
use crate::rebuild::generations::{self, Keep, Kept};
use crate::source::{Intervals, Schema, Source};
use crate::storage::Storage;
use pleach_format::ValueType;
use pleach_format::classic::paged::Form;
use pleach_format::interval::INCLUSIVE;
use pleach_format::meta::{Meta, TEXT_BYTES_MAX};
use std::path::Path;

/// Builds a file; called inside the pool.
pub(crate) fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let schema = source.schema().clone();
    published(&schema, target, options, observer, storage, |publication, watch| {
        write(publication, source, options, watch, storage)
    })
}

/// Publishes a file of this schema, which `write` writes.
pub(crate) fn published(
    schema: &Schema,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
    write: impl FnOnce(&Publication<'_>, &Watch<'_>) -> Result<Summary, BuildError>,
) -> Result<Summary, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    check(schema, options)?;
    // Take the lock before the first tuple is read.
    let rules = Rules::index(options.inputs.clone(), options.force);
    let publication = Publication::begin(storage, target, rules)?;
    generations::may_keep(&publication, Keep::of(options.keep))?;
    let summary = write(&publication, watch)?;
    let Kept { kept, left } = generations::publish(publication, Keep::of(options.keep), true, watch)?;
    Ok(Summary { kept, left, ..summary })
}

/// Refuses a build that is not possible, before anything is read.
fn check(schema: &Schema, options: &BuildOptions) -> Result<(), BuildError> {
    meta(schema, options)?;
    let key_type = schema.key_type;
    let is_number = matches!(schema.value_type, ValueType::U32 | ValueType::U64);
    let adds = is_number && schema.value_logical.is_empty() && !key_type.is_bytes();
    if options.unique == Some(Unique::Sum) && !adds {
        return Err(BuildError::NoSum { types: schema.types_text() });
    }
    if options.packed && (key_type.is_bytes() || key_type.bytes() > 8) {
        return Err(BuildError::NotPackable { key_type });
    }
    if options.values == Values::Dictionary && !schema.value_type.is_bytes() {
        return Err(BuildError::NoDictionary { value_type: schema.value_type });
    }
    if let Some(fast) = options.fast {
        // The words of byte keys, and those that may be shorter than numbers, are known only later.
        let is_number = !key_type.is_bytes();
        let shortens = !options.wide && fast.form != Form::Partial;
        for bytes in [4u32, 8, 16] {
            let is_possible = match (is_number, key_type.bytes() as u32) {
                (true, widest) => bytes == widest || bytes < widest && shortens,
                (false, _) => fast.form.holds(bytes),
            };
            if is_possible {
                fast.check(bytes).map_err(BuildError::Layout)?;
            }
        }
    }
    if let Some(Harmonia { fanout, fill_percent }) = options.harmonia.filter(|shape| !shape.is_sound()) {
        return Err(BuildError::Harmonia { fanout, fill_percent });
    }
    Ok(())
}

/// Builds into the temporary file of a publication.
pub(crate) fn write(
    publication: &Publication<'_>,
    source: &mut dyn Source,
    options: &BuildOptions,
    watch: &Watch<'_>,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let (output, folder) = (publication.output(), publication.folder());
    let descent = Descent {
        generation: publication.descent().generation.max(options.generation),
        ..publication.descent()
    };
    write_into((output, folder), descent, source, options, watch, storage)
}

/// Builds into a file in this folder.
pub(crate) fn write_into(
    output: (Output<'_>, &Path),
    descent: Descent,
    source: &mut dyn Source,
    options: &BuildOptions,
    watch: &Watch<'_>,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    if source.schema().interval == Some(Intervals::Disjoint)
        && let Some(mut checked) = Checked::new(source)
    {
        let written = write_all(output, descent, &mut checked, options, watch, storage);
        return written.map_err(|error| checked.refused.take().unwrap_or(error));
    }
    write_all(output, descent, source, options, watch, storage)
}

fn write_all(
    (output, folder): (Output<'_>, &Path),
    descent: Descent,
    source: &mut dyn Source,
    options: &BuildOptions,
    watch: &Watch<'_>,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let schema = source.schema().clone();
    check(&schema, options)?;
    let meta = meta(&schema, options)?;
    let folder = options.temp_dir.clone().unwrap_or_else(|| folder.to_owned());
    let spills = Spills { storage, folder: &folder };
    let job = Job {
        options,
        watch,
        schema: &schema,
        spills,
        output,
        descent,
        meta: &meta,
        mask: None,
        searches_words: true,
    };
    if schema.key_type.is_bytes() || schema.value_type.is_bytes() {
        bytes::build(&job, source)
    } else {
        job.run_words(schema.key_type.bytes(), source, &Extras::none)
    }
}

fn meta(schema: &Schema, options: &BuildOptions) -> Result<Meta, BuildError> {
    let layout = options.layout();
    let has_value = schema.value_type != ValueType::None;
    let value = |text: &String| if has_value { text.clone() } else { String::new() };
    let meta = Meta {
        key_name: schema.key_name.clone(),
        value_name: value(&schema.value_name),
        key_logical: schema.key_logical.clone(),
        value_logical: value(&schema.value_logical),
        layout: if layout == Layout::default() { String::new() } else { layout.to_string() },
        interval: if schema.interval == Some(Intervals::Disjoint) { INCLUSIVE.into() } else { String::new() },
        approximate: schema.approximate.map(|distinct| distinct.to_string()).unwrap_or_default(),
    };
    for text in [&meta.key_name, &meta.value_name, &meta.key_logical, &meta.value_logical] {
        if text.len() > TEXT_BYTES_MAX {
            let (found, limit) = (text.len() as u64, TEXT_BYTES_MAX as u64);
            return Err(BuildError::TooLarge { what: "the name of a column", found, limit });
        }
    }
    Ok(meta)
}
