//! Files of numbers: every type, sizes at edges, and words of every length.

use super::cells::{pairs, unsigned};
use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;

pub(super) fn plans() -> Vec<Plan> {
    let mut all = types();
    all.extend(sizes());
    all.extend(words());
    all.extend(spines());
    all
}

fn signed(number: i64) -> Cell {
    Cell::Signed(number)
}

fn types() -> Vec<Plan> {
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        5e-324,
        f64::MAX,
        f64::from_bits(0x7FF8_DEAD_BEEF_0001),
    ];
    let double = |at: usize| Cell::float(special.get(at).copied().unwrap_or(at as f64 / 8.0 - 1.0));
    let single = |at: u64| Cell::Float32([f32::NAN, -0.0, f32::MAX, 1e-45][at as usize % 4].to_bits());
    let floats = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1.5,
        -5e-324,
        -0.0,
        5e-324,
        0.1,
        1.0,
        1.5,
        1e300,
        f64::MAX,
        f64::INFINITY,
    ];
    let wide = |at: u64| u128::from(mix(at)) << 64 | u128::from(mix(!at));
    vec![
        Plan::new(
            "u32-u32",
            (KeyType::U32, ValueType::U32),
            pairs(45, |at| mix(at) >> 32, |at| at),
            "Keys and values of u32.",
        ),
        Plan::new(
            "u64-u64",
            (KeyType::U64, ValueType::U64),
            pairs(45, mix, |at| mix(!at)),
            "Keys and values of u64.",
        )
        .names("id", "number"),
        Plan::new(
            "i32-f32",
            (KeyType::I32, ValueType::F32),
            (0..40).map(|at| (signed((mix(at) as i32).into()), single(at))).collect(),
            "Keys of i32 on both sides of zero, values of f32 with NaN and -0.0.",
        ),
        Plan::new(
            "i64-f64",
            (KeyType::I64, ValueType::F64),
            (0..30).map(|at| (signed(mix(at as u64).cast_signed()), double(at))).collect(),
            "Keys of i64, values of f64 with NaN of two payloads, infinities and both zeros.",
        ),
        Plan::new(
            "u32-i64",
            (KeyType::U32, ValueType::I64),
            (0..30).map(|at| (unsigned(mix(at) >> 40), signed(mix(!at).cast_signed()))).collect(),
            "Keys of u32 beside values that are longer.",
        ),
        Plan::new(
            "u64-none",
            (KeyType::U64, ValueType::None),
            (0..50).map(|at| (unsigned(mix(at)), Cell::None)).collect(),
            "Keys of u64 without values.",
        ),
        Plan::new(
            "u128-u64",
            (KeyType::U128, ValueType::U64),
            (0..30).map(|at| (unsigned(wide(at)), unsigned(at))).collect(),
            "Keys of u128.",
        ),
        Plan::new(
            "f64-u32",
            (KeyType::F64, ValueType::U32),
            floats.iter().zip(0u32..).map(|(&key, at)| (Cell::float(key), unsigned(at))).collect(),
            "Keys of f64: infinities, subnormal numbers, and -0.0, which the file holds as 0.0.",
        ),
    ]
}

fn sizes() -> Vec<Plan> {
    let equal = |at: u64| (at / 11) * 1000;
    let extreme: Vec<(Cell, Cell)> = [u64::MAX, 0, u64::MAX, 1, u64::MAX - 1, 0, 1 << 63, (1 << 63) - 1]
        .iter()
        .zip(0u32..)
        .map(|(&key, at)| (unsigned(key), unsigned(at)))
        .collect();
    let most = vec![(unsigned(u32::MAX), unsigned(u32::MAX)); 9];
    vec![
        Plan::new("empty", (KeyType::U64, ValueType::U64), Vec::new(), "A file without tuples.")
            .names("id", ""),
        Plan::new(
            "one",
            (KeyType::I64, ValueType::F32),
            vec![(signed(-7), Cell::Float32(2.5f32.to_bits()))],
            "One tuple.",
        ),
        Plan::new(
            "line-and-one",
            (KeyType::U32, ValueType::U32),
            pairs(9, |at| at * 9, |at| at),
            "A full line and a line of one tuple.",
        ),
        Plan::new(
            "duplicates",
            (KeyType::U32, ValueType::U32),
            pairs(60, equal, |at| at),
            "Eleven tuples of each key, over several lines, in the order of the input.",
        ),
        Plan::new(
            "equal",
            (KeyType::U64, ValueType::U64),
            pairs(45, |_| 77 << 40, |at| at),
            "One key, forty-five times, over two lines of the spine's bottom level.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "largest",
            (KeyType::U32, ValueType::U32),
            most,
            "The largest key alone, whose word is that of free slots.",
        ),
        Plan::new(
            "extremes",
            (KeyType::U64, ValueType::U32),
            extreme,
            "The smallest and the largest keys, some twice.",
        ),
        Plan::new(
            "unique",
            (KeyType::U32, ValueType::None),
            (0..40u32).map(|at| (unsigned(at * 3), Cell::None)).collect(),
            "The build promised that all keys are different.",
        )
        .unique(),
        Plan::new(
            "blocks",
            (KeyType::U32, ValueType::U32),
            pairs(2500, |at| mix(at) >> 32, |at| at),
            "Tuple lines of three blocks, and a spine of two levels.",
        ),
    ]
}

fn words() -> Vec<Plan> {
    let near = |at: u64| (mix(at) >> 32).cast_signed() - (1 << 31);
    let kept = 0x7000_0F00_0330_C00F_u64;
    let apart = move |at: u64| (mix(at) & kept) | 0x8000_00F0_0000_0000;
    vec![
        Plan::new(
            "short-distance",
            (KeyType::I64, ValueType::U64),
            (0..60).map(|at| (signed(near(at)), unsigned(at))).collect(),
            "Words of 4 bytes for keys of i64: distances from the smallest key.",
        ),
        Plan::new(
            "short-runs",
            (KeyType::U64, ValueType::U32),
            (0..60).map(|at| (unsigned(apart(at)), unsigned(at))).collect(),
            "Words of 4 bytes for keys of u64: four runs of bits.",
        ),
        Plan::new(
            "short-8",
            (KeyType::U128, ValueType::None),
            (0..50).map(|at| (unsigned(u128::from(mix(at)) << 40 | 0xAB << 120), Cell::None)).collect(),
            "Words of 8 bytes for keys of u128: one run of bits in the middle.",
        ),
        Plan::new(
            "short-float",
            (KeyType::F64, ValueType::U64),
            (0..50u32).map(|at| (Cell::float(f64::from(at) - 25.0), unsigned(at))).collect(),
            "Short words for keys of f64 on both sides of zero.",
        ),
        Plan::new(
            "short-top",
            (KeyType::U64, ValueType::U32),
            pairs(20, |at| u64::MAX - at * 3, |at| at),
            "Short words near the largest key: queries above all keys and below the base.",
        ),
        Plan::new(
            "short-one",
            (KeyType::U64, ValueType::U64),
            vec![(unsigned(u64::MAX), unsigned(1u32))],
            "One tuple, with a short word.",
        ),
    ]
}

/// Tuples of `u64` far apart, of which two on both sides of a line's end are neighbours: no code parts them.
pub(crate) fn inexact() -> Vec<(Cell, Cell)> {
    let mut keys: Vec<u64> = (0..280).map(mix).collect();
    keys.sort_unstable();
    keys[104] = keys[103] + 1;
    (0u32..).zip(keys).map(|(at, key)| (unsigned(key), unsigned(at))).collect()
}

fn spines() -> Vec<Plan> {
    let runs = |at: u64| (mix(at / 37) & 0xFFFF_FF00) | (at % 37);
    vec![
        Plan::new(
            "spine-8",
            (KeyType::U32, ValueType::U32),
            pairs(600, |at| at + 1000, |at| at ^ 77),
            "A spine of codes of 8 bits, of two levels.",
        ),
        Plan::new(
            "spine-16",
            (KeyType::U64, ValueType::U64),
            pairs(240, mix, |at| at),
            "A spine of codes of 16 bits.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "spine-32",
            (KeyType::I64, ValueType::I32),
            (0..400)
                .map(|at| (signed(runs(at).cast_signed() - (1 << 31)), signed(-(at.cast_signed()))))
                .collect(),
            "A spine of codes of 32 bits.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "spine-raw",
            (KeyType::U64, ValueType::U64),
            pairs(400, |at| ((at / 24) << 57) | (at % 24), |at| at),
            "A spine of full separators, of three levels.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "spine-inexact",
            (KeyType::U64, ValueType::U64),
            inexact(),
            "A spine line that is flagged inexact: a search goes on to later lines.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "spine-deep",
            (KeyType::U128, ValueType::U64),
            (0..260u64)
                .map(|at| (unsigned(u128::from(mix(at / 3)) << 64 | u128::from(at % 3)), unsigned(at)))
                .collect(),
            "Words of 16 bytes under a spine of several levels.",
        ),
        Plan::new(
            "lines",
            (KeyType::U64, ValueType::U32),
            pairs(90, mix, |at| at),
            "Tuple lines without any search structure.",
        )
        .layout("lines"),
    ]
}
