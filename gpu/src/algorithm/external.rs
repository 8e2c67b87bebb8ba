//! Searches that other crates register.

use super::search::Search;
use crate::resident::Resident;
use crate::{GpuError, Stream};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Makes the search of a table.
type Make = fn(&Stream, &Resident, External) -> Result<Arc<dyn Search>, GpuError>;

/// A search of another crate. Two are equal if their names, forms and parameters are.
#[derive(Clone, Copy)]
pub struct External {
    /// Name, without parameters.
    pub name: &'static str,
    /// Name of the form; empty if there is only one.
    pub form: &'static str,
    /// Parameters; 0 for those that the search does not have.
    pub parameters: [u16; 3],
    make: Make,
}

impl External {
    /// Registers a search.
    ///
    /// # Safety
    /// The searches that `make` returns must queue only work that is sound for every batch and table that
    /// [`Search::search`] allows: it reads no memory but that of the batch, the table and the search, and
    /// writes no memory but the answers and the search's own.
    #[must_use]
    pub const unsafe fn new(
        name: &'static str,
        form: &'static str,
        parameters: [u16; 3],
        make: Make,
    ) -> Self {
        Self { name, form, parameters, make }
    }

    pub(crate) fn make(self, stream: &Stream, resident: &Resident) -> Result<Arc<dyn Search>, GpuError> {
        (self.make)(stream, resident, self)
    }

    fn key(&self) -> (&'static str, &'static str, [u16; 3]) {
        (self.name, self.form, self.parameters)
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}{}", self.name, self.parameters, self.form)
    }
}

impl PartialEq for External {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for External {}

impl Hash for External {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
