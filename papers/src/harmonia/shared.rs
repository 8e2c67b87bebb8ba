//! The tree while a batch is applied: changed by all threads, each under the locks of [`super::protocol`].
//!
//! A thread may touch only what it has a token for, and only the protocol makes tokens. A [`Guard`] is the
//! only one of its leaf: it gives access to the leaf's keys, values and count, or to the auxiliary node that
//! replaces the leaf.
//!
//! A node that replaces several leaves is guarded by the first of them, its owner. The owner changes only
//! under [`Exclusive`], which no thread has while another has a [`Seat`]. While an [`Exclusive`] exists it is
//! the only token; it gives access to everything.

use super::Tree;
use super::arch;
use super::assemble::Shape;
use super::auxiliary::{Auxiliary, Piece};
use super::batch::{Kind, Report, Step};
use super::protocol::{Exclusive, Guard, Native, Protocol, Seat, Seated, Store};
use pleach::internal::prefetch;
use pleach_format::{Bits, Word};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Range;

/// Maximum number of leaves that an auxiliary node may replace when it takes in another: one lock guards all
/// of them.
const RANGE_MAX: u32 = 128;

/// A tree to which a batch is applied.
pub(super) struct Shared<'a, W, B> {
    protocol: Protocol<Native>,
    shape: Shape,
    keys: *mut W,
    values: *mut B,
    counts: *mut u8,
    auxiliaries: UnsafeCell<Auxiliaries<W, B>>,
    tree: PhantomData<&'a mut (W, B)>,
}

/// All auxiliary nodes.
pub(super) struct Auxiliaries<W, B> {
    /// The node that replaces each leaf, counted from 1, or 0.
    pub of: Vec<u32>,
    nodes: Vec<Node<W, B>>,
}

struct Node<W, B> {
    leaves: Range<u32>,
    node: UnsafeCell<Auxiliary<W, B>>,
}

// SAFETY: every access requires a token of the protocol. Two threads with guards touch different leaves, or
// auxiliary nodes of different owners, and read the table of nodes, which nobody changes meanwhile. A thread
// with the exclusive token is alone, and the coarse lock orders it with all others. `Word` and `Bits` values
// may be sent to other threads.
unsafe impl<W: Word, B: Bits> Sync for Shared<'_, W, B> {}

/// A leaf of the key region.
struct Leaf<'a, W, B> {
    /// The whole stride.
    keys: &'a mut [W],
    values: &'a mut [B],
    count: &'a mut u8,
}

/// The place where a key is, or would be.
#[derive(Clone, Copy)]
pub(super) struct Place {
    piece: usize,
    at: usize,
    is_found: bool,
    /// Number of tuples of the leaf or piece.
    len: usize,
}

impl<'a, W: Word, B: Bits> Shared<'a, W, B> {
    /// Wraps a tree that has leaves.
    pub fn new(tree: &'a mut Tree<W, B>) -> Self {
        let (leaves, inner, shape) = (tree.leaves(), tree.inner(), tree.shape);
        let keys = &mut tree.keys[inner * shape.stride..];
        let (values, counts) = (&mut *tree.values, &mut tree.counts[inner..]);
        assert!(keys.len() == leaves * shape.stride && values.len() == leaves * shape.fanout as usize);
        assert!(counts.len() == leaves);
        Self {
            protocol: Protocol::new(leaves as u32),
            shape,
            keys: keys.as_mut_ptr(),
            values: values.as_mut_ptr(),
            counts: counts.as_mut_ptr(),
            auxiliaries: UnsafeCell::new(Auxiliaries { of: vec![0; leaves], nodes: Vec::new() }),
            tree: PhantomData,
        }
    }

    /// Returns the auxiliary nodes, after all operations.
    pub fn finish(self) -> Auxiliaries<W, B> {
        self.auxiliaries.into_inner()
    }

    /// Prefetches the lines of the keys and values of a leaf, as far as loading filled them.
    #[inline(always)]
    pub fn prefetch(&self, leaf: u32) {
        let (words, fanout) = (self.shape.stride, self.shape.fanout as usize);
        let keys = self.keys.wrapping_add(leaf as usize * words);
        for at in (0..self.shape.inner_words).step_by(64 / W::BYTES) {
            prefetch(keys.wrapping_add(at));
        }
        let values = self.values.wrapping_add(leaf as usize * fanout);
        for at in (0..self.shape.node_keys as usize * B::BYTES).step_by(64) {
            prefetch(values.cast::<u8>().wrapping_add(at));
        }
    }

    /// Returns the slots, values and count of a leaf.
    ///
    /// # Safety
    /// The caller has a token for this leaf, and no other view of it while this one lives.
    #[inline(always)]
    unsafe fn view(&self, leaf: u32) -> Leaf<'_, W, B> {
        assert!(leaf < self.protocol.leaves());
        let (leaf, words, values) = (leaf as usize, self.shape.stride, self.shape.fanout as usize);
        // SAFETY: `new` compared the arrays' lengths with the number of leaves, and `leaf` is below it. The
        // tree is borrowed exclusively for `'a`, so nobody else reaches them, and the caller guarantees that
        // it has this leaf alone.
        unsafe {
            Leaf {
                keys: std::slice::from_raw_parts_mut(self.keys.add(leaf * words), words),
                values: std::slice::from_raw_parts_mut(self.values.add(leaf * values), values),
                count: &mut *self.counts.add(leaf),
            }
        }
    }

    #[inline(always)]
    fn leaf<'g>(&'g self, guard: &'g mut Guard<'_, Native>) -> Leaf<'g, W, B> {
        assert!(std::ptr::eq(guard.protocol(), &self.protocol));
        // SAFETY: the protocol guarantees that a guard is the leaf's only token; it is borrowed with the
        // view.
        unsafe { self.view(guard.leaf()) }
    }

    /// Returns the table of nodes.
    #[inline(always)]
    fn table<'g>(&'g self, seated: &'g impl Seated<Native>) -> &'g Auxiliaries<W, B> {
        assert!(std::ptr::eq(seated.protocol(), &self.protocol));
        // SAFETY: the seat is taken while the result is used, so the protocol guarantees that there is no
        // exclusive token; only with one is the table borrowed mutably.
        unsafe { &*self.auxiliaries.get() }
    }

    /// Returns the node that a split leaf owns, and the leaves that it replaces.
    fn node<'g>(&'g self, guard: &'g mut Guard<'_, Native>) -> (&'g mut Auxiliary<W, B>, Range<u32>) {
        let leaf = guard.leaf();
        let table = self.table(&*guard);
        let node = &table.nodes[table.of[leaf as usize] as usize - 1];
        assert!(node.leaves.start == leaf);
        // SAFETY: the protocol guarantees that the guard of the node's owner is the only token for the node;
        // it is borrowed with the result.
        (unsafe { &mut *node.node.get() }, node.leaves.clone())
    }

    fn everything<'e>(&'e self, all: &'e mut Exclusive<'_, Native>) -> &'e mut Auxiliaries<W, B> {
        assert!(std::ptr::eq(all.protocol(), &self.protocol));
        // SAFETY: the protocol guarantees that the exclusive token is the only one; it is borrowed with the
        // result.
        unsafe { &mut *self.auxiliaries.get() }
    }

    /// Returns a leaf to the holder of the exclusive token.
    fn leaf_of_all<'e>(&'e self, all: &'e mut Exclusive<'_, Native>, leaf: u32) -> Leaf<'e, W, B> {
        assert!(std::ptr::eq(all.protocol(), &self.protocol));
        // SAFETY: the protocol guarantees that the exclusive token is the only one; it is borrowed with the
        // view.
        unsafe { self.view(leaf) }
    }
}

impl<W: Word, B: Bits> Auxiliaries<W, B> {
    /// Returns true if no leaf was split or merged.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Takes the node of a leaf, and the end of the range of leaves that it replaces.
    pub fn take(&mut self, leaf: usize) -> Option<(Vec<Piece<W, B>>, usize)> {
        let node = &mut self.nodes[(self.of[leaf] as usize).checked_sub(1)?];
        Some((std::mem::take(&mut node.node.get_mut().pieces), node.leaves.end as usize))
    }
}

impl<W: Word, B: Bits> Leaf<'_, W, B> {
    #[inline(always)]
    fn find(&self, key: W) -> Place {
        let (at, len) = (arch::below(self.keys, key), usize::from(*self.count));
        Place { piece: 0, at, is_found: at < len && self.keys[at] == key, len }
    }

    fn insert(&mut self, at: usize, key: W, value: B) {
        let len = usize::from(*self.count);
        self.keys.copy_within(at..len, at + 1);
        self.values.copy_within(at..len, at + 1);
        (self.keys[at], self.values[at]) = (key, value);
        *self.count += 1;
    }

    fn remove(&mut self, at: usize) {
        let len = usize::from(*self.count);
        self.keys.copy_within(at + 1..len, at);
        self.values.copy_within(at + 1..len, at);
        self.keys[len - 1] = W::MAX;
        *self.count -= 1;
    }
}

impl<W: Word, B: Bits> Piece<W, B> {
    fn insert(&mut self, at: usize, key: W, value: B) {
        self.keys.insert(at, key);
        self.values.insert(at, value);
    }

    fn remove(&mut self, at: usize) {
        self.keys.remove(at);
        self.values.remove(at);
    }
}

fn find_in<W: Word, B: Bits>(node: &Auxiliary<W, B>, key: W) -> Place {
    let (piece, at) = node.find(key);
    let keys = &node.pieces[piece].keys;
    Place { piece, at, is_found: keys.get(at) == Some(&key), len: keys.len() }
}

/// Does one operation at its place in the slots, keys and values of `$leaf`.
macro_rules! operate {
    ($leaf:expr, $values:expr, $step:expr, $place:expr, $tally:expr) => {
        match ($step.kind, $place.is_found) {
            (Kind::Put, false) => {
                $leaf.insert($place.at, $step.key, $step.value);
                $tally.inserted += 1;
            }
            (Kind::Put | Kind::Update, true) => {
                $values[$place.at] = $step.value;
                $tally.updated += 1;
            }
            (Kind::Update, false) => $tally.absent_updates += 1,
            (Kind::Delete, true) => {
                $leaf.remove($place.at);
                $tally.deleted += 1;
            }
            (Kind::Delete, false) => $tally.absent_deletes += 1,
            (Kind::Void, _) => {}
        }
    };
}

impl<W: Word, B: Bits> Shared<'_, W, B> {
    fn can_extend(&self, leaves: &Range<u32>) -> bool {
        let count = leaves.end - leaves.start;
        count < RANGE_MAX && count < self.protocol.leaves()
    }

    /// Returns true if the operation fits; calls `can_merge` if the leaf would hold too few keys.
    #[inline(always)]
    fn fits(&self, step: &Step<W, B>, place: &Place, can_merge: impl FnOnce() -> bool) -> bool {
        match (step.kind, place.is_found) {
            (Kind::Put, false) => place.len < self.shape.capacity,
            (Kind::Delete, true) => place.len > self.shape.least || !can_merge(),
            _ => true,
        }
    }

    /// Returns the node, counted from 0, that replaces a leaf; makes one if there is none.
    fn node_of(&self, all: &mut Exclusive<'_, Native>, leaf: u32) -> usize {
        let table = self.everything(all);
        if let Some(node) = (table.of[leaf as usize] as usize).checked_sub(1) {
            return node;
        }
        let view = self.leaf_of_all(all, leaf);
        let len = usize::from(*view.count);
        let node = Auxiliary::new(Piece::new(&view.keys[..len], &view.values[..len]));
        let table = self.everything(all);
        table.nodes.push(Node { leaves: leaf..leaf + 1, node: UnsafeCell::new(node) });
        table.of[leaf as usize] = table.nodes.len() as u32;
        let node = table.nodes.len() - 1;
        all.mark_split(leaf);
        node
    }

    /// Extends a node to the leaves on its right or, if there are none, to those on its left.
    fn extend(&self, all: &mut Exclusive<'_, Native>, node: usize) -> usize {
        let range = self.everything(all).nodes[node].leaves.clone();
        let (left, right) = if range.end < self.protocol.leaves() {
            (node, self.node_of(all, range.end))
        } else {
            (self.node_of(all, range.start - 1), node)
        };
        let table = self.everything(all);
        let leaves = std::mem::take(&mut table.nodes[right].leaves);
        let after = std::mem::take(table.nodes[right].node.get_mut());
        table.of[leaves.start as usize..leaves.end as usize].fill(left as u32 + 1);
        let into = &mut table.nodes[left];
        into.leaves.end = leaves.end;
        into.node.get_mut().append(after, self.shape.capacity);
        left
    }
}

impl<W: Word, B: Bits> Store<Native> for Shared<'_, W, B> {
    type Change = Step<W, B>;
    type Place = Place;
    type Tally = Report;

    fn protocol(&self) -> &Protocol<Native> {
        &self.protocol
    }

    #[inline(always)]
    fn owner(&self, seat: &Seat<'_, Native>, leaf: u32) -> u32 {
        if !seat.is_split(leaf) {
            return leaf;
        }
        let table = self.table(seat);
        table.nodes[table.of[leaf as usize] as usize - 1].leaves.start
    }

    #[inline(always)]
    fn find(&self, guard: &mut Guard<'_, Native>, step: &Step<W, B>) -> Place {
        if guard.is_split() { find_in(self.node(guard).0, step.key) } else { self.leaf(guard).find(step.key) }
    }

    #[inline(always)]
    fn is_plain(&self, guard: &mut Guard<'_, Native>, step: &Step<W, B>, place: &Place) -> bool {
        self.fits(step, place, || {
            if guard.is_split() {
                let (node, leaves) = self.node(guard);
                node.pieces.len() > 1 || self.can_extend(&leaves)
            } else {
                self.protocol.leaves() > 1
            }
        })
    }

    #[inline(always)]
    fn plain(&self, guard: &mut Guard<'_, Native>, step: &Step<W, B>, place: Place, tally: &mut Report) {
        if guard.is_split() {
            let piece = &mut self.node(guard).0.pieces[place.piece];
            operate!(piece, piece.values, step, place, tally);
        } else {
            let mut leaf = self.leaf(guard);
            operate!(leaf, leaf.values, step, place, tally);
        }
    }

    #[cold]
    fn any(&self, all: &mut Exclusive<'_, Native>, leaf: u32, step: &Step<W, B>, tally: &mut Report) {
        if !all.is_split(leaf) {
            let mut view = self.leaf_of_all(all, leaf);
            let place = view.find(step.key);
            if self.fits(step, &place, || self.protocol.leaves() > 1) {
                operate!(view, view.values, step, place, tally);
                return;
            }
        }
        let mut node = self.node_of(all, leaf);
        let capacity = self.shape.capacity;
        let entry = &mut self.everything(all).nodes[node];
        let (leaves, auxiliary) = (entry.leaves.clone(), entry.node.get_mut());
        let mut place = find_in(auxiliary, step.key);
        if step.kind == Kind::Put && !place.is_found && place.len >= capacity {
            auxiliary.split(place.piece);
            tally.splits += 1;
            place = find_in(auxiliary, step.key);
        }
        let piece = &mut auxiliary.pieces[place.piece];
        operate!(piece, piece.values, step, place, tally);
        if step.kind != Kind::Delete || !place.is_found || piece.len() >= self.shape.least {
            return;
        }
        if auxiliary.pieces.len() > 1 {
            auxiliary.join(place.piece, capacity);
            tally.merges += 1;
        } else if self.can_extend(&leaves) {
            node = self.extend(all, node);
            debug_assert!(!self.everything(all).nodes[node].leaves.is_empty());
            tally.merges += 1;
        }
    }
}
