//! The rules by which a reader refuses a manifest, by number and name. SET.md has the same list.

use std::fmt;

macro_rules! rules {
    ($($number:literal $rule:ident = $name:literal, $text:literal;)*) => {
        /// Rule that a manifest breaks, so that no reader takes it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = concat!("`", $name, "`: a reader refuses a manifest ", $text, ".")] $rule = $number,)*
        }

        impl Rule {
            /// All rules, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Returns the name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// Returns the rule, as it follows "a reader refuses a manifest".
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$rule => $text,)*
                }
            }
        }
    };
}

rules! {
    1 Magic = "magic", "whose first 16 bytes are not the magic; a shorter one, if its bytes differ from it";
    2 Truncated = "truncated", "shorter than 288 bytes, or than manifest_bytes";
    3 Extended = "extended", "longer than manifest_bytes, or than 2^30 bytes";
    4 Sum = "sum", "whose last 32 bytes are not the SHA-256 of all bytes before them";
    5 Version = "version", "of another major version";
    6 Feature = "feature", "with an unknown bit in required_features";
    7 Generation = "generation", "whose generation is 0 or not above its parent";
    8 Files = "files", "whose entries do not fit between the head and the sum";
    9 Reserved = "reserved", "with reserved bytes that are not zero";
    10 KeyType = "key-type", "whose key type is unknown";
    11 ValueType = "value-type", "whose value type is unknown";
    12 Unique = "unique", "whose `unique` is neither 0 nor 1";
    13 PartitionTuples = "partition-tuples", "whose partition_tuples is 0";
    14 Meta = "meta", "whose META does not fit, is longer than 1,048,576 bytes, or is not as section 4 says";
    15 EntryPlace = "entry-place", "with an entry whose bytes do not follow those of the entry before it";
    16 Name = "name", "with a name of a file that is not as section 5 says";
    17 Key = "key", "with a key that is no key of the key type";
    18 KeyOrder = "key-order", "with an entry whose keys are not above those of the entry before it";
    19 Tuples = "tuples", "with an entry of no tuples, or more tuples than 2^64 - 1 in all";
    20 FileBytes = "file-bytes", "with a file whose length is not a multiple of 4096, or below 16384";
    21 Totals = "totals", "whose tuples or file_bytes is not the sum over its entries";
    22 NameTwice = "name-twice", "with two entries of one name";
}

/// Reason why a manifest was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// Rule that it breaks.
    pub rule: Rule,
    /// Offset of the bytes that break it.
    pub offset: usize,
    /// What is there.
    pub found: String,
}

impl Rule {
    pub(crate) fn at(self, offset: usize, found: impl Into<String>) -> ManifestError {
        ManifestError { rule: self, offset, found: found.into() }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, offset, found } = self;
        write!(f, "rule {} ({}): byte {offset}: {found}", *rule as u32, rule.name())
    }
}

impl std::error::Error for ManifestError {}
