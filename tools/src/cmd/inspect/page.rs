//! `--page N`: shows one line of the spine, decoded: its header, its codes, and the separators that they
//! encode.

use super::draw::short_text;
use super::{Found, read_at_most};
use crate::cli::Global;
use crate::failure::{Code, ExitStatus, Failure};
use crate::message::Message;
use crate::render::json;
use crate::render::picture::datum_text;
use crate::render::text::{grouped, hex, put_hex};
use crate::stdout;
use pleach::Datum;
use pleach_format::layout::{LINE_BYTES, Level};
use pleach_format::line::Line;
use pleach_format::logical::Form;
use pleach_format::mask::Mask;
use pleach_format::section::Tag;
use pleach_format::spine::{self, Encoding};
use pleach_format::{Header, Word};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{self, ErrorKind};

/// A spine line, decoded.
struct Page {
    /// Level, counted from the tuple lines.
    level: usize,
    /// Number in its level.
    number: u64,
    offset: u64,
    bytes: Line,
    encoding: Encoding,
    base: u128,
    shift: u32,
    inexact: bool,
    children: u64,
    slots: Vec<Slot>,
}

struct Slot {
    code: Option<u64>,
    /// The largest word that leads to the child on its left.
    separator: u128,
}

impl Found<'_> {
    /// Shows one spine line, decoded, with the kept bits of byte keys.
    pub(super) fn show_page(&self, number: u64, global: &Global) -> Result<ExitStatus, Failure> {
        let header = self.whole()?;
        let failed = |error: io::Error| Failure::io("cannot read", self.path, &error);
        let lines: u64 = header.spine.levels.iter().map(|level| level.lines).sum();
        let mut at = number;
        let found = header.spine.levels.iter().enumerate().rev().find(|(_, level)| {
            let here = at < level.lines;
            at -= if here { 0 } else { level.lines };
            here
        });
        let Some((index, level)) = found else {
            let there = match lines {
                0 => "the spine has no lines".to_owned(),
                lines => format!("give a number from 0 to {}", lines - 1),
            };
            let message = Message::new(format!("no spine line {number}")).at(self.path.display());
            return Err(Failure::new(Code::Failed, message.advise(there)));
        };
        let offset = header.spine_offset + level.offset + at * LINE_BYTES as u64;
        let bytes = read_at_most(&self.file, offset, LINE_BYTES).map_err(failed)?;
        let Some(line) = bytes.first_chunk::<LINE_BYTES>() else {
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        };
        let page = match header.geometry.key_bytes {
            4 => page::<u32>(index, level, at, offset, line),
            8 => page::<u64>(index, level, at, offset, line),
            _ => page::<u128>(index, level, at, offset, line),
        };
        let mask = self.mask(header).map_err(failed)?;
        let form = self.meant(header, global).key_form();
        let text = |word: u128| key_of(header, mask.as_ref(), form, word);
        if global.json {
            stdout::print_json(self.page_document(number, &page, mask.as_ref(), text))?;
            return Ok(ExitStatus::Success);
        }
        let mut out = String::new();
        let _ = writeln!(
            out,
            "spine line {number} of {}: line {} of level {}, byte {}",
            grouped(lines),
            page.number,
            page.level,
            page.offset
        );
        let exact = if page.inexact { "inexact" } else { "exact" };
        let _ = writeln!(
            out,
            "encoding {}, {} children; base {:x}, cells of 2^{} words, {exact}",
            page.encoding.name(),
            page.children,
            page.base,
            page.shift
        );
        if let Some(mask) = &mask {
            let kind = if mask.is_lossless() { "the whole key" } else { "as far as it goes" };
            let _ = writeln!(out, "a word keeps {} bits of {} bytes, {kind}", mask.bits(), mask.covered());
            let _ = writeln!(out, "  pmask     {}", hexed(mask, |chunk| chunk.mask));
            let _ = writeln!(out, "  reference {}", hexed(mask, |chunk| chunk.reference));
        }
        if let Some(short) = &header.short {
            let _ = writeln!(out, "{}", short_text(short));
        }
        let _ = writeln!(out, "\n{:>5} {:>10}  {:<34} key", "slot", "code", "separator");
        for (number, slot) in page.slots.iter().enumerate() {
            let code = slot.code.map_or("-".to_owned(), |code| format!("{code:x}"));
            let separator = format!("{:x}", slot.separator);
            let _ = writeln!(out, "{number:>5} {code:>10}  {separator:<34} {}", text(slot.separator));
        }
        let _ = writeln!(out);
        for (row, bytes) in page.bytes.chunks(16).enumerate() {
            let spaced: Vec<String> = bytes.chunks(4).map(hex).collect();
            let _ = writeln!(out, "{:>15}  {}", page.offset + row as u64 * 16, spaced.join(" "));
        }
        stdout::print(out.as_bytes())?;
        Ok(ExitStatus::Success)
    }

    /// Makes the document that `--json` prints for spine line `number`; `text` formats the key of a word.
    fn page_document(
        &self,
        number: u64,
        page: &Page,
        mask: Option<&Mask>,
        text: impl Fn(u128) -> String,
    ) -> serde_json::Map<String, Value> {
        let slots: Vec<Value> = page
            .slots
            .iter()
            .map(|slot| {
                json!({
                    "code": slot.code,
                    "separator": format!("{:x}", slot.separator),
                    "key": text(slot.separator),
                })
            })
            .collect();
        let mut document = json::document("inspect-page");
        document.insert("file".to_owned(), self.path.display().to_string().into());
        document.insert("page".to_owned(), json::int(number));
        document.insert("level".to_owned(), page.level.into());
        document.insert("line".to_owned(), json::int(page.number));
        document.insert("offset".to_owned(), json::int(page.offset));
        document.insert("encoding".to_owned(), page.encoding.name().into());
        document.insert("children".to_owned(), json::int(page.children));
        document.insert("base".to_owned(), format!("{:x}", page.base).into());
        document.insert("shift".to_owned(), page.shift.into());
        document.insert("inexact".to_owned(), page.inexact.into());
        document.insert(
            "pmask".to_owned(),
            mask.map_or(Value::Null, |mask| hexed(mask, |chunk| chunk.mask).into()),
        );
        document.insert(
            "reference".to_owned(),
            mask.map_or(Value::Null, |mask| hexed(mask, |chunk| chunk.reference).into()),
        );
        document.insert("separators".to_owned(), slots.into());
        document.insert("bytes".to_owned(), hex(&page.bytes).into());
        document
    }

    /// Returns the map of byte keys to words, if the file has a valid one.
    pub(super) fn mask(&self, header: &Header) -> io::Result<Option<Mask>> {
        let Some(section) = header.section(Tag::MASK) else { return Ok(None) };
        let length = section.entry.length.get() as usize;
        let bytes = read_at_most(&self.file, section.offset(), length)?;
        Ok(Mask::parse(&bytes, header.geometry.key_bytes, section.offset()).ok())
    }
}

/// Returns a key from its word; for byte keys whose word is only a part, that part.
pub(super) fn key_of(header: &Header, mask: Option<&Mask>, form: Option<Form>, word: u128) -> String {
    match mask {
        None => datum_text(&Datum::of_word(header.key_type, header.key_of(word)), form),
        Some(mask) if mask.is_lossless() => {
            let mut key = Vec::new();
            mask.unpack(word, &mut key);
            datum_text(&Datum::of_bytes(header.key_type, key), form)
        }
        Some(_) => format!("word {word:x}"),
    }
}

fn hexed(mask: &Mask, of: impl Fn(&pleach_format::mask::Chunk) -> u64) -> String {
    let mut bytes: Vec<u8> = mask.chunks().iter().flat_map(|chunk| of(chunk).to_be_bytes()).collect();
    bytes.truncate(mask.covered());
    let mut text = Vec::new();
    put_hex(&bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn page<W: Word>(index: usize, level: &Level, number: u64, offset: u64, line: &Line) -> Page {
    let children = (level.children - number * level.fanout as u64).min(level.fanout as u64);
    let encoding = level.encoding;
    let (base, shift, _) = match encoding {
        Encoding::Raw => (W::default(), 0, 0),
        _ => spine::delta_header::<W>(line),
    };
    let slots = (0..children.saturating_sub(1) as usize).map(|slot| match encoding {
        Encoding::Raw => Slot { code: None, separator: spine::separator::<W>(line, slot).to_u128() },
        _ => {
            let code = spine::code(encoding, line, slot);
            // The separator that the code encodes: the last word of its cell.
            let cell = u128::from(code).saturating_add(1).checked_shl(shift).unwrap_or(0).wrapping_sub(1);
            Slot { code: Some(code), separator: base.to_u128().saturating_add(cell).min(W::MAX.to_u128()) }
        }
    });
    Page {
        level: index,
        number,
        offset,
        bytes: *line,
        encoding,
        base: base.to_u128(),
        shift,
        inexact: spine::is_inexact(encoding, line),
        children,
        slots: slots.collect(),
    }
}
