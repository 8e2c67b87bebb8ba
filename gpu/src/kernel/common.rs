//! Structs that kernels share: those of common.cuh.

/// A batch of queries and the addresses of its answers: `Batch` of common.cuh. An address of 0 means that
/// this answer is not requested.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Batch {
    /// Address of the queries: words, or keys of the type in `kind`.
    pub queries: u64,
    /// Number of queries.
    pub count: u64,
    /// Address of the values.
    pub values: u64,
    /// Address of the presence bitmap, in words of 32 bits.
    pub present: u64,
    /// Address of the ranks.
    pub ranks: u64,
    /// Encoding of a query as a word: 0 it is a word, 1 the sign bit is flipped, 2 it is a float.
    pub kind: u16,
    /// 0: `present` is a bitmap. 1: it has a byte for each query, 1 if its key is present, else 0.
    pub present_bytes: u16,
    /// Bytes per rank, 4 or 8.
    pub rank_bytes: u16,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: u16,
}

/// Sorted keys and values on a device: `Columns` of common.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Columns {
    /// Address of the words.
    pub keys: u64,
    /// Address of the values; 0 if there are none.
    pub values: u64,
    /// Number of tuples.
    pub tuples: u64,
}
