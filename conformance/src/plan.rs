//! How a valid file is made: tuples, names, a layout, and what the builder cannot do, done afterwards.

use crate::case::{Case, Sheet};
use crate::model::Model;
use crate::requests;
use crate::word::Cell;
use pleach_builder::source::Intervals;
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, Unique, in_memory};
use pleach_format::section::Tag;
use pleach_format::version::APPROXIMATE;
use pleach_format::{Header, Key, KeyType, ValueType, Word};
use pleach_kit::mutate::{header, reseal_head};

/// Bytes of the superblock that name the program that wrote the file.
pub const BUILDER: std::ops::Range<usize> = 264..296;
/// What they are in files of the kit, so that these do not change with every release.
const PROGRAM: &[u8] = b"pleach conformance kit";
/// Requests that a file of the kit is asked, about.
const REQUESTS: usize = 140;

/// A change of a file that was built.
pub type Change = Box<dyn Fn(Vec<u8>) -> Vec<u8>>;

/// A file to be made.
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What is special about it, in one sentence.
    pub about: String,
    /// Its tuples, in the order of the input.
    pub input: Vec<(Cell, Cell)>,
    /// What it holds.
    pub model: Model,
    /// Its sections, as a layout of the builder.
    pub layout: String,
    /// Whether equal keys are refused.
    pub unique: bool,
    /// Whether keys begin intervals.
    pub interval: bool,
    /// Number of different keys, if they are shorter than those that they stand for.
    pub approximate: Option<u64>,
    /// What is changed in the file that was built, if anything.
    pub change: Option<Change>,
    /// Whether the file is made when it is wanted, and not kept.
    pub is_more: bool,
}

impl Plan {
    /// Plans a file of the default layout: tuple lines and a spine, and a grid above many lines.
    #[must_use]
    pub fn new(name: &str, types: (KeyType, ValueType), input: Vec<(Cell, Cell)>, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            model: Model::new(types.0, types.1, input.clone()),
            input,
            layout: "lines,spine,grid".to_owned(),
            unique: false,
            interval: false,
            approximate: None,
            change: None,
            is_more: false,
        }
    }

    /// Sets the layout.
    #[must_use]
    pub fn layout(mut self, layout: &str) -> Self {
        layout.clone_into(&mut self.layout);
        self
    }

    /// Sets the names of both columns.
    #[must_use]
    pub fn names(mut self, key: &str, value: &str) -> Self {
        key.clone_into(&mut self.model.key_name);
        value.clone_into(&mut self.model.value_name);
        self
    }

    /// Sets the logical types of both columns.
    #[must_use]
    pub fn logical(mut self, key: &str, value: &str) -> Self {
        key.clone_into(&mut self.model.key_logical);
        value.clone_into(&mut self.model.value_logical);
        self
    }

    /// Refuses equal keys.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Makes intervals of the tuples.
    #[must_use]
    pub fn intervals(mut self) -> Self {
        self.interval = true;
        self
    }

    /// Says that the keys are shorter than the texts that they stand for.
    #[must_use]
    pub fn approximate(mut self) -> Self {
        let mut keys: Vec<String> = self.input.iter().map(|tuple| tuple.0.to_string()).collect();
        keys.sort();
        keys.dedup();
        self.approximate = Some(keys.len() as u64);
        self
    }

    /// Sets texts and the keys that they stand for.
    #[must_use]
    pub fn derived(mut self, texts: &[(&str, Option<Cell>)]) -> Self {
        self.model.derived = texts.iter().map(|(text, key)| ((*text).to_owned(), key.clone())).collect();
        self
    }

    /// Makes the file when it is wanted, and does not keep it.
    #[must_use]
    pub fn more(mut self) -> Self {
        self.is_more = true;
        self
    }

    /// Sets what is changed in the file that was built.
    #[must_use]
    pub fn change(mut self, change: impl Fn(Vec<u8>) -> Vec<u8> + 'static) -> Self {
        self.change = Some(Box::new(change));
        self
    }

    /// Builds the file.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let model = &self.model;
        let schema = Schema {
            key_name: model.key_name.clone(),
            value_name: model.value_name.clone(),
            key_logical: model.key_logical.clone(),
            value_logical: model.value_logical.clone(),
            interval: self.interval.then_some(Intervals::Disjoint),
            approximate: self.approximate,
            ..Schema::plain(model.key_type, model.value_type, Some(self.input.len() as u64))
        };
        let mut chunk = Chunk::new(model.key_type, model.value_type);
        for (key, value) in &self.input {
            push(&mut chunk.keys, key, Some(model.key_type));
            push(&mut chunk.values, value, None);
        }
        let layout = self.layout.parse().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let unique = self.unique.then_some(Unique::Error);
        let options = BuildOptions { unique, ..BuildOptions::default() }.with_layout(layout);
        let built = in_memory(&mut ChunkSource::new(schema, [chunk]), &options, &Silent);
        let built = built.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut bytes = self.change.as_ref().map_or_else(|| built.clone(), |change| change(built.clone()));
        stamp(&mut bytes);
        bytes
    }

    /// Builds the file, and answers its requests by the model.
    #[must_use]
    pub fn case(&self) -> Case {
        self.case_of(self.build(), REQUESTS)
    }

    /// Returns the model with the structures of a file that was built.
    #[must_use]
    pub fn model_of(&self, bytes: &[u8]) -> Model {
        Model { structures: structures(&header(bytes)), ..self.model.clone() }
    }

    /// Answers about `requests` requests about a file that was built.
    #[must_use]
    pub fn case_of(&self, bytes: Vec<u8>, requests: usize) -> Case {
        let model = self.model_of(&bytes);
        // Long keys make long lines.
        let bytes_all: usize = model.tuples.iter().map(|tuple| tuple.0.to_string().len()).sum();
        let is_long = bytes_all > 40 * model.tuples.len();
        let requests = if is_long { requests / 2 } else { requests };
        let exchange = requests::of(&model, requests).into_iter().map(|request| {
            let answer = model.answer(&request);
            let answer = answer.unwrap_or_else(|| panic!("{}: no answer to {request}", self.name));
            (request, answer)
        });
        let sheet = Sheet {
            level: level(&header(&bytes)),
            about: self.about.clone(),
            rule: None,
            code: None,
            exchange: exchange.collect(),
        };
        Case { name: self.name.clone(), sheet, bytes }
    }
}

/// Returns the bits of a number: encoded, if it is a key of this type. A byte string has none.
#[must_use]
pub fn word(cell: &Cell, key_type: Option<KeyType>) -> u128 {
    let is_key = key_type.is_some();
    match cell {
        Cell::Unsigned(number) => *number,
        Cell::Signed(number) if key_type == Some(KeyType::I32) => (*number as i32).encode().to_u128(),
        Cell::Signed(number) if is_key => number.encode().to_u128(),
        Cell::Signed(number) => u128::from(number.cast_unsigned()),
        Cell::Float32(bits) => (*bits).into(),
        Cell::Float64(bits) if is_key => f64::from_bits(*bits).encode().to_u128(),
        Cell::Float64(bits) => (*bits).into(),
        Cell::None | Cell::Bytes(_) => 0,
    }
}

/// Adds a cell to a column.
fn push(column: &mut Column, cell: &Cell, key_type: Option<KeyType>) {
    let word = word(cell, key_type);
    match (column, cell) {
        (Column::Bytes(strings), Cell::Bytes(bytes)) => strings.push(bytes),
        (Column::None | Column::Bytes(_), _) => {}
        (Column::U32(words), _) => words.push(word as u32),
        (Column::U64(words), _) => words.push(word as u64),
        (Column::U128(words), _) => words.push(word),
    }
}

/// Names the kit as the program that wrote a file.
pub fn stamp(bytes: &mut [u8]) {
    bytes[BUILDER].fill(0);
    bytes[BUILDER.start..BUILDER.start + PROGRAM.len()].copy_from_slice(PROGRAM);
    reseal_head(bytes);
}

/// Returns the structures of a file, by the names of the protocol.
#[must_use]
pub fn structures(header: &Header) -> Vec<&'static str> {
    let sections = [
        (Tag::SPINE, "spine"),
        (Tag::GRID, "grid"),
        (Tag::FAST, "fast"),
        (Tag::HARMONIA, "harmonia"),
        (Tag::BTREE, "btree"),
        (Tag::TRIE, "trie"),
    ];
    let there = sections.into_iter().filter(|(tag, _)| header.section(*tag).is_some()).map(|(_, name)| name);
    std::iter::once("lines").chain(there).collect()
}

/// Returns the lowest level that reads the tuples of a file.
#[must_use]
pub fn level(header: &Header) -> u8 {
    let is_approximate = header.superblock.reader_features.get() & APPROXIMATE != 0;
    match header.key_type {
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64
            if !header.value_type.is_bytes() && !is_approximate =>
        {
            1
        }
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 => 2,
        KeyType::U128 | KeyType::F64 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => 2,
    }
}
