//! Keys from a file or standard input, one a line, in batches.

use crate::failure::{Code, Failure};
use crate::parse::FromText;
use crate::search::input_failure;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bytes that are asked for at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// Characters of a bad key that a message shows.
const SHOWN: usize = 40;

/// Lines of keys.
pub struct KeyLines {
    input: Box<dyn Read>,
    name: String,
    buffer: Vec<u8>,
    /// What of the buffer is not parsed yet.
    unread: std::ops::Range<usize>,
    line: u64,
    at_end: bool,
}

impl KeyLines {
    /// Opens a file of keys; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let (input, name): (Box<dyn Read>, _) = if path.as_os_str() == "-" {
            (Box::new(std::io::stdin().lock()), "standard input".to_owned())
        } else {
            let file = File::open(path).map_err(|error| Failure::io("cannot open", path, &error))?;
            (Box::new(file), path.display().to_string())
        };
        Ok(Self { input, name, buffer: vec![0; BUFFER_BYTES], unread: 0..0, line: 0, at_end: false })
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
                let text = line.strip_suffix(b"\r").unwrap_or(line);
                match parse(text, "") {
                    Ok(key) => keys.push(key),
                    Err(_) => {
                        // The place is put together only when it is needed.
                        let place = format!("{}: line {}", self.name, self.line);
                        let problem = parse(text, &place).err().unwrap_or_default();
                        return Ok(Some(Failure::new(Code::Input, problem)));
                    }
                }
                self.unread.start += length;
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
            let text = format!("the line has no end: {place}: give one key a line");
            return Ok(Some(Failure::new(Code::Input, text)));
        }
        let read = loop {
            match self.input.read(&mut self.buffer[end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other.map_err(|error| input_failure(&self.name, &error))?,
            }
        };
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
