//! Checks of the contiguous B+tree: metadata against the parameters, keys and values against the tuple lines.

use super::pieces::sized;
use super::{Check, Code, ReadAt};
use pleach_format::btree::{BtreeGeometry, Node};
use pleach_format::line::{self, Line};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// Number of nodes that are compared at once.
const PIECE_NODES: u64 = sized(256, 3);

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_btree(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = &header.btree else { return Ok(()) };
        match header.geometry.key_bytes {
            4 => self.check_nodes::<u32>(header, *offset, shape),
            8 => self.check_nodes::<u64>(header, *offset, shape),
            _ => self.check_nodes::<u128>(header, *offset, shape),
        }
    }

    fn check_nodes<W: Word>(&self, header: &Header, offset: u64, shape: &BtreeGeometry) -> io::Result<()> {
        let levels = shape.shape.levels();
        for (depth, level) in levels.iter().enumerate().rev() {
            (0..level.nodes.div_ceil(PIECE_NODES)).into_par_iter().try_for_each(|piece| {
                if self.is_cancelled() {
                    return Ok(());
                }
                let first = piece * PIECE_NODES;
                let nodes = first..(first + PIECE_NODES).min(level.nodes);
                self.check_metadata(offset, shape, depth, nodes.clone())?;
                if depth + 1 == levels.len() {
                    self.check_btree_leaves::<W>(header, offset, shape, nodes)
                } else {
                    self.check_btree_inner::<W>(header, offset, shape, depth, nodes)
                }
            })?;
        }
        let ends = [
            (shape.shape.nodes() * Node::BYTES as u64, shape.keys_at),
            (shape.keys_at + shape.shape.slots() * W::BYTES as u64, shape.values_at),
            (shape.values_at + shape.shape.tuples() * u64::from(shape.value_bytes), shape.bytes),
        ];
        ends.into_iter().try_for_each(|(from, to)| self.check_zeros("BTRE", (offset + from, offset + to)))
    }

    fn check_metadata(
        &self,
        offset: u64,
        shape: &BtreeGeometry,
        depth: usize,
        nodes: Range<u64>,
    ) -> io::Result<()> {
        let first = shape.shape.levels()[depth].first_node;
        let at = offset + (first + nodes.start) * Node::BYTES as u64;
        let found = self.read(at, (nodes.end - nodes.start) * Node::BYTES as u64)?;
        for (node, found) in nodes.clone().zip(found.chunks_exact(Node::BYTES)) {
            let expected = shape.node(depth, node);
            if found != expected.to_bytes() {
                let at = at + (node - nodes.start) * Node::BYTES as u64;
                let expected = format!("{} keys, first child or rank {}", expected.count(), expected.first());
                let text = "metadata of a node must follow from the parameters";
                let bytes = Node::BYTES as u64;
                self.rule(Code::Btree, "BTRE", at, bytes, expected, format!("{found:02x?}"), text);
            }
        }
        Ok(())
    }

    /// Compares the key slots of a node.
    fn compare_keys<W: Word>(
        &self,
        offset: u64,
        shape: &BtreeGeometry,
        node: u64,
        keys: &[W],
    ) -> io::Result<()> {
        let bytes = shape.shape.slots_of_node() * W::BYTES as u64;
        let at = offset + shape.keys_at + node * bytes;
        let mut expected = vec![0xFF; bytes as usize];
        for (slot, key) in expected.chunks_exact_mut(W::BYTES).zip(keys) {
            key.write(slot);
        }
        if self.read(at, bytes)? != expected {
            let text = "a node must hold its keys";
            self.rule(Code::Btree, "BTRE", at, bytes, format!("node {node}"), "other keys", text);
        }
        Ok(())
    }

    fn check_btree_leaves<W: Word>(
        &self,
        header: &Header,
        offset: u64,
        shape: &BtreeGeometry,
        nodes: Range<u64>,
    ) -> io::Result<()> {
        let depth = shape.shape.levels().len() - 1;
        let geometry = header.geometry;
        let (from, to) =
            (shape.shape.items(depth, nodes.start).start, shape.shape.items(depth, nodes.end - 1).end);
        let (first_line, last_line) = (geometry.place(from).0, geometry.place(to - 1).0);
        let lines = self.read(header.line_offset(first_line), (last_line - first_line + 1) * 64)?;
        let (lines, _) = lines.as_chunks::<64>();
        let tuple = |rank: u64| -> (&Line, usize) {
            let (number, slot) = geometry.place(rank);
            (&lines[(number - first_line) as usize], slot)
        };
        for node in nodes {
            let keys = shape.shape.items(depth, node).map(|rank| {
                let (line, slot) = tuple(rank);
                line::key::<W>(line, slot)
            });
            let keys: Vec<W> = keys.collect();
            self.compare_keys(offset, shape, shape.shape.levels()[depth].first_node + node, &keys)?;
        }
        let value_bytes = shape.value_bytes as usize;
        let at = offset + shape.values_at + from * value_bytes as u64;
        let found = self.read(at, (to - from) * value_bytes as u64)?;
        for (rank, found) in (from..to).zip(found.chunks_exact(value_bytes.max(1))) {
            let (line, slot) = tuple(rank);
            let place = geometry.values_at() + slot * value_bytes;
            if *found != line[place..place + value_bytes] {
                let at = at + (rank - from) * value_bytes as u64;
                let text = "a rank must have its value";
                let bytes = value_bytes as u64;
                self.rule(Code::Btree, "BTRE", at, bytes, format!("rank {rank}"), "another value", text);
            }
        }
        Ok(())
    }

    fn check_btree_inner<W: Word>(
        &self,
        header: &Header,
        offset: u64,
        shape: &BtreeGeometry,
        depth: usize,
        nodes: Range<u64>,
    ) -> io::Result<()> {
        for node in nodes {
            let items = shape.shape.items(depth, node);
            let ranks = (items.start..items.end - 1).map(|item| Some(shape.last_rank(depth, item)));
            let keys = self.words_at::<W>(header, &ranks.collect::<Vec<_>>())?;
            let keys: Vec<W> = keys.into_iter().flatten().collect();
            self.compare_keys(offset, shape, shape.shape.levels()[depth].first_node + node, &keys)?;
        }
        Ok(())
    }
}
