//! Parts of both inputs, which are processed alone.

/// Part of both inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub left: (usize, usize),
    pub right: (usize, usize),
}

impl Part {
    /// Returns the numbers of tuples of both sides.
    pub(crate) fn tuples(&self) -> (usize, usize) {
        (self.left.1 - self.left.0, self.right.1 - self.right.0)
    }
}

/// Rule for cutting the inputs of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    /// Equal keys in pairs: see [`super::cut::balanced`].
    Balanced,
    /// Left tuples before equal right ones; a part reads the right tuple after it, too.
    Merge,
}
