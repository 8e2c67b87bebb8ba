//! Every logical type, every text, every pair of meanings.

use super::*;
use crate::record::FieldKind;

fn every() -> Vec<Logical> {
    let mut all = vec![Logical::Date32, Logical::Date64, Logical::Uuid];
    all.extend([Logical::Boolean, Logical::Ipv4, Logical::Ipv6, Logical::Ip, Logical::Hex]);
    all.extend([false, true].map(|is_canonical| Logical::Dna2 { is_canonical }));
    all.extend([1, 5, 8, 9, 16, 17, 32, 34, 131_070].map(Logical::HexDigits));
    for unit in Unit::ALL {
        all.push(if unit.is_coarse() { Logical::Time32(unit) } else { Logical::Time64(unit) });
        all.push(Logical::Duration(unit));
        for zone in [None, Some("UTC"), Some("+02:00"), Some("a\"b\\c)"), Some("")] {
            all.push(Logical::Timestamp(unit, zone.map(Into::into)));
        }
    }
    for (precision, scale) in [(1, 0), (38, -5), (15, 2), (38, 38)] {
        for bits in [32, 64, 128] {
            all.push(Logical::Decimal { bits, precision, scale });
        }
    }
    all
}

#[test]
fn metas_and_names_come_back() {
    for logical in every() {
        assert_eq!(Logical::of_meta(&logical.meta()), logical, "{}", logical.meta());
        if let Some(named) = Logical::of_name(&logical.name()) {
            assert_eq!(named, logical, "{}", logical.name());
        }
    }
    assert_eq!(Logical::of_meta(""), Logical::Plain);
    for unknown in [
        "UInt32",
        "Hex()",
        "Hex(05)",
        "Hex(33)",
        "Dna2()",
        "Dna2(canonical)",
        "Ip(4)",
        "Ipv4()",
        "Boolean(1)",
        "Time32(Microsecond)",
        "Time32(Nanosecond)",
        "Time64(Second)",
        "Time64(Millisecond)",
        "Bool",
        "Date32()",
        "Decimal128(+5, 2)",
        "Decimal128(5,2)",
        "Timestamp(Second)",
    ] {
        assert_eq!(Logical::of_meta(unknown), Logical::Unknown(unknown.to_owned()));
    }
    for (name, meta) in [
        ("date", "Date32"),
        ("date[ms]", "Date64"),
        ("time[s]", "Time32(Second)"),
        ("time", "Time64(Microsecond)"),
        ("time[ns]", "Time64(Nanosecond)"),
        ("timestamp", "Timestamp(Microsecond, None)"),
        ("timestamp[us,UTC]", "Timestamp(Microsecond, Some(\"UTC\"))"),
        ("timestamp[s, Europe/Berlin]", "Timestamp(Second, Some(\"Europe/Berlin\"))"),
        ("duration[ms]", "Duration(Millisecond)"),
        ("decimal(10,2)", "Decimal128(10, 2)"),
        ("decimal(18)", "Decimal128(18, 0)"),
        ("uuid", "Uuid"),
        ("ipv4", "Ipv4"),
        ("bool", "Boolean"),
        ("ipv6", "Ipv6"),
        ("ip", "Ip"),
        ("hex", "Hex"),
        ("hex:5", "Hex(5)"),
        ("dna2", "Dna2"),
        ("dna2:canonical", "Dna2(Canonical)"),
    ] {
        assert_eq!(Logical::of_name(name).map(|logical| logical.meta()).as_deref(), Some(meta), "{name}");
    }
    for bad in [
        "",
        "i64",
        "date[us]",
        "time[h]",
        "timestamp[us",
        "timestamp[us,]",
        "timestamp[,UTC]",
        "decimal",
        "decimal(39,2)",
        "decimal64(19,2)",
        "decimal(0,0)",
        "decimal(2,3)",
        "decimal(+2,1)",
        "uuid[us]",
        "ipv4[us]",
        "bool[us]",
        "boolean",
        "hex:0",
        "hex:",
        "hex:05",
        "hex:+5",
        "hex:33",
        "hex:131072",
        "dna2:",
        "dna2:other",
    ] {
        assert_eq!(Logical::of_name(bad), None, "{bad}");
    }
}

/// Each text is one word, and the word prints as the second text.
#[test]
fn texts_are_words() {
    for (name, text, word, printed) in [
        ("date", "1970-01-01", 0, "1970-01-01"),
        ("date", "2024-02-29", 19782, "2024-02-29"),
        ("date", "0000-01-01", -719_528, "0000-01-01"),
        ("date", "-0001-12-31", -719_529, "-0001-12-31"),
        ("date", "+10000-01-01", 2_932_897, "+10000-01-01"),
        ("date[ms]", "1970-01-02", 86_400_000, "1970-01-02"),
        ("date[ms]", "1970-01-01T00:00:00.001", 1, "1970-01-01T00:00:00.001"),
        ("timestamp[us]", "2024-01-01 12:00:00.50", 1_704_110_400_500_000, "2024-01-01T12:00:00.5"),
        ("timestamp[s]", "2024-01-01T12:00", 1_704_110_400, "2024-01-01T12:00:00"),
        ("timestamp[s]", "2024-01-01", 1_704_067_200, "2024-01-01T00:00:00"),
        ("timestamp[s,UTC]", "2024-01-01", 1_704_067_200, "2024-01-01T00:00:00Z"),
        ("timestamp[us,UTC]", "2024-01-01T12:00:00.5Z", 1_704_110_400_500_000, "2024-01-01T12:00:00.5Z"),
        ("timestamp[ms,x]", "2024-01-01T14:00:00+02:00", 1_704_110_400_000, "2024-01-01T12:00:00Z"),
        ("timestamp[ms,x]", "2024-01-01 06:30:00-0530", 1_704_110_400_000, "2024-01-01T12:00:00Z"),
        ("timestamp[ns]", "1969-12-31T23:59:59.999999999", -1, "1969-12-31T23:59:59.999999999"),
        ("time[us]", "12:00:00.25", 43_200_250_000, "12:00:00.25"),
        ("time[s]", "-00:00:01", -1, "-00:00:01"),
        ("time[s]", "+24:00:00", 86_400, "+24:00:00"),
        ("duration[us]", "1.5s", 1_500_000, "1.5s"),
        ("duration[us]", "-250ms", -250_000, "-0.25s"),
        ("duration[ns]", "7ns", 7, "0.000000007s"),
        ("decimal(10,2)", "7675.00", 767_500, "7675.00"),
        ("decimal(10,2)", "-.5", 0, ""),
        ("decimal(10,2)", "-0.5", -50, "-0.50"),
        ("decimal(10,2)", "7", 700, "7.00"),
        ("decimal(10,2)", "7.5000", 750, "7.50"),
        ("decimal(10,0)", "+12", 12, "12"),
    ] {
        let form = Logical::of_name(name).and_then(|logical| logical.form()).expect("has texts");
        if printed.is_empty() {
            assert_eq!(form.read(text.as_bytes()), Err(TextError::Form), "{text}");
            continue;
        }
        assert_eq!(form.read(text.as_bytes()), Ok(word), "{text} as {name}");
        assert_eq!(shown(form, word), printed);
    }
    let scale = Form::Decimal(5, -2);
    assert_eq!((scale.read(b"12300"), shown(scale, 123)), (Ok(123), "12300".to_owned()));
    assert_eq!(scale.read(b"12345"), Err(TextError::Finer));
}

#[test]
fn other_texts_are_refused() {
    use TextError::{Finer, NoZone, Range, Zone};
    for (name, text, error) in [
        ("date", "2023-02-29", TextError::Form),
        ("date", "2024-1-1", TextError::Form),
        ("date", "20240101", TextError::Form),
        ("date", "10000-01-01", TextError::Form),
        ("date", "2024-01-01T00:00:00", TextError::Form),
        ("date", "+9999999-01-01", Range),
        ("timestamp[us]", "1704110400", TextError::Form),
        ("timestamp[us]", "2024-01-01T24:00:00", TextError::Form),
        ("timestamp[us]", "2024-01-01T12:00:60", TextError::Form),
        ("timestamp[us]", "2024-01-01T12:00:00.", TextError::Form),
        ("timestamp[us]", "2024-01-01T12:00:00Z", Zone),
        ("timestamp[us,UTC]", "2024-01-01T12:00:00", NoZone),
        ("timestamp[us,UTC]", "2024-01-01T12:00:00+2", TextError::Form),
        ("timestamp[us,UTC]", "2024-01-01T12:00:00+02:", TextError::Form),
        ("timestamp[us,UTC]", "2024-01-01T12:00:00.0000001Z", Finer),
        ("timestamp[ns]", "2300-01-01T00:00:00", Range),
        ("time[us]", "24:00:00", TextError::Form),
        ("time[us]", "12:30.5", TextError::Form),
        ("timestamp[us]", "2024-01-01T12:30.5", TextError::Form),
        ("time[s]", "12:00:00.5", Finer),
        ("duration[us]", "90", TextError::Form),
        ("duration[s]", "1ms", Finer),
        ("decimal(10,2)", "1.005", Finer),
        ("decimal(10,2)", "1e3", TextError::Form),
        ("decimal(10,2)", "1,5", TextError::Form),
        ("decimal(10,2)", "92233720368547758.08", Range),
        ("uuid", "7", TextError::Form),
        ("ipv4", "::1", TextError::Family),
        ("ipv6", "192.0.2.1", TextError::Family),
        ("ip", "192.0.2", TextError::Form),
        ("bool", "yes", TextError::Form),
        ("bool", "2", TextError::Form),
        ("bool", "", TextError::Form),
        ("bool", "01", TextError::Form),
        ("hex", "5baa6", TextError::Odd),
        ("hex:5", "5baa", TextError::Short),
        ("hex:5", "xbaa6", TextError::Form),
        ("dna2", "ACGN", TextError::Form),
        ("dna2", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", TextError::Long),
    ] {
        let form = Logical::of_name(name).and_then(|logical| logical.form()).expect("has texts");
        assert_eq!(form.element(text.as_bytes()), Err(error), "{text} as {name}");
        assert!(!form.advice(error).is_empty() && !error.to_string().is_empty());
    }
    let number = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
    let uuid = |text: &[u8]| Form::Uuid.element(text);
    assert_eq!(uuid(b"01234567-89AB-cdef-0123-456789abcdef"), Ok(Element::Unsigned(number)));
    assert_eq!(uuid(b"0123456789abcdef0123456789abcdef"), Ok(Element::Unsigned(number)));
    for bad in [&b"01234567-89ab-cdef-0123456789abcdef"[..], b"", b"0123456789abcdef0123456789abcdeg"] {
        assert_eq!(uuid(bad), Err(TextError::Form));
    }
}

#[test]
fn fields_have_types() {
    let kinds = |text| field_types(text).map(|types| types.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
    let (u8, utf8) = (FieldKind::U8, FieldKind::Utf8);
    assert_eq!(kinds("u8, utf8"), Some(vec![u8, utf8]));
    assert_eq!(
        kinds("bool,decimal(5,2),bytes,ipv6"),
        Some(vec![u8, FieldKind::I64, FieldKind::Bytes, FieldKind::Fixed(16)])
    );
    assert_eq!(field_types("u32,bool").map(|types| types[1].1.clone()), Some(Logical::Boolean));
    for unknown in ["", "u8,", "u128", "hash64", "u8,none"] {
        assert_eq!(kinds(unknown), None, "{unknown}");
    }
}

#[test]
fn booleans_are_one_or_zero() {
    for (text, number) in
        [("true", 1), ("TRUE", 1), ("True", 1), ("1", 1), ("false", 0), ("fAlse", 0), ("0", 0)]
    {
        assert_eq!(Form::Boolean.element(text.as_bytes()), Ok(Element::Unsigned(number)), "{text}");
    }
    for (number, text) in [(0, "false"), (1, "true"), (7, "true")] {
        let mut out = Vec::new();
        Form::Boolean.put_unsigned(number, &mut out);
        assert_eq!(out, text.as_bytes());
    }
    let boolean = Logical::Boolean;
    assert_eq!(boolean.value_words().as_deref(), Some("u32"));
    assert_eq!(boolean.field_words().as_deref(), Some("u8"));
    assert!(boolean.fits("u8") && boolean.fits("u32") && !boolean.fits("u64"));
    assert_eq!(Logical::Ipv6.field_words().as_deref(), Some("bytes16"));
}

/// All units and scales, at the ends of the words, around zero and at words of no pattern.
#[test]
fn every_word_prints_and_reads_back() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut words: Vec<i64> =
        (0..=62).flat_map(|shift| [(1 << shift) - 1, 1 << shift, -(1 << shift)]).collect();
    words.extend([i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1]);
    for _ in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words.push(state.cast_signed() >> (state >> 58));
    }
    let mut forms: Vec<Form> =
        every().iter().filter_map(Logical::form).filter(|form| form.is_signed()).collect();
    forms.extend([0, 1, 9, 17, 18, 19, 20, 127, -1, -18, -128].map(|scale| Form::Decimal(38, scale)));
    for form in forms {
        for &word in &words {
            let fits = i32::try_from(word).is_ok();
            if form == Form::Days && !fits {
                continue;
            }
            let text = shown(form, word);
            let read = form.read(text.as_bytes());
            // A number of more than 38 digits cannot be read.
            let is_beyond = matches!(form, Form::Decimal(_, scale) if scale < -18);
            assert!(read == Ok(word) || (is_beyond && word != 0), "{text} of {word} as {form:?}: {read:?}");
        }
    }
    for number in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
        for form in every().iter().filter_map(Logical::form).filter(|form| !form.is_signed()) {
            let number = match form {
                Form::Ipv4 => number & u128::from(u32::MAX),
                Form::Boolean => number & 1,
                Form::Digits(count @ 0..=31) => number & ((1 << (4 * count)) - 1),
                // The word of a sequence.
                Form::Bases(is_canonical) => {
                    let word = number & (u128::MAX << 68) | 30;
                    if is_canonical { canonical(word) } else { word }
                }
                _ => number,
            };
            let (mut text, mut stored) = (Vec::new(), Vec::new());
            form.put_unsigned(number, &mut text);
            form.put_bytes(&number.to_be_bytes(), &mut stored);
            let is_bytes = matches!(form, Form::Hex | Form::Digits(33..));
            let expected = if is_bytes {
                Element::Bytes(number.to_be_bytes().to_vec())
            } else {
                Element::Unsigned(number)
            };
            // A number of 32 digits has too few for more.
            if !matches!(form, Form::Digits(33..)) {
                assert_eq!(form.element(&text), Ok(expected), "{form:?} {number:x}");
            }
            assert!(text == stored || !(is_bytes || form.is_wide()), "{form:?} {number:x}");
        }
    }
}

/// The calendar, one day after the other, by the rules that children learn.
#[test]
fn days_follow_each_other() {
    let (mut year, mut month, mut day) = (-401_i64, 1_u32, 1_u32);
    let first = Form::Days.read(b"-0401-01-01").expect("is a date");
    for word in first..first + 366 * 3000 {
        let sign = if year < 0 { "-" } else { "" };
        let expected = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        assert_eq!(shown(Form::Days, word), expected);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(is_leap),
            _ => 31,
        };
        day += 1;
        if day > last {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    assert_eq!(shown(Form::Days, 0), "1970-01-01");
}

fn meaning(name: &str) -> Meaning {
    match Logical::of_name(name) {
        Some(logical) => {
            let words = logical.key_words().unwrap_or_else(|| "i64".to_owned());
            Meaning::new(words, &logical.meta())
        }
        None => Meaning::new(name, ""),
    }
}

#[test]
fn what_means_the_same_matches() {
    for (left, right, result, factors) in [
        ("i64", "i64", "i64", (1, 1)),
        ("date", "date", "i32 date", (1, 1)),
        ("date", "date[ms]", "i64 date[ms]", (86_400_000, 1)),
        ("timestamp[us]", "timestamp[ns]", "i64 timestamp[ns]", (1000, 1)),
        ("timestamp[ns,UTC]", "timestamp[s,Asia/Tokyo]", "i64 timestamp[ns,UTC]", (1, 1_000_000_000)),
        ("time[s]", "time[us]", "i64 time[us]", (1_000_000, 1)),
        ("duration[s]", "duration[ms]", "i64 duration[ms]", (1000, 1)),
        ("decimal(10,2)", "decimal(10,3)", "i64 decimal(11,3)", (10, 1)),
        ("decimal(10,2)", "decimal(12,2)", "i64 decimal(12,2)", (1, 1)),
        ("uuid", "uuid", "u128 uuid", (1, 1)),
    ] {
        let (left, right) = (meaning(left), meaning(right));
        let common = matching(&left, &right).expect("match");
        assert_eq!(
            (common.meaning.to_string(), (common.left.times, common.right.times)),
            (result.to_owned(), factors)
        );
        let back = matching(&right, &left).expect("match");
        assert_eq!((back.left, back.right), (common.right, common.left));
    }
    for (left, right) in [
        ("i64", "u64"),
        ("i64", "timestamp[us]"),
        ("i64", "decimal(10,0)"),
        ("i32", "date"),
        ("u128", "uuid"),
        ("date", "timestamp[us]"),
        ("date[ms]", "timestamp[ms]"),
        ("timestamp[us]", "timestamp[us,UTC]"),
        ("time[us]", "duration[us]"),
        ("f32", "f64"),
    ] {
        assert_eq!(matching(&meaning(left), &meaning(right)), None, "{left} {right}");
        assert_eq!(matching(&meaning(right), &meaning(left)), None, "{right} {left}");
    }
    let unknown = |text| Meaning::new("i64", text);
    assert!(matching(&unknown("later"), &unknown("later")).is_some());
    assert!(matching(&unknown("later"), &unknown("other")).is_none());
    // A type that does not fit its words is not accepted.
    assert!(matches!(unknown("Date32").logical, Logical::Unknown(_)));
    let days = ratio(&Logical::Date64, &Logical::Date32).expect("same");
    assert_eq!((days.apply(86_400_000), days.apply(1)), (Some(1), None));
}
