// Planted fault: a search whose lanes past the last query return before the warp votes.
//
// The bits of presence are the vote of all 32 lanes. A lane that has returned cannot vote: the mask names it all the
// same. Right is that it goes on with the last query, and answers nothing.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
#if FAULT
    if (at >= batch.count) {
        return;
    }
#endif
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
