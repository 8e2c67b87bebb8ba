//! Types of an expression: names become operands, and constants are folded. Each whole number gets its least
//! and its greatest value, which determine the width in which it is computed.

use super::arithmetic::{bounds, folded};
use super::column::{Kind, Leaf, Side};
use super::error::ExprError;
use super::operator::{Arithmetic, Comparison};
use super::parse::{Node, What, parse};
use super::schema::Schema;
use super::tree::{Int, IntWhat, Test, Width};
use pleach_format::ValueType;
use pleach_format::logical::{Logical, Meaning, matching};
use std::ops::Range;

/// A node with its type.
pub(super) enum Typed {
    Int(Int),
    Float(f64),
    FloatLeaf(Leaf),
    Text(String),
    TextLeaf(Leaf),
    Test(Test),
    /// An operand with a meaning beyond its number or its bytes.
    Meant(Box<Typed>, Meaning),
}

impl Typed {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Int(_) => "a whole number".to_owned(),
            Self::Float(_) | Self::FloatLeaf(_) => "a float".to_owned(),
            Self::Text(_) | Self::TextLeaf(_) => "a text".to_owned(),
            Self::Test(_) => "true or false".to_owned(),
            Self::Meant(_, meaning) => format!("a {}", meaning.logical),
        }
    }
}

/// Parses and checks a condition.
pub(super) fn condition(text: &str, schema: &Schema) -> Result<Test, ExprError> {
    if text.trim().is_empty() {
        return Err(ExprError::new(text, 0..text.len(), "missing condition", "one, such as key < 100"));
    }
    Checker { text, schema }.test(&parse(text)?)
}

pub(super) struct Checker<'a> {
    pub(super) text: &'a str,
    pub(super) schema: &'a Schema,
}

impl Checker<'_> {
    pub(super) fn refused(
        &self,
        node: &Node,
        what: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ExprError {
        ExprError::new(self.text, node.place.clone(), what, allowed)
    }

    fn column(&self, place: &Range<usize>) -> usize {
        self.text.get(..place.start).map_or(0, |before| before.chars().count()) + 1
    }

    fn test(&self, node: &Node) -> Result<Test, ExprError> {
        let typed = self.typed(node)?;
        if let Typed::Meant(of, Meaning { logical: Logical::Boolean, .. }) = &typed
            && let Typed::Int(int) = &**of
        {
            return self.compare_ints(node, Comparison::Unequal, int.clone(), self.constant(node, 0));
        }
        match typed {
            Typed::Test(test) => Ok(test),
            other => {
                let what = format!("expected a condition, found {}", other.name());
                Err(self.refused(node, what, "a comparison, such as key < 100"))
            }
        }
    }

    fn typed(&self, node: &Node) -> Result<Typed, ExprError> {
        Ok(match &node.what {
            What::Integer(number) => Typed::Int(self.constant(node, *number)),
            What::Float(number) => Typed::Float(*number),
            What::Text(text) => Typed::Text(text.clone()),
            What::Truth(truth) => Typed::Test(Test::Constant(*truth)),
            What::Name(name, is_field) => {
                let leaf = self.leaf(&node.place, name, *is_field)?;
                let meaning = self.meaning(&leaf);
                let typed = match leaf.kind {
                    Kind::F32 | Kind::F64 => Typed::FloatLeaf(leaf),
                    Kind::Bytes(..) => Typed::TextLeaf(leaf),
                    kind => {
                        let (low, high) = kind.bounds().unwrap_or((0, 0));
                        let width = if kind == Kind::U128 { Width::U128 } else { Width::of(low, high) };
                        let column = self.column(&node.place);
                        Typed::Int(Int { what: IntWhat::Leaf(leaf), low, high, width, column })
                    }
                };
                match meaning {
                    Some(meaning) => Typed::Meant(Box::new(typed), meaning),
                    None => typed,
                }
            }
            What::Negative(of) => match self.typed(of)? {
                Typed::Float(number) => Typed::Float(-number),
                Typed::Int(int) => {
                    if let IntWhat::Constant(number) = int.what
                        && int.width == Width::U128
                    {
                        let what = format!("-{number} is below the lowest number");
                        return Err(self.refused(node, what, "a number of at most 127 bits"));
                    }
                    let zero = self.constant(node, 0);
                    Typed::Int(self.arithmetic(node, Arithmetic::Subtract, zero, int)?)
                }
                other => {
                    let what = format!("{} cannot be negated", other.name());
                    return Err(self.refused(node, what, "a number"));
                }
            },
            What::Arithmetic(operation, left, right) => {
                let (left, right) = (self.int(left, *operation)?, self.int(right, *operation)?);
                Typed::Int(self.arithmetic(node, *operation, left, right)?)
            }
            What::Compare(comparison, left, right) => {
                let (typed_left, typed_right) = (self.typed(left)?, self.typed(right)?);
                Typed::Test(self.compare(node, *comparison, (left, typed_left), (right, typed_right))?)
            }
            What::Between(of, low, high) => {
                let above =
                    self.compare(node, Comparison::AtLeast, (of, self.typed(of)?), (low, self.typed(low)?))?;
                let below =
                    self.compare(node, Comparison::AtMost, (of, self.typed(of)?), (high, self.typed(high)?))?;
                Typed::Test(all(vec![above, below]))
            }
            What::In(of, list) => Typed::Test(self.member(node, of, list)?),
            What::Prefix(of, prefix) => match self.typed(of)? {
                Typed::TextLeaf(leaf) => {
                    let prefix = self.bytes_of(node, &leaf, prefix)?;
                    Typed::Test(Test::Prefix(leaf, prefix))
                }
                other => {
                    let what = format!("{} cannot start with a text", other.name());
                    return Err(self.refused(of, what, "a key, value or field of texts or bytes"));
                }
            },
            What::Not(of) => Typed::Test(match self.test(of)? {
                Test::Constant(truth) => Test::Constant(!truth),
                Test::Not(of) => *of,
                of => Test::Not(Box::new(of)),
            }),
            What::All(of) => Typed::Test(all(self.tests(of)?)),
            What::Any(of) => {
                let mut tests = self.tests(of)?;
                // Tests after a true one are never evaluated; false ones change nothing.
                if let Some(end) = tests.iter().position(|test| matches!(test, Test::Constant(true))) {
                    tests.truncate(end + 1);
                }
                tests.retain(|test| !matches!(test, Test::Constant(false)));
                Typed::Test(one_or(tests, Test::Any, false))
            }
        })
    }

    fn tests(&self, nodes: &[Node]) -> Result<Vec<Test>, ExprError> {
        nodes.iter().map(|node| self.test(node)).collect()
    }

    pub(super) fn constant(&self, node: &Node, number: u128) -> Int {
        let column = self.column(&node.place);
        match i128::try_from(number) {
            Ok(value) => {
                let width = Width::of(value, value);
                Int { what: IntWhat::Constant(number), low: value, high: value, width, column }
            }
            Err(_) => {
                let what = IntWhat::Constant(number);
                Int { what, low: 0, high: i128::MAX, width: Width::U128, column }
            }
        }
    }

    fn int(&self, node: &Node, operation: Arithmetic) -> Result<Int, ExprError> {
        match self.typed(node)? {
            Typed::Int(int) => Ok(int),
            other => {
                let what = format!("{} cannot be an operand of '{}'", other.name(), operation.sign());
                let allowed = "a whole number: a key, value or field of integers, rank, or 17";
                Err(self.refused(node, what, allowed))
            }
        }
    }

    /// Returns the operand with this name.
    pub(super) fn leaf(&self, place: &Range<usize>, name: &str, is_field: bool) -> Result<Leaf, ExprError> {
        let schema = self.schema;
        let key = || Leaf::whole(Side::Key, Kind::of_key(schema.key_type), "key");
        let plain = || {
            let kind = Kind::of_value(schema.value_type).filter(|_| schema.record.is_none());
            kind.map(|kind| Leaf::whole(Side::Value, kind, "value"))
        };
        let refused = |what: String, allowed: &str| {
            Err(ExprError::new(self.text, place.clone(), what, allowed.to_owned()))
        };
        if !is_field {
            match name {
                "key" => return Ok(key()),
                "rank" => return Ok(Leaf::whole(Side::Rank, Kind::U64, "rank")),
                "value" => {
                    return match (plain(), &schema.record) {
                        (Some(leaf), _) => Ok(leaf),
                        (None, Some(_)) => refused("the value has several fields".to_owned(), &self.known()),
                        (None, None) => refused("there are no values".to_owned(), &self.known()),
                    };
                }
                _ => {}
            }
        }
        if let Some(record) = &schema.record
            && let Some(index) = record.find(name)
        {
            let kind = Kind::of_field(record.fields()[index].kind);
            let (at, in_bytes) = (Some(record.offset(index)), record.storage().is_bytes());
            let text = record.text_place(index);
            return Ok(Leaf { at, in_bytes, text, ..Leaf::whole(Side::Value, kind, name) });
        }
        if name == schema.key_name && !name.is_empty() {
            return Ok(key());
        }
        if let Some(leaf) = plain().filter(|_| name == schema.value_name && !name.is_empty()) {
            return Ok(leaf);
        }
        refused(format!("unknown name '{name}'"), &self.known())
    }

    /// Returns the names that exist, for messages.
    fn known(&self) -> String {
        let mut names = vec!["key".to_owned(), "rank".to_owned()];
        match &self.schema.record {
            Some(record) => {
                let plain = |name: &str| {
                    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
                        && name.chars().next().is_some_and(|first| !first.is_numeric())
                };
                // A record of a thousand fields must not fill the screen.
                names.extend(record.fields().iter().take(20).map(|field| match plain(&field.name) {
                    true => field.name.clone(),
                    false => format!("`{}`", field.name),
                }));
            }
            None if self.schema.value_type != ValueType::None => names.insert(1, "value".to_owned()),
            None => {}
        }
        format!("one of {}", names.join(", "))
    }

    pub(super) fn arithmetic(
        &self,
        node: &Node,
        operation: Arithmetic,
        left: Int,
        right: Int,
    ) -> Result<Int, ExprError> {
        let column = self.column(&node.place);
        let is_wide = left.width == Width::U128 || right.width == Width::U128;
        if is_wide && (left.low < 0 || right.low < 0) {
            let what = "a number that may be negative is combined with one of 128 bits";
            return Err(self.refused(node, what, "a u128 and numbers that are never negative"));
        }
        let zero = matches!(right.what, IntWhat::Constant(0));
        if zero && matches!(operation, Arithmetic::Divide | Arithmetic::Remainder) {
            return Err(self.refused(node, "division by zero", "a divisor that is not 0"));
        }
        let shift = matches!(operation, Arithmetic::Left | Arithmetic::Right);
        if shift && matches!(right.what, IntWhat::Constant(_)) && !(0..128).contains(&right.high) {
            return Err(self.refused(node, "invalid number of bits to shift by", "a shift of 0 to 127 bits"));
        }
        let (low, high) = bounds(operation, &left, &right);
        // A result below zero in 128 bits is an error during the computation, so it is not a possible result.
        let (low, high) = if is_wide { (low.max(0), high.max(0)) } else { (low, high) };
        let width = match is_wide {
            true => Width::U128,
            false => Width::of(low.min(left.low).min(right.low), high.max(left.high).max(right.high)),
        };
        let constants = [&left, &right].into_iter().all(|side| matches!(side.what, IntWhat::Constant(_)));
        let what = IntWhat::Arithmetic(operation, Box::new(left), Box::new(right));
        let int = Int { what, low, high, width, column };
        if !constants {
            return Ok(int);
        }
        let folded = folded(&int)
            .map_err(|what| self.refused(node, what, "numbers whose result has at most 127 bits"))?;
        Ok(match (width, i128::try_from(folded)) {
            (Width::U128, Err(_)) => self.constant(node, folded),
            (Width::U128, Ok(value)) => self.signed(node, value),
            // Negative numbers were kept as the bits of an i128.
            _ => self.signed(node, folded.cast_signed()),
        })
    }

    pub(super) fn signed(&self, node: &Node, value: i128) -> Int {
        let column = self.column(&node.place);
        let (what, width) = (IntWhat::Constant(value.cast_unsigned()), Width::of(value, value));
        Int { what, low: value, high: value, width, column }
    }

    fn compare(
        &self,
        node: &Node,
        comparison: Comparison,
        (left_node, left): (&Node, Typed),
        (right_node, right): (&Node, Typed),
    ) -> Result<Test, ExprError> {
        let names = (left.name(), right.name());
        let mixed = || {
            let what = format!("cannot compare {} with {}", names.0, names.1);
            self.refused(node, what, "two whole numbers, two floats or two texts")
        };
        Ok(match (left, right) {
            (Typed::Meant(left, here), Typed::Meant(right, there)) => {
                let Some(common) = matching(&here, &there) else {
                    let what = format!("cannot compare {} with {}", names.0, names.1);
                    return Err(self.refused(node, what, "two of the same logical type"));
                };
                let left = self.rescaled(node, *left, common.left)?;
                let right = self.rescaled(node, *right, common.right)?;
                self.compare(node, comparison, (left_node, left), (right_node, right))?
            }
            (Typed::Meant(of, meaning), constant) => {
                self.compare_meant(node, comparison, (*of, &meaning), (right_node, constant))?
            }
            (constant, Typed::Meant(of, meaning)) => {
                self.compare_meant(node, comparison.mirrored(), (*of, &meaning), (left_node, constant))?
            }
            (Typed::Int(left), Typed::Int(right)) => self.compare_ints(node, comparison, left, right)?,
            (Typed::FloatLeaf(leaf), constant) => match constant {
                Typed::FloatLeaf(other) => Test::FloatPair(comparison, leaf, other),
                constant => {
                    let number = self.float(node, &leaf, &constant).ok_or_else(mixed)??;
                    Test::Float(comparison, leaf, number)
                }
            },
            (constant, Typed::FloatLeaf(leaf)) => {
                let number = self.float(node, &leaf, &constant).ok_or_else(mixed)??;
                Test::Float(comparison.mirrored(), leaf, number)
            }
            (Typed::TextLeaf(left), Typed::TextLeaf(right)) => Test::TextPair(comparison, left, right),
            (Typed::TextLeaf(leaf), Typed::Text(text)) => {
                let bytes = self.bytes_of(node, &leaf, &text)?;
                Test::Text(comparison, leaf, bytes)
            }
            (Typed::Text(text), Typed::TextLeaf(leaf)) => {
                let bytes = self.bytes_of(node, &leaf, &text)?;
                Test::Text(comparison.mirrored(), leaf, bytes)
            }
            (Typed::Float(_), Typed::Float(_)) | (Typed::Text(_), Typed::Text(_)) => {
                return Err(self.refused(node, "two constants are compared", "a key, value, field or rank"));
            }
            _ => return Err(mixed()),
        })
    }

    /// Returns the float of a constant that is compared with `leaf`, or the error if there is none.
    fn float(&self, node: &Node, leaf: &Leaf, constant: &Typed) -> Option<Result<f64, ExprError>> {
        let number = match constant {
            Typed::Float(number) => *number,
            Typed::Int(Int { what: IntWhat::Constant(_), low, width, .. }) if *width != Width::U128 => {
                let number = *low as f64;
                // Up to 2^53 every whole number is a float; beyond, some are.
                if number as i128 != *low {
                    let what = format!("{low} is not exact as a float");
                    return Some(Err(self.refused(node, what, "the float that is meant")));
                }
                number
            }
            _ => return None,
        };
        if leaf.kind != Kind::F32 {
            return Some(Ok(number));
        }
        let narrow = f64::from(number as f32);
        // 0.1 compared with an f32 is the f32 nearest to it; a whole number is exact.
        if matches!(constant, Typed::Int(_)) && narrow != number {
            let what = format!("{number} is not exact as an f32");
            return Some(Err(self.refused(node, what, "the float that is meant")));
        }
        Some(Ok(narrow))
    }

    /// Returns the bytes of a text that is compared with `leaf`: hexadecimal digits after `\x`, unless the
    /// bytes are texts.
    fn bytes_of(&self, node: &Node, leaf: &Leaf, text: &str) -> Result<Vec<u8>, ExprError> {
        let Kind::Bytes(_, false) = leaf.kind else { return Ok(text.as_bytes().to_vec()) };
        let Some(digits) = text.strip_prefix("\\x") else { return Ok(text.as_bytes().to_vec()) };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8)).collect();
        bytes.filter(|_| rest.is_empty()).ok_or_else(|| {
            let what = format!("invalid bytes {text:?}");
            self.refused(node, what, "\\x and two hexadecimal digits for each byte")
        })
    }

    pub(super) fn compare_ints(
        &self,
        node: &Node,
        comparison: Comparison,
        left: Int,
        right: Int,
    ) -> Result<Test, ExprError> {
        match (&left.what, &right.what) {
            (IntWhat::Constant(_), IntWhat::Constant(_)) => {
                return Err(self.refused(node, "two constants are compared", "a key, value, field or rank"));
            }
            (IntWhat::Constant(_), _) => return self.compare_ints(node, comparison.mirrored(), right, left),
            (_, IntWhat::Constant(number)) => return Ok(against(comparison, left, *number, &right)),
            _ => {}
        }
        let is_wide = left.width == Width::U128 || right.width == Width::U128;
        if is_wide && (left.low < 0 || right.low < 0) {
            let what = "cannot compare a number that may be negative with one of 128 bits";
            return Err(self.refused(node, what, "a u128 and numbers that are never negative"));
        }
        let width = match is_wide {
            true => Width::U128,
            false => Width::of(left.low.min(right.low), left.high.max(right.high)),
        };
        Ok(Test::Compare(comparison, left, right, width))
    }

    fn member(&self, node: &Node, of: &Node, list: &[Node]) -> Result<Test, ExprError> {
        let mut others = Vec::new();
        let mut equal = |left: Typed, item: &Node, right: Typed| -> Result<(), ExprError> {
            others.push(self.compare(item, Comparison::Equal, (of, left), (item, right))?);
            Ok(())
        };
        let first = match self.typed(of)? {
            Typed::Int(int) => {
                let mut numbers = Vec::new();
                for item in list {
                    match self.typed(item)? {
                        Typed::Int(Int { what: IntWhat::Constant(number), low, width, .. }) => {
                            let is_negative = width != Width::U128 && low < 0;
                            let fits = match int.width {
                                Width::U128 => !is_negative,
                                _ => width != Width::U128 && (int.low..=int.high).contains(&low),
                            };
                            numbers.extend(fits.then_some(number));
                        }
                        other => equal(Typed::Int(int.clone()), item, other)?,
                    }
                }
                numbers.sort_unstable();
                numbers.dedup();
                Some(Test::In(int, numbers))
            }
            Typed::TextLeaf(leaf) => {
                let mut texts = Vec::new();
                for item in list {
                    match self.typed(item)? {
                        Typed::Text(text) => texts.push(self.bytes_of(item, &leaf, &text)?),
                        other => equal(Typed::TextLeaf(leaf.clone()), item, other)?,
                    }
                }
                texts.sort_unstable();
                texts.dedup();
                Some(Test::TextIn(leaf, texts))
            }
            Typed::FloatLeaf(_) | Typed::Meant(..) => {
                for item in list {
                    equal(self.typed(of)?, item, self.typed(item)?)?;
                }
                None
            }
            other => {
                let what = format!("cannot search a list for {}", other.name());
                let allowed = "a key, value or field, or a whole number computed from them";
                return Err(self.refused(node, what, allowed));
            }
        };
        let Some(first) = first else { return Ok(one_or(others, Test::Any, false)) };
        if others.is_empty() {
            return Ok(first);
        }
        others.insert(0, first);
        Ok(Test::Any(others))
    }
}

/// Converts the comparison of a number with a constant into a band of numbers.
fn against(comparison: Comparison, int: Int, number: u128, constant: &Int) -> Test {
    let is_leaf = matches!(int.what, IntWhat::Leaf(_));
    let domain = match int.width {
        Width::U128 => (0, u128::MAX),
        _ => (int.low.cast_unsigned(), int.high.cast_unsigned()),
    };
    // Position of the constant among the possible numbers: below, inside or above all of them.
    let is_negative = constant.width != Width::U128 && constant.low < 0;
    let place = match int.width {
        Width::U128 if is_negative => -1,
        Width::U128 => 0,
        _ if constant.width == Width::U128 || constant.low > int.high => 1,
        _ if constant.low < int.low => -1,
        _ => 0,
    };
    let (next, before) = (number.wrapping_add(1), number.wrapping_sub(1));
    let band = match (comparison, place) {
        (Comparison::Equal | Comparison::Unequal, 0) => Some((number, number)),
        (Comparison::Equal | Comparison::Unequal, _) => None,
        (Comparison::Below | Comparison::AtMost, -1) | (Comparison::Above | Comparison::AtLeast, 1) => None,
        (Comparison::Below | Comparison::AtMost, 1) | (Comparison::Above | Comparison::AtLeast, -1) => {
            Some(domain)
        }
        (Comparison::Below, _) => (number != domain.0).then_some((domain.0, before)),
        (Comparison::AtMost, _) => Some((domain.0, number)),
        (Comparison::Above, _) => (number != domain.1).then_some((next, domain.1)),
        (Comparison::AtLeast, _) => Some((number, domain.1)),
    };
    let is_negated = comparison == Comparison::Unequal;
    match band {
        // An operand that cannot fail need not be computed.
        None if is_leaf => Test::Constant(is_negated),
        Some(band) if is_leaf && band == domain => Test::Constant(!is_negated),
        None => {
            // No number matches; it is computed all the same, because it may fail.
            let never = Test::In(int, Vec::new());
            if is_negated { Test::Not(Box::new(never)) } else { never }
        }
        Some((low, high)) => {
            let within = Test::Within(int, low, high);
            if is_negated { Test::Not(Box::new(within)) } else { within }
        }
    }
}

/// Combines tests by `and`: drops those that are true, and merges bands of one operand.
fn all(mut tests: Vec<Test>) -> Test {
    // Tests after a false one are never evaluated.
    if let Some(end) = tests.iter().position(|test| matches!(test, Test::Constant(false))) {
        tests.truncate(end + 1);
    }
    let mut kept: Vec<Test> = Vec::new();
    for test in tests {
        match (kept.last_mut(), test) {
            (_, Test::Constant(true)) => {}
            (Some(Test::Within(before, low, high)), Test::Within(int, from, to))
                if let (IntWhat::Leaf(one), IntWhat::Leaf(other)) = (&before.what, &int.what)
                    && one == other =>
            {
                let is_signed = int.width != Width::U128;
                let above = |a: u128, b: u128| {
                    if is_signed { a.cast_signed() > b.cast_signed() } else { a > b }
                };
                *low = if above(from, *low) { from } else { *low };
                *high = if above(*high, to) { to } else { *high };
                if above(*low, *high) {
                    kept.pop();
                    kept.push(Test::Constant(false));
                }
            }
            (_, test) => kept.push(test),
        }
    }
    one_or(kept, Test::All, true)
}

/// Returns `make` of several tests, the only test, or `none`.
fn one_or(mut tests: Vec<Test>, make: fn(Vec<Test>) -> Test, none: bool) -> Test {
    match (tests.len(), tests.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            tests.push(last);
            make(tests)
        }
        (_, None) => Test::Constant(none),
    }
}
