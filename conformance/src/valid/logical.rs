//! Files whose keys or values mean more than numbers: addresses, digits, hashes, dates, records, intervals.
//!
//! What texts stand for is computed here from FORMAT.md, not by the product.

use super::cells::unsigned;
use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::{KeyType, ValueType};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) fn plans() -> Vec<Plan> {
    let mut all = addresses();
    all.extend(digits());
    all.extend(shortened());
    all.extend(composites());
    all.extend(times());
    all.extend(records());
    all
}

/// Plans a file of keys that texts stand for; `key` is `None` for what is no text of the type.
fn derived(
    name: &str,
    key_type: KeyType,
    logical: &str,
    (texts, others): (&[&str], &[&str]),
    key: impl Fn(&str) -> Option<Cell>,
    about: &str,
) -> Plan {
    let tuple = |(at, text): (u32, &&str)| (key(text).expect("a key"), unsigned(at));
    let input = (0..).zip(texts).map(tuple).collect();
    let all: Vec<(&str, Option<Cell>)> = texts.iter().chain(others).map(|&text| (text, key(text))).collect();
    Plan::new(name, (key_type, ValueType::U32), input, about)
        .layout("lines")
        .logical(logical, "")
        .derived(&all)
}

const UUIDS: (&[&str], &[&str]) = (
    &[
        "00000000-0000-0000-0000-000000000000",
        "123e4567-e89b-12d3-a456-426614174000",
        "FFFFFFFF-ffff-ffff-ffff-ffffffffffff",
        "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    ],
    &["7d444840-9dc0-11d1-b245-5ffdce74fad3", "7d444840-9dc0-11d1-b245", "no uuid"],
);

fn uuid(text: &str) -> Option<u128> {
    let places = [8, 13, 18, 23];
    let is_uuid = text.len() == 36 && places.iter().all(|&at| text.as_bytes()[at] == b'-');
    u128::from_str_radix(&text.replace('-', ""), 16).ok().filter(|_| is_uuid)
}

fn v4(text: &str) -> Option<u32> {
    text.parse::<Ipv4Addr>().ok().map(u32::from)
}

fn v6(text: &str) -> Option<u128> {
    text.parse::<Ipv6Addr>().ok().map(u128::from)
}

/// Either family in one order, IPv4 first.
fn ip(text: &str) -> Option<u128> {
    if let Some(number) = v4(text) {
        return Some(number.into());
    }
    let number = v6(text)?;
    Some(match number >> 32 {
        0xFFFF => number & 0xFFFF_FFFF,
        0..0xFFFF => number + (1 << 32),
        _ => number,
    })
}

fn addresses() -> Vec<Plan> {
    let fours = (
        &["0.0.0.0", "10.1.2.3", "127.0.0.1", "192.168.255.1", "255.255.255.255"][..],
        &["8.8.8.8", "1.2.3", "256.1.1.1"][..],
    );
    let sixes = (
        &["::", "::1", "2001:db8::8a2e:370:7334", "fe80::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"][..],
        &["2001:db8::", "1::2::3", "nowhere"][..],
    );
    let both = (
        &[
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "2001:db8::1",
            "ffff::",
            "::fffe:ffff:ffff",
            "::1:0:0:0",
        ][..],
        &["10.0.0.1", "10.0.0.2", "300.1.1.1", ":::"][..],
    );
    let wide = |text: &str| uuid(text).map(|number| Cell::Bytes(number.to_be_bytes().to_vec()));
    vec![
        derived(
            "uuid",
            KeyType::U128,
            "Uuid",
            UUIDS,
            |text| uuid(text).map(Cell::Unsigned),
            "Keys that are uuids.",
        ),
        derived("uuid-bytes16", KeyType::Fixed(16), "Uuid", UUIDS, wide, "Keys that are uuids, as 16 bytes."),
        derived(
            "ipv4",
            KeyType::U32,
            "Ipv4",
            fours,
            |text| v4(text).map(unsigned),
            "Keys that are IPv4 addresses.",
        ),
        derived(
            "ipv6",
            KeyType::U128,
            "Ipv6",
            sixes,
            |text| v6(text).map(Cell::Unsigned),
            "Keys that are IPv6 addresses.",
        ),
        derived(
            "ip",
            KeyType::U128,
            "Ip",
            both,
            |text| ip(text).map(Cell::Unsigned),
            "Keys that are addresses of either family, IPv4 first.",
        ),
    ]
}

fn bases(text: &str) -> Option<u128> {
    let code = |base: u8| b"ACGT".iter().position(|it| base.eq_ignore_ascii_case(it));
    let codes: Option<Vec<usize>> = text.bytes().map(code).collect();
    let codes = codes.filter(|codes| codes.len() <= 61)?;
    let word = (0..).zip(&codes).fold(0, |word, (at, &code)| word | (code as u128) << (126 - 2 * at));
    Some(word | codes.len() as u128)
}

/// The smaller of a sequence and its reverse complement.
fn canonical(text: &str) -> Option<u128> {
    let text = text.to_ascii_uppercase();
    let other: String = text
        .chars()
        .rev()
        .map(|base| match base {
            'A' => 'T',
            'C' => 'G',
            'G' => 'C',
            'T' => 'A',
            other => other,
        })
        .collect();
    Some(bases(&text)?.min(bases(&other)?))
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    crate::word::unhex(text).filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The first digits of a text, which has at least as many.
fn first_digits(text: &str, count: usize) -> Option<&str> {
    text.get(..count).filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn digits() -> Vec<Plan> {
    const LONGEST: &str = "ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTA";
    const TOO_LONG: &str = "ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTAC";
    let dna = (&["A", "AA", "acgt", "ACGTT", "TTTT", "GATTACA", LONGEST][..], &["C", "AXG", TOO_LONG][..]);
    let hexes = (&["", "00", "00ff", "DEADBEEF", "deadbeef01", "ff"][..], &["dead", "abc", "0g"][..]);
    let key = |number: Option<u128>| number.map(Cell::Unsigned);
    vec![
        derived(
            "dna",
            KeyType::U128,
            "Dna2",
            dna,
            |text| key(bases(text)),
            "Keys that are sequences of bases.",
        ),
        derived(
            "dna-canonical",
            KeyType::U128,
            "Dna2(Canonical)",
            dna,
            |text| key(canonical(text)),
            "Keys that are the smaller of a sequence and its reverse complement.",
        ),
        derived(
            "hex",
            KeyType::Bytes,
            "Hex",
            hexes,
            |text| hex_bytes(text).map(Cell::Bytes),
            "Keys that are hexadecimal digits.",
        ),
        derived(
            "hex-12",
            KeyType::U64,
            "Hex(12)",
            (
                &["0123456789ab", "ffffffffffff", "DEADBEEF0000"],
                &["0123456789ab77", "012345", "0123456789ag"],
            ),
            |text| u128::from_str_radix(first_digits(text, 12)?, 16).ok().map(Cell::Unsigned),
            "Keys that are twelve hexadecimal digits, as numbers, and exact.",
        ),
    ]
}

fn hash(text: &str, turn: u32) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&[0; 16]);
    hasher.write(text.as_bytes());
    let hash = hasher.finish128();
    let bits = u128::from(hash.h1) | u128::from(hash.h2) << 64;
    (bits.rotate_left(8 * turn) >> 64) as u64
}

fn shortened() -> Vec<Plan> {
    let words = (&["alpha", "beta", "gamma", "delta", "", "epsilon", "äöü"][..], &["zeta", "alpha "][..]);
    let digests = (
        &[
            "0123456789abcdef0123456789abcdef01234567",
            "fedcba9876543210fedcba9876543210fedcba98",
            "00000fffffffffffffffffffffffffffffffffff",
        ][..],
        &["0123499999999999999999999999999999999999", "0123", "0123456789abcdeg0123456789abcdef01234567"][..],
    );
    let letters = |text: &str| Some(Cell::from(&*text.chars().take(2).collect::<String>()));
    let hashed = |turn| move |text: &str| Some(unsigned(hash(text, turn)));
    vec![
        derived("hash64", KeyType::U64, "Hash64", words, hashed(0), "Keys that are hashes of texts.")
            .approximate(),
        derived(
            "hash64-turned",
            KeyType::U64,
            "Hash64(3)",
            words,
            hashed(3),
            "Keys that are hashes of texts, turned by three bytes.",
        )
        .approximate(),
        derived(
            "prefix",
            KeyType::Utf8,
            "Prefix(2)",
            words,
            letters,
            "Keys that are the first two letters of texts.",
        )
        .approximate(),
        derived(
            "hex-5",
            KeyType::U32,
            "Hex(5)",
            digests,
            |text| u32::from_str_radix(first_digits(text, 5)?, 16).ok().map(unsigned),
            "Keys that are the first five of forty digits, as numbers.",
        )
        .approximate(),
        derived(
            "hex-34",
            KeyType::Fixed(17),
            "Hex(34)",
            digests,
            |text| hex_bytes(first_digits(text, 34)?).map(Cell::Bytes),
            "Keys that are the first thirty-four of forty digits, as bytes.",
        )
        .approximate(),
    ]
}

fn composites() -> Vec<Plan> {
    let number = |at: u64| (at % 7) << 32 | ((at * 86_413) & 0xFFFF ^ 0x8000_0000);
    let part = |at: u64| {
        let host = ["", "a", "a\0b", "host", "été"][at as usize % 5];
        let escaped =
            host.as_bytes().iter().flat_map(|&byte| if byte == 0 { vec![0, 0xFF] } else { vec![byte] });
        let day = ((at as i32 - 10) as u32 ^ 0x8000_0000).to_be_bytes();
        escaped.chain([0, 0]).chain(day).collect::<Vec<u8>>()
    };
    let numbers = |key: &dyn Fn(u64) -> Cell| (0..30).map(|at| (key(at), unsigned(at))).collect::<Vec<_>>();
    vec![
        Plan::new(
            "composite-number",
            (KeyType::U64, ValueType::U32),
            numbers(&|at| unsigned(number(at))),
            "Keys of two columns, as numbers.",
        )
        .layout("lines")
        .names("shop,day", "n")
        .logical("composite<shop: u16, day: i32 \"Date32\">", ""),
        Plan::new(
            "composite-bytes",
            (KeyType::Bytes, ValueType::U32),
            numbers(&|at| Cell::Bytes(part(at))),
            "Keys of a text and a date, as bytes.",
        )
        .layout("lines")
        .logical("composite<host: utf8, day: i32 \"Date32\">", ""),
    ]
}

fn times() -> Vec<Plan> {
    let ints = |factor: i64| {
        (0..20).map(|at| (Cell::Signed((at - 9) * factor), unsigned(at as u32 % 2))).collect::<Vec<_>>()
    };
    vec![
        Plan::new(
            "date32-boolean",
            (KeyType::I32, ValueType::U32),
            ints(400),
            "Keys that are days, values that are booleans.",
        )
        .layout("lines")
        .names("day", "holiday")
        .logical("Date32", "Boolean"),
        Plan::new(
            "timestamp",
            (KeyType::I64, ValueType::U32),
            ints(86_400_000_001),
            "Keys that are points of time in UTC.",
        )
        .layout("lines")
        .logical("Timestamp(Microsecond, Some(\"UTC\"))", ""),
        Plan::new(
            "time32-fine",
            (KeyType::I32, ValueType::I64),
            (0..9).map(|at| (Cell::Signed(at * 1000), Cell::Signed(at * 1_000_000))).collect(),
            "Times of a day whose units go with the other type only: the words are plain.",
        )
        .layout("lines")
        .logical("Time32(Microsecond)", "Time64(Second)")
        .derived(&[("00:00:01", None), ("7", None)])
        .more(),
        Plan::new(
            "logical-later",
            (KeyType::U32, ValueType::None),
            (0..9u32).map(|at| (unsigned(at), Cell::None)).collect(),
            "A logical type that nobody knows yet: the keys are plain.",
        )
        .layout("lines")
        .logical("Star(9)", ""),
    ]
}

fn records() -> Vec<Plan> {
    let range = |at: u64| {
        let (start, last) = ((at << 24) | (at % 3), (at << 24) + (1 << (at % 20 + 2)) + 5);
        (unsigned(start), unsigned(last | (at % 7) << 32))
    };
    let fixed = |at: u64| {
        let right = (at as f64 / 4.0).to_le_bytes();
        [&(at as u32 * 9).to_le_bytes()[..], &right, &[at as u8; 3]].concat()
    };
    let texts = |at: u32| {
        let name = ["", "a", "été", "\u{1f600}", "a,\"b\""][at as usize % 5];
        let blob = vec![at as u8; at as usize % 4];
        let mut value = (at * 1000 + 500).to_le_bytes().to_vec();
        value.extend((name.len() as u32).to_le_bytes());
        value.push(at.is_multiple_of(3).into());
        value.extend(((name.len() + blob.len()) as u32).to_le_bytes());
        value.extend([name.as_bytes(), &blob].concat());
        (unsigned(at * 1000), Cell::Bytes(value))
    };
    let pairs =
        |value: &dyn Fn(u64) -> Cell| (0..25u64).map(|at| (unsigned(at * at), value(at))).collect::<Vec<_>>();
    let small = |at: u64| Cell::Unsigned((at as u128 & 0xFF) | 7 << 8 | (at as u128 * 3) << 16);
    vec![
        Plan::new(
            "intervals",
            (KeyType::U32, ValueType::U64),
            (0..40).map(range).collect(),
            "Intervals of IPv4 addresses, whose last address is the first field of the value.",
        )
        .layout("lines")
        .names("first", "")
        .logical("Ipv4", "record<last: u32 \"Ipv4\", country: u32>")
        .intervals(),
        Plan::new(
            "record-number",
            (KeyType::U32, ValueType::U32),
            pairs(&small),
            "Records of four bytes, as numbers.",
        )
        .layout("lines")
        .logical("", "record<a: u8, b: i8, c: u16>"),
        Plan::new(
            "record-bytes",
            (KeyType::U64, ValueType::Fixed(15)),
            pairs(&|at| Cell::Bytes(fixed(at))),
            "Records of a number, a float and three bytes.",
        )
        .layout("lines")
        .logical("", r#"record<left: u32, right: f64, "a \"b\\c\\": bytes3>"#),
        Plan::new(
            "record-text",
            (KeyType::U32, ValueType::Bytes),
            (0..30).map(texts).collect(),
            "Intervals whose values are records of texts.",
        )
        .layout("lines")
        .logical("", "record<last: u32, name: utf8, flag: u8 \"Boolean\", blob: bytes>")
        .intervals(),
    ]
}
