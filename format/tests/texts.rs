//! Pages of byte keys against sorted lists, symbols against the texts that they stand for, and nodes of the trie
//! against naive counts; whatever the bytes are, nothing panics.

use pleach_format::section::{Parameters, TextParameters, TrieParameters};
use pleach_format::text::{
    ESCAPE, HEAD_AT, HEAD_AT_WIDE, PAGE_KEYS, PLAIN, PRINTS_AT, Page, SHARED_MAX, SYMBOLS_BYTES, SYMBOLS_MAX,
    Slot, Symbols, TextGeometry, WIDE, common, fingerprint, pack,
};
use pleach_format::trie::{
    Child, LEVELS_MAX, MORE_MAX, NODE_BYTES, NODES_MAX, Node, SLOTS_MAX, TrieGeometry, View, slice,
};
use pleach_kit::generate::Random;
use pleach_kit::is_long;

type Keys = Vec<Vec<u8>>;

/// Symbols of the tests: short and long ones, and zeros.
const SYMBOLS: [&[u8]; 10] =
    [b"a", b"ab", b"kkkkkkkk", b"\0", b"\0\0\0", b"b\0", b"abcdefgh", b"k", b"\xFF\xFE", b"aaaa"];

fn symbols() -> Symbols {
    Symbols::new(SYMBOLS)
}

/// Codes of the longest symbols, one after the other.
fn code(text: &[u8], out: &mut Vec<u8>) {
    pleach_kit::pages::greedy(&SYMBOLS, text, out);
}

/// What codes stand for, one code after the other.
fn decoded(codes: &[u8]) -> Vec<u8> {
    let (mut text, mut at) = (Vec::new(), 0);
    while at < codes.len() {
        if codes[at] == ESCAPE {
            text.extend(codes.get(at + 1));
            at += 2;
        } else {
            text.extend_from_slice(SYMBOLS[usize::from(codes[at])]);
            at += 1;
        }
    }
    text
}

fn packed(keys: &Keys) -> Vec<u8> {
    let mut bytes = vec![7];
    pack(keys.iter().map(Vec::as_slice), code, &mut bytes);
    assert_eq!(bytes.remove(0), 7, "what was there stays");
    bytes
}

fn letters(random: &mut Random, of: &[u8], most: usize) -> Vec<u8> {
    let count = random.below(most as u64 + 1);
    (0..count).map(|_| of[random.below(of.len() as u64) as usize]).collect()
}

/// Up to 16 sorted keys of a kind.
fn keys(random: &mut Random, kind: u64) -> Keys {
    let count = 1 + random.below(PAGE_KEYS as u64);
    let start = letters(random, b"ab", 300);
    let of: &[u8] = if random.below(2) == 0 { b"uvwxyz" } else { b"aab\0" };
    let mut keys: Keys = (0..count)
        .map(|_| match kind {
            // Short ones with duplicates, zeros at the end, and any bytes.
            0 => letters(random, b"ab", 4),
            1 => letters(random, b"\0\0\x01", 6),
            2 => letters(random, b"\0\x7F\x80\xFEab\xFF", 60),
            // A long common part, above 255 bytes of the head for some.
            3 => {
                let shared = [0, 1, 254, 255, 256, 257, 600][random.below(7) as usize];
                [&start[..], &vec![b'k'; shared], &letters(random, b"\0ak", 12)].concat()
            }
            // Much that is coded in little: and what no symbol has, or short ones alone.
            4 => [&b"abcdefgh".repeat(random.below(80) as usize)[..], &letters(random, b"az", 3)].concat(),
            5 => letters(random, of, 900),
            6 => [&start[..], &letters(random, b"abcdefgh\xFF", 30)].concat(),
            _ => vec![b'a'; random.below(5) as usize * 100],
        })
        .collect();
    keys.sort_unstable();
    keys
}

/// Queries: the keys, and what is near them.
fn queries(random: &mut Random, keys: &Keys) -> Keys {
    let mut queries = vec![vec![], vec![0], vec![0xFF; 700], vec![b'k'; 300]];
    for key in keys {
        queries.push(key.clone());
        queries.push([key, &[0][..]].concat());
        queries.push([key, &[0xFF][..]].concat());
        for _ in 0..6 {
            let mut other = key.clone();
            other.truncate(random.below(key.len() as u64 + 1) as usize);
            queries.push(other.clone());
            other.push(random.next() as u8);
            queries.push(other);
            let mut other = key.clone();
            if let Some(byte) = other.get_mut(random.below(key.len().max(1) as u64) as usize) {
                *byte ^= 1 << random.below(8);
                queries.push(other);
            }
        }
    }
    queries
}

/// Checks all that a page says, against the keys in it.
fn check(random: &mut Random, keys: &Keys, bytes: &[u8]) {
    let symbols = symbols();
    let page = Page::new(bytes, keys.len());
    let (head, last) = (&keys[0], &keys[keys.len() - 1]);
    assert_eq!((page.keys(), page.head(), page.base()), (keys.len(), &head[..], common(head, last)));
    for (slot, key) in keys.iter().enumerate() {
        let mut back = vec![9];
        for limit in [usize::MAX, key.len() + 1, key.len(), key.len() / 2, 1, 0] {
            back.truncate(1);
            page.key(&symbols, slot, limit, &mut back);
            assert_eq!(back, [&[9], &key[..key.len().min(limit)]].concat(), "slot {slot} of {keys:?}");
        }
        if slot > 0 {
            let shared = common(head, key).min(page.base() + SHARED_MAX);
            assert_eq!(page.shared(slot), shared, "slot {slot} of {keys:?}");
            assert!((HEAD_AT + head.len()..=bytes.len()).contains(&page.codes_at(slot)));
        }
    }
    let mut none = vec![9];
    page.key(&symbols, keys.len(), 100, &mut none);
    assert_eq!(none, [9]);
    for query in queries(random, keys) {
        let below = keys.iter().filter(|key| **key < query).count();
        let found = keys.get(below) == Some(&query);
        let expected = Slot { slot: below, found, common: common(head, &query) };
        assert_eq!(page.find(&symbols, &query), expected, "{query:?} among {keys:?}");
        let settled = page.narrow(&query).map_or_else(|slot| slot, |it| page.settle(&symbols, &query, &it));
        assert_eq!(settled, expected);
        if let Ok(narrow) = page.narrow(&query) {
            assert!(narrow.from <= below && below <= narrow.to && narrow.to <= keys.len(), "{narrow:?}");
        }
        let first = Some(below).filter(|_| found);
        assert_eq!(page.get(&symbols, fingerprint(&query), &query), first, "{query:?} among {keys:?}");
        for (slot, key) in keys.iter().enumerate() {
            assert_eq!(page.is_key(&symbols, slot, &query), *key == query, "{slot}: {query:?}, {keys:?}");
            // No key with this fingerprint is passed over; the first one named has it.
            let candidate = page.candidate(fingerprint(&query), slot);
            let passed = &keys[slot..candidate];
            assert!(passed.iter().all(|key| fingerprint(key) != fingerprint(&query)), "{candidate} {keys:?}");
        }
        let first = page.candidate(fingerprint(&query), 0);
        assert!(
            keys.get(first).is_none_or(|key| fingerprint(key) == fingerprint(&query)),
            "{first} {keys:?}"
        );
    }
}

#[test]
fn pages_answer_as_lists_do() {
    let mut random = Random(21);
    let mut flags = [0; 4];
    for turn in 0..if is_long() { 20_000 } else { 1200 } {
        let keys = keys(&mut random, turn % 8);
        let bytes = packed(&keys);
        flags[usize::from(bytes[4])] += 1;
        check(&mut random, &keys, &bytes);
    }
    assert!(flags.iter().all(|&count| count > 10), "{flags:?}");
}

/// The longest keys: alike, without common parts, coded in little and in much.
#[test]
fn keys_may_have_65_535_bytes() {
    let mut random = Random(23);
    let most = usize::from(u16::MAX);
    let filled = |byte: u8, end: &[u8]| [&vec![byte; most - end.len()], end].concat();
    let of_all: [Keys; 6] = [
        vec![filled(b'k', b"a"), filled(b'k', b"b"), filled(b'k', b"c")],
        vec![vec![], filled(b'a', b""), filled(b'k', b""), filled(b'z', b"")],
        vec![b"a".to_vec(), filled(b'k', b"1"), filled(b'z', b"\0")],
        vec![filled(b'z', b""); 3],
        vec![filled(0, b""), filled(0, b"\x01"), filled(0xFF, b"")],
        // Codes of one key that are too many, beside those of others that are few.
        vec![vec![], vec![b'k'; 65_000], vec![b'z'; 40_000]],
    ];
    for mut keys in of_all {
        keys.sort_unstable();
        let bytes = packed(&keys);
        check(&mut random, &keys, &bytes);
        assert!(bytes.len() <= HEAD_AT_WIDE + keys.iter().map(Vec::len).sum::<usize>());
    }
    let bytes = packed(&vec![vec![], vec![b'k'; 65_000], vec![b'z'; 40_000]]);
    assert_eq!(bytes[4], WIDE | PLAIN);
    // As many codes as a length can state, and one more.
    for (length, is_plain) in [(32_768, false), (32_769, true)] {
        let keys =
            vec![vec![], vec![b'k'; 60_000], [&[b'z'; 32_767][..], &vec![b'z'; length - 32_767]].concat()];
        let bytes = packed(&keys);
        assert_eq!(bytes[4] & PLAIN != 0, is_plain, "{length}");
        check(&mut random, &keys, &bytes);
    }
}

#[test]
fn pages_have_the_bytes_of_their_keys() {
    let mut none = Vec::new();
    pack(std::iter::empty(), code, &mut none);
    assert_eq!(none, []);
    // One key is its own head.
    let bytes = packed(&vec![b"abc".to_vec()]);
    assert_eq!((&bytes[..5], &bytes[HEAD_AT..]), (&[3, 0, 3, 0, PLAIN][..], &b"abc"[..]));
    assert_eq!(bytes[PRINTS_AT], fingerprint(b"abc"));
    assert!(bytes[PRINTS_AT + 1..HEAD_AT].iter().all(|&byte| byte == 0));
    // An empty page is one without keys.
    assert_eq!(packed(&vec![vec![]]).len(), HEAD_AT);
    let page = Page::new(&[], 16);
    assert_eq!((page.keys(), page.head(), page.find(&symbols(), b"x").slot), (0, &[][..], 0));
    // The same keys in any codes are the same to a search.
    let keys: Keys = (b'a'..=b'p').map(|byte| [&b"host/"[..], &[byte; 20]].concat()).collect();
    let mut bytes = Vec::new();
    let escaped = |text: &[u8], out: &mut Vec<u8>| text.iter().for_each(|&byte| out.extend([ESCAPE, byte]));
    pack(keys.iter().map(Vec::as_slice), escaped, &mut bytes);
    assert_eq!(bytes[4], PLAIN);
    check(&mut Random(1), &keys, &bytes);
}

#[test]
fn codes_stand_for_texts() {
    let mut random = Random(25);
    let symbols = symbols();
    for _ in 0..if is_long() { 200_000 } else { 20_000 } {
        let text = letters(&mut random, b"ab\0k\xFF\xFEcdefghz", 40);
        let mut codes = Vec::new();
        if random.below(2) == 0 {
            code(&text, &mut codes);
            assert_eq!(decoded(&codes), text);
        } else {
            codes = (0..random.below(12)).map(|_| random.below(SYMBOLS.len() as u64) as u8).collect();
        }
        let whole = decoded(&codes);
        for limit in [usize::MAX, whole.len(), random.below(whole.len() as u64 + 2) as usize] {
            let mut out = b"x".to_vec();
            symbols.decode(&codes, limit, &mut out);
            assert_eq!(out, [b"x", &whole[..whole.len().min(limit)]].concat());
        }
        let mut others =
            vec![text, whole.clone(), [&whole[..], &[0]].concat(), [&whole[..], &[0; 9]].concat()];
        others.push(whole[..random.below(whole.len() as u64 + 1) as usize].to_vec());
        let mut other = whole.clone();
        if let Some(byte) = other.get_mut(random.below(whole.len().max(1) as u64) as usize) {
            *byte = byte.wrapping_add(random.next() as u8 | 1);
            others.push(other);
        }
        for other in others {
            assert_eq!(symbols.compare(&codes, &other), whole.cmp(&other), "{codes:?} {other:?}");
            assert_eq!(symbols.is_text(&codes, &other), whole == other, "{codes:?} {other:?}");
        }
    }
}

#[test]
fn tables_of_symbols_come_back() {
    let table = symbols();
    let bytes = table.to_bytes();
    assert_eq!(Symbols::parse(&bytes), table);
    for (number, symbol) in SYMBOLS.iter().enumerate() {
        let (word, length) = table.symbol(number as u8);
        assert_eq!((&word[..length], word[length..].iter().any(|&byte| byte != 0)), (*symbol, false));
    }
    assert_eq!(table.symbol(SYMBOLS.len() as u8), ([0; 8], 0));
    assert_eq!(Symbols::default().to_bytes(), [0; SYMBOLS_BYTES]);
    // Too many, and too long.
    let many = Symbols::new(std::iter::repeat_n(&b"123456789"[..], 300));
    assert_eq!(many.symbol(SYMBOLS_MAX as u8 - 1), (*b"12345678", 8));
    assert_eq!(many.symbol(ESCAPE), ([0; 8], 0));
    // Any bytes make a table, and a valid one stays as it is.
    let mut random = Random(27);
    for _ in 0..200 {
        let mut bytes = [0; SYMBOLS_BYTES];
        bytes.iter_mut().for_each(|byte| *byte = (random.next() >> random.below(60)) as u8);
        let table = Symbols::parse(&bytes);
        assert_eq!(Symbols::parse(&table.to_bytes()), table);
        assert!((0..=255).all(|code| table.symbol(code).1 <= 8) && table.symbol(ESCAPE).1 == 0);
        let codes: Vec<u8> = (0..50).map(|_| random.next() as u8).collect();
        let mut out = Vec::new();
        table.decode(&codes, usize::MAX, &mut out);
        assert!(out.len() <= 400);
        let whole = codes.last() != Some(&ESCAPE);
        let has_all = codes.iter().all(|&code| table.symbol(code).1 > 0);
        if whole && has_all {
            assert!(table.is_text(&codes, &out) && table.compare(&codes, &out).is_eq());
        }
        let text = letters(&mut random, &[0, 1, 255], 300);
        table.decode(&codes, random.below(60) as usize, &mut out);
        let _ = (table.is_text(&codes, &text), table.compare(&codes, &text));
    }
}

/// Bytes of chance, and pages with some changes.
#[test]
fn any_bytes_are_a_page() {
    let mut random = Random(29);
    for turn in 0..if is_long() { 200_000 } else { 12_000 } {
        let mut table = [0; SYMBOLS_BYTES];
        if turn % 3 > 0 {
            table.iter_mut().for_each(|byte| *byte = random.next() as u8);
        }
        let symbols = if turn % 3 == 0 { symbols() } else { Symbols::parse(&table) };
        let mut bytes: Vec<u8> = match turn % 2 {
            0 => (0..random.below(300)).map(|_| (random.next() >> random.below(64)) as u8).collect(),
            _ => {
                let keys = keys(&mut random, turn / 2 % 8);
                packed(&keys)
            }
        };
        for _ in 0..random.below(6) {
            let length = bytes.len() as u64;
            if let Some(byte) = bytes.get_mut(random.below(length.clamp(1, 82)) as usize) {
                *byte = random.next() as u8;
            }
        }
        bytes.truncate(bytes.len() - random.below(bytes.len().min(20) as u64 + 1) as usize);
        let keys = random.below(20) as usize;
        let page = Page::new(&bytes, keys);
        assert!(page.keys() <= keys.min(PAGE_KEYS) && page.base() <= page.head().len());
        let head = page.head().to_vec();
        let mut queries = vec![vec![], letters(&mut random, &[0, 1, 255], 100), head.clone()];
        queries.push([&head[..], &[random.next() as u8]].concat());
        queries.push([&head[..page.base()], &[0xFF; 300]].concat());
        for slot in 0..PAGE_KEYS {
            let mut key = vec![1];
            page.key(&symbols, slot, 1000, &mut key);
            assert!(key.len() <= 1001 && key[0] == 1);
            queries.push(key.split_off(1));
            if slot > 0 {
                assert!(page.shared(slot) <= head.len());
                let _ = page.codes_at(slot);
            }
        }
        for query in queries {
            let found = page.find(&symbols, &query);
            assert!(found.slot <= page.keys() && found.common <= query.len());
            let candidate = page.candidate(fingerprint(&query), random.below(17) as usize);
            assert!(candidate <= page.keys());
            assert!(page.get(&symbols, fingerprint(&query), &query).is_none_or(|slot| slot < page.keys()));
            for slot in 0..PAGE_KEYS {
                let _ = page.is_key(&symbols, slot, &query);
            }
        }
    }
}

#[test]
fn words_of_texts_are_those_of_their_bytes() {
    let mut random = Random(31);
    for _ in 0..20_000 {
        let (mut one, mut other) = (letters(&mut random, b"\0a", 40), letters(&mut random, b"\0a", 40));
        if random.below(2) == 0 {
            let shared = random.below(one.len() as u64 + 1) as usize;
            other.splice(..0, one[..shared].to_vec());
        }
        let shared = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        assert_eq!((common(&one, &other), common(&other, &one)), (shared, shared));
        let at = random.below(50) as usize;
        let padded = |at: usize| one.get(at).copied().unwrap_or(0);
        let wanted = (at..at + 8).fold(0u64, |word, at| word << 8 | u64::from(padded(at)));
        assert_eq!(slice(&one, at), wanted, "{one:?} at {at}");
        // Eight bytes each, from the end on; the last of them may have less.
        let part = |back: usize| {
            let (from, to) = (one.len().saturating_sub(back), (one.len() + 8).saturating_sub(back));
            one[from..to.max(from)].iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte))
        };
        let factors = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9];
        let sum = (8..=24)
            .step_by(8)
            .zip(factors)
            .fold(0u64, |sum, (back, factor)| sum.wrapping_add(part(back).wrapping_mul(factor)));
        let sum = sum.wrapping_add((one.len() as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        assert_eq!(u64::from(fingerprint(&one)), sum >> 56, "{one:?}");
        // Only the last 24 bytes and the length count.
        if let Some(byte) = one.len().checked_sub(25).and_then(|at| one.get_mut(at)) {
            *byte ^= 0xFF;
            assert_eq!(u64::from(fingerprint(&one)), sum >> 56);
        }
    }
}

#[test]
fn shapes_of_pages_come_back_and_no_others_do() {
    let narrow = u64::from(u32::MAX);
    for (keys, data, width) in
        [(0, 0, 4), (1, 66, 4), (16, 100, 4), (17, narrow, 4), (512, narrow + 1, 8), (1 << 33, 1 << 40, 8)]
    {
        let shape = TextGeometry::new(keys, data).expect("small");
        let bytes = shape.bytes().expect("small");
        let pages = keys.div_ceil(16);
        assert_eq!((shape.pages, shape.place_bytes, shape.data_bytes), (pages, width, data));
        let end = SYMBOLS_BYTES as u64 + (pages + 1) * width;
        assert_eq!((shape.place_at(pages + 1), shape.pages_at), (end, end.next_multiple_of(128)));
        assert_eq!(bytes, shape.pages_at + data + 64);
        let stored: Parameters = shape.parameters().into();
        assert_eq!(TextGeometry::from_parameters(stored, keys, bytes), Some(shape));
        let counts = [0, pages / 2, pages.saturating_sub(1), pages, u64::MAX];
        for page in counts {
            let count =
                (0..16).filter(|slot| page.checked_mul(16).is_some_and(|at| at + slot < keys)).count();
            assert_eq!(shape.keys_of(page), count, "page {page} of {keys} keys");
        }
        // Another length is that of other data, as long as places are as wide.
        for length in [0, bytes - 1, bytes + 1, shape.pages_at + 63, u64::MAX] {
            let other = TextGeometry::from_parameters(stored, keys, length);
            let data = length.checked_sub(shape.pages_at + 64);
            let fits = data.is_some_and(|data| (data > narrow) == (width == 8));
            assert_eq!(other.is_some(), fits, "{shape:?} {length}");
            assert!(other.is_none_or(|other| other.bytes() == Some(length)));
        }
        for keys in [u64::MAX, u64::MAX / 2] {
            assert_eq!(TextGeometry::from_parameters(stored, keys, bytes), None);
        }
    }
    let forged = |page_keys: u32, place_bytes: u32, last: u8| {
        let mut reserved = [0; 56];
        reserved[55] = last;
        let stored =
            TextParameters { page_keys: page_keys.into(), place_bytes: place_bytes.into(), reserved };
        TextGeometry::from_parameters(stored.into(), 100, 1 << 20).is_some()
    };
    assert!(forged(16, 4, 0));
    for (page_keys, place_bytes, last) in
        [(16, 4, 1), (15, 4, 0), (0, 4, 0), (32, 4, 0), (16, 0, 0), (16, 2, 0), (16, 8, 0), (16, u32::MAX, 0)]
    {
        assert!(!forged(page_keys, place_bytes, last), "{page_keys} {place_bytes} {last}");
    }
    assert_eq!(TextGeometry::new(0, u64::MAX).and_then(TextGeometry::bytes), None);
    assert_eq!(TextGeometry::new(u64::MAX, u64::MAX).and_then(TextGeometry::bytes), None);
}

#[test]
fn shapes_of_tries_come_back_and_no_others_do() {
    let load = |nodes: u64, length: u64, node_bytes: u32, levels: u32, last: u8| {
        let mut reserved = [0; 56];
        reserved[55] = last;
        let stored = TrieParameters { node_bytes: node_bytes.into(), levels: levels.into(), reserved };
        TrieGeometry::from_parameters(stored.into(), nodes, length)
    };
    for (nodes, levels) in [(1, 1), (100, 3), (NODES_MAX - 1, LEVELS_MAX)] {
        let shape = TrieGeometry { nodes, levels };
        let bytes = shape.bytes().expect("small");
        assert_eq!(TrieGeometry::from_parameters(shape.parameters().into(), nodes, bytes), Some(shape));
        assert_eq!(load(nodes, bytes, 128, levels, 0), Some(shape));
        for length in [0, bytes - 1, bytes + 1, bytes + 128, u64::MAX] {
            assert_eq!(load(nodes, length, 128, levels, 0), None);
        }
        assert_eq!(load(nodes, bytes, 64, levels, 0), None);
        assert_eq!(load(nodes, bytes, 128, 0, 0), None);
        assert_eq!(load(nodes, bytes, 128, LEVELS_MAX + 1, 0), None);
        assert_eq!(load(nodes, bytes, 128, levels, 1), None);
    }
    assert_eq!(load(0, 0, 128, 1, 0), None);
    assert_eq!(load(NODES_MAX, NODES_MAX * 128, 128, 1, 0), None);
    assert_eq!(load(u64::MAX, u64::MAX, 128, 1, 0), None);
    assert_eq!(load(1 << 57, 0, 128, 1, 0), None);
}

fn child(random: &mut Random) -> Child {
    match random.below(2) {
        0 => Child::Node(random.below(NODES_MAX) as u32),
        _ => Child::Pages {
            first: random.below(1 << 29) as u32,
            more: random.below(u64::from(MORE_MAX) + 1) as u32,
        },
    }
}

#[test]
fn nodes_come_back() {
    let mut random = Random(33);
    for turn in 0..20_000 {
        let slots = random.below(SLOTS_MAX as u64 + 1) as usize;
        let slices: Vec<u64> = (0..slots).map(|_| random.next() >> random.below(64)).collect();
        let run = (turn % 8 == 0).then(|| (random.next() as u32, random.next() as u32));
        let node = match run {
            Some(_) => Node { prefix: random.next() as u16, slices: vec![], children: vec![], run },
            None => {
                let children = (0..=slots).map(|_| child(&mut random)).collect();
                Node { prefix: random.next() as u16, slices, children, run }
            }
        };
        let bytes = node.to_bytes();
        assert_eq!(Node::from_bytes(&bytes), Some(node.clone()));
        let view = View(&bytes);
        assert_eq!((view.prefix(), view.slots()), (node.prefix.into(), node.slices.len()));
        assert_eq!(view.run(), node.run);
        for (at, child) in node.children.iter().enumerate() {
            assert_eq!(view.child(at), *child);
            assert_eq!(Child::from_word(child.to_word()), *child);
        }
        // Whatever is unused is padded.
        let used = |at: usize| match at {
            0..4 => true,
            4..48 => (at - 4) / 4 < if run.is_some() { 2 } else { node.children.len() },
            _ => (at - 48) / 8 < node.slices.len(),
        };
        let at = random.below(NODE_BYTES as u64) as usize;
        let mut other = bytes;
        other[at] ^= 1 << random.below(8);
        let found = Node::from_bytes(&other);
        assert!(found.as_ref() != Some(&node) && (used(at) || found.is_none()), "byte {at} of {node:?}");
    }
}

#[test]
fn slices_lead_to_children() {
    let mut random = Random(35);
    for turn in 0..20_000 {
        let slots = random.below(SLOTS_MAX as u64 + 1) as usize;
        let shift = [0, 60, 32][turn % 3];
        let mut slices: Vec<u64> = (0..slots).map(|_| random.next() >> shift).collect();
        if let Some(last) = slices.last_mut().filter(|_| turn % 5 == 0) {
            *last = u64::MAX;
        }
        slices.sort_unstable();
        let children = (0..=slots).map(|_| child(&mut random)).collect();
        let bytes = Node { prefix: 0, slices: slices.clone(), children, run: None }.to_bytes();
        let view = View(&bytes);
        let near = slices.iter().flat_map(|&it| [it.wrapping_sub(1), it, it.wrapping_add(1)]);
        for query in near.chain([0, 1, u64::MAX, random.next()]) {
            let below = slices.iter().filter(|&&slice| slice <= query).count();
            assert_eq!(view.route(query), below, "{query:x} {slices:x?}");
        }
        // Any bytes lead to one of the children.
        let bytes: [u8; NODE_BYTES] = std::array::from_fn(|_| random.next() as u8);
        let view = View(&bytes);
        let to = view.route(random.next());
        assert!(to <= view.slots() && view.slots() <= SLOTS_MAX);
        let _ = (view.child(to), view.run(), view.prefix(), Node::from_bytes(&bytes));
    }
}
