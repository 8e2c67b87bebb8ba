//! The rules that a finding can name.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal;)*) => {
        /// Rule that a [`Finding`](crate::Finding) reports as broken. Later versions add codes, and change none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* #[doc = concat!("\n\nName: `", $name, "`.")] $code,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            /// Returns the stable name, which `pleach fsck` prints.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    /// The superblock does not match its sum.
    Superblock = "superblock";
    /// The copy of the superblock at the end of the file differs from the superblock.
    SuperblockCopy = "superblock-copy";
    /// The file is not as long as its superblock specifies, or it could not be read.
    Length = "length";
    /// The section table does not match its sum.
    Table = "table";
    /// The copy of the section table at the end of the file differs from the table.
    TableCopy = "table-copy";
    /// A number in the superblock or in the section table breaks a rule.
    Header = "header";
    /// A list of sums does not match the sum in the section table.
    Sums = "sums";
    /// A block of 8 KiB does not match its sum.
    Block = "block";
    /// Keys do not ascend.
    Order = "order";
    /// A key occurs more than once in a file whose keys are unique.
    Duplicate = "duplicate";
    /// A word is not that of a key: NaN, or -0.0.
    Key = "key";
    /// Free slots or the gap of a tuple line have other bytes than padding.
    LinePadding = "line-padding";
    /// Bytes after the content of a section or of an array are not zero.
    Padding = "padding";
    /// A separator of the spine does not separate its lines.
    Separator = "separator";
    /// A line of the spine is not padded, or the number of flagged lines is wrong.
    SpineLine = "spine-line";
    /// The smallest or the largest key in the superblock is not that of the tuple lines.
    MinMax = "min-max";
    /// The file id is not that of the content.
    FileId = "file-id";
    /// A record of META is malformed or does not fit, or their number is wrong.
    Meta = "meta";
    /// The MASK section is not valid, or does not fit the other sections.
    Mask = "mask";
    /// An element or an offset of a column is not that of the tuple lines.
    Column = "column";
    /// The grid does not agree with the tuple lines.
    Grid = "grid";
    /// The compressed key column does not agree with the tuple lines.
    Packed = "packed";
    /// The Harmonia tree does not agree with the tuple lines.
    Harmonia = "harmonia";
    /// The FAST tree does not agree with the tuple lines.
    Classic = "classic";
    /// The contiguous B+tree does not agree with the tuple lines.
    Btree = "btree";
    /// An interval ends before its start, or overlaps the next one.
    Interval = "interval";
    /// The byte keys by page, their symbols or their places are not valid.
    Text = "text";
    /// The trie does not lead to the pages of its keys.
    Trie = "trie";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
