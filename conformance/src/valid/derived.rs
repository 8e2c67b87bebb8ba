//! Texts of logical types and the keys that they stand for. All numbers are computed by hand from FORMAT.md.
//!
//! The texts of times, decimals and composite keys are in the forms that PROTOCOL.md names.

use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::{KeyType, ValueType};

/// A text, and the key that it stands for, if it does.
type Derived = (&'static str, Option<Cell>);

#[allow(clippy::unnecessary_wraps, reason = "texts that stand for no key are in the same lists")]
const fn signed(number: i64) -> Option<Cell> {
    Some(Cell::Signed(number))
}

#[allow(clippy::unnecessary_wraps, reason = "texts that stand for no key are in the same lists")]
const fn unsigned(number: u128) -> Option<Cell> {
    Some(Cell::Unsigned(number))
}

#[allow(clippy::unnecessary_wraps, reason = "texts that stand for no key are in the same lists")]
fn bytes(bytes: &[u8]) -> Option<Cell> {
    Some(Cell::Bytes(bytes.to_vec()))
}

/// Plans a file of the keys that the texts stand for, which is asked about all texts.
fn plan(name: &str, key_type: KeyType, logical: &str, about: &str, all: &[Derived]) -> Plan {
    let keys: Vec<&Cell> = all.iter().filter_map(|(_, key)| key.as_ref()).collect();
    let input = keys.into_iter().cloned().zip((0u128..).map(Cell::Unsigned)).collect();
    Plan::new(name, (key_type, ValueType::U32), input, about)
        .layout("lines")
        .logical(logical, "")
        .derived(all)
        .more()
}

pub(super) fn plans() -> Vec<Plan> {
    let mut all = dates();
    all.extend(times());
    all.extend(spans());
    all.extend(addresses());
    all.extend(bases());
    all.extend(composites());
    all.extend(composite_bytes());
    all.extend(unknown());
    all
}

fn dates() -> Vec<Plan> {
    vec![
        plan(
            "derive-date",
            KeyType::I32,
            "Date32",
            "Keys that are days, and texts of days.",
            &[
                ("1970-01-01", signed(0)),
                ("1970-01-02", signed(1)),
                ("1969-12-31", signed(-1)),
                ("2000-02-29", signed(11_016)),
                ("1900-03-01", signed(-25_508)),
                ("2024-02-29", signed(19_782)),
                ("2024-12-31", signed(20_088)),
                ("0001-01-01", signed(-719_162)),
                ("0000-02-29", signed(-719_469)),
                ("9999-12-31", signed(2_932_896)),
                ("-0004-02-29", signed(-720_930)),
                ("+12345-06-07", signed(3_789_548)),
                ("1999-01-31", signed(10_622)),
                ("1999-04-30", signed(10_711)),
                ("1999-10-31", signed(10_895)),
                ("2001-02-29", None),
                ("1900-02-29", None),
                ("2000-02-30", None),
                ("2000-13-01", None),
                ("2000-00-01", None),
                ("2000-01-00", None),
                ("2000-01-32", None),
                ("2000-04-31", None),
                ("2000-06-31", None),
                ("2000-09-31", None),
                ("2000-11-31", None),
                ("1-01-01", None),
                ("2000-1-01", None),
                ("2000-01-1", None),
                ("2000-01-01x", None),
                ("12345-06-07", None),
                ("2000/01/01", None),
                ("", None),
            ],
        ),
        plan(
            "derive-date64",
            KeyType::I64,
            "Date64",
            "Keys that are milliseconds, and texts of days and times.",
            &[
                ("1970-01-01", signed(0)),
                ("1970-01-02", signed(86_400_000)),
                ("1969-12-31", signed(-86_400_000)),
                ("1970-01-01T00:00:00.001", signed(1)),
                ("1970-01-01T23:59:59", signed(86_399_000)),
                ("1970-01-01 00:01", signed(60_000)),
                ("1970-01-01T", None),
                ("1970-01-01T00:00:00.0001", None),
                ("1970-01-01T00:00:00Z", None),
                ("x", None),
            ],
        ),
    ]
}

fn times() -> Vec<Plan> {
    vec![
        plan(
            "derive-time32",
            KeyType::I32,
            "Time32(Millisecond)",
            "Keys that are times of a day in milliseconds, and texts of times.",
            &[
                ("00:00:00", signed(0)),
                ("23:59:59.999", signed(86_399_999)),
                ("12:34", signed(45_240_000)),
                ("12:34:56.7", signed(45_296_700)),
                ("00:00:00.05", signed(50)),
                ("00:00:00.0500", signed(50)),
                ("24:00:00", None),
                ("12:60:00", None),
                ("12:34:60", None),
                ("12:34:56.7891", None),
                ("1:00:00", None),
                ("001:00:00", None),
                ("12", None),
                ("12:3", None),
                ("12:34:5", None),
                ("12:34:56.", None),
                ("12:34:56Z", None),
                ("", None),
            ],
        ),
        plan(
            "derive-time32-second",
            KeyType::I32,
            "Time32(Second)",
            "Keys that are times of a day in seconds.",
            &[
                ("00:00:01", signed(1)),
                ("01:00:00", signed(3600)),
                ("00:01", signed(60)),
                ("00:00:01.5", None),
            ],
        ),
        plan(
            "derive-time64",
            KeyType::I64,
            "Time64(Nanosecond)",
            "Keys that are times of a day in nanoseconds.",
            &[
                ("00:00:01", signed(1_000_000_000)),
                ("00:00:00.000000001", signed(1)),
                ("23:59:59.999999999", signed(86_399_999_999_999)),
                ("00:00:00.0000000001", None),
            ],
        ),
        plan(
            "derive-timestamp",
            KeyType::I64,
            "Timestamp(Second, None)",
            "Keys that are points of time without a zone, and texts of them.",
            &[
                ("1970-01-01T00:00:00", signed(0)),
                ("2000-01-01T00:00:00", signed(946_684_800)),
                ("2000-01-01 12:00:00", signed(946_728_000)),
                ("2000-01-01t00:00:01", signed(946_684_801)),
                ("1969-12-31T23:59:59", signed(-1)),
                ("2000-01-02", signed(946_771_200)),
                ("2000-01-01T00:00:00Z", None),
                ("2000-01-01T00:00:00+01:00", None),
                ("2000-01-01X00:00:00", None),
                ("2000-01-01T24:00:00", None),
                ("2000-01-01T00:00:00.5", None),
                ("2000-02-30T00:00:00", None),
                ("", None),
            ],
        ),
        plan(
            "derive-instant",
            KeyType::I64,
            "Timestamp(Millisecond, Some(\"UTC\"))",
            "Keys that are instants, and texts of them in several zones.",
            &[
                ("1970-01-01T00:00:00Z", signed(0)),
                ("1970-01-01T00:00:00z", signed(0)),
                ("1970-01-01T01:00:00+01:00", signed(0)),
                ("1970-01-01T00:00:00.250-01:30", signed(5_400_250)),
                ("1970-01-01T00:00:00-0130", signed(5_400_000)),
                ("1970-01-01T05:00:00+05", signed(0)),
                ("1970-01-02T00:00:00Z", signed(86_400_000)),
                ("1970-01-01T00:00:00", None),
                ("1970-01-01T00:00:00+24:00", None),
                ("1970-01-01T00:00:00+01:60", None),
                ("1970-01-01T00:00:00+1", None),
                ("1970-01-01T00:00:00ZZ", None),
                ("1970-01-01T00:00:00 Z", None),
            ],
        ),
    ]
}

fn spans() -> Vec<Plan> {
    vec![
        plan(
            "derive-duration",
            KeyType::I64,
            "Duration(Millisecond)",
            "Keys that are spans of time, and texts of them.",
            &[
                ("1s", signed(1000)),
                ("1.5s", signed(1500)),
                ("250ms", signed(250)),
                ("-2s", signed(-2000)),
                ("1000us", signed(1)),
                ("2000000ns", signed(2)),
                ("+3s", signed(3000)),
                ("0.001s", signed(1)),
                ("0s", signed(0)),
                ("1us", None),
                ("1", None),
                ("s", None),
                ("1.s", None),
                (".5s", None),
                ("5ns", None),
                ("1h", None),
                ("1.0005s", None),
                ("--1s", None),
                ("", None),
            ],
        ),
        plan(
            "derive-decimal",
            KeyType::I64,
            "Decimal64(5, 2)",
            "Keys that are numbers with two digits behind the point.",
            &[
                ("1.25", signed(125)),
                ("-0.01", signed(-1)),
                ("3", signed(300)),
                ("+7.5", signed(750)),
                ("999.99", signed(99_999)),
                ("1.250", signed(125)),
                ("0", signed(0)),
                ("1.255", None),
                ("1.", None),
                ("abc", None),
                (".5", None),
                ("1,5", None),
                ("--1", None),
                ("1e2", None),
                ("", None),
            ],
        ),
        plan(
            "derive-decimal-hundreds",
            KeyType::I64,
            "Decimal128(5, -2)",
            "Keys that are hundreds.",
            &[("100", signed(1)), ("-1200", signed(-12)), ("0", signed(0)), ("150", None), ("1", None)],
        ),
    ]
}

fn addresses() -> Vec<Plan> {
    vec![
        plan(
            "derive-uuid",
            KeyType::U128,
            "Uuid",
            "Texts of uuids without hyphens, and with some at other places.",
            &[
                ("7d4448409dc011d1b2455ffdce74fad2", unsigned(0x7D44_4840_9DC0_11D1_B245_5FFD_CE74_FAD2)),
                ("00000000-0000-0000-0000-00000000000A", unsigned(10)),
                ("7d4448409dc011d1b2455ffdce74fad", None),
                ("7d4448409dc011d1b2455ffdce74fad22", None),
                ("7d44484-09dc0-11d1-b245-5ffdce74fad2", None),
                ("7d444840-9dc0-11d1-b2455ffdce74fad2", None),
                ("7d444840-9dc0-11d1-b245-5ffdce74fadg", None),
                ("", None),
            ],
        ),
        plan(
            "derive-ipv4",
            KeyType::U32,
            "Ipv4",
            "Texts that are nearly IPv4 addresses.",
            &[
                ("1.2.3.4", unsigned(16_909_060)),
                ("0.0.0.255", unsigned(255)),
                ("01.2.3.4", None),
                ("1.2.3.4.5", None),
                ("1.2.3.256", None),
                ("1.2.3.1000", None),
                ("1..2.3", None),
                ("1.2.3.", None),
                ("1.2.3.4 ", None),
                ("1.2.3.x", None),
                ("00.0.0.0", None),
                ("", None),
            ],
        ),
        plan(
            "derive-ipv6",
            KeyType::U128,
            "Ipv6",
            "Texts of IPv6 addresses in all forms, and others.",
            &[
                ("::ffff:1.2.3.4", unsigned(281_470_698_652_420)),
                ("1:2:3:4:5:6:7:8", unsigned(0x0001_0002_0003_0004_0005_0006_0007_0008)),
                ("1:2:3:4:5:6:7::", unsigned(0x0001_0002_0003_0004_0005_0006_0007_0000)),
                ("::2:3:4:5:6:7:8", unsigned(0x0000_0002_0003_0004_0005_0006_0007_0008)),
                ("1::8", unsigned(0x0001_0000_0000_0000_0000_0000_0000_0008)),
                ("::1.2.3.4", unsigned(16_909_060)),
                ("1:2:3:4:5:6:1.2.3.4", unsigned(0x0001_0002_0003_0004_0005_0006_0102_0304)),
                ("ABCD::", unsigned(0xABCD_0000_0000_0000_0000_0000_0000_0000)),
                ("::", unsigned(0)),
                ("::1.2.3.256", None),
                ("1:2:3:4:5:6:7", None),
                ("1:2:3:4:5:6:7:8:9", None),
                ("1:2:3:4:5:6:7:1.2.3.4", None),
                ("12345::", None),
                ("::g", None),
                (":::", None),
                ("1::2::3", None),
                ("1:", None),
                ("::1%eth0", None),
                ("1.2.3.4", None),
                (":1:2:3:4:5:6:7", None),
                ("::01.2.3.4", None),
                ("", None),
            ],
        ),
        plan(
            "derive-ip",
            KeyType::U128,
            "Ip",
            "Texts of addresses of either family, and others.",
            &[
                ("::ffff:1.2.3.4", unsigned(16_909_060)),
                ("1.2.3.4", unsigned(16_909_060)),
                ("::ffff:0:0", unsigned(0)),
                ("::fffe:ffff:ffff", unsigned(281_474_976_710_655)),
                ("::1:0:0:0", unsigned(281_474_976_710_656)),
                ("1.2.3", None),
                ("", None),
                ("::1.2.3", None),
            ],
        ),
    ]
}

fn bases() -> Vec<Plan> {
    vec![
        plan(
            "derive-dna",
            KeyType::U128,
            "Dna2",
            "Texts that are no bases, and a single base.",
            &[
                ("T", unsigned(0xC000_0000_0000_0000_0000_0000_0000_0001)),
                ("c", unsigned(0x4000_0000_0000_0000_0000_0000_0000_0001)),
                ("", None),
                ("N", None),
                ("A C", None),
                ("ACGU", None),
            ],
        ),
        plan(
            "derive-dna-canonical",
            KeyType::U128,
            "Dna2(Canonical)",
            "Texts that are no bases, and a single base.",
            &[
                ("T", unsigned(1)),
                ("C", unsigned(0x4000_0000_0000_0000_0000_0000_0000_0001)),
                ("", None),
                ("N", None),
            ],
        ),
    ]
}

fn composites() -> Vec<Plan> {
    vec![
        plan(
            "derive-composite",
            KeyType::U64,
            "composite<shop: u16, day: i32 \"Date32\">",
            "Keys of a number and a day, and texts of both.",
            &[
                ("3,1970-01-02", unsigned(15_032_385_537)),
                ("0,1969-12-31", unsigned(2_147_483_647)),
                ("65535,2000-02-29", unsigned(281_472_829_238_024)),
                ("65536,1970-01-01", None),
                ("-1,1970-01-01", None),
                ("3", None),
                ("3,1970-01-01,4", None),
                ("x,1970-01-01", None),
                ("3,1970-13-01", None),
                ("", None),
                ("3,", None),
                (",1970-01-01", None),
                ("1.5,1970-01-01", None),
            ],
        ),
        plan(
            "derive-composite-numbers",
            KeyType::Fixed(22),
            "composite<a: u8, b: i8, c: u16, d: i16, e: i64, f: u64>",
            "Keys of numbers of several kinds.",
            &[
                (
                    "255,-128,65535,32767,-1,18446744073709551615",
                    bytes(&[
                        0xFF, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                    ]),
                ),
                (
                    "0,127,0,-32768,9223372036854775807,0",
                    bytes(&[
                        0, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0,
                        0, 0, 0,
                    ]),
                ),
                (
                    "1,+1,2,-2,3,4",
                    bytes(&[1, 0x81, 0, 2, 0x7F, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4]),
                ),
                ("256,0,0,0,0,0", None),
                ("0,128,0,0,0,0", None),
                ("0,-129,0,0,0,0", None),
                ("0,0,65536,0,0,0", None),
                ("0,0,0,32768,0,0", None),
                ("0,0,0,-32769,0,0", None),
                ("0,0,0,0,9223372036854775808,0", None),
                ("0,0,0,0,0,18446744073709551616", None),
                ("-1,0,0,0,0,0", None),
                ("0,0,0,0,0", None),
                ("0,0,0,0,0,", None),
                ("0,0,0,0,0,0x1", None),
            ],
        ),
        plan(
            "derive-composite-fixed",
            KeyType::U32,
            "composite<a: bytes2, b: u8>",
            "Keys of two bytes and a number, as a number.",
            &[
                ("abcd,7", unsigned(11_259_143)),
                ("0000,0", unsigned(0)),
                ("ab,7", None),
                ("abc,7", None),
                ("abcdef,7", None),
                ("abcd,256", None),
            ],
        ),
        plan(
            "derive-composite-decimal",
            KeyType::U128,
            "composite<d: i64 \"Decimal64(5, 2)\", x: u8>",
            "Keys of a number with a point and a number.",
            &[
                ("999.99,1", unsigned(0x0000_0000_0000_0080_0000_0000_0186_9F01)),
                ("-999.99,0", unsigned(0x0000_0000_0000_007F_FFFF_FFFF_FE79_6100)),
                ("1000.00,1", None),
                ("-1000,1", None),
                ("1.234,1", None),
            ],
        ),
    ]
}

fn composite_bytes() -> Vec<Plan> {
    vec![
        plan(
            "derive-composite-text",
            KeyType::Bytes,
            "composite<host: utf8, day: i32 \"Date32\">",
            "Keys of a text and a day, and texts of both.",
            &[
                ("a,1970-01-02", bytes(&[0x61, 0, 0, 0x80, 0, 0, 1])),
                ("a\0b,1969-12-31", bytes(&[0x61, 0, 0xFF, 0x62, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF])),
                ("\"a,b\",1970-01-01", bytes(&[0x61, 0x2C, 0x62, 0, 0, 0x80, 0, 0, 0])),
                (
                    "\"say \"\"hi\"\"\",1970-01-01",
                    bytes(&[0x73, 0x61, 0x79, 0x20, 0x22, 0x68, 0x69, 0x22, 0, 0, 0x80, 0, 0, 0]),
                ),
                (",1970-01-01", bytes(&[0, 0, 0x80, 0, 0, 0])),
                ("\"\",1970-01-03", bytes(&[0, 0, 0x80, 0, 0, 2])),
                ("a\"b,1970-01-01", bytes(&[0x61, 0x22, 0x62, 0, 0, 0x80, 0, 0, 0])),
                ("\"a,1970-01-01", None),
                ("\"a\"x,1970-01-01", None),
                ("a", None),
                ("a,b", None),
                ("a,1970-01-01,", None),
            ],
        ),
        plan(
            "derive-composite-uuid",
            KeyType::Fixed(17),
            "composite<id: bytes16 \"Uuid\", n: u8>",
            "Keys of a uuid and a number.",
            &[
                (
                    "7d444840-9dc0-11d1-b245-5ffdce74fad2,7",
                    bytes(&[
                        0x7D, 0x44, 0x48, 0x40, 0x9D, 0xC0, 0x11, 0xD1, 0xB2, 0x45, 0x5F, 0xFD, 0xCE, 0x74,
                        0xFA, 0xD2, 7,
                    ]),
                ),
                ("7d444840,7", None),
            ],
        ),
        plan(
            "derive-composite-uuid128",
            KeyType::Fixed(17),
            "composite<id: u128 \"Uuid\", n: u8>",
            "Keys of a uuid as a number, and a number.",
            &[
                (
                    "7d444840-9dc0-11d1-b245-5ffdce74fad2,7",
                    bytes(&[
                        0x7D, 0x44, 0x48, 0x40, 0x9D, 0xC0, 0x11, 0xD1, 0xB2, 0x45, 0x5F, 0xFD, 0xCE, 0x74,
                        0xFA, 0xD2, 7,
                    ]),
                ),
                ("7d444840,7", None),
            ],
        ),
        plan(
            "derive-composite-bytes",
            KeyType::Bytes,
            "composite<a: bytes, b: utf8>",
            "Keys of bytes and a text.",
            &[
                ("00ff,x", bytes(&[0, 0xFF, 0xFF, 0, 0, 0x78])),
                ("\\x00ff,y", bytes(&[0, 0xFF, 0xFF, 0, 0, 0x79])),
                (",", bytes(&[0, 0])),
                ("aa,\"x,y\"", bytes(&[0xAA, 0, 0, 0x78, 0x2C, 0x79])),
                ("0,x", None),
                ("0g,x", None),
            ],
        ),
        plan(
            "derive-composite-hex",
            KeyType::Bytes,
            "composite<h: bytes \"Hex\", n: u32 \"Hex(8)\", ip: u32 \"Ipv4\">",
            "Keys of digits and an address.",
            &[
                ("00ff,deadbeef,1.2.3.4", bytes(&[0, 0xFF, 0xFF, 0, 0, 0xDE, 0xAD, 0xBE, 0xEF, 1, 2, 3, 4])),
                ("0,deadbeef,1.2.3.4", None),
                ("00,dead,1.2.3.4", None),
                ("00,deadbeef,1.2.3", None),
            ],
        ),
    ]
}

/// Logical types that have another text than they must, or other keys: names, keys, types, and texts that would be of
/// the type.
#[rustfmt::skip]
const UNKNOWN: &[(&str, KeyType, &str, &str)] = &[
    ("decimal-plus", KeyType::I64, "Decimal128(+5, 02)", "1.5"),
    ("decimal-precision", KeyType::I64, "Decimal64(256, 0)", "1"),
    ("decimal-scale", KeyType::I64, "Decimal64(5, 128)", "0"),
    ("decimal-scale-low", KeyType::I64, "Decimal64(5, -129)", "0"),
    ("decimal-space", KeyType::I64, "Decimal64(5,2)", "1.5"),
    ("time-unit", KeyType::I32, "Time32(Minute)", "00:00:00"),
    ("time-open", KeyType::I32, "Time32(Second", "00:00:00"),
    ("timestamp-one", KeyType::I64, "Timestamp(Second)", "1970-01-01T00:00:00"),
    ("timestamp-zone", KeyType::I64, "Timestamp(Second, UTC)", "1970-01-01T00:00:00Z"),
    ("timestamp-plain", KeyType::I64, "Timestamp(Second, Some(UTC))", "1970-01-01T00:00:00Z"),
    ("timestamp-unit", KeyType::I64, "Timestamp(Minute, None)", "1970-01-01T00:00:00"),
    ("duration-unit", KeyType::I64, "Duration(Hour)", "1s"),
    ("hex-none", KeyType::U32, "Hex(0)", "12"),
    ("hex-lead", KeyType::U32, "Hex(08)", "12345678"),
    ("hex-odd", KeyType::Fixed(17), "Hex(33)", "0000000000000000000000000000000000"),
    ("hash-none", KeyType::U64, "Hash64(0)", "a"),
    ("hash-many", KeyType::U64, "Hash64(16)", "a"),
    ("hash-lead", KeyType::U64, "Hash64(01)", "a"),
    ("prefix-none", KeyType::Utf8, "Prefix(0)", "abc"),
    ("prefix-lead", KeyType::Utf8, "Prefix(03)", "abc"),
    ("prefix-sign", KeyType::Utf8, "Prefix(-1)", "abc"),
    ("dna-case", KeyType::U128, "Dna2(canonical)", "ACGT"),
    ("space-before", KeyType::U128, " Uuid", "7d4448409dc011d1b2455ffdce74fad2"),
    ("space-behind", KeyType::I32, "Date32 ", "1970-01-01"),
    ("date-i64", KeyType::I64, "Date32", "1970-01-01"),
    ("ipv4-u64", KeyType::U64, "Ipv4", "1.2.3.4"),
    ("uuid-u64", KeyType::U64, "Uuid", "7d4448409dc011d1b2455ffdce74fad2"),
    ("record-key", KeyType::U32, "record<a: u32>", "1"),
    ("hex-u64", KeyType::U64, "Hex(8)", "12345678"),
    ("composite-one", KeyType::U32, "composite<a: u32>", "1"),
    (
        "composite-nine",
        KeyType::Fixed(18),
        "composite<a: u16, b: u16, c: u16, d: u16, e: u16, f: u16, g: u16, h: u16, \
         i: u16>",
        "1,1,1,1,1,1,1,1,1",
    ),
    ("composite-twice", KeyType::U32, "composite<a: u16, a: u16>", "1,2"),
    ("composite-boolean", KeyType::U32, "composite<a: u16, b: u32 \"Boolean\">", "1,1"),
    ("composite-hash", KeyType::U128, "composite<a: u16, b: u64 \"Hash64\">", "1,x"),
    ("composite-prefix", KeyType::Bytes, "composite<a: u16, b: utf8 \"Prefix(2)\">", "1,x"),
    ("composite-uuid", KeyType::U128, "composite<a: u16, b: u64 \"Uuid\">", "1,7d4448409dc011d1b2455ffdce74fad2"),
    ("composite-kind", KeyType::U128, "composite<a: u16, b: i64 \"Date32\">", "1,1970-01-01"),
    ("composite-later", KeyType::U64, "composite<a: u16, b: u32 \"Star(9)\">", "1,1"),
    ("composite-u33", KeyType::U64, "composite<a: u16, b: u33>", "1,1"),
    ("composite-nested", KeyType::Bytes, "composite<a: u16, b: bytes \"composite<x: u8, y: u8>\">", "1,1"),
    ("composite-space", KeyType::U32, "composite<a: u16,b: u16>", "1,1"),
    ("composite-behind", KeyType::U32, "composite<a: u16, b: u16> ", "1,1"),
    ("composite-bytes0", KeyType::U32, "composite<a: u16, b: bytes0>", "1,"),
    ("composite-key", KeyType::U64, "composite<a: u16, b: u16>", "1,1"),
    ("composite-wide", KeyType::U32, "composite<a: u32, b: u32>", "1,1"),
    ("composite-float", KeyType::U64, "composite<a: u16, b: f32>", "1,1"),
    ("composite-quoted", KeyType::U32, "composite<\"a\": u16, b: u16>", "1,1"),
    ("composite-word", KeyType::Bytes, "composite<a: u16, b: word4>", "1,1"),
    ("boolean-u64", KeyType::U64, "Boolean", "true"),
    ("prefix-large", KeyType::Utf8, "Prefix(4294967296)", "abc"),
    ("composite-record", KeyType::Bytes, "composite<a: u16, b: bytes \"record<x: u8>\">", "1,1"),
];

fn unknown() -> Vec<Plan> {
    let key = |key_type, at: u8| match key_type {
        KeyType::Fixed(bytes) => Cell::Bytes(vec![at; bytes.into()]),
        KeyType::Bytes | KeyType::Utf8 => Cell::Bytes(vec![at + b'a'; 2]),
        KeyType::I32 | KeyType::I64 => Cell::Signed(at.into()),
        _ => Cell::Unsigned(at.into()),
    };
    let unknown = |&(name, key_type, logical, text): &(&str, KeyType, &str, &str)| {
        let input = (0..3).map(|at| (key(key_type, at), Cell::Unsigned(at.into()))).collect();
        Plan::new(
            &format!("unknown-{name}"),
            (key_type, ValueType::U32),
            input,
            "A logical type that is none: keys are plain.",
        )
        .layout("lines")
        .logical(logical, "")
        .derived(&[(text, None)])
        .more()
    };
    UNKNOWN.iter().map(unknown).chain(texts()).collect()
}

/// Logical types with texts that are none of theirs, or in a form that is rare.
fn texts() -> Vec<Plan> {
    let of = |name: &str, key_type, key: Cell, logical: &str, texts: &[(&str, Option<Cell>)]| {
        let about = "A logical type, and texts that stand for no key or are rare.";
        Plan::new(&format!("texts-{name}"), (key_type, ValueType::U32), vec![(key, Cell::Unsigned(1))], about)
            .layout("lines")
            .logical(logical, "")
            .derived(texts)
            .more()
    };
    let uuid = "7d4448409dc011d1b2455ffdce74fad2";
    let both = [0, 1]
        .into_iter()
        .chain((0..16).map(|at| u8::from_str_radix(&uuid[2 * at..2 * at + 2], 16).expect("digits")));
    let both = Cell::Bytes(both.collect());
    let number = |number: u32| Some(Cell::Unsigned(number.into()));
    vec![
        of(
            "boolean",
            KeyType::U32,
            Cell::Unsigned(1),
            "Boolean",
            &[("true", number(1)), ("1", number(1)), ("FALSE", number(0)), ("0", number(0)), ("2", None)],
        ),
        of("time", KeyType::I32, Cell::Signed(0), "Time32(Millisecond)", &[("00:00.5", None)]),
        of("duration", KeyType::I64, Cell::Signed(0), "Duration(Second)", &[("-x", None), ("-", None)]),
        of("decimal", KeyType::I64, Cell::Signed(0), "Decimal64(5, 2)", &[("-x", None), ("-", None)]),
        of("ipv6", KeyType::U128, Cell::Unsigned(0), "Ipv6", &[("1::2::3", None), ("1:2:3:4:5:6:7", None)]),
        of(
            "composite-uuid",
            KeyType::Fixed(18),
            both.clone(),
            "composite<a: u16, b: bytes16 \"Uuid\">",
            &[("1,7d4448409dc011d1b2455ffdce74fad2", Some(both)), ("1,x", None)],
        ),
    ]
}
