//! The update phase: operations change leaves in parallel, each under Algorithm 1's locks.
//!
//! By leaf, a task is a bucket of [`super::group`]: a few thousand operations for neighbouring leaves. Each
//! leaf is locked, read and written once, while the lines of the next leaves are being fetched. In batch
//! order, a task is a piece of the batch, and each operation locks its leaf. Tasks take one seat;
//! `Counting::Operation` takes one for each operation, exactly as the paper's protocol.

use super::arch::{self, Work};
use super::batch::{BatchOptions, Counting, Kind, Order, Step};
use super::group::{Scratch, group};
use super::protocol;
use super::shared::Shared;
use super::{Change, HarmoniaError, Report, Tree, fold, movement};
use crate::parallel::{self, Scratches};
use pleach_format::{Bits, Key, Value, Word};
use std::time::Instant;

/// Operations per task in the order of the batch.
const PIECE: usize = 1 << 11;
/// Number of operations whose leaves are prefetched.
const AHEAD: usize = 16;

/// Runs of operations on one leaf, with the next leaves being prefetched.
struct Runs<'a, 't, W, B> {
    store: &'a Shared<'t, W, B>,
    steps: &'a [Step<W, B>],
    at: usize,
    asked: usize,
    one_by_one: bool,
}

impl<'a, W: Word, B: Bits> Iterator for Runs<'a, '_, W, B> {
    type Item = (u32, &'a [Step<W, B>]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let left = &self.steps[self.at..];
        let leaf = left.first()?.leaf;
        while self.asked < self.steps.len().min(self.at + AHEAD) {
            let ahead = self.steps[self.asked].leaf;
            if self.asked == 0 || self.steps[self.asked - 1].leaf != ahead {
                self.store.prefetch(ahead);
            }
            self.asked += 1;
        }
        let same = || left.iter().take_while(|step| step.leaf == leaf).count();
        let len = if self.one_by_one { 1 } else { same() };
        self.at += len;
        Some((leaf, &left[..len]))
    }
}

/// A task of the update phase.
struct Task<'a, 't, W, B> {
    store: &'a Shared<'t, W, B>,
    steps: &'a [Step<W, B>],
    literal: bool,
}

impl<W: Word, B: Bits> Work for Task<'_, '_, W, B> {
    type Output = Report;
    #[inline(always)]
    fn run(self) -> Report {
        let Self { store, steps, literal } = self;
        let mut tally = Report::default();
        let runs = Runs { store, steps, at: 0, asked: 0, one_by_one: literal };
        protocol::apply::<_, _, true>(store, runs, literal, &mut tally);
        tally
    }
}

fn sum(reports: Vec<Report>) -> Report {
    let mut sum = Report::default();
    reports.into_iter().for_each(|report| sum += report);
    sum
}

/// Applies a batch to a tree that has leaves, and moves what must be moved.
pub(super) fn update<K: Key, V: Value>(
    tree: &mut Tree<K::Word, V::Bits>,
    batch: &[Change<K, V>],
    leaves_of: &[u32],
    options: &BatchOptions,
) -> Result<Report, HarmoniaError> {
    let start = Instant::now();
    let leaves = tree.leaves() as u32;
    let literal = options.counting == Counting::Operation;
    let step = |at: usize| Step::new(&batch[at], leaves_of[at]);
    let shared = Shared::new(tree);
    let store = &shared;
    let (mut report, group) = match options.order {
        Order::Leaf => {
            let groups = group(leaves_of, leaves, step);
            let grouped = start.elapsed();
            let task = |scratch: &mut Scratch<_>, bucket: usize| {
                arch::best(Task { store, steps: groups.bucket(bucket, scratch), literal })
            };
            let scratches = Scratches::default();
            let run = |bucket| scratches.with(|scratch| task(scratch, bucket));
            (sum(parallel::map(groups.buckets(), run)), grouped)
        }
        Order::Batch => {
            let (kinds, superseded) = fold::kinds(batch, leaves_of, leaves);
            let folded = start.elapsed();
            let task = |steps: &mut Vec<_>, piece: usize| {
                let kinds = &kinds[piece * PIECE..kinds.len().min((piece + 1) * PIECE)];
                steps.clear();
                let kept = kinds.iter().enumerate().filter(|(_, kind)| **kind != Kind::Void);
                steps.extend(kept.map(|(at, &kind)| Step { kind, ..step(piece * PIECE + at) }));
                arch::best(Task { store, steps, literal })
            };
            let scratches = Scratches::default();
            let run = |piece| scratches.with(|steps| task(steps, piece));
            let reports = parallel::map(kinds.len().div_ceil(PIECE), run);
            (Report { superseded, ..sum(reports) }, folded)
        }
    };
    let auxiliaries = shared.finish();
    tree.tuples = tree.tuples + report.inserted - report.deleted;
    (report.group, report.update) = (group, start.elapsed() - group);

    let start = Instant::now();
    if !auxiliaries.is_empty() || tree.tuples == 0 {
        let joined = movement::relayout(tree, auxiliaries)?;
        report.merges += joined;
        report.nodes_moved = tree.geometry.nodes;
    }
    report.movement = start.elapsed();
    Ok(report)
}
