//! Checks of the trie over pages of byte keys: first the nodes and who leads to whom, then slices against keys.
//!
//! Children have larger numbers than their parents, so that one pass in file order finds the parent of each node and
//! the length of its path. The pages under a node are those from its leftmost child to its rightmost one. They are
//! looked up by descending on both sides. Since keys ascend, the two outermost ones show what all of them share.

use super::pieces::sized;
use super::text::{KEY_BYTES_MAX, Text};
use super::{Check, Code, ReadAt};
use pleach_format::section::{Entry, Tag, TrieParameters};
use pleach_format::text::{PAGE_KEYS, common};
use pleach_format::trie::{Child, LEVELS_MAX, NODE_BYTES, Node, TrieGeometry, slice};
use pleach_format::{Header, offset_in};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// Number of nodes that are checked at once.
const PIECE_NODES: u64 = sized(256, 3);
/// Number of pages whose outermost keys are kept at once.
const ENDS_MAX: usize = 32;

/// The first and the last key of a page.
type Ends = (Vec<u8>, Vec<u8>);

/// The section, and the pages that it leads to.
struct Trie<'t> {
    header: &'t Header,
    offset: u64,
    shape: TrieGeometry,
    text: &'t Text,
    pages: u64,
}

impl Trie<'_> {
    /// Returns the offset of a node in the file.
    fn at(&self, node: u64) -> u64 {
        self.offset + node * NODE_BYTES as u64
    }
}

/// Outermost keys of the pages that were asked for last.
#[derive(Default)]
struct Cache(VecDeque<(u64, Option<Ends>)>);

impl Cache {
    /// Returns the first and the last key of a page; `None` if the page has no valid place.
    fn ends<R: ReadAt>(
        &mut self,
        check: &Check<'_, R>,
        trie: &Trie<'_>,
        page: u64,
    ) -> io::Result<Option<&Ends>> {
        let found = self.0.iter().position(|(number, _)| *number == page);
        let index = match found {
            Some(index) => index,
            None => {
                if self.0.len() == ENDS_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((page, check.page_ends(trie, page)?));
                self.0.len() - 1
            }
        };
        Ok(self.0[index].1.as_ref())
    }
}

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_trie(&self, header: &Header) -> io::Result<()> {
        let (Some((offset, shape)), Some(text)) = (header.trie, self.text(header)?) else { return Ok(()) };
        let pages = header.tuples.div_ceil(PAGE_KEYS as u64);
        let trie = Trie { header, offset, shape, text: &text, pages };
        if !self.check_paths(&trie)? {
            // Where children are not known, neither are pages.
            return Ok(());
        }
        (0..shape.nodes.div_ceil(PIECE_NODES)).into_par_iter().try_for_each(|piece| {
            if self.is_cancelled() {
                return Ok(());
            }
            let first = piece * PIECE_NODES;
            let nodes = first..(first + PIECE_NODES).min(shape.nodes);
            let mut cache = Cache::default();
            let bytes = self.nodes(&trie, &nodes)?;
            for (number, bytes) in nodes.zip(&bytes) {
                if let Some(node) = Node::from_bytes(bytes) {
                    self.check_trie_node(&trie, number, &node, &mut cache)?;
                }
            }
            Ok(())
        })
    }

    /// Returns the bytes of these nodes.
    fn nodes(&self, trie: &Trie<'_>, nodes: &Range<u64>) -> io::Result<Vec<[u8; NODE_BYTES]>> {
        let bytes = self.read(trie.at(nodes.start), (nodes.end - nodes.start) * NODE_BYTES as u64)?;
        Ok(bytes.as_chunks::<NODE_BYTES>().0.to_vec())
    }

    fn wrong_node(
        &self,
        trie: &Trie<'_>,
        node: u64,
        expected: impl ToString,
        found: impl ToString,
        text: &str,
    ) {
        let text = format!("node {node}: {text}");
        self.rule(Code::Trie, "TRIE", trie.at(node), NODE_BYTES as u64, expected, found, &text);
    }

    /// Checks each node by itself, that it has one parent, and the length of the longest path. Returns true if all
    /// of this is right, so that each path ends at pages.
    fn check_paths(&self, trie: &Trie<'_>) -> io::Result<bool> {
        // Nodes on the path to each node; 0 if none has led to it.
        let mut depths = vec![0u8; usize::try_from(trie.shape.nodes).map_err(io::Error::other)?];
        depths[0] = 1;
        let (mut is_sound, mut levels) = (true, 0);
        for first in (0..trie.shape.nodes).step_by(PIECE_NODES as usize) {
            if self.is_cancelled() {
                return Ok(false);
            }
            let nodes = first..(first + PIECE_NODES).min(trie.shape.nodes);
            for (number, bytes) in nodes.clone().zip(self.nodes(trie, &nodes)?) {
                let depth = depths[number as usize];
                if depth == 0 && is_sound {
                    let text = "every node but the first must be the child of one before it";
                    self.wrong_node(trie, number, "a parent", "none", text);
                }
                levels = levels.max(depth);
                let node = Node::from_bytes(&bytes);
                if node.is_none() {
                    let text = "unused fields of a node must be padded";
                    self.wrong_node(trie, number, "a node", format!("{bytes:02x?}"), text);
                }
                let is_good = node.is_some_and(|node| self.is_node(trie, number, &node, depth, &mut depths));
                is_sound &= is_good && depth > 0;
            }
        }
        let stored = trie.shape.levels;
        if is_sound && u32::from(levels) != stored {
            let field = offset_in!(Entry, parameters) + offset_in!(TrieParameters, levels);
            let at = trie.header.entry_offset(Tag::TRIE).unwrap_or(0) + field;
            self.rule(
                Code::Trie,
                "TRIE",
                at,
                4,
                levels,
                stored,
                "the table must count the nodes of the longest path",
            );
        }
        Ok(is_sound)
    }

    /// Reports whether the slices of a node ascend and its children are in their places; marks these.
    fn is_node(&self, trie: &Trie<'_>, number: u64, node: &Node, depth: u8, depths: &mut [u8]) -> bool {
        let wrong = |expected: String, found: String, text: &str| {
            self.wrong_node(trie, number, expected, found, text);
            false
        };
        if !node.slices.is_sorted_by(|one, next| one < next) {
            return wrong("ascending slices".to_owned(), format!("{:x?}", node.slices), "slices must ascend");
        }
        if node.run.is_some() && !node.slices.is_empty() {
            let found = format!("{} slots", node.slices.len());
            return wrong("no slots".to_owned(), found, "a node of pages has no slots");
        }
        let run = node.run.map(|(first, more)| Child::Pages { first, more });
        for child in node.children.iter().chain(&run) {
            match *child {
                Child::Pages { first, more } => {
                    if u64::from(first) + u64::from(more) >= trie.pages {
                        let expected = format!("pages below {}", trie.pages);
                        let text = "pages of a node must be those of the section TEXT";
                        return wrong(expected, format!("{first} and {more} more"), text);
                    }
                }
                Child::Node(child) => {
                    let place = depths.get_mut(child as usize).filter(|_| u64::from(child) > number);
                    let Some(place) = place else {
                        let expected = format!("above {number}, below {}", trie.shape.nodes);
                        return wrong(expected, child.to_string(), "a child must have a larger number");
                    };
                    if *place != 0 {
                        let text = "a node must be the child of one node";
                        return wrong("another child".to_owned(), child.to_string(), text);
                    }
                    if u32::from(depth) >= LEVELS_MAX {
                        let found = format!("{} nodes", depth + 1);
                        return wrong(format!("{LEVELS_MAX} nodes"), found, "a path has at most 64 nodes");
                    }
                    *place = depth + 1;
                }
            }
        }
        true
    }

    /// Returns the page at which a child begins, or, from the right, at which it ends. O(levels).
    fn page_of_child(&self, trie: &Trie<'_>, mut child: Child, is_right: bool) -> io::Result<Option<u64>> {
        // Paths have been checked: they are short, and lead to nodes of the section.
        for _ in 0..=LEVELS_MAX {
            let number = match child {
                Child::Pages { first, more } => {
                    return Ok(Some(u64::from(first) + if is_right { more.into() } else { 0 }));
                }
                Child::Node(number) => u64::from(number),
            };
            let bytes = self.nodes(trie, &(number..number + 1))?;
            let Some(node) = bytes.first().and_then(Node::from_bytes) else { return Ok(None) };
            let run = node.run.map(|(first, more)| Child::Pages { first, more });
            let next = if is_right { node.children.last() } else { node.children.first() };
            let Some(next) = run.or(next.copied()) else { return Ok(None) };
            child = next;
        }
        Ok(None)
    }

    /// Checks the pages under a node, its prefix, and its slices.
    fn check_trie_node(
        &self,
        trie: &Trie<'_>,
        number: u64,
        node: &Node,
        cache: &mut Cache,
    ) -> io::Result<()> {
        let run = node.run.map(|(first, more)| Child::Pages { first, more });
        let mut children: Vec<(u64, u64)> = Vec::with_capacity(node.children.len() + 1);
        for &child in node.children.iter().chain(&run) {
            let first = self.page_of_child(trie, child, false)?;
            let last = self.page_of_child(trie, child, true)?;
            let Some(ends) = first.zip(last) else { return Ok(()) };
            children.push(ends);
        }
        let follow = |pair: &[(u64, u64)]| (pair[0].1..=pair[0].1 + 1).contains(&pair[1].0);
        let are_ranges = children.iter().all(|(first, last)| first <= last);
        if !are_ranges || !children.windows(2).all(follow) {
            let text = "each child must begin at the page where the one before it ends, or at the next";
            self.wrong_node(trie, number, "pages in order", format!("{children:?}"), text);
            return Ok(());
        }
        let (first, last) = (children[0].0, children[children.len() - 1].1);
        if number == 0 && (first, last) != (0, trie.pages - 1) {
            let (expected, found) = (format!("0 to {}", trie.pages - 1), format!("{first} to {last}"));
            self.wrong_node(trie, number, expected, found, "the first node must lead to all pages");
        }
        let prefix = usize::from(node.prefix);
        if first < last {
            let below = cache.ends(self, trie, first)?.map(|ends| ends.1.clone());
            let above = cache.ends(self, trie, last)?.map(|ends| ends.0.clone());
            if let Some((below, above)) = below.zip(above)
                && !agree(&below, &above, prefix)
            {
                let found = format!("others between pages {first} and {last}");
                let text = "the keys at which pages part must share the prefix";
                self.wrong_node(trie, number, format!("{prefix} bytes that agree"), found, text);
            }
        }
        for (slot, (pair, &parting)) in children.windows(2).zip(&node.slices).enumerate() {
            let (end, begin) = (pair[0].1, pair[1].0);
            if begin > first
                && let Some((_, key)) = cache.ends(self, trie, begin - 1)?
                && slice(key, prefix) >= parting
            {
                let expected =
                    format!("above {:016x}, the last one of page {}", slice(key, prefix), begin - 1);
                let text = format!("slice {slot} must be above the keys to its left");
                self.wrong_node(trie, number, expected, format!("{parting:016x}"), &text);
            }
            if end < last
                && let Some((key, _)) = cache.ends(self, trie, end + 1)?
                && slice(key, prefix) < parting
            {
                let expected =
                    format!("at most {:016x}, the first one of page {}", slice(key, prefix), end + 1);
                let text = format!("slice {slot} must not be above the keys to its right");
                self.wrong_node(trie, number, expected, format!("{parting:016x}"), &text);
            }
        }
        Ok(())
    }

    /// Reads the first and the last key of a page; `None` if the page has no valid place.
    fn page_ends(&self, trie: &Trie<'_>, page: u64) -> io::Result<Option<Ends>> {
        let first = page * PAGE_KEYS as u64;
        let ranks = first..(first + PAGE_KEYS as u64).min(trie.header.tuples);
        let Some(pages) = self.text_pages(trie.text, &ranks)? else { return Ok(None) };
        let key = |rank: u64| {
            let mut key = Vec::new();
            pages.key(rank, &mut key);
            key
        };
        let ends = (key(ranks.start), key(ranks.end - 1));
        Ok(Some(ends).filter(|(first, last)| first.len().max(last.len()) <= KEY_BYTES_MAX))
    }
}

/// Reports whether two keys share so many bytes, if zeros follow them.
fn agree(one: &[u8], other: &[u8], bytes: usize) -> bool {
    let shared = common(one, other);
    let rest =
        |key: &[u8]| key.get(shared..bytes.min(key.len())).unwrap_or_default().iter().all(|&byte| byte == 0);
    shared >= bytes || rest(one) && rest(other)
}
