//! Small whole files, of which broken ones are made.

use crate::plan::Plan;
use crate::valid::{pairs, unsigned};
use crate::word::Cell;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;

/// A whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Base {
    /// Five tuples of u64 in two lines; META and SPIN are empty.
    Small,
    /// Unique tuples with names, and a spine of one line.
    Spine,
    /// A spine with one line that is inexact.
    Inexact,
    /// Tuple lines of two blocks.
    Blocks,
    /// No tuples.
    Empty,
    /// Short words.
    Short,
    /// Keys of f64.
    Float,
    /// A grid.
    Grid,
    /// Columns of numbers.
    Columns,
    /// A compressed column.
    Packed,
    /// Harmonia's tree.
    Harmonia,
    /// The contiguous B+tree.
    Btree,
    /// A FAST tree of full keys.
    Fast,
    /// A FAST tree of distances.
    FastDelta,
    /// A FAST tree of shorter distances.
    FastNear,
    /// A FAST tree of kept nibbles.
    Nibbles,
    /// Byte keys that are words, with lengths.
    Mask,
    /// Byte keys with tails.
    Tail,
    /// Byte keys in a column.
    Keys,
    /// Byte keys by page.
    Text,
    /// Byte keys by page, each page with another letter.
    Letters,
    /// Byte keys by page, one of which fills many pages.
    Runs,
    /// Byte keys of one length by page, whose last byte is zero.
    FixedText,
    /// Byte keys of one page.
    TextPage,
    /// Values in a column.
    Values,
    /// Texts in a column.
    ValuesUtf8,
    /// Values that are stored once.
    Codes,
    /// Hashes of texts.
    Approximate,
    /// Intervals.
    Intervals,
    /// Records with texts.
    Records,
    /// A text of more than four million bytes.
    LongText,
    /// The same in a record.
    LongRecord,
    /// A valid file of the kit.
    Valid(&'static str),
}

fn texts(count: u64, text: impl Fn(u64) -> String) -> Vec<(Cell, Cell)> {
    (0..count).map(|at| (Cell::from(&*text(at)), unsigned(at))).collect()
}

/// Plans nine tuples whose values are byte strings.
fn valued(value_type: ValueType, layout: &str, value: impl Fn(u64) -> Vec<u8>) -> Plan {
    let tuple = |at| (unsigned(mix(at) << 1), Cell::Bytes(value(at)));
    Plan::new("base", (KeyType::U64, value_type), (0..9).map(tuple).collect(), "A whole file.").layout(layout)
}

/// One tuple with a long text, before which are so many bytes that tell its length.
fn long_text(before: usize) -> Vec<(Cell, Cell)> {
    // Letters of two bytes at odd places, so that some are on both sides of any border.
    let text = format!("a{}", "é".repeat(2_200_000)).into_bytes();
    let length = (text.len() as u32).to_le_bytes();
    vec![(unsigned(7u64), Cell::Bytes([&length[..before], &text].concat()))]
}

/// A key of 60 bytes, the last of which is zero.
pub(super) fn fixed(at: u64) -> Vec<u8> {
    let mut key = crate::valid::url(at);
    key.resize(59, b'.');
    key.push(0);
    key
}

impl Base {
    /// Plans the file.
    pub(crate) fn plan(self) -> Plan {
        let u64s = (KeyType::U64, ValueType::U64);
        let utf8 = (KeyType::Utf8, ValueType::U32);
        let wide = |at: u64| mix(at) << 1;
        let plan = |types, input| Plan::new("base", types, input, "A whole file.").layout("lines,spine,grid");
        let long = |at: u64| format!("{:020}{:020}", mix(at), mix(at + 100));
        let url = |at: u64| String::from_utf8(crate::valid::url(at)).expect("a text");
        match self {
            Self::Small => plan(u64s, pairs(5, wide, |at| at)),
            Self::Spine => {
                plan(u64s, pairs(61, mix, |at| at)).layout("lines,spine,wide").names("id", "number").unique()
            }
            Self::Inexact => plan(u64s, crate::valid::inexact()).layout("lines,spine,wide"),
            Self::Blocks => {
                plan((KeyType::U32, ValueType::U32), pairs(1800, |at| at * 3, |at| at)).layout("lines")
            }
            Self::Empty => plan(u64s, Vec::new()),
            Self::Short => plan(u64s, pairs(6, |at| (1 << 40) | ((at * 5) << 20) | at, |at| at)),
            Self::Float => {
                let floats = [-2.5, -0.0, 5e-324, 1.5, f64::MAX];
                plan(
                    (KeyType::F64, ValueType::U32),
                    floats.iter().zip(0u32..).map(|(&key, at)| (Cell::float(key), unsigned(at))).collect(),
                )
                .layout("lines,spine,grid,wide")
            }
            Self::Grid => plan(u64s, pairs(260, wide, |at| at)).layout("lines,grid,wide"),
            Self::Columns => {
                plan((KeyType::U64, ValueType::U32), pairs(20, wide, |at| at)).layout("lines,columns")
            }
            Self::Packed => {
                plan((KeyType::U64, ValueType::U32), pairs(20, |at| (5 << 60) + at * at, |at| at))
                    .layout("lines,packed,wide")
            }
            Self::Harmonia => {
                plan((KeyType::U64, ValueType::U32), pairs(40, wide, |at| at)).layout("lines,harmonia:8:69")
            }
            Self::Btree => {
                plan((KeyType::U64, ValueType::U32), pairs(40, wide, |at| at)).layout("lines,btree:4")
            }
            Self::Fast => plan((KeyType::U64, ValueType::U32), pairs(40, wide, |at| at)).layout("lines,fast"),
            Self::FastDelta => {
                plan((KeyType::U64, ValueType::U32), pairs(40, |at| (5 << 60) + (mix(at) >> 40), |at| at))
                    .layout("lines,wide,fast:delta:dp=6")
            }
            Self::FastNear => {
                plan((KeyType::U64, ValueType::U32), pairs(40, |at| (5 << 60) + (mix(at) >> 50), |at| at))
                    .layout("lines,wide,fast:delta:dp=6")
            }
            Self::Nibbles => {
                let nibble = |at: u64, place: u64| (mix(at + place) & 15) << (4 * place);
                let key = move |at| (5 << 60) | nibble(at, 1) | nibble(at, 9) | nibble(at, 11);
                plan((KeyType::U64, ValueType::U32), pairs(40, key, |at| at))
                    .layout("lines,wide,fast:partial")
            }
            Self::Mask => plan(
                (KeyType::Bytes, ValueType::U32),
                texts(5, |at| format!("key{}", &"12345"[..at as usize])),
            ),
            Self::Tail => plan(
                (KeyType::Bytes, ValueType::U32),
                texts(12, |at| long(at)[..40 - (at % 3) as usize].to_owned()),
            )
            .layout("lines"),
            Self::Keys => {
                let uneven = |at: u64| format!("{}/{}", "ab".repeat((at % 9 * (at % 10)) as usize), mix(at));
                plan(utf8, texts(20, uneven)).layout("lines,columns")
            }
            Self::Text => plan(utf8, texts(40, url)),
            Self::Letters => {
                let letters = |at: u64| ["a", "b", "c"][at as usize / 16].repeat(20);
                plan(utf8, texts(48, |at| format!("{}{}", letters(at), url(at))))
            }
            Self::Runs => plan(utf8, texts(240, |at| url(if at < 40 { at } else { 7 }))),
            Self::FixedText => {
                let tuple = |at| (Cell::Bytes(fixed(at)), unsigned(at));
                plan((KeyType::Fixed(60), ValueType::U32), (0..60).map(tuple).collect())
            }
            Self::TextPage => plan(utf8, texts(9, url)),
            Self::Values => {
                valued(ValueType::Bytes, "lines,plain", |at| vec![at as u8 + 1; (at % 4) as usize])
            }
            Self::ValuesUtf8 => {
                valued(ValueType::Utf8, "lines,plain", |at| "é".repeat((at % 4) as usize).into_bytes())
            }
            Self::Codes => valued(ValueType::Bytes, "lines,dictionary", |at| vec![b'a' + at as u8 % 3; 6]),
            Self::Approximate => plan((KeyType::U64, ValueType::U32), pairs(6, wide, |at| at))
                .logical("Hash64", "")
                .approximate(),
            Self::Intervals => {
                let tuples = (0..8u64)
                    .map(|at| (unsigned(at * 100), unsigned((at * 100 + 50) | (at << 32))))
                    .collect();
                plan((KeyType::U32, ValueType::U64), tuples)
                    .logical("", "record<last: u32, n: u32>")
                    .intervals()
            }
            Self::Records => {
                let value = |_| [&4u32.to_le_bytes()[..], "née".as_bytes()].concat();
                valued(ValueType::Bytes, "lines,plain", value).logical("", "record<name: utf8>")
            }
            Self::LongText => {
                Plan::new("base", (KeyType::U64, ValueType::Utf8), long_text(0), "A whole file.")
                    .layout("lines,plain")
            }
            Self::LongRecord => {
                Plan::new("base", (KeyType::U64, ValueType::Bytes), long_text(4), "A whole file.")
                    .layout("lines,plain")
                    .logical("", "record<name: utf8>")
            }
            Self::Valid(name) => crate::valid::named(name),
        }
    }
}
