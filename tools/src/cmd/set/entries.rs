//! Entries as JSON: what a worker prints and a committer reads.

use crate::failure::{Code, Failure};
use crate::message::Message;
use crate::parse::hex_bytes;
use crate::render::json;
use crate::render::text::hex;
use pleach_format::meta::Meta;
use pleach_format::{KeyType, ValueType};
use pleach_set::{Entry, Schema, Written};
use serde_json::{Map, Value, json};

/// Returns what a worker wrote as a document.
pub fn document(written: &Written) -> Map<String, Value> {
    let Written { schema, entries } = written;
    let Meta { key_name, value_name, key_logical, value_logical, layout, interval, approximate: _ } =
        &schema.meta;
    let mut document = json::document("entries");
    document.insert("key_type".to_owned(), schema.key_type.to_string().into());
    document.insert("value_type".to_owned(), schema.value_type.to_string().into());
    document.insert("key_name".to_owned(), key_name.clone().into());
    document.insert("value_name".to_owned(), value_name.clone().into());
    document.insert("key_logical".to_owned(), key_logical.clone().into());
    document.insert("value_logical".to_owned(), value_logical.clone().into());
    document.insert("layout".to_owned(), layout.clone().into());
    document.insert("interval".to_owned(), interval.clone().into());
    document.insert("unique".to_owned(), schema.unique.into());
    document.insert("partition_tuples".to_owned(), json::int(schema.partition_tuples));
    document.insert("entries".to_owned(), entries.iter().map(entry).collect());
    document
}

/// Returns an entry as an object.
pub fn entry(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "file_bytes": json::int(entry.file_bytes),
        "sha256": hex(&entry.digest),
        "file_id": hex(&entry.file_id),
        "head_sum": entry.head_sum,
        "tuples": json::int(entry.tuples),
        "min": hex(&entry.min),
        "max": hex(&entry.max),
    })
}

/// Reads such documents, one after the other.
pub fn parse(bytes: &[u8], place: &str) -> Result<Vec<Written>, Failure> {
    let failed = |what: String| {
        let message = Message::new("not the entries of files").at(place).more(what);
        Failure::new(Code::Input, message.advise("give what `pleach set write` printed"))
    };
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        let value = value.map_err(|error| failed(error.to_string().replace(": ", " - ")))?;
        all.push(written(&value).map_err(|field| failed(format!("field {field}")))?);
    }
    if all.is_empty() { Err(failed("it is empty".to_owned())) } else { Ok(all) }
}

fn written(value: &Value) -> Result<Written, &'static str> {
    let text = |name: &'static str| value[name].as_str().map(str::to_owned).ok_or(name);
    if value["schema"] != json::document("entries")["schema"] {
        return Err("schema");
    }
    let meta = Meta {
        key_name: text("key_name")?,
        value_name: text("value_name")?,
        key_logical: text("key_logical")?,
        value_logical: text("value_logical")?,
        layout: text("layout")?,
        interval: text("interval")?,
        approximate: String::new(),
    };
    let schema = Schema {
        key_type: KeyType::from_name(&text("key_type")?).ok_or("key_type")?,
        value_type: ValueType::from_name(&text("value_type")?).ok_or("value_type")?,
        meta,
        unique: value["unique"].as_bool().ok_or("unique")?,
        partition_tuples: number(&value["partition_tuples"])
            .filter(|&it| it > 0)
            .ok_or("partition_tuples")?,
    };
    let entries = value["entries"].as_array().ok_or("entries")?;
    Ok(Written { schema, entries: entries.iter().map(read).collect::<Result<_, _>>()? })
}

fn read(value: &Value) -> Result<Entry, &'static str> {
    let field =
        |name: &'static str| value[name].as_str().and_then(|text| hex_bytes(text.as_bytes())).ok_or(name);
    Ok(Entry {
        name: value["name"].as_str().ok_or("name")?.to_owned(),
        file_bytes: number(&value["file_bytes"]).ok_or("file_bytes")?,
        digest: field("sha256")?.try_into().map_err(|_| "sha256")?,
        file_id: field("file_id")?.try_into().map_err(|_| "file_id")?,
        head_sum: value["head_sum"].as_u64().and_then(|sum| sum.try_into().ok()).ok_or("head_sum")?,
        tuples: number(&value["tuples"]).ok_or("tuples")?,
        min: field("min")?,
        max: field("max")?,
    })
}

/// Reads a number, which is a text of digits.
fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}
