// The contiguous B+tree of the paper on search on an APU: node metadata, then keys, then values.
//
// Metadata is 16 bytes a node, level by level from the root: key count, index of the first key, index of the first
// child or first value, leaf flag. A node of order m has at most m children and m - 1 keys, in slots rounded up to a
// multiple of four, so that with order 16 its keys are the paper's line of 64 bytes; unused slots are all ones. A
// separator is the last key of the child left of it, so the child after all separators below a query has the query's
// lower bound, equal keys or not. Values are the sorted column: a leaf's first value is the rank of its first key.
//
// Stored numbers are clamped before use. Besides WORD_BYTES: STORED_BYTES and short.cuh, if the words of the tree may be
// shorter than queries.

#ifndef STORED_TYPE
typedef Word Stored;
#endif

// The same as Tree in algorithm/btree.rs. `keys` has `slots` words, node_count times the slots of a node.
struct Btree {
    const uint4* nodes;
    const Stored* keys;
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
