// Binary search of sorted keys, one query a thread, in the forms of the slides on searching with GPUs.
//
// `binary_top` halves without a branch and keeps the upper levels of that search in shared memory, as a tree whose node
// i has the children 2i and 2i + 1. Keys are words as they are compared, so nothing is swapped.
//
// For WORD_BYTES 16 also the three steps of the slides, over strings of 16 characters as they lie, the first character
// first: compared byte by byte (`binary_bytes`), as four words whose bytes are swapped (`binary_swap`), and with the
// query and the probed string put into shared memory (`binary_cached`). Where theirs stop at any equal string, these
// go on to the first. `swap_keys` makes such strings of words, and words of them.
//
// Launch: blocks of a multiple of 32 threads, any number of blocks.

// The same as TopColumns in search/binary.rs. The top takes 2^levels words of shared memory, of which one is unused.
struct TopColumns {
    Columns columns;
    u64 levels;
};
static_assert(sizeof(TopColumns) == BYTES_OF_TOP_COLUMNS, "TopColumns in search/binary.rs");

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
    binary_top(const __grid_constant__ TopColumns table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(Word, top);
    const Columns& columns = table.columns;
    // A level more would probe an empty part.
    u32 most = columns.tuples < 2 ? 0 : 64 - (u32)__clzll((long long)(columns.tuples - 1));
    u32 levels = min((u32)table.levels, most);
    for (u32 node = 1 + threadIdx.x; node >> levels == 0; node += blockDim.x) {
        // The bits of a node below its highest one say how the search came there.
        u64 rank = 0, length = columns.tuples;
        for (u32 bit = 31 - (u32)__clz((int)node); bit-- > 0;) {
            u64 half = length / 2;
            rank += (node >> bit & 1) != 0 ? half : 0;
            length -= half;
        }
        top[node] = columns.keys[rank + length / 2 - 1];
    }
    __syncthreads();
    u32 lane = threadIdx.x & 31;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        Word query = load_query(batch, base + lane);
        u64 rank = 0, length = columns.tuples;
        u32 node = 1;
        for (u32 level = 0; level < levels; level++) {
            u64 half = length / 2;
            bool below = top[node] < query;
            rank += below ? half : 0;
            node = 2 * node + (below ? 1 : 0);
            length -= half;
        }
        rank = lower_bound(columns.keys, rank, length, query);
        answer_columns(columns, batch, base + lane, query, rank);
    }
}

#if WORD_BYTES == 16

// The same as Swap in search/binary.rs; both may be the same column.
struct Swap {
    const uint4* from;
    uint4* to;
    u64 count;
};
static_assert(sizeof(Swap) == BYTES_OF_SWAP, "Swap in search/binary.rs");

__device__ __forceinline__ u32 swapped(u32 x) { return __byte_perm(x, 0, 0x0123); }

extern "C" __global__ void __launch_bounds__(1024) swap_keys(const __grid_constant__ Swap swap) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < swap.count; i += (u64)gridDim.x * blockDim.x) {
        uint4 key = swap.from[i], turned;
        turned.x = swapped(key.w), turned.y = swapped(key.z), turned.z = swapped(key.y), turned.w = swapped(key.x);
        swap.to[i] = turned;
    }
}

// Where a query of the batch lies; past the last one, where the last one lies.
__device__ __forceinline__ const uint4* string_of(const Batch& batch, u64 at) {
    return (const uint4*)batch.queries + (at < batch.count ? at : batch.count - 1);
}

__device__ __forceinline__ bool bytes_above(const u8* a, const u8* b) {
    u32 i = 0;
    while (i < 15 && a[i] == b[i]) {
        i++;
    }
    return a[i] > b[i];
}

__device__ __forceinline__ bool words_above(const uint4* a, const uint4* b) {
    if (a->x != b->x) {
        return swapped(a->x) > swapped(b->x);
    }
    if (a->y != b->y) {
        return swapped(a->y) > swapped(b->y);
    }
    if (a->z != b->z) {
        return swapped(a->z) > swapped(b->z);
    }
    return swapped(a->w) > swapped(b->w);
}

extern "C" __global__ void __launch_bounds__(1024)
    binary_bytes(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x & 31;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        const u8* query = (const u8*)string_of(batch, base + lane);
        u64 rank = 0, length = columns.tuples;
        while (length > 0) {
            u64 middle = rank + length / 2;
            bool above = bytes_above(query, (const u8*)(columns.keys + middle));
            rank = above ? middle + 1 : rank;
            length = above ? (length - 1) / 2 : length / 2;
        }
        // Equality needs no order: words serve.
        answer_columns(columns, batch, base + lane, load_query(batch, base + lane), rank);
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    binary_swap(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x & 31;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        const uint4* query = string_of(batch, base + lane);
        u64 rank = 0, length = columns.tuples;
        while (length > 0) {
            u64 middle = rank + length / 2;
            bool above = words_above(query, (const uint4*)columns.keys + middle);
            rank = above ? middle + 1 : rank;
            length = above ? (length - 1) / 2 : length / 2;
        }
        answer_columns(columns, batch, base + lane, load_query(batch, base + lane), rank);
    }
}

// Two strings of shared memory a thread.
extern "C" __global__ void __launch_bounds__(1024)
    binary_cached(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, cache);
    u32 lane = threadIdx.x & 31;
    uint4* own = cache + 2 * threadIdx.x;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        own[0] = *string_of(batch, base + lane);
        u64 rank = 0, length = columns.tuples;
        while (length > 0) {
            u64 middle = rank + length / 2;
            own[1] = ((const uint4*)columns.keys)[middle];
            bool above = words_above(own, own + 1);
            rank = above ? middle + 1 : rank;
            length = above ? (length - 1) / 2 : length / 2;
        }
        answer_columns(columns, batch, base + lane, load_query(batch, base + lane), rank);
    }
}

#endif
