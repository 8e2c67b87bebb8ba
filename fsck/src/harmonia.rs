//! Checks of Harmonia's tree: node by node against the tuple lines, and each array against the parameters.
//!
//! Leaves are compared with the tuples of their ranks. A key of an inner node is the last word under a child;
//! it is compared with that word in the child's last leaf, which was checked before.

use super::pieces::sized;
use super::{Check, Code, ReadAt};
use pleach_format::harmonia::{CHILD_BYTES, HarmoniaGeometry};
use pleach_format::line::{self, Line};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::io;

/// Number of nodes that are compared at once.
const PIECE_NODES: u64 = sized(256, 3);

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_harmonia(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = &header.harmonia else { return Ok(()) };
        match header.geometry.key_bytes {
            4 => self.check_tree::<u32>(header, *offset, shape),
            8 => self.check_tree::<u64>(header, *offset, shape),
            _ => self.check_tree::<u128>(header, *offset, shape),
        }
    }

    fn check_tree<W: Word>(&self, header: &Header, offset: u64, shape: &HarmoniaGeometry) -> io::Result<()> {
        let pieces = shape.leaves().div_ceil(PIECE_NODES);
        (0..pieces).into_par_iter().try_for_each(|piece| {
            if self.is_cancelled() {
                return Ok(());
            }
            let first = piece * PIECE_NODES;
            self.check_leaves::<W>(header, offset, shape, first, (first + PIECE_NODES).min(shape.leaves()))
        })?;
        let inner = shape.levels.len().saturating_sub(1);
        for depth in 0..inner {
            let level = &shape.levels[depth];
            (0..level.nodes.div_ceil(PIECE_NODES)).into_par_iter().try_for_each(|piece| {
                let first = piece * PIECE_NODES;
                let end = (first + PIECE_NODES).min(level.nodes);
                self.check_inner::<W>(offset, shape, depth, first..end)
            })?;
        }
        let counts: Vec<u8> = shape
            .levels
            .iter()
            .enumerate()
            .flat_map(|(depth, level)| (0..level.nodes).map(move |at| shape.keys_of(depth, at) as u8))
            .collect();
        self.check_array(offset + shape.counts_at, &counts, shape.children_at - shape.counts_at, "counts")?;
        let children: Vec<u8> =
            (0..=shape.inner).flat_map(|node| (shape.first_child(node) as u32).to_le_bytes()).collect();
        debug_assert_eq!(children.len() as u64, (shape.inner + 1) * CHILD_BYTES);
        self.check_array(
            offset + shape.children_at,
            &children,
            shape.values_at - shape.children_at,
            "children",
        )?;
        // The bytes after the nodes, and those after the values.
        let nodes_end = shape.nodes * shape.stride_bytes;
        self.check_array(offset + nodes_end, &[], shape.counts_at - nodes_end, "padding")?;
        let values_end =
            shape.values_at + shape.leaves() * u64::from(shape.fanout) * u64::from(shape.value_bytes);
        self.check_array(offset + values_end, &[], shape.bytes - values_end, "padding")
    }

    /// Compares `length` bytes with an array followed by zero bytes.
    fn check_array(&self, at: u64, expected: &[u8], length: u64, what: &str) -> io::Result<()> {
        let found = self.read(at, length)?;
        let wrong = found
            .iter()
            .enumerate()
            .find(|&(place, &byte)| byte != expected.get(place).copied().unwrap_or(0));
        if let Some((place, &byte)) = wrong {
            let expected = expected.get(place).copied().unwrap_or(0);
            self.rule(
                Code::Harmonia,
                "HARM",
                at + place as u64,
                1,
                expected,
                byte,
                &format!("{what} must follow from the parameters"),
            );
        }
        Ok(())
    }

    fn check_leaves<W: Word>(
        &self,
        header: &Header,
        offset: u64,
        shape: &HarmoniaGeometry,
        first: u64,
        end: u64,
    ) -> io::Result<()> {
        let full = u64::from(shape.node_keys);
        let geometry = header.geometry;
        let (from, to) = (first * full, (end * full).min(shape.tuples));
        let (first_line, last_line) = (geometry.place(from).0, geometry.place(to - 1).0);
        let lines = self.read(header.line_offset(first_line), (last_line - first_line + 1) * 64)?;
        let (lines, _) = lines.as_chunks::<64>();
        let tuple = |rank: u64| -> (&Line, usize) {
            let (number, slot) = geometry.place(rank);
            (&lines[(number - first_line) as usize], slot)
        };
        let stride = shape.stride_bytes as usize;
        let keys_at = offset + (shape.inner + first) * shape.stride_bytes;
        let keys = self.read(keys_at, (end - first) * shape.stride_bytes)?;
        let value_bytes = shape.value_bytes as usize;
        let values_stride = shape.fanout as usize * value_bytes;
        let values_at = offset + shape.values_at + first * values_stride as u64;
        let values = self.read(values_at, (end - first) * values_stride as u64)?;
        let mut expected = vec![0u8; stride];
        let mut wanted = vec![0u8; values_stride];
        for leaf in first..end {
            let ranks = leaf * full..((leaf + 1) * full).min(shape.tuples);
            expected.fill(0xFF);
            wanted.fill(0);
            for (slot, rank) in ranks.enumerate() {
                let (line, place) = tuple(rank);
                line::key::<W>(line, place).write(&mut expected[slot * W::BYTES..]);
                let at = geometry.values_at() + place * value_bytes;
                wanted[slot * value_bytes..][..value_bytes].copy_from_slice(&line[at..at + value_bytes]);
            }
            let at = (leaf - first) as usize;
            if keys[at * stride..][..stride] != expected[..] {
                let (at, text) = (keys_at + (at * stride) as u64, "a leaf must hold the keys of its ranks");
                self.rule(
                    Code::Harmonia,
                    "HARM",
                    at,
                    stride as u64,
                    format!("leaf {leaf}"),
                    "other keys",
                    text,
                );
            } else if values[at * values_stride..][..values_stride] != wanted[..] {
                let at = values_at + (at * values_stride) as u64;
                let text = "a leaf must have the values of its ranks";
                let length = values_stride as u64;
                self.rule(Code::Harmonia, "HARM", at, length, format!("leaf {leaf}"), "other values", text);
            }
        }
        Ok(())
    }

    /// Checks nodes of an inner level against the last keys of the leaves below.
    fn check_inner<W: Word>(
        &self,
        offset: u64,
        shape: &HarmoniaGeometry,
        depth: usize,
        nodes: std::ops::Range<u64>,
    ) -> io::Result<()> {
        let stride = shape.stride_bytes as usize;
        let at = offset + (shape.levels[depth].first + nodes.start) * shape.stride_bytes;
        let found = self.read(at, (nodes.end - nodes.start) * shape.stride_bytes)?;
        let children = u64::from(shape.node_keys) + 1;
        for (node, found) in nodes.clone().zip(found.chunks_exact(stride)) {
            let mut expected = vec![0xFF; stride];
            for slot in 0..shape.keys_of(depth, node) {
                let rank = shape.last_rank(depth + 1, node * children + slot);
                let (leaf, place) = (rank / u64::from(shape.node_keys), rank % u64::from(shape.node_keys));
                let key = (shape.inner + leaf) * shape.stride_bytes + place * W::BYTES as u64;
                let key = self.read(offset + key, W::BYTES as u64)?;
                expected[slot as usize * W::BYTES..][..W::BYTES].copy_from_slice(&key);
            }
            if found != expected {
                let at = at + (node - nodes.start) * shape.stride_bytes;
                let text = "a key of an inner node must be the last one under the child to its left";
                self.rule(
                    Code::Harmonia,
                    "HARM",
                    at,
                    stride as u64,
                    format!("level {depth}"),
                    "other keys",
                    text,
                );
            }
        }
        Ok(())
    }
}
