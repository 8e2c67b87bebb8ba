//! The naive model: a sorted list of tuples, which answers every request of the protocol by walking it.
//!
//! The answers of the kit come from here. Nothing of it knows pages, lines or searches.

use crate::word::{Cell, Kind, hex, unhex};
use pleach_format::{KeyType, ValueType};
use std::cmp::Ordering;

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Model {
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// All tuples, in the order of their keys, and equal keys in the order of the input.
    pub tuples: Vec<(Cell, Cell)>,
    /// Name of the key column; empty if it has none.
    pub key_name: String,
    /// Name of the value column.
    pub value_name: String,
    /// Logical type of the keys, as META has it; empty if plain.
    pub key_logical: String,
    /// The same of the values.
    pub value_logical: String,
    /// The structures that the file has, by the names of the protocol.
    pub structures: Vec<&'static str>,
    /// Texts, and the keys that they stand for.
    pub derived: Vec<(String, Option<Cell>)>,
}

impl Model {
    /// Returns the first and the last key.
    pub(crate) fn outermost(&self) -> [Option<String>; 2] {
        [self.tuples.first(), self.tuples.last()].map(|tuple| tuple.map(|tuple| tuple.0.to_string()))
    }

    /// Sorts tuples, which are in the order of the input.
    #[must_use]
    pub fn new(key_type: KeyType, value_type: ValueType, mut tuples: Vec<(Cell, Cell)>) -> Self {
        for (key, _) in &mut tuples {
            // A file has no -0.0 among its keys.
            if *key == Cell::float(-0.0) {
                *key = Cell::float(0.0);
            }
        }
        tuples.sort_by(|a, b| a.0.order(&b.0));
        let none = String::new;
        Self {
            key_type,
            value_type,
            tuples,
            key_name: none(),
            value_name: none(),
            key_logical: none(),
            value_logical: none(),
            structures: Vec::new(),
            derived: Vec::new(),
        }
    }

    /// Returns how many tuples have smaller keys.
    fn lower(&self, key: &Cell) -> usize {
        self.tuples.iter().filter(|tuple| tuple.0.order(key) == Ordering::Less).count()
    }

    /// Returns how many tuples have smaller or equal keys.
    fn upper(&self, key: &Cell) -> usize {
        self.tuples.iter().filter(|tuple| tuple.0.order(key) != Ordering::Greater).count()
    }

    /// Returns the answer to a request; `None` if it is no request about this file.
    #[must_use]
    pub fn answer(&self, request: &str) -> Option<String> {
        let words: Vec<&str> = request.split(' ').collect();
        let key = |word: &str| Kind::of_key(self.key_type).read(word);
        let text = |text: &str| {
            if text.is_empty() { "none".to_owned() } else { format!("text {}", hex(text.as_bytes())) }
        };
        Some(match words[..] {
            ["tuples"] => format!("tuples {}", self.tuples.len()),
            ["types"] => format!("types {} {}", self.key_type, self.value_type),
            ["at", rank] => match self.tuples.get(usize::try_from(rank.parse::<u64>().ok()?).ok()?) {
                Some((key, value)) => format!("tuple {key} {value}"),
                None => "none".to_owned(),
            },
            ["get", word] => {
                let key = key(word)?;
                match self.tuples.iter().position(|tuple| tuple.0.order(&key) == Ordering::Equal) {
                    Some(rank) => format!("tuple {rank} {}", self.tuples[rank].1),
                    None => "absent".to_owned(),
                }
            }
            ["lower", word] => format!("rank {}", self.lower(&key(word)?)),
            ["upper", word] => format!("rank {}", self.upper(&key(word)?)),
            ["floor", word] => match self.upper(&key(word)?).checked_sub(1) {
                Some(rank) => format!("tuple {rank} {} {}", self.tuples[rank].0, self.tuples[rank].1),
                None => "none".to_owned(),
            },
            ["range", from, to] => {
                let (from, to) = (self.lower(&key(from)?), self.lower(&key(to)?));
                let tuples = self.tuples.get(from..to).unwrap_or_default();
                let words = tuples.iter().map(|(key, value)| format!(" {key} {value}"));
                format!("tuples {}{}", tuples.len(), words.collect::<String>())
            }
            ["by", structure, word] if self.structures.contains(&structure) => {
                format!("rank {}", self.lower(&key(word)?))
            }
            ["by", ..] => "none".to_owned(),
            ["check"] => "clean".to_owned(),
            ["name", "key"] => text(&self.key_name),
            ["name", "value"] => text(&self.value_name),
            ["logical", "key"] => text(&self.key_logical),
            ["logical", "value"] => text(&self.value_logical),
            ["derive", word] => {
                let text = unhex(word.strip_prefix('x')?)?;
                match self.derived.iter().find(|it| it.0.as_bytes() == text)? {
                    (_, Some(key)) => format!("key {key}"),
                    (_, None) => "none".to_owned(),
                }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_a_sorted_list() {
        let tuples = [(5, 1), (-3, 2), (5, 3)].map(|(key, value)| (Cell::Signed(key), Cell::Unsigned(value)));
        let mut model = Model::new(KeyType::I32, ValueType::U32, tuples.to_vec());
        model.structures.push("spine");
        model.key_name = "id".to_owned();
        model.derived.push(("a".to_owned(), Some(Cell::Signed(7))));
        for (request, answer) in [
            ("tuples", "tuples 3"),
            ("types", "types i32 u32"),
            ("at 0", "tuple -3 2"),
            ("at 3", "none"),
            ("get 5", "tuple 1 1"),
            ("get 4", "absent"),
            ("lower 5", "rank 1"),
            ("upper 5", "rank 3"),
            ("floor 9", "tuple 2 5 3"),
            ("floor -4", "none"),
            ("range -9 5", "tuples 1 -3 2"),
            ("range 5 -9", "tuples 0"),
            ("by spine 5", "rank 1"),
            ("by grid 5", "none"),
            ("name key", "text x6964"),
            ("logical key", "none"),
            ("derive x61", "key 7"),
            ("check", "clean"),
        ] {
            assert_eq!(model.answer(request).as_deref(), Some(answer), "{request}");
        }
        for request in ["", "get", "get x", "derive x62", "nothing"] {
            assert_eq!(model.answer(request), None, "{request}");
        }
    }
}
