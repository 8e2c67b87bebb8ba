//! Comparisons of operands with a meaning beyond their number: dates, times, decimals, booleans, uuids,
//! addresses, hexadecimal digits and DNA.

use super::check::{Checker, Typed};
use super::column::{Leaf, Side};
use super::error::ExprError;
use super::operator::{Arithmetic, Comparison};
use super::parse::{Node, What};
use super::tree::Test;
use pleach_format::Meaning;
use pleach_format::logical::{Element, Form, Ratio, TextError};

impl Checker<'_> {
    /// Returns the meaning of an operand, if it has one beyond its number or its bytes.
    pub(super) fn meaning(&self, leaf: &Leaf) -> Option<Meaning> {
        let schema = self.schema;
        let meaning = match (leaf.side, leaf.at, &schema.record) {
            _ if schema.is_raw => return None,
            (Side::Key, ..) => Meaning::new(schema.key_type, &schema.logical.0),
            (Side::Value, None, None) => Meaning::new(schema.value_type, &schema.logical.1),
            (Side::Value, Some(_), Some(record)) => {
                let field = &record.fields()[record.find(&leaf.name)?];
                Meaning::new(field.kind, &field.logical)
            }
            _ => return None,
        };
        meaning.form().map(|_| meaning)
    }

    /// Converts an operand to a finer unit.
    pub(super) fn rescaled(&self, node: &Node, of: Typed, ratio: Ratio) -> Result<Typed, ExprError> {
        match of {
            Typed::Int(int) if ratio.times > 1 => {
                let factor = self.signed(node, ratio.times.into());
                Ok(Typed::Int(self.arithmetic(node, Arithmetic::Multiply, int, factor)?))
            }
            of => Ok(of),
        }
    }

    /// Compares an operand that has a meaning with a constant: a text of it, a number for a decimal, or true, false
    /// or a number for a boolean.
    pub(super) fn compare_meant(
        &self,
        node: &Node,
        comparison: Comparison,
        (of, meaning): (Typed, &Meaning),
        (place, constant): (&Node, Typed),
    ) -> Result<Test, ExprError> {
        let Some(form) = meaning.form() else {
            return Err(self.refused(node, "values of this type have no text form", "a plain number"));
        };
        let refused = |constant: &Typed| {
            let what = format!("cannot compare a {} with {}", meaning.logical, constant.name());
            self.refused(node, what, format!("a text such as \"{}\"", form.example()))
        };
        if let Form::Decimal(_, scale) = form {
            let text = match &constant {
                Typed::Text(text) => Some(text.clone()),
                _ => self.literal(place),
            };
            let (Some(text), Typed::Int(int)) = (text, of) else { return Err(refused(&constant)) };
            let Some((word, is_exact)) = decimal(&text, scale) else {
                return Err(self.refused(
                    place,
                    format!("invalid decimal {text:?}"),
                    "a number, such as 7.5",
                ));
            };
            let constant = self.signed(place, word);
            // A constant between two words is above the lower one.
            let comparison = match comparison {
                _ if is_exact => comparison,
                Comparison::Above | Comparison::AtLeast => Comparison::Above,
                Comparison::Below | Comparison::AtMost => Comparison::AtMost,
                Comparison::Equal => return Ok(Test::Constant(false)),
                Comparison::Unequal => return Ok(Test::Constant(true)),
            };
            return self.compare_ints(node, comparison, int, constant);
        }
        if let (Form::Boolean, Typed::Int(int)) = (form, &of) {
            let number = match &constant {
                Typed::Test(Test::Constant(truth)) => Some(self.constant(place, (*truth).into())),
                Typed::Int(number) => Some(number.clone()),
                _ => None,
            };
            if let Some(number) = number {
                return self.compare_ints(node, comparison, int.clone(), number);
            }
        }
        let Typed::Text(text) = &constant else { return Err(refused(&constant)) };
        let wrong = |error: TextError| {
            let what = format!("invalid {} {text:?} ({error})", meaning.logical);
            self.refused(place, what, format!("a text such as \"{}\"", form.example()))
        };
        match (form.element(text.as_bytes()).map_err(wrong)?, of) {
            (Element::Unsigned(number), Typed::TextLeaf(leaf)) => {
                Ok(Test::Text(comparison, leaf, number.to_be_bytes().to_vec()))
            }
            (Element::Bytes(bytes), Typed::TextLeaf(leaf)) => Ok(Test::Text(comparison, leaf, bytes)),
            (Element::Unsigned(number), Typed::Int(int)) => {
                self.compare_ints(node, comparison, int, self.constant(place, number))
            }
            (Element::Signed(word), Typed::Int(int)) => {
                self.compare_ints(node, comparison, int, self.signed(place, word.into()))
            }
            _ => Err(refused(&constant)),
        }
    }

    /// Returns the digits of a literal number, with its sign.
    fn literal(&self, node: &Node) -> Option<String> {
        match &node.what {
            What::Integer(_) | What::Float(_) => {
                self.text.get(node.place.clone()).map(|text| text.replace('_', ""))
            }
            What::Negative(of) => self.literal(of).map(|text| format!("-{text}")),
            _ => None,
        }
    }
}

/// Returns the word of a decimal of `scale`, or the next one below, and whether it is exact. A number beyond
/// all words stays beyond them.
fn decimal(text: &str, scale: i8) -> Option<(i128, bool)> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i128 = all.parse().ok()?;
    let number = if is_negative { -number } else { number };
    let shift = i64::from(exponent) - i64::try_from(fraction.len()).ok()? + i64::from(scale);
    let power = u32::try_from(shift.unsigned_abs()).ok().and_then(|shift| 10_i128.checked_pow(shift));
    let limit = i128::from(i64::MAX) * 2;
    Some(match (shift < 0, power) {
        (false, Some(power)) => (number.saturating_mul(power).clamp(-limit, limit), true),
        (false, None) => (number.signum() * limit, true),
        (true, Some(power)) => (number.div_euclid(power).clamp(-limit, limit), number % power == 0),
        (true, None) => (if number < 0 { -1 } else { 0 }, number == 0),
    })
}
