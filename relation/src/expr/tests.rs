//! Expressions against an interpreter that takes one tuple and one node at a time, with numbers of 128 bits.

use super::operator::{Arithmetic, Comparison};
use super::parse::{Node, What, parse};
use super::*;
use crate::{Bitmap, Chunk};
use pleach_builder::{Column, Strings};
use pleach_format::record::{Field, FieldKind, FieldValue};
use pleach_format::{Key, KeyType, Record, Value, ValueType, Word};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// A word that is often small, an edge, or near one.
    fn word(&mut self) -> u64 {
        let edges =
            [0, 1, 255, 256, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, i64::MAX as u64, 1 << 63, u64::MAX];
        match self.below(4) {
            0 => self.below(20),
            1 => self.of(&edges).wrapping_add(self.below(3)).wrapping_sub(1),
            2 => self.next() >> self.below(64),
            _ => self.next(),
        }
    }
}

/// Operand of the naive interpreter.
#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Int(i128),
    Float(f64),
    Bytes(Vec<u8>),
    Truth(bool),
}

/// A relation, as things and as columns.
struct Table {
    schema: Schema,
    rows: Vec<Vec<(String, Thing)>>,
    keys: Column,
    values: Column,
}

const FIRST_RANK: u64 = 1000;

impl Table {
    /// Tuples whose keys are in order.
    fn new(key_type: KeyType, value: Shape, count: usize, random: &mut Random) -> Self {
        let mut keys = Column::for_key(key_type);
        let mut words: Vec<u64> = (0..count).map(|_| random.word()).collect();
        let encoded: Vec<u64> = match key_type {
            KeyType::U32 | KeyType::I32 => words.iter().map(|&word| u64::from(word as u32)).collect(),
            KeyType::F64 => words.iter().map(|&word| (word as i32 as f64 / 2.0).encode()).collect(),
            _ => words.clone(),
        };
        words = encoded;
        words.sort_unstable();
        let mut things = Vec::new();
        for &word in &words {
            things.push(match (&mut keys, key_type) {
                (Column::U32(keys), KeyType::I32) => {
                    keys.push(word as u32);
                    Thing::Int(i32::decode(word as u32).into())
                }
                (Column::U32(keys), _) => {
                    keys.push(word as u32);
                    Thing::Int(word.into())
                }
                (Column::U64(keys), KeyType::I64) => {
                    keys.push(word);
                    Thing::Int(i64::decode(word).into())
                }
                (Column::U64(keys), KeyType::F64) => {
                    keys.push(word);
                    Thing::Float(f64::decode(word))
                }
                (Column::U64(keys), _) => {
                    keys.push(word);
                    Thing::Int(word.into())
                }
                (Column::Bytes(keys), _) => {
                    // Short texts of few letters, in order.
                    let text = format!("{:05}", word % 1000);
                    keys.push(text.as_bytes());
                    Thing::Bytes(text.into_bytes())
                }
                _ => unreachable!("no such key"),
            });
        }
        if let Column::Bytes(strings) = &mut keys {
            let mut sorted: Vec<Vec<u8>> = strings.iter().map(<[u8]>::to_vec).collect();
            sorted.sort();
            *strings = Strings::default();
            things = sorted.iter().map(|text| Thing::Bytes(text.clone())).collect();
            sorted.iter().for_each(|text| strings.push(text));
        }
        let record = match value {
            Shape::Plain(_) => None,
            Shape::Record(kinds) => {
                let field = |(index, &kind)| Field::new(format!("f{index}"), kind);
                Some(Record::new(kinds.iter().enumerate().map(field).collect()).expect("is a record"))
            }
        };
        let value_type = match (value, &record) {
            (Shape::Plain(value_type), _) => value_type,
            (_, Some(record)) => record.storage(),
            (_, None) => ValueType::None,
        };
        let mut values = Column::for_value(value_type);
        let mut rows = Vec::new();
        for (index, key) in things.into_iter().enumerate() {
            let mut row = vec![
                ("key".to_owned(), key),
                ("rank".to_owned(), Thing::Int((FIRST_RANK + index as u64).into())),
            ];
            match &record {
                None => row
                    .extend(plain(value_type, random, &mut values).map(|thing| ("value".to_owned(), thing))),
                Some(record) => {
                    let mut packed = Vec::new();
                    let stored: Vec<Vec<u8>> = (record.fields().iter())
                        .map(|field| match field.kind.is_text() {
                            true => format!("{:03}", random.word() % 30).into_bytes(),
                            false => random.word().to_le_bytes().repeat(3)[..field.kind.bytes()].to_vec(),
                        })
                        .collect();
                    let parts: Vec<_> = (record.fields().iter().zip(&stored))
                        .map(|(field, bytes)| field.kind.read(bytes).expect("is long enough"))
                        .collect();
                    for (field, value) in record.fields().iter().zip(&parts) {
                        row.push((field.name.clone(), thing_of(*value)));
                    }
                    assert!(record.pack(&parts, &mut packed));
                    match &mut values {
                        Column::U32(words) => {
                            words.push(u32::from_le_bytes(packed[..4].try_into().expect("4")))
                        }
                        Column::U64(words) => {
                            words.push(u64::from_le_bytes(packed[..8].try_into().expect("8")))
                        }
                        Column::Bytes(strings) => strings.push(&packed),
                        _ => unreachable!("no such value"),
                    }
                }
            }
            rows.push(row);
        }
        let schema = Schema { record, ..Schema::new(key_type, value_type) };
        Self { schema, rows, keys, values }
    }

    fn tuples(&self) -> Tuples<'_> {
        Tuples { first_rank: FIRST_RANK, keys: (&self.keys).into(), values: (&self.values).into() }
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Plain(ValueType),
    Record(&'static [FieldKind]),
}

fn thing_of(value: FieldValue<'_>) -> Thing {
    match value {
        FieldValue::U8(number) => Thing::Int(number.into()),
        FieldValue::U16(number) => Thing::Int(number.into()),
        FieldValue::U32(number) => Thing::Int(number.into()),
        FieldValue::U64(number) => Thing::Int(number.into()),
        FieldValue::I8(number) => Thing::Int(number.into()),
        FieldValue::I16(number) => Thing::Int(number.into()),
        FieldValue::I32(number) => Thing::Int(number.into()),
        FieldValue::I64(number) => Thing::Int(number.into()),
        FieldValue::F32(number) => Thing::Float(number.into()),
        FieldValue::F64(number) => Thing::Float(number),
        FieldValue::Fixed(bytes) | FieldValue::Bytes(bytes) => Thing::Bytes(bytes.to_vec()),
        FieldValue::Utf8(text) => Thing::Bytes(text.as_bytes().to_vec()),
    }
}

fn plain(value_type: ValueType, random: &mut Random, values: &mut Column) -> Option<Thing> {
    let word = random.word();
    Some(match (values, value_type) {
        (Column::None, _) => return None,
        (Column::U32(out), kind) => {
            out.push(word as u32);
            match kind {
                ValueType::I32 => Thing::Int((word as i32).into()),
                ValueType::F32 => Thing::Float(f32::from_bits(word as u32).into()),
                _ => Thing::Int((word as u32).into()),
            }
        }
        (Column::U64(out), kind) => {
            out.push(word);
            match kind {
                ValueType::I64 => Thing::Int((word as i64).into()),
                ValueType::F64 => Thing::Float(f64::from_bits(word)),
                _ => Thing::Int(word.into()),
            }
        }
        (Column::Bytes(out), _) => {
            let text = format!("{:03}", word % 30);
            out.push(text.as_bytes());
            Thing::Bytes(text.into_bytes())
        }
        (Column::U128(_), _) => return None,
    })
}

/// Evaluates a node for a row; an error if it has no result.
fn naive(node: &Node, row: &[(String, Thing)]) -> Result<Thing, ()> {
    let truth = |node: &Node| match naive(node, row)? {
        Thing::Truth(truth) => Ok(truth),
        _ => Err(()),
    };
    let bytes = |thing: Thing| match thing {
        Thing::Bytes(bytes) => bytes,
        other => panic!("no text: {other:?}"),
    };
    Ok(match &node.what {
        What::Integer(number) => Thing::Int(i128::try_from(*number).expect("is small")),
        What::Float(number) => Thing::Float(*number),
        What::Text(text) => Thing::Bytes(text.clone().into_bytes()),
        What::Truth(truth) => Thing::Truth(*truth),
        What::Name(name, _) => row.iter().find(|(known, _)| known == name).expect("is there").1.clone(),
        What::Negative(of) => match naive(of, row)? {
            Thing::Int(number) => Thing::Int(number.checked_neg().ok_or(())?),
            Thing::Float(number) => Thing::Float(-number),
            other => other,
        },
        What::Arithmetic(operation, left, right) => {
            let (Thing::Int(left), Thing::Int(right)) = (naive(left, row)?, naive(right, row)?) else {
                return Err(());
            };
            let count = u32::try_from(right).ok().filter(|&count| count < 128);
            Thing::Int(
                match operation {
                    Arithmetic::Or => Some(left | right),
                    Arithmetic::Xor => Some(left ^ right),
                    Arithmetic::And => Some(left & right),
                    Arithmetic::Left => count.and_then(|count| {
                        let shifted = left << count;
                        (shifted >> count == left).then_some(shifted)
                    }),
                    Arithmetic::Right => count.map(|count| left >> count),
                    Arithmetic::Add => left.checked_add(right),
                    Arithmetic::Subtract => left.checked_sub(right),
                    Arithmetic::Multiply => left.checked_mul(right),
                    Arithmetic::Divide => left.checked_div(right),
                    Arithmetic::Remainder => left.checked_rem(right),
                }
                .ok_or(())?,
            )
        }
        What::Compare(comparison, left, right) => {
            let (left, right) = (naive(left, row)?, naive(right, row)?);
            Thing::Truth(compared(*comparison, &left, &right))
        }
        What::Between(of, low, high) => {
            let above = compared(Comparison::AtLeast, &naive(of, row)?, &naive(low, row)?);
            // As it is written: what the first half decides leaves the second alone.
            Thing::Truth(above && compared(Comparison::AtMost, &naive(of, row)?, &naive(high, row)?))
        }
        What::In(of, list) => {
            let of = naive(of, row)?;
            let mut found = false;
            for item in list {
                found = found || compared(Comparison::Equal, &of, &naive(item, row)?);
            }
            Thing::Truth(found)
        }
        What::Prefix(of, prefix) => Thing::Truth(bytes(naive(of, row)?).starts_with(prefix.as_bytes())),
        What::Not(of) => Thing::Truth(!truth(of)?),
        What::All(parts) => {
            for part in parts {
                if !truth(part)? {
                    return Ok(Thing::Truth(false));
                }
            }
            Thing::Truth(true)
        }
        What::Any(parts) => {
            for part in parts {
                if truth(part)? {
                    return Ok(Thing::Truth(true));
                }
            }
            Thing::Truth(false)
        }
    })
}

fn compared(comparison: Comparison, left: &Thing, right: &Thing) -> bool {
    let float = |thing: &Thing| match thing {
        Thing::Float(number) => *number,
        Thing::Int(number) => *number as f64,
        other => panic!("no number: {other:?}"),
    };
    match (left, right) {
        (Thing::Int(left), Thing::Int(right)) => comparison.holds(left.cmp(right)),
        (Thing::Bytes(left), Thing::Bytes(right)) => comparison.holds(left.cmp(right)),
        _ => match float(left).partial_cmp(&float(right)) {
            Some(order) => comparison.holds(order),
            None => comparison == Comparison::Unequal,
        },
    }
}

/// Compares an expression with the naive interpreter in every way there is.
#[track_caller]
fn check(text: &str, table: &Table) -> Predicate {
    let predicate = Predicate::parse(text, &table.schema)
        .unwrap_or_else(|error| panic!("{text}: {error}\n{}", error.caret()));
    let node = parse(text).expect("was parsed");
    let wanted: Vec<Result<Thing, ()>> = table.rows.iter().map(|row| naive(&node, row)).collect();
    let tuples = table.tuples();
    let mut bits = vec![u64::MAX; 3];
    let found = predicate.evaluate(&tuples, &mut bits);
    if wanted.contains(&Err(())) {
        let error = found.expect_err(text);
        assert_eq!(wanted[(error.rank - FIRST_RANK) as usize], Err(()), "{text}: {error}");
        return predicate;
    }
    let count = found.unwrap_or_else(|error| panic!("{text}: {error}"));
    let truth = |at: usize| wanted[at] == Ok(Thing::Truth(true));
    assert_eq!(bits.len(), table.rows.len().div_ceil(64));
    assert_eq!(count, (0..wanted.len()).filter(|&at| truth(at)).count() as u64, "{text}");
    let end = FIRST_RANK + table.rows.len() as u64;
    // Ranks by the keys, as a file would have them.
    let bound = |point: &Point, is_upper: bool| -> Result<u64, ()> {
        let below = |at: usize| match (&table.keys, point) {
            (Column::U32(words), Point::Word(word)) => u128::from(words[at]).cmp(word),
            (Column::U64(words), Point::Word(word)) => u128::from(words[at]).cmp(word),
            (Column::Bytes(strings), Point::Bytes(bytes)) => strings.get(at).cmp(bytes),
            _ => panic!("{text}: a point of another type"),
        };
        let before = |at: &usize| below(*at).is_lt() || (is_upper && below(*at).is_eq());
        // The tuples of the table begin at a rank above 0; before them are none.
        Ok(FIRST_RANK + (0..table.rows.len()).filter(before).count() as u64)
    };
    let ranges =
        predicate.ranks(end, |point| bound(point, false), |point| bound(point, true)).expect("never fails");
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{text}: {ranges:?}");
    let program = predicate.program();
    for at in 0..wanted.len() {
        assert_eq!(bits[at / 64] >> (at % 64) & 1 == 1, truth(at), "{text}: {:?}", table.rows[at]);
        let rank = FIRST_RANK + at as u64;
        let inside = ranges.iter().any(|range| range.contains(&rank));
        assert!(inside || !truth(at), "{text}: {rank} is not in {ranges:?}");
        assert!(!predicate.is_exact() || inside == truth(at), "{text}: {ranges:?} are not exact");
        if let Some(program) = &program {
            let word = |column: &Column| match column {
                Column::U32(words) => words[at].into(),
                Column::U64(words) => words[at],
                _ => 0,
            };
            assert_eq!(program.run(word(&table.keys), word(&table.values), rank), truth(at), "{text}");
        }
    }
    predicate
}

/// A whole number of an expression.
fn int_text(random: &mut Random, names: &[&str], depth: u64) -> String {
    if depth == 0 || random.below(3) == 0 {
        let number = random.word();
        return match random.below(6) {
            0 => format!("{number}"),
            1 => format!("0x{number:_>x}").replace('_', ""),
            2 => format!("-{}", number >> 1),
            _ if names.is_empty() => format!("{}", number % 100),
            _ => random.of(names).to_owned(),
        };
    }
    let operation = random.of(&["|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%"]);
    let left = int_text(random, names, depth - 1);
    let right = match operation {
        "<<" | ">>" if random.below(4) > 0 => format!("{}", random.below(70)),
        "/" | "%" if random.below(4) > 0 => format!("{}", random.below(9) + 1),
        _ => int_text(random, names, depth - 1),
    };
    if random.below(2) == 0 {
        format!("({left} {operation} {right})")
    } else {
        format!("{left} {operation} {right}")
    }
}

fn test_text(random: &mut Random, names: &Names, depth: u64) -> String {
    match random.below(if depth == 0 { 6 } else { 12 }) {
        0 | 1 if !names.ints.is_empty() => {
            let levels = random.below(3);
            let (left, right) = (int_text(random, &names.ints, levels), int_text(random, &[], 0));
            format!("{left} {} {right}", random.of(&["=", "==", "!=", "<>", "<", "<=", ">", ">="]))
        }
        2 if !names.ints.is_empty() => {
            let list: Vec<String> = (0..=random.below(9)).map(|_| int_text(random, &[], 0)).collect();
            let not = random.of(&["", "not "]);
            format!("{} {not}in ({})", random.of(&names.ints), list.join(", "))
        }
        3 if !names.ints.is_empty() => {
            let (low, high) = (int_text(random, &names.ints, 1), int_text(random, &[], 0));
            format!("{} between {low} and {high}", random.of(&names.ints))
        }
        4 if !names.texts.is_empty() => {
            let text = format!("{:03}", random.below(30));
            let name = random.of(&names.texts);
            match random.below(4) {
                0 => format!("{name} like '{}%'", &text[..random.below(4) as usize]),
                1 => format!("{name} in ('{text}', \"00{}\")", random.below(1000)),
                2 => format!("not {name} starts with '{}'", &text[..2]),
                _ => format!("{name} {} '{text}'", random.of(&["<", ">=", "==", "!="])),
            }
        }
        5 if !names.floats.is_empty() => {
            let number = random.of(&["0.5", "-1e9", "0", "-7", "1e300", "2.5e-5"]);
            format!(
                "{} {} {number}",
                random.of(&names.floats),
                random.of(&["<", ">=", "==", "!=", "<=", ">"])
            )
        }
        6 => format!("not {}", test_text(random, names, depth - 1)),
        7 => format!("({} or {})", test_text(random, names, depth - 1), test_text(random, names, depth - 1)),
        8..=11 if depth > 0 => {
            let word = random.of(&["and", "or", "AND"]);
            format!("{} {word} {}", test_text(random, names, depth - 1), test_text(random, names, depth - 1))
        }
        _ => format!("rank {} {}", random.of(&["<", ">="]), FIRST_RANK + random.below(200)),
    }
}

struct Names {
    ints: Vec<&'static str>,
    floats: Vec<&'static str>,
    texts: Vec<&'static str>,
}

#[test]
fn random_expressions_are_what_they_say() {
    use FieldKind::*;
    let mut random = Random(7);
    let records: [&'static [FieldKind]; 5] = [
        &[U8, I8, U16],
        &[I32, F32],
        &[U64, I16, F64, Fixed(3)],
        &[I64, U32, U8],
        &[FieldKind::Utf8, I16, FieldKind::Utf8, F64],
    ];
    let mut refused = 0;
    for round in 0..60_u64 {
        let key_type =
            random.of(&[KeyType::U32, KeyType::U64, KeyType::I32, KeyType::I64, KeyType::F64, KeyType::Utf8]);
        let shape = match random.below(3) {
            0 => Shape::Record(random.of(&records)),
            _ => Shape::Plain(random.of(&[
                ValueType::None,
                ValueType::U32,
                ValueType::U64,
                ValueType::I32,
                ValueType::I64,
                ValueType::F32,
                ValueType::F64,
                ValueType::Utf8,
            ])),
        };
        let count = random.of(&[0, 1, 63, 64, 65, 200]);
        let table = Table::new(key_type, shape, count, &mut random);
        let mut names = Names { ints: vec!["rank"], floats: Vec::new(), texts: Vec::new() };
        let fields = ["f0", "f1", "f2", "f3"];
        let all: Vec<&'static str> = ["key", "value"].into_iter().chain(fields).collect();
        let mut sample = Table::new(key_type, shape, 1, &mut Random(round)).rows.remove(0);
        sample.retain(|(name, _)| name != "rank");
        for (name, thing) in &sample {
            let name = all.iter().find(|known| *known == name).expect("is known");
            match thing {
                Thing::Int(_) => names.ints.push(name),
                Thing::Float(_) => names.floats.push(name),
                // Bytes that are not valid UTF-8 are hard to write down.
                Thing::Bytes(_) if matches!(*name, "key" | "value" | "f0" | "f2") => names.texts.push(name),
                _ => {}
            }
        }
        for _ in 0..60 {
            let text = test_text(&mut random, &names, 3);
            match Predicate::parse(&text, &table.schema) {
                Ok(_) => drop(check(&text, &table)),
                // Only what the generator cannot know: constants that overflow, or are compared with each other.
                Err(error) => {
                    let known = ["two constants", "division by zero", "number of bits", "128 bits"];
                    assert!(known.iter().any(|known| error.what.contains(known)), "{text}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused < 1000, "{refused} of 3600 were refused");
}

#[test]
fn blocks_and_edges() {
    let mut random = Random(3);
    for count in [4095, 4096, 4097, 8192 + 63] {
        let table = Table::new(KeyType::U64, Shape::Plain(ValueType::I32), count, &mut random);
        for text in [
            "key >= 0",
            "value < 0 and key > 5",
            "rank in (1000, 5095, 5096, 1, 2, 3)",
            "value != 0 and 100 / value > 3",
            "key == 18446744073709551615 or value == -2147483648",
            "key & 0xff == value & 0xff",
            "key + 1 > key",
        ] {
            check(text, &table);
        }
        let long: Vec<String> = (0..1000).map(|number| (number * number * 7).to_string()).collect();
        let long = check(&format!("key in ({})", long.join(",")), &table);
        assert!(long.is_exact() && long.program().is_some());
    }
}

#[test]
fn wide_keys() {
    let keys = Column::U128(vec![0, 1, 1 << 64, u128::MAX - 1, u128::MAX]);
    let schema = Schema::new(KeyType::U128, ValueType::None);
    let tuples = Tuples { first_rank: 0, keys: (&keys).into(), values: ColumnRef::None };
    for (text, wanted) in [
        ("key > 0", 0b11110),
        ("key < -1", 0),
        ("key >= 0x10000000000000000", 0b11100),
        ("key == 340282366920938463463374607431768211455", 0b10000),
        ("key != 340282366920938463463374607431768211455", 0b01111),
        ("key in (1, 18446744073709551616, -3)", 0b00110),
        ("key & 1 == 1", 0b10010),
        ("key >> 64 == 1", 0b00100),
        ("key % 2 == 0 and key > 0", 0b01100),
        ("key - key == 0", 0b11111),
        ("key between 1 and 18446744073709551616", 0b00110),
    ] {
        let predicate = Predicate::parse(text, &schema).expect(text);
        let mut bits = Vec::new();
        predicate.evaluate(&tuples, &mut bits).expect(text);
        assert_eq!(bits, [wanted], "{text}");
        let inside = |word: u128| {
            predicate.key_ranges().iter().any(|range| {
                let point = Point::Word(word);
                range.start <= Cut::Before(point.clone()) && Cut::After(point) <= range.end
            })
        };
        for at in 0..5 {
            let Column::U128(words) = &keys else { unreachable!() };
            let truth = wanted >> at & 1 == 1;
            assert!(inside(words[at]) || !truth, "{text}");
            assert!(!predicate.is_exact() || inside(words[at]) == truth, "{text}");
        }
    }
    let error = Predicate::parse("key + 1 > 0", &schema).expect("parses").evaluate(&tuples, &mut Vec::new());
    let error = error.expect_err("overflows").to_string();
    assert_eq!(
        error,
        "340282366920938463463374607431768211455 + 1 does not fit into 128 bits: column 1 of the \
         expression: the tuple of \
         rank 4: exclude it by a condition before this one"
    );
    for refused in ["key - 5 > rank - 7", "-170141183460469231731687303715884105728 < key"] {
        assert!(Predicate::parse(refused, &schema).is_err(), "{refused}");
    }
}

#[test]
fn errors_name_their_tuple_unless_it_is_decided() {
    let mut random = Random(5);
    let table = Table::new(KeyType::U32, Shape::Plain(ValueType::U64), 300, &mut random);
    let eval = |text: &str| {
        let mut bits = Vec::new();
        Predicate::parse(text, &table.schema).expect(text).evaluate(&table.tuples(), &mut bits)
    };
    assert!(
        eval("rank / (rank - 1005) > 3").expect_err("divides").what.starts_with("1005 / 0 divides by zero")
    );
    assert_eq!(eval("rank / (rank - 1005) > 3").expect_err("divides").rank, 1005);
    assert!(eval("rank != 1005 and rank / (rank - 1005) > 3").is_ok());
    assert!(eval("rank = 1005 or rank % (rank - 1005) == 0").is_ok());
    assert_eq!(eval("not (rank != 1010) and 1 << (rank - 900) > 0"), Ok(1));
    assert_eq!(eval("1 << (rank - 900) > 0").expect_err("shifts").rank, 1027);
    // Also where the answer does not depend on it.
    assert!(eval("rank / (rank - 1005) > 99999999999999999999").is_err());
}

#[test]
fn ranges_are_seen() {
    let schema = Schema::new(KeyType::U32, ValueType::U32);
    let shown = |text: &str| {
        let predicate = Predicate::parse(text, &schema).expect(text);
        let keys: Vec<String> = predicate.key_ranges().iter().map(ToString::to_string).collect();
        (keys.join(" "), predicate.is_exact())
    };
    for (text, keys, exact) in [
        ("key > 5", "[0x6, ..)", true),
        ("key < 5 and key >= 2", "[0x2, 0x4]", true),
        ("key between 0 and 4294967295", "all", true),
        ("key < 5 and value == 2", "(.., 0x4]", false),
        ("key < 5 or value == 2", "all", false),
        ("not (key < 5 or value == 2)", "(0x4, ..)", false),
        ("key in (1, 7, 7, 3)", "0x1 0x3 0x7", true),
        ("key not in (0, 4294967295)", "(0x0, 0xffffffff)", true),
        ("key not in (1, 3)", "(.., 0x1) (0x1, 0x3) (0x3, ..)", true),
        ("key > 5 and key < 3", "", true),
        ("key + 0 > 5", "all", false),
        ("key < 10 and rank > 5", "(.., 0x9]", true),
        ("key < 10 or rank > 5", "all", false),
        ("true", "all", true),
        ("key < -1", "", true),
    ] {
        assert_eq!(shown(text), (keys.to_owned(), exact), "{text}");
    }
    let schema = Schema::new(KeyType::Utf8, ValueType::None);
    let prefix = Predicate::parse("key like 'ab%'", &schema).expect("parses");
    assert_eq!(prefix.key_ranges()[0].to_string(), "[\"ab\", \"ac\")");
    let schema = Schema::new(KeyType::Bytes, ValueType::None);
    let prefix = Predicate::parse("key starts with '\\x61ff'", &schema).expect("parses");
    assert_eq!(prefix.key_ranges()[0].to_string(), "[\\x61ff, \"b\")");
    let prefix = Predicate::parse("key starts with '\\xff'", &schema).expect("parses");
    assert_eq!(prefix.key_ranges()[0].to_string(), "[\\xff, ..)");
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let record = Record::new(vec![Field::new("left", FieldKind::U32), Field::new("a b", FieldKind::F64)]);
    let record = record.expect("is a record");
    let schema = Schema { record: Some(record.clone()), ..Schema::new(KeyType::U64, record.storage()) };
    for (text, column, marked, what) in [
        ("", 1, 1, "missing condition"),
        ("key <", 6, 1, "expected an operand, found the end"),
        ("key", 1, 3, "expected a condition, found a whole number"),
        ("key < 5 key", 9, 3, "'key' after a complete expression"),
        ("kee < 5", 1, 3, "unknown name 'kee'"),
        ("value < 5", 1, 5, "the value has several fields"),
        ("left == 'abc'", 1, 13, "cannot compare a whole number with a text"),
        ("left == 1.5", 1, 11, "cannot compare a whole number with a float"),
        ("1 < left < 5", 10, 1, "a comparison of a comparison"),
        ("key && left", 5, 2, "unknown operator '&&'"),
        ("!key", 1, 1, "unknown operator '!'"),
        ("key == 12x", 8, 3, "invalid number '12x'"),
        ("key == 0x", 8, 2, "invalid number '0x'"),
        ("key == 'abc", 8, 4, "missing closing quote"),
        ("(key == 1", 10, 1, "expected ')', found the end"),
        ("key in 5", 8, 1, "expected '(', found '5'"),
        ("key between 5 or 6", 15, 2, "expected 'and', found 'or'"),
        ("key like 'a%b%'", 10, 6, "unsupported pattern \"a%b%\""),
        ("key like 'a%'", 1, 3, "a whole number cannot start with a text"),
        ("key / 0 == 1", 1, 7, "division by zero"),
        ("key << 128 == 1", 1, 10, "invalid number of bits to shift by"),
        ("1 == 1", 1, 6, "two constants are compared"),
        ("key is null", 5, 2, "there are no null values"),
        ("`a b` + 1 > 2", 1, 5, "a float cannot be an operand of '+'"),
        ("key == 999999999999999999999999999999999999999999", 8, 42, "larger than any key"),
        ("`a b` == 9007199254740993", 1, 25, "9007199254740993 is not exact as a float"),
        ("key = 5 and äö = 7", 13, 2, "unknown name 'äö'"),
        ("key # 5", 5, 1, "unexpected character '#'"),
    ] {
        let error = Predicate::parse(text, &schema).expect_err(text);
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.column(), column, "{text}: {error}");
        let caret = error.caret();
        let line = caret.lines().nth(1).expect("carets");
        assert_eq!(line, format!("{}{}", " ".repeat(column - 1), "^".repeat(marked)), "{text}");
    }
    let known = Predicate::parse("kee < 5", &schema).expect_err("is unknown").to_string();
    assert_eq!(known, "unknown name 'kee': column 1 of the expression: write one of key, rank, left, `a b`");
    // Nothing overflows the stack.
    for deep in [
        format!("{}key{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{} key = 1", "not ".repeat(100_000)),
        format!("key == 1{}", " + 1".repeat(100_000)),
        format!("{}5 == key", "-".repeat(100_000)),
    ] {
        assert!(Predicate::parse(&deep, &schema).expect_err("is deep").what.contains("deep"));
    }
    let wide = vec!["key = 1"; 10_000].join(" or ");
    assert!(Predicate::parse(&wide, &schema).is_ok());
}

#[test]
fn no_text_panics() {
    let pieces = [
        "key",
        "value",
        "rank",
        "(",
        ")",
        "and",
        "or",
        "not",
        "in",
        "like",
        "'a%'",
        "between",
        "1",
        "-",
        "0x",
        "<",
        "==",
        ",",
        "&",
        ">>",
        "`",
        "\"",
        "é",
        "[",
        ":",
        "1e",
        ".",
        "5.5",
        "starts",
        "with",
        "%",
        "99999999999999999999",
    ];
    let mut random = Random(11);
    for schema in [
        Schema::new(KeyType::U64, ValueType::None),
        Schema::new(KeyType::Utf8, ValueType::F32),
        Schema::new(KeyType::U128, ValueType::Fixed(3)),
    ] {
        for _ in 0..5000 {
            let count = random.below(9);
            let text: Vec<&str> = (0..count).map(|_| random.of(&pieces)).collect();
            let text = text.join(random.of(&["", " "]));
            if let Err(error) = Predicate::parse(&text, &schema) {
                assert!(!error.caret().is_empty() && !error.to_string().is_empty());
            }
            let _ = Projection::parse(&text, &schema);
        }
    }
}

#[test]
fn columns_become_others() {
    let record = Record::new(vec![
        Field::new("a", FieldKind::I16),
        Field::new("b", FieldKind::F32),
        Field::new("c", FieldKind::Fixed(2)),
    ])
    .expect("is a record");
    let mut strings = Strings::default();
    for row in 0..3_i16 {
        let mut packed = (row - 1).to_le_bytes().to_vec();
        packed.extend_from_slice(&(f32::from(row) / 2.0).to_le_bytes());
        packed.extend_from_slice(&[b'x', row as u8]);
        strings.push(&packed);
    }
    // Eight bytes: a word.
    let words = strings.iter().map(|packed| u64::from_le_bytes(packed.try_into().expect("8"))).collect();
    let columns = (Column::U64(vec![0x0102_0304_0506_0708, 7, u64::MAX]), Column::U64(words));
    let schema =
        Schema { record: Some(record), key_name: "id".into(), ..Schema::new(KeyType::U64, ValueType::U64) };
    let tuples = Tuples { first_rank: 5, keys: (&columns.0).into(), values: (&columns.1).into() };
    let apply = |list: &str| {
        let projection = Projection::parse(list, &schema).unwrap_or_else(|error| panic!("{list}: {error}"));
        let out = projection.schema();
        let (mut keys, mut values) = (Column::for_key(out.key_type), Column::for_value(out.value_type));
        projection.apply(&tuples, &mut keys, &mut values).expect(list);
        let record = out.record.as_ref().map_or(out.value_type.to_string(), ToString::to_string);
        (keys, values, format!("{} {} {record} {}", out.key_name, out.key_type, projection.keeps_order()))
    };
    assert_eq!(
        apply("key,value"),
        (columns.0.clone(), columns.1.clone(), "id u64 record<a: i16, b: f32, c: bytes2> true".into())
    );
    let (keys, values, shown) = apply("key[48:16],low=key[0:8]+key[8:4],rank");
    assert_eq!(shown, "key_48_16 u32 record<low: u16, rank: u64> true");
    assert_eq!(keys, Column::U32(vec![0x0102, 0, 0xFFFF]));
    let Column::Bytes(packed) = values else { panic!("ten bytes") };
    assert_eq!(packed.get(0), [0x87, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(packed.get(2)[..2], 0x0FFF_u16.to_le_bytes());
    let (keys, values, shown) = apply("a,c");
    assert_eq!(shown, "a i32 bytes2 false");
    assert_eq!(keys, Column::U32((-1..2_i32).map(Key::encode).collect()));
    let Column::Bytes(packed) = values else { panic!("bytes") };
    assert_eq!(packed.get(1), b"x\x01");
    let (keys, values, shown) = apply("half=b,a");
    assert_eq!(shown, "half f64 i32 false");
    assert_eq!(keys, Column::U64(vec![0.0.encode(), 0.5.encode(), 1.0.encode()]));
    assert_eq!(values, Column::U32((-1..2_i32).map(Value::to_bits).collect()));
    let (keys, values, shown) = apply("rank");
    assert_eq!((keys, values, &shown[..]), (Column::U64(vec![5, 6, 7]), Column::None, "rank u64 none true"));
    let (keys, _, shown) = apply("a[0:8]+key[60:4]+a[8:8]");
    assert_eq!(shown, "a_0_8_key_60_4_a_8_8 u32 none false");
    assert_eq!(keys, Column::U32(vec![0xFF0FF, 0, 0x01F00]));
    assert_eq!(apply("key,b").2, "id u64 f32 true");
    assert_eq!(apply("key[0:64]").0, columns.0);
    assert_eq!(apply("key[32:32]+key[0:32]").0, columns.0);
    for (list, what) in [
        ("", "missing columns"),
        ("key,", "expected a name, found the end"),
        ("key,d", "unknown name 'd'"),
        ("value", "the value has several fields"),
        ("key,x=value", "has no name of its own"),
        ("key,b[0:3]", "b is f32, which has no bits"),
        ("key,a[8:9]", "a has 16 bits"),
        ("key,a[3:0]", "a has 16 bits"),
        ("key,key+a", "80 bits"),
        ("key,a,a", "two fields of a record have the name \"a\""),
        ("key a", "'a' after a column"),
        ("key[1]", "expected ':', found ']'"),
        ("key[x:1]", "expected a number of bits, found 'x'"),
    ] {
        let error = Projection::parse(list, &schema).expect_err(list);
        assert!(error.to_string().contains(what), "{list}: {error}");
    }
    // A float that cannot be a key.
    let values = Column::U32(vec![1.5_f32.to_bits(), f32::NAN.to_bits()]);
    let keys = Column::U32(vec![1, 2]);
    let tuples = Tuples { first_rank: 5, keys: (&keys).into(), values: (&values).into() };
    let projection =
        Projection::parse("value,key", &Schema::new(KeyType::U32, ValueType::F32)).expect("parses");
    let (mut keys, mut values) = (Column::for_key(KeyType::F64), Column::for_value(ValueType::U32));
    assert_eq!(projection.apply(&tuples, &mut keys, &mut values).expect_err("is NaN").rank, 6);
    let text = Schema::new(KeyType::Utf8, ValueType::Utf8);
    assert!(Projection::parse("value,key", &text).is_ok());
    assert_eq!(u64::read(&7_u64.to_le_bytes()), 7);
}

#[test]
fn numbers_of_128_bits_fall_as_far_as_zero() {
    let keys = Column::U128(vec![6, 7, 9, 10, 1 << 100]);
    let schema = Schema {
        key_type: KeyType::U128,
        value_type: ValueType::None,
        record: None,
        key_name: String::new(),
        value_name: String::new(),
        logical: Default::default(),
        is_raw: false,
    };
    for (text, wanted) in [
        ("key - 5 > rank", [true, true, true, true, true]),
        ("key - 5 == rank + 1", [true, true, false, false, false]),
        ("key - 1 - 1 > 5", [false, false, true, true, true]),
        ("(key - 6) * 2 < 3", [true, true, false, false, false]),
    ] {
        let condition = Predicate::parse(text, &schema).expect(text);
        let chunk = Chunk { keys: keys.clone(), ..Chunk::default() };
        let mut keep = Bitmap::new(5);
        condition.evaluate_into(&chunk, &mut keep).expect(text);
        let found: Vec<bool> = (0..5).map(|at| keep.words_mut()[0] >> at & 1 == 1).collect();
        assert_eq!(found, wanted, "{text}");
    }
    let condition = Predicate::parse("key - 7 >= rank", &schema).expect("a condition");
    let error =
        condition.evaluate_into(&Chunk { keys, ..Chunk::default() }, &mut Bitmap::new(5)).unwrap_err();
    assert!(error.to_string().contains("rank 0"), "{error}");
}

#[test]
fn whole_numbers_that_no_f32_is_are_refused() {
    let schema = Schema {
        key_type: KeyType::U32,
        value_type: ValueType::F32,
        record: None,
        key_name: String::new(),
        value_name: String::new(),
        logical: Default::default(),
        is_raw: false,
    };
    for text in ["value == 16777216", "value > 0.1", "value < 16777217.0", "value in (3, 0.5)"] {
        assert!(Predicate::parse(text, &schema).is_ok(), "{text}");
    }
    for text in ["value == 16777217", "16777217 > value", "value in (1, 33554433)"] {
        let error = Predicate::parse(text, &schema).expect_err(text);
        assert!(error.what.contains("is not exact as an f32"), "{text}: {error}");
    }
}
