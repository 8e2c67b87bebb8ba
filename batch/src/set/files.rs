//! Which file of a set answers for a key.

use pleach::Key;
use pleach::{KeyType, Word};
use pleach_set::{Manifest, Set};
use std::cmp::Ordering;
use std::sync::Arc;

/// A set, and the borders of its files in the form in which keys are compared with them.
#[derive(Debug)]
pub(crate) struct Files {
    set: Arc<Set>,
    /// Smallest and largest words of the files; empty if keys are byte strings, which the manifest has.
    words: Vec<(u128, u128)>,
}

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The tuple with a key.
    Find,
    /// The interval that holds a key.
    Hold,
    /// The first tuple whose key is at least a key.
    Lower,
    /// The first tuple whose key is above a key.
    Upper,
    /// The tuple whose key is nearest to a key.
    Nearest,
}

/// What becomes of the keys of a file that cannot be opened, if the set answers without such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// They are not found.
    NotFound,
    /// Their file is an error: ranks need it.
    Refused,
}

/// Where the answer about a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// The file with this number has to be asked.
    File(usize),
    /// The manifest says it: there is no such tuple, and this is its rank in the set.
    Rank(u64),
}

impl Files {
    /// Reads the borders. O(files); no file is opened.
    pub(crate) fn new(set: Arc<Set>) -> Self {
        let manifest = set.manifest();
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u128::from(byte));
        let is_bytes = set.key_type().is_bytes();
        let files = if is_bytes { 0 } else { manifest.files() };
        let words = (0..files).map(|file| (word(manifest.min(file)), word(manifest.max(file)))).collect();
        Self { set, words }
    }

    pub(crate) fn set(&self) -> &Arc<Set> {
        &self.set
    }

    fn manifest(&self) -> &Manifest {
        self.set.manifest()
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.manifest().files()
    }

    /// Returns the rank of the first tuple of a file; the number of tuples past the last file.
    pub(crate) fn start(&self, file: usize) -> u64 {
        if file < self.len() { self.manifest().ranks(file).start } else { self.manifest().tuples() }
    }

    /// Returns the file that answers for a key that is a number. `hint` is that of the key before it. O(log files).
    pub(crate) fn home_of<K: Key>(&self, question: Question, key: K, hint: &mut usize) -> Home {
        let word = key.encode().to_u128();
        let is_hinted = self.words.get(*hint).is_some_and(|&(low, high)| (low..=high).contains(&word));
        if !is_hinted {
            *hint = self.words.partition_point(|&(_, high)| high < word);
        }
        let low = self.words.get(*hint).map(|(low, _)| low.cmp(&word));
        self.home(question, *hint, low, || {
            let (below, above) = (self.words[*hint - 1].1, self.words[*hint].0);
            is_nearer::<K>(word, below, above)
        })
    }

    /// Returns the file that answers for a key that is a byte string. O(log files).
    pub(crate) fn home_of_bytes(&self, question: Question, key: &[u8]) -> Home {
        let manifest = self.manifest();
        let mut file = manifest.file_at_or_above(key);
        if question == Question::Upper && file < manifest.files() && manifest.max(file) == key {
            file += 1;
        }
        let low = (file < manifest.files()).then(|| manifest.min(file).cmp(key));
        // Byte strings have no distance: nobody asks for the nearest.
        self.home(question, file, low, || false)
    }

    /// Returns the file that answers for a rank.
    pub(crate) fn home_of_rank(&self, rank: u64) -> Option<usize> {
        self.manifest().file_of_rank(rank)
    }

    /// Decides by the first file whose largest key is not below the key, and how its smallest key compares with it.
    fn home(
        &self,
        question: Question,
        file: usize,
        low: Option<Ordering>,
        is_nearer: impl FnOnce() -> bool,
    ) -> Home {
        let encloses = low.is_some_and(Ordering::is_le);
        match question {
            // A file whose smallest key is the bound has it as its first tuple.
            Question::Lower if low == Some(Ordering::Equal) => Home::Rank(self.start(file)),
            _ if encloses => Home::File(file),
            Question::Find | Question::Lower | Question::Upper => Home::Rank(self.start(file)),
            // The last interval of a file may reach beyond its largest key.
            Question::Hold => file.checked_sub(1).map_or(Home::Rank(u64::MAX), Home::File),
            Question::Nearest => {
                let is_above = file == 0 || file < self.len() && is_nearer();
                Home::Rank(if is_above { self.start(file) } else { self.start(file) - 1 })
            }
        }
    }
}

/// Returns true if a word is nearer to the one above it than to the one below it.
fn is_nearer<K: Key>(word: u128, below: u128, above: u128) -> bool {
    if K::TYPE != KeyType::F64 {
        return above - word < word - below;
    }
    let float = |word: u128| f64::decode(word as u64);
    float(above) - float(word) < float(word) - float(below)
}
