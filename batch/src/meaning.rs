//! What keys of an array mean, and what those of the file do.

use crate::error::{BatchError, Result};
use crate::parsed::is_number;
use crate::table::Table;
use pleach_format::logical::{Logical, Meaning, Ratio, ratio};

impl Table {
    /// Checks that numbers without a meaning can be keys of the file; `given` is their type, for the message.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if the keys of the file are times or decimals.
    pub fn check_plain(&self, given: &str) -> Result<()> {
        match self.key_meaning() {
            Logical::Plain | Logical::Unknown(_) => Ok(()),
            meaning if meaning.form().is_some_and(is_number) => Ok(()),
            meaning => Err(BatchError::Refused(format!(
                "types differ: the keys are {given}, but the file has {meaning} keys: give such keys"
            ))),
        }
    }

    /// Returns how keys of this meaning become keys of the file; `None` if they are such keys.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if they mean something else.
    pub fn ratio_of(&self, own: &Logical) -> Result<Option<Ratio>> {
        let found = ratio(own, self.key_meaning());
        found.map(|found| Some(found).filter(|&found| found != Ratio::ONE)).ok_or_else(|| {
            let held = Meaning { words: self.key_type().to_string(), logical: self.key_meaning().clone() };
            BatchError::Refused(format!(
                "types differ: the keys are {own}, but the file has {held} keys: convert them"
            ))
        })
    }
}
