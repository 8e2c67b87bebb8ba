//! Text of keys for messages.

use pleach_format::key::Key;
use pleach_format::logical::{Form, shown};
use pleach_format::{KeyType, Meaning};

/// Maximum number of bytes of a byte key in a message.
const SHOWN_BYTES: usize = 64;

/// The form in which the keys of a table are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyText {
    key_type: KeyType,
    form: Option<Form>,
}

impl KeyText {
    pub(crate) fn new(key_type: KeyType, meaning: &Meaning) -> Self {
        Self { key_type, form: meaning.form() }
    }

    /// Formats a numeric key from its word.
    pub(crate) fn word(self, word: u128) -> String {
        let signed = |number: i64| self.form.map_or_else(|| number.to_string(), |form| shown(form, number));
        match self.key_type {
            KeyType::I32 => signed(i32::decode(word as u32).into()),
            KeyType::I64 => signed(i64::decode(word as u64)),
            KeyType::F64 => f64::decode(word as u64).to_string(),
            KeyType::U32 | KeyType::U64 | KeyType::U128 => match self.form {
                Some(form) => text(|out| form.put_unsigned(word, out)),
                None => word.to_string(),
            },
            // A word holds only part of a byte key.
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => format!("{word:x}"),
        }
    }

    /// Formats a key from its bytes; those of a number are the bytes of its word, the most significant one
    /// first.
    pub(crate) fn bytes(self, key: &[u8]) -> String {
        if !self.key_type.is_bytes() {
            return self.word(key.iter().fold(0, |word, &byte| word << 8 | u128::from(byte)));
        }
        match self.form {
            Some(form) => text(|out| form.put_bytes(key, out)),
            None => plain(key),
        }
    }
}

fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    put(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Formats text in quotes, and other bytes as hexadecimal digits.
fn plain(key: &[u8]) -> String {
    let start = &key[..key.len().min(SHOWN_BYTES)];
    let more = if start.len() < key.len() { "..." } else { "" };
    match std::str::from_utf8(start) {
        Ok(text) => format!("\"{}{more}\"", text.escape_debug()),
        Err(_) => start.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_as_they_are_given() {
        let text = |key_type, logical: &str| KeyText::new(key_type, &Meaning::new(key_type, logical));
        assert_eq!(text(KeyType::U64, "").word(7), "7");
        assert_eq!(text(KeyType::I32, "").word((-7_i32).encode().into()), "-7");
        assert_eq!(text(KeyType::F64, "").word((-0.5_f64).encode().into()), "-0.5");
        assert_eq!(text(KeyType::I32, "Date32").word(19_723_i32.encode().into()), "2024-01-01");
        assert_eq!(text(KeyType::I64, "").bytes(&(-7_i64).encode().to_be_bytes()), "-7");
        assert_eq!(text(KeyType::Utf8, "").bytes(b"ab\n"), "\"ab\\n\"");
        assert_eq!(text(KeyType::Bytes, "").bytes(b"\xff\x00"), "ff00");
        assert_eq!(
            text(KeyType::Fixed(16), "Uuid").bytes(&[0x11; 16]),
            "11111111-1111-1111-1111-111111111111"
        );
        assert_eq!(text(KeyType::U32, "Ipv4").word(0xc000_0201), "192.0.2.1");
        assert_eq!(text(KeyType::Bytes, "Hex").bytes(b"ab"), "6162");
        assert!(text(KeyType::Utf8, "").bytes(&[b'a'; 65]).ends_with("a...\""));
    }
}
