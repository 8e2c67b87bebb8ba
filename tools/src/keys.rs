//! Keys from a file or standard input, one a line, in batches.
//!
//! The lines are those of any text ([`pleach_builder::input::text`]): compressed or not, with any line ends. Blank
//! ones are skipped, and so is a first one that is no key but the name of the key column.

use crate::cmd::build::source_failure;
use crate::failure::Failure;
use crate::parse::FromText;
use pleach_builder::input::text::{self, RETURN, TextReader, Use};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bytes that are asked for at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// Characters of a bad key that a message shows.
const SHOWN: usize = 40;

/// Lines of keys.
pub struct KeyLines {
    input: TextReader,
    name: String,
    /// Name of the key column.
    header: String,
    buffer: Vec<u8>,
    /// Carriage returns may stand in the buffer.
    has_returns: bool,
    /// What of the buffer is not parsed yet.
    unread: std::ops::Range<usize>,
    line: u64,
    at_end: bool,
}

impl KeyLines {
    /// Opens a file of keys, whose column is called `header`; `-` is standard input.
    pub fn open(path: &Path, header: &str) -> Result<Self, Failure> {
        let (stream, name): (Box<dyn Read + Send>, _) = if path.as_os_str() == "-" {
            (Box::new(std::io::stdin()), "standard input".to_owned())
        } else {
            let file = File::open(path).map_err(|error| Failure::io("cannot open", path, &error))?;
            if path.is_dir() {
                return Err(Failure::operational(format!(
                    "is a folder: {}: name a file of keys",
                    path.display()
                )));
            }
            (Box::new(file), path.display().to_string())
        };
        let input = text::open(&name, stream, Use::Lines).map_err(|error| source_failure(&error))?;
        let (header, buffer) = (header.to_owned(), vec![0; BUFFER_BYTES]);
        Ok(Self { input, name, header, buffer, has_returns: false, unread: 0..0, line: 0, at_end: false })
    }

    /// Replaces `keys` by the next keys: those of one read, at most `keys_max`; none at the end. A
    /// line that is no key ends the batch before it, and comes back as the failure.
    pub fn next_batch<K: FromText>(
        &mut self,
        keys: &mut Vec<K>,
        keys_max: usize,
    ) -> Result<Option<Failure>, Failure> {
        self.next_batch_of(keys, keys_max, |text, place| {
            K::from_text(text).ok_or_else(|| not_a_key::<K>(text, place))
        })
    }

    /// [`KeyLines::next_batch`] of keys that `parse` makes of a line; it is told the place.
    pub fn next_batch_of<K>(
        &mut self,
        keys: &mut Vec<K>,
        keys_max: usize,
        parse: impl Fn(&[u8], &str) -> Result<K, String>,
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
                let text = line.strip_suffix(b"\r").unwrap_or(line);
                if text.is_empty() {
                    continue;
                }
                if self.has_returns && text.contains(&b'\r') {
                    let problem = RETURN.replacen(": ", &format!(": {}: line {}: ", self.name, self.line), 1);
                    return Ok(Some(Failure::operational(problem)));
                }
                match parse(text, "") {
                    Ok(key) => keys.push(key),
                    Err(_) if self.line == 1 && !self.header.is_empty() && text == self.header.as_bytes() => {
                    }
                    Err(_) => {
                        // The place is put together only when it is needed.
                        let place = format!("{}: line {}", self.name, self.line);
                        let header =
                            if self.line == 1 { "leave out the header if it is one, else " } else { "" };
                        let problem = parse(text, &place).err().unwrap_or_default();
                        let problem = match problem.rsplit_once(": ") {
                            Some((what, advice)) => format!("{what}: {header}{advice}"),
                            None => problem,
                        };
                        return Ok(Some(Failure::operational(problem)));
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

    /// Reads once.
    fn fill(&mut self) -> Result<Option<Failure>, Failure> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let end = self.unread.end;
        if end == self.buffer.len() {
            let place = format!("{}: line {}", self.name, self.line + 1);
            return Ok(Some(Failure::operational(format!(
                "the line has no end: {place}: give one key a line"
            ))));
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

/// Says that text is no key, and what would be one.
pub fn not_a_key<K: FromText>(text: &[u8], place: &str) -> String {
    let shown: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
    let more = if text.len() > shown.len() { "..." } else { "" };
    let (low, high) = K::BOUNDS;
    format!("'{shown}{more}' is not a {} key: {place}: give a {} from {low} to {high}", K::NAME, K::KIND)
}
