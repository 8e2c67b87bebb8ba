// The contiguous B+tree of the paper on search on an APU: node metadata, then keys, then values.
//
// Metadata is 16 bytes a node, level by level from the root: key count, index of the first key, index of the first
// child or first value, leaf flag. A node of order m has at most m children and m - 1 keys, in slots rounded up to a
// multiple of four, so that with order 16 its keys are the paper's line of 64 bytes; unused slots are all ones. A
// separator is the last key of the child left of it, so the child after all separators below a query has the query's
// lower bound, equal keys or not. Values are the sorted column: a leaf's first value is the rank of its first key.
//
// `btree` is the paper's: a query a thread, several one after the other; a binary search among a node's lines, then
// a scan of one line, loaded at once. `btree_pary` gives P_ARY threads, a power of two, to a query (if it is not 0).
// `btree_build` makes metadata and keys, the same bytes as btree.rs. Stored numbers are clamped before use.

// The same as Tree in algorithm/btree.rs. `keys` has `slots` words, node_count times the slots of a node.
struct Btree {
    const uint4* nodes;
    const Word* keys;
    const void* values;
    u64 node_count;
    u64 slots;
    u64 tuples;
    u32 levels;
    u32 order;
};
static_assert(sizeof(Btree) == BYTES_OF_BTREE, "as in algorithm/btree.rs");

// Slots of a node.
__device__ __forceinline__ u32 slots_of(u32 order) { return (order + 2) & ~3u; }

struct Node {
    u64 first_key;
    u64 first;
    u32 count;
    bool leaf;
};

__device__ __forceinline__ Node load_node(const Btree& tree, u64 at) {
    uint4 raw = __ldg(tree.nodes + at);
    Node node;
    u64 first_key = (u64)(raw.z & 0xFFFFu) << 32 | raw.x;
    node.first_key = min(first_key, tree.slots - slots_of(tree.order)) & ~(u64)3;
    node.first = (u64)(raw.z >> 16) << 32 | raw.y;
    node.count = min(raw.w & 0xFFFFu, tree.order - 1);
    node.leaf = raw.w >> 31 != 0;
    return node;
}

// Where a lower bound is, and whether it is the query.
struct Place {
    u64 rank;
    bool found;
};

#if P_ARY == 0

#define VECTOR_KEYS (16u / WORD_BYTES)
// Vectors of a line.
#define LINE 4u

// Compares the keys in 16 bytes: how many are below the query, and whether one equals it.
__device__ __forceinline__ u32 compare(uint4 keys, Word query, bool& equal) {
#if WORD_BYTES == 4
    equal |= keys.x == query || keys.y == query || keys.z == query || keys.w == query;
    return (u32)(keys.x < query) + (u32)(keys.y < query) + (u32)(keys.z < query) + (u32)(keys.w < query);
#elif WORD_BYTES == 8
    u64 first = (u64)keys.y << 32 | keys.x, second = (u64)keys.w << 32 | keys.z;
    equal |= first == query || second == query;
    return (u32)(first < query) + (u32)(second < query);
#else
    u128 key = (u128)((u64)keys.w << 32 | keys.z) << 64 | ((u64)keys.y << 32 | keys.x);
    equal |= key == query;
    return (u32)(key < query);
#endif
}

// How many keys of a node are below the query. `equal`: whether one of its slots equals it.
__device__ __forceinline__ u32 search_node(const Btree& tree, const Node& node, Word query, bool& equal) {
    const Word* keys = tree.keys + node.first_key;
    u32 vectors = slots_of(tree.order) / VECTOR_KEYS;
    // The first line whose last key is not below, or the last line.
    u32 line = 0, size = (vectors - 1) / LINE;
    while (size > 0) {
        u32 half = size / 2;
        bool below = keys[(line + half + 1) * LINE * VECTOR_KEYS - 1] < query;
        line = below ? line + half + 1 : line;
        size = below ? size - half - 1 : half;
    }
    u32 begin = line * LINE;
    uint4 parts[LINE];
#pragma unroll
    for (u32 i = 0; i < LINE; i++) {
        parts[i] = make_uint4(FULL, FULL, FULL, FULL);
        if (begin + i < vectors) {
            parts[i] = __ldg((const uint4*)keys + begin + i);
        }
    }
    u32 below = begin * VECTOR_KEYS;
    equal = false;
#pragma unroll
    for (u32 i = 0; i < LINE; i++) {
        below += compare(parts[i], query, equal);
    }
    // Unused slots are never below. They equal a query of all ones, but are met only behind the last tuple.
    return min(below, node.count);
}

__device__ __forceinline__ Place search_tree(const Btree& tree, Word query) {
    Place place = {0, false};
    u64 at = 0;
    for (u32 left = tree.levels; left > 0; left--) {
        Node node = load_node(tree, at);
        bool equal;
        u64 next = node.first + search_node(tree, node, query, equal);
        if (node.leaf || left == 1) {
            place.rank = min(next, tree.tuples);
            place.found = equal && next < tree.tuples;
            break;
        }
        at = min(next, tree.node_count - 1);
    }
    return place;
}

// A whole warp answers together, as `answer_columns`.
__device__ __forceinline__ void answer_place(const Btree& tree, const Batch& batch, u64 at, Place place) {
    answer_rank(batch, at, place.rank);
    if (batch.values == nullptr && batch.present == nullptr) {
        return;
    }
    copy_value(tree.values, batch, at, place.found, place.rank);
    answer_present(batch, at, place.found);
}

// Any grid of blocks of up to 256 threads, in whole warps.
extern "C" __global__ void __launch_bounds__(256)
    btree(const __grid_constant__ Btree tree, const __grid_constant__ Batch batch) {
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - threadIdx.x % WARP < batch.count; at += threads) {
        Place place = search_tree(tree, load_query(batch, at));
        answer_place(tree, batch, at, place);
    }
}

// Most levels: of 2^46 tuples with order 4.
#define BTREE_LEVELS 24

// A level from the root; the same as Level in btree.rs. Its nodes share the items: children, or keys of leaves. All are
// full but the last, and the last but one if they share what is left; the last has `last` items.
struct BtreeLevel {
    u64 first_node;
    u64 nodes;
    u64 items;
    u64 last;
};

// The same as Build in algorithm/btree.rs.
struct BtreeBuild {
    const Word* column;
    uint4* nodes;
    Word* keys;
    u64 node_count;
    u64 slots;
    u32 levels;
    u32 order;
    BtreeLevel level[BTREE_LEVELS];
};
static_assert(sizeof(BtreeBuild) == BYTES_OF_BTREE_BUILD, "as in algorithm/btree.rs");

// The first item of a level's node; of the node after the last one, the number of items.
__device__ __forceinline__ u64 first_item(const BtreeBuild& tree, u32 level, u64 node) {
    const BtreeLevel& those = tree.level[level];
    u64 full = level + 1 == tree.levels ? tree.order - 1 : tree.order;
    if (node + 1 < those.nodes) {
        return node * full;
    }
    return node < those.nodes ? those.items - those.last : those.items;
}

// A thread for each slot of a key, and for the metadata of the node that it begins. Any grid of any blocks.
extern "C" __global__ void btree_build(const __grid_constant__ BtreeBuild tree) {
    u32 stride = slots_of(tree.order);
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 slot = (u64)blockIdx.x * blockDim.x + threadIdx.x; slot < tree.slots; slot += threads) {
        // Division of 64 bits is slow.
        u64 number = tree.slots >> 32 == 0 ? (u64)((u32)slot / stride) : slot / stride;
        u32 place = (u32)(slot - number * stride);
        u32 level = tree.levels - 1;
        while (level > 0 && number < tree.level[level].first_node) {
            level--;
        }
        bool leaf = level + 1 == tree.levels;
        u64 node = number - tree.level[level].first_node;
        u64 first = first_item(tree, level, node);
        u32 items = (u32)(first_item(tree, level, node + 1) - first);
        u32 count = leaf ? items : items - 1;
        Word key = ~(Word)0;
        if (place < count) {
            // Tuples up to the last one of a child.
            u64 end = first + place + 1;
            for (u32 below = level + 1; below < tree.levels; below++) {
                end = first_item(tree, below, end);
            }
            key = tree.column[end - 1];
        }
        tree.keys[slot] = key;
        if (place == 0) {
            u64 target = leaf ? first : tree.level[level + 1].first_node + first;
            u32 high = (u32)(slot >> 32) | (u32)(target >> 32) << 16;
            tree.nodes[number] = make_uint4((u32)slot, (u32)target, high, count | (leaf ? 0x80000000u : 0u));
        }
    }
}

#else

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

#endif
