// Binary search of sorted keys: one query a thread.
//
// `binary` halves without a branch, so that all threads take the same number of steps. Keys are words as they are
// compared, so nothing is swapped.
//
// Launch: blocks of a multiple of 32 threads, any number of blocks.

// The first query of this thread's warp, and how many queries all threads take at a time.
__device__ __forceinline__ u64 first_query() { return (u64)blockIdx.x * blockDim.x + (threadIdx.x & ~31u); }
__device__ __forceinline__ u64 queries_at_once() { return (u64)gridDim.x * blockDim.x; }

// The rank of a query, which is from `rank` to `rank + length`; a length of one or more.
__device__ __forceinline__ u64 lower_bound(const Word* keys, u64 rank, u64 length, Word query) {
    while (length > 1) {
        u64 half = length / 2, middle = rank + half;
        rank = keys[middle - 1] < query ? middle : rank;
        length -= half;
    }
    return rank + (keys[rank] < query ? 1 : 0);
}

extern "C" __global__ void __launch_bounds__(1024)
    binary(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x & 31;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        Word query = load_query(batch, base + lane);
        u64 rank = lower_bound(columns.keys, 0, columns.tuples, query);
        answer_columns(columns, batch, base + lane, query, rank);
    }
}
