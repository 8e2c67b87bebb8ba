//! Composite keys: order, texts, prefixes, descriptions.

use super::*;

/// All plain types of parts, and some logical ones.
const NAMES: [&str; 24] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "i8",
    "i16",
    "i32",
    "i64",
    "bytes3",
    "bytes",
    "utf8",
    "date",
    "date[ms]",
    "time[s]",
    "time[us]",
    "timestamp[ns]",
    "timestamp[s,UTC]",
    "decimal(10,2)",
    "uuid",
    "ipv4",
    "ip",
    "hex",
    "hex:5",
];

fn composite(names: &[&str]) -> Composite {
    let column = |(at, name): (usize, &&str)| (format!("c{at}"), part_type(name).expect("is a part"));
    Composite::new(names.iter().enumerate().map(column).collect()).expect("is a key")
}

/// Elements of a part, ascending, with its extremes.
fn elements(part: Part) -> Vec<Element> {
    let strings =
        [&b""[..], b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"\x01", b"a", b"a\0", b"a\0\xff", b"a,\"b", b"b"];
    match (part.class(), part.bytes()) {
        (Class::Bytes, None) => {
            let is_valid = |bytes: &&&[u8]| part != Part::Utf8 || std::str::from_utf8(bytes).is_ok();
            strings.iter().filter(is_valid).map(|bytes| Element::Bytes(bytes.to_vec())).collect()
        }
        (Class::Bytes, Some(bytes)) => [0, 1, 255].map(|byte| Element::Bytes(vec![byte; bytes])).to_vec(),
        (Class::Signed, bytes) => {
            let high = i64::MAX >> (64 - 8 * bytes.unwrap_or(8));
            let all = [-high - 1, -high, -100, -1, 0, 1, 100, high - 1, high];
            let own = all.into_iter().filter(|&word| part.form().is_none_or(|form| form.holds(word)));
            let mut own: Vec<i64> = own.collect();
            own.sort_unstable();
            own.dedup();
            own.into_iter().map(Element::Signed).collect()
        }
        (Class::Unsigned, bytes) => {
            let high = u128::MAX >> (128 - 8 * bytes.unwrap_or(16));
            [0, 1, high / 2, high / 2 + 1, high - 1, high].map(Element::Unsigned).to_vec()
        }
    }
}

fn bytes_of(key: &Element) -> Vec<u8> {
    match key {
        Element::Unsigned(number) => number.to_be_bytes().to_vec(),
        Element::Bytes(bytes) => bytes.clone(),
        Element::Signed(_) => unreachable!("keys are no signed numbers"),
    }
}

/// Keys are in the order of their parts, and give them back.
#[test]
fn keys_are_in_the_order_of_their_parts() {
    for first in NAMES {
        for second in NAMES {
            let own = composite(&[first, second]);
            let parts = own.parts();
            let mut last: Option<Vec<u8>> = None;
            for one in elements(parts.all()[0]) {
                for other in elements(parts.all()[1]) {
                    let all = vec![one.clone(), other.clone()];
                    let key = parts.key(&all).expect("is a key");
                    let bytes = bytes_of(&key);
                    assert!(last.as_ref().is_none_or(|last| *last < bytes), "{first} {second} {all:?}");
                    let back = match &key {
                        Element::Unsigned(number) => parts.split_number(*number),
                        _ => parts.split(&bytes),
                    };
                    assert_eq!(back, Some(all), "{first} {second}");
                    last = Some(bytes);
                }
            }
        }
    }
}

#[test]
fn widths_decide_the_words() {
    for (names, words) in [
        (&["u8", "u16"][..], "u32"),
        (&["ipv4", "u8"], "u64"),
        (&["i32", "date"], "u64"),
        (&["u64", "u64"], "u128"),
        (&["uuid", "u8"], "bytes17"),
        (&["bytes3", "bytes5"], "u64"),
        (&["u8", "utf8"], "bytes"),
        (&["utf8", "u8"], "bytes"),
        (&["bytes60000", "bytes60000"], "bytes"),
        (&["u8"; 8], "u64"),
    ] {
        assert_eq!(composite(names).parts().key_words(), words, "{names:?}");
    }
}

#[test]
fn texts_come_back() {
    let own = composite(&["utf8", "i16", "date", "bytes", "utf8"]);
    let form = Form::Composite(own.parts());
    for (text, shown) in [
        ("a,-5,2024-01-01,00ff,b", "a,-5,2024-01-01,00ff,b"),
        (",+5,2024-01-01,,", ",5,2024-01-01,,"),
        (" a , 5 , 2024-01-01 ,\\x0a, b", " a ,5,2024-01-01,0a, b"),
        ("\"x,\"\"y\",0,2024-01-01,00,\"\"", "\"x,\"\"y\",0,2024-01-01,00,"),
    ] {
        let Ok(Element::Bytes(key)) = form.element(text.as_bytes()) else { panic!("{text} is a key") };
        let mut out = Vec::new();
        form.put_bytes(&key, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), shown);
        assert_eq!(form.element(shown.as_bytes()), Ok(Element::Bytes(key)));
    }
    let refused = |text: &str| form.element(text.as_bytes()).expect_err("is refused");
    assert_eq!(refused("a,5,2024-01-01,00"), TextError::Parts);
    assert_eq!(refused("a,5,2024-01-01,00,b,c"), TextError::Parts);
    assert_eq!(refused("a,40000,2024-01-01,00,b"), TextError::Range);
    assert_eq!(refused("a,5,2024-13-01,00,b"), TextError::Form);
    assert_eq!(refused("a,5,2024-01-01,0,b"), TextError::Odd);
    assert_eq!(refused("\"a,5,2024-01-01,00,b"), TextError::Form);
    assert_eq!(refused("\"a\"x,5,2024-01-01,00,b"), TextError::Form);
    // Keys of a damaged file give some text.
    let mut out = Vec::new();
    form.put_bytes(b"a", &mut out);
    assert_eq!(out, b"61");
    let narrow = Form::Composite(composite(&["u8", "u8"]).parts());
    out.clear();
    narrow.put_unsigned(1 << 16, &mut out);
    assert_eq!(out, b"00000000000000000000000000010000");
}

#[test]
fn the_first_parts_are_a_prefix() {
    let number = composite(&["u8", "i8", "u16"]).parts();
    assert_eq!(number.number_prefix(b"7"), Ok((0x0700_0000, 0x07ff_ffff)));
    assert_eq!(number.number_prefix(b"7,-1"), Ok((0x077f_0000, 0x077f_ffff)));
    assert_eq!(number.number_prefix(b"7,-1,5"), Ok((0x077f_0005, 0x077f_0005)));
    assert_eq!(number.number_prefix(b"7,-1,5,6"), Err(TextError::Parts));
    let full = composite(&["u64", "u64"]).parts();
    assert_eq!(full.number_prefix(b"1"), Ok((1 << 64, (2 << 64) - 1)));
    let texts = composite(&["utf8", "utf8"]).parts();
    assert_eq!(texts.byte_prefix(b"ab"), Ok(b"ab\0\0".to_vec()));
    assert_eq!(texts.byte_prefix(b"ab,c"), Ok(b"ab\0\0c".to_vec()));
    assert_eq!(Form::Composite(texts).prefix(b"ab"), None);
    assert_eq!(Form::Composite(number).byte_prefix(b"7"), None);
}

#[test]
fn descriptions_come_back() {
    for names in [&["u8", "utf8"][..], &NAMES[..8], &NAMES[8..16], &NAMES[16..]] {
        let own = composite(names);
        let text = own.to_string();
        assert_eq!(Composite::parse(&text), Some(own.clone()), "{text}");
        assert_eq!(Logical::of_meta(&text), Logical::Composite(own));
        for (end, _) in text.char_indices() {
            assert_eq!(Composite::parse(&text[..end]), None);
        }
    }
    let odd = Composite::new(vec![
        ("a \"b\", >".to_owned(), part_type("timestamp[s,UTC]").expect("is a part")),
        (String::new(), part_type("u8").expect("is a part")),
    ]);
    let odd = odd.expect("is a key");
    assert_eq!(Composite::parse(&odd.to_string()), Some(odd));
    for text in [
        "composite<>",
        "composite<a: u8>",
        "composite<a: u8, a: u8>",
        "composite<a: u8, b: f64>",
        "composite<a: u8, b: u8 \"Date32\">",
        "composite<a: u8, b: u9>",
        "composite<a: u8,b: u8>",
        "composite<a: u8, b: u8> ",
        "composite<a: u8, b: u8 \"composite<a: u8, b: u8>\">",
    ] {
        assert_eq!(Composite::parse(text), None, "{text}");
        assert_eq!(Logical::of_meta(text), Logical::Unknown(text.to_owned()));
    }
    assert!(part_type("f64").is_err() && part_type("cidr").is_err() && part_type("record<a: u8>").is_err());
    assert_eq!(type_list("u8, timestamp[us,UTC],decimal(5,2)"), ["u8", "timestamp[us,UTC]", "decimal(5,2)"]);
}

#[test]
fn long_keys_are_refused() {
    let own = composite(&["bytes", "utf8"]).parts();
    let long = |bytes: usize| own.key(&[Element::Bytes(Vec::new()), Element::Bytes(vec![b'a'; bytes])]);
    assert!(long(KEY_BYTES_MAX - 2).is_ok());
    assert_eq!(long(KEY_BYTES_MAX - 1), Err(TextError::Long));
    let fixed = composite(&["bytes3", "u8"]).parts();
    let wrong = fixed.key(&[Element::Bytes(vec![0; 2]), Element::Unsigned(0)]);
    assert_eq!(wrong, Err(TextError::Width(3)));
}
