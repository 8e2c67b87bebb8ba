//! The parameters of each section: the 64 bytes of its entry that say how it is laid out.
//!
//! Every section that has parameters has a struct of its own, of exactly 64 bytes. A reader computes the shape
//! of the section from them, and accepts them only if they are the parameters of that shape: reserved bytes
//! are zero, and nothing is stored twice with different meanings.

use crate::short::RUNS_MAX;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the parameters of a section.
pub const PARAMETERS_BYTES: usize = 64;

/// Maximum number of levels in a spine.
pub const LEVELS_MAX: usize = 24;

/// Parameters of a section of any kind, as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct Parameters(pub [u8; PARAMETERS_BYTES]);

impl Parameters {
    /// The parameters of a section that has none.
    pub const NONE: Self = Self([0; PARAMETERS_BYTES]);
}

/// Defines the structs, their conversions to and from [`Parameters`], and the lists of their fields.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } reserved $reserved:literal
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Zero.
            pub reserved: [u8; $reserved],
        }

        impl From<$name> for Parameters {
            fn from(parameters: $name) -> Self {
                zerocopy::transmute!(parameters)
            }
        }

        impl From<Parameters> for $name {
            fn from(parameters: Parameters) -> Self {
                zerocopy::transmute!(parameters)
            }
        }

        impl $name {
            /// Names of the fields, in the order of their offsets.
            pub const FIELDS: &[&str] = &[$(stringify!($field),)* "reserved"];
        }
    )*};
}

parameters! {
    /// LINE: tuple lines.
    LineParameters {
        /// Bytes per line: 64.
        line_bytes: U32,
        /// Bytes per word.
        word_bytes: U32,
        /// Bytes per value in a line.
        value_bytes: U32,
        /// Tuples per full line.
        line_tuples: U32,
        /// Short words: what is added to the bits of a word to give its key, little-endian. Else zero.
        base: [u8; 16],
        /// Short words: the lowest bit of each run, and the number of its bits. Else zero.
        runs: [[u8; 2]; RUNS_MAX],
    } reserved 24

    /// SPIN: the spine.
    SpineParameters {
        /// Bytes per line: 64.
        line_bytes: U32,
        /// Bytes per word.
        word_bytes: U32,
        /// Number of levels, at most 24.
        levels: U32,
        /// Tuple lines in a child of level 0: a power of two, at most 128.
        child_lines: U32,
        /// Number of lines with the flag INEXACT.
        inexact_lines: U64,
        /// Encoding of each level, bottom level first; zero after the last.
        encodings: [u8; LEVELS_MAX],
    } reserved 16

    /// GRID: from a key to its line.
    GridParameters {
        /// Bytes per word: 4 or 8.
        word_bytes: U32,
        /// Most segments that a search reads, the first one left out.
        steps: U32,
        /// Segments after which nearly all words have arrived.
        usual_steps: U32,
        /// Zero.
        gap: U32,
        /// Number of segments, the first one left out.
        segments: U64,
        /// The first segment: its base.
        base: U64,
        /// Its first segment, unit or line.
        first: U32,
        /// Its parts and their width.
        form: U32,
    } reserved 24

    /// TAIL, KEYS, VALS: columns.
    ColumnParameters {
        /// Bytes per element; 0 if elements vary in length.
        element_bytes: U32,
        /// Bytes per offset, 4 or 8; 0 if elements do not vary.
        offset_bytes: U32,
    } reserved 56

    /// TEXT: byte keys by page.
    TextParameters {
        /// Keys per page: 16.
        page_keys: U32,
        /// Bytes per place of a page: 4 or 8.
        place_bytes: U32,
    } reserved 56

    /// TRIE: from a byte key to its page.
    TrieParameters {
        /// Bytes per node: 128.
        node_bytes: U32,
        /// Most nodes on a path.
        levels: U32,
    } reserved 56

    /// PACK: the compressed key column.
    PackedParameters {
        /// Bytes per word: 4 or 8.
        word_bytes: U32,
        /// Keys per page: 1024.
        page_keys: U32,
    } reserved 56

    /// FAST: a FAST tree.
    FastParameters {
        /// Bytes per line: 64.
        line_bytes: U32,
        /// Bytes per word.
        word_bytes: U32,
        /// Number of levels of pages.
        levels: U32,
        /// Form of the tree: 0 full, 1 distances, 2 partial keys, 3 either.
        form: u8,
        /// Depth of a SIMD block, d_K.
        d_k: u8,
        /// Depth of a line block, d_L.
        d_l: u8,
        /// Depth of a page, d_P.
        d_p: u8,
        /// Bit 0: lines are padded. Bit 1: pages do not straddle huge pages.
        padded: u8,
    } reserved 47

    /// HARM: Harmonia's B+tree.
    HarmoniaParameters {
        /// Bytes per node.
        node_bytes: U32,
        /// Bytes per word.
        word_bytes: U32,
        /// Bytes per value.
        value_bytes: U32,
        /// Keys per full node.
        node_keys: U32,
        /// Maximum number of children of a node.
        fanout: U32,
        /// Number of levels.
        levels: U32,
    } reserved 40

    /// BTRE: the contiguous B+tree.
    BtreeParameters {
        /// Maximum number of children of a node.
        order: U32,
        /// Bytes per word.
        word_bytes: U32,
        /// Bytes per value.
        value_bytes: U32,
        /// Number of levels.
        levels: U32,
    } reserved 48
}
