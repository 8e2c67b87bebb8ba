//! A condition as a program for a stack of 64-bit words, in the form that devices run: no branches, checks or
//! errors.
//!
//! A condition has a program only if all its numbers are certain to fit into 64 bits. The operation
//! determines whether a word is signed. The results of conditions are 0 or 1.

use super::column::{Kind, Leaf, Side};
use super::operator::{Arithmetic, Comparison};
use super::tree::{Int, IntWhat, Test, Width};

/// Loads an operand from a tuple: `bits` bits from bit `shift` of the word of a key or the bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Part of the tuple that holds the operand.
    pub side: Side,
    /// Word that is first xored with the operand's: the sign bit for signed keys, which are encoded.
    pub flip: u64,
    /// First bit.
    pub shift: u32,
    /// Number of bits, 8 to 64.
    pub bits: u32,
    /// True if the highest bit is a sign, which is extended.
    pub signed: bool,
}

/// A step. Operations pop the two topmost words, the upper one as the right operand, and push one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// Pushes an operand of the tuple.
    Load(Load),
    /// Pushes a constant.
    Push(u64),
    /// Adds, wrapping.
    Add,
    /// Subtracts, wrapping.
    Subtract,
    /// Multiplies, wrapping.
    Multiply,
    DivideSigned,
    DivideUnsigned,
    RemainderSigned,
    RemainderUnsigned,
    And,
    Or,
    Xor,
    /// Shifts by less than 64.
    Left,
    /// Shifts by less than 64, extending the sign.
    RightSigned,
    /// Shifts by less than 64.
    RightUnsigned,
    Equal,
    BelowSigned,
    BelowUnsigned,
    AtMostUnsigned,
    /// Replaces one word: 1 becomes 0, 0 becomes 1.
    Not,
    /// Replaces one word by 1 if it is among [`Program::words`] `start..start + length`, which ascend
    /// unsigned, else by 0.
    Among {
        /// Index of the first word.
        start: u32,
        /// Number of words.
        length: u32,
    },
}

/// A condition for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Steps; the result is the word that remains on the stack.
    pub ops: Vec<Op>,
    /// Lists of numbers.
    pub words: Vec<u64>,
    /// Maximum number of words on the stack.
    pub stack: usize,
}

impl Program {
    /// Runs the program for a tuple: the word of its key, the bits of its value. For tests; it defines the
    /// steps.
    #[must_use]
    pub fn run(&self, key: u64, value: u64, rank: u64) -> bool {
        let mut stack: Vec<u64> = Vec::with_capacity(self.stack);
        for op in &self.ops {
            let word = match *op {
                Op::Load(load) => {
                    let word = match load.side {
                        Side::Key => key,
                        Side::Value => value,
                        Side::Rank => rank,
                    };
                    let unused = 64 - load.bits;
                    let high = ((word ^ load.flip) >> load.shift) << unused;
                    if load.signed { (high.cast_signed() >> unused).cast_unsigned() } else { high >> unused }
                }
                Op::Push(word) => word,
                Op::Not => stack.pop().unwrap_or(0) ^ 1,
                Op::Among { start, length } => {
                    let word = stack.pop().unwrap_or(0);
                    let list = &self.words[start as usize..(start + length) as usize];
                    u64::from(list.binary_search(&word).is_ok())
                }
                binary => {
                    let right = stack.pop().unwrap_or(0);
                    binary.of_two(stack.pop().unwrap_or(0), right)
                }
            };
            stack.push(word);
        }
        stack.pop() == Some(1)
    }

    fn push(&mut self, op: Op, depth: &mut usize) {
        match op {
            Op::Load(_) | Op::Push(_) => *depth += 1,
            Op::Not | Op::Among { .. } => {}
            _ => *depth -= 1,
        }
        self.stack = self.stack.max(*depth);
        self.ops.push(op);
    }
}

impl Op {
    fn of_two(self, left: u64, right: u64) -> u64 {
        let (signed_left, signed_right) = (left.cast_signed(), right.cast_signed());
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::DivideSigned => signed_left.wrapping_div(signed_right).cast_unsigned(),
            Self::DivideUnsigned => left / right,
            Self::RemainderSigned => signed_left.wrapping_rem(signed_right).cast_unsigned(),
            Self::RemainderUnsigned => left % right,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::Left => left << (right & 63),
            Self::RightSigned => (signed_left >> (right & 63)).cast_unsigned(),
            Self::RightUnsigned => left >> (right & 63),
            Self::Equal => u64::from(left == right),
            Self::BelowSigned => u64::from(signed_left < signed_right),
            Self::BelowUnsigned => u64::from(left < right),
            Self::AtMostUnsigned => u64::from(left <= right),
            Self::Load(_) | Self::Push(_) | Self::Not | Self::Among { .. } => left,
        }
    }
}

/// Returns the program of a condition, if it has one.
pub(super) fn compile(test: &Test) -> Option<Program> {
    let mut program = Program::default();
    let mut depth = 0;
    compile_test(test, &mut program, &mut depth)?;
    Some(program)
}

fn compile_test(test: &Test, program: &mut Program, depth: &mut usize) -> Option<()> {
    match test {
        Test::Constant(truth) => program.push(Op::Push(u64::from(*truth)), depth),
        Test::Not(of) => {
            compile_test(of, program, depth)?;
            program.push(Op::Not, depth);
        }
        Test::All(tests) | Test::Any(tests) => {
            let joined = if matches!(test, Test::All(_)) { Op::And } else { Op::Or };
            for (index, test) in tests.iter().enumerate() {
                compile_test(test, program, depth)?;
                if index > 0 {
                    program.push(joined, depth);
                }
            }
        }
        Test::Within(int, low, high) => {
            compile_int(int, program, depth)?;
            // One comparison for both ends, for signed and unsigned words.
            let (low, high) = (*low as u64, *high as u64);
            if low == high {
                program.push(Op::Push(low), depth);
                program.push(Op::Equal, depth);
                return Some(());
            }
            program.push(Op::Push(low), depth);
            program.push(Op::Subtract, depth);
            program.push(Op::Push(high.wrapping_sub(low)), depth);
            program.push(Op::AtMostUnsigned, depth);
        }
        Test::In(int, list) => {
            compile_int(int, program, depth)?;
            let start = u32::try_from(program.words.len()).ok()?;
            let length = u32::try_from(list.len()).ok()?;
            start.checked_add(length)?;
            let mut words: Vec<u64> = list.iter().map(|&number| number as u64).collect();
            words.sort_unstable();
            program.words.extend(words);
            program.push(Op::Among { start, length }, depth);
        }
        Test::Compare(comparison, left, right, width) => {
            let below = match width {
                Width::I64 => Op::BelowSigned,
                Width::U64 => Op::BelowUnsigned,
                Width::I128 | Width::U128 => return None,
            };
            let (op, exchanged, negated) = match comparison {
                Comparison::Equal => (Op::Equal, false, false),
                Comparison::Unequal => (Op::Equal, false, true),
                Comparison::Below => (below, false, false),
                Comparison::AtLeast => (below, false, true),
                Comparison::Above => (below, true, false),
                Comparison::AtMost => (below, true, true),
            };
            let (first, second) = if exchanged { (right, left) } else { (left, right) };
            compile_int(first, program, depth)?;
            compile_int(second, program, depth)?;
            program.push(op, depth);
            if negated {
                program.push(Op::Not, depth);
            }
        }
        Test::Float(..)
        | Test::FloatPair(..)
        | Test::Text(..)
        | Test::TextPair(..)
        | Test::Prefix(..)
        | Test::TextIn(..) => return None,
    }
    Some(())
}

/// Pushes a number: as a signed word for [`Width::I64`], as an unsigned one for [`Width::U64`]. A number of
/// one width that is an operand of the other fits both, so its word is the same.
fn compile_int(int: &Int, program: &mut Program, depth: &mut usize) -> Option<()> {
    let is_signed = match int.width {
        Width::I64 => true,
        Width::U64 => false,
        Width::I128 | Width::U128 => return None,
    };
    match &int.what {
        IntWhat::Constant(number) => program.push(Op::Push(*number as u64), depth),
        IntWhat::Leaf(leaf) => program.push(Op::Load(load(leaf)?), depth),
        IntWhat::Arithmetic(operation, left, right) => {
            let op = match operation {
                Arithmetic::Or => Op::Or,
                Arithmetic::Xor => Op::Xor,
                Arithmetic::And => Op::And,
                Arithmetic::Add => Op::Add,
                Arithmetic::Subtract => Op::Subtract,
                Arithmetic::Multiply => Op::Multiply,
                // An operation that may fail for a tuple has no program.
                Arithmetic::Left | Arithmetic::Right if right.low < 0 || right.high > 63 => return None,
                Arithmetic::Left => Op::Left,
                Arithmetic::Right if is_signed => Op::RightSigned,
                Arithmetic::Right => Op::RightUnsigned,
                Arithmetic::Divide | Arithmetic::Remainder if right.low <= 0 && right.high >= 0 => {
                    return None;
                }
                Arithmetic::Divide if is_signed => Op::DivideSigned,
                Arithmetic::Divide => Op::DivideUnsigned,
                Arithmetic::Remainder if is_signed => Op::RemainderSigned,
                Arithmetic::Remainder => Op::RemainderUnsigned,
            };
            compile_int(left, program, depth)?;
            compile_int(right, program, depth)?;
            program.push(op, depth);
        }
    }
    Some(())
}

/// Returns the place of an operand in a word of at most 8 bytes. Records that are byte strings have none.
fn load(leaf: &Leaf) -> Option<Load> {
    if leaf.kind == Kind::U128 || leaf.kind.bits() == 0 || leaf.in_bytes {
        return None;
    }
    let signed = leaf.kind.bounds()?.0 < 0;
    let shift = u32::try_from(leaf.at.unwrap_or(0)).ok()? * 8;
    Some(Load { side: leaf.side, flip: leaf.flip(), shift, bits: leaf.kind.bits(), signed })
}
