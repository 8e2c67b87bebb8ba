//! Inputs of commands that work on index files: index files, and tables, of which an index is built first.
//!
//! A table is a file whose extension or `--input-format` is that of a table, a folder, a pattern, or `-`. Its index has
//! no name: it is on the disk of the output, or in the temporary folder, and the system removes it when the command
//! ends, however it ends.
//!
//! A table has the key type that is requested, or else that of the first index file, or else that of the first table
//! whose columns have types. Where two types mean the same in different units, each input keeps its own.

use crate::cli::tables::{Sides, Tables};
use crate::cli::{Global, Verify};
use crate::errors::{self, build_failure, source_failure};
use crate::failure::{self, Failure};
use crate::message::Message;
use crate::place;
use crate::progress::Progress;
use crate::render::text::{counted, grouped, printable};
use crate::request::{InputTypes, nulls_text};
use crate::search;
use pleach::{Index, KeyType};
use pleach_builder::source::{Derived, Source};
use pleach_builder::storage::UnnamedStorage;
use pleach_builder::{BuildOptions, build_with_storage};
use pleach_format::logical::{Logical, matching};
use pleach_format::{Meaning, Record, ValueType};
use pleach_input::{Format, InputOptions, NullCounts, Types};
use pleach_set::{LeftOut, Set, SetSource};
use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Which values of an input a command needs, if the input is a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Those of the table, with its types.
    Own,
    /// Those of the table, of the type of the values of the other input.
    Alike,
    /// None.
    Unneeded,
}

/// An input of a command.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    path: &'a Path,
    values: Values,
    is_table: bool,
    /// Format of a table, if it is known.
    format: Option<Format>,
    key: Option<&'a str>,
    value: Option<&'a str>,
    types: InputTypes<'a>,
}

/// The inputs of a command.
pub struct Inputs<'a> {
    all: Vec<Input<'a>>,
    tables: &'a Tables,
    global: &'a Global,
    /// Files of sets that were left out.
    left_out: RefCell<Vec<LeftOut>>,
}

/// Types that tables take from another input.
#[derive(Clone)]
struct Known {
    key_type: KeyType,
    key: Meaning,
    value_type: ValueType,
    value: Meaning,
    record: Option<Record>,
}

impl<'a> Inputs<'a> {
    /// Examines paths, of which nothing is read but the first bytes.
    pub fn new(
        paths: &[(&'a Path, Values)],
        tables: &'a Tables,
        sides: Option<&'a Sides>,
        global: &'a Global,
    ) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for (at, &(path, values)) in paths.iter().enumerate() {
            let side = sides.map(|sides| match at {
                0 => (&sides.left_key, &sides.left_value, &sides.left_value_type),
                _ => (&sides.right_key, &sides.right_value, &sides.right_value_type),
            });
            let (key, value, value_type) = side.unwrap_or((&None, &None, &None));
            let types = InputTypes {
                key: tables.key_type.as_deref(),
                value: value_type.as_deref().or(tables.value_type.as_deref()),
            };
            let input = Input {
                path,
                values,
                is_table: is_table(path, tables),
                format: format(path, tables)?,
                key: key.as_deref().or(tables.key.as_deref()),
                value: value.as_deref().or(tables.value.as_deref()),
                types,
            };
            let is_told = key.is_some() || value.is_some() || value_type.is_some();
            if !input.is_table && is_told {
                let message = Message::new("it is no table, so that it has no columns to choose");
                let advice = "leave out the options of this side that choose columns";
                return Err(Failure::usage(message.at(path.display()).advise(advice)));
            }
            if input.is_table {
                types.check(input.key, input.value, false)?;
            }
            all.push(input);
        }
        if all.iter().filter(|input| input.path.as_os_str() == "-").count() > 1 {
            let message = Message::new("it can be read only once").at("standard input");
            return Err(Failure::usage(message.advise("name '-' once")));
        }
        if !all.iter().any(|input| input.is_table) && is_told(tables) {
            let message = Message::new("no input is a table, so that there are no columns to choose");
            return Err(Failure::usage(message.advise("leave out the options of inputs that are tables")));
        }
        Ok(Self { all, tables, global, left_out: RefCell::default() })
    }

    /// Returns the files that are read: those of folders and patterns, too.
    pub fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for input in &self.all {
            if input.is_table {
                let expanded = pleach_input::expanded(&[input.path.to_owned()]);
                files.extend(expanded.map_err(|error| source_failure(&error))?);
            } else if !input.path.is_dir() {
                files.push(input.path.to_owned());
            }
        }
        Ok(files)
    }

    /// Opens the inputs, and builds indexes of tables in `folder`.
    pub fn open(&self, verify: Verify, folder: &Path, options: &BuildOptions) -> Result<Vec<Index>, Failure> {
        let mut opened: Vec<Option<Index>> = Vec::new();
        let mut known = None;
        for input in &self.all {
            let index = match input.is_table {
                true => None,
                false if place::is_set(input.path, self.global)? => {
                    Some(self.of_set(input, verify, folder, options)?)
                }
                false => Some(search::open(&place::local(input.path, self.global)?, self.global, verify)?),
            };
            if let Some(index) = index.as_ref().filter(|_| known.is_none()) {
                known = Some(Known::of(index, input.path)?);
            }
            opened.push(index);
        }
        let counts: Vec<NullCounts> = self.all.iter().map(|_| NullCounts::default()).collect();
        let mut sources: Vec<Option<Box<dyn Source>>> = self.all.iter().map(|_| None).collect();
        // Columns with types may say which ones texts have.
        for is_text in [false, true] {
            for (at, input) in self.all.iter().enumerate().filter(|(_, input)| input.is_table) {
                let is_typed = input.format.is_some_and(|format| format.row().types != Types::Requested);
                if is_typed == is_text {
                    continue;
                }
                let source = self.source(input, known.as_ref(), is_text, &counts[at])?;
                if known.is_none() {
                    let schema = source.schema().published();
                    known = Some(Known {
                        key_type: schema.key_type,
                        key: schema.key_meaning(),
                        value_type: schema.value_type,
                        value: schema.value_meaning(),
                        record: schema.record(),
                    });
                }
                sources[at] = Some(source);
            }
        }
        for (at, source) in sources.into_iter().enumerate() {
            if let Some(mut source) = source {
                let options = &BuildOptions { unique: None, ..options.clone() };
                let built = self.built(&self.all[at], &mut *source, &counts[at], folder, options)?;
                opened[at] = Some(built);
            }
        }
        Ok(opened.into_iter().flatten().collect())
    }

    /// Builds an index without a name of all tuples of a set.
    fn of_set(
        &self,
        input: &Input<'_>,
        verify: Verify,
        folder: &Path,
        options: &BuildOptions,
    ) -> Result<Index, Failure> {
        let set = Arc::new(search::open_set(input.path, self.global, verify)?);
        let unique = set.schema().unique.then_some(pleach_builder::Unique::Error);
        let options = &BuildOptions { unique, ..options.clone() };
        let mut source = SetSource::new(Arc::clone(&set));
        let built = self.built(input, &mut source, &NullCounts::default(), folder, options)?;
        self.left_out.borrow_mut().extend(set.left_out());
        Ok(built)
    }

    /// Returns the files of sets that were left out.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.borrow().clone()
    }

    /// Opens a table.
    fn source(
        &self,
        input: &Input<'_>,
        known: Option<&Known>,
        is_text: bool,
        counts: &NullCounts,
    ) -> Result<Box<dyn Source>, Failure> {
        let own = self.options(input, counts);
        let alike = known.map(|known| known.requested(input, own.clone()));
        // A stream cannot be opened twice.
        let is_stream = input.path.as_os_str() == "-";
        let open = |options: &InputOptions| {
            let source = pleach_input::open(&[input.path.to_owned()], options);
            source.map_err(|error| source_failure(&error))
        };
        match (&alike, known) {
            (Some(alike), _) if is_text || is_stream => open(alike),
            (Some(alike), Some(known)) => {
                let source = open(&own)?;
                let schema = source.schema();
                let is_alike = matching(&schema.key_meaning(), &known.key).is_some()
                    && (input.values != Values::Alike
                        || matching(&schema.value_meaning(), &known.value).is_some());
                if is_alike || schema.derived.is_some() { Ok(source) } else { open(alike) }
            }
            _ => open(&own),
        }
    }

    /// Returns what was requested for a table.
    fn options(&self, input: &Input<'_>, counts: &NullCounts) -> InputOptions {
        let is_sequences = input.format.is_some_and(|format| format.row().types == Types::Kmers);
        let options = InputOptions {
            format: input.format,
            key: input.key.map(str::to_owned),
            value: input.value.map(str::to_owned),
            raw_values: self.global.raw_values,
            raw: self.tables.raw.filter(|_| input.format == Some(Format::Raw)),
            kmers: self.tables.kmers.filter(|_| is_sequences),
            delimiter: self.tables.delimiter,
            no_header: self.tables.no_header,
            nulls: self.tables.nulls.clone().unwrap_or_default(),
            null_counts: counts.clone(),
            ..input.types.options()
        };
        match input.values {
            Values::Unneeded => InputOptions {
                value: None,
                value_type: Some(ValueType::None),
                field_types: Vec::new(),
                ..options
            },
            Values::Own | Values::Alike => options,
        }
    }

    /// Builds an index without a name.
    fn built(
        &self,
        input: &Input<'_>,
        source: &mut dyn Source,
        counts: &NullCounts,
        folder: &Path,
        options: &BuildOptions,
    ) -> Result<Index, Failure> {
        let started = Instant::now();
        let progress = Progress::new(self.global);
        let storage = UnnamedStorage::new(folder);
        let options = &BuildOptions { sorted: false, keep: None, ..options.clone() };
        let made = build_with_storage(source, storage.target(), options, &progress, &storage)
            .map_err(|error| progress.failed(build_failure(&error)))?;
        drop(progress);
        let shown = if input.path.as_os_str() == "-" { Path::new("standard input") } else { input.path };
        let file = storage.into_file().ok_or_else(|| {
            let message = Message::new("no index was built").at(shown.display());
            Failure::new(failure::Code::Failed, message)
        })?;
        if !self.global.quiet && !self.global.json {
            let schema = source.schema().published();
            failure::say(&format!(
                "read {}: {}, {} to {}, as a temporary index of {} bytes{}, {:.1} s",
                shown.display(),
                counted(made.tuples, "tuple"),
                schema.key_meaning(),
                printable(&schema.value_meaning().to_string()),
                grouped(made.file_bytes),
                nulls_text(counts),
                started.elapsed().as_secs_f64(),
            ));
        }
        pleach::contain_sigbus();
        Index::options().open_file(&file, shown).map_err(|error| errors::opening(&error))
    }
}

impl Known {
    fn of(index: &Index, path: &Path) -> Result<Self, Failure> {
        let meta = index.meta().map_err(errors::reading(path))?;
        Ok(Self {
            key_type: index.key_type(),
            key: Meaning::new(index.key_type(), &meta.key_logical),
            value_type: index.value_type(),
            value: Meaning::new(index.value_type(), &meta.value_logical),
            record: Record::of(index.value_type(), &meta.value_logical),
        })
    }

    /// Adds these types to what was requested, where that leaves them open.
    fn requested(&self, input: &Input<'_>, mut options: InputOptions) -> InputOptions {
        if input.types.key.is_none() && options.kmers.is_none() && options.raw.is_none() {
            match &self.key.logical {
                Logical::Hash64(_) => {
                    options.key_type = Some(KeyType::Utf8);
                    options.derived = Some(Derived::Hash);
                }
                // Another table would have other prefixes: the operator refuses them.
                Logical::Prefix(_) => {}
                logical => {
                    options.key_type = Some(self.key_type);
                    options.key_logical = Some(logical.clone());
                }
            }
        }
        if input.values == Values::Alike && input.types.value.is_none() && options.value.is_none() {
            options.value_type = Some(self.value_type);
            options.record.clone_from(&self.record);
            if options.record.is_none() {
                options.value_logical = Some(self.value.logical.clone());
            }
        }
        options
    }
}

/// Returns the format of a table: that of its first file, or else the requested one.
fn format(path: &Path, tables: &Tables) -> Result<Option<Format>, Failure> {
    let given = tables.input_format.or(tables.raw.map(|_| Format::Raw));
    let given = given.or(tables.kmers.map(|_| Format::Fasta));
    if !is_table(path, tables) {
        return Ok(None);
    }
    if path.as_os_str() == "-" {
        let message = Message::new("unknown format").at("standard input");
        return given.map(Some).ok_or_else(|| Failure::usage(message.advise("give it with --input-format")));
    }
    let files = pleach_input::expanded(&[path.to_owned()]).map_err(|error| source_failure(&error))?;
    Ok(files.first().and_then(|file| Format::from_path(file)).or(given))
}

/// Returns true if one of the options of tables was given.
fn is_told(tables: &Tables) -> bool {
    let Tables { key, value, key_type, value_type, input_format, raw, kmers, delimiter, no_header, nulls } =
        tables;
    let of_columns = key.is_some() || value.is_some() || key_type.is_some() || value_type.is_some();
    let of_format = input_format.is_some() || raw.is_some() || kmers.is_some() || delimiter.is_some();
    of_columns || of_format || *no_header || nulls.is_some()
}

/// Returns true if a path is that of a table, or of several.
fn is_table(path: &Path, tables: &Tables) -> bool {
    if place::is_url(path) || Set::is_set(path) {
        return false;
    }
    if path.as_os_str() == "-" || path.is_dir() {
        return true;
    }
    let shown = path.to_string_lossy();
    if !path.exists() && shown.contains(['*', '?', '[']) {
        return true;
    }
    let is_told = tables.input_format.is_some() || tables.raw.is_some() || tables.kmers.is_some();
    (is_told || Format::from_path(path).is_some()) && !is_index(path)
}

/// Returns true if a regular file begins as a Pleach file. Other files are not opened: a pipe might wait for its
/// writer.
pub fn is_index(path: &Path) -> bool {
    const MAGIC: &[u8] = &pleach_format::version::MAGIC;
    let mut head = Vec::new();
    path.is_file()
        && File::open(path)
            .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head))
            .is_ok_and(|_| head == MAGIC)
}
