// P-ary search of the contiguous B+tree (btree.cuh): P_ARY threads, a power of two, search for one query together.

// Threads that answer 32 queries at once if a query's threads are in a warp, else one.
#if P_ARY <= 32
#define GROUP_THREADS (32 * P_ARY)
#define QUERIES 32u
#else
#define GROUP_THREADS P_ARY
#define QUERIES 1u
#endif

// How many of a query's threads say yes; all threads of the block are here.
__device__ __forceinline__ u32 group_count(bool yes) {
#if P_ARY <= 32
    u32 first = threadIdx.x & (WARP - 1) & ~(P_ARY - 1u);
    return __popc(__ballot_sync(FULL, yes) >> first & (FULL >> (32 - P_ARY)));
#else
    return (u32)__syncthreads_count(yes);
#endif
}

// P-ary search in each node, all threads of a block in step: as many rounds a node as the largest takes, as many nodes
// as levels, whatever metadata says.
__device__ __forceinline__ Place search_tree(const Btree& tree, Word query) {
    u32 member = threadIdx.x % P_ARY;
    u32 rounds = 0;
    for (u32 size = tree.order - 1; size > 0; size = (size + P_ARY - 1) / P_ARY - 1) {
        rounds++;
    }
    Place place = {0, false};
    u64 at = 0;
    for (u32 left = tree.levels; left > 0; left--) {
        Node node = load_node(tree, at);
        const Word* keys = tree.keys + node.first_key;
        // Keys before `low` are below the query, those from `low + size` on are not.
        u32 low = 0, size = node.count;
        for (u32 round = 0; round < rounds; round++) {
            u32 step = (size + P_ARY - 1) / P_ARY;
            // The last key of this thread's part; with nothing left, no key.
            u32 last = (member + 1) * step - 1;
            u32 parts = group_count(last < size && keys[low + last] < query);
            low += parts * step;
            size = min(step - 1, size - parts * step);
        }
        u64 next = node.first + low;
        if (left == 1) {
            place.rank = min(next, tree.tuples);
            place.found = low < node.count && next < tree.tuples && keys[low] == query;
        }
        at = min(next, tree.node_count - 1);
    }
    return place;
}

// Blocks of 32 P_ARY threads up to P_ARY = 32, each for 32 queries; of P_ARY threads above, each for a query, whose bit
// of presence is then or-ed into **words that were zero**. Any grid.
extern "C" __global__ void __launch_bounds__(GROUP_THREADS)
    btree_pary(const __grid_constant__ Btree tree, const __grid_constant__ Batch batch) {
#if P_ARY <= 32
    // Two, so that one barrier a turn is enough.
    __shared__ u64 ranks[2][32];
    __shared__ u32 hits[2][32];
    u32 turn = 0;
#endif
    u64 queries = (u64)gridDim.x * QUERIES;
    for (u64 base = (u64)blockIdx.x * QUERIES; base < batch.count; base += queries) {
        Place place = search_tree(tree, load_query(batch, base + threadIdx.x / P_ARY));
#if P_ARY <= 32
        if (threadIdx.x % P_ARY == 0) {
            ranks[turn][threadIdx.x / P_ARY] = place.rank;
            hits[turn][threadIdx.x / P_ARY] = place.found;
        }
        __syncthreads();
        if (threadIdx.x < WARP) {
            u64 at = base + threadIdx.x, rank = ranks[turn][threadIdx.x];
            bool found = hits[turn][threadIdx.x] != 0;
            answer_rank(batch, at, rank);
            copy_value(tree.values, batch, at, found, rank);
            answer_present(batch, at, found);
        }
        turn ^= 1;
#else
        if (threadIdx.x == 0) {
            answer_rank(batch, base, place.rank);
            copy_value(tree.values, batch, base, place.found, place.rank);
            if (batch.present != nullptr && place.found) {
                atomicOr(batch.present + base / 32, 1u << (base & 31));
            }
        }
#endif
    }
}
