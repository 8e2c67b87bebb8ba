//! The manifest: which files a set consists of. `spec/SET.md` specifies its bytes.
//!
//! [`Manifest::parse`] is the one place that decides whether stored numbers can be relied on. It reads every
//! entry once and keeps the bytes, so that a manifest takes little more memory than its file.

mod bytes;
mod facts;
mod rules;

pub use bytes::{ENTRY_BYTES, HEAD_BYTES, MAGIC, SUM_BYTES, VERSION_MAJOR, VERSION_MINOR};
pub use facts::{
    Entry, FILES, Facts, MANIFEST_BYTES_MAX, MANIFESTS, NAME_BYTES_MAX, PARTITION_TUPLES, Schema,
};
pub use rules::{ManifestError, Rule};

use bytes::{Head, RawEntry};
use pleach_format::meta::{META_BYTES_MAX, Meta};
use pleach_format::types::KEY_BYTES_MAX;
use pleach_format::view::FILE_BYTES_MIN;
use pleach_format::{KeyType, ValueType};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::str;
use zerocopy::IntoBytes;

/// A manifest that was checked. Cloning copies its bytes.
#[derive(Clone, Debug)]
pub struct Manifest {
    facts: Facts,
    bytes: Vec<u8>,
    /// Rank of the first tuple of each file, and the number of tuples.
    ranks: Vec<u64>,
    file_bytes: u64,
    /// First eight bytes of the smallest key of each file, so that a search seldom looks at the keys themselves.
    heads: Vec<u64>,
}

impl Manifest {
    /// Makes a manifest of entries in the order of their keys.
    ///
    /// # Errors
    /// The rule that it would break, above all [`Rule::KeyOrder`].
    pub fn new(facts: &Facts, entries: &[Entry]) -> Result<Self, ManifestError> {
        Self::parse(encode(facts, entries))
    }

    /// Reads a manifest. Checks its sum and every entry; O(bytes) time, and no memory beyond the bytes and
    /// sixteen of each file.
    ///
    /// # Errors
    /// The rule that it breaks, and where.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ManifestError> {
        let head = Head::checked(&bytes)?;
        let schema = schema(head, &bytes)?;
        let facts = Facts {
            set_id: head.set_id,
            generation: head.generation.get(),
            parent: head.parent.get(),
            created_ms: head.created_ms.get(),
            schema,
        };
        let (key_type, at) = (facts.schema.key_type, head.first_entry_blob());
        let mut walk = Walk { key_type, at, ranks: Vec::new(), file_bytes: 0, last: None };
        let files = head.files.get() as usize;
        walk.ranks.reserve_exact(files + 1);
        walk.ranks.push(0);
        for number in 0..files {
            walk.check(&bytes, number)?;
        }
        if walk.at as u64 != head.blob_end() {
            return Err(Rule::EntryPlace.at(walk.at, "bytes after those of the last entry"));
        }
        if walk.tuples() != head.tuples.get() || walk.file_bytes != head.file_bytes.get() {
            return Err(Rule::Totals.at(80, "they are not the sums over the entries"));
        }
        check_names(&bytes, files)?;
        let heads = (0..files).map(|file| head_of(RawEntry::of(&bytes, file).parts(&bytes)[1])).collect();
        Ok(Self { ranks: walk.ranks, file_bytes: walk.file_bytes, heads, facts, bytes })
    }

    /// Returns the bytes of the manifest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Returns what it says of the whole set.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
    /// Returns types and options.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.facts.schema
    }
    /// Returns the generation, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.facts.generation
    }
    /// Returns the number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.ranks.len() - 1
    }
    /// Returns the number of tuples of all files.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        self.ranks.last().copied().unwrap_or_default()
    }
    /// Returns the bytes of all files.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
    /// Returns the ranks of the tuples of a file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn ranks(&self, file: usize) -> Range<u64> {
        self.ranks[file]..self.ranks[file + 1]
    }
    /// Returns the file with the tuple of a rank; `None` past the last tuple. O(log files).
    #[must_use]
    pub fn file_of_rank(&self, rank: u64) -> Option<usize> {
        (rank < self.tuples()).then(|| self.ranks.partition_point(|&first| first <= rank) - 1)
    }

    /// Returns the name of a file. O(1).
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn name(&self, file: usize) -> &str {
        str::from_utf8(self.part(file, 0)).unwrap_or_default()
    }
    /// Returns the smallest key of a file, as [`Entry::min`] has it. O(1).
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn min(&self, file: usize) -> &[u8] {
        self.part(file, 1)
    }
    /// Returns the largest key of a file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn max(&self, file: usize) -> &[u8] {
        self.part(file, 2)
    }
    /// Returns the entry of a file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn entry(&self, file: usize) -> Entry {
        let raw = RawEntry::of(&self.bytes, file);
        Entry {
            name: self.name(file).to_owned(),
            file_bytes: raw.file_bytes.get(),
            digest: raw.digest,
            file_id: raw.file_id,
            head_sum: raw.head_sum.get(),
            tuples: raw.tuples.get(),
            min: self.min(file).to_owned(),
            max: self.max(file).to_owned(),
        }
    }
    /// Returns all entries, in the order of their keys.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> + '_ {
        (0..self.files()).map(|file| self.entry(file))
    }

    /// Returns the first file whose largest key is at least `key`, the number of files if there is none: the
    /// file with the lower bound of the key. O(log files).
    #[must_use]
    pub fn file_at_or_above(&self, key: &[u8]) -> usize {
        match self.file_at_or_below(key) {
            Some(file) if key <= self.max(file) => file,
            Some(file) => file + 1,
            None => 0,
        }
    }
    /// Returns the last file whose smallest key is at most `key`: the file with its floor. O(log files).
    #[must_use]
    pub fn file_at_or_below(&self, key: &[u8]) -> Option<usize> {
        let head = head_of(key);
        let mut low = self.heads.partition_point(|&own| own < head);
        // Among those with the same head, which are few or none, all bytes decide.
        let mut high = low + self.heads[low..].partition_point(|&own| own == head);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.min(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }
    /// Returns the file that can have a key: its smallest and its largest key enclose it. O(log files).
    #[must_use]
    pub fn file_of_key(&self, key: &[u8]) -> Option<usize> {
        self.file_at_or_below(key).filter(|&file| key <= self.max(file))
    }

    fn part(&self, file: usize, part: usize) -> &[u8] {
        assert!(file < self.files(), "the set has no file {file}");
        RawEntry::of(&self.bytes, file).parts(&self.bytes)[part]
    }
}

/// Returns the first eight bytes of a key, which are in the order of keys; a shorter one is followed by zeros.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let bytes = key.len().min(8);
    head[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(head)
}

/// Returns the bytes of a manifest, whatever they say.
pub(crate) fn encode(facts: &Facts, entries: &[Entry]) -> Vec<u8> {
    let Facts { set_id, generation, parent, created_ms, schema } = facts;
    let meta = schema.meta.encode();
    let mut head = Head::new();
    (head.set_id, head.generation, head.parent) = (*set_id, (*generation).into(), (*parent).into());
    head.created_ms = (*created_ms).into();
    let sum = |of: fn(&Entry) -> u64| entries.iter().map(of).fold(0, u64::wrapping_add);
    head.tuples = sum(|entry| entry.tuples).into();
    head.file_bytes = sum(|entry| entry.file_bytes).into();
    head.files = (entries.len() as u64).into();
    head.partition_tuples = schema.partition_tuples.into();
    head.key_type = schema.key_type.code().into();
    head.value_type = schema.value_type.code().into();
    head.unique = u32::from(schema.unique).into();
    head.meta_bytes = (meta.len() as u32).into();
    head.key_bytes = (schema.key_type.bytes() as u32).into();
    head.value_bytes = (schema.value_type.bytes() as u32).into();
    let mut at = (HEAD_BYTES + entries.len() * ENTRY_BYTES + meta.len()) as u64;
    let mut table = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    let mut blob = meta;
    for entry in entries {
        let parts = [entry.name.as_bytes(), &entry.min, &entry.max];
        table.extend_from_slice(RawEntry::new(entry, at, parts.map(|part| part.len() as u32)).as_bytes());
        parts.iter().for_each(|part| blob.extend_from_slice(part));
        at += parts.iter().map(|part| part.len() as u64).sum::<u64>();
    }
    head.manifest_bytes = (at + SUM_BYTES as u64).into();
    let mut bytes = [head.as_bytes(), &table, &blob].concat();
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

/// Reads types, names and options.
fn schema(head: &Head, bytes: &[u8]) -> Result<Schema, ManifestError> {
    let key_type = KeyType::from_code(head.key_type.get(), head.key_bytes.get());
    let key_type = key_type.ok_or_else(|| Rule::KeyType.at(136, format!("code {}", head.key_type)))?;
    let value_type = ValueType::from_code(head.value_type.get(), head.value_bytes.get());
    let value_type =
        value_type.ok_or_else(|| Rule::ValueType.at(138, format!("code {}", head.value_type)))?;
    let unique = match head.unique.get() {
        0 => false,
        1 => true,
        other => return Err(Rule::Unique.at(140, format!("it is {other}"))),
    };
    if head.partition_tuples.get() == 0 {
        return Err(Rule::PartitionTuples.at(104, "it is 0"));
    }
    let (start, length) = (head.blob_start() as usize, head.meta_bytes.get() as usize);
    let meta = start.checked_add(length).and_then(|end| bytes.get(start..end));
    let meta =
        meta.filter(|meta| meta.len() as u64 <= META_BYTES_MAX && start + length <= head.blob_end() as usize);
    let meta = meta.ok_or_else(|| Rule::Meta.at(144, format!("{length} bytes")))?;
    let decoded = Meta::decode(meta);
    if decoded.encode() != meta || !decoded.approximate.is_empty() {
        return Err(Rule::Meta.at(start, "records that a writer does not make"));
    }
    let partition_tuples = head.partition_tuples.get();
    Ok(Schema { key_type, value_type, meta: decoded, unique, partition_tuples })
}

/// Checks entries one after the other.
struct Walk {
    key_type: KeyType,
    /// Place of the bytes of the next entry.
    at: usize,
    ranks: Vec<u64>,
    file_bytes: u64,
    /// Place of the largest key so far.
    last: Option<Range<usize>>,
}

impl Walk {
    fn tuples(&self) -> u64 {
        self.ranks.last().copied().unwrap_or_default()
    }

    fn check(&mut self, bytes: &[u8], number: usize) -> Result<(), ManifestError> {
        let place = HEAD_BYTES + number * ENTRY_BYTES;
        let raw = RawEntry::of(bytes, number);
        let refused = |rule: Rule, what: String| Err(rule.at(place, format!("file {number}: {what}")));
        let lengths = [raw.name_bytes, raw.min_bytes, raw.max_bytes].map(|length| length.get() as usize);
        let end = lengths.iter().try_fold(self.at, |at, &length| at.checked_add(length));
        let limit = bytes.len() - SUM_BYTES;
        let Some(end) = end.filter(|&end| raw.offset.get() == self.at as u64 && end <= limit) else {
            return refused(Rule::EntryPlace, format!("its bytes are not those at {}", self.at));
        };
        if raw.reserved != [0; 8] {
            return refused(Rule::Reserved, "reserved bytes are not zero".into());
        }
        let [name, min, max] = raw.parts(bytes);
        if let Err(problem) = check_name(name) {
            return refused(Rule::Name, problem);
        }
        for key in [min, max] {
            if let Err(problem) = check_key(self.key_type, key) {
                return refused(Rule::Key, problem);
            }
        }
        let last = self.last.clone().and_then(|last| bytes.get(last));
        if min > max {
            return refused(Rule::KeyOrder, "its smallest key is above its largest".into());
        }
        if last.is_some_and(|last| last >= min) {
            return refused(Rule::KeyOrder, "its smallest key is not above the file before it".into());
        }
        let Some(tuples) = self.tuples().checked_add(raw.tuples.get()).filter(|_| raw.tuples.get() > 0)
        else {
            return refused(Rule::Tuples, format!("{} tuples", raw.tuples));
        };
        let file_bytes = raw.file_bytes.get();
        let whole = self.file_bytes.checked_add(file_bytes);
        let Some(whole) = whole.filter(|_| file_bytes >= FILE_BYTES_MIN && file_bytes.is_multiple_of(4096))
        else {
            return refused(Rule::FileBytes, format!("{file_bytes} bytes"));
        };
        (self.at, self.file_bytes, self.last) = (end, whole, Some(end - max.len()..end));
        self.ranks.push(tuples);
        Ok(())
    }
}

/// Checks the name of a file: `files/` and a name without folders, so that no name leads out of the set.
pub(crate) fn check_name(name: &[u8]) -> Result<(), String> {
    let own = name.strip_prefix(FILES.as_bytes());
    let is_sound = |own: &&[u8]| {
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        !own.is_empty() && own[0] != b'.' && own.iter().all(known)
    };
    match own.filter(|own| name.len() <= NAME_BYTES_MAX && is_sound(own)) {
        Some(_) => Ok(()),
        None => {
            Err(format!("the name '{}'", String::from_utf8_lossy(&name[..name.len().min(80)]).escape_debug()))
        }
    }
}

/// Returns the number of big-endian bytes, at most 16.
pub(crate) fn word_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |word, &byte| word << 8 | u128::from(byte))
}

fn check_key(key_type: KeyType, key: &[u8]) -> Result<(), String> {
    let fits = match key_type {
        KeyType::Bytes => key.len() <= KEY_BYTES_MAX,
        KeyType::Utf8 => key.len() <= KEY_BYTES_MAX && str::from_utf8(key).is_ok(),
        KeyType::Fixed(bytes) => key.len() == usize::from(bytes),
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 | KeyType::U128 | KeyType::F64 => {
            key.len() == key_type.bytes() && key_type.has_word(word_of(key))
        }
    };
    if fits { Ok(()) } else { Err(format!("a key of {} bytes is no {key_type} key", key.len())) }
}

/// Checks that no two files have the same name, with four bytes of memory a file.
fn check_names(bytes: &[u8], files: usize) -> Result<(), ManifestError> {
    let name = |number: &u32| RawEntry::of(bytes, *number as usize).parts(bytes)[0];
    let mut numbers: Vec<u32> = (0..files as u32).collect();
    numbers.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    match numbers.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])) {
        None => Ok(()),
        Some(pair) => {
            let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            Err(Rule::NameTwice.at(HEAD_BYTES, format!("files {first} and {second}")))
        }
    }
}

#[cfg(test)]
mod tests;
