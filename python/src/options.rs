//! Options of builds, from a dict of Python.

use crate::errors::exception;
use crate::progress::Progress;
use pleach_builder::rebuild::{CompactOptions, Method, RebuildOptions, RollbackOptions};
use pleach_builder::source::Derived;
use pleach_builder::{BuildOptions, Layout, Overlap, Unique};
use pleach_format::logical::{Logical, field_types, part_type, type_list};
use pleach_input::{InputOptions, Interval, Nulls};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Options by their names; an option that is None was not given.
pub(crate) struct Options<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

const OVERLAPS: [(&str, Overlap); 2] = [("error", Overlap::Error), ("last", Overlap::Last)];

type Types<T> = (Option<T>, Option<Logical>);

impl<'py> Options<'_, 'py> {
    pub(crate) fn get<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        self.0.get_item(name)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> PyResult<bool> {
        Ok(self.get(name)?.unwrap_or(false))
    }

    fn threads(&self) -> PyResult<usize> {
        // A pool of this work's own: a child of `fork` has none of the threads of its parent.
        Ok(match self.get("threads")?.unwrap_or(0) {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        })
    }

    /// Returns one of some names.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> PyResult<Option<T>> {
        let Some(text) = self.get::<String>(name)? else { return Ok(None) };
        if let Some((_, choice)) = choices.iter().find(|(known, _)| *known == text) {
            return Ok(Some(*choice));
        }
        let known: Vec<String> = choices.iter().map(|(known, _)| format!("\"{known}\"")).collect();
        Err(exception("InputError", format!("{name}={text:?} is invalid: use one of {}", known.join(", "))))
    }

    fn unique(&self) -> PyResult<Option<Unique>> {
        let choices = [
            ("first", Unique::First),
            ("last", Unique::Last),
            ("error", Unique::Error),
            ("sum", Unique::Sum),
        ];
        self.choice("unique", &choices)
    }

    fn layout(&self) -> PyResult<Option<Layout>> {
        let Some(text) = self.get::<String>("layout")? else { return Ok(None) };
        let layout = text.parse::<Layout>();
        let refused = |error| exception("InputError", format!("layout={text:?} is invalid: {error}"));
        layout.map(Some).map_err(refused)
    }

    fn nulls(&self) -> PyResult<Nulls> {
        let Some(text) = self.get::<String>("nulls")? else { return Ok(Nulls::Error) };
        text.parse().map_err(|advice| exception("InputError", format!("nulls={text:?} is invalid: {advice}")))
    }

    /// Returns a type and its logical type; `words` is the type in which a logical one is stored.
    fn types<T>(
        &self,
        name: &str,
        plain: impl Fn(&str) -> Option<T>,
        words: impl Fn(&Logical) -> Option<String>,
    ) -> PyResult<Types<T>> {
        let Some(text) = self.get::<String>(name)? else { return Ok((None, None)) };
        if let Some(plain) = plain(&text) {
            return Ok((Some(plain), None));
        }
        if let Some(logical) = Logical::of_name(&text) {
            return Ok((words(&logical).and_then(|words| plain(&words)), Some(logical)));
        }
        let is_list = match name {
            "key_type" => type_list(&text).iter().all(|name| part_type(name).is_ok()),
            _ => field_types(&text).is_some(),
        };
        if is_list {
            return Ok((None, None));
        }
        let advice = "use a type such as \"u64\", \"utf8\" or \"timestamp[us]\"";
        Err(exception("InputError", format!("{name}={text:?} is invalid: {advice}")))
    }

    /// Returns who is told about the progress.
    pub(crate) fn progress(&self) -> PyResult<Progress> {
        Ok(Progress::new(self.0.get_item("progress")?.filter(|callback| !callback.is_none())))
    }

    pub(crate) fn input(&self) -> PyResult<InputOptions> {
        let is_network = self.get::<String>("key_type")?.as_deref() == Some("cidr");
        let derived = self.get::<String>("key_type")?.as_deref().and_then(Derived::from_name);
        let (key_type, key_logical) = match is_network {
            true => (Some(pleach::KeyType::U128), Some(Logical::Ip)),
            false if derived.is_some() => (Some(pleach::KeyType::Utf8), None),
            false => self.types("key_type", pleach::KeyType::from_name, Logical::key_words)?,
        };
        let names: Option<String> = self.get("key_type")?;
        let part_types =
            names.iter().flat_map(|names| type_list(names)).filter_map(|name| part_type(name).ok());
        let ends = [("inclusive", false), ("exclusive", true)];
        let is_exclusive = self.choice("interval_end", &ends)?.unwrap_or(false);
        let end: Option<String> = self.get("interval")?;
        let (value_type, value_logical) =
            self.types("value_type", pleach::ValueType::from_name, Logical::value_words)?;
        // One for each field of a record.
        let types: Option<String> = self.get("value_type")?.filter(|_| value_type.is_none());
        let (field_types, field_logicals) =
            types.and_then(|types| field_types(&types)).unwrap_or_default().into_iter().unzip();
        Ok(InputOptions {
            key: self.get("key")?,
            value: self.get("value")?,
            no_header: self.flag("no_header")?,
            op: self.get("op")?,
            nulls: self.nulls()?,
            kmers: self.get("kmers")?,
            interval: (is_network || end.is_some()).then_some(Interval { end, is_exclusive }),
            key_type,
            key_logical,
            derived,
            part_types: part_types.collect(),
            value_type,
            value_logical,
            field_types,
            field_logicals,
            ..InputOptions::default()
        })
    }

    pub(crate) fn build(&self) -> PyResult<BuildOptions> {
        let mut build = BuildOptions {
            unique: self.unique()?,
            overlap: self.choice("overlap", &OVERLAPS)?.unwrap_or_default(),
            sorted: self.flag("sorted")?,
            keep: self.get("keep")?,
            force: self.flag("force")?,
            threads: self.threads()?,
            temp_dir: self.get("temp_dir")?,
            ..BuildOptions::default()
        };
        if let Some(bytes) = self.get("memory_bytes")? {
            build.memory_bytes = bytes;
        }
        Ok(match self.layout()? {
            Some(layout) => build.with_layout(layout),
            None => build,
        })
    }

    pub(crate) fn rebuild(&self) -> PyResult<RebuildOptions> {
        let methods = Method::ALL.map(|method| (method.name(), method));
        let default = RebuildOptions::default();
        Ok(RebuildOptions {
            method: self.choice("method", &methods)?.unwrap_or_default(),
            keep: self.get("keep")?,
            salvage: self.flag("salvage")?,
            approximate: self.flag("approximate")?,
            memory_bytes: self.get("memory_bytes")?.unwrap_or(default.memory_bytes),
            threads: self.threads()?,
            temp_dir: self.get("temp_dir")?,
            ..default
        })
    }

    pub(crate) fn compact(&self) -> PyResult<CompactOptions> {
        Ok(CompactOptions {
            unique: self.unique()?,
            layout: self.layout()?,
            approximate: self.flag("approximate")?,
            salvage: self.flag("salvage")?,
            threads: self.threads()?,
            keep: self.get("keep")?,
            force: self.flag("force")?,
        })
    }

    pub(crate) fn rollback(&self) -> PyResult<RollbackOptions> {
        Ok(RollbackOptions { keep: self.get("keep")?, force: self.flag("force")? })
    }
}
