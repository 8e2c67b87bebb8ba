// FAST on the classic tree: blocks of four levels, 15 keys, each searched by 16 lanes; two queries a warp.
//
// Kim et al., TODS 36(4), 2011, section 5.2. Lane i of a half-warp compares key i of the block, so that the keys are
// one load of neighbours; what is left is to make the number of the child of 15 bits that 15 lanes hold.
// `fast_paper` does as Figure 6: bits go to shared memory, the one leaf that is below the query and whose successor
// is not asks the bit of their common ancestor, which a table names, and leaves the child in shared memory.
// `fast_ballot` counts the bits instead. Each half-warp has SIMULTANEOUS queries on the way (S of section 5.2.3).
//
// The tree is that of spec/FORMAT.md, section 18, full form, packed or padded, lines of at most four levels; for
// `fast_paper` lines are single blocks. Lines may be shallow, but one table of ancestors holds for all: if nodes have
// numbers from 1 on, the leaf behind that of lane j has j + 2, and without its low zeros and the one above them that is
// the ancestor's. On its way a search is the number of a line, clamped at each depth to the last one that exists.
//
// A warp takes 32 queries in a row, each half 16 of them, SIMULTANEOUS at a time, and answers all together.

// Besides WORD_BYTES: SIMULTANEOUS (1, 2, 4), DEPTHS_MAX (depths of lines that a tree has at most).

#define LANES 16u

// Lines of one depth; the same as Level in classic.cu and in build/classic.rs.
struct Level {
    // Slot of the first line of the first page, and, without that page's slots, of the last one.
    u64 start[2];
    u64 page_slots;
    u64 last_page;
    // Number of the last line of the whole depth.
    u64 last;
    u32 pitch;
    // Levels of the page above these lines, of a line, and of the tree below them.
    u32 above;
    u32 levels;
    u32 below;
    // Logarithm of the lines that share a pitch.
    u32 group;
    // 0 if all lines of the depth are one run.
    u32 paged;
};

// The same as Arguments in algorithm/fast.rs.
struct Tree {
    Columns columns;
    const Word* slots;
    u32 depths;
    // 1 if N is a power of two: the last key has no node.
    u32 last_decides;
    Level levels[DEPTHS_MAX];
};
static_assert(sizeof(Tree) == BYTES_OF_FAST, "as in algorithm/fast.rs");

template <typename Gap> __device__ __forceinline__ u64 line_slot(const Level& level, Gap line) {
    u64 slot = level.start[0];
    if (level.paged) {
        Gap page = line >> level.above;
        slot = (page == (Gap)level.last_page ? level.start[1] : slot) + page * level.page_slots;
        line &= ((Gap)1 << level.above) - 1;
    }
    if (level.group > 0) {
        Gap inside = line & (((Gap)1 << level.group) - 1);
        slot += (u64)inside * ((1u << level.levels) - 1);
        line >>= level.group;
    }
    return slot + (u64)line * level.pitch;
}

__device__ __forceinline__ Word of_lane(Word word, u32 lane) {
#if WORD_BYTES == 16
    u64 low = __shfl_sync(FULL, (u64)word, (int)lane);
    u64 high = __shfl_sync(FULL, (u64)(word >> 64), (int)lane);
    return (Word)high << 64 | low;
#else
    return __shfl_sync(FULL, word, (int)lane);
#endif
}

// A lane's key of a line, compared with the query; lanes without a key are not below it.
template <typename Gap>
__device__ __forceinline__ bool below(const Tree& tree, const Level& level, Gap line, u32 simd_lane, Word query) {
    if (simd_lane + 1 >= 1u << level.levels) {
        return false;
    }
    return tree.slots[line_slot(level, line) + simd_lane] < query;
}

// What a warp of `fast_paper` has in shared memory.
struct Stage {
    u32 bits[SIMULTANEOUS][WARP];
    u32 child[SIMULTANEOUS][2];
};
static_assert(sizeof(Stage) == SIMULTANEOUS * STAGE_BYTES, "as in algorithm/fast.rs");
static_assert(LANES * sizeof(u32) == ANCESTORS_BYTES, "as in algorithm/fast.rs");

// Gaps of SIMULTANEOUS queries a half-warp, by shared memory.
struct Paper {
    const u32* ancestors;
    Stage* stage;

    template <typename Gap>
    __device__ __forceinline__ void search(const Tree& tree, const Word* queries, Gap* lines) const {
        u32 lane = threadIdx.x % WARP, simd_lane = lane % LANES, half = lane / LANES;
        u32 ancestor = half * LANES + ancestors[simd_lane];
        for (u32 depth = 0; depth < tree.depths; depth++) {
            const Level& level = tree.levels[depth];
            // Lanes first..end have the leaves of the block.
            u32 end = (1u << level.levels) - 1, first = end / 2;
            bool bits[SIMULTANEOUS];
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                lines[s] = min(lines[s], (Gap)level.last);
                bits[s] = below(tree, level, lines[s], simd_lane, queries[s]);
            }
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                stage->bits[s][lane] = bits[s];
            }
            // The paper has a block of one warp and a barrier of the block.
            __syncwarp();
            if (simd_lane >= first && simd_lane < end) {
#pragma unroll
                for (u32 s = 0; s < SIMULTANEOUS; s++) {
                    if (bits[s] && !stage->bits[s][lane + 1]) {
                        stage->child[s][half] = 2 * (simd_lane - first) + 1 + stage->bits[s][ancestor];
                    } else if (simd_lane == first && !bits[s]) {
                        stage->child[s][half] = 0;
                    }
                }
            }
            __syncwarp();
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                lines[s] = (lines[s] << level.levels) + stage->child[s][half];
            }
        }
    }
};

// The same by a vote.
struct Ballot {
    template <typename Gap>
    __device__ __forceinline__ void search(const Tree& tree, const Word* queries, Gap* lines) const {
        u32 lane = threadIdx.x % WARP, simd_lane = lane % LANES, shift = lane & LANES;
        for (u32 depth = 0; depth < tree.depths; depth++) {
            const Level& level = tree.levels[depth];
            bool bits[SIMULTANEOUS];
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                lines[s] = min(lines[s], (Gap)level.last);
                bits[s] = below(tree, level, lines[s], simd_lane, queries[s]);
            }
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                u32 votes = __ballot_sync(FULL, bits[s]);
                lines[s] = (lines[s] << level.levels) + __popc(votes >> shift & 0xFFFFu);
            }
        }
    }
};

// Rank of the lower bound of a query that ended in a gap.
__device__ __forceinline__ u64 rank_of(const Tree& tree, u64 gap, Word query) {
    u64 tuples = tree.columns.tuples;
    if (tree.last_decides && gap + 1 >= tuples) {
        return tuples - 1 + (tree.columns.keys[tuples - 1] < query);
    }
    return min(gap, tuples);
}

template <typename Gap, typename Form>
__device__ __forceinline__ void search_batch(const Tree& tree, const Batch& batch, const Form& form) {
    u32 lane = threadIdx.x % WARP, simd_lane = lane % LANES;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 base = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane; base < batch.count; base += step) {
        Word own = load_query(batch, base + lane);
        Gap gap = 0;
        for (u32 number = 0; number < LANES && base + number < batch.count; number += SIMULTANEOUS) {
            Word queries[SIMULTANEOUS];
            Gap lines[SIMULTANEOUS];
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                queries[s] = of_lane(own, (lane & LANES) + number + s);
                lines[s] = 0;
            }
            form.search(tree, queries, lines);
#pragma unroll
            for (u32 s = 0; s < SIMULTANEOUS; s++) {
                gap = simd_lane == number + s ? lines[s] : gap;
            }
        }
        answer_columns(tree.columns, batch, base + lane, own, rank_of(tree, gap, own));
    }
}

// No line number of a tree of at most 2^32 keys has more than 32 bits, nor has a gap.
__device__ __forceinline__ bool is_small(const Tree& tree) { return tree.columns.tuples <= (u64)1 << 32; }

// Blocks of whole warps. Shared memory: the table of ancestors, then a Stage for each warp.
extern "C" __global__ void __launch_bounds__(1024)
    fast_paper(const __grid_constant__ Tree tree, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(u32, shared);
    if (threadIdx.x < LANES) {
        u32 successor = threadIdx.x + 2;
        u32 ancestor = successor >> __ffs((int)successor);
        // The last lane's bit, which is never set, stands for no ancestor.
        shared[threadIdx.x] = ancestor == 0 ? LANES - 1 : ancestor - 1;
    }
    __syncthreads();
    Paper form = {shared, (Stage*)(shared + LANES) + threadIdx.x / WARP};
    if (is_small(tree)) {
        search_batch<u32>(tree, batch, form);
    } else {
        search_batch<u64>(tree, batch, form);
    }
}

// Blocks of whole warps, without shared memory. Lines may be of several blocks.
extern "C" __global__ void __launch_bounds__(1024)
    fast_ballot(const __grid_constant__ Tree tree, const __grid_constant__ Batch batch) {
    if (is_small(tree)) {
        search_batch<u32>(tree, batch, Ballot());
    } else {
        search_batch<u64>(tree, batch, Ballot());
    }
}
