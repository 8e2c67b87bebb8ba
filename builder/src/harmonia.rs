//! The HARM section, made from tuple lines that are read back: once for the last key of each leaf, once for
//! the leaves, once for the values.
//!
//! A key of an inner node is the last one under the child to its left, so all inner levels come from the last
//! keys of the leaves. Those of the lowest level above the leaves may spill; those further up are few.

use crate::error::BuildError;
use crate::job::Job;
use crate::layout::Harmonia;
use crate::lines::Lines;
use crate::nodes::{self, Out, each_node};
use crate::pack::{KeyLane, Take, Tuple, ValueLane};
use crate::plan::Plan;
use crate::section::Extra;
use pleach_format::harmonia::HarmoniaGeometry;
use pleach_format::section::Tag;

/// Passes the tuples of each leaf to `take`, in order.
fn each_leaf<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    node_keys: usize,
    take: &mut Take<'_, W, B>,
) -> Result<(), BuildError> {
    let each_batch = &mut |take: &mut Take<'_, W, B>| lines.each_batch::<B>(job.output, job.watch, take);
    each_node(&mut || node_keys, each_batch, take)
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
                out.node(self.shape.stride_bytes as usize, &self.keys)?;
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
    let each = &mut |take: &mut Take<'_, W, B>| each_leaf::<W, B>(job, lines, node_keys, take);
    let lasts = nodes::lasts(job.spills, plan.lasts_bytes, each)?;
    Ok(Extra {
        tag: Tag::HARMONIA,
        required: false,
        length: shape.bytes,
        elements: shape.tuples,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| {
            let mut out = Out::new(take);
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
                out.node(shape.stride_bytes as usize, &keys[..leaf.len()])
            })?;
            out.zeros_to(shape.counts_at)?;
            for (depth, level) in shape.levels.iter().enumerate() {
                for at in 0..level.nodes {
                    out.put(&[shape.keys_of(depth, at) as u8])?;
                }
            }
            out.zeros_to(shape.children_at)?;
            for node in 0..=shape.inner {
                out.put(&(shape.first_child(node) as u32).to_le_bytes())?;
            }
            out.zeros_to(shape.values_at)?;
            if B::BYTES > 0 {
                let stride = shape.fanout as usize * B::BYTES;
                each_leaf::<W, B>(job, lines, node_keys, &mut |leaf| {
                    for (slot, tuple) in out.room(stride).chunks_exact_mut(B::BYTES).zip(leaf) {
                        tuple.value.write(slot);
                    }
                    out.flush()
                })?;
            }
            out.zeros_to(shape.bytes)
        }),
    })
}
