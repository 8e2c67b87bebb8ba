//! Publishing: one new manifest, which exactly one committer can create.

use crate::error::{Result, SetError};
use crate::generations::{HINT, find, manifest, manifest_name};
use crate::keys::key_datum;
use crate::manifest::{Entry, Facts, Manifest, Schema, check_name};
use crate::store::{Content, Store};
use crate::write::{Written, random};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Age at which files that no manifest names may be deleted, unless a caller says otherwise.
pub const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes the next generation of a set from files of the current one and from new ones.
///
/// ```
/// use pleach_set::{BuildOptions, Builder, Committer, Folder, Set, Writer};
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// # let (low, high) = (folder.path().join("low.pleach"), folder.path().join("high.pleach"));
/// # let place = folder.path().join("set");
/// Builder::new().build(&low, (0..100u64).map(|key| (key, key)))?;
/// Builder::new().build(&high, (100..200u64).map(|key| (key, key)))?;
/// let store = Arc::new(Folder::create(&place)?);
/// let writer = Writer::new(store.clone());
/// let mut committer = Committer::begin(store)?;
/// committer.add(&writer.add(&high)?)?;
/// committer.add(&writer.add(&low)?)?;
/// assert_eq!(committer.publish()?.generation(), 1);
/// assert_eq!(Set::open(&place)?.len(), 200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Committer {
    store: Arc<dyn Store>,
    grace: Duration,
    current: Option<Manifest>,
    /// Generation of the new manifest.
    next: u64,
    schema: Option<Schema>,
    partition_tuples: Option<u64>,
    entries: Vec<Entry>,
    /// Names of files that the current manifest does not have.
    fresh: HashSet<String>,
}

impl Committer {
    /// Begins with no files, whatever the current generation has.
    ///
    /// # Errors
    /// [`SetError::Store`], and [`SetError::Manifest`] if the current manifest is refused.
    pub fn begin(store: Arc<dyn Store>) -> Result<Self> {
        let newest = find(&*store)?;
        let current = newest.map(|generation| manifest(&*store, generation)).transpose()?;
        Ok(Self::over(store, newest.unwrap_or_default(), current))
    }

    /// Begins on top of a current generation whose manifest may be damaged.
    pub(crate) fn over(store: Arc<dyn Store>, newest: u64, current: Option<Manifest>) -> Self {
        Self {
            store,
            grace: GRACE,
            current,
            next: newest.saturating_add(1),
            schema: None,
            partition_tuples: None,
            entries: Vec::new(),
            fresh: HashSet::new(),
        }
    }

    /// Sets the age at which a sweep may delete files that no manifest names. A commit refuses new files that
    /// are older than half of it.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the number of tuples of a file that later builds aim at.
    #[must_use]
    pub fn partition_tuples(mut self, tuples: u64) -> Self {
        self.partition_tuples = Some(tuples);
        self
    }

    /// Returns the generation that the new one replaces, if there is one.
    #[must_use]
    pub fn current(&self) -> Option<&Manifest> {
        self.current.as_ref()
    }

    /// Keeps those files of the current generation for which `keep` returns true.
    ///
    /// # Errors
    /// [`SetError::Types`] if files of other types were added before.
    pub fn keep(&mut self, keep: impl Fn(usize, &Entry) -> bool) -> Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        let (schema, mut entries) = (current.schema().clone(), Vec::new());
        entries
            .extend(current.entries().enumerate().filter(|(at, entry)| keep(*at, entry)).map(|(_, it)| it));
        self.take_schema(&schema, "the current generation")?;
        self.entries.extend(entries);
        Ok(())
    }

    /// Adds files.
    ///
    /// # Errors
    /// [`SetError::Types`] if they are not of the types of the others.
    pub fn add(&mut self, written: &Written) -> Result<()> {
        let name = written.entries.first().map_or("a list of no files", |entry| &entry.name);
        self.take_schema(&written.schema, name)?;
        for entry in &written.entries {
            if let Err(what) = check_name(entry.name.as_bytes()) {
                return Err(SetError::Usage(format!(
                    "not the name of a file of a set: {what}: write files anew"
                )));
            }
            self.fresh.insert(entry.name.clone());
            self.entries.push(entry.clone());
        }
        Ok(())
    }

    /// Adds files that the caller has just written: they become young first, since that may have taken long.
    ///
    /// # Errors
    /// Those of [`Committer::add`]; [`SetError::Store`].
    pub fn add_own(&mut self, written: &Written) -> Result<()> {
        written.entries.iter().try_for_each(|entry| self.store.renew(&entry.name))?;
        self.add(written)
    }

    fn take_schema(&mut self, schema: &Schema, name: &str) -> Result<()> {
        match &self.schema {
            None => self.schema = Some(schema.clone()),
            Some(own) => {
                own.fits(schema).map_err(|what| SetError::Types { name: name.to_owned(), what })?;
            }
        }
        Ok(())
    }

    /// Publishes the next generation. Of two committers one wins.
    ///
    /// # Errors
    /// [`SetError::Lost`] if another committer was first; [`SetError::Overlap`]; [`SetError::Missing`],
    /// [`SetError::Differs`] or [`SetError::Stale`] if a file is not there as its entry says, or too old;
    /// [`SetError::Usage`] if there is nothing to publish. The set is then as it was.
    pub fn publish(mut self) -> Result<Manifest> {
        let Some(mut schema) = self.schema.take() else {
            return Err(SetError::Usage("nothing to publish: no files: add some".into()));
        };
        if let Some(tuples) = self.partition_tuples {
            schema.partition_tuples = tuples;
        }
        self.entries.sort_by(|a, b| (&a.min, &a.name).cmp(&(&b.min, &b.name)));
        check_order(&self.entries, &schema)?;
        self.check_files()?;
        let current = self.current.as_ref();
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let facts = Facts {
            set_id: current.map_or_else(random, |current| Ok(current.facts().set_id))?,
            generation: self.next,
            parent: self.next - 1,
            created_ms: created.as_millis() as u64,
            schema,
        };
        let refused = |source| SetError::Manifest { name: manifest_name(facts.generation), source };
        let manifest = Manifest::new(&facts, &self.entries).map_err(refused)?;
        let name = manifest_name(self.next);
        match self.store.create_new(&name, Content::Bytes(manifest.as_bytes())) {
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                return Err(SetError::Lost { generation: self.next });
            }
            created => created?,
        }
        // Readers find the generation without it.
        let _ = self.store.put_hint(HINT, format!("{}\n", self.next).as_bytes());
        Ok(manifest)
    }

    /// Checks that all files are there, and that no sweep can have begun to delete new ones.
    fn check_files(&self) -> Result<()> {
        for entry in &self.entries {
            let shown = || format!("{}/{}", self.store.place(), entry.name);
            let found = match self.store.length(&entry.name) {
                Err(error) if error.is_missing() => return Err(SetError::Missing { name: shown() }),
                found => found?,
            };
            if found != entry.file_bytes {
                let what = format!("it has {found} bytes, not {}", entry.file_bytes);
                return Err(SetError::Differs { name: shown(), what });
            }
            if self.fresh.contains(&entry.name) {
                let (age, most) = (self.store.age(&entry.name)?, self.grace / 2);
                if age > most {
                    return Err(SetError::Stale { name: shown(), age, most });
                }
            }
        }
        Ok(())
    }
}

/// Checks that no two files have keys in common.
fn check_order(entries: &[Entry], schema: &Schema) -> Result<()> {
    match entries.windows(2).find(|pair| pair[0].max >= pair[1].min) {
        None => Ok(()),
        Some(pair) => {
            let shown = |entry: &Entry| {
                let [min, max] = [&entry.min, &entry.max].map(|key| key_datum(schema.key_type, key));
                format!("{} ({min:?} to {max:?})", entry.name)
            };
            Err(SetError::Overlap { first: shown(&pair[0]), second: shown(&pair[1]) })
        }
    }
}
