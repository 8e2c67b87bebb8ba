//! JSON documents: each begins with its `schema`, and 64-bit integers are strings.

use crate::failure::{self, Failure};
use serde_json::{Map, Value};

/// A document of a command, as `{"schema":"pleach.fsck.v1"}`; the caller adds the rest.
pub fn document(command: &str) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema".to_owned(), Value::String(format!("pleach.{command}.v1")));
    document
}

/// A 64-bit integer.
pub fn int(number: u64) -> Value {
    Value::String(number.to_string())
}

/// Prints a document on one line.
pub fn print(document: Map<String, Value>) -> Result<(), Failure> {
    let mut text = Value::Object(document).to_string();
    text.push('\n');
    failure::print(text.as_bytes())
}
