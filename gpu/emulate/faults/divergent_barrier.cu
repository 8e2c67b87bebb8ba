// Planted fault: a search whose barrier stands in a loop that threads leave at different turns.
//
// Blocks take the queries in rounds and fetch a tile of queries to shared memory in each. If the loop ends for each
// thread at its own query and not for the block, the threads past the last query go on to the barrier after the loop
// while the others are at the one inside.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(Word, tile);
    u64 step = (u64)gridDim.x * blockDim.x;
#if FAULT
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < batch.count; at += step) {
#else
    for (u64 base = (u64)blockIdx.x * blockDim.x; base < batch.count; base += step) {
        u64 at = base + threadIdx.x;
#endif
        u32 turned = blockDim.x - 1 - threadIdx.x;
        tile[turned] = load_query(batch, at - threadIdx.x + turned);
        __syncthreads();
        Word query = tile[threadIdx.x];
        u64 rank = 0;
        for (u64 end = columns.tuples; rank < end;) {
            u64 middle = rank + (end - rank) / 2;
            bool below = columns.keys[middle] < query;
            rank = below ? middle + 1 : rank;
            end = below ? end : middle;
        }
        answer_columns(columns, batch, at, query, rank);
        __syncthreads();
    }
    __syncthreads();
}
