//! Hexadecimal digits: uuids, byte strings, and the first digits of longer texts.

use super::text::TextError;

/// Up to as many digits are a number.
pub(super) const NUMBER_DIGITS: u32 = 32;
/// Digits of the longest key.
pub(super) const DIGITS_MAX: u32 = 2 * crate::types::KEY_BYTES_MAX as u32;

fn digit(byte: u8) -> Result<u8, TextError> {
    match char::from(byte).to_digit(16) {
        Some(digit) => Ok(digit as u8),
        None => Err(TextError::Form),
    }
}

/// Reads the byte string of an even number of digits.
pub(super) fn read_bytes(text: &[u8]) -> Result<Vec<u8>, TextError> {
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Ok(digit(high)? << 4 | digit(low)?)).collect();
    match rest {
        [] => bytes,
        &[last] => digit(last).and(bytes).and(Err(TextError::Odd)),
        _ => Err(TextError::Form),
    }
}

/// Returns the first `count` digits of a text that has at least as many.
pub(super) fn first(text: &[u8], count: u32) -> Result<&[u8], TextError> {
    if !text.iter().all(u8::is_ascii_hexdigit) {
        return Err(TextError::Form);
    }
    text.get(..count as usize).ok_or(TextError::Short)
}

/// Reads the number of at most 32 digits.
pub(super) fn number(text: &[u8]) -> Result<u128, TextError> {
    text.iter().try_fold(0, |number, &byte| Ok(number << 4 | u128::from(digit(byte)?)))
}

/// Returns the smallest and the largest number of `count` digits that begin with some digits.
pub(super) fn prefix(text: &[u8], count: u32) -> Result<(u128, u128), TextError> {
    let text = text.get(..count as usize).unwrap_or(text);
    let free = 4 * (count as usize - text.len()) as u32;
    let low = number(text)?.checked_shl(free).unwrap_or(0);
    Ok((low, low | !u128::MAX.checked_shl(free).unwrap_or(0)))
}

/// Appends `count` digits of a number.
pub(super) fn put_number(number: u128, count: u32, out: &mut Vec<u8>) {
    for at in (0..count.min(NUMBER_DIGITS)).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * at) & 15) as usize]);
    }
}

/// Appends the digits of a byte string.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        put_number(byte.into(), 2, out);
    }
}

/// Reads a uuid: 32 digits, without hyphens or with hyphens after the 8th, 12th, 16th and 20th. Returns `None`
/// if the text has another form.
pub(super) fn read_uuid(text: &[u8]) -> Option<u128> {
    let is_plain = text.len() == 32;
    if !is_plain && text.len() != 36 {
        return None;
    }
    let mut number = 0_u128;
    for (at, &byte) in text.iter().enumerate() {
        if !is_plain && matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        number = number << 4 | u128::from(digit(byte).ok()?);
    }
    Some(number)
}

/// Appends the text of a uuid.
pub(super) fn put_uuid(number: u128, out: &mut Vec<u8>) {
    for (count, last) in [(8, 96), (4, 80), (4, 64), (4, 48), (12, 0)] {
        put_number(number >> last, count, out);
        if last > 0 {
            out.push(b'-');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes_or_numbers() {
        assert_eq!(read_bytes(b"00fFa0"), Ok(vec![0, 255, 160]));
        assert_eq!(read_bytes(b""), Ok(Vec::new()));
        assert_eq!(read_bytes(b"00f"), Err(TextError::Odd));
        for bad in [&b"0g"[..], b"00g", b"g", b"0x00", b" 00", b"+0"] {
            assert_eq!(read_bytes(bad), Err(TextError::Form));
        }
        assert_eq!(first(b"5baA61", 5).and_then(number), Ok(0x5_baa6));
        assert_eq!(first(b"5baa6", 5), Ok(&b"5baa6"[..]));
        assert_eq!(first(b"5baa", 5), Err(TextError::Short));
        assert_eq!(first(b"5baa6g", 5), Err(TextError::Form));
        assert_eq!(first(&[b'f'; 40], 32).and_then(number), Ok(u128::MAX));
        assert_eq!(first(&[b'f'; 40], 34).and_then(read_bytes), Ok(vec![255; 17]));
        let mut out = Vec::new();
        put_number(0x5_baa6, 7, &mut out);
        put_bytes(&[1, 0xfe], &mut out);
        assert_eq!(out, b"005baa601fe");
    }

    #[test]
    fn prefixes_of_digits_are_ranges() {
        assert_eq!(prefix(b"5b", 5), Ok((0x5_b000, 0x5_bfff)));
        assert_eq!(prefix(b"5baa61", 5), Ok((0x5_baa6, 0x5_baa6)));
        assert_eq!(prefix(b"", 32), Ok((0, u128::MAX)));
        assert_eq!(prefix(b"", 5), Ok((0, 0xf_ffff)));
        assert_eq!(prefix(b"f", 32), Ok((15 << 124, u128::MAX)));
        assert_eq!(prefix(b"x", 5), Err(TextError::Form));
    }
}
