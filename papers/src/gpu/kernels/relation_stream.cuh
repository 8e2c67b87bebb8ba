// Two partitions streamed through shared memory (section 4.1 stage 2, section 5.1 stage 2 of the paper).
//
// A block of either partition is loaded. If the last key of one is below the first of the other, the lower block is
// discarded by that check alone where the operation needs no tuple of it. Else the tuples below the smaller of both
// last keys go to the operation's step: the tuples of a key go together, of both sides, so that duplicates need no
// state from block to block, and the rest is loaded again. (The paper keeps a block of one side and scans the other's,
// which splits runs of equal keys.) A run as long as a block goes to the step as two ranges of ranks. Before that,
// inside the CTA, partitions above `section_tuples` are cut by the double-sided search that made them, the roles of
// the inputs swapped from level to level.

#define SECTIONS 32u

// Ranks of two inputs; the same as Range in relation/partition.rs.
struct Range {
    u64 left;
    u64 left_end;
    u64 right;
    u64 right_end;
};
static_assert(sizeof(Range) == BYTES_OF_PAPER_RANGE, "as in relation/partition.rs");

// What is counted: tuples that cuts inside a CTA discard, those that checks of blocks do, and blocks.
#define STAT_SECTIONS 0u
#define STAT_BLOCKS 1u
#define STAT_LOADED 2u

// The same as Merge in relation/merge.rs.
struct Merge {
    View left;
    View right;
    Sink sink;
    const Range* ranges;
    u64* stats;
    u32 operation;
    u32 block_tuples;
    u32 section_tuples;
    u32 unused;
};
static_assert(sizeof(Merge) == BYTES_OF_PAPER_MERGE, "as in relation/merge.rs");

// Leaves out tuples that no key of the other side can match, as far as an operation does not need them.
__device__ MANY_CALLS Range narrow(const View& left, const View& right, Range range, u32 operation) {
    bool has_left = range.left < range.left_end, has_right = range.right < range.right_end;
    if (operation <= OPERATION_INTERSECTION && has_left && has_right) {
        Word first = key_of(right, range.right), last = key_of(right, range.right_end - 1);
        range.left = bound(left, range.left, range.left_end, first, false);
        range.left_end = bound(left, range.left, range.left_end, last, true);
        has_left = range.left < range.left_end;
    }
    if (operation == OPERATION_UNION) {
        return range;
    }
    if (has_left && has_right) {
        Word first = key_of(left, range.left), last = key_of(left, range.left_end - 1);
        range.right = bound(right, range.right, range.right_end, first, false);
        range.right_end = bound(right, range.right, range.right_end, last, true);
        has_right = range.right < range.right_end;
    }
    if (!has_left || (!has_right && operation <= OPERATION_INTERSECTION)) {
        range.left_end = range.left;
        range.right_end = range.right;
    }
    return range;
}

// The cut before part `part` of `parts`: a pivot of one side, or of the other if that has none, looked up in both.
__device__ MANY_CALLS void cut(const View& left, const View& right, const Range& range, u32 side, u32 part,
                                    u32 parts, u64* left_cut, u64* right_cut) {
    u64 lefts = range.left_end - range.left, rights = range.right_end - range.right;
    *left_cut = range.left;
    *right_cut = range.right;
    if (part == 0 || lefts + rights == 0) {
        return;
    }
    bool is_right = rights > 0 && (side == 1 || lefts == 0);
    Word pivot = is_right ? key_of(right, range.right + rights * part / parts)
                          : key_of(left, range.left + lefts * part / parts);
    *left_cut = bound(left, range.left, range.left_end, pivot, false);
    *right_cut = bound(right, range.right, range.right_end, pivot, false);
}

__device__ __forceinline__ u64 tuples_of(const Range& range) {
    return range.left_end - range.left + (range.right_end - range.right);
}

// Cuts a range into parts in shared memory; all threads call it.
__device__ MANY_CALLS void subdivide(const Merge& merge, Range range, u32 side, u32 parts, Range* to) {
    for (u32 part = threadIdx.x; part < parts; part += blockDim.x) {
        u64 left, right;
        cut(merge.left, merge.right, range, side, part, parts, &left, &right);
        to[part].left = left;
        to[part].right = right;
        if (part > 0) {
            to[part - 1].left_end = left;
            to[part - 1].right_end = right;
        }
        if (part + 1 == parts) {
            to[part].left_end = range.left_end;
            to[part].right_end = range.right_end;
        }
    }
    __syncthreads();
    for (u32 part = threadIdx.x; part < parts; part += blockDim.x) {
        Range narrowed = narrow(merge.left, merge.right, to[part], merge.operation);
        u64 discarded = tuples_of(to[part]) - tuples_of(narrowed);
        if (discarded > 0) {
            atomicAdd(merge.stats + STAT_SECTIONS, discarded);
        }
        to[part] = narrowed;
    }
    __syncthreads();
}

// Parts that a range is cut into; at least one.
__device__ __forceinline__ u32 sections_of(const Merge& merge, const Range& range) {
    u64 wanted = (tuples_of(range) + merge.section_tuples - 1) / merge.section_tuples;
    return (u32)max(min(wanted, (u64)SECTIONS), 1ull);
}

// Blocks of both inputs in shared memory.
struct Blocks {
    Word* left;
    Word* right;
    u8* left_values;
    u8* right_values;
};

// As blocks_bytes in relation/merge.rs.
__device__ __forceinline__ Blocks blocks_at(u8* shared, const Merge& merge) {
    u64 column = (u64)merge.block_tuples * WORD_BYTES;
    u8* values = shared + 2 * column;
    return {(Word*)shared, (Word*)(shared + column), values, values + merge.block_tuples * merge.left.value_bytes};
}

__device__ __forceinline__ u8* behind(const Blocks& blocks, const Merge& merge) {
    return blocks.right_values + merge.block_tuples * merge.right.value_bytes;
}

__device__ MANY_CALLS void load_block(const View& view, u64 page, u64 from, u32 count, Word* keys, u8* values) {
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        u64 slot = slot_from(view, page, from + i);
        keys[i] = view.keys[slot];
        store_value(values, i, view.value_bytes, load_value(view.values, slot, view.value_bytes));
    }
}

// Tuples of a block below a key: the thread at the border writes it.
__device__ __forceinline__ void find_below(const Word* keys, u32 count, Word key, u32* below) {
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        if (keys[i] < key && (i + 1 == count || !(keys[i + 1] < key))) {
            *below = i + 1;
        }
    }
}

// Streams a range. step.merge(lefts, rights) takes the first tuples of both blocks; step.run(...) a key's ranks.
template <class Step>
__device__ __forceinline__ void stream(const Merge& merge, const Blocks& blocks, Range range, Step& step) {
    __shared__ u32 below[2][2];
    u32 operation = merge.operation, turn = 0;
    u64 left_page = page_of(merge.left, range.left), right_page = page_of(merge.right, range.right);
    while (true) {
        bool has_left = range.left < range.left_end, has_right = range.right < range.right_end;
        bool needs_both = operation <= OPERATION_INTERSECTION, needs_right = operation == OPERATION_UNION;
        if (needs_both ? !has_left || !has_right : !has_left && !(needs_right && has_right)) {
            break;
        }
        u32 lefts = (u32)min(range.left_end - range.left, (u64)merge.block_tuples);
        u32 rights = (u32)min(range.right_end - range.right, (u64)merge.block_tuples);
        left_page = page_from(merge.left, left_page, range.left);
        right_page = page_from(merge.right, right_page, range.right);
        load_block(merge.left, left_page, range.left, lefts, blocks.left, blocks.left_values);
        load_block(merge.right, right_page, range.right, rights, blocks.right, blocks.right_values);
        turn ^= 1;
        if (threadIdx.x < 2) {
            below[turn][threadIdx.x] = 0;
        }
        __syncthreads();
        step.loaded(lefts, rights);
        if (has_left && has_right && operation != OPERATION_UNION) {
            bool is_left_below = blocks.left[lefts - 1] < blocks.right[0] && operation != OPERATION_DIFFERENCE;
            bool is_right_below = blocks.right[rights - 1] < blocks.left[0];
            if (is_left_below || is_right_below) {
                range.left += is_left_below ? lefts : 0;
                range.right += is_left_below ? 0 : rights;
                step.discarded += is_left_below ? lefts : rights;
                __syncthreads();
                continue;
            }
        }
        bool has_more_left = range.left + lefts < range.left_end;
        bool has_more_right = range.right + rights < range.right_end;
        if (has_more_left || has_more_right) {
            Word last = has_more_left ? blocks.left[lefts - 1] : blocks.right[rights - 1];
            if (has_more_right && blocks.right[rights - 1] < last) {
                last = blocks.right[rights - 1];
            }
            find_below(blocks.left, lefts, last, &below[turn][0]);
            find_below(blocks.right, rights, last, &below[turn][1]);
            __syncthreads();
            lefts = below[turn][0];
            rights = below[turn][1];
            if (lefts == 0 && rights == 0) {
                u64 left_end = bound(merge.left, range.left, range.left_end, last, true);
                u64 right_end = bound(merge.right, range.right, range.right_end, last, true);
                step.run(Range{range.left, left_end, range.right, right_end});
                range.left = left_end;
                range.right = right_end;
                __syncthreads();
                continue;
            }
        }
        step.merge(lefts, rights);
        range.left += lefts;
        range.right += rights;
    }
}

// Streams the block's partition, section by section.
template <class Step>
__device__ __forceinline__ void stream_partition(const Merge& merge, const Blocks& blocks, Step& step) {
    __shared__ Range outer[SECTIONS];
    __shared__ Range inner[SECTIONS];
    Range whole = merge.ranges[blockIdx.x];
    u32 parts = sections_of(merge, whole);
    if (parts > 1) {
        subdivide(merge, whole, 0, parts, outer);
    }
    for (u32 part = 0; part < parts; part++) {
        Range section = parts > 1 ? outer[part] : whole;
        u32 pieces = sections_of(merge, section);
        if (pieces > 1) {
            subdivide(merge, section, 1, pieces, inner);
        }
        for (u32 piece = 0; piece < pieces; piece++) {
            stream(merge, blocks, pieces > 1 ? inner[piece] : section, step);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicAdd(merge.stats + STAT_BLOCKS, step.discarded);
        atomicAdd(merge.stats + STAT_LOADED, step.blocks);
    }
}
