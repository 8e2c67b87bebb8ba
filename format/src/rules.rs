//! The rules by which a reader refuses a file when it opens it, by number and name.
//!
//! FORMAT.md has the same list. Numbers and names are for ever: drivers of the conformance kit answer with the names.
//! Each error of opening names its rule ([`FormatError::rule`](crate::FormatError::rule)), where it is made: a
//! [`Breach`] is a rule and a sentence about this case.

use core::fmt;

macro_rules! rules {
    ($($number:literal $rule:ident = $name:literal, $text:literal;)*) => {
        /// Rule that a file breaks, so that no reader opens it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = concat!("`", $name, "`: the reader refuses a file ", $text, ".")] $rule = $number,)*
        }

        impl Rule {
            /// All rules, in the order of their numbers: the order in which a reader checks them.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Returns the name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// Returns the rule, as it follows "the reader refuses a file".
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
    1 Magic = "magic",
        "whose first 16 bytes are not the magic (also a file shorter than that whose bytes differ \
         from it)";
    2 Truncated = "truncated", "shorter than the superblock, or than file_bytes";
    3 SuperblockSum = "superblock-sum", "whose superblock does not have the CRC that it stores";
    4 Version = "version", "of another major version";
    5 Feature = "feature", "with an unknown bit in reader_features";
    6 Extended = "extended", "longer than file_bytes";
    7 Pages = "pages", "whose length is not whole pages of 4096 bytes, four at least";
    8 KeyType = "key-type", "whose key type is unknown, or not of key_bytes bytes";
    9 ValueType = "value-type", "likewise of the values";
    10 Unique = "unique", "whose `unique` is neither 0 nor 1";
    11 TablePlace = "table-place", "whose table_offset or table_bytes is not 4096";
    12 TableEntries = "table-entries", "with more than 31 sections";
    13 TableSum = "table-sum", "whose section table does not have the CRC in the superblock";
    14 FirstSection = "first-section", "whose first section does not begin at 8192";
    15 Alignment = "alignment", "with a section that does not begin on 4096 bytes";
    16 SectionOrder = "section-order",
        "with a section that begins before the one before it, or behind the closing section table";
    17 SectionEnd = "section-end",
        "with a section whose length, up to a multiple of 128, reaches beyond its extent";
    18 SectionGap = "section-gap", "with 2 MiB or more behind a section's length";
    19 SectionLarge = "section-large",
        "with a META of more than 1,048,576 bytes or a MASK of more than 131,102";
    20 Flags = "flags", "with an unknown flag of an entry";
    21 RequiredSection = "required-section", "with a section that is required and unknown";
    22 SectionTwice = "section-twice", "with two sections of one tag";
    23 Reserved = "reserved", "with a reserved byte of an entry that is not zero";
    24 SumsMissing = "sums-missing", "without SUMS or SUM2";
    25 Sum2List = "sum2-list", "whose SUM2 has a list of sums";
    26 Sum2Length = "sum2-length", "whose SUM2 is not as long as the sums of SUMS";
    27 SumsCount = "sums-count", "with a list of sums that has not one sum for each 8192 bytes of the extent";
    28 SumsPlace = "sums-place",
        "with a list of sums that is not on 4 bytes, or not in SUMS (that of SUMS: in SUM2)";
    29 LineMissing = "line-missing", "without LINE";
    30 WordBytes = "word-bytes", "whose words are not of 4, 8 or 16 bytes, or longer than numeric keys";
    31 ShortWords = "short-words", "whose runs or base break the rules of short words";
    32 LineLength = "line-length",
        "whose LINE has another length or number of tuples than superblock and types say";
    33 LineParameters = "line-parameters", "whose LINE has other parameters than these";
    34 Spine = "spine",
        "whose SPIN has parameters, a length or a number of lines that its levels do not give";
    35 Column = "column", "with a TAIL, KEYS, VALS or CODE whose parameters, elements or length do not agree";
    36 Codes = "codes", "with a CODE that does not go with VALS";
    37 Text = "text",
        "with a TEXT of other keys than LINE has tuples, whose parameters or length do not agree, or \
         beside TAIL, KEYS or numeric keys";
    38 Trie = "trie",
        "with a TRIE whose parameters or length do not agree, or without a TEXT of 2 to 2^29 - 1 \
         pages";
    39 ValuesMissing = "values-missing", "whose values are byte strings, without VALS";
    40 Packed = "packed", "with a PACK whose parameters, keys or length do not agree";
    41 Grid = "grid", "with a GRID whose parameters, units or length do not agree";
    42 Harmonia = "harmonia", "with a HARM whose parameters, tuples or length do not agree";
    43 Btree = "btree", "with a BTRE likewise";
    44 Fast = "fast", "with a FAST likewise";
    45 MaskMissing = "mask-missing", "with byte keys and no MASK, or a MASK and numeric keys";
    46 Mask = "mask",
        "whose MASK breaks a rule of its section: length, flags, key length, kept bits that do not \
         fit in a word or a tail";
    47 Tail = "tail", "whose TAIL has other elements than MASK says";
    48 KeysMissing = "keys-missing", "whose words are not whole keys, without TAIL, KEYS or TEXT";
    49 Approximate = "approximate",
        "with bit 0 of reader_features and no count of keys in META (tag 7), or another type than \
         such keys have; or with tag 7 and without the bit";
}

impl Rule {
    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the rule with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }

    /// Says how a file breaks the rule.
    #[must_use]
    pub const fn broken(self, text: &'static str) -> Breach {
        Breach { rule: Some(self), text }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a stored number should be: a sentence, and the rule that it belongs to if a reader checks it when it opens a
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule; `None` for what is found only when a file is read.
    pub rule: Option<Rule>,
    /// The sentence.
    pub text: &'static str,
}

impl From<&'static str> for Breach {
    fn from(text: &'static str) -> Self {
        Self { rule: None, text }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_and_names_differ() {
        for (number, rule) in (1..).zip(Rule::ALL) {
            assert_eq!((rule.number(), Rule::from_name(rule.name())), (number, Some(*rule)));
        }
        assert_eq!((Rule::ALL.len(), Rule::from_name("no such rule")), (49, None));
    }
}
