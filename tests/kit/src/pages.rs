//! A second reader and writer of TEXT and TRIE, written from sections 14 and 15 of `spec/FORMAT.md`: slow, and without
//! the product's modules for pages and nodes.
//!
//! The writer chooses otherwise than the product: no symbols, plain pages, and a trie that parts by the middle
//! separator. What it writes must be clean and answer alike.

use crate::naive::Content;
use pleach_format::section::{Tag, TextParameters, TrieParameters};

/// Keys of a page.
const PAGE: usize = 16;
/// Bytes of a node.
const NODE: usize = 128;

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// Bytes that two texts have in common at their start.
fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Reads all keys of a TEXT section.
#[must_use]
pub fn keys(section: &[u8], count: usize, place_bytes: usize) -> Vec<Vec<u8>> {
    let (lengths, rest) = section.split_at(256);
    let (symbols, rest) = rest.split_at(2048);
    let pages = count.div_ceil(PAGE);
    let place = |page: usize| number(&rest[page * place_bytes..][..place_bytes]);
    let first = (2304 + (pages + 1) * place_bytes).next_multiple_of(128);
    let mut keys = Vec::new();
    for page in 0..pages {
        let bytes = &section[first + place(page)..first + place(page + 1)];
        let (head_bytes, base) = (number(&bytes[..2]), number(&bytes[2..4]));
        let (is_wide, is_plain) = (bytes[4] & 1 != 0, bytes[4] & 2 != 0);
        let head_at = if is_wide { 81 } else { 66 };
        let head = bytes[head_at..][..head_bytes].to_vec();
        let mut codes = &bytes[head_at + head_bytes..];
        keys.push(head.clone());
        for follower in 0..(count - page * PAGE).min(PAGE) - 1 {
            let length =
                if is_wide { number(&bytes[51 + 2 * follower..][..2]) } else { bytes[51 + follower].into() };
            let mut key = head[..base + usize::from(bytes[21 + follower])].to_vec();
            if length > 0 {
                key.push(bytes[36 + follower]);
                let (own, others) = codes.split_at(length - 1);
                codes = others;
                let mut own = own.iter();
                while let Some(&code) = own.next() {
                    match (is_plain, code) {
                        (true, byte) => key.push(byte),
                        (false, 255) => key.push(*own.next().expect("a byte after an escape")),
                        (false, code) => {
                            let symbol =
                                &symbols[8 * usize::from(code)..][..lengths[usize::from(code)].into()];
                            key.extend_from_slice(symbol);
                        }
                    }
                }
            }
            keys.push(key);
        }
        assert!(codes.is_empty(), "codes end the page");
    }
    keys
}

/// The fingerprint of a key.
fn fingerprint(key: &[u8]) -> u8 {
    let part = |from_end: usize| {
        let end = key.len().saturating_sub(from_end - 8);
        let start = key.len().saturating_sub(from_end).min(end);
        number(&key[start..end]) as u64
    };
    let sum = [(part(8), 0x9E37_79B9_7F4A_7C15), (part(16), 0xC2B2_AE3D_27D4_EB4F)]
        .into_iter()
        .chain([(part(24), 0x1656_67B1_9E37_79F9), (key.len() as u64, 0xD6E8_FEB8_6659_FD93_u64)])
        .fold(0u64, |sum, (word, factor)| sum.wrapping_add(word.wrapping_mul(factor)));
    (sum >> 56) as u8
}

fn page(keys: &[Vec<u8>]) -> Vec<u8> {
    let (head, last) = (&keys[0], &keys[keys.len() - 1]);
    let base = shared(head, last);
    let shares: Vec<usize> = keys[1..].iter().map(|key| (shared(head, key) - base).min(255)).collect();
    let rests: Vec<&[u8]> = keys[1..].iter().zip(&shares).map(|(key, share)| &key[base + share..]).collect();
    let is_wide = rests.iter().any(|rest| rest.len() > 255);
    let mut bytes = vec![0; if is_wide { 81 } else { 66 }];
    bytes[..2].copy_from_slice(&(head.len() as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&(base as u16).to_le_bytes());
    bytes[4] = if is_wide { 3 } else { 2 };
    for (at, key) in keys.iter().enumerate() {
        bytes[5 + at] = fingerprint(key);
    }
    for (at, (share, rest)) in shares.iter().zip(&rests).enumerate() {
        bytes[21 + at] = *share as u8;
        bytes[36 + at] = rest.first().copied().unwrap_or(0);
        let length = (rest.len() as u16).to_le_bytes();
        if is_wide {
            bytes[51 + 2 * at..][..2].copy_from_slice(&length);
        } else {
            bytes[51 + at] = length[0];
        }
    }
    bytes.extend_from_slice(head);
    rests.iter().for_each(|rest| bytes.extend_from_slice(rest.get(1..).unwrap_or_default()));
    bytes
}

/// Makes a TEXT section of sorted keys.
#[must_use]
pub fn text(keys: &[Vec<u8>]) -> Content {
    let mut bytes = vec![0; 2304];
    let pages: Vec<Vec<u8>> = keys.chunks(PAGE).map(page).collect();
    let mut place = 0u32;
    bytes.extend_from_slice(&place.to_le_bytes());
    for page in &pages {
        place += page.len() as u32;
        bytes.extend_from_slice(&place.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(128), 0);
    bytes.extend(pages.concat());
    bytes.extend([0; 64]);
    let parameters =
        TextParameters { page_keys: (PAGE as u32).into(), place_bytes: 4.into(), reserved: [0; 56] };
    (Tag::TEXT, true, bytes, keys.len() as u64, parameters.into())
}

/// A separator, with zero bytes after it, and the first byte in which its neighbours differ.
struct Separator {
    text: Vec<u8>,
    differs: Option<usize>,
}

/// Longest key that the writer of tries takes, and eight bytes.
const LONGEST: usize = 4096;

fn padded(key: &[u8]) -> Vec<u8> {
    let mut key = key.to_vec();
    key.resize(LONGEST, 0);
    key
}

/// Makes a TRIE section of the same keys; `None` if they fill one page. Nodes part by their middle separator.
#[must_use]
pub fn trie(keys: &[Vec<u8>]) -> Option<Content> {
    let separators: Vec<Separator> = (PAGE..keys.len())
        .step_by(PAGE)
        .map(|at| {
            let (left, right) = (padded(&keys[at - 1]), padded(&keys[at]));
            let differs = (0..LONGEST).find(|&byte| left[byte] != right[byte]);
            let text = padded(&keys[at][..differs.map_or(keys[at].len(), |byte| byte + 1)]);
            Separator { text, differs }
        })
        .collect();
    if separators.is_empty() {
        return None;
    }
    let mut nodes = Vec::new();
    let levels = node(&separators, 0, &mut nodes);
    let count = nodes.len() as u64;
    let parameters =
        TrieParameters { node_bytes: (NODE as u32).into(), levels: levels.into(), reserved: [0; 56] };
    Some((Tag::TRIE, false, nodes.concat(), count, parameters.into()))
}

/// Appends the node of some separators, the first of which is after page `page`, and all below it. Returns the levels.
fn node(separators: &[Separator], page: usize, nodes: &mut Vec<Vec<u8>>) -> u32 {
    let number = nodes.len();
    nodes.push(vec![0; NODE]);
    nodes[number][48..].fill(0xFF);
    let (first, last) = (&separators[0], &separators[separators.len() - 1]);
    let same = shared(&first.text, &last.text);
    let prefix = same.min(first.differs.unwrap_or(LONGEST));
    let word =
        |node: &mut [u8], at: usize, word: u32| node[4 + 4 * at..][..4].copy_from_slice(&word.to_le_bytes());
    if prefix + 8 > LONGEST {
        nodes[number][3] = 1;
        word(&mut nodes[number], 0, page as u32);
        word(&mut nodes[number], 1, separators.len() as u32);
        return 1;
    }
    let slice = |separator: &Separator| {
        separator.text[prefix..prefix + 8].iter().fold(0u64, |slice, &byte| slice << 8 | u64::from(byte))
    };
    let middle = slice(&separators[separators.len() / 2]);
    let start = separators.partition_point(|separator| slice(separator) < middle);
    let end = separators.partition_point(|separator| slice(separator) <= middle);
    // The first of the equal ones is the slot itself, if it ends here.
    let is_whole = separators[start].differs.is_some_and(|byte| byte < prefix + 8);
    let run = start + usize::from(is_whole)..end;
    let mut slots = vec![middle];
    // Where each group of separators begins and ends.
    let mut groups = vec![(0, start)];
    if run.is_empty() {
        groups.push((end, separators.len()));
    } else {
        groups.push((run.start, run.end));
        if let Some(next) = middle.checked_add(1) {
            slots.push(next);
            groups.push((end, separators.len()));
        }
    }
    let mut levels = 1;
    for (at, (from, to)) in groups.into_iter().enumerate() {
        let group = from..to;
        let child = if group.is_empty() {
            // One page: between two separators, or beside a run.
            (page + group.start) as u32
        } else {
            let child = nodes.len() as u32;
            levels = levels.max(1 + node(&separators[group.clone()], page + group.start, nodes));
            1 << 31 | child
        };
        word(&mut nodes[number], at, child);
    }
    nodes[number][..2].copy_from_slice(&(prefix as u16).to_le_bytes());
    nodes[number][2] = slots.len() as u8;
    for (at, slot) in slots.into_iter().enumerate() {
        nodes[number][48 + 8 * at..][..8].copy_from_slice(&slot.to_le_bytes());
    }
    levels
}

/// Appends codes of a text: the longest of these symbols, one after the other, by their numbers, or an escape and a
/// byte.
pub fn greedy(symbols: &[&[u8]], text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let fits = |it: &(usize, &&[u8])| text[at..].starts_with(it.1);
        match symbols.iter().enumerate().filter(fits).max_by_key(|it| it.1.len()) {
            Some((code, symbol)) => {
                out.push(code as u8);
                at += symbol.len();
            }
            None => {
                out.extend([255, text[at]]);
                at += 1;
            }
        }
    }
}
