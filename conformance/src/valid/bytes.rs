//! Files whose keys or values are byte strings.

use super::cells::unsigned;
use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::section::Tag;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;
use pleach_kit::mutate::{contents, header};
use pleach_kit::{naive, pages};

pub(super) fn plans() -> Vec<Plan> {
    let mut all = masks();
    all.extend(texts());
    all.extend(values());
    all
}

/// Keys with numbers as values, in the order of the keys given.
fn numbered(keys: impl IntoIterator<Item = Vec<u8>>) -> Vec<(Cell, Cell)> {
    keys.into_iter().zip(0u32..).map(|(key, at)| (Cell::Bytes(key), unsigned(at))).collect()
}

fn phone(at: u64) -> Vec<u8> {
    format!("{:02}-{:03}-{:03}", 10 + at % 25, mix(at) % 1000, mix(!at) % 1000).into_bytes()
}

fn long(at: u64) -> Vec<u8> {
    [mix(at), mix(at + 1000), mix(at + 2000)].map(|number| format!("{number:020}")).concat().into_bytes()
}

fn masks() -> Vec<Plan> {
    let u32s = |key| (key, ValueType::U32);
    let zeros = (0..8).flat_map(|n| [vec![0; n], [&b"a"[..], &vec![0; n]].concat()]);
    let lengths = |at: u64| long(at)[(at % 7) as usize..].to_vec();
    let uneven = |at: u64| format!("{}/{}", "ab".repeat((at % 9 * (at % 10)) as usize), mix(at)).into_bytes();
    let hex8 = |at: u64| mix(at).to_be_bytes().to_vec();
    vec![
        Plan::new(
            "bytes-word",
            u32s(KeyType::Bytes),
            numbered(zeros),
            "Keys of bytes whose words are whole keys, with lengths; zero bytes at their ends, and the empty key.",
        ),
        Plan::new(
            "bytes10-word",
            u32s(KeyType::Fixed(10)),
            numbered((0..50).map(phone)),
            "Keys of 10 bytes whose words are whole keys.",
        )
        .names("phone", "row"),
        Plan::new(
            "bytes8-word",
            u32s(KeyType::Fixed(8)),
            numbered((0..40).map(hex8)),
            "Keys of 8 bytes, all bits of which are kept, in words of 8 bytes.",
        ),
        Plan::new(
            "utf8-word",
            u32s(KeyType::Utf8),
            numbered(["", "ä", "öl", "zebra", "ß", "a", "aa", "𝄞"].map(|it| it.as_bytes().to_vec())),
            "Short texts, as words of 8 bytes.",
        ),
        Plan::new(
            "bytes60-tail",
            u32s(KeyType::Fixed(60)),
            numbered((0..40).map(long)),
            "Keys of 60 bytes with tails.",
        ),
        Plan::new(
            "utf8-tail",
            u32s(KeyType::Utf8),
            numbered((0..40).map(lengths)),
            "Texts of several lengths with tails.",
        )
        .layout("lines"),
        Plan::new(
            "utf8-keys",
            u32s(KeyType::Utf8),
            numbered((0..50).map(uneven)),
            "Texts of very different lengths, in a column of keys.",
        )
        .layout("lines,spine,columns"),
        Plan::new(
            "bytes-columns",
            (KeyType::Bytes, ValueType::U64),
            numbered((0..20).map(phone)),
            "Words that are whole keys, and columns that may be skipped.",
        )
        .layout("lines,columns"),
        Plan::new(
            "bytes-duplicates",
            u32s(KeyType::Bytes),
            numbered((0..40).map(|at| phone(at / 9))),
            "Keys of bytes that occur nine times.",
        ),
        Plan::new(
            "bytes-one",
            u32s(KeyType::Bytes),
            numbered([b"alone".to_vec()]),
            "One key of bytes, of which no bit is kept.",
        ),
        Plan::new("bytes-empty", (KeyType::Bytes, ValueType::Bytes), Vec::new(), "No tuples of bytes.")
            .layout("lines"),
        Plan::new(
            "utf8-structures",
            u32s(KeyType::Utf8),
            numbered((0..90).map(phone)),
            "Search structures above the words of texts.",
        )
        .layout("lines,spine,grid,fast:auto,harmonia:16:80,btree:8"),
    ]
}

/// A text of about fifty bytes, whose beginning many share.
pub(crate) fn url(at: u64) -> Vec<u8> {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let word = |at: u64| words[(mix(at) % 8) as usize];
    let host = mix(at) % 5;
    format!(
        "https://www.{}-{host}.example.org/{}/{}?id={}",
        word(host),
        word(at + 70),
        word(at + 900),
        at * 37
    )
    .into_bytes()
}

/// Replaces TEXT and TRIE by those of the second writer: plain pages, without symbols.
fn second_pages(keys: Vec<Vec<u8>>) -> impl Fn(Vec<u8>) -> Vec<u8> + 'static {
    move |bytes| {
        let mut all = contents(&bytes);
        for content in &mut all {
            match content.0 {
                Tag::TEXT => *content = pages::text(&keys),
                Tag::TRIE => *content = pages::trie(&keys).expect("several pages"),
                _ => {}
            }
        }
        naive::assemble(header(&bytes).superblock, all)
    }
}

fn texts() -> Vec<Plan> {
    let start = b"the beginning of all keys of this file: ";
    let mut odd: Vec<Vec<u8>> = (0..30).map(|zeros| [&start[..], &vec![0; zeros]].concat()).collect();
    odd.extend((0..40).map(|_| [&start[..], b"equal"].concat()));
    odd.extend((0..30).map(|letters| [&start[..], &vec![b'x'; 11 * letters]].concat()));
    let noise = |at: u64| (0..40 * (at % 9)).map(move |byte| mix(at * 1000 + byte) as u8);
    odd.extend((0..20).map(|at| start.iter().copied().chain(noise(at)).collect::<Vec<u8>>()));
    let urls: Vec<Vec<u8>> = (0..120).map(url).collect();
    let mut sorted = urls.clone();
    sorted.sort();
    let text = (KeyType::Utf8, ValueType::U32);
    let one: Vec<Vec<u8>> = (0..12).map(|at| [&start[..], &url(at)].concat()).collect();
    vec![
        Plan::new(
            "text-runs",
            text,
            numbered((0..240).map(|at| url(if at < 40 { at } else { 7 + at / 200 * 4 }))),
            "Texts by page, some of which fill many pages.",
        )
        .more(),
        Plan::new("text", text, numbered(urls.clone()), "Texts by page, coded by symbols, and a trie."),
        Plan::new(
            "text-odd",
            (KeyType::Bytes, ValueType::U32),
            numbered(odd),
            "Keys by page with long common parts, zero bytes at their ends, equal keys over pages, and noise that is \
             stored plain.",
        ),
        Plan::new(
            "text-plain",
            text,
            numbered(urls),
            "Texts by page without symbols, and a trie that another writer parted.",
        )
        .change(second_pages(sorted)),
        Plan::new("text-page", text, numbered(one), "Texts of one page, which need no trie."),
    ]
}

fn values() -> Vec<Plan> {
    let letters = ["a", "ß", "€", "𝄞"];
    let text = move |at: u64| match at {
        7 => letters.concat().repeat(40),
        _ => {
            (0..mix(at) % 7).map(|more| letters[(mix(at) >> (8 + 2 * more)) as usize % 4]).collect::<String>()
        }
    };
    let label = move |at: u64| format!("{}{}", letters[(at % 4) as usize], at % 6);
    let of = |count: u64, value: &dyn Fn(u64) -> Vec<u8>| -> Vec<(Cell, Cell)> {
        (0..count).map(|at| (unsigned(mix(at) >> 20), Cell::Bytes(value(at)))).collect()
    };
    vec![
        Plan::new(
            "value-utf8",
            (KeyType::U64, ValueType::Utf8),
            of(40, &|at| text(at).into_bytes()),
            "Texts as values, empty ones and a long one.",
        )
        .layout("lines,plain"),
        Plan::new(
            "value-bytes",
            (KeyType::I32, ValueType::Bytes),
            (0..30)
                .map(|at| (Cell::Signed(at * 5 - 70), Cell::Bytes(vec![at as u8; (at % 5) as usize])))
                .collect(),
            "Byte strings as values.",
        )
        .layout("lines,spine,plain"),
        Plan::new(
            "value-bytes5",
            (KeyType::U64, ValueType::Fixed(5)),
            of(40, &|at| mix(at).to_le_bytes()[..5].to_vec()),
            "Values of 5 bytes.",
        )
        .layout("lines,plain"),
        Plan::new(
            "value-codes",
            (KeyType::U64, ValueType::Utf8),
            of(60, &|at| label(at).into_bytes()),
            "Values stored once, with codes of one byte.",
        )
        .layout("lines,dictionary"),
        Plan::new(
            "value-codes2",
            (KeyType::U64, ValueType::Bytes),
            of(290, &|at| (at % 280).to_string().into_bytes()),
            "Values stored once, with codes of two bytes.",
        )
        .layout("lines,dictionary"),
        Plan::new(
            "value-codes-empty",
            (KeyType::U64, ValueType::Utf8),
            Vec::new(),
            "Values stored once in a file without tuples.",
        )
        .layout("lines,dictionary"),
    ]
}
