// The B+tree that the paper on Harmonia compares with: nodes of keys, with references or values behind them.
//
// `regular` gives each query a coalesced group of up to 32 lanes, which compares all keys of a node: a warp answers 32
// queries in as many rounds as a group has lanes. `regular_build` makes the tree from sorted columns, a thread a slot.
// Nodes and their numbers are those of format/src/harmonia.rs. References are clamped to their level before use.

// First and last node of a level.
struct RegularNodes {
    u32 first;
    u32 last;
};

// The same as Tree in search/regular.rs.
struct RegularTree {
    const u8* nodes;
    u64 node_bytes;
    u64 references_at;
    u64 tuples;
    u32 fanout;
    u32 node_keys;
    u32 levels;
    u32 group_bits;
    RegularNodes level[REGULAR_LEVELS];
};
static_assert(sizeof(RegularTree) == BYTES_OF_REGULAR, "as in search/regular.rs");

__device__ __forceinline__ Word key_at(const Word* keys, u32 at) {
#if WORD_BYTES == 16
    const u64* halves = (const u64*)(keys + at);
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(keys + at);
#endif
}

__device__ __forceinline__ Word shuffle(Word word, u32 lane) {
#if WORD_BYTES == 16
    u64 low = __shfl_sync(FULL, (u64)word, lane), high = __shfl_sync(FULL, (u64)(word >> 64), lane);
    return (Word)high << 64 | low;
#else
    return __shfl_sync(FULL, word, lane);
#endif
}

// Keys of a node below a query, counted by a whole group that compares all of them; all lanes of the warp are here.
__device__ __forceinline__ u32 compare_all(const RegularTree& tree, const Word* keys, Word query) {
    u32 lanes = 1u << tree.group_bits, lane = threadIdx.x % WARP, member = lane & (lanes - 1), below = 0;
    for (u32 base = 0; base < tree.fanout - 1; base += lanes) {
        u32 at = base + member;
        bool is_below = at < tree.fanout - 1 && key_at(keys, at) < query;
        u32 votes = __ballot_sync(FULL, is_below) >> (lane - member);
        below += __popc(votes & (FULL >> (WARP - lanes)));
    }
    return below;
}

// A leaf, and keys in it below the query.
struct Leaf {
    u32 node;
    u32 below;
};

__device__ __forceinline__ Leaf descend(const RegularTree& tree, Word query) {
    u32 node = 0;
    for (u32 level = 1; level < tree.levels; level++) {
        const u8* at = tree.nodes + node * tree.node_bytes;
        u32 below = compare_all(tree, (const Word*)at, query);
        u64 next = __ldg((const u64*)(at + tree.references_at) + below);
        node = (u32)min(max(next, (u64)tree.level[level].first), (u64)tree.level[level].last);
    }
    const Word* keys = (const Word*)(tree.nodes + node * tree.node_bytes);
    return {node, compare_all(tree, keys, query)};
}

// Answers the query of each lane of a warp.
__device__ __forceinline__ void answer_leaf(const RegularTree& tree, const Batch& batch, u64 at, Word query,
                                            Leaf leaf) {
    u64 rank = (u64)(leaf.node - tree.level[tree.levels - 1].first) * tree.node_keys + leaf.below;
    rank = min(rank, tree.tuples);
    answer_rank(batch, at, rank);
    if (batch.values == nullptr && batch.present == nullptr) {
        return;
    }
    const u8* node = tree.nodes + leaf.node * tree.node_bytes;
    bool is_found = at < batch.count && rank < tree.tuples && leaf.below < tree.node_keys &&
                    key_at((const Word*)node, leaf.below) == query;
    copy_value(node + tree.references_at, batch, at, is_found, leaf.below);
    answer_present(batch, at, is_found);
}

extern "C" __global__ void __launch_bounds__(1024)
    regular(const __grid_constant__ RegularTree tree, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x % WARP, bits = tree.group_bits;
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - lane < batch.count; at += threads) {
        Word query = load_query(batch, at);
        Leaf leaf = {0, 0};
        for (u32 round = 0; round < 1u << bits; round++) {
            Leaf found = descend(tree, shuffle(query, (round << (5 - bits)) + (lane >> bits)));
            u32 from = (lane & ((WARP >> bits) - 1)) << bits;
            u32 node = __shfl_sync(FULL, found.node, from), below = __shfl_sync(FULL, found.below, from);
            leaf = lane >> (5 - bits) == round ? Leaf{node, below} : leaf;
        }
        answer_leaf(tree, batch, at, query, leaf);
    }
}

// A level; as HarmoniaLevel of the format.
struct RegularLevel {
    u64 first;
    u64 nodes;
    u64 leaves;
};

// The same as Build in search/regular.rs.
struct RegularBuild {
    const Word* column;
    const u8* column_values;
    u8* nodes;
    u64 node_bytes;
    u64 references_at;
    u64 node_count;
    u64 tuples;
    u32 stride;
    u32 fanout;
    u32 node_keys;
    u32 levels;
    u32 value_bytes;
    u32 unused;
    RegularLevel level[REGULAR_LEVELS];
};
static_assert(sizeof(RegularBuild) == BYTES_OF_REGULAR_BUILD, "as in search/regular.rs");

// Tuples up to the end of a node of a level.
__device__ __forceinline__ u64 end_of(const RegularBuild& tree, u32 level, u64 node) {
    u64 leaves = (node + 1) * tree.level[level].leaves;
    return min(leaves * tree.node_keys, tree.tuples);
}

// A thread a slot of the stride of a node. Any grid of any blocks.
extern "C" __global__ void __launch_bounds__(256) regular_build(const __grid_constant__ RegularBuild tree) {
    u64 slots = tree.node_count * tree.stride, threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < slots; at += threads) {
        u64 number = at / tree.stride;
        u32 slot = (u32)(at - number * tree.stride), level = tree.levels - 1;
        while (level > 0 && number < tree.level[level].first) {
            level--;
        }
        bool is_leaf = level + 1 == tree.levels;
        u64 node = number - tree.level[level].first;
        // A key of an inner node is the last one under the child left of it.
        u64 first = node * (is_leaf ? (u64)tree.node_keys : (u64)tree.node_keys + 1);
        u64 items = is_leaf ? tree.tuples - first : tree.level[level + 1].nodes - first - 1;
        u32 keys = (u32)min(items, (u64)tree.node_keys);
        Word key = ~(Word)0;
        if (slot < keys) {
            key = tree.column[is_leaf ? first + slot : end_of(tree, level + 1, first + slot) - 1];
        }
        u8* to = tree.nodes + number * tree.node_bytes;
        ((Word*)to)[slot] = key;
        if (slot >= tree.fanout) {
            continue;
        }
        if (!is_leaf) {
            ((u64*)(to + tree.references_at))[slot] = tree.level[level + 1].first + first + min(slot, keys);
        } else if (tree.value_bytes == 8) {
            ((u64*)(to + tree.references_at))[slot] =
                slot < keys ? ((const u64*)tree.column_values)[first + slot] : 0ull;
        } else if (tree.value_bytes == 4) {
            ((u32*)(to + tree.references_at))[slot] =
                slot < keys ? ((const u32*)tree.column_values)[first + slot] : 0u;
        }
    }
}
