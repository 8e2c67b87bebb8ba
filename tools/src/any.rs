//! Searches files with byte strings, as keys or as values, or with records: types that are known only at run
//! time.
//!
//! Everything works by rank: keys are searched as batches, and the tuple at a rank is read from the file when
//! it is printed.

use crate::errors;
use crate::failure::Failure;
use crate::keys::{KeyLines, not_a_key};
use crate::meant::Meant;
use crate::message::Message;
use crate::parse::{FromText, byte_key};
use crate::render::json::approximate;
use crate::render::text::{put_datum_json, put_meant, put_meant_json, unescaped};
use pleach::{Datum, Index, Key, KeyType, Near, ReadError, Record, Tuples, Typed, Value, Word};
use pleach_format::logical::{Element, Form, TextError, with_article};
use pleach_gpu::{Algorithm, GpuError, GpuTable};
use pleach_set::{Set, SetError};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;

/// A key to look for.
#[derive(Clone, Debug)]
pub enum AnyKey {
    /// A byte string.
    Bytes(Vec<u8>),
    /// The word of a number.
    Word(u128),
}

/// An open file.
#[derive(Clone, Copy)]
pub struct Any<'a> {
    index: &'a Index,
    path: &'a Path,
    record: Option<&'a Record>,
    meant: &'a Meant,
    /// The set, if it is not a file; `index` then has its types and no tuples.
    set: Option<&'a Set>,
}

fn word_of<K: Key + FromText, V: Value>(_: &Typed<'_, K, V>, text: &[u8]) -> Result<u128, Message> {
    K::from_text(text).map(|key| key.encode().to_u128()).ok_or_else(|| not_a_key::<K>(text))
}

fn key_of<K: Key>(word: u128) -> K {
    K::decode(K::Word::from_u128(word))
}

impl<'a> Any<'a> {
    /// Returns true if a file needs these searches.
    pub fn is_needed(index: &Index, record: Option<&Record>, meant: &Meant) -> bool {
        index.key_type().is_bytes() || index.value_type().is_bytes() || record.is_some() || meant.is_any()
    }

    pub fn new(index: &'a Index, path: &'a Path, record: Option<&'a Record>, meant: &'a Meant) -> Self {
        Self { index, path, record, meant, set: None }
    }

    /// Searches a set, if there is one, whose types the index has.
    pub fn of_set(self, set: Option<&'a Arc<Set>>) -> Self {
        Self { set: set.map(|set| &**set), ..self }
    }

    /// Returns the format in which keys are printed.
    pub fn key_form(&self) -> Option<Form> {
        self.meant.key_form()
    }

    /// Writes one tuple on one line; see [`put_line`].
    pub fn put(&self, key: &Datum<'_>, value: &Datum<'_>, json: bool, out: &mut Vec<u8>) {
        match self.record {
            Some(record) => put_record(key, value, record, self.meant, json, out),
            None => put_line((key, self.key_form()), (value, self.meant.value), "value", json, out),
        }
        if let (Some(found), true) = (self.meant.approximate, json) {
            // Behind the other members of the object.
            out.truncate(out.len() - "}\n".len());
            out.extend_from_slice(format!(",\"approximate\":{}}}\n", approximate(Some(found))).as_bytes());
        }
    }

    /// Parses a key from text; the message says why the text is not a key, and lacks the place.
    pub fn parse(&self, text: &[u8]) -> Result<AnyKey, Message> {
        let key_type = self.index.key_type();
        if let Some((form, name)) = &self.meant.key {
            return meant_key(*form, key_type, &plain(*form, text)).map_err(|error| {
                let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
                let message = Message::new(format!("'{shown}' is not {} key", with_article(name)));
                message.because(Message::of(&form.advice(error)))
            });
        }
        if !key_type.is_bytes() {
            let word = pleach::with_typed!(self.index, |view| word_of(&view, text));
            return word.map_err(|error| Message::of(&error))?.map(AnyKey::Word);
        }
        byte_key(key_type, text).map(AnyKey::Bytes)
    }

    fn failed(&self, error: ReadError) -> Failure {
        errors::reading(self.path)(error)
    }

    /// Returns the rank of the first tuple whose key is at least `key`.
    pub fn lower_bound(&self, key: &AnyKey) -> Result<u64, Failure> {
        if let Some(set) = self.set {
            let ranks = set.rank_range((Bound::Included(self.shown(key)), Bound::Unbounded));
            return Ok(ranks.map_err(|error| errors::set_failure(&error))?.start);
        }
        match key {
            AnyKey::Bytes(key) => self.strings()?.lower_bound(key),
            AnyKey::Word(word) => {
                self.numbers(pleach::with_typed!(self.index, |view| view.lower_bound(key_of(*word))))?
            }
        }
        .map_err(|error| self.failed(error))
    }

    /// Returns the rank of the first tuple whose key is above `key`.
    pub fn upper_bound(&self, key: &AnyKey) -> Result<u64, Failure> {
        if let Some(set) = self.set {
            let ranks = set.rank_range((Bound::Excluded(self.shown(key)), Bound::Unbounded));
            return Ok(ranks.map_err(|error| errors::set_failure(&error))?.start);
        }
        match key {
            AnyKey::Bytes(key) => self.strings()?.upper_bound(key),
            AnyKey::Word(word) => {
                self.numbers(pleach::with_typed!(self.index, |view| view.upper_bound(key_of(*word))))?
            }
        }
        .map_err(|error| self.failed(error))
    }

    /// Opens a list of keys.
    pub fn lines(&self, path: &Path) -> Result<KeyLines, Failure> {
        KeyLines::open(path, self.index)
    }

    /// Returns the ranks of the tuples whose keys begin with a prefix, or lie in a network of addresses. A
    /// prefix of texts is written as it is, one of bytes in hexadecimal digits, possibly an odd number of them.
    /// `bytesN` keys may hold text; the prefix is then tried as text, if no key begins with the digits.
    pub fn prefix(&self, prefix: &str) -> Result<Range<u64>, Failure> {
        let key_type = self.index.key_type();
        if let Some((form, name)) = &self.meant.key
            && let Some(found) = form.prefix(&plain(*form, prefix.as_bytes()))
        {
            let (low, high) = found.map_err(|error| {
                let message = Message::new(format!("no {name} key begins with '{prefix}'"));
                Failure::usage(message.because(Message::of(&form.advice(error))))
            })?;
            let key = |number: u128| match key_type.is_bytes() {
                true => AnyKey::Bytes(number.to_be_bytes().to_vec()),
                false => AnyKey::Word(number),
            };
            return Ok(self.lower_bound(&key(low))?..self.upper_bound(&key(high))?);
        }
        if let Some((form, name)) = &self.meant.key
            && let Some(found) = form.byte_prefix(&plain(*form, prefix.as_bytes()))
        {
            let prefix = found.map_err(|error| {
                let message = Message::new(format!("no {name} key begins with '{prefix}'"));
                Failure::usage(message.because(Message::of(&form.advice(error))))
            })?;
            return self.prefix_ranks(&prefix);
        }
        let ranks = |prefix: &[u8]| self.prefix_ranks(prefix);
        let (digits, may_be_text) = match key_type {
            KeyType::Utf8 => return ranks(&byte_key(key_type, prefix.as_bytes()).map_err(Failure::usage)?),
            KeyType::Fixed(_) | KeyType::Bytes => match prefix.strip_prefix("\\x") {
                Some(digits) => (digits, false),
                None => (prefix, key_type != KeyType::Bytes && self.meant.key.is_none()),
            },
            KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 | KeyType::U128 | KeyType::F64 => {
                let message = Message::new("--prefix is for byte keys, addresses, digits and DNA")
                    .more(format!("the keys are {key_type}"));
                return Err(Failure::usage(message.advise("give LO and HI for numbers")));
            }
        };
        let even = digits.len() / 2 * 2;
        let last = digits.get(even..).unwrap_or_default();
        let low = format!(
            "{}{last}{}",
            digits.get(..even).unwrap_or_default(),
            if last.is_empty() { "" } else { "0" }
        );
        let low = match byte_key(KeyType::Bytes, low.as_bytes()) {
            Ok(low) => low,
            Err(_) if may_be_text => return ranks(prefix.as_bytes()),
            Err(problem) => return Err(Failure::usage(problem)),
        };
        let mut found = ranks(&low)?;
        if let Some((&last, bytes)) = low.split_last().filter(|_| !last.is_empty()) {
            // The sixteen values of the byte that begins with the odd digit.
            found.end = ranks(&[bytes, &[last | 0x0f]].concat())?.end;
        }
        if may_be_text && found.is_empty() { ranks(prefix.as_bytes()) } else { Ok(found) }
    }

    /// Returns the ranks of the byte keys that begin with these bytes.
    fn prefix_ranks(&self, prefix: &[u8]) -> Result<Range<u64>, Failure> {
        let Some(set) = self.set else {
            return self.strings()?.prefix_ranks(prefix).map_err(|error| self.failed(error));
        };
        let key = |bytes: Vec<u8>| Datum::of_bytes(self.index.key_type(), bytes);
        // The keys up to the next prefix of this length; behind 255, 255, ... there is none.
        let kept = prefix.iter().rposition(|&byte| byte != u8::MAX).map_or(0, |last| last + 1);
        let mut next = prefix[..kept].to_vec();
        let end = match next.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(key(next))
            }
            None => Bound::Unbounded,
        };
        let ranks = set.rank_range((Bound::Included(key(prefix.to_vec())), end));
        ranks.map_err(|error| errors::set_failure(&error))
    }

    /// Asks files of the set: those that `file_of` chooses for the keys, each for its keys by `ask`.
    fn ask_files(
        &self,
        set: &Set,
        keys: &[AnyKey],
        file_of: impl Fn(&[u8]) -> Option<usize>,
        ask: impl Fn(&Any<'_>, &[AnyKey]) -> Result<Vec<Option<u64>>, Failure>,
    ) -> Result<Vec<Option<u64>>, Failure> {
        let failed = |error: SetError| errors::set_failure(&error);
        let groups = set.group_by(keys.iter().map(|key| self.shown(key)), file_of).map_err(failed)?;
        let mut ranks = vec![None; keys.len()];
        for (file, numbers) in groups {
            let Some(map) = set.file_or_none(file).map_err(failed)? else { continue };
            let index = map.index();
            let own: Vec<AnyKey> = numbers.iter().map(|&at| keys[at].clone()).collect();
            let any = Any { index, path: index.path(), record: None, meant: self.meant, set: None };
            let first = set.manifest().ranks(file).start;
            for (at, rank) in numbers.into_iter().zip(ask(&any, &own)?) {
                ranks[at] = rank.map(|rank| first + rank);
            }
        }
        Ok(ranks)
    }

    /// Returns the ranks of the tuples nearest to keys. A key between two files is as far from the last key of the
    /// one as from the first key of the other, or nearer to one of them.
    fn nearest_of_set(&self, set: &Set, keys: &[AnyKey]) -> Result<Vec<Option<u64>>, Failure> {
        let manifest = set.manifest();
        let between = |bytes: &[u8]| {
            let below = manifest.file_at_or_below(bytes);
            let is_between = below.is_some_and(|file| bytes > manifest.max(file));
            below.filter(|&file| is_between && file + 1 < manifest.files())
        };
        let file_of = |bytes: &[u8]| match (manifest.file_at_or_below(bytes), between(bytes)) {
            (_, Some(file)) => {
                let [query, below, above] = [bytes, manifest.max(file), manifest.min(file + 1)]
                    .map(|key| pleach_set::key_datum(self.index.key_type(), key));
                Some(file + usize::from(is_nearer(&query, &below, &above)))
            }
            (None, None) => (manifest.files() > 0).then_some(0),
            (below, None) => below,
        };
        self.ask_files(set, keys, file_of, |any, keys| any.near(Near::Nearest, keys))
    }

    /// Returns the ranks of the keys that begin with the parts of a text; `None` if keys are not composite, or if the
    /// text has all parts.
    pub fn first_parts(&self, text: &str) -> Result<Option<Range<u64>>, Failure> {
        let Some(form @ Form::Composite(parts)) = self.key_form() else { return Ok(None) };
        match parts.elements(&plain(form, text.as_bytes())) {
            Ok(elements) if elements.len() < parts.all().len() => self.prefix(text).map(Some),
            _ => Ok(None),
        }
    }

    fn numbers<T>(&self, found: Result<T, pleach::TypeError>) -> Result<T, Failure> {
        found.map_err(errors::typing(self.path))
    }

    fn strings(&self) -> Result<pleach::Strings<'a, ()>, Failure> {
        self.index.strings().map_err(errors::typing(self.path))
    }

    /// Returns for each key the rank of its first tuple, if there is one.
    pub fn ranks(&self, keys: &[AnyKey]) -> Result<Vec<Option<u64>>, Failure> {
        if let Some(set) = self.set {
            let file_of = |bytes: &[u8]| set.manifest().file_of_key(bytes);
            return self.ask_files(set, keys, file_of, |any, keys| any.ranks(keys));
        }
        let mut ranks = vec![0; keys.len()];
        let mut present = vec![0; keys.len().div_ceil(64)];
        let found = if self.index.key_type().is_bytes() {
            let queries = bytes_of(keys);
            let view = self.strings()?;
            view.contains_batch(&queries, &mut present)
                .and_then(|_| view.lower_bound_batch(&queries, &mut ranks))
        } else {
            let words = words_of(keys);
            self.numbers(pleach::with_typed!(self.index, |view| ranks_of(
                &view,
                &words,
                &mut ranks,
                &mut present
            )))?
        };
        found.map_err(|error| self.failed(error))?;
        let there = |at: usize| present[at / 64] >> (at % 64) & 1 == 1;
        Ok(ranks.into_iter().enumerate().map(|(at, rank)| there(at).then_some(rank)).collect())
    }

    /// Returns for each key the rank of the interval that holds it, if there is one.
    pub fn holding(&self, keys: &[AnyKey]) -> Result<Vec<Option<u64>>, Failure> {
        if let Some(set) = self.set {
            let file_of = |bytes: &[u8]| set.manifest().file_at_or_below(bytes);
            return self.ask_files(set, keys, file_of, |any, keys| any.holding(keys));
        }
        let (mut ranks, words) = (vec![0; keys.len()], words_of(keys));
        let found =
            self.numbers(pleach::with_typed!(self.index, |view| holding(&view, &words, &mut ranks)))?;
        found.map_err(|error| self.failed(error))?;
        Ok(ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank)).collect())
    }

    /// Returns for each key the rank of the tuple near it, if there is one.
    pub fn near(&self, near: Near, keys: &[AnyKey]) -> Result<Vec<Option<u64>>, Failure> {
        if let Some(set) = self.set {
            let manifest = set.manifest();
            let above =
                |bytes: &[u8]| Some(manifest.file_at_or_above(bytes)).filter(|&file| file < manifest.files());
            let ask = |any: &Any<'_>, keys: &[AnyKey]| any.near(near, keys);
            return match near {
                Near::Floor => self.ask_files(set, keys, |bytes| manifest.file_at_or_below(bytes), ask),
                Near::Ceiling => self.ask_files(set, keys, above, ask),
                Near::Nearest => self.nearest_of_set(set, keys),
            };
        }
        let mut ranks = vec![0; keys.len()];
        let found = if self.index.key_type().is_bytes() {
            self.strings()?.near_batch(near, &bytes_of(keys), &mut ranks)
        } else {
            let words = words_of(keys);
            self.numbers(pleach::with_typed!(self.index, |view| near_of(&view, near, &words, &mut ranks)))?
        };
        found.map_err(|error| self.failed(error))?;
        Ok(ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank)).collect())
    }

    /// Does the same as [`Any::near`] on a GPU.
    pub fn near_on(
        &self,
        table: &GpuTable<'_>,
        by: Algorithm,
        near: Near,
        keys: &[AnyKey],
    ) -> Result<Vec<Option<u64>>, GpuError> {
        let mut ranks = vec![0; keys.len()];
        if self.index.key_type().is_bytes() {
            table.near_strings_by(by, near, &bytes_of(keys), &mut ranks)?;
        } else {
            let (words, on) = (words_of(keys), (table, by));
            pleach::with_typed!(self.index, |view| tuples_on(&view, on, Some(near), &words, &mut ranks))??;
        }
        Ok(ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank)).collect())
    }

    /// Does the same as [`Any::holding`] on a GPU.
    pub fn holding_on(
        &self,
        table: &GpuTable<'_>,
        by: Algorithm,
        keys: &[AnyKey],
    ) -> Result<Vec<Option<u64>>, GpuError> {
        let (mut ranks, words) = (vec![0; keys.len()], words_of(keys));
        pleach::with_typed!(self.index, |view| tuples_on(&view, (table, by), None, &words, &mut ranks))??;
        Ok(ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank)).collect())
    }

    /// Writes a query and the tuple near it.
    pub fn put_near(
        &self,
        query: &Datum<'_>,
        rank: u64,
        shows_rank: bool,
        json: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let (key, value) = self.tuple(rank)?;
        if json {
            out.extend_from_slice(b"{\"query\":");
            put_meant_json(query, self.key_form(), out);
            out.extend_from_slice(b",\"rank\":");
            put_datum_json(&Datum::U64(rank), out);
            out.push(b',');
            let start = out.len();
            self.put(&key, &value, true, out);
            // The tuple is an object: its members follow.
            out.remove(start);
            return Ok(());
        }
        put_meant(query, self.key_form(), out);
        out.push(b'\t');
        if shows_rank {
            put_line((&key, self.key_form()), (&Datum::U64(rank), None), "rank", false, out);
        } else {
            self.put(&key, &value, false, out);
        }
        Ok(())
    }

    /// Does the same as [`Any::ranks`] on a GPU.
    pub fn ranks_on(
        &self,
        table: &GpuTable<'_>,
        by: Algorithm,
        keys: &[AnyKey],
    ) -> Result<Vec<Option<u64>>, GpuError> {
        let mut ranks = vec![0; keys.len()];
        let mut present = vec![0; keys.len().div_ceil(64)];
        let mut nothing = vec![(); keys.len()];
        if self.index.key_type().is_bytes() {
            let queries = bytes_of(keys);
            table.get_strings_by(by, &queries, &mut nothing, &mut present)?;
            table.lower_bound_strings_by(by, &queries, &mut ranks)?;
        } else {
            let words = words_of(keys);
            pleach::with_typed!(self.index, |view| ranks_on(
                &view,
                (table, by),
                &words,
                &mut ranks,
                &mut present
            ))??;
        }
        let there = |at: usize| present[at / 64] >> (at % 64) & 1 == 1;
        Ok(ranks.into_iter().enumerate().map(|(at, rank)| there(at).then_some(rank)).collect())
    }

    /// Returns a key as it was parsed.
    pub fn shown<'k>(&self, key: &'k AnyKey) -> Datum<'k> {
        match key {
            AnyKey::Bytes(key) => Datum::of_bytes(self.index.key_type(), &key[..]),
            AnyKey::Word(word) => Datum::of_word(self.index.key_type(), *word),
        }
    }

    /// Returns true if the tuple of a rank is in a file that is left out.
    pub fn is_left_out(&self, rank: u64) -> Result<bool, Failure> {
        let Some(set) = self.set.filter(|set| set.is_partial()) else { return Ok(false) };
        let Some(file) = set.manifest().file_of_rank(rank) else { return Ok(false) };
        let file = set.file_or_none(file).map_err(|error| errors::set_failure(&error))?;
        Ok(file.is_none())
    }

    /// Returns the tuple of a rank.
    pub fn tuple(&self, rank: u64) -> Result<(Datum<'a>, Datum<'a>), Failure> {
        if let Some(set) = self.set {
            let tuple = set.select(rank).map_err(|error| errors::set_failure(&error))?;
            return Ok(tuple.unwrap_or((Datum::None, Datum::None)));
        }
        let tuple = self.index.tuple(rank).map_err(|error| self.failed(error))?;
        Ok(tuple.unwrap_or((Datum::None, Datum::None)))
    }
}

/// Reports whether `above` is nearer to a key than `below`, as searches of a file do.
fn is_nearer(query: &Datum<'_>, below: &Datum<'_>, above: &Datum<'_>) -> bool {
    match (query, below, above) {
        (Datum::F64(query), Datum::F64(below), Datum::F64(above)) => above - query < query - below,
        (Datum::U32(query), Datum::U32(below), Datum::U32(above)) => above - query < query - below,
        (Datum::U64(query), Datum::U64(below), Datum::U64(above)) => above - query < query - below,
        (Datum::U128(query), Datum::U128(below), Datum::U128(above)) => above - query < query - below,
        (Datum::I32(query), Datum::I32(below), Datum::I32(above)) => {
            above.abs_diff(*query) < query.abs_diff(*below)
        }
        (Datum::I64(query), Datum::I64(below), Datum::I64(above)) => {
            above.abs_diff(*query) < query.abs_diff(*below)
        }
        _ => false,
    }
}

/// Returns a number as a float; `None` for byte strings and for no value.
pub fn number(datum: &Datum<'_>) -> Option<f64> {
    match datum {
        Datum::U32(number) => Some(f64::from(*number)),
        Datum::U64(number) => Some(*number as f64),
        Datum::U128(number) => Some(*number as f64),
        Datum::I32(number) => Some(f64::from(*number)),
        Datum::I64(number) => Some(*number as f64),
        Datum::F32(number) => Some(f64::from(*number)),
        Datum::F64(number) => Some(*number),
        Datum::None | Datum::Bytes(_) | Datum::Utf8(_) => None,
    }
}

/// Returns the bytes of a byte string.
pub fn string<'d>(datum: &'d Datum<'_>) -> Option<&'d [u8]> {
    match datum {
        Datum::Bytes(bytes) | Datum::Utf8(bytes) => Some(bytes),
        Datum::None
        | Datum::U32(_)
        | Datum::U64(_)
        | Datum::U128(_)
        | Datum::I32(_)
        | Datum::I64(_)
        | Datum::F32(_)
        | Datum::F64(_) => None,
    }
}

/// Compares keys or values of one type, keys in the order of the file. Floats are equal if their bits are.
pub fn order(one: &Datum<'_>, two: &Datum<'_>) -> Ordering {
    match (one, two) {
        (Datum::U32(one), Datum::U32(two)) => one.cmp(two),
        (Datum::U64(one), Datum::U64(two)) => one.cmp(two),
        (Datum::U128(one), Datum::U128(two)) => one.cmp(two),
        (Datum::I32(one), Datum::I32(two)) => one.cmp(two),
        (Datum::I64(one), Datum::I64(two)) => one.cmp(two),
        (Datum::F32(one), Datum::F32(two)) => one.total_cmp(two),
        (Datum::F64(one), Datum::F64(two)) => one.total_cmp(two),
        (Datum::Bytes(one) | Datum::Utf8(one), Datum::Bytes(two) | Datum::Utf8(two)) => one.cmp(two),
        // Types agree.
        _ => Ordering::Equal,
    }
}

/// Returns keys as byte strings; those that are numbers are empty.
fn bytes_of(keys: &[AnyKey]) -> Vec<&[u8]> {
    keys.iter().map(|key| if let AnyKey::Bytes(key) = key { &key[..] } else { &[] }).collect()
}

/// Returns keys as words; those that are byte strings are 0.
fn words_of(keys: &[AnyKey]) -> Vec<u128> {
    keys.iter().map(|key| if let AnyKey::Word(word) = key { *word } else { 0 }).collect()
}

fn holding<K: Key, V: Value>(
    view: &Typed<'_, K, V>,
    words: &[u128],
    ranks: &mut [u64],
) -> Result<(), ReadError> {
    let keys: Vec<K> = words.iter().map(|&word| key_of(word)).collect();
    match view.intervals()? {
        Some(intervals) => intervals.find_batch(&keys, ranks).map(|_| ()),
        None => {
            ranks.fill(u64::MAX);
            Ok(())
        }
    }
}

fn near_of<K: Key, V: Value>(
    view: &Typed<'_, K, V>,
    near: Near,
    words: &[u128],
    ranks: &mut [u64],
) -> Result<usize, ReadError> {
    let keys: Vec<K> = words.iter().map(|&word| key_of(word)).collect();
    view.near_batch(near, &keys, Tuples { ranks, ..Tuples::default() })
}

/// Finds the tuples near keys on a GPU, or the intervals that hold them.
fn tuples_on<K: Key, V: Value>(
    _view: &Typed<'_, K, V>,
    (table, by): (&GpuTable<'_>, Algorithm),
    near: Option<Near>,
    words: &[u128],
    ranks: &mut [u64],
) -> Result<usize, GpuError> {
    let keys: Vec<K> = words.iter().map(|&word| key_of(word)).collect();
    let tuples = Tuples::<K, V> { ranks, ..Tuples::default() };
    match near {
        Some(near) => table.near_batch_by(by, near, &keys, tuples),
        None => table.interval_batch_by(by, &keys, tuples),
    }
}

/// Returns the text of a key without the escapes with which such texts are printed.
fn plain(form: Form, text: &[u8]) -> Cow<'_, [u8]> {
    match form {
        Form::Composite(_) => unescaped(text).map_or(Cow::Borrowed(text), Cow::Owned),
        _ => Cow::Borrowed(text),
    }
}

/// Parses the key of a text in its logical form.
fn meant_key(form: Form, key_type: KeyType, text: &[u8]) -> Result<AnyKey, TextError> {
    let word = match form.element(text)? {
        Element::Bytes(bytes) => return Ok(AnyKey::Bytes(bytes)),
        Element::Unsigned(number) if key_type.is_bytes() => {
            return Ok(AnyKey::Bytes(number.to_be_bytes().to_vec()));
        }
        Element::Unsigned(number) => return Ok(AnyKey::Word(number)),
        Element::Signed(word) => word,
    };
    Ok(AnyKey::Word(match key_type {
        KeyType::I32 => i32::try_from(word).map_err(|_| TextError::Range)?.encode().into(),
        KeyType::I64 => word.encode().into(),
        // No other type has such a text.
        KeyType::U32 | KeyType::U64 | KeyType::U128 | KeyType::F64 => return Err(TextError::Form),
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => return Err(TextError::Form),
    }))
}

fn ranks_of<K: Key, V: Value>(
    view: &Typed<'_, K, V>,
    words: &[u128],
    ranks: &mut [u64],
    present: &mut [u64],
) -> Result<(), ReadError> {
    let keys: Vec<K> = words.iter().map(|&word| key_of(word)).collect();
    view.contains_batch(&keys, present)?;
    view.lower_bound_batch(&keys, ranks)
}

fn ranks_on<K: Key, V: Value>(
    _: &Typed<'_, K, V>,
    (table, by): (&GpuTable<'_>, Algorithm),
    words: &[u128],
    ranks: &mut [u64],
    present: &mut [u64],
) -> Result<(), GpuError> {
    let keys: Vec<K> = words.iter().map(|&word| key_of(word)).collect();
    table.get_batch_by(by, &keys, &mut vec![(); keys.len()], present)?;
    table.lower_bound_batch_by::<K, ()>(by, &keys, ranks)
}

/// Writes one answer on one line: `KEY<TAB>VALUE`, `KEY` where there is no value, or an object.
pub fn put_line(
    (key, key_form): (&Datum<'_>, Option<Form>),
    (value, form): (&Datum<'_>, Option<Form>),
    name: &str,
    json: bool,
    out: &mut Vec<u8>,
) {
    if json {
        out.extend_from_slice(b"{\"key\":");
        put_meant_json(key, key_form, out);
        if *value != Datum::None {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            put_meant_json(value, form, out);
        }
        out.push(b'}');
    } else {
        put_meant(key, key_form, out);
        if *value != Datum::None {
            out.push(b'\t');
            put_meant(value, form, out);
        }
    }
    out.push(b'\n');
}

/// Writes a tuple whose value is a record: the key and the fields separated by tabs, or an object in an
/// object.
fn put_record(
    key: &Datum<'_>,
    value: &Datum<'_>,
    record: &Record,
    meant: &Meant,
    json: bool,
    out: &mut Vec<u8>,
) {
    let form = |index: usize| meant.fields.get(index).copied().flatten();
    let packed = value.packed();
    let fields = record.fields().iter().zip(record.values(&packed).map(Datum::of_field));
    if json {
        out.extend_from_slice(b"{\"key\":");
        put_meant_json(key, meant.key_form(), out);
        out.extend_from_slice(b",\"value\":{");
        for (index, (field, value)) in fields.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            put_datum_json(&Datum::Utf8(field.name.as_bytes().into()), out);
            out.push(b':');
            put_meant_json(&value, form(index), out);
        }
        out.extend_from_slice(b"}}");
    } else {
        put_meant(key, meant.key_form(), out);
        for (index, (_, value)) in fields.enumerate() {
            out.push(b'\t');
            put_meant(&value, form(index), out);
        }
    }
    out.push(b'\n');
}
