//! JSON documents: each begins with its `schema`, and 64-bit integers are strings.

use crate::render::text::is_obeyed;
use pleach::Approximate;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Makes the document of a command, as `{"schema":"pleach.fsck.v1"}`; the caller adds the rest.
pub fn document(command: &str) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema".to_owned(), Value::String(format!("pleach.{command}.v1")));
    document
}

/// Returns a 64-bit integer as a JSON string.
pub fn int(number: u64) -> Value {
    Value::String(number.to_string())
}

/// Returns the share of absent keys that are found: `true` if it is not known, `false` if there are none.
pub fn approximate(found: Option<Approximate>) -> Value {
    match found {
        None => false.into(),
        Some(Approximate { rate: Some(rate), .. }) => rate.into(),
        Some(Approximate { rate: None, .. }) => true.into(),
    }
}

/// Returns a document on one line.
pub fn line(document: Map<String, Value>) -> String {
    escaped(&Value::Object(document).to_string())
}

/// Escapes characters that would control a terminal: they occur only in strings, and none is beyond U+FFFF.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_obeyed(letter) {
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_steers_a_terminal() {
        let text = "a\u{9b}2J\u{7f}\u{85}\u{202e}\u{2066}\u{200f}\u{61c}\n\u{1b}\"\\é\u{1F333}";
        let json = escaped(&Value::String(text.to_owned()).to_string());
        assert!(json.chars().all(|letter| !is_obeyed(letter)), "{json}");
        assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), Value::String(text.to_owned()));
        assert!(json.contains("é\u{1F333}"), "{json}");
    }
}
