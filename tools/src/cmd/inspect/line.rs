//! `--line N`: one tuple line, decoded.

use super::page::key_of;
use super::{Found, read_at_most};
use crate::cli::Global;
use crate::failure::{Code, ExitStatus, Failure};
use crate::message::Message;
use crate::render::json;
use crate::render::picture::{datum_json, datum_text};
use crate::render::text::{grouped, hex};
use crate::stdout;
use pleach::Datum;
use pleach_format::Header;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use pleach_format::section::Tag;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{self, ErrorKind};

impl Found<'_> {
    /// Shows one tuple line, decoded, with the sum of its block.
    pub(super) fn show_line(&self, number: u64, global: &Global) -> Result<ExitStatus, Failure> {
        let header = self.whole()?;
        let failed = |error: io::Error| Failure::io("cannot read", self.path, &error);
        if number >= header.lines {
            let there = match header.lines {
                0 => "there are no tuple lines".to_owned(),
                lines => format!("give a number from 0 to {}", lines - 1),
            };
            let message = Message::new(format!("no tuple line {number}")).at(self.path.display());
            return Err(Failure::new(Code::Failed, message.advise(there)));
        }
        let offset = header.line_offset(number);
        let block = self.block_of(header, offset).map_err(failed)?;
        let bytes = read_at_most(&self.file, offset, LINE_BYTES).map_err(failed)?;
        let Some(line) = bytes.first_chunk::<LINE_BYTES>() else {
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        };
        let mask = self.mask(header).map_err(failed)?;
        let meant = self.meant(header, global);
        let form = meant.key_form();
        let used = header.geometry.tuples_in_line(number, header.tuples);
        let first_rank = number * header.geometry.tuples_per_line() as u64;
        if global.json {
            let tuples: Vec<Value> = (0..used)
                .map(|slot| {
                    let (word, value) = words(header, line, slot);
                    let key = match &mask {
                        Some(_) => key_of(header, mask.as_ref(), form, word).into(),
                        None => datum_json(&Datum::of_word(header.key_type, header.key_of(word)), form),
                    };
                    json!({
                        "rank": (first_rank + slot as u64).to_string(),
                        "key": key,
                        "value": datum_json(&Datum::of_bits(header.value_type, value), meant.value),
                    })
                })
                .collect();
            let mut document = json::document("inspect-line");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("line".to_owned(), json::int(number));
            document.insert("offset".to_owned(), json::int(offset));
            document.insert("bytes".to_owned(), hex(line).into());
            document.insert("sum_block".to_owned(), json::int(block.number));
            document.insert("sum_stored".to_owned(), format!("{:08x}", block.stored).into());
            document.insert("sum_found".to_owned(), format!("{:08x}", block.found).into());
            document.insert("tuples".to_owned(), tuples.into());
            stdout::print_json(document)?;
        } else {
            let mut text = String::new();
            let _ = writeln!(
                text,
                "tuple line {number} of {}: byte {offset}, {} of {} slots used",
                grouped(header.lines),
                used,
                header.geometry.tuples_per_line(),
            );
            let state = if block.stored == block.found { "good" } else { "DAMAGED" };
            let _ = writeln!(
                text,
                "sum block {} of LINE: stored {:08x}, the bytes give {:08x}: {state}\n",
                block.number, block.stored, block.found
            );
            let _ = writeln!(text, "{:>15}  {:>20}  value", "rank", "key");
            for slot in 0..used {
                let (word, value) = words(header, line, slot);
                let key = key_of(header, mask.as_ref(), form, word);
                let value = datum_text(&Datum::of_bits(header.value_type, value), meant.value);
                let _ = writeln!(text, "{:>15}  {key:>20}  {value}", first_rank + slot as u64);
            }
            let _ = writeln!(text);
            for (row, bytes) in line.chunks(16).enumerate() {
                let spaced: Vec<String> = bytes.chunks(4).map(hex).collect();
                let _ = writeln!(text, "{:>15}  {}", offset + row as u64 * 16, spaced.join(" "));
            }
            stdout::print(text.as_bytes())?;
        }
        Ok(if block.stored == block.found { ExitStatus::Success } else { ExitStatus::Damage })
    }

    /// Returns the sum block of LINE that holds the byte at `offset`.
    fn block_of(&self, header: &Header, offset: u64) -> io::Result<Block> {
        let missing = || io::Error::from(ErrorKind::UnexpectedEof);
        let section = header.section(Tag::LINE).ok_or_else(missing)?;
        let number = (offset - section.offset()) / SUM_BLOCK_BYTES as u64;
        let start = section.offset() + number * SUM_BLOCK_BYTES as u64;
        let length = (section.end - start).min(SUM_BLOCK_BYTES as u64) as usize;
        let bytes = read_at_most(&self.file, start, length)?;
        let stored_at = section.entry.sums_offset.get() + number * SUM_BYTES as u64;
        let stored = read_at_most(&self.file, stored_at, SUM_BYTES)?;
        let stored = u32::from_le_bytes(*stored.first_chunk().ok_or_else(missing)?);
        Ok(Block { number, stored, found: header.bound_sum(Tag::LINE, number, &bytes) })
    }
}

/// A sum block: its stored sum, and the correct one.
struct Block {
    number: u64,
    stored: u32,
    found: u32,
}

/// Returns the word of the key and the bits of the value in a slot, widened.
fn words(header: &Header, line: &Line, slot: usize) -> (u128, u64) {
    let key = line::word(line, header.geometry.key_bytes, slot);
    let at = header.geometry.values_at() + slot * header.geometry.value_bytes;
    let value = line[at..at + header.geometry.value_bytes]
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    (key, value)
}
