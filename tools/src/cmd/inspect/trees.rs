//! `--page N --structure fast|harmonia|btree`: one page of a tree, decoded.
//!
//! Of a FAST page: its place in the tree, its record (what the words keep of the keys: pmask, base, width), the
//! lines of each depth, and the keys of its first line as a tree. Of the B+trees: a node, its keys and children,
//! and the arrays of the section.

use super::page::key_of;
use super::shapes::pages;
use super::{Found, read_at_most};
use crate::cli::Global;
use crate::errors;
use crate::failure::{Code, ExitStatus, Failure};
use crate::message::Message;
use crate::render::json;
use crate::render::text::{counted, grouped};
use crate::stdout;
use pleach::Structure;
use pleach_format::Header;
use pleach_format::btree::{BtreeGeometry, Node};
use pleach_format::classic::paged::{PageRecord, Paged};
use pleach_format::classic::{PageLevel, nodes};
use pleach_format::harmonia::{CHILD_BYTES, HarmoniaGeometry};
use pleach_format::mask::Mask;
use pleach_format::view::FastShape;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::{self, ErrorKind};

/// Maximum number of levels of a line that are drawn.
const DRAWN_LEVELS: u32 = 4;
/// Maximum number of columns of the drawing of a line.
const TREE_COLUMNS: usize = 100;
/// Maximum number of keys of a node that are listed at each end.
const LISTED: usize = 8;
/// Number of entries of the child region that are listed.
const SUMS: u64 = 8;

/// What is shown: text, and a document.
struct Shown {
    text: String,
    document: Map<String, Value>,
}

/// What keys are printed by.
struct Keys<'a> {
    header: &'a Header,
    mask: Option<Mask>,
    form: Option<pleach_format::logical::Form>,
}

impl Keys<'_> {
    fn text(&self, word: u128) -> String {
        key_of(self.header, self.mask.as_ref(), self.form, word)
    }
}

/// A page of a FAST tree.
struct FastPage<'t> {
    shape: FastShape,
    /// Number in the tree, of so many.
    number: u64,
    pages: u64,
    /// Level of pages, number there, and 1 if it is the last one.
    depth: usize,
    page: u64,
    part: usize,
    level: &'t PageLevel,
    /// The level as words of this width lay it out.
    inner: &'t PageLevel,
    width: u32,
    /// First byte in the file.
    offset: u64,
}

impl FastPage<'_> {
    /// Describes its place and its size.
    fn shown(&self) -> Shown {
        let (level, geometry) = (self.level, &self.shape.geometry);
        let bytes = self.inner.slots[self.part] * u64::from(self.width);
        let full_bytes = level.slots[self.part] * u64::from(geometry.key_bytes);
        let mut text = String::new();
        let _ = writeln!(
            text,
            "FAST page {} of {}: page {} of page level {}, tree levels {} to {} of {}",
            self.number,
            grouped(self.pages),
            self.page,
            self.depth,
            level.above,
            level.above + level.levels - 1,
            geometry.levels(),
        );
        let _ = writeln!(
            text,
            "byte {}, {} bytes; {:.1}% of the {} of full keys",
            self.offset,
            grouped(bytes),
            100.0 * bytes as f64 / full_bytes.max(1) as f64,
            grouped(full_bytes)
        );
        let mut document = Map::new();
        document.insert("form".to_owned(), self.shape.form.name().into());
        document.insert("page_level".to_owned(), self.depth.into());
        document.insert("page_in_level".to_owned(), json::int(self.page));
        document.insert("tree_levels".to_owned(), json!([level.above, level.above + level.levels]));
        document.insert("offset".to_owned(), json::int(self.offset));
        document.insert("page_bytes".to_owned(), json::int(bytes));
        document.insert("full_bytes".to_owned(), json::int(full_bytes));
        document.insert("width".to_owned(), self.width.into());
        Shown { text, document }
    }

    /// Lists the lines of each depth.
    fn put_lines(&self, shown: &mut Shown) {
        let _ = writeln!(shown.text, "\n{:>7} {:>12} {:>13} {:>15}", "depth", "lines", "levels each", "byte");
        let mut rows = Vec::new();
        for line in &self.inner.lines {
            let first = self.offset + line.start[self.part] * u64::from(self.width);
            let (depth, lines) = (self.level.above + line.above, line.last[self.part] + 1);
            let _ = writeln!(shown.text, "{depth:>7} {:>12} {:>13} {first:>15}", grouped(lines), line.levels);
            let (lines, offset) = (json::int(lines), json::int(first));
            rows.push(json!({ "depth": depth, "lines": lines, "levels": line.levels, "offset": offset }));
        }
        shown.document.insert("lines".to_owned(), rows.into());
    }
}

impl Found<'_> {
    /// Shows a page of a structure.
    pub(super) fn show_tree_page(
        &self,
        structure: Structure,
        number: u64,
        global: &Global,
    ) -> Result<ExitStatus, Failure> {
        let header = self.whole()?;
        let failed = |error: io::Error| Failure::io("cannot read", self.path, &error);
        let form = self.meant(header, global).key_form();
        let keys = Keys { header, mask: self.mask(header).map_err(failed)?, form };
        let shown = match structure {
            Structure::Fast => header.fast.map(|(at, shape)| self.fast_page((at, shape), number, &keys)),
            Structure::Harmonia => {
                header.harmonia.as_ref().map(|(at, tree)| self.harmonia_node(*at, tree, number, &keys))
            }
            Structure::Btree => {
                header.btree.as_ref().map(|(at, tree)| self.btree_node(*at, tree, number, &keys))
            }
            _ => None,
        };
        let Some(shown) = shown else {
            let message = Message::new(format!("no pages of '{structure}'")).at(self.path.display());
            return Err(Failure::new(Code::Failed, message.advise(structures(header))));
        };
        let shown = shown.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => {
                let message = Message::new(error.to_string()).advise("run pleach fsck");
                errors::placed(Code::Damaged, message, self.path)
            }
            _ => failed(error),
        });
        let Some(shown) = shown? else {
            let message = Message::new(format!("no page {number} of '{structure}'")).at(self.path.display());
            let last = pages(header, structure).saturating_sub(1);
            return Err(Failure::new(
                Code::Failed,
                message.advise(format!("give a number from 0 to {last}")),
            ));
        };
        if global.json {
            let mut document = json::document("inspect-page");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("structure".to_owned(), structure.name().into());
            document.insert("page".to_owned(), json::int(number));
            document.extend(shown.document);
            stdout::print_json(document)?;
        } else {
            stdout::print(shown.text.as_bytes())?;
        }
        Ok(ExitStatus::Success)
    }

    /// Reads exactly these bytes.
    fn exactly(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let bytes = read_at_most(&self.file, offset, length as usize)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Decodes a page of a FAST section; `None` if there is no such page.
    fn fast_page(
        &self,
        (at, shape): (u64, FastShape),
        number: u64,
        keys: &Keys<'_>,
    ) -> io::Result<Option<Shown>> {
        let key_bytes = shape.geometry.key_bytes;
        let paged = Paged::new(shape.geometry, shape.form);
        let full = shape.geometry.tree();
        let levels = match (&paged, &full) {
            (Some(paged), _) => paged.levels(),
            (None, Some(tree)) => tree.pages(),
            (None, None) => &[],
        };
        let Some((depth, page)) = place_of(levels, number) else { return Ok(None) };
        let level = &levels[depth];
        let part = usize::from(page == level.last);
        // What words are, and where they begin.
        let (record, start) = match &paged {
            Some(paged) => {
                let bytes =
                    self.exactly(at + number * paged.record_bytes() as u64, paged.record_bytes() as u64)?;
                let record = PageRecord::decode(key_bytes, &bytes).unwrap_or_default();
                (Some(record), record.place)
            }
            None => (None, level.page(page).0 * u64::from(key_bytes)),
        };
        let width = record.map_or(key_bytes, |record| record.width);
        let tree = match &paged {
            Some(paged) => paged.tree(width),
            None => full.as_ref(),
        };
        let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
        let Some((tree, inner)) = tree.and_then(|tree| Some((tree, tree.pages().get(depth)?))) else {
            return Err(wrong(format!("the record of the page says words of {width} bytes")));
        };
        let end = start.checked_add(inner.slots[part] * u64::from(width));
        if end.is_none_or(|end| end > shape.bytes) {
            return Err(wrong(format!("the record of the page says byte {start} of {}", shape.bytes)));
        }
        let pages: u64 = levels.iter().map(|level| level.last + 1).sum();
        let offset = at + start;
        let found = FastPage { shape, number, pages, depth, page, part, level, inner, width, offset };
        let mut shown = found.shown();
        put_record(record.as_ref(), key_bytes, keys, &mut shown.text, &mut shown.document);
        found.put_lines(&mut shown);
        // The first line, as a tree.
        let levels = inner.lines.first().map_or(0, |line| line.levels);
        let stored = self.exactly(offset, nodes(levels) * u64::from(width))?;
        let word = |depth, node| {
            let slot = slot_of(levels, tree.geometry().d_k, depth, node);
            word_text(word_at(&stored, slot, width), record.as_ref(), width, keys)
        };
        let drawn: Vec<Vec<String>> = (0..levels.min(DRAWN_LEVELS))
            .map(|depth| (0..1 << depth).map(|node| word(depth, node)).collect())
            .collect();
        let _ = writeln!(shown.text, "\nthe first line");
        put_tree(&drawn, &mut shown.text);
        let drawn: Vec<Value> = drawn.into_iter().map(Value::from).collect();
        shown.document.insert("first_line".to_owned(), drawn.into());
        Ok(Some(shown))
    }

    /// Decodes a node of Harmonia's tree; `None` if there is no such node.
    fn harmonia_node(
        &self,
        at: u64,
        tree: &HarmoniaGeometry,
        number: u64,
        keys: &Keys<'_>,
    ) -> io::Result<Option<Shown>> {
        if number >= tree.nodes {
            return Ok(None);
        }
        let level = tree.levels.iter().rposition(|level| level.first <= number).unwrap_or(0);
        let is_leaf = level + 1 == tree.levels.len();
        let count = self.exactly(at + tree.counts_at + number, 1)?[0].into();
        let offset = at + number * tree.stride_bytes;
        let words = self.words(offset, usize::min(count, tree.fanout as usize), tree.word_bytes)?;
        let mut shown = self.node(
            ("Harmonia node", number, tree.nodes),
            (level, tree.levels.len(), is_leaf),
            (offset, &words, tree.fanout),
            keys,
        );
        let text = &mut shown.text;
        let inner = tree.inner;
        // The child region around this node: a node's children begin at its prefix sum.
        let first = number.min(inner).saturating_sub(SUMS / 2);
        let last = (first + SUMS).min(inner + 1);
        let bytes =
            self.exactly(at + tree.children_at + first * CHILD_BYTES, (last - first) * CHILD_BYTES)?;
        let sums: Vec<u32> = bytes.as_chunks().0.iter().map(|&entry| u32::from_le_bytes(entry)).collect();
        if is_leaf {
            let rank = (number - inner) * u64::from(tree.node_keys);
            let _ = writeln!(text, "\na leaf: its first key has rank {}", grouped(rank));
        } else if let Some(&sum) = sums.get((number - first) as usize) {
            let _ = writeln!(
                text,
                "\nchildren {} to {}: child i (from 1) is {sum} + i - 1",
                sum,
                u64::from(sum) + words.len() as u64
            );
            shown.document.insert("first_child".to_owned(), sum.into());
        }
        let listed: Vec<String> =
            sums.iter().zip(first..).map(|(sum, node)| format!("[{node}] {sum}")).collect();
        let _ = writeln!(text, "prefix sums  {}", listed.join("  "));
        shown
            .document
            .insert("prefix_sums".to_owned(), json!({ "first_node": first.to_string(), "sums": sums }));
        let region = |name, from: u64, to: u64, what: String| (name, at + from, to - from, what);
        let stride = format!("{} of {} bytes each", counted(tree.nodes, "node"), tree.stride_bytes);
        put_regions(
            &[
                region("keys", 0, tree.counts_at, stride),
                region("counts", tree.counts_at, tree.children_at, "a byte each node".to_owned()),
                region(
                    "children",
                    tree.children_at,
                    tree.values_at,
                    format!("{} of 4 bytes", counted(inner + 1, "prefix sum")),
                ),
                region(
                    "values",
                    tree.values_at,
                    tree.bytes,
                    format!("{} bytes each, beside the leaves' keys", tree.value_bytes),
                ),
            ],
            &mut shown,
        );
        Ok(Some(shown))
    }

    /// Decodes a node of the contiguous B+tree; `None` if there is no such node.
    fn btree_node(
        &self,
        at: u64,
        tree: &BtreeGeometry,
        number: u64,
        keys: &Keys<'_>,
    ) -> io::Result<Option<Shown>> {
        let shape = &tree.shape;
        if number >= shape.nodes() {
            return Ok(None);
        }
        let level = shape.levels().iter().rposition(|level| level.first_node <= number).unwrap_or(0);
        let bytes = self.exactly(at + number * Node::BYTES as u64, Node::BYTES as u64)?;
        let node = bytes.first_chunk().map_or(Node::default(), |&bytes| Node::from_bytes(bytes));
        let first_key = node.first_key().min(shape.slots() - shape.slots_of_node());
        let offset = at + tree.keys_at + first_key * u64::from(tree.word_bytes);
        let count = node.count().min(shape.order() - 1) as usize;
        let words = self.words(offset, count, tree.word_bytes)?;
        let mut shown = self.node(
            ("B+tree node", number, shape.nodes()),
            (level, shape.levels().len(), node.is_leaf()),
            (offset, &words, shape.order()),
            keys,
        );
        let what = if node.is_leaf() { "rank of its first key" } else { "first child" };
        let _ = writeln!(
            shown.text,
            "\nmetadata at byte {}: {}, first key slot {}, {what} {}{}",
            at + number * Node::BYTES as u64,
            counted(node.count().into(), "key"),
            grouped(node.first_key()),
            grouped(node.first()),
            if node.is_leaf() { ", leaf" } else { "" },
        );
        let first = if node.is_leaf() { "first_rank" } else { "first_child" };
        shown.document.insert(first.to_owned(), json::int(node.first()));
        let region = |name, from: u64, to: u64, what: String| (name, at + from, to - from, what);
        put_regions(
            &[
                region("nodes", 0, tree.keys_at, format!("{} of 16 bytes", counted(shape.nodes(), "node"))),
                region(
                    "keys",
                    tree.keys_at,
                    tree.values_at,
                    format!("{} slots a node", shape.slots_of_node()),
                ),
                region(
                    "values",
                    tree.values_at,
                    tree.bytes,
                    format!("{} bytes each, by rank", tree.value_bytes),
                ),
            ],
            &mut shown,
        );
        Ok(Some(shown))
    }

    fn words(&self, offset: u64, count: usize, width: u32) -> io::Result<Vec<u128>> {
        let bytes = self.exactly(offset, count as u64 * u64::from(width))?;
        Ok((0..count as u64).map(|slot| word_at(&bytes, slot, width)).collect())
    }

    /// Describes what nodes of both B+trees have.
    fn node(
        &self,
        (kind, number, of): (&str, u64, u64),
        (level, levels, is_leaf): (usize, usize, bool),
        (offset, words, fanout): (u64, &[u128], u32),
        keys: &Keys<'_>,
    ) -> Shown {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{kind} {number} of {}: level {level} of {levels}{}, byte {offset}",
            grouped(of),
            if is_leaf { ", a leaf" } else { "" }
        );
        let _ = writeln!(text, "{} of at most {}\n", counted(words.len() as u64, "key"), fanout - 1);
        let listed: Vec<String> = words.iter().map(|&word| keys.text(word)).collect();
        for (slot, key) in listed.iter().enumerate() {
            if slot < LISTED || slot + LISTED >= listed.len() {
                let _ = writeln!(text, "{slot:>7}  {key}");
            } else if slot == LISTED {
                let _ = writeln!(text, "{:>7}", "...");
            }
        }
        let mut document = Map::new();
        document.insert("level".to_owned(), level.into());
        document.insert("leaf".to_owned(), is_leaf.into());
        document.insert("offset".to_owned(), json::int(offset));
        document.insert("keys".to_owned(), listed.into());
        Shown { text, document }
    }
}

/// Returns the level of a page, and its number there.
fn place_of(levels: &[PageLevel], number: u64) -> Option<(usize, u64)> {
    let mut at = number;
    levels
        .iter()
        .position(|level| {
            let here = at <= level.last;
            at -= if here { 0 } else { level.last + 1 };
            here
        })
        .map(|depth| (depth, at))
}

/// Names the structures of a file that have pages.
fn structures(header: &Header) -> String {
    let all = [Structure::Spine, Structure::Fast, Structure::Harmonia, Structure::Btree];
    let there: Vec<&str> = all.into_iter().filter(|one| one.is_in(header)).map(|one| one.name()).collect();
    if there.is_empty() {
        "the file has tuple lines only: use --line".to_owned()
    } else {
        format!("the file has {}", there.join(", "))
    }
}

/// Draws the levels of a tree, each node above the middle of its children; as many levels as fit.
fn put_tree(levels: &[Vec<String>], text: &mut String) {
    let widest = levels.iter().flatten().map(|word| word.chars().count()).max().unwrap_or(0) + 2;
    let fits = |count: usize| widest << (count - 1) <= TREE_COLUMNS;
    let count = (1..=levels.len()).rev().find(|&count| fits(count)).unwrap_or(levels.len().min(1));
    for (depth, words) in levels[..count].iter().enumerate() {
        let cell = widest << (count - 1 - depth);
        let row: String = words.iter().map(|word| format!("{word:^cell$}")).collect();
        let _ = writeln!(text, "{depth:>7}  {}", row.trim_end());
    }
}

/// Returns the slot in its line of a node, counted from the left at its depth.
fn slot_of(levels: u32, d_k: u32, depth: u32, node: u64) -> u64 {
    let above = depth / d_k * d_k;
    let (within, block_levels) = (depth - above, d_k.min(levels - above));
    let block = (node >> within) * nodes(block_levels);
    nodes(above) + block + nodes(within) + (node & nodes(within))
}

/// Returns a word of some bytes; zero past their end.
fn word_at(bytes: &[u8], slot: u64, width: u32) -> u128 {
    let at = (slot * u64::from(width)) as usize;
    let bytes = bytes.get(at..at + width as usize).unwrap_or_default();
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte))
}

/// Returns a word of a page as people read it: the key, where the word is one or its distance.
fn word_text(word: u128, record: Option<&PageRecord>, width: u32, keys: &Keys<'_>) -> String {
    let is_free = word == u128::MAX >> (128 - 8 * width);
    match record {
        _ if is_free => "-".to_owned(),
        None => keys.text(word),
        Some(record) if record.kept == 0 => keys.text(record.base.wrapping_add(word)),
        Some(_) => format!("{word:0digits$x}", digits = 2 * width as usize),
    }
}

/// Draws what the words of a page keep of its keys.
fn put_record(
    record: Option<&PageRecord>,
    key_bytes: u32,
    keys: &Keys<'_>,
    text: &mut String,
    document: &mut Map<String, Value>,
) {
    let Some(record) = record else {
        let _ = writeln!(text, "words are whole keys of {key_bytes} bytes");
        document.insert("words".to_owned(), "full".into());
        return;
    };
    let digits = 2 * key_bytes as usize;
    let base = keys.text(record.base);
    document.insert("base".to_owned(), base.clone().into());
    if record.kept == 0 {
        let _ =
            writeln!(text, "words are distances of {} bytes from the smallest key of the page", record.width);
        let _ = writeln!(text, "  base   {base}");
        document.insert("words".to_owned(), "delta".into());
        return;
    }
    let mark = |nibble: usize| if record.kept >> (digits - 1 - nibble) & 1 == 1 { '#' } else { '.' };
    let pmask: String = (0..digits).map(mark).collect();
    let _ = writeln!(text, "words are partial keys of {} bytes: the nibbles marked #", record.width);
    let _ = writeln!(text, "  key    {:0digits$x}  ({base}, the smallest of the page)", record.base);
    let _ = writeln!(text, "  pmask  {pmask}");
    let _ = writeln!(text, "  word   {:x}", record.packed(record.base));
    document.insert("words".to_owned(), "partial".into());
    document.insert("pmask".to_owned(), format!("{:0digits$x}", record.mask()).into());
    document.insert("reference".to_owned(), format!("{:0digits$x}", record.base).into());
}

/// Lists the arrays of a section: name, first byte, bytes, what they have.
fn put_regions(regions: &[(&str, u64, u64, String)], shown: &mut Shown) {
    let _ = writeln!(shown.text, "\n{:<10} {:>15} {:>15}", "region", "byte", "bytes");
    let mut rows = Vec::new();
    for (name, offset, bytes, what) in regions {
        let _ = writeln!(shown.text, "{name:<10} {:>15} {:>15}  {what}", grouped(*offset), grouped(*bytes));
        rows.push(json!({ "name": name, "offset": offset.to_string(), "bytes": bytes.to_string() }));
    }
    shown.document.insert("regions".to_owned(), rows.into());
}
