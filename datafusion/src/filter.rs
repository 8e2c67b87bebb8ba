//! Conditions of the engine as sets of keys.

use crate::keys::KeySet;
use crate::literal::{Comparison, Literals, text};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr,
    LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// What a condition says of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// All keys for which the condition can hold.
    pub keys: KeySet,
    /// True if it holds for all tuples with these keys, so that nobody need check it again.
    pub is_exact: bool,
}

impl Condition {
    /// A condition of which keys say nothing.
    fn unknown() -> Self {
        Self { keys: KeySet::all(), is_exact: false }
    }
    fn exact(keys: KeySet) -> Self {
        Self { keys, is_exact: true }
    }
    fn and(self, other: Self) -> Self {
        Self { keys: self.keys.and(&other.keys), is_exact: self.is_exact && other.is_exact }
    }
    fn or(self, other: Self) -> Self {
        Self { keys: self.keys.or(other.keys), is_exact: self.is_exact && other.is_exact }
    }
}

/// Reads conditions of expressions over rows whose column `column` is the first key column.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    literals: &'a Literals,
    column: usize,
}

impl<'a> Conditions<'a> {
    /// Reads conditions on keys in column `column`.
    #[must_use]
    pub fn new(literals: &'a Literals, column: usize) -> Self {
        Self { literals, column }
    }

    /// Returns what an expression says of keys. The current state of dynamic filters is taken, but never as exact,
    /// since it may change.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn of(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Condition> {
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return Ok(match literal.value() {
                ScalarValue::Boolean(Some(true)) => Condition::exact(KeySet::all()),
                ScalarValue::Boolean(_) | ScalarValue::Null => Condition::exact(KeySet::none()),
                _ => Condition::unknown(),
            });
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return self.of_binary(binary);
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return Ok(self.of_list(list));
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            return Ok(self.of_like(like));
        }
        if let Some(filter) = expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
            let now = self.of(&filter.current()?)?;
            return Ok(Condition { is_exact: false, ..now });
        }
        if let Some(case) = expr.downcast_ref::<CaseExpr>() {
            // A filter for each partition of a join: a row has to pass one of them.
            let mut all = match case.else_expr() {
                Some(other) => self.of(other)?,
                None => Condition::exact(KeySet::none()),
            };
            for (_, then) in case.when_then_expr() {
                all = all.or(self.of(then)?);
            }
            return Ok(Condition { is_exact: false, ..all });
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return Ok(match self.of(not.arg())? {
                Condition { keys, is_exact: true } => Condition::exact(keys.not()),
                _ => Condition::unknown(),
            });
        }
        if let Some(test) = expr.downcast_ref::<IsNotNullExpr>().filter(|test| self.is_key(test.arg())) {
            let _ = test;
            return Ok(Condition::exact(KeySet::all()));
        }
        if expr.downcast_ref::<IsNullExpr>().is_some_and(|test| self.is_key(test.arg())) {
            return Ok(Condition::exact(KeySet::none()));
        }
        Ok(Condition::unknown())
    }

    fn of_binary(&self, binary: &BinaryExpr) -> Result<Condition> {
        let (left, right) = (binary.left(), binary.right());
        let comparison = match binary.op() {
            Operator::And => return Ok(self.of(left)?.and(self.of(right)?)),
            Operator::Or => return Ok(self.of(left)?.or(self.of(right)?)),
            Operator::Eq | Operator::IsNotDistinctFrom => Comparison::Equal,
            Operator::NotEq => Comparison::NotEqual,
            Operator::Lt => Comparison::Below,
            Operator::LtEq => Comparison::AtMost,
            Operator::Gt => Comparison::Above,
            Operator::GtEq => Comparison::AtLeast,
            _ => return Ok(Condition::unknown()),
        };
        let literal = |expr: &Arc<dyn PhysicalExpr>| Some(expr.downcast_ref::<Literal>()?.value().clone());
        let (comparison, literal) = match (self.is_key(left), self.is_key(right)) {
            (true, false) => (comparison, literal(right)),
            (false, true) => (comparison.swapped(), literal(left)),
            _ => return Ok(Condition::unknown()),
        };
        let keys = literal.and_then(|literal| self.literals.keys(comparison, &literal));
        Ok(keys.map_or_else(Condition::unknown, Condition::exact))
    }

    /// A pattern that is a prefix and `%`.
    fn of_like(&self, like: &LikeExpr) -> Condition {
        let pattern = like.pattern().downcast_ref::<Literal>().and_then(|pattern| text(pattern.value()));
        let prefix = pattern.and_then(|pattern| pattern.strip_suffix('%'));
        let prefix = prefix.filter(|prefix| !prefix.contains(['%', '_', '\\']));
        let keys = prefix.filter(|_| !like.case_insensitive() && self.is_key(like.expr()));
        match keys.and_then(|prefix| self.literals.beginning_with(prefix)) {
            None => Condition::unknown(),
            Some(keys) if like.negated() => Condition::exact(keys.not()),
            Some(keys) => Condition::exact(keys),
        }
    }

    /// A list of the keys of several columns, as joins make it: the key is one of them.
    fn of_structs(&self, list: &InListExpr) -> Option<KeySet> {
        let function = list.expr().downcast_ref::<ScalarFunctionExpr>().filter(|_| !list.negated())?;
        let place = function.args().iter().position(|expr| self.is_key(expr))?;
        let key = |expr: &Arc<dyn PhysicalExpr>| match expr.downcast_ref::<Literal>()?.value() {
            ScalarValue::Struct(values) if function.name() == "struct" => {
                ScalarValue::try_from_array(values.columns().get(place)?, 0).ok()
            }
            _ => None,
        };
        let keys: Vec<ScalarValue> = list.list().iter().map(key).collect::<Option<_>>()?;
        self.literals.any_of(&keys)
    }

    fn of_list(&self, list: &InListExpr) -> Condition {
        if !self.is_key(list.expr()) {
            let keys = self.of_structs(list);
            return keys.map_or_else(Condition::unknown, |keys| Condition { keys, is_exact: false });
        }
        let literals: Option<Vec<&ScalarValue>> =
            list.list().iter().map(|expr| Some(expr.downcast_ref::<Literal>()?.value())).collect();
        let Some(literals) = literals else { return Condition::unknown() };
        if list.negated() && literals.iter().any(|literal| literal.is_null()) {
            return Condition::exact(KeySet::none());
        }
        match self.literals.any_of(literals) {
            Some(keys) if list.negated() => Condition::exact(keys.not()),
            Some(keys) => Condition::exact(keys),
            None => Condition::unknown(),
        }
    }

    /// Returns true if an expression is the key, or the key in a wider type that keeps values and their order.
    fn is_key(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return column.index() == self.column;
        }
        let Some(cast) = expr.downcast_ref::<CastExpr>() else { return false };
        self.is_key(cast.expr()) && is_wider(self.literals.data_type(), cast.cast_type())
    }
}

/// Returns true if all values of a type are values of another, in the same order.
fn is_wider(from: &DataType, to: &DataType) -> bool {
    let is_text =
        |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_binary = |data_type: &DataType| {
        matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    };
    let bits = |data_type: &DataType| data_type.primitive_width().unwrap_or(0);
    let signed = DataType::is_signed_integer;
    let unsigned = DataType::is_unsigned_integer;
    match (from, to) {
        (from, to) if is_text(from) => is_text(to),
        (from, to) if is_binary(from) => is_binary(to),
        (from, to) if unsigned(from) && unsigned(to) => bits(to) >= bits(from),
        (from, to) if signed(from) && signed(to) => bits(to) >= bits(from),
        (from, to) if unsigned(from) && signed(to) => bits(to) > bits(from),
        (from, to) => from == to,
    }
}
