//! Conditions on tuples: a test of a key or a value, or a program for a stack of 64-bit words.
//!
//! A [`Program`] has operands (a field of key, value or rank, or a constant) and steps that replace the two
//! topmost words, the upper one on the right, with one word; conditions are 0 or 1. There are no branches, so
//! that all threads of a device take the same steps. A constant on the right of a step becomes a part of the
//! step.
//!
//! Checked steps and divisions mark a tuple for which they have no result, whatever becomes of it later: then
//! SELECT fails.

use crate::GpuError;

/// Maximum number of steps of a program, not counting constants that became parts of other steps: OPS_MAX in
/// sift.cu.
pub(super) const STEPS_MAX: usize = 64;
/// Flag of a step whose right word is its operand: STEP_IMMEDIATE in sift.cu.
const IMMEDIATE: u32 = 0x100;

/// Test for words from `low` to `high`, both included, whose bits in `mask` are `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Smallest word.
    pub low: u64,
    /// Largest word.
    pub high: u64,
    /// Bits that are compared.
    pub mask: u64,
    /// Values of these bits.
    pub bits: u64,
}

impl Test {
    /// Tests for a range only.
    #[must_use]
    pub const fn range(low: u64, high: u64) -> Self {
        Self { low, high, mask: 0, bits: 0 }
    }

    /// Tests for some bits only.
    #[must_use]
    pub const fn bits(mask: u64, bits: u64) -> Self {
        Self { low: 0, high: u64::MAX, mask, bits }
    }

    /// Returns the test for words of a width: low, span, mask, bits.
    pub(super) fn of_width(self, bytes: u8) -> [u64; 4] {
        let most = u64::MAX >> (64 - 8 * u32::from(bytes));
        if self.low > self.high.min(most) || self.bits & !(self.mask & most) != 0 {
            // A test that no word passes: no bit is compared, and one must be set.
            return [0, most, 0, 1];
        }
        [self.low, self.high.min(most) - self.low, self.mask & most, self.bits]
    }
}

/// Condition that selects tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Tuples whose keys pass a test.
    Keys(Test),
    /// Tuples whose values, as unsigned words, pass a test.
    Values(Test),
    /// The first tuple of each key.
    Firsts,
    /// Tuples for which a program leaves 1.
    Program(Program),
}

/// Source of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operand {
    Key,
    Value,
    Rank,
}

/// A step of a program; see the description of this module.
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
    /// Negates one word: 1 becomes 0, 0 becomes 1.
    Not,
    /// Tests whether one word is among `length` of the program's words from `start` on, which ascend.
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
    /// Rounds towards zero; checked.
    DivideSigned,
    DivideUnsigned,
    /// Has the sign of the left word; checked.
    RemainderSigned,
    RemainderUnsigned,
    And,
    Or,
    Xor,
    /// Shifts by the right word modulo 64.
    Left,
    RightSigned,
    RightUnsigned,
    Equal,
    BelowSigned,
    BelowUnsigned,
    AtMostUnsigned,
}

/// A step in the form that the kernel runs; the same as in sift.cu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Step {
    operand: u64,
    code: u32,
    load: u32,
}

/// A checked program, which runs without faults of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) words: Vec<u64>,
    /// Maximum number of words on the stack.
    pub(super) depth: u32,
    pub(super) uses_keys: bool,
    pub(super) uses_values: bool,
}

impl Op {
    /// Returns the number of the step: STEP_... in sift.cu.
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
    /// Checks the steps of a program, and the words that its lists refer to.
    ///
    /// # Errors
    /// [`GpuError::Operator`] if a step has too few words, a field has no bits, the steps do not leave
    /// exactly one word, a list is not within the words or does not ascend, or there are more than 64 steps.
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

    /// Returns the maximum number of words on the stack, for the present steps.
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
