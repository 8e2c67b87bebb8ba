//! Faults of columns and of byte keys that a check finds under right sums.

use super::super::bases::Base;
use super::super::fault::{Fault, Make, damaged};
use super::{again, changed, edit};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, contents, extent, header, number, put, swap};
use pleach_kit::naive::assemble;
use pleach_kit::pages;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = offsets();
    all.extend(words());
    all.extend(stored());
    all.extend(texts());
    all.extend(records());
    all.extend(long());
    all
}

/// Values of more than four million bytes, which a check reads in pieces.
fn long() -> Vec<Fault> {
    let inside = |b: &mut Vec<u8>| {
        let at = content(b, Tag::VALUES).start + 3_333_333;
        b[at] = 0xFF;
    };
    // Behind SUMS, so that a fault that is none would be the first one.
    let behind = |b: &mut Vec<u8>| {
        let at = extent(b, Tag::SUMS).end - 1;
        b[at] = 1;
    };
    // The last letter becomes one of one byte, and the first half of another.
    let half = |b: &mut Vec<u8>| {
        let at = content(b, Tag::VALUES).end - 66;
        b[at..at + 2].copy_from_slice(&[b'a', 0xC3]);
    };
    vec![
        damaged(
            Code::Column,
            "long-text-half",
            Base::LongText,
            "The end of a long text is half.",
            edit(half),
        )
        .ask(0),
        damaged(
            Code::Column,
            "long-text",
            Base::LongText,
            "A byte of a long text is not UTF-8.",
            edit(inside),
        )
        .ask(0),
        damaged(
            Code::Column,
            "long-record",
            Base::LongRecord,
            "A byte of a long record is not UTF-8.",
            edit(inside),
        )
        .ask(0),
        damaged(
            Code::Padding,
            "long-text-sound",
            Base::LongText,
            "A byte behind SUMS, and a long text.",
            edit(behind),
        )
        .ask(0),
        damaged(
            Code::Padding,
            "long-record-sound",
            Base::LongRecord,
            "A byte behind SUMS, and a long record.",
            edit(behind),
        )
        .ask(0),
    ]
}

/// Changes the offsets of the values, of four bytes each.
fn moved(change: fn(&mut [u64])) -> Make {
    Box::new(edit(move |b| {
        let there = header(b).values.expect("values");
        let at = there.offset as usize;
        let mut all: Vec<u64> =
            (0..=there.shape.elements as usize).map(|place| number(b, at + 4 * place, 4)).collect();
        change(&mut all);
        for (place, &offset) in all.iter().enumerate() {
            put(b, at + 4 * place, 4, offset);
        }
    }))
}

/// Changes the offsets that are those of the end.
fn move_end(all: &mut [u64], more: i64) {
    let end = all[all.len() - 1];
    all.iter_mut()
        .filter(|offset| **offset == end)
        .for_each(|offset| *offset = end.wrapping_add_signed(more));
}

fn offsets() -> Vec<Fault> {
    let broken = |name, base, about, change| damaged(Code::Column, name, base, about, moved(change));
    vec![
        broken("offsets-end", Base::Values, "The last offset is one byte less than there are.", |all| {
            move_end(all, -1);
        }),
        broken("offsets-start", Base::Codes, "The first value begins at its second byte.", |all| all[0] = 1),
        broken("offsets-cross", Base::Values, "An offset inside the values is above the next one.", |all| {
            let end = all[all.len() - 1];
            let at = (1..all.len()).rfind(|&at| all[at] + 1 < end).expect("an offset inside");
            all[at - 1] = all[at] + 1;
        }),
        broken("offsets-behind", Base::Values, "The last offsets are behind the values.", |all| {
            move_end(all, 1);
        }),
    ]
}

/// Changes a byte of a tuple line, counted from its start.
fn line(at: usize, change: u8) -> Make {
    Box::new(edit(move |b| {
        let at = content(b, Tag::LINE).start + at;
        b[at] ^= change;
    }))
}

fn words() -> Vec<Fault> {
    let broken = |name: &str, base, about: &str, make| damaged(Code::Column, name, base, about, make);
    let texts = Base::Valid("utf8-word");
    let mut all = vec![
        broken("word-text", texts, "A word of a text that is not UTF-8.", line(8 + 1, 0x80)),
        broken("word-text-low", texts, "A word of another text that is not UTF-8.", line(3, 1)),
        broken("word-bits", texts, "A word with a bit in its upper half that no key has.", line(4, 1)),
    ];
    // Words of 16 bytes of keys that are in a column: each quarter is compared.
    for part in 0..4 {
        all.push(broken(
            &format!("word-quarter-{part}"),
            Base::Valid("utf8-keys"),
            &format!("Quarter {part} of a word of 16 bytes is not that of its key."),
            Box::new(edit(move |b| {
                // The last word may grow.
                let there = header(b);
                let tuples = there.geometry.tuples_per_line() as u64;
                let last = there.tuples - 1;
                let at = content(b, Tag::LINE).start
                    + 64 * (last / tuples) as usize
                    + 16 * (last % tuples) as usize
                    + 4 * part;
                let byte = (at..at + 4).find(|&at| b[at] != 0xFF).expect("a bit that is not set");
                b[byte] = 0xFF;
            })),
        ));
    }
    all
}

/// Keys that are stored in KEYS.
fn stored() -> Vec<Fault> {
    let keys = |at: usize, change: u8| -> Make {
        Box::new(edit(move |b| {
            let at = content(b, Tag::KEYS).start + at;
            b[at] ^= change;
        }))
    };
    vec![
        damaged(Code::Column, "keys-text", Base::Keys, "A stored key is not UTF-8.", keys(231, 0x80)),
        damaged(Code::Column, "keys-text-end", Base::Keys, "The end of a key is not UTF-8.", keys(284, 0x80)),
        exchanged("keys-order", 1),
        // Both in one line that is neither the first nor the last one, and in two such lines.
        exchanged("keys-order-inside", 4),
        exchanged("keys-order-border", 5),
        damaged(
            Code::Column,
            "keys-pair",
            Base::Valid("keys-pair"),
            "Two stored keys of a line inside are equal in a file of unique keys.",
            edit(|b| put(b, 100, 4, 1)),
        ),
        damaged(
            Code::Column,
            "keys-long",
            Base::Valid("keys-unique"),
            "A stored key is longer than the mask allows, in a line inside.",
            changed(Tag::KEYS, |bytes, elements, _| {
                let keys = *elements as usize;
                let at = |bytes: &[u8], key: usize| number(bytes, 4 * key, 4) as usize;
                let data = bytes.len() - 64 - at(bytes, keys);
                let end = data + at(bytes, 5);
                bytes.splice(end..end, [b'9'; 100]);
                for key in 5..=keys {
                    let moved = at(bytes, key) as u64 + 100;
                    put(bytes, 4 * key, 4, moved);
                }
            }),
        ),
        damaged(
            Code::Column,
            "keys-constant",
            Base::Valid("keys-equal"),
            "A bit in which all keys agree is another one, in a key whose word is that of the one before.",
            edit(|b| {
                let there = header(b).keys.expect("keys");
                let key = number(b, there.offset as usize + 4 * 2, 4) as usize;
                b[there.data_offset() as usize + key + 20] ^= 0x40;
            }),
        ),
        damaged(
            Code::Column,
            "values-alone",
            Base::Columns,
            "A number of the column of values is not that of the lines, in a file without KEYS.",
            |b: &mut Vec<u8>| {
                again(|all| {
                    all.retain(|content| content.0 != Tag::KEYS);
                    all.iter_mut()
                        .filter(|content| content.0 == Tag::VALUES)
                        .for_each(|content| content.2[4] ^= 1);
                })(b);
            },
        ),
        damaged(
            Code::Column,
            "keys-equal",
            Base::Valid("keys-equal"),
            "Stored keys are equal in a file of unique keys.",
            edit(|b| put(b, 100, 4, 1)),
        ),
    ]
}

/// A key of the column and the one behind it, which have one word, are exchanged.
fn exchanged(name: &str, rank: usize) -> Fault {
    damaged(
        Code::Column,
        name,
        Base::Valid("keys-wide"),
        "Two stored keys of one word are exchanged.",
        edit(move |b| {
            let there = header(b).keys.expect("keys");
            let at = there.data_offset() as usize;
            let place = |b: &[u8], key: usize| number(b, there.offset as usize + 4 * key, 4) as usize;
            let [one, two, end] = [rank, rank + 1, rank + 2].map(|key| at + place(b, key));
            assert_eq!(two - one, end - two, "keys of one length");
            swap(b, one, two, two - one);
        }),
    )
}

/// Keys by page that are others than those of the words, in sound pages.
fn texts() -> Vec<Fault> {
    let rewritten = |change: fn(&mut Vec<Vec<u8>>)| -> Make {
        Box::new(move |b| {
            let there = header(b);
            let place = content(b, Tag::TEXT);
            let mut keys = pages::keys(&b[place], there.tuples as usize, 4);
            change(&mut keys);
            let (text, trie) = (pages::text(&keys), pages::trie(&keys));
            let mut all = contents(b);
            for content in &mut all {
                match (content.0, &trie) {
                    (Tag::TEXT, _) => content.clone_from(&text),
                    (Tag::TRIE, Some(trie)) => content.clone_from(trie),
                    _ => {}
                }
            }
            *b = assemble(there.superblock, all);
        })
    };
    let broken = |name, about, make| damaged(Code::Column, name, Base::Text, about, make);
    vec![
        broken(
            "text-key-long",
            "A key by page is longer than any key.",
            rewritten(|keys| keys[20].extend([b'9'; 200])),
        ),
        broken("text-key-word", "A key by page has another word.", rewritten(|keys| keys[20][14] ^= 1)),
        broken(
            "text-key-utf8",
            "A key by page is not UTF-8.",
            rewritten(|keys| {
                let last = keys[20].len() - 1;
                keys[20][last] = 0xFF;
            }),
        ),
        damaged(
            Code::Column,
            "text-key-short",
            Base::FixedText,
            "A key by page is shorter than all keys, by a zero byte.",
            rewritten(|keys| {
                keys[20].pop();
            }),
        ),
        damaged(
            Code::MinMax,
            "text-key-end",
            Base::Text,
            "The last key by page is not that of the superblock.",
            rewritten(|keys| {
                let last = keys.len() - 1;
                keys[last].push(b'0');
            }),
        ),
    ]
}

/// Values that are records of texts: last, the end of a name, a flag, the end of the rest; then both texts.
fn records() -> Vec<Fault> {
    let base = Base::Valid("record-text");
    // The value of rank 1: the name `a`, and one byte.
    let value = |at: usize, to: u8| -> Make {
        Box::new(edit(move |b| {
            let there = header(b).values.expect("values");
            let start = number(b, there.offset as usize + 4, 4) as usize;
            let at = there.data_offset() as usize + start + at;
            b[at] = to;
        }))
    };
    let broken = |name, about, make| damaged(Code::Column, name, base, about, make);
    let mut all = vec![
        broken("record-beyond", "The first text ends one byte behind the value.", value(4, 3)),
        broken("record-cross", "The second text ends before the first one.", value(9, 0)),
        broken("record-behind", "A text ends far behind its value.", value(7, 1)),
        broken("record-short", "Texts end before their value does.", value(9, 1)),
        broken("record-text-utf8", "A text of a record is not UTF-8.", value(13, 0xFF)),
    ];
    all.push(broken(
        "record-small",
        "A value is shorter than the fields of its record.",
        Box::new(changed(Tag::VALUES, |bytes, elements, _| {
            // The last value loses its end, and the offset behind it tells so.
            let last = 4 * *elements as usize;
            let end = u32::from_le_bytes(bytes[last..last + 4].try_into().expect("four bytes"));
            let start = u32::from_le_bytes(bytes[last - 4..last].try_into().expect("four bytes"));
            let left = start + 8;
            bytes[last..last + 4].copy_from_slice(&left.to_le_bytes());
            bytes.truncate(bytes.len() - (end - left) as usize - 64);
            bytes.extend([0; 64]);
        })),
    ));
    all.push(damaged(
        Code::Meta,
        "record-fixed",
        Base::Valid("record-bytes"),
        "A record of 14 bytes, in values of 15.",
        again(|all| {
            for content in all.iter_mut().filter(|it| it.0 == Tag::META) {
                let at = content.2.windows(6).rposition(|it| it == b"bytes3").expect("a field");
                content.2[at + 5] = b'2';
            }
        }),
    ));
    all
}
