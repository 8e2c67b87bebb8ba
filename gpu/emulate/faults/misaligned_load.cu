// Planted fault: a search that loads two keys at once from an odd place.
//
// The last step of the search compares a pair of keys, loaded as 16 bytes. The pair begins at the rank, which may be
// odd, and a GPU refuses such a load: the sanitizer does, too. Right is the pair around the rank that is aligned.

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    Word query = load_query(batch, at);
    u64 rank = 0, end = columns.tuples;
    while (end - rank > 1) {
        u64 middle = rank + (end - rank) / 2;
        bool below = columns.keys[middle - 1] < query;
        rank = below ? middle : rank;
        end = below ? end : middle;
    }
#if FAULT
    u64 pair = rank;
#else
    u64 pair = rank & ~1ull;
#endif
    if (pair + 2 <= columns.tuples) {
        ulonglong2 keys = __ldg((const ulonglong2*)(columns.keys + pair));
        rank = pair + (keys.x < query) + (keys.y < query);
    } else {
        rank += columns.keys[rank] < query;
    }
    answer_columns(columns, batch, at, query, rank);
}
