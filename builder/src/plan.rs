//! Division of the memory limit among all large buffers of a build.

/// Bytes of a piece: the unit of one write call.
pub(crate) const PIECE_BYTES: usize = 2 << 20;
/// Tuple lines per piece.
pub(crate) const PIECE_LINES: usize = PIECE_BYTES / pleach_format::layout::LINE_BYTES;
/// Minimum number of tuple lines below a grid: fewer are found as fast by their spine.
pub(crate) const GRID_LINES_MIN: u64 = 64;
/// Number of pieces held back until it is certain that the LINE section is a large one; the first is not a whole
/// one.
pub(crate) const HELD_PIECES: usize = pleach_format::section::LARGE_SECTION_BYTES as usize / PIECE_BYTES + 1;
/// Number of pieces that are filled and written at the same time.
pub(crate) const PIECES_IN_FLIGHT: usize = 6;
/// Minimum number of tuples in a spilled run.
const RUN_TUPLES_MIN: u64 = 1024;
/// Minimum number of runs merged at once.
const WAYS_MIN: usize = 4;
/// Maximum number of runs merged at once.
const WAYS_MAX: usize = 1024;
/// Size of a run's buffer above which reading gets no faster.
const RUN_BUFFER_BYTES: u64 = 256 << 10;

/// Shares of the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Maximum number of tuples in a chunk of input.
    pub chunk_tuples: usize,
    /// Number of tuples sorted in memory at once (there is a scratch buffer of the same size).
    pub sort_tuples: usize,
    /// Maximum number of runs merged at once.
    pub merge_ways: usize,
    /// Bytes for the buffers of all runs that are merged at once.
    pub merge_bytes: u64,
    /// Number of lines of the spine's bottom level that stay in memory.
    pub spine_lines: usize,
    /// Bytes for the last keys of lines that stay in memory for the grid.
    pub lasts_bytes: usize,
}

impl Plan {
    /// Divides `memory_bytes` for tuples of `tuple_bytes` in memory.
    pub(crate) fn new(memory_bytes: u64, tuple_bytes: usize) -> Self {
        let tuple_bytes = tuple_bytes as u64;
        let chunk_bytes = (memory_bytes / 32).clamp(64 << 10, 8 << 20);
        let spine_bytes = (memory_bytes / 16).max(64 << 10);
        let pieces = ((HELD_PIECES + PIECES_IN_FLIGHT) * PIECE_BYTES) as u64;
        // Two chunks in flight, as much again inside the source, the groups of a sort, lines of a run that is
        // being written, and small things.
        let fixed = pieces + 4 * chunk_bytes + 2 * spine_bytes + (20 << 20) + (4 << 20);
        let sort_bytes = memory_bytes.saturating_sub(fixed).max(memory_bytes / 4);
        let sort_tuples = (sort_bytes / 2 / tuple_bytes).max(RUN_TUPLES_MIN);
        let merge_bytes = sort_bytes.saturating_sub(2 * chunk_bytes).max(sort_bytes / 2);
        Self {
            chunk_tuples: (chunk_bytes / tuple_bytes) as usize,
            sort_tuples: usize::try_from(sort_tuples).unwrap_or(usize::MAX / 64),
            merge_ways: ((merge_bytes / RUN_BUFFER_BYTES) as usize).clamp(WAYS_MIN, WAYS_MAX),
            merge_bytes,
            spine_lines: (spine_bytes / 64) as usize,
            lasts_bytes: spine_bytes as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_inside_the_limit() {
        for memory_bytes in [128u64 << 20, 256 << 20, 1 << 30, 64 << 30] {
            for tuple_bytes in [4usize, 8, 16] {
                let plan = Plan::new(memory_bytes, tuple_bytes);
                let sorting = 2 * (plan.sort_tuples * tuple_bytes) as u64;
                let chunks = 4 * (plan.chunk_tuples * tuple_bytes) as u64;
                let pieces = ((HELD_PIECES + PIECES_IN_FLIGHT) * PIECE_BYTES) as u64;
                let lists = plan.spine_lines as u64 * 64 + plan.lasts_bytes as u64;
                assert!(sorting + chunks + pieces + lists <= memory_bytes, "{plan:?}");
            }
        }
    }

    #[test]
    fn tiny_limits_have_floors() {
        let plan = Plan::new(1, 16);
        assert!(plan.sort_tuples >= 1024 && plan.merge_ways >= 2 && plan.chunk_tuples >= 1024);
    }
}
