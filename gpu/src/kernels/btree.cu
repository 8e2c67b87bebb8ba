// The contiguous B+tree (btree.cuh): its search, and its builder.
//
// `btree` is the paper's: a query a thread, several one after the other; a binary search among a node's lines, then
// a scan of one line, loaded at once. `btree_build` makes metadata and keys, the same bytes as btree.rs.

#define VECTOR_KEYS (16u / STORED_BYTES)
// Vectors of a line.
#define LINE 4u

// Compares the keys in 16 bytes: how many are below the query, and whether one equals it.
__device__ __forceinline__ u32 compare(uint4 keys, Stored query, bool& equal) {
#if STORED_BYTES == 4
    equal |= keys.x == query || keys.y == query || keys.z == query || keys.w == query;
    return (u32)(keys.x < query) + (u32)(keys.y < query) + (u32)(keys.z < query) + (u32)(keys.w < query);
#elif STORED_BYTES == 8
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
__device__ __forceinline__ u32 search_node(const Btree& tree, const Node& node, Stored query, bool& equal) {
    const Stored* keys = tree.keys + node.first_key;
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

__device__ __forceinline__ Place search_tree(const Btree& tree, Stored query) {
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
    btree(const __grid_constant__ Btree tree, const __grid_constant__ Short short_words,
          const __grid_constant__ Batch batch) {
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - threadIdx.x % WARP < batch.count; at += threads) {
        Sought sought = seek(short_words, load_query(batch, at));
        Place place = {tree.tuples, false};
        if (!sought.is_end) {
            place = search_tree(tree, sought.word);
            place.found = place.found && sought.is_own;
        }
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
