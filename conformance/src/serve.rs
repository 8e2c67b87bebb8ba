//! The driver of the product: the crates `pleach` and `pleach-fsck` answer the requests of the protocol.

use crate::word::{Cell, Kind, hex, unhex};
use anyhow::{Context, Result, bail};
use pleach::{AnyMap, Datum, FsckOptions, Index, OpenError, OpenOptions, Structure, Verify, fsck};
use pleach_format::logical::Element;
use pleach_format::section::Tag;
use pleach_format::{KeyType, Meaning};
use std::cmp::Ordering;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Answers requests from standard input until it ends.
///
/// # Errors
/// Those of the pipes.
pub fn serve() -> Result<()> {
    let mut server = Server::default();
    for line in io::stdin().lock().lines() {
        let answer = server.answer(&line?);
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// An open file, or none.
#[derive(Default)]
pub struct Server {
    open: Option<Open>,
}

struct Open {
    path: PathBuf,
    map: AnyMap,
    /// The same file, searched by other structures.
    by: Vec<(Structure, AnyMap)>,
}

impl Server {
    /// Answers a request.
    pub fn answer(&mut self, request: &str) -> String {
        let answer = match request.strip_prefix("open ") {
            Some(path) => self.open(path),
            None => match &mut self.open {
                Some(open) => open.answer(request),
                None => Err(anyhow::anyhow!("no file is open")),
            },
        };
        answer.unwrap_or_else(|error| format!("error {}", format!("{error:#}").replace('\n', " ")))
    }

    fn open(&mut self, path: &str) -> Result<String> {
        self.open = None;
        match options().open(path) {
            Ok(index) => {
                let map = AnyMap::from_index(Arc::new(index))?;
                self.open = Some(Open { path: path.into(), map, by: Vec::new() });
                Ok("ok".to_owned())
            }
            Err(OpenError::Format { source, .. }) => {
                Ok(format!("refuse {}", source.rule().with_context(|| format!("no rule: {source}"))?))
            }
            Err(other) => Err(other.into()),
        }
    }
}

fn options() -> OpenOptions {
    Index::options().verify(Verify::Header)
}

/// Returns a key or a value as a cell.
pub(crate) fn cell(datum: &Datum<'_>) -> Cell {
    match datum {
        Datum::None => Cell::None,
        Datum::U32(number) => Cell::Unsigned((*number).into()),
        Datum::U64(number) => Cell::Unsigned((*number).into()),
        Datum::U128(number) => Cell::Unsigned(*number),
        Datum::I32(number) => Cell::Signed((*number).into()),
        Datum::I64(number) => Cell::Signed(*number),
        Datum::F32(number) => Cell::Float32(number.to_bits()),
        Datum::F64(number) => Cell::Float64(number.to_bits()),
        Datum::Bytes(bytes) | Datum::Utf8(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Returns the key of a word.
fn key(key_type: KeyType, word: &str) -> Result<Datum<'static>> {
    let cell = Kind::of_key(key_type).read(word).with_context(|| format!("{word} is no {key_type}"))?;
    Ok(match (key_type, cell) {
        (KeyType::U32, Cell::Unsigned(number)) => Datum::U32(number.try_into()?),
        (KeyType::U64, Cell::Unsigned(number)) => Datum::U64(number.try_into()?),
        (KeyType::U128, Cell::Unsigned(number)) => Datum::U128(number),
        (KeyType::I32, Cell::Signed(number)) => Datum::I32(number.try_into()?),
        (KeyType::I64, Cell::Signed(number)) => Datum::I64(number),
        (KeyType::F64, Cell::Float64(bits)) => Datum::F64(f64::from_bits(bits)),
        (KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8, Cell::Bytes(bytes)) => {
            Datum::of_bytes(key_type, bytes)
        }
        (_, other) => bail!("{other} is no {key_type}"),
    })
}

fn shown((key, value): &(Datum<'_>, Datum<'_>)) -> String {
    format!("{} {}", cell(key), cell(value))
}

impl Open {
    fn answer(&mut self, request: &str) -> Result<String> {
        let map = &self.map;
        let key = |word: &str| key(map.key_type(), word);
        let words: Vec<&str> = request.split(' ').collect();
        Ok(match words[..] {
            ["tuples"] => format!("tuples {}", map.len()),
            ["types"] => format!("types {} {}", map.key_type(), map.value_type()),
            ["at", rank] => match map.select(rank.parse()?)? {
                Some(tuple) => format!("tuple {}", shown(&tuple)),
                None => "none".to_owned(),
            },
            ["get", word] => {
                let key = key(word)?;
                match (map.rank(&key)?, map.get(&key)?) {
                    (Some(rank), Some(value)) => format!("tuple {rank} {}", cell(&value)),
                    _ => "absent".to_owned(),
                }
            }
            ["lower", word] => format!("rank {}", map.lower_bound(&key(word)?)?),
            ["upper", word] => format!("rank {}", map.upper_bound(&key(word)?)?),
            ["floor", word] => {
                let key = key(word)?;
                match map.floor(&key)? {
                    Some(tuple) => {
                        format!("tuple {} {}", map.upper_bound(&key)?.wrapping_sub(1), shown(&tuple))
                    }
                    None => "none".to_owned(),
                }
            }
            ["range", from, to] => {
                let tuples: Result<Vec<_>, _> = map.range(key(from)?..key(to)?)?.collect();
                let tuples: Vec<String> = tuples?.iter().map(|tuple| format!(" {}", shown(tuple))).collect();
                format!("tuples {}{}", tuples.len(), tuples.concat())
            }
            ["by", structure, word] => {
                let key = key(word)?;
                return self.by(structure, &key);
            }
            ["check"] => match fsck(&self.path, &FsckOptions::default())?.findings.first() {
                Some(first) => format!("damaged {}", first.code),
                None => "clean".to_owned(),
            },
            ["name" | "logical", _] => self.told(&words)?,
            ["derive", word] => {
                let text = word.strip_prefix('x').and_then(unhex).context("no text")?;
                self.derive(&text)?
            }
            _ => bail!("unknown request {request}"),
        })
    }

    /// Answers what META says.
    fn told(&self, words: &[&str]) -> Result<String> {
        let meta = self.map.index().meta()?;
        let text = match *words {
            ["name", "key"] => meta.key_name,
            ["name", "value"] => meta.value_name,
            ["logical", "key"] => meta.key_logical,
            ["logical", "value"] => meta.value_logical,
            _ => bail!("unknown column"),
        };
        Ok(if text.is_empty() { "none".to_owned() } else { format!("text {}", hex(text.as_bytes())) })
    }

    /// Searches by one structure.
    fn by(&mut self, structure: &str, key: &Datum<'_>) -> Result<String> {
        let header = self.map.index().header();
        let structure = match structure {
            "lines" => return self.bisect(key),
            "trie" if header.section(Tag::TRIE).is_none() => return Ok("none".to_owned()),
            "trie" => return Ok(format!("rank {}", self.map.lower_bound(key)?)),
            other => other.parse::<Structure>().map_err(anyhow::Error::msg)?,
        };
        if !structure.is_in(header) {
            return Ok("none".to_owned());
        }
        let at = match self.by.iter().position(|(it, _)| *it == structure) {
            Some(at) => at,
            None => {
                let index = options().structure(structure).open(&self.path)?;
                self.by.push((structure, AnyMap::from_index(Arc::new(index))?));
                self.by.len() - 1
            }
        };
        Ok(format!("rank {}", self.by[at].1.lower_bound(key)?))
    }

    /// Searches by the tuples alone.
    fn bisect(&self, key: &Datum<'_>) -> Result<String> {
        let key = cell(key);
        let (mut low, mut high) = (0, self.map.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let tuple = self.map.select(middle)?.context("a tuple")?;
            match cell(&tuple.0).order(&key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        Ok(format!("rank {low}"))
    }

    /// Returns the key that a text stands for.
    fn derive(&self, text: &[u8]) -> Result<String> {
        let key_type = self.map.key_type();
        let meaning = Meaning::new(key_type, &self.map.index().meta()?.key_logical);
        let element = meaning.form().and_then(|form| form.element(text).ok());
        Ok(match element {
            None => "none".to_owned(),
            Some(Element::Unsigned(number)) if key_type.is_bytes() => {
                format!("key {}", hex(&number.to_be_bytes()))
            }
            Some(Element::Unsigned(number)) => format!("key {number}"),
            Some(Element::Signed(number)) => format!("key {number}"),
            Some(Element::Bytes(bytes)) => format!("key {}", hex(&bytes)),
        })
    }
}
