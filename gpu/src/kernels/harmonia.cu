// Search in Harmonia's B+tree (Yan et al.): a region of keys, and a region of first children (prefix sums).
//
// The layout is that of format/src/harmonia.rs. The child of a query is the number of its node's keys below it behind
// the node's first child, so a step down reads keys and one word, which lies in constant or shared memory for as many
// whole levels as fit there, else is read through the read-only cache. A power of two of lanes searches for a query
// (`harmonia_...`: narrowed groups, section 4.2): each lane counts keys, one or 16 bytes at a time, until one is not
// below, and the group adds up; or a single lane halves. A warp answers 32 queries in as many rounds as a group has
// lanes. Answers stand in the order of the queries as they lie, or at the places that `numbers` says.
//
// `harmonia_build` makes the tree, a thread a slot, with whole keys as words (STORED_BYTES is WORD_BYTES).
// Stored indices are clamped to their level before use.

// Entries of the child region in constant memory: all of its 64 KiB.
#define CONSTANT_TOP 16384
__constant__ u32 harmonia_top[CONSTANT_TOP];
#ifdef PLEACH_EMULATED
PLEACH_CONSTANT(harmonia_top)
#endif

// How a lane goes through a node.
#define SCAN_KEYS 0u
#define SCAN_VECTORS 1u
#define SCAN_HALVES 2u

// First and last node of a level.
struct HarmoniaNodes {
    u32 first;
    u32 last;
};

// The same as Tree in algorithm/harmonia.rs.
struct Harmonia {
    const u8* nodes;
    const u32* children;
    const u8* values;
    const u32* numbers;
    u64 node_bytes;
    u64 tuples;
    u32 fanout;
    u32 node_keys;
    u32 levels;
    u32 top;
    u32 group_bits;
    u32 scan;
    HarmoniaNodes level[HARMONIA_LEVELS];
};
static_assert(sizeof(Harmonia) == BYTES_OF_HARMONIA, "as in algorithm/harmonia.rs");

__device__ __forceinline__ Stored key_at(const Stored* keys, u32 at) {
#if STORED_BYTES == 16
    const u64* halves = (const u64*)(keys + at);
    return (Stored)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(keys + at);
#endif
}

__device__ __forceinline__ Stored shuffle(Stored word, u32 lane) {
#if STORED_BYTES == 16
    u64 low = __shfl_sync(FULL, (u64)word, lane), high = __shfl_sync(FULL, (u64)(word >> 64), lane);
    return (Stored)high << 64 | low;
#else
    return __shfl_sync(FULL, word, lane);
#endif
}

#define VECTOR_KEYS (16u / STORED_BYTES)

// How many of the keys in 16 bytes, ascending, are below the query.
__device__ __forceinline__ u32 below_of(uint4 keys, Stored query) {
#if STORED_BYTES == 4
    return (u32)(keys.x < query) + (u32)(keys.y < query) + (u32)(keys.z < query) + (u32)(keys.w < query);
#elif STORED_BYTES == 8
    u64 first = (u64)keys.y << 32 | keys.x, second = (u64)keys.w << 32 | keys.z;
    return (u32)(first < query) + (u32)(second < query);
#else
    u128 key = (u128)((u64)keys.w << 32 | keys.z) << 64 | ((u64)keys.y << 32 | keys.x);
    return (u32)(key < query);
#endif
}

// Keys of a node below a query, counted by a narrowed group; all lanes of the warp are here.
__device__ __forceinline__ u32 count_below(const Harmonia& tree, u32 node, Stored query) {
    const Stored* keys = (const Stored*)(tree.nodes + node * tree.node_bytes);
    u32 slots = tree.fanout - 1, below = 0;
    if (tree.scan == SCAN_HALVES) {
        for (u32 size = slots; size > 1;) {
            u32 half = size / 2;
            below += key_at(keys, below + half - 1) < query ? half : 0;
            size -= half;
        }
        return below + (u32)(key_at(keys, below) < query);
    }
    u32 lanes = 1u << tree.group_bits, member = threadIdx.x & (lanes - 1);
    if (tree.scan == SCAN_KEYS) {
        for (u32 at = member; at < slots && key_at(keys, at) < query; at += lanes) {
            below++;
        }
    } else {
        // Free slots up to the stride are all ones: never below.
        const uint4* vectors = (const uint4*)keys;
        u32 count = (slots + VECTOR_KEYS - 1) / VECTOR_KEYS;
        for (u32 at = member, found = VECTOR_KEYS; at < count && found == VECTOR_KEYS; at += lanes) {
            found = below_of(__ldg(vectors + at), query);
            below += found;
        }
    }
    for (u32 step = 1; step < lanes; step *= 2) {
        below += __shfl_xor_sync(FULL, below, step);
    }
    return below;
}

// A leaf, and keys in it below the query.
struct Leaf {
    u32 node;
    u32 below;
};

// Where the first child of a node stands.
struct InConstant {
    __device__ __forceinline__ u32 child(const Harmonia& tree, u32 node) const {
        return node < tree.top ? harmonia_top[node] : __ldg(tree.children + node);
    }
};
struct InShared {
    const u32* top;
    __device__ __forceinline__ u32 child(const Harmonia& tree, u32 node) const {
        return node < tree.top ? top[node] : __ldg(tree.children + node);
    }
};
struct InCache {
    __device__ __forceinline__ u32 child(const Harmonia& tree, u32 node) const { return __ldg(tree.children + node); }
};

template <class Children> struct Narrowed {
    Children children;
    __device__ __forceinline__ Leaf descend(const Harmonia& tree, Stored query) const {
        u32 node = 0;
        for (u32 level = 1; level < tree.levels; level++) {
            u32 next = children.child(tree, node) + count_below(tree, node, query);
            node = min(max(next, tree.level[level].first), tree.level[level].last);
        }
        return {node, count_below(tree, node, query)};
    }
};

__device__ __forceinline__ const u8* value_at(const Harmonia& tree, Leaf leaf, u32 value_bytes) {
    u64 number = leaf.node - tree.level[tree.levels - 1].first;
    return tree.values + (number * tree.fanout + leaf.below) * value_bytes;
}

// Answers the query of each lane of a warp.
__device__ __forceinline__ void answer_leaf(const Harmonia& tree, const Batch& batch, u64 at, Sought query,
                                            Leaf leaf) {
    u64 rank = (u64)(leaf.node - tree.level[tree.levels - 1].first) * tree.node_keys + leaf.below;
    rank = query.is_end ? tree.tuples : min(rank, tree.tuples);
    bool is_asked = at < batch.count;
    u64 to = tree.numbers != nullptr && is_asked ? __ldcs(tree.numbers + at) : at;
    if (is_asked && batch.ranks != nullptr) {
        if (batch.rank_bytes == 4) {
            __stcs((u32*)batch.ranks + to, (u32)rank);
        } else {
            __stcs((u64*)batch.ranks + to, rank);
        }
    }
    if (batch.values == nullptr && batch.present == nullptr) {
        return;
    }
    const Stored* keys = (const Stored*)(tree.nodes + leaf.node * tree.node_bytes);
    bool is_found = is_asked && query.is_own && rank < tree.tuples && leaf.below < tree.node_keys &&
                    key_at(keys, leaf.below) == query.word;
    if (is_asked && batch.values != nullptr) {
        const u8* value = value_at(tree, leaf, batch.value_bytes);
        if (batch.value_bytes == 8) {
            __stcs((u64*)batch.values + to, is_found ? __ldg((const u64*)value) : 0ull);
        } else if (batch.value_bytes == 4) {
            __stcs((u32*)batch.values + to, is_found ? __ldg((const u32*)value) : 0u);
        }
    }
    if (tree.numbers == nullptr) {
        answer_present(batch, at, is_found);
    } else if (is_found && batch.present != nullptr) {
        atomicOr(batch.present + to / 32, 1u << (to & 31));
    }
}

// A warp answers 32 queries at a time, which lie together.
template <class Search>
__device__ __forceinline__ void search_batch(const Harmonia& tree, const Short& short_words, const Batch& batch,
                                             const Search& search) {
    u32 lane = threadIdx.x % WARP, bits = tree.group_bits;
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - lane < batch.count; at += threads) {
        Sought query = seek(short_words, load_query(batch, at));
        Leaf leaf = {0, 0};
        for (u32 round = 0; round < 1u << bits; round++) {
            Stored sought = shuffle(query.word, (round << (5 - bits)) + (lane >> bits));
            Leaf found = search.descend(tree, sought);
            u32 from = (lane & ((WARP >> bits) - 1)) << bits;
            u32 node = __shfl_sync(FULL, found.node, from), below = __shfl_sync(FULL, found.below, from);
            leaf = lane >> (5 - bits) == round ? Leaf{node, below} : leaf;
        }
        answer_leaf(tree, batch, at, query, leaf);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    harmonia_constant(const __grid_constant__ Harmonia tree, const __grid_constant__ Short short_words,
                      const __grid_constant__ Batch batch) {
    search_batch(tree, short_words, batch, Narrowed<InConstant>{});
}

// Shared memory: the top of the child region.
extern "C" __global__ void __launch_bounds__(1024)
    harmonia_shared(const __grid_constant__ Harmonia tree, const __grid_constant__ Short short_words,
                    const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(u32, top);
    for (u32 i = threadIdx.x; i < tree.top; i += blockDim.x) {
        top[i] = __ldg(tree.children + i);
    }
    __syncthreads();
    search_batch(tree, short_words, batch, Narrowed<InShared>{{top}});
}

extern "C" __global__ void __launch_bounds__(256)
    harmonia_ldg(const __grid_constant__ Harmonia tree, const __grid_constant__ Short short_words,
                 const __grid_constant__ Batch batch) {
    search_batch(tree, short_words, batch, Narrowed<InCache>{});
}

// As HarmoniaLevel of the format.
struct HarmoniaLevel {
    u64 first;
    u64 nodes;
    u64 leaves;
};

// The same as Build in algorithm/harmonia.rs.
struct HarmoniaBuild {
    const Word* column;
    const u8* column_values;
    u8* nodes;
    u8* counts;
    u32* children;
    u8* values;
    u64 node_bytes;
    u64 node_count;
    u64 tuples;
    u32 stride;
    u32 fanout;
    u32 node_keys;
    u32 levels;
    u32 value_bytes;
    u32 unused;
    HarmoniaLevel level[HARMONIA_LEVELS];
};
static_assert(sizeof(HarmoniaBuild) == BYTES_OF_HARMONIA_BUILD, "as in algorithm/harmonia.rs");

// Tuples up to the end of a node of a level.
__device__ __forceinline__ u64 end_of(const HarmoniaBuild& tree, u32 level, u64 node) {
    u64 leaves = (node + 1) * tree.level[level].leaves;
    return min(leaves * tree.node_keys, tree.tuples);
}

// A thread a slot of the stride of a node. Any grid of any blocks.
extern "C" __global__ void __launch_bounds__(256) harmonia_build(const __grid_constant__ HarmoniaBuild tree) {
    u64 slots = tree.node_count * tree.stride, threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < slots; at += threads) {
        // Division of 64 bits is slow.
        u64 number = slots >> 32 == 0 ? (u64)((u32)at / tree.stride) : at / tree.stride;
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
        if (slot == 0) {
            tree.counts[number] = (u8)keys;
            if (!is_leaf) {
                tree.children[number] = (u32)(tree.level[level + 1].first + first);
            }
            if (number + 1 == tree.node_count) {
                tree.children[tree.level[tree.levels - 1].first] = (u32)tree.node_count;
            }
        }
        if (slot < tree.fanout && is_leaf && tree.value_bytes > 0) {
            u8* value = tree.values + (node * tree.fanout + slot) * tree.value_bytes;
            bool is_there = slot < keys;
            if (tree.value_bytes == 8) {
                *(u64*)value = is_there ? ((const u64*)tree.column_values)[first + slot] : 0ull;
            } else {
                *(u32*)value = is_there ? ((const u32*)tree.column_values)[first + slot] : 0u;
            }
        }
    }
}
