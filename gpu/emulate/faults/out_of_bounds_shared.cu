// Planted fault: a search whose top in shared memory has a word more than the launch gave it.
//
// Keys at even distances are copied to shared memory, where the search begins. The launch gives a word a thread; the
// copy that is meant to end the list is written behind them, where the sanitizer stops it.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(Word, top);
    u64 each = (columns.tuples + blockDim.x - 1) / blockDim.x;
    u64 mine = threadIdx.x * each;
    top[threadIdx.x] = mine < columns.tuples ? columns.keys[mine] : (Word)~(Word)0;
#if FAULT
    if (threadIdx.x == 0) {
        top[blockDim.x] = (Word)~(Word)0;
    }
#endif
    __syncthreads();
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    Word query = load_query(batch, at);
    u32 part = 0;
    while (part + 1 < blockDim.x && top[part + 1] < query) {
        part++;
    }
    u64 rank = min(part * each, columns.tuples);
    while (rank < columns.tuples && columns.keys[rank] < query) {
        rank++;
    }
    answer_columns(columns, batch, at, query, rank);
}
