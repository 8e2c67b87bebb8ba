// Planted fault: a search that leaves the last part of a batch unanswered.
//
// The launch has a block for each full number of threads; the queries after the last full block are nobody's. The
// answers there stay what they were.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
#if FAULT
    u64 rounds = batch.count / blockDim.x;
#else
    u64 rounds = (batch.count + blockDim.x - 1) / blockDim.x;
#endif
    for (u64 round = blockIdx.x; round < rounds; round += gridDim.x) {
        u64 at = round * blockDim.x + threadIdx.x;
        Word query = load_query(batch, at);
        u64 rank = 0;
        for (u64 end = columns.tuples; rank < end;) {
            u64 middle = rank + (end - rank) / 2;
            bool below = columns.keys[middle] < query;
            rank = below ? middle + 1 : rank;
            end = below ? end : middle;
        }
        answer_columns(columns, batch, at, query, rank);
    }
}
