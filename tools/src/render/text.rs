//! Keys and values as text, written into a byte buffer.
//!
//! Millions of answers a second leave no time for `std::fmt`: integers are written two digits at a time, and
//! floats in the shortest form that reads back as the same number.

use indicatif::{HumanBytes, HumanCount};
use pleach::Datum;
use pleach_format::logical::Form;
use std::fmt::Write as _;
use std::path::Path;

/// A value that `get` and `range` print.
pub trait Text: Copy {
    /// True if JSON writes it as a string: integers of 64 bits do not fit into a double.
    const QUOTED: bool;
    /// True if there is anything to write; values of type `none` have nothing.
    const IS_SOMETHING: bool = true;
    /// Appends it as text.
    fn put(self, out: &mut Vec<u8>);
    /// Appends it as a JSON value.
    #[inline]
    fn put_json(self, out: &mut Vec<u8>) {
        if Self::QUOTED {
            out.push(b'"');
            self.put(out);
            out.push(b'"');
        } else {
            self.put(out);
        }
    }
}

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends a number in decimal.
#[inline]
pub fn put_u64(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while number >= 100 {
        let pair = (number % 100) as usize * 2;
        number /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if number >= 10 {
        let pair = number as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number in decimal.
#[inline]
pub fn put_i64(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    put_u64(number.unsigned_abs(), out);
}

impl Text for u32 {
    const QUOTED: bool = false;
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        put_u64(self.into(), out);
    }
}
impl Text for u64 {
    const QUOTED: bool = true;
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        put_u64(self, out);
    }
}
impl Text for i32 {
    const QUOTED: bool = false;
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        put_i64(self.into(), out);
    }
}
impl Text for i64 {
    const QUOTED: bool = true;
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        put_i64(self, out);
    }
}

impl Text for u128 {
    const QUOTED: bool = true;
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        match u64::try_from(self) {
            Ok(small) => put_u64(small, out),
            Err(_) => out.extend_from_slice(self.to_string().as_bytes()),
        }
    }
}

impl Text for () {
    const QUOTED: bool = false;
    const IS_SOMETHING: bool = false;
    #[inline]
    fn put(self, _: &mut Vec<u8>) {}
    #[inline]
    fn put_json(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }
}

macro_rules! floats {
    ($($t:ident),*) => {$(
        impl Text for $t {
            const QUOTED: bool = false;
            fn put(self, out: &mut Vec<u8>) {
                // serde_json has the fast shortest form, but no text for infinite values and NaN.
                let start = out.len();
                if !self.is_finite() || serde_json::to_writer(&mut *out, &self).is_err() {
                    let mut word = String::new();
                    let _ = write!(word, "{self}");
                    out.extend_from_slice(word.as_bytes());
                }
                // `1e300`, not `1e+300`: both read back, and Rust itself writes the first.
                if let Some(plus) = out[start..].iter().position(|&byte| byte == b'+') {
                    out.remove(start + plus);
                }
            }
            fn put_json(self, out: &mut Vec<u8>) {
                if self.is_finite() {
                    self.put(out);
                } else {
                    out.push(b'"');
                    self.put(out);
                    out.push(b'"');
                }
            }
        }
    )*};
}
floats!(f32, f64);

/// Appends text of the user with tab, newline, carriage return and backslash escaped.
pub fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(byte),
        }
    }
}

/// Inverse of [`put_escaped`]. `None` if a backslash is followed by something else.
pub fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(plain)
}

/// Appends bytes as hexadecimal digits.
pub fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Appends a key or value as text: texts escaped, byte strings as hexadecimal digits.
pub fn put_datum(datum: &Datum<'_>, out: &mut Vec<u8>) {
    match datum {
        Datum::None => {}
        Datum::U32(number) => number.put(out),
        Datum::U64(number) => number.put(out),
        Datum::U128(number) => number.put(out),
        Datum::I32(number) => number.put(out),
        Datum::I64(number) => number.put(out),
        Datum::F32(number) => number.put(out),
        Datum::F64(number) => number.put(out),
        Datum::Bytes(bytes) => put_hex(bytes, out),
        Datum::Utf8(text) => put_escaped(text, out),
    }
}

/// Appends a key or value in its logical form.
pub fn put_meant(datum: &Datum<'_>, form: Option<Form>, out: &mut Vec<u8>) {
    if let Some(Form::Composite(_)) = form {
        // The texts in it may have tabs.
        return put_escaped(&composite_text(datum, form), out);
    }
    put_form(datum, form, out);
}

/// Returns the text of a composite key, as it is.
fn composite_text(datum: &Datum<'_>, form: Option<Form>) -> Vec<u8> {
    let mut text = Vec::new();
    put_form(datum, form, &mut text);
    text
}

fn put_form(datum: &Datum<'_>, form: Option<Form>, out: &mut Vec<u8>) {
    match (form, datum) {
        (Some(form), Datum::U128(number)) => form.put_unsigned(*number, out),
        (Some(form), Datum::U64(number)) => form.put_unsigned((*number).into(), out),
        (Some(form), Datum::U32(number)) => form.put_unsigned((*number).into(), out),
        (Some(form), Datum::Bytes(bytes)) => form.put_bytes(bytes, out),
        (Some(form), Datum::I64(word)) => form.put(*word, out),
        (Some(form), Datum::I32(word)) => form.put((*word).into(), out),
        _ => put_datum(datum, out),
    }
}

/// Appends a key or value as a JSON value: a string if it has a logical form, but booleans are those of JSON.
pub fn put_meant_json(datum: &Datum<'_>, form: Option<Form>, out: &mut Vec<u8>) {
    if form.is_none() || matches!(datum, Datum::None) {
        return put_datum_json(datum, out);
    }
    if let Some(Form::Composite(_)) = form {
        return put_datum_json(&Datum::Utf8(composite_text(datum, form).into()), out);
    }
    if form == Some(Form::Boolean) {
        return put_meant(datum, form, out);
    }
    out.push(b'"');
    put_meant(datum, form, out);
    out.push(b'"');
}

/// Appends a key or value as a JSON value.
pub fn put_datum_json(datum: &Datum<'_>, out: &mut Vec<u8>) {
    match datum {
        Datum::None => ().put_json(out),
        Datum::U32(number) => number.put_json(out),
        Datum::U64(number) => number.put_json(out),
        Datum::U128(number) => number.put_json(out),
        Datum::I32(number) => number.put_json(out),
        Datum::I64(number) => number.put_json(out),
        Datum::F32(number) => number.put_json(out),
        Datum::F64(number) => number.put_json(out),
        Datum::Bytes(bytes) => {
            out.push(b'"');
            put_hex(bytes, out);
            out.push(b'"');
        }
        Datum::Utf8(text) => {
            let text = serde_json::Value::String(String::from_utf8_lossy(text).into_owned());
            out.extend_from_slice(text.to_string().as_bytes());
        }
    }
}

/// Returns true if a terminal obeys a character instead of showing it: controls, and marks that change the
/// direction of letters, with which a name can look like another one.
pub fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Returns text that is safe to show: characters that would control a terminal are escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_obeyed(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Returns a path as a person reads it: see [`printable`].
pub fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// Returns a count with separators, as `12,345,678`.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Returns bytes for people, as `1.50 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns a count with its noun: `1 tuple`, `2 tuples`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Text) -> String {
        let mut out = Vec::new();
        value.put(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn integers() {
        for number in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(text(number), number.to_string());
        }
        for number in [i64::MIN, -100, -1, 0, 7, i64::MAX] {
            assert_eq!(text(number), number.to_string());
        }
        assert_eq!(text(i32::MIN), i32::MIN.to_string());
    }

    #[test]
    fn floats_read_back() {
        for number in [0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, f64::MAX, 1.0 / 3.0] {
            assert_eq!(text(number).parse::<f64>().map(f64::to_bits), Ok(number.to_bits()));
        }
        assert_eq!(text(0.1f32), "0.1");
        assert_eq!(text(-1e300), "-1e300");
        assert_eq!(text(1e-7), "1e-7");
        assert_eq!(text(7.0), "7.0");
        assert_eq!(text(f32::NAN), "NaN");
        assert_eq!(text(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn escapes() {
        let mut out = Vec::new();
        put_escaped(b"a\tb\nc\rd\\e", &mut out);
        assert_eq!(out, b"a\\tb\\nc\\rd\\\\e");
        assert_eq!(unescaped(&out).as_deref(), Some(&b"a\tb\nc\rd\\e"[..]));
        assert_eq!(unescaped(b"\\x"), None);
        assert_eq!(unescaped(b"ends in \\"), None);
    }

    #[test]
    fn counts() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "tuple"), "1 tuple");
        assert_eq!(human_bytes(1536), "1.50 KiB");
    }
}
