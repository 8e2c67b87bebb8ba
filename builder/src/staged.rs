//! Builds of two stages: tuples are sorted into a temporary file, and one pass over that file makes the final ones.

use crate::error::BuildError;
use crate::flow;
use crate::intervals::Disjoint;
use crate::layout::Layout;
use crate::observe::{Observer, Watch};
use crate::options::{BuildOptions, Summary};
use crate::publish::{Descent, Output, Publication};
use crate::rebuild::base::Base;
use crate::rebuild::compact::source_of;
use crate::source::{Intervals, Source};
use crate::storage::Storage;
use pleach_format::FormatError;
use std::path::Path;

/// Builds a file; called inside the pool.
pub(crate) fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let Some(Intervals::Rows { is_counted }) = source.schema().interval else {
        return flow::build(source, target, options, observer, storage);
    };
    let schema = source.schema().published();
    flow::published(&schema, target, options, observer, storage, |publication, watch| {
        in_stages(publication, source, is_counted, options, watch, storage)
    })
}

/// Sorts intervals into a temporary file, and writes disjoint ones of them.
fn in_stages(
    publication: &Publication<'_>,
    source: &mut dyn Source,
    is_counted: bool,
    options: &BuildOptions,
    watch: &Watch<'_>,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let folder = options.temp_dir.as_deref().unwrap_or(publication.folder());
    let failed = |error| BuildError::io("creating a temporary file", folder, error);
    let stage = storage.create_spill(folder).map_err(failed)?;
    let lines_alone = Layout { spine: false, grid: false, wide: false, ..Layout::default() };
    let first = BuildOptions { unique: None, generation: 1, ..options.clone() }.with_layout(lines_alone);
    let output = Output { file: &*stage, path: folder };
    let sorted = flow::write_into((output, folder), Descent::FIRST, source, &first, watch, storage)?;
    let base = Base::over(stage, sorted.file_bytes, folder, false)?;
    let numbered = source_of(&base, &base.schema()?)?;
    let disjoint = Disjoint::new(numbered, options.overlap, is_counted);
    let mut disjoint = disjoint.ok_or_else(|| {
        let rule = "values of intervals must be records of their ends";
        base.corrupt(FormatError::Corrupt { what: "META", offset: 0, rule, found: 0 })
    })?;
    let second = BuildOptions { sorted: true, ..options.clone() };
    let written = flow::write(publication, &mut disjoint, &second, watch, storage);
    let written = written.map_err(|error| disjoint.refused.take().unwrap_or(error))?;
    let Summary { rows, sorted_input, runs, .. } = sorted;
    Ok(Summary { rows, sorted_input, runs, ..written })
}
