//! Files and sets that stay open from one plan or task to the next.

use pleach::OpenOptions;
use pleach_datafusion::{Error, Source};
use std::sync::{Arc, Mutex, PoisonError};

/// Generations that stay open.
const OPEN_MAX: usize = 32;

/// The generations that a process opened last. Files of a set open when they are read, and stay open with it.
#[derive(Clone, Debug, Default)]
pub struct OpenTables {
    options: OpenOptions,
    /// The last used comes last.
    open: Arc<Mutex<Vec<Source>>>,
}

impl OpenTables {
    /// Creates an empty list; `options` say how files are opened.
    #[must_use]
    pub fn new(options: OpenOptions) -> Self {
        Self { options, open: Arc::default() }
    }

    /// Returns a generation of a file or a set, which is opened if it is not open. `identity` tells it from others
    /// that had its place: see [`Source::identity`].
    ///
    /// # Errors
    /// Those of [`Source::at_generation`]; [`Error::Usage`] if another file or set has its place by now.
    pub fn get(&self, location: &str, generation: u64, identity: [u8; 16]) -> Result<Source, Error> {
        let is_same = |source: &Source| {
            (source.location(), source.generation(), source.identity()) == (location, generation, identity)
        };
        if let Some(source) = self.used(is_same) {
            return Ok(source);
        }
        // Others may open the same meanwhile: reading a manifest twice is better than to wait.
        let source = Source::at_generation(location, generation, self.options)?;
        if !is_same(&source) {
            return Err(Error::Usage(format!("another one has its place: {location}: plan the query again")));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // What is older than its successor is not asked for much longer, and keeps the room of swept files.
        open.retain(|other| other.location() != location || other.generation() > generation);
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push(source.clone());
        Ok(source)
    }

    fn used(&self, is_same: impl Fn(&Source) -> bool) -> Option<Source> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(is_same)?;
        let source = open.remove(at);
        open.push(source.clone());
        Some(source)
    }
}
