//! Byte keys by page and the trie above them: whole files are clean, and each rule that is broken is found.

use super::super::{Check, Finding, check_bytes};
use pleach_format::column::ColumnGeometry;
use pleach_format::layout::LineGeometry;
use pleach_format::mask::{Chunk, Place, Survey};
use pleach_format::meta::Meta;
use pleach_format::section::{Parameters, Tag};
use pleach_format::superblock::{Superblock, bytes_prefix};
use pleach_format::text::{
    ESCAPE, FIRST_AT, HEAD_AT, LENGTHS_AT, PAGE_KEYS, PLAIN, PRINTS_AT, Page, SHARED_AT, SYMBOLS_BYTES,
    Symbols, TextGeometry, WIDE, fingerprint, pack,
};
use pleach_format::trie::{Child, NODE_BYTES, Node, SLOTS_MAX, TrieGeometry, View, slice};
use pleach_format::view::line_parameters;
use pleach_format::{KeyType, ValueType, offset_in};
use pleach_kit::generate::{Random, mix};
use pleach_kit::mutate::{content, contents, entry_at, flip, header, number, put, reseal_head, resealed};
use pleach_kit::{is_long, naive};
use std::collections::BTreeSet;
use std::ops::Range;

type Keys = Vec<Vec<u8>>;

/// Symbols of the tests.
const SYMBOLS: [&[u8]; 9] =
    [b"https://", b"example.", b"www.", b"com/", b"index", b"ab", b"a", b"\0\0\0\0", b"b"];

/// Codes of the longest symbols, one after the other.
fn code(text: &[u8], out: &mut Vec<u8>) {
    pleach_kit::pages::greedy(&SYMBOLS, text, out);
}

/// A byte of a key, and zeros behind its end.
fn byte(key: &[u8], at: usize) -> u8 {
    key.get(at).copied().unwrap_or(0)
}

/// The nodes above pages with these first and last keys.
struct Builder<'k> {
    ends: Vec<(&'k [u8], &'k [u8])>,
    nodes: Vec<Node>,
    levels: u32,
}

impl Builder<'_> {
    /// Adds the nodes above some pages; of few pages, if `as_node` does not ask for one, none.
    fn child(&mut self, pages: Range<u32>, depth: u32, as_node: bool) -> Child {
        let (first, last) = (pages.start, pages.end - 1);
        if last - first <= 3 && !as_node {
            return Child::Pages { first, more: last - first };
        }
        self.levels = self.levels.max(depth);
        let number = self.nodes.len();
        self.nodes.push(Node { prefix: 0, slices: vec![], children: vec![], run: None });
        let (below, above) = (self.ends[first as usize].1, self.ends[last as usize].0);
        let length = below.len().max(above.len());
        let Some(prefix) = (0..length).find(|&at| byte(below, at) != byte(above, at)) else {
            self.nodes[number].run = Some((first, last - first));
            return Child::Node(number as u32);
        };
        // All slices after the least one, and those that are larger by one, if they part anything.
        let most = slice(above, prefix);
        let firsts = (first + 1..=last).map(|page| slice(self.ends[page as usize].0, prefix));
        let lasts = (first..last).map(|page| slice(self.ends[page as usize].1, prefix));
        let values: BTreeSet<u64> = firsts.chain(lasts.filter_map(|it| it.checked_add(1))).collect();
        let values: Vec<u64> =
            values.into_iter().filter(|&it| it > slice(below, prefix) && it <= most).collect();
        let step = values.len().div_ceil(SLOTS_MAX);
        let (mut begin, mut slices, mut children) = (first, Vec::new(), Vec::new());
        for value in values.into_iter().step_by(step) {
            let is_left = |page: &u32| slice(self.ends[*page as usize].1, prefix) < value;
            let is_right = |page: &u32| slice(self.ends[*page as usize].0, prefix) >= value;
            let right = (first..last).rfind(is_left).map_or(first, |page| page + 1);
            let left = (first + 1..=last).find(is_right).map_or(last, |page| page - 1);
            // Two values between the same pages have no page between them.
            if left >= begin {
                children.push(self.child(begin..left + 1, depth + 1, false));
                slices.push(value);
                begin = right;
            }
        }
        children.push(self.child(begin..last + 1, depth + 1, false));
        self.nodes[number] = Node { prefix: prefix as u16, slices, children, run: None };
        Child::Node(number as u32)
    }
}

/// The bytes of TEXT of sorted keys.
fn text_of(keys: &Keys) -> (Vec<u8>, TextGeometry) {
    let mut data = Vec::new();
    let mut places = vec![0];
    for page in keys.chunks(PAGE_KEYS) {
        pack(page.iter().map(Vec::as_slice), code, &mut data);
        places.push(data.len());
    }
    let shape = TextGeometry::new(keys.len() as u64, data.len() as u64).expect("small");
    let mut bytes = Symbols::new(SYMBOLS).to_bytes().to_vec();
    places.iter().for_each(|&place| bytes.extend((place as u32).to_le_bytes()));
    bytes.resize(shape.pages_at as usize, 0);
    bytes.extend(data);
    bytes.resize(shape.bytes().expect("small") as usize, 0);
    (bytes, shape)
}

/// A file of these keys, without a spine.
fn file_of(keys: &mut Keys, key_type: KeyType) -> Vec<u8> {
    keys.sort_unstable();
    let is_unique = keys.windows(2).all(|pair| pair[0] != pair[1]);
    let mut survey = Survey::default();
    keys.iter().for_each(|key| survey.add(key));
    let mask = survey.mask(key_type.fixed_bytes(), 16).without_tail();
    assert!(!mask.is_lossless(), "keys that need no pages");
    let geometry = LineGeometry::new(mask.word_bytes(), 0);
    let mut lines = Vec::new();
    for keys in keys.chunks(geometry.tuples_per_line()) {
        let mut line = [0xFF; 64];
        for (slot, key) in line.chunks_exact_mut(geometry.key_bytes).zip(keys) {
            let Place::Word(word) = mask.place(key, Chunk::compress) else { panic!("{key:?}") };
            slot.copy_from_slice(&word.to_le_bytes()[..geometry.key_bytes]);
        }
        lines.extend(line);
    }
    lines.resize(lines.len().next_multiple_of(128), 0);
    let mut block = Superblock::new(key_type, ValueType::None);
    block.generation = 1.into();
    block.unique = u32::from(is_unique).into();
    block.tuples = (keys.len() as u64).into();
    let (min, max) = (&keys[0], &keys[keys.len() - 1]);
    (block.min_key, block.min_key_len) = (bytes_prefix(min), (min.len() as u32).into());
    (block.max_key, block.max_key_len) = (bytes_prefix(max), (max.len() as u32).into());
    let (text, shape) = text_of(keys);
    let count = keys.len() as u64;
    let meta = Meta::default();
    let mask_bytes = mask.to_bytes();
    let mut contents: Vec<naive::Content> = vec![
        (Tag::META, false, meta.encode(), meta.elements(), Parameters::NONE),
        (Tag::LINE, true, lines, count, line_parameters(geometry, None).into()),
        (Tag::MASK, true, mask_bytes, mask.covered() as u64, Parameters::NONE),
        (Tag::TEXT, true, text, count, shape.parameters().into()),
    ];
    if shape.pages > 1 {
        let ends = keys.chunks(PAGE_KEYS).map(|page| (&page[0][..], &page[page.len() - 1][..])).collect();
        let mut trie = Builder { ends, nodes: Vec::new(), levels: 0 };
        trie.child(0..shape.pages as u32, 1, true);
        let bytes = trie.nodes.iter().flat_map(Node::to_bytes).collect();
        let shape = TrieGeometry { nodes: trie.nodes.len() as u64, levels: trie.levels };
        contents.push((Tag::TRIE, false, bytes, shape.nodes, shape.parameters().into()));
    }
    naive::assemble(block, contents)
}

/// Keys of a kind, in any order.
fn keys_of(kind: u64, count: usize, random: &mut Random) -> Keys {
    let hosts = ["https://www.example.com/", "https://example.com/index/a/ab/ab", "", "x"];
    let letters = |random: &mut Random, of: &[u8], most: u64| -> Vec<u8> {
        (0..random.below(most)).map(|_| of[random.below(of.len() as u64) as usize]).collect()
    };
    let mut keys: Keys = (0..count)
        .map(|i| match kind {
            // URLs, many duplicates, zeros, long common parts.
            0 => {
                let host = hosts[random.below(2) as usize].as_bytes();
                [host, &letters(random, b"ab", 40), i.to_string().as_bytes()].concat()
            }
            1 => [hosts[random.below(4) as usize].as_bytes(), &letters(random, b"a", 3)].concat(),
            2 => [&letters(random, b"\0", 30)[..], &letters(random, b"\0\x01", 5)].concat(),
            3 => {
                let shared = [0, 100, 254, 255, 256, 400, 600][random.below(7) as usize];
                [&vec![b'k'; shared][..], &letters(random, b"ab\0", 400)].concat()
            }
            _ => [b"https://www.", &letters(random, b"abcdefgh\xFF\x80", 30)[..]].concat(),
        })
        .collect();
    // No word is a whole key.
    keys.push(vec![0xFF; 40]);
    keys.push(vec![0; 60]);
    keys
}

/// Files of all kinds of keys.
fn files(count: usize) -> Vec<(String, Keys, Vec<u8>)> {
    let mut random = Random(3);
    let mut files = Vec::new();
    for kind in 0..5 {
        for count in [14, 15, 60, count] {
            let mut keys = keys_of(kind, count, &mut random);
            let whole = file_of(&mut keys, KeyType::Bytes);
            files.push((format!("kind {kind}, {count} keys"), keys, whole));
        }
    }
    files
}

fn changed(whole: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<Finding> {
    check_bytes(&resealed(whole, change))
}

/// Returns true if a finding of this section covers a byte, and its text has these words.
fn is_found(findings: &[Finding], section: &str, at: usize, words: &str) -> bool {
    findings.iter().any(|it| {
        it.section == section
            && it.text.contains(words)
            && (it.offset..it.offset + it.length).contains(&(at as u64))
    })
}

/// Where each page begins in the file, and where the last one ends.
fn places(whole: &[u8]) -> Vec<usize> {
    let (offset, shape) = header(whole).text.expect("pages");
    let place = |page| number(whole, (offset + shape.place_at(page)) as usize, 4);
    (0..=shape.pages).map(|page| (offset + shape.pages_at + place(page)) as usize).collect()
}

fn node(whole: &[u8], number: usize) -> (usize, Node) {
    let at = content(whole, Tag::TRIE).start + number * NODE_BYTES;
    (at, Node::from_bytes(whole[at..].first_chunk().expect("a node")).expect("a node"))
}

fn nodes(whole: &[u8]) -> usize {
    content(whole, Tag::TRIE).len() / NODE_BYTES
}

#[test]
fn whole_pages_are_clean() {
    let (mut runs, mut levels) = (0, 0);
    for (name, _, whole) in files(3000) {
        assert_eq!(check_bytes(&whole), [], "{name}");
        let there = header(&whole);
        if let Some((_, trie)) = there.trie {
            levels = levels.max(trie.levels);
            runs += (0..nodes(&whole)).filter(|&at| node(&whole, at).1.run.is_some()).count();
        }
    }
    assert!(runs > 0 && levels > 2, "{runs} {levels}");
    // The longest keys, alone and many, and texts.
    let mut long: Keys = (0..40).map(|i| [&vec![b'a'; 65_500][..], &[i; 35]].concat()).collect();
    long.extend([vec![b'b'; 65_535], vec![], vec![0xFF; 100]]);
    assert_eq!(check_bytes(&file_of(&mut long, KeyType::Bytes)), []);
    let mut texts: Keys = (0..400)
        .map(|i| format!("{:060}€{i}", u128::from(mix(i)) << 64 | u128::from(mix(i + 400))).into_bytes())
        .collect();
    let whole = file_of(&mut texts, KeyType::Utf8);
    assert_eq!(check_bytes(&whole), []);
    let mut fixed: Keys = (0..100u32).map(|i| [i.to_be_bytes(); 16].concat()).collect();
    fixed.extend([vec![0xFF; 64], vec![0xA5; 64]]);
    assert_eq!(check_bytes(&file_of(&mut fixed, KeyType::Fixed(64))), []);
}

/// Every bit of a page before its head, of the places, of the padding and the guard.
#[test]
fn fields_of_pages_cannot_be_changed() {
    let step = if is_long() { 1 } else { 11 };
    for (name, _, whole) in files(100) {
        let (offset, shape) = header(&whole).text.expect("pages");
        let (offset, pages_at) = (offset as usize, (offset + shape.pages_at) as usize);
        let places = places(&whole);
        // First bytes make other keys, and so does PLAIN, if there are any codes: their prints may be the same.
        let is_free = |it: &usize| *it == 4 || (FIRST_AT..LENGTHS_AT).contains(it);
        let fields = |&at: &usize| (0..HEAD_AT).filter(move |it| !is_free(it)).map(move |it| at + it);
        let heads = places[..places.len() - 1].iter().flat_map(fields);
        let guard = *places.last().expect("an end")..content(&whole, Tag::TEXT).end;
        // Lengths of symbols that are not used, but for the next one, which could be; their bytes; places, padding.
        let table = (offset + SYMBOLS.len() + 1..offset + 256)
            .chain(offset + 256 + 8 * SYMBOLS.len()..offset + SYMBOLS_BYTES);
        let all = table.chain(offset + SYMBOLS_BYTES..pages_at).chain(heads).chain(guard);
        for (turn, at) in all.enumerate().filter(|(turn, _)| turn % step == 0) {
            let findings = changed(&whole, |bytes| flip(bytes, 8 * at + turn / step % 8));
            assert!(findings.iter().any(|it| it.section == "TEXT"), "{name}: byte {at}: {findings:?}");
        }
    }
}

#[test]
fn rules_of_pages_are_named() {
    let mut random = Random(5);
    let mut keys = keys_of(0, 200, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    let (offset, shape) = header(&whole).text.expect("pages");
    let (offset, pages) = (offset as usize, places(&whole));
    let at = pages[4];
    let found = |at: usize, words: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let findings = changed(&whole, change);
        assert!(is_found(&findings, "TEXT", at, words), "{words}: {findings:?}");
    };
    found(offset + 3, "8 bytes at most", &|bytes| bytes[offset + 3] = 9);
    found(offset + 256 + 8 * 5 + 2, "8 bytes at most", &|bytes| bytes[offset + 256 + 8 * 5 + 2] = 1);
    found(offset + 255, "the escape has none", &|bytes| bytes[offset + 255] = 1);
    found(offset + 20, "the first codes", &|bytes| bytes[offset + 20] = 1);
    let place = |page: u64| offset + shape.place_at(page) as usize;
    found(place(0), "cover the pages", &|bytes| put(bytes, place(0), 4, 1));
    found(place(shape.pages), "cover the pages", &|bytes| bytes[place(shape.pages)] ^= 1);
    for wrong in [0, u64::from(u32::MAX)] {
        found(place(5), "places must ascend", &|bytes| put(bytes, place(5), 4, wrong));
    }
    found(at + 4, "no other flags", &|bytes| bytes[at + 4] |= 4);
    found(at, "fill a page", &|bytes| bytes[at] ^= 1);
    found(at, "room for its head", &|bytes| bytes[at + 1] = 0xFF);
    found(at + 2, "the base must be", &|bytes| bytes[at + 2] -= 1);
    found(at + PRINTS_AT + 9, "a fingerprint", &|bytes| bytes[at + PRINTS_AT + 9] ^= 8);
    found(at + SHARED_AT + 3, "shares with the head", &|bytes| bytes[at + SHARED_AT + 3] = 200);
    found(at, "fill a page", &|bytes| bytes[at + LENGTHS_AT + 14] += 1);
    let last = pages[pages.len() - 2];
    let used = keys.len() % PAGE_KEYS;
    for (from, count) in [(PRINTS_AT, 16), (SHARED_AT, 15), (FIRST_AT, 15), (LENGTHS_AT, 15)] {
        for lane in [used, 14] {
            let lane = last + from + if count == 16 { lane } else { lane - usize::from(lane == used) };
            found(lane, "does not have must be zero", &|bytes| bytes[lane] = 1);
        }
    }
    // Codes: one without a symbol, and an escape at the end.
    let page = Page::new(&whole[at..pages[5]], 16);
    assert_eq!(whole[at + 4] & PLAIN, 0);
    for slot in 1..16 {
        let (codes, end) = (at + page.codes_at(slot), at + page.codes_at(slot + 1));
        if codes < end && whole[codes] != ESCAPE {
            found(codes, "each code", &|bytes| bytes[codes] = 77);
        }
        let is_symbol = codes < end && (codes + 1 == end || whole[end - 2] != ESCAPE);
        if is_symbol {
            found(end - 1, "follow an escape", &|bytes| bytes[end - 1] = ESCAPE);
        }
    }
}

/// Other sections: a page too short, lengths that are wide without need, keys that are too long.
#[test]
fn pages_of_other_forms_are_refused() {
    let mut random = Random(5);
    let mut keys = keys_of(1, 40, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    let with_pages = |pages: &[Vec<u8>]| {
        let (text, _) = text_of(&keys);
        let data: Vec<u8> = pages.concat();
        let shape = TextGeometry::new(keys.len() as u64, data.len() as u64).expect("small");
        let mut bytes = text[..SYMBOLS_BYTES].to_vec();
        let mut place = 0;
        bytes.extend(0u32.to_le_bytes());
        for page in pages {
            place += page.len() as u32;
            bytes.extend(place.to_le_bytes());
        }
        bytes.resize(shape.pages_at as usize, 0);
        bytes.extend(data);
        bytes.resize(shape.bytes().expect("small") as usize, 0);
        let mut contents = contents(&whole);
        let it = contents.iter_mut().find(|it| it.0 == Tag::TEXT).expect("pages");
        *it = (Tag::TEXT, true, bytes, keys.len() as u64, shape.parameters().into());
        check_bytes(&naive::assemble(header(&whole).superblock, contents))
    };
    let places = places(&whole);
    let pages: Vec<Vec<u8>> = places.windows(2).map(|pair| whole[pair[0]..pair[1]].to_vec()).collect();
    assert_eq!(with_pages(&pages), []);
    let has = |findings: &[Finding], words: &str| {
        assert!(findings.iter().any(|it| it.section == "TEXT" && it.text.contains(words)), "{findings:?}");
    };
    let mut short = pages.clone();
    short[1].truncate(HEAD_AT - 1);
    has(&with_pages(&short), "room for its fields");
    let mut wide = pages.clone();
    let lengths: Vec<u8> = wide[1][LENGTHS_AT..HEAD_AT].iter().flat_map(|&length| [length, 0]).collect();
    wide[1].splice(LENGTHS_AT..HEAD_AT, lengths);
    wide[1][4] |= WIDE;
    has(&with_pages(&wide), "only where one needs them");
    let mut longer = pages.clone();
    longer[1].push(0);
    has(&with_pages(&longer), "fill a page");
    // A key of more than 65,535 bytes.
    let mut long = pages;
    let last = long.len() - 1;
    // Codes of eight bytes each, and lengths of two bytes.
    let codes = vec![0u8; 9000];
    let mut page = vec![2, 0, 1, 0, WIDE];
    page.resize(81, 0);
    page[PRINTS_AT] = fingerprint(b"ba");
    page[FIRST_AT] = b'c';
    page[LENGTHS_AT..LENGTHS_AT + 2].copy_from_slice(&9001u16.to_le_bytes());
    page.extend(b"ba");
    page.extend(codes);
    long[last] = page;
    has(&with_pages(&long), "65,535 bytes at most");
}

/// Keys of pages and their words, order, ends, letters, lengths.
#[test]
fn keys_of_pages_are_those_of_their_tuples() {
    let mut random = Random(7);
    let mut keys = keys_of(4, 100, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    let there = header(&whole);
    let pages = places(&whole);
    for rank in 0..keys.len() as u64 {
        let (line, slot) = there.geometry.place(rank);
        let at = there.line_offset(line) as usize + slot * there.geometry.key_bytes;
        let findings = changed(&whole, |bytes| bytes[at] ^= 1);
        let page = pages[rank as usize / PAGE_KEYS];
        assert!(is_found(&findings, "TEXT", page, &format!("rank {rank} ")), "{rank}: {findings:?}");
    }
    for at in [136, 200] {
        let findings = changed(&whole, |bytes| bytes[at] ^= 1);
        assert!(findings.iter().any(|it| it.code.name() == "min-max"), "{findings:?}");
    }
    let findings = changed(&whole, |bytes| put(bytes, 88, 2, KeyType::Utf8.code().into()));
    let is_text = |it: &Finding| it.section == "TEXT" && it.expected == "valid UTF-8";
    assert!(findings.iter().any(is_text), "{findings:?}");
    // Duplicates in a file of unique keys, and a mask of keys that are shorter.
    let mut equal = keys_of(1, 100, &mut random);
    let twice = file_of(&mut equal, KeyType::Bytes);
    let unique = offset_in!(Superblock, unique) as usize;
    let findings = changed(&twice, |bytes| put(bytes, unique, 4, 1));
    let is_order = |it: &Finding| it.section == "TEXT" && it.expected == "a key in order";
    assert!(findings.iter().any(is_order), "{findings:?}");
    let mask = content(&whole, Tag::MASK).start;
    let longest = number(&whole, mask, 4);
    let findings = changed(&whole, |bytes| put(bytes, mask, 4, longest - 1));
    let is_long = |it: &Finding| it.section == "TEXT" && it.expected.contains("at most");
    assert!(findings.iter().any(is_long), "{findings:?}");
}

/// TEXT is needed where words are not whole keys, and is beside none that are.
#[test]
fn masks_and_pages_belong_together() {
    let mut random = Random(7);
    let mut keys = keys_of(4, 100, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    let without: Vec<naive::Content> =
        contents(&whole).into_iter().filter(|it| it.0 != Tag::TEXT && it.0 != Tag::TRIE).collect();
    let findings = check_bytes(&naive::assemble(header(&whole).superblock, without));
    assert!(findings.iter().any(|it| it.code.name() == "mask"), "{findings:?}");
    // A trie without pages, and another column of keys.
    let all = contents(&whole);
    let only_trie = all.iter().filter(|it| it.0 != Tag::TEXT).cloned().collect();
    let column = ColumnGeometry::varying(keys.len() as u64, 0).expect("small");
    let empty = vec![0; column.bytes().expect("small") as usize];
    let mut both = all;
    both.insert(3, (Tag::KEYS, true, empty, keys.len() as u64, column.parameters().into()));
    for wrong in [only_trie, both] {
        let findings = check_bytes(&naive::assemble(header(&whole).superblock, wrong));
        assert!(findings.iter().all(|it| it.code.name() == "header") && findings.len() == 1, "{findings:?}");
    }
    // Keys of one length, of which one is longer than the mask says.
    let mut fixed: Keys = (0..60u64).map(|i| [mix(i).to_be_bytes(); 5].concat()).collect();
    let whole = file_of(&mut fixed, KeyType::Fixed(40));
    assert_eq!(check_bytes(&whole), []);
    fixed[20].push(0);
    let (text, shape) = text_of(&fixed);
    let mut longer = contents(&whole);
    let it = longer.iter_mut().find(|it| it.0 == Tag::TEXT).expect("pages");
    *it = (Tag::TEXT, true, text, fixed.len() as u64, shape.parameters().into());
    let findings = check_bytes(&naive::assemble(header(&whole).superblock, longer));
    assert!(findings.iter().any(|it| it.expected == "a key of 40 bytes"), "{findings:?}");
    // Short keys, whose words are whole.
    let short: Keys = (0..100u32).map(|i| i.to_be_bytes().to_vec()).collect();
    let mut survey = Survey::default();
    short.iter().for_each(|key| survey.add(key));
    let mask = survey.mask(None, 4);
    assert!(mask.is_lossless());
    let mut contents = contents(&whole);
    let (text, shape) = text_of(&short);
    contents.retain(|it| it.0 == Tag::META);
    let geometry = LineGeometry::new(4, 0);
    let mut lines: Vec<u8> = Vec::new();
    for key in &short {
        let Place::Word(word) = mask.place(key, Chunk::compress) else { panic!("{key:?}") };
        lines.extend((word as u32).to_le_bytes());
    }
    lines.resize(lines.len().next_multiple_of(64), 0xFF);
    lines.resize(lines.len().next_multiple_of(128), 0);
    let elements = mask.covered() as u64;
    contents.push((Tag::LINE, true, lines, 100, line_parameters(geometry, None).into()));
    contents.push((Tag::MASK, true, mask.to_bytes(), elements, Parameters::NONE));
    contents.push((Tag::TEXT, true, text, 100, shape.parameters().into()));
    let mut block = header(&whole).superblock;
    block.tuples = 100.into();
    (block.min_key, block.min_key_len) = (bytes_prefix(&short[0]), 4.into());
    (block.max_key, block.max_key_len) = (bytes_prefix(&short[99]), 4.into());
    let findings = check_bytes(&naive::assemble(block, contents));
    assert!(findings.iter().all(|it| it.code.name() == "mask"), "{findings:?}");
    assert_eq!(findings.len(), 1, "{findings:?}");
}

#[test]
fn rules_of_nodes_are_named() {
    let mut random = Random(9);
    let mut keys = keys_of(0, 6000, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    assert_eq!(check_bytes(&whole), []);
    let count = nodes(&whole);
    assert!(count > 8, "{count} nodes");
    let found = |number: usize, words: &str, change: &dyn Fn(&mut Node)| {
        let (at, mut node) = node(&whole, number);
        change(&mut node);
        let findings = changed(&whole, |bytes| {
            bytes[at..at + NODE_BYTES].copy_from_slice(&node.to_bytes());
        });
        assert!(is_found(&findings, "TRIE", at, words), "{number}: {words}: {findings:?}");
    };
    let raw = |number: usize, words: &str, change: &dyn Fn(&mut [u8])| {
        let (at, _) = node(&whole, number);
        let findings = changed(&whole, |bytes| change(&mut bytes[at..at + NODE_BYTES]));
        assert!(is_found(&findings, "TRIE", at, words), "{number}: {words}: {findings:?}");
    };
    for number in 0..count {
        let (_, it) = node(&whole, number);
        raw(number, "padded", &|bytes| bytes[2] = 11);
        raw(number, "padded", &|bytes| bytes[3] = 2);
        if it.run.is_some() {
            found(number, "no slots", &|node| node.slices.push(1));
            found(number, "those of the section", &|node| node.run = Some((u32::MAX, u32::MAX)));
            continue;
        }
        if it.slices.len() < SLOTS_MAX {
            raw(number, "padded", &|bytes| bytes[127] = 0);
        }
        if it.slices.len() > 1 {
            found(number, "slices must ascend", &|node| node.slices.swap(0, 1));
            found(number, "slices must ascend", &|node| node.slices[0] = node.slices[1]);
        }
        for child in 0..it.children.len() {
            let last = |child: u32| move |node: &mut Node, at: usize| node.children[at] = Child::Node(child);
            found(number, "larger number", &|node| last(number as u32)(node, child));
            found(number, "larger number", &|node| last(count as u32)(node, child));
            let wrong = Child::Pages { first: (1 << 29) - 1, more: 3 };
            found(number, "those of the section", &|node| node.children[child] = wrong);
            match it.children[child] {
                Child::Node(child_number) => {
                    // Its child has no parent then.
                    let (at, mut node) = node(&whole, number);
                    node.children[child] = Child::Pages { first: 0, more: 0 };
                    let findings = changed(&whole, |bytes| {
                        bytes[at..at + NODE_BYTES].copy_from_slice(&node.to_bytes());
                    });
                    let orphan = at + (child_number as usize - number) * NODE_BYTES;
                    assert!(is_found(&findings, "TRIE", orphan, "the child of one before"), "{findings:?}");
                }
                Child::Pages { first, more } => {
                    if child > 0 {
                        let other = Child::Pages { first: first + 2, more: 0 };
                        if u64::from(first) + 2 < header(&whole).text.expect("pages").1.pages {
                            found(number, "where the one before it ends", &|node| {
                                node.children[child] = other
                            });
                        }
                    }
                    if child + 1 < it.children.len() && more > 1 {
                        let other = Child::Pages { first, more: 0 };
                        found(number, "where the one before it ends", &|node| node.children[child] = other);
                    }
                }
            }
        }
        let twins: Vec<u32> = it
            .children
            .iter()
            .filter_map(|child| match child {
                Child::Node(number) => Some(*number),
                Child::Pages { .. } => None,
            })
            .collect();
        if let [one, other, ..] = twins[..] {
            let at = it.children.iter().position(|child| *child == Child::Node(other)).expect("a child");
            found(number, "the child of one node", &|node| node.children[at] = Child::Node(one));
        }
        // Another prefix: further on than all keys agree.
        found(number, "share the prefix", &|node| node.prefix += 8);
    }
    let levels = entry_at(&whole, Tag::TRIE) + 56 + 4;
    let mut bytes = whole.clone();
    bytes[levels] += 1;
    reseal_head(&mut bytes);
    let bytes = resealed(&bytes, |_| {});
    assert!(is_found(&check_bytes(&bytes), "TRIE", levels, "longest path"));
}

/// Slices are checked at both sides: those that part pages can be any between the last key of the left and the first
/// key of the right page, and no others.
#[test]
fn slices_part_their_pages() {
    let mut random = Random(11);
    let (mut left, mut right, mut others) = (0, 0, 0);
    for kind in 0..5 {
        let mut keys = keys_of(kind, 2500, &mut random);
        let whole = file_of(&mut keys, KeyType::Bytes);
        for number in (0..nodes(&whole)).step_by(if is_long() { 1 } else { 4 }) {
            let (at, it) = node(&whole, number);
            for slot in 0..it.slices.len() {
                for (step, is_up) in [(1u64, true), (1 << 56, true), (1, false), (1 << 56, false)] {
                    let mut wrong = it.clone();
                    let value = &mut wrong.slices[slot];
                    *value = if is_up { value.saturating_add(step) } else { value.saturating_sub(step) };
                    let bytes = resealed(&whole, |bytes| {
                        bytes[at..at + NODE_BYTES].copy_from_slice(&wrong.to_bytes());
                    });
                    let findings = check_bytes(&bytes);
                    left += usize::from(is_found(&findings, "TRIE", at, "keys to its left"));
                    right += usize::from(is_found(&findings, "TRIE", at, "keys to its right"));
                    if findings.is_empty() {
                        others += 1;
                        leads_to_pages(&bytes, &keys);
                    }
                }
            }
        }
    }
    assert!(left > 50 && right > 50 && others > 20, "{left} {right} {others}");
}

/// Follows all keys: each that shares the prefixes of the nodes on its way must be in the pages at its end.
fn leads_to_pages(whole: &[u8], keys: &Keys) {
    let trie = &whole[content(whole, Tag::TRIE)];
    let (nodes, _) = trie.as_chunks::<NODE_BYTES>();
    // Where the pages under a node begin and end.
    let end = |mut child: Child, is_right: bool| loop {
        match child {
            Child::Pages { first, more } => break (if is_right { first + more } else { first }) as usize,
            Child::Node(number) => {
                let view = View(&nodes[number as usize]);
                let run = view.run().map(|(first, more)| Child::Pages { first, more });
                child = run.unwrap_or_else(|| view.child(if is_right { view.slots() } else { 0 }));
            }
        }
    };
    for (rank, key) in keys.iter().enumerate() {
        let (mut child, mut is_sure) = (Child::Node(0), true);
        let (first, last) = loop {
            let Child::Node(number) = child else { break (end(child, false), end(child, true)) };
            let view = View(&nodes[number as usize]);
            if view.run().is_some() {
                break (end(child, false), end(child, true));
            }
            let other = &keys[end(child, true) * PAGE_KEYS];
            is_sure &= (0..view.prefix()).all(|at| byte(key, at) == byte(other, at));
            child = view.child(view.route(slice(key, view.prefix())));
        };
        let page = rank / PAGE_KEYS;
        assert!(!is_sure || (first..=last).contains(&page), "rank {rank}: {page} not in {first} to {last}");
    }
}

/// Whatever bytes TEXT and TRIE have, and the parameters of their entries: no panic, no endless loop; and a file that
/// is clean leads to the pages of its keys.
#[test]
fn any_bytes_are_checked() {
    let mut random = Random(13);
    let (mut clean, mut dirty) = (0, 0);
    for (_, keys, whole) in files(600) {
        let sections: Vec<(Range<usize>, bool)> = [Tag::TEXT, Tag::TRIE]
            .into_iter()
            .filter(|&tag| header(&whole).section(tag).is_some())
            .map(|tag| (content(&whole, tag), tag == Tag::TRIE))
            .collect();
        for turn in 0..if is_long() { 2000 } else { 60 } {
            let (section, is_trie) = &sections[random.below(sections.len() as u64) as usize];
            let bytes = resealed(&whole, |bytes| {
                for _ in 0..1 + random.below(4) {
                    let at = section.start + random.below(section.len() as u64) as usize;
                    match turn % 4 {
                        0 => bytes[at] = random.next() as u8,
                        1 => flip(bytes, 8 * at + random.below(8) as usize),
                        2 => {
                            let end = section.end.min(at + random.below(200) as usize);
                            bytes[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8);
                        }
                        _ => {
                            let from = section.start + random.below(section.len() as u64) as usize;
                            let length = (section.end - at.max(from)).min(1 + random.below(200) as usize);
                            bytes.copy_within(from..from + length, at);
                        }
                    }
                }
            });
            let findings = check_bytes(&bytes);
            if findings.is_empty() {
                clean += 1;
                if *is_trie {
                    leads_to_pages(&bytes, &keys);
                }
            } else {
                dirty += 1;
            }
        }
        for tag in [Tag::TEXT, Tag::TRIE] {
            let Some(section) = header(&whole).section(tag).copied() else { continue };
            let at = entry_at(&whole, tag);
            for bit in (8 * 24..8 * 32).chain(8 * 56..8 * 120) {
                let mut bytes = whole.clone();
                flip(&mut bytes, 8 * at + bit);
                reseal_head(&mut bytes);
                let findings = check_bytes(&bytes);
                assert!(!findings.is_empty(), "{tag} bit {bit} of {section:?}");
            }
        }
    }
    assert!(clean > 10 && dirty > 500, "{clean} {dirty}");
}

/// A chain of nodes: as many as a path may have, and one more.
#[test]
fn paths_have_at_most_64_nodes() {
    let mut random = Random(15);
    let mut keys = keys_of(0, 30, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    for length in [1, 2, 64, 65, 255, 256, 300] {
        let mut bytes = Vec::new();
        for at in 1..=length {
            let child = if at == length { Child::Pages { first: 0, more: 1 } } else { Child::Node(at) };
            bytes.extend(Node { prefix: 0, slices: vec![], children: vec![child], run: None }.to_bytes());
        }
        let shape = TrieGeometry { nodes: length.into(), levels: length.min(64) };
        let mut contents = contents(&whole);
        contents.retain(|it| it.0 != Tag::TRIE);
        contents.push((Tag::TRIE, false, bytes, shape.nodes, shape.parameters().into()));
        let findings = check_bytes(&naive::assemble(header(&whole).superblock, contents));
        let is_told = findings.iter().any(|it| it.section == "TRIE" && it.text.contains("64 nodes"));
        assert_eq!((is_told, findings.is_empty()), (length > 64, length <= 64), "{length}: {findings:?}");
    }
}

/// Reads of a page are small, whatever the places say.
#[test]
fn memory_is_bounded() {
    let mut random = Random(17);
    let mut keys = keys_of(0, 3000, &mut random);
    let whole = file_of(&mut keys, KeyType::Bytes);
    let source = super::Watched::new(whole.clone());
    let report = Check::new(&source, whole.len() as u64, None).run().expect("readable");
    assert_eq!(report.findings, []);
    let longest = source.take().into_iter().map(|it| it.end - it.start).max();
    assert!(longest <= Some(16 << 10), "{longest:?}");
}
