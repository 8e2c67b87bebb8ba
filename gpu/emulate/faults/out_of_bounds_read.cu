// Planted fault: a search that probes the key at its rank, also where the rank is the number of tuples.
//
// Binary search, one query a thread. The rank of a query above all keys is one past the last key, so that the probe
// reads behind the array: the sanitizer stops it. Right is to ask for the rank first.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    Word query = load_query(batch, at);
    u64 rank = 0, end = columns.tuples;
    while (rank < end) {
        u64 middle = rank + (end - rank) / 2;
        if (columns.keys[middle] < query) {
            rank = middle + 1;
        } else {
            end = middle;
        }
    }
#if FAULT
    bool found = columns.keys[rank] == query;
#else
    bool found = rank < columns.tuples && columns.keys[rank] == query;
#endif
    answer_rank(batch, at, rank);
    answer_value(batch, at, found, found ? ((const Value*)columns.values)[rank] : 0);
}
