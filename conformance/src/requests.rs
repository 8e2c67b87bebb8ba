//! Which requests a file is asked.

use crate::model::Model;
use crate::word::{Cell, hex};
use pleach_format::KeyType;
use std::collections::BTreeSet;

/// Structures that the kit asks every file for.
const STRUCTURES: [&str; 7] = ["lines", "spine", "grid", "fast", "harmonia", "btree", "trie"];

/// Returns up to so many numbers below `count`, evenly spread, the first and the last among them.
fn spread(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let last = (count - 1) as u64;
    (0..most as u64).map(|at| (at * last / (most as u64 - 1)) as usize).collect()
}

/// Returns keys directly beside a key, and some that differ from it in one bit.
fn beside(key_type: KeyType, key: &Cell, salt: usize) -> Vec<Cell> {
    match key {
        Cell::Unsigned(number) => {
            let most = match key_type.bytes() {
                16 => u128::MAX,
                bytes => (1 << (8 * bytes)) - 1,
            };
            let flipped = number ^ (1 << (salt * 7 % (8 * key_type.bytes())));
            let all = [number.checked_sub(1), number.checked_add(1).filter(|&it| it <= most), Some(flipped)];
            all.into_iter().flatten().map(Cell::Unsigned).collect()
        }
        Cell::Signed(number) => {
            let (least, most) = if key_type == KeyType::I32 {
                (i64::from(i32::MIN), i64::from(i32::MAX))
            } else {
                (i64::MIN, i64::MAX)
            };
            let all = [number.checked_sub(1), number.checked_add(1), Some(!number)];
            all.into_iter().flatten().filter(|it| (least..=most).contains(it)).map(Cell::Signed).collect()
        }
        Cell::Float64(bits) => {
            let number = f64::from_bits(*bits);
            [number.next_down(), number.next_up(), -number].map(Cell::float).to_vec()
        }
        Cell::Bytes(bytes) => beside_bytes(key_type, bytes, salt),
        Cell::None | Cell::Float32(_) => Vec::new(),
    }
}

fn beside_bytes(key_type: KeyType, bytes: &[u8], salt: usize) -> Vec<Cell> {
    let mut all = Vec::new();
    if let Some(last) = bytes.len().checked_sub(1) {
        for change in [1, 0xFF, 0x80] {
            let mut other = bytes.to_vec();
            let at = if change == 0x80 { salt * 5 % bytes.len() } else { last };
            other[at] = other[at].wrapping_add(change);
            all.push(other);
        }
    }
    if key_type.fixed_bytes().is_none() {
        all.push([bytes, b"\0"].concat());
        all.push([bytes, b"z"].concat());
        all.push(bytes[..bytes.len() * 2 / 3].to_vec());
    }
    let is_key = |key: &Vec<u8>| key_type != KeyType::Utf8 || str::from_utf8(key).is_ok();
    all.into_iter().filter(is_key).map(Cell::Bytes).collect()
}

/// Returns the smallest and the largest keys of a type, and keys in odd places.
fn extremes(key_type: KeyType) -> Vec<Cell> {
    match key_type {
        KeyType::U32 => [0, 1, u32::MAX.into()].map(Cell::Unsigned).to_vec(),
        KeyType::U64 => [0, 1, 1 << 32, u64::MAX.into()].map(Cell::Unsigned).to_vec(),
        KeyType::U128 => [0, 1 << 32, 1 << 64, u128::MAX].map(Cell::Unsigned).to_vec(),
        KeyType::I32 => [i32::MIN.into(), -1, 0, i32::MAX.into()].map(Cell::Signed).to_vec(),
        KeyType::I64 => [i64::MIN, -1, 0, i64::MAX].map(Cell::Signed).to_vec(),
        KeyType::F64 => {
            [f64::NEG_INFINITY, -0.0, 0.0, 5e-324, f64::MAX, f64::INFINITY].map(Cell::float).to_vec()
        }
        KeyType::Fixed(bytes) => [0, 0x7F, 0xFF].map(|byte| Cell::Bytes(vec![byte; bytes.into()])).to_vec(),
        KeyType::Bytes => [&b""[..], b"\0", b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", b"a"]
            .map(|it| Cell::Bytes(it.into()))
            .to_vec(),
        KeyType::Utf8 => ["", "\0", "\u{10FFFF}\u{10FFFF}\u{10FFFF}", "a"].map(Cell::from).to_vec(),
    }
}

/// Returns the requests of a file: about `most`, and more only where each kind is asked a few times.
#[must_use]
pub fn of(model: &Model, most: usize) -> Vec<String> {
    let count = model.tuples.len();
    let mut all: Vec<String> = ["tuples", "types", "name key", "name value", "logical key", "logical value"]
        .map(str::to_owned)
        .to_vec();
    let ranks = spread(count, (most / 8).max(4));
    all.extend(ranks.iter().map(|rank| format!("at {rank}")));
    all.extend([format!("at {count}"), format!("at {}", u64::MAX)]);

    // Queries, each once: present keys, their neighbours, ends.
    let mut queries: Vec<Cell> = extremes(model.key_type);
    for rank in spread(count, (most / 14).max(3)) {
        let key = &model.tuples[rank].0;
        queries.push(key.clone());
        queries.extend(beside(model.key_type, key, rank));
    }
    let mut seen = BTreeSet::new();
    queries.retain(|query| seen.insert(query.to_string()));
    let there: Vec<&str> = STRUCTURES.into_iter().filter(|it| model.structures.contains(it)).collect();
    for (at, query) in queries.iter().enumerate() {
        all.push(format!("get {query}"));
        // All kinds in turn; all of them where there is room.
        let kinds = ["lower", "floor", "upper"];
        let wanted = if queries.len() * 5 <= most { 3 } else { 1 };
        all.extend((0..wanted).map(|more| format!("{} {query}", kinds[(at + more) % 3])));
        let wanted = if queries.len() * 6 <= most { there.len() } else { there.len().min(1) };
        all.extend((0..wanted).map(|more| format!("by {} {query}", there[(at + more) % there.len()])));
    }
    if let Some(query) = queries.last() {
        let missing = STRUCTURES.iter().filter(|it| !model.structures.contains(it));
        all.extend(missing.map(|structure| format!("by {structure} {query}")));
    }
    // Ranges of a few tuples: within, over both ends, empty, and reversed.
    let key =
        |rank: usize| model.tuples.get(rank).map_or_else(|| queries[0].clone(), |tuple| tuple.0.clone());
    let ends = extremes(model.key_type);
    let last = count.saturating_sub(1);
    for (from, to) in [
        (key(0), key(last.min(3))),
        (key(last.saturating_sub(2)), ends[ends.len() - 1].clone()),
        (ends[0].clone(), key(last.min(2))),
        (key(count / 2), key((count / 2 + 9).min(last))),
        (key(count / 3), key(count / 3)),
        (key(last), key(0)),
    ] {
        let answer = model.answer(&format!("range {from} {to}"));
        if answer.is_some_and(|answer| answer.len() < 2000) {
            all.push(format!("range {from} {to}"));
        }
    }
    all.extend(model.derived.iter().map(|(text, _)| format!("derive {}", hex(text.as_bytes()))));
    all.push("check".to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_format::ValueType;

    #[test]
    fn every_request_has_an_answer() {
        let bytes: Vec<(Cell, Cell)> =
            ["", "a", "b\0", "ccc"].map(|key| (Cell::from(key), Cell::None)).to_vec();
        for (key_type, tuples) in [
            (KeyType::Utf8, bytes.clone()),
            (KeyType::Bytes, bytes),
            (KeyType::Fixed(3), vec![(Cell::from("abc"), Cell::None)]),
            (
                KeyType::U32,
                vec![(Cell::Unsigned(0), Cell::None), (Cell::Unsigned(u32::MAX.into()), Cell::None)],
            ),
            (KeyType::I32, (0..400).map(|key| (Cell::Signed(key * key), Cell::None)).collect()),
            (KeyType::F64, vec![(Cell::float(1.5), Cell::None), (Cell::float(f64::INFINITY), Cell::None)]),
            (KeyType::U128, Vec::new()),
        ] {
            let mut model = Model::new(key_type, ValueType::None, tuples);
            model.structures = vec!["lines", "fast"];
            let requests = of(&model, 300);
            assert!(requests.len() > 30, "{key_type}: {}", requests.len());
            for kind in
                ["at ", "get ", "lower ", "upper ", "floor ", "by fast ", "by lines ", "by grid ", "check"]
            {
                assert!(requests.iter().any(|request| request.starts_with(kind)), "{key_type}: {kind}");
            }
            for request in requests {
                assert!(model.answer(&request).is_some(), "{key_type}: {request}");
            }
        }
    }
}
