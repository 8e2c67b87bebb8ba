//! How the operators in memory divide their work, and the limit of an answer.

/// Tuples per part, of both sides together: its keys and its output stay in the second-level cache, four
/// parts at a time.
const PART_TUPLES: usize = 8 << 10;

/// Size of the units of work, which affects only speed, and the limit of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tuples per part, of both sides together, at least 1.
    pub part_tuples: usize,
    /// Output tuples per piece, at least 1, for a join whose output is larger than its input.
    pub piece_tuples: usize,
    /// Maximum bytes of an answer.
    pub memory_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = pleach_builder::options::physical_memory_bytes();
        Self { part_tuples: PART_TUPLES, piece_tuples: 64 << 10, memory_bytes }
    }
}
