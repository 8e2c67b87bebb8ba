//! Results of the operators.
//!
//! A relation is a list of tuples (key, value) in the order of their keys; tuples with equal keys keep the
//! order in which they were given. *Left* is the first input, *right* the second. The rank of a tuple is its
//! position in its relation. All results are in the order of their keys again. These rules specify which
//! tuples a result has, and the order of tuples with equal keys. They compare keys only; each value stays
//! with its key.
//!
//! With m tuples of a key on the left and n on the right:
//!
//! | operation | [`SetRule::Set`] | [`SetRule::Multiset`] |
//! |---|---|---|
//! | union | one: the first of left, else of right | max(m, n): all m of left, then the last n - m of right |
//! | intersection | one if m and n > 0: the first of left | min(m, n): the first of left |
//! | difference | one if m > 0 and n = 0: the first of left | max(m - n, 0): the last of left |
//!
//! The multiset rules are those of the standard libraries of C++. All m + n tuples (SQL's UNION ALL) are what
//! `compact` writes.
//!
//! | join | tuples of a key |
//! |---|---|
//! | inner | m * n, by left rank, then by right rank |
//! | left | those, or the m of left with nothing on the right where n = 0 |
//! | right | those, or the n of right with nothing on the left where m = 0 |
//! | full | those, or the m or n of the side that has the key |
//! | semi | the m of left if n > 0 |
//! | anti | the m of left if n = 0 |
//!
//! The joins by distance pair keys that need not be equal. The distance of two keys is that of their numbers;
//! byte strings have an order, but no distance. An infinite float is infinitely far from every other key.
//!
//! | join | partners of a left tuple |
//! |---|---|
//! | [`AsOf::Backward`] | the last right tuple whose key is at most the left key |
//! | [`AsOf::Forward`] | the first right tuple whose key is at least the left key |
//! | [`AsOf::Nearest`] | of these two the nearer one; the backward one if both are as far, or are equal |
//! | band | all right tuples at most the given distance away |
//!
//! So of equal right keys the backward partner is the last and the forward one the first. An as-of join may
//! have a tolerance: a partner that is farther away is none. Both limits belong to the distance. The answer
//! is ordered by left rank, then by right rank; `inner` has the pairs, `left` also the left tuples without a
//! partner, `semi` the left tuples with a partner, each once, and `anti` those without. Nothing keeps right
//! tuples without a partner.
//!
//! A reduction has one tuple for each key. Sums of unsigned integers are u64, of signed ones i64, of floats
//! f64; a sum that does not fit is an error that names the key. Counts are u64. For floats, min and max use
//! the total order (-NaN < -inf < ... < inf < NaN). Sums of floats are taken in blocks of a fixed number of
//! tuples, so that they do not depend on the number of threads. Means are f64. The mean of integers and decimals
//! is the float nearest to the exact mean: the sum is held in 128 bits, and the division alone rounds. The mean of
//! floats is their sum, divided by their number.
//!
//! PRODUCT has |left| * |right| tuples, by left rank, then by right rank; its key is the left key.

use std::fmt;

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the variant with this name; `None` if there is none.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )*};
}

named! {
    /// An operation of the set family.
    SetOperation {
        /// Keys of either side.
        Union = "union",
        /// Keys of both sides.
        Intersection = "intersect",
        /// Keys of the left side alone.
        Difference = "difference",
    }
    /// Number of tuples of a key in the result of a set operation.
    SetRule {
        /// At most one.
        Set = "set",
        /// As many as the multiplicities of both sides specify.
        Multiset = "multiset",
    }
    /// Tuples in the result of a join.
    How {
        /// Pairs of equal keys.
        Inner = "inner",
        /// Pairs, and the left tuples without a partner.
        Left = "left",
        /// Pairs, and the right tuples without a partner.
        Right = "right",
        /// Pairs, and all tuples without a partner.
        Full = "full",
        /// Left tuples that have a partner, each once.
        Semi = "semi",
        /// Left tuples without a partner.
        Anti = "anti",
    }
    /// Partner of a tuple in an as-of join.
    AsOf {
        /// The last one whose key is not above.
        Backward = "backward",
        /// The first one whose key is not below.
        Forward = "forward",
        /// The nearer of the two; the backward one if both are as far.
        Nearest = "nearest",
    }
    /// Function that combines the values of a key.
    Reduction {
        /// Their sum.
        Sum = "sum",
        /// The least.
        Min = "min",
        /// The greatest.
        Max = "max",
        /// Number of values.
        Count = "count",
        /// The first.
        First = "first",
        /// The mean, as f64.
        Avg = "avg",
    }
}

/// A reduction of the values of a key, or of a field of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// The reduction.
    pub operation: Reduction,
    /// Name of a field of records; `None` for the values.
    pub field: Option<String>,
}

impl Aggregate {
    /// Parses reductions that are separated by commas: `sum`, or `sum:amount,avg:price,count`.
    ///
    /// # Errors
    /// The name that is none of a reduction.
    ///
    /// ```
    /// use pleach_relation::{Aggregate, Reduction};
    /// let list = Aggregate::list("sum:amount,count").unwrap();
    /// assert_eq!((list[0].operation, list[0].field.as_deref()), (Reduction::Sum, Some("amount")));
    /// assert_eq!((list[1].operation, list[1].field.as_deref()), (Reduction::Count, None));
    /// assert_eq!(Aggregate::list("total:amount"), Err("total".to_owned()));
    /// ```
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        let one = |text: &str| {
            let (name, field) =
                text.split_once(':').map_or((text, None), |(name, field)| (name, Some(field)));
            let operation = Reduction::from_name(name.trim()).ok_or_else(|| name.trim().to_owned())?;
            Ok(Self { operation, field: field.map(|field| field.trim().to_owned()) })
        };
        text.split(',').map(one).collect()
    }

    /// Returns the name of its results beside others: `sum_amount`, or `sum`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.field {
            Some(field) => format!("{}_{field}", self.operation),
            None => self.operation.to_string(),
        }
    }
}

impl From<Reduction> for Aggregate {
    fn from(operation: Reduction) -> Self {
        Self { operation, field: None }
    }
}
