//! Keys from a file or standard input, one a line, in batches.
//!
//! The lines are those of any text ([`pleach_input::text`]): compressed or not, with any line ends.
//! Blank lines are skipped, and so is a first line that is not a key but the name of the key column.

use crate::errors::source_failure;
use crate::failure::{Code, Failure};
use crate::message::Message;
use crate::parse::FromText;
use pleach::Index;
use pleach_format::logical::with_article;
use pleach_input::text::{self, RETURN, TextReader, Use};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bytes per read.
const BUFFER_BYTES: usize = 1 << 20;
/// Maximum characters of an invalid key in a message.
const SHOWN: usize = 40;

/// Reader for lines of keys.
pub struct KeyLines {
    input: TextReader,
    name: String,
    /// Name of the key column.
    header: String,
    /// True if the keys are numbers, not byte strings.
    are_numbers: bool,
    buffer: Vec<u8>,
    /// True if there may be carriage returns in the buffer.
    has_returns: bool,
    /// Part of the buffer that is not parsed yet.
    unread: std::ops::Range<usize>,
    line: u64,
    /// True until a line that is not blank was read.
    is_first: bool,
    at_end: bool,
}

impl KeyLines {
    /// Opens a file of keys to look for in `index`; `-` is standard input.
    pub fn open(path: &Path, index: &Index) -> Result<Self, Failure> {
        let (stream, name): (Box<dyn Read + Send>, _) = if path.as_os_str() == "-" {
            (Box::new(std::io::stdin()), "standard input".to_owned())
        } else {
            let file = File::open(path).map_err(|error| Failure::io("cannot open", path, &error))?;
            if path.is_dir() {
                let message = Message::new("is a folder").at(path.display()).advise("name a file of keys");
                return Err(Failure::new(Code::NotAFile, message));
            }
            (Box::new(file), path.display().to_string())
        };
        let input = text::open(&name, stream, Use::Lines).map_err(|error| source_failure(&error))?;
        Ok(Self {
            input,
            name,
            header: index.meta().map(|meta| meta.key_name).unwrap_or_default(),
            are_numbers: !index.key_type().is_bytes(),
            buffer: vec![0; BUFFER_BYTES],
            has_returns: false,
            unread: 0..0,
            line: 0,
            is_first: true,
            at_end: false,
        })
    }

    /// Replaces `keys` by the next keys: those of one read, at most `keys_max`; none at the end. An invalid
    /// line ends the batch before it, and the next call returns it as the failure.
    pub fn next_batch<K: FromText>(
        &mut self,
        keys: &mut Vec<K>,
        keys_max: usize,
    ) -> Result<Option<Failure>, Failure> {
        self.next_batch_of(keys, keys_max, |text| K::from_text(text).ok_or_else(|| not_a_key::<K>(text)))
    }

    /// Does the same as [`KeyLines::next_batch`] with keys that `parse` makes of a line.
    pub fn next_batch_of<K>(
        &mut self,
        keys: &mut Vec<K>,
        keys_max: usize,
        parse: impl Fn(&[u8]) -> Result<K, Message>,
    ) -> Result<Option<Failure>, Failure> {
        keys.clear();
        loop {
            while keys.len() < keys_max {
                let rest = &self.buffer[self.unread.clone()];
                let (line, length) = match rest.iter().position(|&byte| byte == b'\n') {
                    Some(end) => (&rest[..end], end + 1),
                    None if self.at_end && !rest.is_empty() => (rest, rest.len()),
                    None => break,
                };
                self.line += 1;
                self.unread.start += length;
                let found = line.strip_suffix(b"\r").unwrap_or(line);
                if found.is_empty() {
                    continue;
                }
                let is_first = std::mem::take(&mut self.is_first);
                if self.has_returns && found.contains(&b'\r') {
                    let message = Message::of(&RETURN).at(self.place());
                    return Ok(Some(Failure::new(Code::Failed, message)));
                }
                let parsed = parse(found).or_else(|message| match text::whole(found) {
                    Some(number) if self.are_numbers => parse(number).map_err(|_| message),
                    _ => Err(message),
                });
                match parsed {
                    Ok(key) => keys.push(key),
                    Err(_) if is_first && !self.header.is_empty() && found == self.header.as_bytes() => {}
                    Err(message) => {
                        let header = if is_first { "remove the line if it is a header, else " } else { "" };
                        let message = message.first_at(self.place());
                        let message = message.map_advice(|advice| format!("{header}{advice}"));
                        return Ok(Some(Failure::new(Code::Input, message)));
                    }
                }
            }
            if !keys.is_empty() || self.at_end {
                return Ok(None);
            }
            if let Some(too_long) = self.fill()? {
                return Ok(Some(too_long));
            }
        }
    }

    /// Returns the place of the current line.
    fn place(&self) -> String {
        format!("{}: line {}", self.name, self.line)
    }

    /// Makes one read.
    fn fill(&mut self) -> Result<Option<Failure>, Failure> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let end = self.unread.end;
        if end == self.buffer.len() {
            self.line += 1;
            let message = Message::new("line too long").at(self.place()).advise("give one key per line");
            return Ok(Some(Failure::new(Code::Input, message)));
        }
        let read = loop {
            match self.input.read(&mut self.buffer[end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read = read.map_err(|error| {
            source_failure(&text::failed(&self.name, format!("after line {}", self.line), error))
        })?;
        self.has_returns = self.buffer[..end + read].contains(&b'\r');
        self.unread.end += read;
        self.at_end = read == 0;
        Ok(None)
    }
}

/// Returns the message that a text is not a key, with an example of a valid one.
pub fn not_a_key<K: FromText>(text: &[u8]) -> Message {
    let shown: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
    let more = if text.len() > shown.len() { "..." } else { "" };
    let (low, high) = K::BOUNDS;
    Message::new(format!("'{shown}{more}' is not {} key", with_article(K::NAME)))
        .advise(format!("give a {} from {low} to {high}", K::KIND))
}
