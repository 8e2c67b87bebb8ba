//! The BTRE section, made from tuple lines that are read back: once for the last key of each leaf, once for
//! the leaves, once for the values.
//!
//! A key of an inner node is the last one under the child to its left, so all inner levels come from the last
//! keys of the leaves. Those of the lowest level above the leaves may spill; those further up are few.

use crate::error::BuildError;
use crate::job::Job;
use crate::layout::Btree;
use crate::lines::Lines;
use crate::nodes::{self, Out, each_node};
use crate::overflow::Overflow;
use crate::pack::{KeyLane, Take, Tuple, ValueLane};
use crate::plan::Plan;
use crate::section::{Extra, TakeBytes};
use pleach_format::btree::{BtreeGeometry, ORDER_MAX};
use pleach_format::section::Tag;

/// Makes the section for all tuples.
pub(crate) fn of_lines<'a, W: KeyLane, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    wanted: Btree,
) -> Result<Extra<'a>, BuildError> {
    let shape = BtreeGeometry::new(lines.tuples, wanted.order, W::BYTES, B::BYTES);
    let shape = shape.ok_or(BuildError::TooLarge {
        what: "a B+tree",
        found: lines.tuples,
        limit: pleach_format::btree::TUPLES_MAX,
    })?;
    let plan = Plan::new(job.options.memory_bytes, size_of::<Tuple<W, B>>());
    let lasts = if shape.shape.levels().len() > 1 {
        let each = &mut |take: &mut Take<'_, W, B>| each_leaf::<W, B>(job, lines, &shape, take);
        nodes::lasts(job.spills, plan.lasts_bytes, each)?
    } else {
        Overflow::new(1)
    };
    Ok(Extra {
        tag: Tag::BTREE,
        required: false,
        length: shape.bytes,
        elements: lines.tuples,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| content::<W, B>(job, lines, &shape, &lasts, take)),
    })
}

/// Passes the tuples of each leaf to `take`, in order.
fn each_leaf<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    shape: &BtreeGeometry,
    take: &mut Take<'_, W, B>,
) -> Result<(), BuildError> {
    let depth = shape.shape.levels().len().saturating_sub(1);
    let mut leaf = 0;
    let mut next = || {
        let items = shape.shape.items(depth, leaf);
        leaf += 1;
        (items.end - items.start) as usize
    };
    each_node(&mut next, &mut |take| lines.each_batch::<B>(job.output, job.watch, take), take)
}

/// Passes the bytes of the section to `take`; `lasts` are the last keys of the leaves.
fn content<W: KeyLane, B: ValueLane>(
    job: &Job<'_>,
    lines: &Lines<W>,
    shape: &BtreeGeometry,
    lasts: &Overflow<W>,
    take: &mut TakeBytes<'_>,
) -> Result<(), BuildError> {
    let mut out = Out::new(take);
    let levels = shape.shape.levels();
    for (depth, level) in levels.iter().enumerate() {
        for node in 0..level.nodes {
            out.put(&shape.node(depth, node).to_bytes())?;
        }
    }
    out.zeros_to(shape.keys_at)?;
    let node_bytes = shape.shape.slots_of_node() as usize * W::BYTES;
    // Last keys under the nodes of each inner level but the lowest, whose children are the leaves.
    let inner = levels.len().saturating_sub(1);
    let mut under: Vec<Vec<W>> = Vec::new();
    if inner > 1 {
        let mut of_level: Vec<W> = Vec::new();
        let (mut leaf, mut node) = (0, 0);
        lasts.read(&mut |lasts| {
            for &last in lasts {
                leaf += 1;
                if leaf == shape.shape.items(inner - 1, node).end {
                    of_level.push(last);
                    node += 1;
                }
            }
            Ok(())
        })?;
        under.push(of_level);
        for depth in (1..inner - 1).rev() {
            let below = under.last().map_or(&[][..], Vec::as_slice);
            let nodes = 0..levels[depth].nodes;
            under.push(nodes.map(|node| below[shape.shape.items(depth, node).end as usize - 1]).collect());
        }
    }
    for (depth, children) in (0..inner.saturating_sub(1)).zip(under.iter().rev()) {
        for node in 0..levels[depth].nodes {
            let items = shape.shape.items(depth, node);
            out.node(node_bytes, &children[items.start as usize..items.end as usize - 1])?;
        }
    }
    if let Some(depth) = inner.checked_sub(1) {
        let (mut keys, mut node, mut leaf) = (Vec::with_capacity(ORDER_MAX as usize), 0, 0);
        lasts.read(&mut |lasts| {
            for &last in lasts {
                leaf += 1;
                keys.push(last);
                if leaf == shape.shape.items(depth, node).end {
                    keys.pop();
                    out.node(node_bytes, &keys)?;
                    keys.clear();
                    node += 1;
                }
            }
            Ok(())
        })?;
    }
    let mut keys = Vec::with_capacity(ORDER_MAX as usize);
    if lines.tuples > 0 {
        each_leaf::<W, B>(job, lines, shape, &mut |leaf| {
            keys.clear();
            keys.extend(leaf.iter().map(|tuple| tuple.key));
            out.node(node_bytes, &keys)
        })?;
    }
    out.zeros_to(shape.values_at)?;
    if B::BYTES > 0 {
        lines.each_batch::<B>(job.output, job.watch, &mut |tuples| {
            let values = out.room(tuples.len() * B::BYTES);
            for (slot, tuple) in values.chunks_exact_mut(B::BYTES).zip(tuples) {
                tuple.value.write(slot);
            }
            out.flush()
        })?;
    }
    out.zeros_to(shape.bytes)
}
