//! Movement after the batch: the leaves of auxiliary nodes move to their places in the key region.
//!
//! A list names the leaves in their new order: those of the key region by their number, those of auxiliary
//! nodes at the place of the leaves they replace. Leaves that still hold too few keys (their node had no
//! neighbour left to join) are joined with the one beside them; empty ones are dropped.
//!
//! Then every place is known, so all nodes are written in parallel, each once: values and counts with the
//! keys, then the separators and prefix sums above. The extended region is a new one: in place, a node must
//! not be written before the one in its way has been moved. The paper moves from the end, which leaves little
//! to do in parallel.

use super::auxiliary::Piece;
use super::shared::Auxiliaries;
use super::{HarmoniaError, Tree};
use pleach_format::{Bits, Word};

/// The future leaves.
struct Plan<'a, W: Word, B: Bits> {
    tree: &'a Tree<W, B>,
    /// Number of a leaf, or of a piece if the highest bit is set.
    leaves: Vec<u32>,
    pieces: Vec<Piece<W, B>>,
    joined: u64,
}

const PIECE: u32 = 1 << 31;

impl<W: Word, B: Bits> Plan<'_, W, B> {
    fn tuples(&self, leaf: u32) -> (&[W], &[B]) {
        if leaf & PIECE == 0 {
            self.tree.leaf(leaf as usize)
        } else {
            let piece = &self.pieces[(leaf ^ PIECE) as usize];
            (&piece.keys, &piece.values)
        }
    }

    fn len(&self, leaf: u32) -> usize {
        if leaf & PIECE == 0 {
            usize::from(self.tree.counts[self.tree.inner() + leaf as usize])
        } else {
            self.pieces[(leaf ^ PIECE) as usize].len()
        }
    }

    fn take(&mut self, leaf: u32) -> Piece<W, B> {
        if leaf & PIECE == 0 {
            let (keys, values) = self.tree.leaf(leaf as usize);
            Piece::new(keys, values)
        } else {
            std::mem::take(&mut self.pieces[(leaf ^ PIECE) as usize])
        }
    }

    fn push_piece(&mut self, piece: Piece<W, B>) {
        self.leaves.push(self.pieces.len() as u32 | PIECE);
        self.pieces.push(piece);
    }

    /// Adds a leaf at the end; joins it with the one before it if either holds too few keys.
    fn push(&mut self, leaf: u32) {
        let least = self.tree.shape.least;
        let len = self.len(leaf);
        match self.leaves.last() {
            _ if len == 0 => {}
            Some(&before) if len < least || self.len(before) < least => {
                self.leaves.pop();
                let (left, right) = (self.take(before), self.take(leaf));
                let (joined, rest) = left.join(right, self.tree.shape.capacity);
                self.push_piece(joined);
                rest.into_iter().for_each(|rest| self.push_piece(rest));
                self.joined += 1;
            }
            _ => self.leaves.push(leaf),
        }
    }
}

/// Lays out the tree anew; returns the number of joined leaves. O(tuples), on the current pool.
pub(super) fn relayout<W: Word, B: Bits>(
    tree: &mut Tree<W, B>,
    mut auxiliaries: Auxiliaries<W, B>,
) -> Result<u64, HarmoniaError> {
    let leaves = Vec::with_capacity(tree.leaves());
    let mut plan = Plan { tree, leaves, pieces: Vec::new(), joined: 0 };
    let mut leaf = 0;
    while leaf < plan.tree.leaves() {
        match auxiliaries.take(leaf) {
            None => {
                plan.push(leaf as u32);
                leaf += 1;
            }
            Some((pieces, end)) => {
                for piece in pieces {
                    plan.pieces.push(piece);
                    plan.push((plan.pieces.len() - 1) as u32 | PIECE);
                }
                leaf = end;
            }
        }
    }
    let made = Tree::assemble(plan.tree.shape, plan.leaves.len(), |leaf, keys, values| {
        let (from_keys, from_values) = plan.tuples(plan.leaves[leaf]);
        keys[..from_keys.len()].copy_from_slice(from_keys);
        values[..from_values.len()].copy_from_slice(from_values);
        from_keys.len()
    })?;
    let joined = plan.joined;
    debug_assert_eq!(made.tuples, tree.tuples);
    *tree = made;
    Ok(joined)
}
