//! Conditions on tuples: a test of a key or a value, or a program for a stack of 64-bit words.
//!
//! A [`Program`] has operands (a field of key, value or rank, or a constant) and steps that take the two topmost words,
//! the upper one on the right, and leave one; conditions are 0 or 1. There are no branches, so that all threads of a
//! device take the same steps. A constant on the right of a step becomes a part of it. Checked steps and divisions mark
//! a tuple for which they have no result, whatever becomes of it later: then SELECT is an error.

use crate::GpuError;

/// Most steps of a program, constants that became parts of others not counted: OPS_MAX in sift.cu.
pub(super) const STEPS_MAX: usize = 64;
/// A step whose right word is its operand: STEP_IMMEDIATE in sift.cu.
const IMMEDIATE: u32 = 0x100;

/// Words from `low` to `high`, both included, whose bits of `mask` are `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The least.
    pub low: u64,
    /// The greatest.
    pub high: u64,
    /// Bits that are looked at.
    pub mask: u64,
    /// What they are.
    pub bits: u64,
}

impl Test {
    /// Of a range alone.
    #[must_use]
    pub const fn range(low: u64, high: u64) -> Self {
        Self { low, high, mask: 0, bits: 0 }
    }

    /// Of some bits alone.
    #[must_use]
    pub const fn bits(mask: u64, bits: u64) -> Self {
        Self { low: 0, high: u64::MAX, mask, bits }
    }

    /// As words of a width are tested: low, span, mask, bits.
    pub(super) fn of_width(self, bytes: u8) -> [u64; 4] {
        let most = u64::MAX >> (64 - 8 * u32::from(bytes));
        if self.low > self.high.min(most) || self.bits & !(self.mask & most) != 0 {
            // Nothing has no bits and one that is set.
            return [0, most, 0, 1];
        }
        [self.low, self.high.min(most) - self.low, self.mask & most, self.bits]
    }
}

/// Which tuples are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Those whose keys pass a test.
    Keys(Test),
    /// Those whose values do, as unsigned words.
    Values(Test),
    /// The first one of each key.
    Firsts,
    /// Those for which a program leaves 1.
    Program(Program),
}

/// Where an operand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operand {
    Key,
    Value,
    Rank,
}

/// A step of a program; see the head of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// Pushes `bits` bits, from 1 to 64, from bit `shift` of an operand that was xored with `flip`.
    Load {
        operand: Operand,
        flip: u64,
        shift: u32,
        bits: u32,
        is_signed: bool,
    },
    /// Pushes a constant.
    Push(u64),
    /// Of one word: 1 becomes 0, 0 becomes 1.
    Not,
    /// Of one word: whether it stands among `length` of the program's words from `start` on, which ascend.
    Among {
        start: u32,
        length: u32,
    },
    /// Wrapping.
    Add,
    Subtract,
    Multiply,
    /// Checked.
    AddSigned,
    SubtractSigned,
    MultiplySigned,
    AddUnsigned,
    SubtractUnsigned,
    MultiplyUnsigned,
    /// Towards zero; checked.
    DivideSigned,
    DivideUnsigned,
    /// With the sign of the left one; checked.
    RemainderSigned,
    RemainderUnsigned,
    And,
    Or,
    Xor,
    /// By the right word modulo 64.
    Left,
    RightSigned,
    RightUnsigned,
    Equal,
    BelowSigned,
    BelowUnsigned,
    AtMostUnsigned,
}

/// The same as in sift.cu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Step {
    operand: u64,
    code: u32,
    load: u32,
}

/// A program that is known to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) words: Vec<u64>,
    /// Most words on the stack.
    pub(super) depth: u32,
    pub(super) uses_keys: bool,
    pub(super) uses_values: bool,
}

impl Op {
    /// Its number: STEP_... in sift.cu.
    const fn code(self) -> u32 {
        match self {
            Self::Load { .. } => 0,
            Self::Push(_) => 1,
            Self::Not => 2,
            Self::Among { .. } => 3,
            Self::Add => 4,
            Self::Subtract => 5,
            Self::Multiply => 6,
            Self::AddSigned => 7,
            Self::SubtractSigned => 8,
            Self::MultiplySigned => 9,
            Self::AddUnsigned => 10,
            Self::SubtractUnsigned => 11,
            Self::MultiplyUnsigned => 12,
            Self::DivideSigned => 13,
            Self::DivideUnsigned => 14,
            Self::RemainderSigned => 15,
            Self::RemainderUnsigned => 16,
            Self::And => 17,
            Self::Or => 18,
            Self::Xor => 19,
            Self::Left => 20,
            Self::RightSigned => 21,
            Self::RightUnsigned => 22,
            Self::Equal => 23,
            Self::BelowSigned => 24,
            Self::BelowUnsigned => 25,
            Self::AtMostUnsigned => 26,
        }
    }
}

fn refused(cause: impl Into<String>) -> GpuError {
    GpuError::Operator { operator: "select", cause: cause.into() }
}

impl Program {
    /// Takes steps, and the words that lists are of.
    ///
    /// # Errors
    /// [`GpuError::Operator`] if a step has too few words or a field no bits, if not one word is left, if a list is
    /// none of the words or does not ascend, or for more than 64 steps.
    pub fn new(ops: &[Op], words: Vec<u64>) -> Result<Self, GpuError> {
        let mut made = Self { steps: Vec::new(), words, depth: 0, uses_keys: false, uses_values: false };
        let mut depth = 0u32;
        for (at, &op) in ops.iter().enumerate() {
            let mut step = Step { operand: 0, code: op.code(), load: 0 };
            let needed = match op {
                Op::Load { operand, flip, shift, bits, is_signed } => {
                    if !(1..=64).contains(&bits) || shift > 64 - bits {
                        return Err(refused(format!(
                            "step {at}: a field of {bits} bits from bit {shift} on"
                        )));
                    }
                    made.uses_keys |= operand == Operand::Key;
                    made.uses_values |= operand == Operand::Value;
                    step.operand = flip;
                    step.load = operand as u32 | shift << 8 | (64 - bits) << 16 | u32::from(is_signed) << 24;
                    0
                }
                Op::Push(word) => {
                    step.operand = word;
                    0
                }
                Op::Not => 1,
                Op::Among { start, length } => {
                    let (from, to) = (start as usize, start as usize + length as usize);
                    let list = made.words.get(from..to);
                    if !list.is_some_and(|list| list.is_sorted()) {
                        return Err(refused(format!("step {at}: no ascending list of the program's words")));
                    }
                    step.operand = u64::from(length) << 32 | u64::from(start);
                    1
                }
                _ => 2,
            };
            if depth < needed {
                return Err(refused(format!("step {at}: there are {depth} words, it wants {needed}")));
            }
            depth = depth - needed + 1;
            match made.steps.last_mut() {
                Some(last) if needed == 2 && last.code == Op::Push(0).code() => {
                    *last = Step { operand: last.operand, code: step.code | IMMEDIATE, load: 0 };
                }
                _ => made.steps.push(step),
            }
        }
        if depth != 1 || made.steps.len() > STEPS_MAX {
            let steps = made.steps.len();
            return Err(refused(format!(
                "a program of {steps} steps that leaves {depth} words: it has {STEPS_MAX} at most and leaves one"
            )));
        }
        made.depth = made.stack_depth();
        Ok(made)
    }

    /// Most words on the stack, as the steps are now.
    fn stack_depth(&self) -> u32 {
        let (mut depth, mut most) = (0u32, 0);
        for step in &self.steps {
            match step.code {
                0 | 1 => depth += 1,
                code if code > 3 && code & IMMEDIATE == 0 => depth -= 1,
                _ => {}
            }
            most = most.max(depth);
        }
        most
    }
}
