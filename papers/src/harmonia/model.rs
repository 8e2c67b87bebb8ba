//! The locking under a model checker: every order in which two threads can meet, with up to two preemptions.
//!
//! The protocol's own text runs over loom's atomics and waits by yielding. Its tree is small: leaves of two
//! slots in cells that report unordered accesses. Each model starts threads that apply operations, all of
//! which were plain ones when the batch began, and compares the tuples afterwards.
//!
//! One model runs the protocol without the check under the leaf's lock and must fail: it shows the race of
//! the paper's text, where a leaf fills between the decision and the lock.

use super::protocol::{Atomic, Exclusive, Guard, Machine, Protocol, Seat, Seated, Store, apply, atomics};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, AtomicU32};
use std::sync::atomic::Ordering;

struct Loom;

atomics!(AtomicU8: u8, AtomicU32: u32);

impl Machine for Loom {
    type Byte = AtomicU8;
    type Word = AtomicU32;
    fn pause(_turn: u32) {
        loom::thread::yield_now();
    }
}

/// Slots per leaf.
const PLACES: usize = 2;
/// Leaves: keys below 10, and the others.
const LEAVES: usize = 2;

/// A leaf: its slots, as an array instead of a vector, so that a tuple too many is lost.
#[derive(Clone, Copy, Default)]
struct Leaf {
    keys: [u8; PLACES],
    count: usize,
}

#[derive(Clone, Copy)]
enum Operation {
    Insert(u8),
    Delete(u8),
}
use Operation::{Delete, Insert};

/// A tree of two leaves. A split moves a leaf to an auxiliary node; a merge makes one node of both leaves.
struct Small {
    protocol: Protocol<Loom>,
    leaves: [UnsafeCell<Leaf>; LEAVES],
    /// The leaf that owns the node of each split leaf.
    owners: UnsafeCell<[u32; LEAVES]>,
    nodes: [UnsafeCell<Vec<u8>>; LEAVES],
}

// SAFETY: loom's cells are checked: an access that races fails the model.
unsafe impl Sync for Small {}
// SAFETY: loom's cells are checked: an access that races fails the model.
unsafe impl Send for Small {}

impl Small {
    fn new(keys: &[u8]) -> Self {
        let mut leaves = [Leaf::default(); LEAVES];
        for &key in keys {
            let leaf = &mut leaves[usize::from(key >= 10)];
            leaf.keys[leaf.count] = key;
            leaf.count += 1;
        }
        Self {
            protocol: Protocol::new(LEAVES as u32),
            leaves: leaves.map(UnsafeCell::new),
            owners: UnsafeCell::new([0, 1]),
            nodes: [const { Vec::new() }; LEAVES].map(UnsafeCell::new),
        }
    }

    fn leaf<T>(&self, leaf: u32, work: impl FnOnce(&mut Leaf) -> T) -> T {
        // SAFETY: loom checks the access: a race fails the model.
        self.leaves[leaf as usize].with_mut(|leaf| work(unsafe { &mut *leaf }))
    }

    fn node<T>(&self, owner: u32, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        // SAFETY: loom checks the access: a race fails the model.
        self.nodes[owner as usize].with_mut(|node| work(unsafe { &mut *node }))
    }

    fn owner_of(&self, leaf: u32) -> u32 {
        // SAFETY: loom checks the access: a race fails the model.
        self.owners.with(|owners| unsafe { (*owners)[leaf as usize] })
    }

    fn to_node(&self, all: &mut Exclusive<'_, Loom>, leaf: u32) {
        if !all.is_split(leaf) {
            let tuples = self.leaf(leaf, std::mem::take);
            self.node(leaf, |node| node.extend(&tuples.keys[..tuples.count]));
            all.mark_split(leaf);
        }
    }

    /// Returns all keys, after the threads have ended.
    fn keys(&self) -> Vec<u8> {
        let mut keys = Vec::new();
        for leaf in 0..LEAVES as u32 {
            self.leaf(leaf, |leaf| keys.extend(&leaf.keys[..leaf.count.min(PLACES)]));
            self.node(leaf, |node| keys.append(node));
        }
        keys.sort_unstable();
        keys
    }
}

impl Store<Loom> for Small {
    type Change = Operation;
    type Place = ();
    type Tally = ();

    fn protocol(&self) -> &Protocol<Loom> {
        &self.protocol
    }

    fn owner(&self, seat: &Seat<'_, Loom>, leaf: u32) -> u32 {
        assert!(std::ptr::eq(seat.protocol(), &self.protocol));
        if seat.is_split(leaf) { self.owner_of(leaf) } else { leaf }
    }

    fn find(&self, _guard: &mut Guard<'_, Loom>, _operation: &Operation) {}

    fn is_plain(&self, guard: &mut Guard<'_, Loom>, operation: &Operation, (): &()) -> bool {
        if guard.is_split() {
            return true;
        }
        self.leaf(guard.leaf(), |leaf| match operation {
            Insert(_) => leaf.count < PLACES,
            Delete(_) => leaf.count > 1,
        })
    }

    fn plain(&self, guard: &mut Guard<'_, Loom>, operation: &Operation, (): (), (): &mut ()) {
        if guard.is_split() {
            self.node(guard.leaf(), |node| match *operation {
                Insert(key) => node.push(key),
                Delete(key) => node.retain(|&other| other != key),
            });
            return;
        }
        self.leaf(guard.leaf(), |leaf| match *operation {
            Insert(key) => {
                if let Some(place) = leaf.keys.get_mut(leaf.count) {
                    *place = key;
                }
                leaf.count += 1;
            }
            Delete(key) => {
                let at = leaf.keys.iter().position(|&other| other == key).unwrap();
                leaf.keys[at] = leaf.keys[leaf.count - 1];
                leaf.count -= 1;
            }
        });
    }

    fn any(&self, all: &mut Exclusive<'_, Loom>, leaf: u32, operation: &Operation, (): &mut ()) {
        self.to_node(all, leaf);
        let owner = self.owner_of(leaf);
        match *operation {
            Insert(key) => self.node(owner, |node| node.push(key)),
            Delete(key) => {
                self.node(owner, |node| node.retain(|&other| other != key));
                self.to_node(all, 0);
                self.to_node(all, 1);
                let right = self.node(1, std::mem::take);
                self.node(0, |node| node.extend(right));
                // SAFETY: loom checks the access: a race fails the model.
                self.owners.with_mut(|owners| unsafe { *owners = [0, 0] });
            }
        }
    }
}

/// Runs one thread's operations.
fn work<const AGAIN: bool>(tree: &Small, operations: &[Operation], literal: bool) {
    let leaf = |operation: &Operation| match *operation {
        Insert(key) | Delete(key) => u32::from(key >= 10),
    };
    let runs = operations.chunk_by(|left, right| leaf(left) == leaf(right));
    let runs = runs.map(|run| (leaf(&run[0]), run));
    apply::<_, _, AGAIN>(tree, runs, literal, &mut ());
}

/// Runs threads that apply operations to a tree of `keys`, in every order; `wanted` is the expected result.
fn model<const AGAIN: bool>(
    keys: &'static [u8],
    threads: &'static [&'static [Operation]],
    wanted: &'static [u8],
) {
    for literal in [false, true] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(move || {
            let tree = Arc::new(Small::new(keys));
            let others: Vec<_> = threads[1..]
                .iter()
                .map(|&operations| {
                    let tree = tree.clone();
                    loom::thread::spawn(move || work::<AGAIN>(&tree, operations, literal))
                })
                .collect();
            work::<AGAIN>(&tree, threads[0], literal);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(tree.keys(), wanted);
        });
    }
}

#[test]
fn a_leaf_that_fills_between_decision_and_lock() {
    model::<true>(&[1], &[&[Insert(2)], &[Insert(3)]], &[1, 2, 3]);
}

#[test]
fn without_the_second_decision_tuples_are_lost() {
    // On its own thread: a failed model leaves state behind in its thread.
    let mutant = std::thread::spawn(|| model::<false>(&[1], &[&[Insert(2)], &[Insert(3)]], &[1, 2, 3]));
    assert!(mutant.join().is_err());
}

#[test]
fn a_split_beside_a_plain_operation() {
    model::<true>(&[1, 2], &[&[Insert(3)], &[Insert(11)]], &[1, 2, 3, 11]);
}

#[test]
fn a_split_before_or_after_another_operation_on_its_leaf() {
    model::<true>(&[1, 2], &[&[Insert(3)], &[Insert(4)]], &[1, 2, 3, 4]);
}

#[test]
fn a_merge_takes_the_leaf_beside_it() {
    model::<true>(&[1, 11], &[&[Delete(1)], &[Insert(12), Insert(13)]], &[11, 12, 13]);
}

#[test]
fn two_splits_wait_for_each_other() {
    model::<true>(&[1, 2, 11, 12], &[&[Insert(3)], &[Insert(13)]], &[1, 2, 3, 11, 12, 13]);
}
