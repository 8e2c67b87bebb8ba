//! Auxiliary nodes: they replace leaves that split or merge until the batch is done.
//!
//! The key region has no room between two nodes. So a leaf that splits moves to an auxiliary node, which
//! holds the resulting leaves and the separators between them (the full child references of the paper). It
//! represents a range of neighbouring leaves, at first a single one; a merge that finds no partner in it
//! takes in the leaf, or the auxiliary node, beside it.
//!
//! Later operations on one of these leaves continue here. Leaves of a node are split in halves. A leaf below
//! the minimum number of keys is joined with a neighbour, into one leaf if they fit, otherwise into two of
//! equal size.

use pleach_format::{Bits, Word};

/// A leaf outside of the key region.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece<W, B> {
    pub keys: Vec<W>,
    pub values: Vec<B>,
}

impl<W: Word, B: Bits> Piece<W, B> {
    /// Copies tuples into a new piece.
    pub fn new(keys: &[W], values: &[B]) -> Self {
        Self { keys: keys.to_vec(), values: values.to_vec() }
    }

    /// Returns the number of tuples.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self { keys: self.keys.split_off(at), values: self.values.split_off(at) }
    }

    /// Joins two neighbours into one leaf, or into two of equal size if one cannot hold them.
    pub fn join(mut self, mut right: Self, capacity: usize) -> (Self, Option<Self>) {
        self.keys.append(&mut right.keys);
        self.values.append(&mut right.values);
        let half = self.len().div_ceil(2);
        let right = (self.len() > capacity).then(|| self.split_off(half));
        (self, right)
    }
}

/// Leaves that replace a range of leaves of the key region.
#[derive(Debug, Default)]
pub(super) struct Auxiliary<W, B> {
    /// The last key that belongs to each piece but the last.
    bounds: Vec<W>,
    pub pieces: Vec<Piece<W, B>>,
}

impl<W: Word, B: Bits> Auxiliary<W, B> {
    /// Creates the node of one leaf.
    pub fn new(leaf: Piece<W, B>) -> Self {
        Self { bounds: Vec::new(), pieces: vec![leaf] }
    }

    /// Returns the piece of a key, and the number of its keys below it.
    pub fn find(&self, key: W) -> (usize, usize) {
        let piece = self.bounds.partition_point(|&bound| bound < key);
        (piece, self.pieces[piece].keys.partition_point(|&other| other < key))
    }

    /// Splits a piece of two or more keys in halves.
    pub fn split(&mut self, piece: usize) {
        let left = &mut self.pieces[piece];
        let right = left.split_off(left.len().div_ceil(2));
        self.bounds.insert(piece, left.keys[left.len() - 1]);
        self.pieces.insert(piece + 1, right);
    }

    /// Joins a piece with a neighbour, which must exist.
    pub fn join(&mut self, piece: usize, capacity: usize) {
        let left = piece.min(self.pieces.len() - 2);
        let right = self.pieces.remove(left + 1);
        let (joined, rest) = std::mem::take(&mut self.pieces[left]).join(right, capacity);
        match rest {
            Some(rest) => {
                self.bounds[left] = joined.keys[joined.len() - 1];
                self.pieces.insert(left + 1, rest);
            }
            None => {
                self.bounds.remove(left);
            }
        }
        self.pieces[left] = joined;
    }

    /// Takes in the node after this one and joins the two pieces where they meet.
    pub fn append(&mut self, mut after: Self, capacity: usize) {
        let last = self.pieces.len() - 1;
        // The separator of two pieces that are joined at once may have any value.
        self.bounds.push(W::default());
        self.bounds.append(&mut after.bounds);
        self.pieces.append(&mut after.pieces);
        self.join(last, capacity);
    }
}
