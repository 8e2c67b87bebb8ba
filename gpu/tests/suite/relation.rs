//! Our own SELECT, segmented reduction, PROJECT and PRODUCT against loops over the tuples: sizes at the edges of
//! vectors and tiles, columns that are not aligned, runs shorter and longer than tiles, numbers at their ends.

#![allow(dead_code, reason = "each test program uses its part")]

use crate::suite::mix;
use pleach_gpu::relation::condition::{Op, Operand, Program};
use pleach_gpu::relation::{
    Column, Combine, Condition, Numbers, Part, Projection, Reduction, Relation, Side, Test, product, project,
    reduce, select, sort,
};
use pleach_gpu::{DeviceBuffer, Gpu, GpuError, GpuOptions, Stream};

type Tuple = (u64, u64);

fn bytes_of(words: impl Iterator<Item = u64>, width: u8) -> Vec<u8> {
    words.flat_map(|word| word.to_le_bytes().into_iter().take(width.into())).collect()
}

fn most(bytes: u8) -> u64 {
    u64::MAX.checked_shr(64 - 8 * u32::from(bytes)).unwrap_or(0)
}

/// Tuples on the device; `skipped` others are before them in the same memory, so that they are not aligned.
fn relation(stream: &Stream, tuples: &[Tuple], widths: [u8; 2], skipped: usize) -> Relation {
    let column = |word: fn(&Tuple) -> u64, bytes: u8| {
        let words = (0..skipped).map(|_| 77).chain(tuples.iter().map(word));
        let whole = DeviceBuffer::from_host(stream, &bytes_of(words, bytes)).expect("fits");
        whole.part(skipped as u64 * u64::from(bytes), tuples.len() as u64 * u64::from(bytes))
    };
    let values =
        (widths[1] > 0).then(|| Column { buffer: column(|tuple| tuple.1, widths[1]), bytes: widths[1] });
    Relation::dense(column(|tuple| tuple.0, widths[0]), widths[0], values, tuples.len() as u64).expect("fits")
}

/// All tuples; values are 0 where there are none.
fn read(stream: &Stream, relation: &Relation) -> Vec<Tuple> {
    let words = |buffer: &DeviceBuffer, bytes: u8| {
        let mut all = vec![0; relation.tuples() as usize * usize::from(bytes)];
        assert_eq!(buffer.bytes(), all.len() as u64);
        buffer.copy_to_host(stream, &mut all).expect("copied");
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
        all.chunks_exact(bytes.into()).map(word).collect::<Vec<u64>>()
    };
    let keys = words(relation.keys(), relation.key_bytes());
    let values = match relation.values() {
        Some(column) => words(&column.buffer, column.bytes),
        None => vec![0; keys.len()],
    };
    keys.into_iter().zip(values).collect()
}

#[track_caller]
fn assert_same(found: &[Tuple], wanted: &[Tuple], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let wrong = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    assert!(wrong.is_none(), "{what}: {wrong:?}: {:?}", wrong.map(|at| (found[at], wanted[at])));
}

/// Result of a program; `None` if a step has no result.
fn run(ops: &[Op], words: &[u64], tuple: Tuple, rank: u64) -> Option<u64> {
    let mut stack: Vec<u64> = Vec::new();
    for op in ops {
        let mut pop = || stack.pop().expect("a word");
        let word = match *op {
            Op::Load { operand, flip, shift, bits, is_signed } => {
                let word = [tuple.0, tuple.1, rank][operand as usize] ^ flip;
                let word = u128::from(word) >> shift & ((1 << bits) - 1);
                let is_negative = is_signed && word >> (bits - 1) & 1 == 1;
                if is_negative {
                    (word as u64) | u64::MAX.checked_shl(bits).unwrap_or(0)
                } else {
                    word as u64
                }
            }
            Op::Push(word) => word,
            Op::Not => pop() ^ 1,
            Op::Among { start, length } => {
                let word = pop();
                words[start as usize..][..length as usize].contains(&word).into()
            }
            binary => {
                let (right, left) = (pop(), pop());
                let (signed, unsigned) = ([left as i64, right as i64], [left, right]);
                let by = right as u32 & 63;
                match binary {
                    Op::Add => left.wrapping_add(right),
                    Op::Subtract => left.wrapping_sub(right),
                    Op::Multiply => left.wrapping_mul(right),
                    Op::AddSigned => signed[0].checked_add(signed[1])? as u64,
                    Op::SubtractSigned => signed[0].checked_sub(signed[1])? as u64,
                    Op::MultiplySigned => signed[0].checked_mul(signed[1])? as u64,
                    Op::AddUnsigned => left.checked_add(right)?,
                    Op::SubtractUnsigned => left.checked_sub(right)?,
                    Op::MultiplyUnsigned => left.checked_mul(right)?,
                    Op::DivideSigned => signed[0].checked_div(signed[1])? as u64,
                    Op::DivideUnsigned => left.checked_div(right)?,
                    Op::RemainderSigned if signed[1] == 0 => return None,
                    Op::RemainderSigned => signed[0].wrapping_rem(signed[1]) as u64,
                    Op::RemainderUnsigned => left.checked_rem(right)?,
                    Op::And => left & right,
                    Op::Or => left | right,
                    Op::Xor => left ^ right,
                    Op::Left => left << by,
                    Op::RightSigned => (signed[0] >> by) as u64,
                    Op::RightUnsigned => left >> by,
                    Op::Equal => (left == right).into(),
                    Op::BelowSigned => (signed[0] < signed[1]).into(),
                    Op::BelowUnsigned => (unsigned[0] < unsigned[1]).into(),
                    Op::AtMostUnsigned => (left <= right).into(),
                    Op::Load { .. } | Op::Push(_) | Op::Not | Op::Among { .. } => unreachable!(),
                }
            }
        };
        stack.push(word);
    }
    assert_eq!(stack.len(), 1);
    stack.pop()
}

fn load(operand: Operand) -> Op {
    Op::Load { operand, flip: 0, shift: 0, bits: 64, is_signed: false }
}

fn programs() -> Vec<Vec<Op>> {
    use Op::{Add, And, AtMostUnsigned, Equal, Multiply, Not, Or, Push, Subtract};
    let (key, value, rank) = (load(Operand::Key), load(Operand::Value), load(Operand::Rank));
    let field =
        |shift, bits, is_signed, flip| Op::Load { operand: Operand::Value, flip, shift, bits, is_signed };
    vec![
        vec![Push(1)],
        vec![key, Push(100), Subtract, Push(5000), AtMostUnsigned],
        // Four words deep.
        vec![key, value, rank, Push(3), value, Multiply, Add, Op::Xor, And, Push(1), And],
        vec![
            field(3, 5, true, 0),
            Push((-4i64) as u64),
            Op::BelowSigned,
            Not,
            rank,
            Push(7),
            And,
            Push(7),
            Equal,
            Or,
        ],
        vec![field(0, 32, true, 1 << 31), Push(3), Op::RightSigned, field(2, 9, false, 0), Op::BelowSigned],
        vec![rank, Push(10), Op::RemainderUnsigned, Op::Among { start: 1, length: 3 }],
        vec![
            Push(900),
            key,
            Push(1),
            Or,
            Op::DivideUnsigned,
            Push(2),
            Op::RightUnsigned,
            Push(3),
            Op::BelowUnsigned,
        ],
    ]
}

fn selects(stream: &Stream, widths: [u8; 2]) {
    let [key_bytes, value_bytes] = widths;
    let tile = 16384 / usize::from(key_bytes);
    for (turn, count) in [0, 1, 31, tile - 1, tile, tile + 1, 3 * tile + 5].into_iter().enumerate() {
        let key = |i: u64| (i / 2 * 3).saturating_add(if i % 5 == 4 { most(key_bytes) - 99_999 } else { 0 });
        let mut keys: Vec<u64> = (0..count as u64).map(key).collect();
        keys.sort_unstable();
        let value = |i: usize| mix(i as u64) & most(value_bytes);
        let tuples: Vec<Tuple> = keys.iter().enumerate().map(|(i, &key)| (key, value(i))).collect();
        let from = relation(stream, &tuples, widths, [0, 1, 0][turn % 3]);
        let check = |condition: &Condition, is_taken: &dyn Fn(usize, Tuple) -> bool| {
            let taken = select(stream, &from, condition).expect("fits");
            let all = tuples.iter().copied().enumerate();
            let wanted: Vec<Tuple> =
                all.filter(|&(i, tuple)| is_taken(i, tuple)).map(|pair| pair.1).collect();
            let what = format!("{widths:?}: {count} tuples: {condition:?}");
            assert_same(&read(stream, &taken.relation), &wanted, &what);
        };
        let passes =
            |test: Test, word: u64| word >= test.low && word <= test.high && word & test.mask == test.bits;
        let tests = [
            Test::range(0, u64::MAX),
            Test::range(4, 3000),
            Test::range(9, 8),
            Test::range(most(key_bytes), u64::MAX),
            Test::bits(5, 1),
            Test { low: 3, high: u64::MAX - 1, mask: u64::MAX << 40 | 1, bits: 0 },
            Test::bits(1, 3),
        ];
        for test in tests {
            check(&Condition::Keys(test), &|_, tuple| passes(test, tuple.0));
        }
        check(&Condition::Firsts, &|i, tuple| i == 0 || tuples[i - 1].0 != tuple.0);
        if value_bytes == 0 {
            continue;
        }
        for test in [Test::bits(1, 1), Test::range(1 << 20, most(value_bytes) / 3 * 2)] {
            check(&Condition::Values(test), &|_, tuple| passes(test, tuple.1));
        }
        for ops in programs() {
            let words = vec![9, 2, 5, 6, 1];
            let program = Program::new(&ops, words.clone()).expect("runs");
            let is_taken = |i: usize, tuple| run(&ops, &words, tuple, i as u64) == Some(1);
            check(&Condition::Program(program), &is_taken);
        }
    }
}

/// Each step of two words at the ends of numbers, with the right word on the stack and in the step.
fn steps(stream: &Stream) {
    use Op::{Equal, Push};
    let ends = [0, 1, 2, 63, 1 << 62, i64::MAX as u64, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let pairs: Vec<Tuple> = ends.iter().flat_map(|&a| ends.iter().map(move |&b| (a, b))).collect();
    let from = relation(stream, &pairs, [8, 8], 0);
    let all = [
        Op::Add,
        Op::Subtract,
        Op::Multiply,
        Op::AddSigned,
        Op::SubtractSigned,
        Op::MultiplySigned,
        Op::AddUnsigned,
        Op::SubtractUnsigned,
        Op::MultiplyUnsigned,
        Op::DivideSigned,
        Op::DivideUnsigned,
        Op::RemainderSigned,
        Op::RemainderUnsigned,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::Left,
        Op::RightSigned,
        Op::RightUnsigned,
        Op::Equal,
        Op::BelowSigned,
        Op::BelowUnsigned,
        Op::AtMostUnsigned,
    ];
    let (key, value) = (load(Operand::Key), load(Operand::Value));
    for op in all {
        // Results are distinguished by comparing them with some of them.
        let on_stack = [key, value, op];
        let results: Vec<_> = pairs.iter().map(|&pair| run(&on_stack, &[], pair, 0)).collect();
        let wrong = results.iter().position(Option::is_none);
        let mut wanted: Vec<u64> = results.iter().copied().flatten().collect();
        wanted.sort_unstable();
        wanted.dedup();
        for &result in wanted.iter().step_by(wanted.len().div_ceil(4)) {
            let ops = [&on_stack[..], &[Push(result), Equal]].concat();
            let condition = Condition::Program(Program::new(&ops, vec![]).expect("runs"));
            match (select(stream, &from, &condition), wrong) {
                (Ok(taken), None) => {
                    let is_taken = |at: &usize| results[*at] == Some(result);
                    let wanted: Vec<Tuple> = (0..pairs.len()).filter(is_taken).map(|at| pairs[at]).collect();
                    assert_same(&read(stream, &taken.relation), &wanted, &format!("{op:?}: {result}"));
                }
                (Err(GpuError::Arithmetic { rank }), Some(wrong)) => assert_eq!(rank, wrong as u64, "{op:?}"),
                (found, _) => panic!("{op:?}: {found:?}, wanted {wrong:?}"),
            }
        }
    }
    // One right word that is a part of the step, for which all steps have results but on the left's ends.
    for op in all {
        let ops = [value, Push(3), op, Push(1), Op::And];
        let results: Vec<_> = pairs.iter().map(|&pair| run(&ops, &[], pair, 0)).collect();
        let condition = Condition::Program(Program::new(&ops, vec![]).expect("runs"));
        match select(stream, &from, &condition) {
            Ok(taken) => {
                let wanted: Vec<Tuple> = pairs
                    .iter()
                    .zip(&results)
                    .filter(|pair| *pair.1 == Some(1))
                    .map(|pair| *pair.0)
                    .collect();
                assert_same(&read(stream, &taken.relation), &wanted, &format!("{op:?} 3"));
            }
            Err(GpuError::Arithmetic { rank }) => {
                assert_eq!(Some(rank as usize), results.iter().position(Option::is_none), "{op:?} 3");
            }
            Err(error) => panic!("{op:?}: {error}"),
        }
    }
}

/// Lengths of runs of equal keys.
fn runs() -> Vec<Vec<usize>> {
    let random = |seed: u64, most: u64, total: usize| {
        let mut all = Vec::new();
        while all.iter().sum::<usize>() < total {
            all.push(1 + (mix(seed + all.len() as u64) % most) as usize);
        }
        all
    };
    vec![
        vec![],
        vec![1],
        vec![2047],
        vec![2048],
        vec![2049],
        vec![1; 4500],
        vec![7000],
        vec![2047, 2, 2047, 1, 2048, 3],
        vec![2048, 2048, 1],
        vec![5, 6500, 40, 1, 1],
        random(1, 19, 6000),
        random(2, 1999, 9000),
        vec![8; 600],
        // Edges of a warp's part, of a tile, and of several, where runs are not short.
        vec![1023, 1025, 1024, 5120, 8192],
        vec![8191, 1, 8193, 8000],
        vec![20_000],
        // As many results as a warp has room for, and more: in all warps, and in a late one alone.
        random(3, 13, 9000),
        vec![6; 1500],
        [vec![40; 400], vec![1; 300], vec![40; 10]].concat(),
    ]
}

/// Result of a reduction, in 128 bits.
fn reduced(run: &[Tuple], reduction: Reduction, numbers: Numbers, bytes: u8) -> u64 {
    let values = run.iter().map(|tuple| tuple.1);
    let unused = 64 - 8 * u32::from(bytes.max(1));
    let signed = |value: u64| (value << unused).cast_signed() >> unused;
    let float = |value: u64| {
        if bytes == 8 { f64::from_bits(value) } else { f64::from(f32::from_bits(value as u32)) }
    };
    let least = |order: &dyn Fn(&u64, &u64) -> std::cmp::Ordering| match reduction {
        Reduction::Min => values.clone().min_by(order).expect("one"),
        _ => values.clone().max_by(order).expect("one"),
    };
    match (reduction, numbers) {
        (Reduction::Count, _) => run.len() as u64,
        (Reduction::First, _) => run[0].1,
        (Reduction::Sum, Numbers::Unsigned) => values.map(u128::from).sum::<u128>() as u64,
        (Reduction::Sum, Numbers::Signed) => {
            values.map(|value| i128::from(signed(value))).sum::<i128>() as u64
        }
        (Reduction::Sum, Numbers::Float) => values.map(float).sum::<f64>().to_bits(),
        (_, Numbers::Unsigned) => least(&u64::cmp),
        (_, Numbers::Signed) => least(&|a, b| signed(*a).cmp(&signed(*b))),
        (_, Numbers::Float) => least(&|a, b| float(*a).total_cmp(&float(*b))),
    }
}

fn reductions(stream: &Stream, widths: [u8; 2], numbers: Numbers) {
    let [key_bytes, value_bytes] = widths;
    for (turn, lengths) in runs().into_iter().enumerate() {
        let mut tuples = Vec::new();
        for (number, &length) in lengths.iter().enumerate() {
            let key = if number + 1 == lengths.len() && turn % 2 == 1 {
                most(key_bytes)
            } else {
                3 * number as u64
            };
            for _ in 0..length {
                let number = mix(tuples.len() as u64);
                let value = match (numbers, value_bytes) {
                    (_, 0) => 0,
                    // Sums are exact in any order.
                    (Numbers::Float, 4) => u64::from(((number % 4096) as f32 - 2000.0).to_bits()),
                    (Numbers::Float, _) => ((number % 4096) as f64 - 2000.5).to_bits(),
                    // Sums of a run fit.
                    (Numbers::Unsigned, 8) => number >> 14,
                    (Numbers::Signed, 8) => (number.cast_signed() >> 14).cast_unsigned(),
                    _ => number & most(value_bytes),
                };
                tuples.push((key, value));
            }
        }
        let from = relation(stream, &tuples, widths, [0, 1, 0, 2][turn % 4]);
        let all: &[Reduction] = match value_bytes {
            0 => &[Reduction::Count],
            _ => &[Reduction::Sum, Reduction::Min, Reduction::Max, Reduction::Count, Reduction::First],
        };
        for &reduction in all {
            let found = reduce(stream, &from, reduction, numbers).expect("fits");
            let wanted: Vec<Tuple> = tuples
                .chunk_by(|a, b| a.0 == b.0)
                .map(|run| (run[0].0, reduced(run, reduction, numbers, value_bytes)))
                .collect();
            let what = format!("{widths:?} {numbers:?} {reduction:?}: runs {turn}");
            assert_same(&read(stream, &found.relation), &wanted, &what);
        }
    }
}

/// Floats in the total order, and sums that do not depend on the way they are requested.
fn floats(stream: &Stream) {
    let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE, -1.5];
    let tuples: Vec<Tuple> =
        (0..200).map(|i| (i / 7, odd[(mix(i) % odd.len() as u64) as usize].to_bits())).collect();
    let from = relation(stream, &tuples, [8, 8], 0);
    for reduction in [Reduction::Min, Reduction::Max] {
        let found = reduce(stream, &from, reduction, Numbers::Float).expect("fits");
        let wanted: Vec<Tuple> = tuples
            .chunk_by(|a, b| a.0 == b.0)
            .map(|run| (run[0].0, reduced(run, reduction, Numbers::Float, 8)))
            .collect();
        assert_same(&read(stream, &found.relation), &wanted, &format!("{reduction:?}"));
    }
    // One run of several tiles: near the exact sum, and the sum of a single -0.0 is that.
    let tuples: Vec<Tuple> = (0..9000u64)
        .map(|i| (5, (1.0 / (1.0 + i as f64)).to_bits()))
        .chain([(6, (-0.0f64).to_bits())])
        .collect();
    let from = relation(stream, &tuples, [4, 8], 0);
    let found = reduce(stream, &from, Reduction::Sum, Numbers::Float).expect("fits");
    let sums = read(stream, &found.relation);
    let exact: f64 = (0..9000).rev().map(|i| 1.0 / (1.0 + f64::from(i))).sum();
    assert!((f64::from_bits(sums[0].1) - exact).abs() < 1e-12 * exact, "{sums:?}");
    assert_eq!(sums[1], (6, (-0.0f64).to_bits()));
}

/// Sums at the ends of 64 bits: those that do not fit are errors that name the key, parts that do not fit
/// are none.
fn overflows(stream: &Stream) {
    let max = i64::MAX as u64;
    let sum = |tuples: &[Tuple], numbers| {
        let from = relation(stream, tuples, [8, 8], 0);
        reduce(stream, &from, Reduction::Sum, numbers).map(|answer| read(stream, &answer.relation))
    };
    let many = |key: u64, count: usize| vec![(key, 0); count];
    for between in [0, 3, 300, 5000] {
        // u64.
        let fits =
            [many(1, 9), vec![(4, u64::MAX - 1)], many(4, between), vec![(4, 1), (9, u64::MAX)]].concat();
        assert_eq!(sum(&fits, Numbers::Unsigned).expect("fits"), [(1, 0), (4, u64::MAX), (9, u64::MAX)]);
        let above = [many(1, 9), vec![(4, u64::MAX)], many(4, between), vec![(4, 1), (9, 3)]].concat();
        let found = sum(&above, Numbers::Unsigned);
        assert!(matches!(found, Err(GpuError::Sum { key: 4 })), "{between}: {found:?}");
        // i64: up and down again, and not down.
        let less = (-5i64).cast_unsigned();
        let parts =
            [many(1, 9), vec![(4, max)], many(4, between), vec![(4, 4), (4, less), (9, 1 << 63)]].concat();
        assert_eq!(sum(&parts, Numbers::Signed).expect("fits"), [(1, 0), (4, max - 1), (9, 1 << 63)]);
        for (first, second) in [(max, 1), (1 << 63, u64::MAX)] {
            let wrong = [many(1, 9), vec![(4, first)], many(4, between), vec![(4, second), (9, 7)]].concat();
            let found = sum(&wrong, Numbers::Signed);
            assert!(matches!(found, Err(GpuError::Sum { key: 4 })), "{between}: {found:?}");
        }
    }
}

fn projections(stream: &Stream, widths: [u8; 2]) {
    let [key_bytes, value_bytes] = widths;
    let whole = Part::whole;
    let part = |side, right, mask, left| Part { side, right, mask, left };
    let high = part(Side::Key, 5, u64::MAX, 0);
    let mixed =
        vec![part(Side::Value, 4, 0xFF, 3), part(Side::Key, 1, 7, 0), part(Side::Rank, 0, 0xFFFF, 11)];
    let mut all = vec![
        (vec![whole(Side::Key)], key_bytes, vec![], 0, true),
        (vec![whole(Side::Key)], 8, vec![whole(Side::Rank)], 4, true),
        (vec![high], 4, vec![whole(Side::Rank), part(Side::Key, 0, 3, 40)], 8, key_bytes == 4),
        (vec![whole(Side::Rank)], 4, vec![whole(Side::Key)], key_bytes, true),
        (vec![part(Side::Key, 0, 0xFF, 0)], 4, vec![], 0, false),
        (vec![], 8, vec![part(Side::Key, 3, u64::MAX, 3)], 4, true),
        (vec![part(Side::Key, 0, u64::MAX, 4)], 4, vec![], 0, false),
    ];
    if value_bytes > 0 {
        all.push((vec![whole(Side::Key)], key_bytes, vec![whole(Side::Value)], value_bytes, true));
        all.push((vec![whole(Side::Value)], 4, vec![whole(Side::Key)], 8, false));
        all.push((vec![high], 8, mixed.clone(), 4, true));
        all.push((mixed, key_bytes, vec![part(Side::Value, 1, u64::MAX, 0)], value_bytes, false));
    }
    for (turn, count) in [0, 1, 5, 2047, 2048, 4100].into_iter().enumerate() {
        let tuples: Vec<Tuple> =
            (0..count).map(|i| (most(key_bytes) - (count - i) * 3, mix(i) & most(value_bytes))).collect();
        let from = relation(stream, &tuples, widths, [0, 1][turn % 2]);
        for (key, to_key, value, to_value, is_sorted) in &all {
            let projection = Projection {
                key: key.clone(),
                key_bytes: *to_key,
                value: value.clone(),
                value_bytes: *to_value,
            };
            let found = project(stream, &from, &projection).expect("fits");
            let what = format!("{widths:?}, {count}: {projection:?}");
            assert_eq!(found.is_sorted, *is_sorted, "{what}");
            let word = |parts: &[Part], (key, value): Tuple, rank: u64, bytes: u8| {
                let of = |part: &Part| [key, value, rank][part.side as usize] >> part.right & part.mask;
                parts.iter().fold(0, |all, part| all | of(part) << part.left) & most(bytes)
            };
            let made = |(rank, &tuple): (usize, &Tuple)| {
                (word(key, tuple, rank as u64, *to_key), word(value, tuple, rank as u64, *to_value))
            };
            let wanted: Vec<Tuple> = tuples.iter().enumerate().map(made).collect();
            assert_same(&read(stream, &found.relation), &wanted, &what);
            if !found.is_sorted {
                let mut wanted = wanted.clone();
                wanted.sort_by_key(|tuple| tuple.0);
                let sorted = sort(stream, &found.relation).expect("fits");
                assert_same(&read(stream, &sorted.relation), &wanted, &format!("{what}, sorted"));
            }
            assert!(!found.is_sorted || wanted.is_sorted_by_key(|tuple| tuple.0), "{what}");
        }
    }
}

fn products(stream: &Stream, widths: [u8; 2]) {
    let [key_bytes, value_bytes] = widths;
    let side = |count: u64, seed: u64| -> Vec<Tuple> {
        (0..count).map(|i| (most(key_bytes) - 2 * (count - i), mix(i + seed) & most(value_bytes))).collect()
    };
    let sizes = [(0, 3), (3, 0), (1, 1), (8193, 1), (1, 8200), (64, 128), (91, 3), (5, 3277), (127, 129)];
    for (turn, (lefts, rights)) in sizes.into_iter().enumerate() {
        let (left, right) = (side(lefts, 1), side(rights, 9));
        let on_device =
            [relation(stream, &left, widths, 0), relation(stream, &right, widths, [0, 1][turn % 2])];
        for combine in Combine::ALL {
            let found = product(stream, (&on_device[0], &on_device[1]), combine);
            if value_bytes == 0 && !matches!(combine, Combine::Left | Combine::Right | Combine::RightKey) {
                assert!(matches!(found, Err(GpuError::Operator { .. })));
                continue;
            }
            let value = |left: Tuple, right: Tuple| match combine {
                Combine::Left => left.1,
                Combine::Right => right.1,
                Combine::RightKey => right.0,
                Combine::Sum => left.1.wrapping_add(right.1) & most(value_bytes),
                Combine::Xor => left.1 ^ right.1,
                Combine::Min => left.1.min(right.1),
                Combine::Max => left.1.max(right.1),
            };
            let pairs = left.iter().flat_map(|&left| right.iter().map(move |&right| (left, right)));
            let wanted: Vec<Tuple> = pairs.map(|(left, right)| (left.0, value(left, right))).collect();
            let found = read(stream, &found.expect("fits").relation);
            assert_same(&found, &wanted, &format!("{widths:?}: {lefts} x {rights}, {combine:?}"));
        }
    }
}

/// Invalid input is an error, which is returned before anything is allocated.
fn refusals(stream: &Stream) {
    let is_refused = |ops: &[Op], words: Vec<u64>| {
        assert!(matches!(Program::new(ops, words), Err(GpuError::Operator { .. })), "{ops:?}");
    };
    let key = load(Operand::Key);
    is_refused(&[], vec![]);
    is_refused(&[Op::Not], vec![]);
    is_refused(&[key, Op::Add], vec![]);
    is_refused(&[key, key], vec![]);
    is_refused(&[Op::Push(1), Op::Among { start: 0, length: 2 }], vec![1]);
    is_refused(&[Op::Push(1), Op::Among { start: 0, length: 2 }], vec![2, 1]);
    is_refused(&[Op::Push(1), Op::Among { start: u32::MAX, length: u32::MAX }], vec![]);
    let field = |shift, bits| Op::Load { operand: Operand::Key, flip: 0, shift, bits, is_signed: true };
    is_refused(&[field(0, 0)], vec![]);
    is_refused(&[field(1, 64)], vec![]);
    is_refused(&[field(u32::MAX, 8)], vec![]);
    is_refused(&[&[key][..], &[key, Op::Xor].repeat(40)].concat(), vec![]);
    // Constants become parts of the steps that use them.
    let long = [&[key][..], &[Op::Push(3), Op::Xor].repeat(63)].concat();
    assert!(Program::new(&long, vec![]).is_ok());
    let deep = [[key; 32].to_vec(), vec![Op::Xor; 31]].concat();
    let deep = Program::new(&deep, vec![]).expect("runs");

    let tuples: Vec<Tuple> = (0..1000).map(|i| (i, i)).collect();
    let bare = relation(stream, &tuples, [4, 0], 0);
    let valued = relation(stream, &tuples, [4, 4], 0);
    let values = Condition::Values(Test::bits(1, 1));
    assert!(matches!(select(stream, &bare, &values), Err(GpuError::Operator { .. })));
    let found = select(stream, &bare, &Condition::Program(deep));
    assert!(matches!(found, Err(GpuError::Operator { .. })), "{found:?}");
    let found = reduce(stream, &bare, Reduction::Sum, Numbers::Unsigned);
    assert!(matches!(found, Err(GpuError::Operator { .. })));
    let found = product(stream, (&bare, &valued), Combine::Sum);
    assert!(matches!(found, Err(GpuError::Operator { .. })));
    for projection in [
        Projection { key: vec![Part::whole(Side::Value)], key_bytes: 4, value: vec![], value_bytes: 0 },
        Projection { key: vec![], key_bytes: 2, value: vec![], value_bytes: 0 },
        Projection { key: vec![], key_bytes: 4, value: vec![Part::whole(Side::Key)], value_bytes: 0 },
        Projection { key: vec![Part::whole(Side::Key); 9], key_bytes: 4, value: vec![], value_bytes: 0 },
        Projection {
            key: vec![Part { left: 64, ..Part::whole(Side::Key) }],
            key_bytes: 4,
            value: vec![],
            value_bytes: 0,
        },
    ] {
        assert!(
            matches!(project(stream, &bare, &projection), Err(GpuError::Operator { .. })),
            "{projection:?}"
        );
    }
}

/// A product that does not fit is refused with its size.
pub fn memory(open: impl Fn(GpuOptions) -> Gpu) {
    let gpu = open(GpuOptions { memory_bytes: Some(1 << 20), ..GpuOptions::default() });
    let stream = &Stream::new(&gpu).expect("a stream");
    let tuples: Vec<Tuple> = (0..4096).map(|i| (i, i)).collect();
    let side = relation(stream, &tuples, [8, 4], 0);
    let used = gpu.used_bytes();
    let found = product(stream, (&side, &side), Combine::Xor);
    assert!(matches!(found, Err(GpuError::Memory { needed, .. }) if needed == 12 << 24), "{found:?}");
    assert_eq!(gpu.used_bytes(), used);
}

/// Next state of a tile: `News` of look_back.cu.
#[cfg(feature = "emulate")]
#[repr(C)]
struct News {
    /// 1: its own numbers, 2: those of all tiles up to it.
    said: u64,
    count: u64,
    sum: u64,
    float_sum: u64,
    tile: u64,
}

/// `Looks` of look_back.cu.
#[cfg(feature = "emulate")]
#[repr(C)]
struct Looks {
    news: *const News,
    told: *mut u64,
    carried: *mut u64,
    floats: *mut u64,
    found: *mut u64,
    news_count: u64,
    tiles: u64,
}

/// Looking back while tiles tell in any order, first of themselves, then of all up to them; some stay at
/// the former.
#[cfg(feature = "emulate")]
pub fn look_backs(order: pleach_gpu::LaneOrder, tiles: u64) {
    let texts = [
        include_str!("../../src/kernels/onepass.cuh"),
        include_str!("../../src/kernels/reduce.cuh"),
        include_str!("look_back.cu"),
    ];
    let defines = [
        ("WORD_BYTES", 8),
        ("VALUE_BYTES", 8),
        ("BYTES_OF_BATCH", 48),
        ("BYTES_OF_COLUMNS", 24),
        ("BYTES_OF_REDUCE", 88),
    ];
    let kernel = pleach_gpu::TextKernel {
        name: "look_back.cu",
        text: &texts.concat(),
        defines: &defines,
        entry: "look_backs",
    };
    for rarely in [1, 3, 50, 1000] {
        let own = |tile: u64| (mix(tile) >> 30, mix(tile + 7), 1.0 / (3.0 + tile as f64));
        let mut wanted = vec![(0, 0u64, 0.0f64)];
        for tile in 0..tiles {
            let (last, own) = (wanted[tile as usize], own(tile));
            let float = if tile == 0 { own.2 } else { last.2 + own.2 };
            wanted.push((last.0 + own.0, last.1.wrapping_add(own.1), float));
        }
        let says = |tile: u64, said: u64| {
            let numbers = if said == 1 { own(tile) } else { wanted[tile as usize + 1] };
            News { said, count: numbers.0, sum: numbers.1, float_sum: numbers.2.to_bits(), tile }
        };
        // When each is said, in no order; what a tile says of all comes after what it says of its own.
        let mut news: Vec<(u64, News)> = Vec::new();
        for tile in 0..tiles {
            let at = mix(tile + 99) % 10_000;
            if tile > 0 {
                news.push((at, says(tile, 1)));
            }
            if tile == 0 || mix(tile + 5).is_multiple_of(rarely) {
                news.push((at + 1 + mix(tile) % 5000, says(tile, 2)));
            }
        }
        news.sort_by_key(|pair| pair.0);
        let news: Vec<News> = news.into_iter().map(|pair| pair.1).collect();
        let zeros = |words: u64| vec![0u64; words as usize];
        let (mut told, mut carried, mut floats) = (zeros(tiles), zeros(2 * tiles), zeros(2 * tiles));
        let mut found = zeros(3 * tiles + 3);
        let mut looks = Looks {
            news: news.as_ptr(),
            told: told.as_mut_ptr(),
            carried: carried.as_mut_ptr(),
            floats: floats.as_mut_ptr(),
            found: found.as_mut_ptr(),
            news_count: news.len() as u64,
            tiles,
        };
        let mut arguments: [*mut std::ffi::c_void; 1] = [(&raw mut looks).cast()];
        // SAFETY: this is the kernel's parameter; the arrays have the lengths it says.
        unsafe { kernel.run(order, 1, 64, 0, &mut arguments) }.expect("runs");
        for tile in 1..=tiles as usize {
            let (count, sum, float) = wanted[tile];
            let found = &found[3 * tile..3 * tile + 3];
            assert_eq!(
                found,
                [count, sum, float.to_bits()],
                "tile {tile} of {tiles}, one of {rarely} knows all"
            );
        }
    }
}

/// Everything at small sizes; which widths, by `turn`.
pub fn all(gpu: &Gpu, turn: usize) {
    let stream = &Stream::new(gpu).expect("a stream");
    match turn % 3 {
        0 => {
            selects(stream, [4, 4]);
            reductions(stream, [4, 4], Numbers::Unsigned);
            reductions(stream, [4, 8], Numbers::Float);
            projections(stream, [4, 4]);
            products(stream, [4, 4]);
            steps(stream);
        }
        1 => {
            selects(stream, [8, 4]);
            reductions(stream, [8, 4], Numbers::Signed);
            reductions(stream, [8, 8], Numbers::Unsigned);
            projections(stream, [8, 8]);
            products(stream, [8, 4]);
            overflows(stream);
            refusals(stream);
        }
        _ => {
            selects(stream, [4, 8]);
            reductions(stream, [4, 8], Numbers::Signed);
            reductions(stream, [8, 4], Numbers::Float);
            projections(stream, [8, 4]);
            products(stream, [8, 8]);
            floats(stream);
        }
    }
}

/// Many tuples, so that tiles wait for each other: for devices.
pub fn many(gpu: &Gpu, count: usize) {
    let stream = &Stream::new(gpu).expect("a stream");
    for length in [1, 10, 1000, 100_000, count] {
        let tuples: Vec<Tuple> =
            (0..count).map(|i| ((i / length) as u64 * 3, mix(i as u64) & most(4))).collect();
        let from = relation(stream, &tuples, [4, 4], 0);
        let test = Test::bits(1, 1);
        let taken = select(stream, &from, &Condition::Values(test)).expect("fits");
        let odd: Vec<Tuple> = tuples.iter().copied().filter(|tuple| tuple.1 & 1 == 1).collect();
        assert_same(&read(stream, &taken.relation), &odd, "odd values");
        for (reduction, numbers) in [
            (Reduction::Sum, Numbers::Unsigned),
            (Reduction::Sum, Numbers::Signed),
            (Reduction::Max, Numbers::Signed),
            (Reduction::Count, Numbers::Unsigned),
        ] {
            let found = reduce(stream, &from, reduction, numbers).expect("fits");
            let wanted: Vec<Tuple> = tuples
                .chunk_by(|a, b| a.0 == b.0)
                .map(|run| (run[0].0, reduced(run, reduction, numbers, 4)))
                .collect();
            assert_same(&read(stream, &found.relation), &wanted, &format!("{reduction:?}: runs of {length}"));
        }
        // Floats below 2, which no sum holds exactly: the same each time.
        let tuples: Vec<Tuple> = tuples.iter().map(|tuple| (tuple.0, tuple.1 & 0xBFFF_FFFF)).collect();
        let from = relation(stream, &tuples, [4, 4], 0);
        let [first, second] = [0, 1].map(|_| {
            let found = reduce(stream, &from, Reduction::Sum, Numbers::Float).expect("fits");
            read(stream, &found.relation)
        });
        assert!(first == second, "runs of {length}");
    }
}
