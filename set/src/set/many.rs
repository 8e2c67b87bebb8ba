//! Batches: keys are grouped by file, and answers come in the order of the keys.

use super::Set;
use crate::error::Result;
use crate::keys::key_bytes;
use pleach::Datum;
use std::borrow::Borrow;
use std::collections::BTreeMap;

impl Set {
    /// Groups keys by the file that can have them: the numbers of the keys, in their order, for each file that is
    /// needed. O(keys x (log files + log keys)); no file is opened.
    ///
    /// # Errors
    /// [`SetError::Key`](crate::SetError::Key) if a key is of another type.
    pub fn group(&self, keys: &[Datum<'_>]) -> Result<BTreeMap<usize, Vec<usize>>> {
        self.group_by(keys, |key| self.manifest.file_of_key(key))
    }

    /// Does the same with the files that `file_of` chooses for keys, which it gets as [`Entry::min`] has them.
    ///
    /// # Errors
    /// Those of [`Set::group`].
    ///
    /// [`Entry::min`]: crate::Entry::min
    pub fn group_by<'k>(
        &self,
        keys: impl IntoIterator<Item = impl Borrow<Datum<'k>>>,
        file_of: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<BTreeMap<usize, Vec<usize>>> {
        let mut places = Vec::new();
        for (at, key) in keys.into_iter().enumerate() {
            if let Some(file) = file_of(&key_bytes(self.key_type(), key.borrow())?) {
                places.push((file, at));
            }
        }
        places.sort_unstable();
        let groups = places.chunk_by(|one, other| one.0 == other.0);
        Ok(groups.map(|group| (group[0].0, group.iter().map(|&(_, at)| at).collect())).collect())
    }

    /// Looks up many keys, whose cache misses overlap: one batch in each file that can have some of them.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn get_many(&self, keys: &[Datum<'_>]) -> Result<Vec<Option<Datum<'static>>>> {
        let mut values = vec![None; keys.len()];
        for (file, numbers) in self.group(keys)? {
            let Some(map) = self.file_or_none(file)? else { continue };
            let own: Vec<Datum<'_>> = numbers.iter().map(|&at| keys[at].clone()).collect();
            let found = map.get_many(&own).map_err(|error| self.failed(file, error))?;
            for (at, value) in numbers.into_iter().zip(found) {
                values[at] = value.map(Datum::into_owned);
            }
        }
        Ok(values)
    }

    /// Returns the rank of the first tuple with each of many keys.
    ///
    /// # Errors
    /// Those of [`Set::rank`].
    pub fn rank_many(&self, keys: &[Datum<'_>]) -> Result<Vec<Option<u64>>> {
        keys.iter().map(|key| self.rank(key)).collect()
    }
}
