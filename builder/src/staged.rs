//! Builds of two stages: tuples are sorted into a temporary file, and one pass over that file makes the final ones.

use crate::error::BuildError;
use crate::flow;
use crate::intervals::Disjoint;
use crate::layout::Layout;
use crate::lossy::{self, Mapped};
use crate::observe::{Observer, Watch};
use crate::options::{BuildOptions, Summary};
use crate::publish::{Descent, Output, Publication};
use crate::rebuild::base::Base;
use crate::rebuild::compact::source_of;
use crate::source::{Derived, Intervals, Schema, Source};
use crate::storage::Storage;
use pleach_format::{FormatError, KeyType, Logical};
use std::path::Path;

/// Turns of a hash that are tried: one for each of its other bytes.
const TURNS_MAX: u8 = 15;

/// Builds a file; called inside the pool.
pub(crate) fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let schema = source.schema().clone();
    let options = &BuildOptions { unique: options.unique.or(schema.unique), ..options.clone() };
    let checked = match (schema.derived, schema.interval) {
        (Some(derived), _) => lossy::schema(&schema, derived),
        (None, Some(Intervals::Rows { .. })) => schema.published(),
        (None, _) => return flow::build(source, target, options, observer, storage),
    };
    flow::published(&checked, target, options, observer, storage, |publication, watch| {
        let stages = Stages { publication, options, watch, storage };
        match (schema.derived, schema.interval) {
            (Some(Derived::Hash), _) => stages.of_hashes(source),
            (Some(Derived::Prefix), _) => stages.of_prefixes(source),
            (None, Some(Intervals::Rows { is_counted })) => stages.of_intervals(source, is_counted),
            (None, _) => flow::write(publication, source, options, watch, storage),
        }
    })
}

/// A build of several stages.
struct Stages<'a> {
    publication: &'a Publication<'a>,
    options: &'a BuildOptions,
    watch: &'a Watch<'a>,
    storage: &'a dyn Storage,
}

impl Stages<'_> {
    /// Sorts tuples into a temporary file.
    fn sorted(&self, source: &mut dyn Source) -> Result<(Base, Summary), BuildError> {
        let folder = self.options.temp_dir.as_deref().unwrap_or(self.publication.folder());
        let failed = |error| BuildError::io("creating a temporary file", folder, error);
        let stage = self.storage.create_spill(folder).map_err(failed)?;
        let lines_alone = Layout { spine: false, grid: false, wide: false, ..Layout::default() };
        let first = BuildOptions { unique: None, generation: 1, ..self.options.clone() };
        let first = first.with_layout(lines_alone);
        let output = Output { file: &*stage, path: folder };
        let (watch, storage) = (self.watch, self.storage);
        let sorted = flow::write_into((output, folder), Descent::FIRST, source, &first, watch, storage)?;
        Ok((Base::over(stage, sorted.file_bytes, folder, false)?, sorted))
    }

    /// Writes the file of tuples that are in order.
    fn write(&self, source: &mut dyn Source) -> Result<Summary, BuildError> {
        let second = BuildOptions { sorted: true, ..self.options.clone() };
        flow::write(self.publication, source, &second, self.watch, self.storage)
    }

    /// Sorts texts by their hashes, and writes the half of each hash by which all of them differ.
    fn of_hashes(&self, source: &mut dyn Source) -> Result<Summary, BuildError> {
        let given = source.schema().clone();
        let wide = Schema { key_type: KeyType::U128, derived: None, interval: None, ..given.clone() };
        let mut hashes = Mapped::new(source, wide, Box::new(lossy::hashes));
        let (mut base, sorted) = self.sorted(&mut hashes)?;
        let mut turn = 0;
        let distinct = loop {
            let found = lossy::count_hashes(&mut *source_of(&base, &base.schema()?)?)?;
            match found {
                Some(distinct) => break distinct,
                // Two texts with the same upper half: with the hash turned, other bits are there.
                None if turn < TURNS_MAX => {
                    let schema = base.schema()?;
                    let mut inner = source_of(&base, &schema)?;
                    let mut turned = Mapped::new(&mut *inner, schema, Box::new(lossy::turned));
                    let next = self.sorted(&mut turned)?.0;
                    drop(turned);
                    drop(inner);
                    base = next;
                    turn += 1;
                }
                None => return Err(BuildError::Source(lossy::collision())),
            }
        };
        let schema = Schema {
            key_logical: Logical::Hash64(turn).meta(),
            approximate: Some(distinct),
            ..lossy::schema(&given, Derived::Hash)
        };
        let mut inner = source_of(&base, &base.schema()?)?;
        let written = self.write(&mut Mapped::new(&mut *inner, schema, Box::new(lossy::upper_halves)))?;
        Ok(as_read(written, &sorted))
    }

    /// Sorts texts, and writes as much of each as makes all of them differ.
    fn of_prefixes(&self, source: &mut dyn Source) -> Result<Summary, BuildError> {
        let given = source.schema().clone();
        let plain = Schema { derived: None, interval: None, ..given.clone() };
        let (base, sorted) = self.sorted(&mut Mapped::new(source, plain, Box::new(|keys| keys)))?;
        let shape = lossy::shape(&mut *source_of(&base, &base.schema()?)?)?;
        let schema = shape.schema(&given);
        let mut inner = source_of(&base, &base.schema()?)?;
        let cut = Box::new(move |keys| shape.cut(keys));
        let written = self.write(&mut Mapped::new(&mut *inner, schema, cut))?;
        Ok(as_read(written, &sorted))
    }

    /// Sorts intervals, and writes disjoint ones of them.
    fn of_intervals(&self, source: &mut dyn Source, is_counted: bool) -> Result<Summary, BuildError> {
        let (base, sorted) = self.sorted(source)?;
        let numbered = source_of(&base, &base.schema()?)?;
        let disjoint = Disjoint::new(numbered, self.options.overlap, is_counted);
        let mut disjoint = disjoint.ok_or_else(|| {
            let rule = "values of intervals must be records of their ends".into();
            base.corrupt(FormatError::Corrupt { what: "META", offset: 0, rule, found: 0 })
        })?;
        let written = self.write(&mut disjoint);
        let written = written.map_err(|error| disjoint.refused.take().unwrap_or(error))?;
        Ok(as_read(written, &sorted))
    }
}

/// Returns what was written, with what is known of the input.
fn as_read(written: Summary, sorted: &Summary) -> Summary {
    Summary { rows: sorted.rows, sorted_input: sorted.sorted_input, runs: sorted.runs, ..written }
}
