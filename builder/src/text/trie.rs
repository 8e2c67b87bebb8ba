//! The trie over pages of byte keys: which separators part the children of each node.
//!
//! A node of many separators is divided as evenly as slots allow: they are wanted at even steps. A separator that
//! is whole within the eight bytes that the node looks at makes a slot. One that is not belongs to a run of
//! separators with the same eight bytes, which becomes a child between two slots. Nodes are numbered from the root
//! on, level by level, so that a child has a larger number than its parent.

use super::blocks::Blocks;
use crate::error::BuildError;
use crate::external::Spills;
use crate::overflow::Overflow;
use pleach_format::text::differ;
use pleach_format::trie::{Child, LEVELS_MAX, MORE_MAX, NODE_BYTES, Node, SLICE_BYTES, SLOTS_MAX, slice};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

/// What parts each page from the next one. Separator `c` stands between pages `c` and `c + 1`.
pub(crate) struct Separators<'a> {
    bytes: Overflow<u8>,
    spills: Spills<'a>,
    blocks: RefCell<Blocks>,
    ends: Vec<u64>,
    /// The first byte in which the keys on either side differ; [`SAME`] if they differ in zero bytes at the end or
    /// not at all.
    differs: Vec<u32>,
}

/// Keys that agree as far as they are read with zero bytes behind them.
const SAME: u32 = u32::MAX;

impl<'a> Separators<'a> {
    /// Creates an empty list, of which about `limit_bytes` stay in memory.
    pub(crate) fn new(spills: Spills<'a>, limit_bytes: usize) -> Self {
        let bytes = Overflow::new(limit_bytes);
        Self { bytes, spills, blocks: RefCell::default(), ends: Vec::new(), differs: Vec::new() }
    }

    /// Adds what stands between the last key of a page and the first key of the next one.
    pub(crate) fn push(&mut self, last: &[u8], first: &[u8]) -> Result<(), BuildError> {
        let at = differ(last, first);
        self.differs.push(at.map_or(SAME, |at| at as u32));
        // Where they are the same, the whole key: no part of it is at or below the right key and above the left.
        self.bytes.extend(&first[..at.map_or(first.len(), |at| at + 1)], self.spills)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn len(&self) -> usize {
        self.differs.len()
    }

    /// Returns bytes of a separator from `at` on, `most` at most.
    fn get(&self, number: usize, at: usize, most: usize) -> Result<Cow<'_, [u8]>, BuildError> {
        let (start, end) = (if number == 0 { 0 } else { self.ends[number - 1] }, self.ends[number]);
        let start = end.min(start + at as u64);
        self.blocks.borrow_mut().get(&self.bytes, start, most.min((end - start) as usize))
    }

    /// Returns the slice of a separator at a prefix.
    fn slice(&self, number: usize, prefix: usize) -> Result<u64, BuildError> {
        Ok(slice(&self.get(number, prefix, SLICE_BYTES)?, 0))
    }

    /// Returns the first separator of a range whose slice is not `below`.
    fn first(
        &self,
        range: &Range<usize>,
        prefix: usize,
        below: impl Fn(u64) -> bool,
    ) -> Result<usize, BuildError> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(self.slice(middle, prefix)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns how many leading bytes all separators of a range share, and the keys on either side of each with
    /// them. `None` if no byte tells them apart.
    fn prefix(&self, range: &Range<usize>) -> Result<Option<usize>, BuildError> {
        let whole = |number| self.get(number, 0, usize::MAX);
        let shared = match range.len() {
            1 => None,
            _ => match differ(&whole(range.start)?, &whole(range.end - 1)?) {
                None => return Ok(None),
                shared => shared,
            },
        };
        let first = self.differs[range.start];
        let first = (first != SAME).then_some(first as usize);
        Ok(shared.into_iter().chain(first).min())
    }
}

/// A slot, and the separator that it stands for, if it is one.
struct Slot {
    slice: u64,
    separator: Option<usize>,
}

/// Returns slots that part a range of separators into about `parts` parts.
fn slots(
    all: &Separators<'_>,
    range: &Range<usize>,
    prefix: usize,
    parts: usize,
) -> Result<Vec<Slot>, BuildError> {
    let mut slots: Vec<Slot> = Vec::new();
    let mut before = None;
    for part in 1..parts {
        let wanted = range.start + part * (range.len() + 1) / parts - 1;
        let here = all.slice(wanted, prefix)?;
        if before == Some(here) {
            continue;
        }
        before = Some(here);
        let first = all.first(range, prefix, |slice| slice < here)?;
        let end = all.first(&(first..range.end), prefix, |slice| slice <= here)?;
        let is_whole = (all.differs[first] as usize) < prefix + SLICE_BYTES;
        match slots.last_mut() {
            // The run before ends where this one begins.
            Some(last) if last.slice == here => last.separator = is_whole.then_some(first),
            _ => slots.push(Slot { slice: here, separator: is_whole.then_some(first) }),
        }
        if let (true, Some(next)) = (end - first > usize::from(is_whole), here.checked_add(1)) {
            slots.push(Slot { slice: next, separator: None });
        }
    }
    Ok(slots)
}

/// Makes the nodes, in the order of their numbers. Returns the number of nodes on the longest path; 0 if there are
/// no separators. O(n log n).
pub(crate) fn make(
    all: &Separators<'_>,
    take: &mut dyn FnMut(&[u8; NODE_BYTES]) -> Result<(), BuildError>,
) -> Result<u32, BuildError> {
    let mut queue = VecDeque::new();
    let (mut numbered, mut levels) = (0u32, 0);
    if all.len() > 0 {
        queue.push_back((0..all.len(), 1));
    }
    while let Some((range, level)) = queue.pop_front() {
        levels = levels.max(level);
        let run = Node {
            prefix: 0,
            slices: Vec::new(),
            children: Vec::new(),
            run: Some((range.start as u32, range.len() as u32)),
        };
        let Some(prefix) = all.prefix(&range)?.filter(|_| level < LEVELS_MAX) else {
            take(&run.to_bytes())?;
            continue;
        };
        let mut room = 1;
        while room * (SLOTS_MAX + 1) < range.len() + 1 {
            room *= SLOTS_MAX + 1;
        }
        let mut parts = (range.len() + 1).div_ceil(room);
        let mut slots = slots(all, &range, prefix, parts)?;
        while slots.len() > SLOTS_MAX {
            parts -= 1;
            slots = self::slots(all, &range, prefix, parts)?;
        }
        let mut node = Node { prefix: prefix as u16, slices: Vec::new(), children: Vec::new(), run: None };
        let mut start = range.start;
        let mut child = |start: usize, end: usize| {
            if end - start <= MORE_MAX as usize {
                return Child::Pages { first: start as u32, more: (end - start) as u32 };
            }
            numbered += 1;
            queue.push_back((start..end, level + 1));
            Child::Node(numbered)
        };
        for slot in &slots {
            let end = all.first(&(start..range.end), prefix, |slice| slice < slot.slice)?;
            node.children.push(child(start, end));
            node.slices.push(slot.slice);
            start = end + usize::from(slot.separator.is_some());
        }
        node.children.push(child(start, range.end));
        take(&node.to_bytes())?;
    }
    Ok(levels)
}
