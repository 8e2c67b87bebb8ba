//! The HARM section, made from tuple lines that are read back: once for the last key of each leaf, once for
//! the leaves, once for the values.
//!
//! A key of an inner node is the last one under the child to its left, so all inner levels come from the last
//! keys of the leaves. Those of the lowest level above the leaves may spill; those further up are few.

use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::options::Harmonia;
use crate::overflow::Overflow;
use crate::pack::{KeyLane, Take, Tuple, ValueLane};
use crate::plan::Plan;
use crate::section::{Extra, TakeBytes};
use pleach_format::harmonia::HarmoniaGeometry;
use pleach_format::section::Tag;

/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Gathers bytes and passes them on by the mebibyte.
struct Out<'a, 't> {
    buffer: Vec<u8>,
    take: &'a mut TakeBytes<'t>,
    at: u64,
}

impl Out<'_, '_> {
    fn flush(&mut self, at_least: usize) -> Result<(), BuildError> {
        if self.buffer.len() >= at_least {
            (self.take)(&self.buffer)?;
            self.at += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn zeros_to(&mut self, end: u64) -> Result<(), BuildError> {
        self.flush(0)?;
        self.buffer.resize((end - self.at) as usize, 0);
        self.flush(0)
    }

    /// Appends a node with these keys.
    fn node<W: KeyLane>(&mut self, shape: &HarmoniaGeometry, keys: &[W]) -> Result<(), BuildError> {
        let start = self.buffer.len();
        self.buffer.resize(start + shape.stride_bytes as usize, 0xFF);
        for (slot, key) in self.buffer[start..].chunks_exact_mut(W::BYTES).zip(keys) {
            key.write(slot);
        }
        self.flush(BUFFER_BYTES)
    }
}

/// Passes the tuples of each leaf to `take`, in order.
fn each_leaf<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    node_keys: usize,
    take: &mut Take<'_, W, B>,
) -> Result<(), BuildError> {
    let mut carry: Vec<Tuple<W, B>> = Vec::new();
    lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
        let now = (node_keys - carry.len()).min(tuples.len());
        let (mut rest, mut whole) = (tuples, &[][..]);
        if !carry.is_empty() {
            carry.extend_from_slice(&tuples[..now]);
            rest = &tuples[now..];
            if carry.len() == node_keys {
                take(&carry)?;
                carry.clear();
            }
        }
        if carry.is_empty() {
            (whole, rest) = rest.split_at(rest.len() / node_keys * node_keys);
        }
        whole.chunks_exact(node_keys).try_for_each(&mut *take)?;
        carry.extend_from_slice(rest);
        Ok(())
    })?;
    if carry.is_empty() { Ok(()) } else { take(&carry) }
}

/// Writes the nodes of an inner level, given the last keys under all nodes of the level below, in parts.
struct Level<'s, W> {
    shape: &'s HarmoniaGeometry,
    keys: Vec<W>,
    left: u64,
}

impl<'s, W: KeyLane> Level<'s, W> {
    fn new(shape: &'s HarmoniaGeometry, children: u64) -> Self {
        Self { shape, keys: Vec::new(), left: children }
    }

    fn take(&mut self, lasts: &[W], out: &mut Out<'_, '_>) -> Result<(), BuildError> {
        let children = self.shape.node_keys as usize + 1;
        for &last in lasts {
            self.left -= 1;
            self.keys.push(last);
            if self.keys.len() == children || self.left == 0 {
                // No separator follows the last child.
                self.keys.pop();
                out.node(self.shape, &self.keys)?;
                self.keys.clear();
            }
        }
        Ok(())
    }
}

/// Makes the section for all tuples.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    wanted: Harmonia,
) -> Result<Extra<'a>, BuildError> {
    let nodes = (wanted.fanout, wanted.node_keys());
    let shape =
        HarmoniaGeometry::new(lines.tuples, nodes, W::BYTES, B::BYTES).ok_or(BuildError::TooLarge {
            what: "Harmonia's tree",
            found: lines.tuples,
            limit: u64::from(u32::MAX) * u64::from(nodes.1),
        })?;
    let node_keys = shape.node_keys as usize;
    let plan = Plan::new(job.options.memory_bytes, size_of::<Tuple<W, B>>());
    let mut lasts = Overflow::<W>::new(plan.lasts_bytes / W::BYTES);
    let mut some = Vec::with_capacity(1 << 12);
    each_leaf::<W, B>(job, lines, node_keys, &mut |leaf| {
        some.extend(leaf.last().map(|tuple| tuple.key));
        if some.len() == some.capacity() {
            lasts.extend(&some, job.spills)?;
            some.clear();
        }
        Ok(())
    })?;
    lasts.extend(&some, job.spills)?;
    Ok(Extra {
        tag: Tag::HARMONIA,
        required: false,
        length: shape.bytes,
        elements: shape.tuples,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| {
            let mut out = Out { buffer: Vec::with_capacity(BUFFER_BYTES * 2), take, at: 0 };
            // Last keys under the nodes of each inner level but the root's, top first.
            let inner = shape.levels.len().saturating_sub(1);
            let mut above: Vec<Vec<W>> = vec![Vec::new(); inner];
            let (mut leaf, leaves) = (0, shape.leaves());
            lasts.read(&mut |lasts| {
                for &last in lasts {
                    leaf += 1;
                    for (level, above) in shape.levels.iter().zip(&mut above).skip(1) {
                        if leaf % level.leaves == 0 || leaf == leaves {
                            above.push(last);
                        }
                    }
                }
                Ok(())
            })?;
            for below in above.iter().skip(1) {
                Level::new(&shape, below.len() as u64).take(below, &mut out)?;
            }
            if inner > 0 {
                let mut level = Level::new(&shape, leaves);
                lasts.read(&mut |lasts| level.take(lasts, &mut out))?;
            }
            each_leaf::<W, B>(job, lines, node_keys, &mut |leaf| {
                let mut keys = [W::MAX; 128];
                keys.iter_mut().zip(leaf).for_each(|(key, tuple)| *key = tuple.key);
                out.node(&shape, &keys[..leaf.len()])
            })?;
            out.zeros_to(shape.counts_at)?;
            for (depth, level) in shape.levels.iter().enumerate() {
                for at in 0..level.nodes {
                    out.buffer.push(shape.keys_of(depth, at) as u8);
                    out.flush(BUFFER_BYTES)?;
                }
            }
            out.zeros_to(shape.children_at)?;
            for node in 0..=shape.inner {
                out.buffer.extend_from_slice(&(shape.first_child(node) as u32).to_le_bytes());
                out.flush(BUFFER_BYTES)?;
            }
            out.zeros_to(shape.values_at)?;
            if B::BYTES > 0 {
                let stride = shape.fanout as usize * B::BYTES;
                each_leaf::<W, B>(job, lines, node_keys, &mut |leaf| {
                    let start = out.buffer.len();
                    out.buffer.resize(start + stride, 0);
                    for (slot, tuple) in out.buffer[start..].chunks_exact_mut(B::BYTES).zip(leaf) {
                        tuple.value.write(slot);
                    }
                    out.flush(BUFFER_BYTES)
                })?;
            }
            out.zeros_to(shape.bytes)
        }),
    })
}
