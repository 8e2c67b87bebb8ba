//! Files of chance: any types, sizes, layouts and distributions, made by the builder, with answers of the model.

use crate::broken;
use crate::damage;
use crate::plan::Plan;
use crate::valid;
use crate::word::Cell;
use anyhow::Result;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::Random;
use std::path::Path;

/// Requests that a file is asked, about.
const REQUESTS: usize = 400;

/// Writes `files` files that depend on a seed, and the fixed files that the kit does not keep.
///
/// # Errors
/// Those of the file system.
pub fn write(seed: u64, files: u64, folder: &Path) -> Result<()> {
    for number in 0..files {
        let plan = plan(seed, number);
        plan.case_of(plan.build(), REQUESTS).write(folder)?;
    }
    for plan in valid::more() {
        plan.case().write(folder)?;
    }
    for case in broken::more() {
        case.write(folder)?;
    }
    damage::write(seed, folder)
}

/// Plans file `number` of a seed.
#[must_use]
pub fn plan(seed: u64, number: u64) -> Plan {
    planned(seed, number, false)
}

/// Plans file `number` of a seed, with more sections and at most some hundred tuples.
pub(crate) fn rich(seed: u64, number: u64) -> Plan {
    planned(seed.wrapping_add(0x5EED), number, true)
}

fn planned(seed: u64, number: u64, is_rich: bool) -> Plan {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number << 20);
    let has_urls = is_rich && number % 4 == 1;
    let key_type = if has_urls { KeyType::Utf8 } else { key_type(&mut random) };
    let value_type = value_type(&mut random);
    let count = match random.below(8) {
        _ if is_rich => 20 + random.below(if number.is_multiple_of(9) { 2500 } else { 300 }),
        0 => random.below(3),
        1..=3 => random.below(100),
        4..=6 => random.below(1000),
        _ => random.below(4000),
    };
    // Many equal addresses fill pages.
    let urls = if number % 12 == 5 { 4 } else { 5000 };
    let shape = if has_urls { Shape::Urls(urls) } else { Shape::new(&mut random, count) };
    let input: Vec<(Cell, Cell)> =
        (0..count).map(|_| (shape.key(key_type, &mut random), value(value_type, &mut random))).collect();
    let layout = layout(key_type, value_type, is_rich, &mut random);
    // Keys by page, or in a column.
    let layout = if has_urls && number % 8 == 1 { "lines,spine".to_owned() } else { layout };
    let about = format!("{count} tuples of {key_type} to {value_type}, keys {}, {layout}.", shape.name());
    Plan::new(&format!("seed-{seed}-{number:03}"), (key_type, value_type), input, &about).layout(&layout)
}

fn key_type(random: &mut Random) -> KeyType {
    match random.below(11) {
        0 | 1 => KeyType::U32,
        2 | 3 => KeyType::U64,
        4 => KeyType::I32,
        5 => KeyType::I64,
        6 => KeyType::U128,
        7 => KeyType::F64,
        8 => KeyType::Fixed([1, 3, 8, 16, 40][random.below(5) as usize]),
        9 => KeyType::Bytes,
        _ => KeyType::Utf8,
    }
}

fn value_type(random: &mut Random) -> ValueType {
    match random.below(12) {
        0 | 1 => ValueType::U32,
        2 | 3 => ValueType::U64,
        4 => ValueType::I32,
        5 => ValueType::I64,
        6 => ValueType::F32,
        7 => ValueType::F64,
        8 => ValueType::Fixed(1 + random.below(20) as u16),
        9 => ValueType::Bytes,
        10 => ValueType::Utf8,
        _ => ValueType::None,
    }
}

/// How the keys of a file are spread.
enum Shape {
    /// Over all that there is.
    Even,
    /// From a first one on, few steps apart.
    Dense(u128, u64),
    /// In runs of neighbours at so many places.
    Crowded(Vec<u128>),
    /// At so many places, each many times.
    Few(Vec<u128>),
    /// In some bits only.
    Bits(u128, u128),
    /// As addresses of so many pages.
    Urls(u64),
}

impl Shape {
    fn new(random: &mut Random, count: u64) -> Self {
        let wide = |random: &mut Random| u128::from(random.next()) << 64 | u128::from(random.next());
        match random.below(6) {
            0 | 1 => Self::Even,
            2 => Self::Dense(wide(random), 1 + random.below(5)),
            3 => Self::Crowded((0..=count / 40).map(|_| wide(random)).collect()),
            4 => Self::Few((0..=random.below(30)).map(|_| wide(random)).collect()),
            _ => Self::Bits(wide(random), wide(random) & wide(random) & wide(random)),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Dense(..) => "dense",
            Self::Crowded(_) => "crowded",
            Self::Few(_) => "equal to many others",
            Self::Bits(..) => "different in some bits",
            Self::Urls(_) => "addresses of pages",
        }
    }

    /// Returns 128 bits of which keys of any type are made.
    fn bits(&self, random: &mut Random) -> u128 {
        let all = u128::from(random.next()) << 64 | u128::from(random.next());
        match self {
            Self::Even | Self::Urls(_) => all,
            Self::Dense(first, step) => {
                let more = u128::from(random.below(5000) * step);
                first.wrapping_add(more << 64).wrapping_add(more)
            }
            Self::Crowded(places) => {
                let more = u128::from(random.below(60));
                places[random.below(places.len() as u64) as usize].wrapping_add(more << 64 | more)
            }
            Self::Few(places) => places[random.below(places.len() as u64) as usize],
            Self::Bits(first, bits) => first ^ (all & bits),
        }
    }

    fn key(&self, key_type: KeyType, random: &mut Random) -> Cell {
        if let Self::Urls(pages) = *self {
            return Cell::Bytes(valid::url(random.below(pages)));
        }
        let bits = self.bits(random);
        // Numbers have the lower bits, texts are made of all of them.
        match key_type {
            KeyType::U32 => Cell::Unsigned((bits as u32).into()),
            KeyType::U64 => Cell::Unsigned((bits as u64).into()),
            KeyType::U128 => Cell::Unsigned(bits),
            KeyType::I32 => Cell::Signed((bits as i32).into()),
            KeyType::I64 => Cell::Signed(bits as i64),
            KeyType::F64 => {
                let number = f64::from_bits(bits as u64);
                Cell::float(if number.is_nan() { bits as i64 as f64 } else { number })
            }
            KeyType::Fixed(bytes) => {
                let all = bits.to_be_bytes();
                Cell::Bytes((0..bytes.into()).map(|at: usize| all[at % 16]).collect())
            }
            KeyType::Bytes => {
                let length = (bits >> 7) as usize % 40;
                Cell::Bytes(bits.to_be_bytes().iter().copied().cycle().take(length).collect())
            }
            KeyType::Utf8 => {
                let words = ["a", "be", "see", "été", "\0", "example.org/", "-", "0"];
                let length = (bits >> 9) as usize % 14;
                let text: String = (0..length).map(|at| words[(bits >> (3 * at)) as usize % 8]).collect();
                Cell::Bytes(text.into_bytes())
            }
        }
    }
}

fn value(value_type: ValueType, random: &mut Random) -> Cell {
    let bits = random.next();
    match value_type {
        ValueType::None => Cell::None,
        ValueType::U32 => Cell::Unsigned((bits as u32).into()),
        ValueType::U64 => Cell::Unsigned(bits.into()),
        ValueType::I32 => Cell::Signed((bits as i32).into()),
        ValueType::I64 => Cell::Signed(bits.cast_signed()),
        ValueType::F32 => Cell::Float32(bits as u32),
        ValueType::F64 => Cell::Float64(bits),
        ValueType::Fixed(bytes) => Cell::Bytes((0..bytes).map(|at| (bits % 40) as u8 ^ at as u8).collect()),
        ValueType::Bytes => Cell::Bytes(vec![bits as u8 % 50; (bits >> 8) as usize % 9]),
        ValueType::Utf8 => {
            Cell::from(&*["ö", "a", "€"][(bits >> 16) as usize % 3].repeat((bits >> 8) as usize % 9))
        }
    }
}

fn layout(key_type: KeyType, value_type: ValueType, is_rich: bool, random: &mut Random) -> String {
    let is_number = !key_type.is_bytes();
    // One of so many files has the part.
    let parts = [
        (2, "spine", true),
        (2, "grid", true),
        (6, "columns", true),
        (3, "wide", is_number),
        (6, "packed", is_number && key_type.bytes() < 16),
        (6, "harmonia:16:80", true),
        (6, "btree:8", true),
    ];
    let mut all = vec!["lines"];
    let share = |one_of: u64| if is_rich { 2 } else { one_of };
    all.extend(parts.iter().filter(|part| part.2 && random.below(share(part.0)) == 0).map(|part| part.1));
    all.extend(["fast:auto", "fast"].into_iter().find(|_| random.below(share(6)) == 0));
    if value_type.is_bytes() {
        all.extend(["dictionary", "plain"].into_iter().find(|_| random.below(3) == 0));
    }
    all.join(",")
}
