// P-ary search of sorted keys: P_ARY threads search for one query together.
//
// In every round they probe P_ARY places of the part that is left, evenly spaced, and keep the piece between two of
// them: about log P rounds instead of log 2, for one query's response time. `pary_list` is the form of the slides on
// P-ary search: the probed keys are put into shared memory, where each thread compares its own and its neighbour's;
// the thread whose piece it is says where the next round begins. P_ARY up to 32 threads meet within their warp, more
// of them in their block. `pary_ballot` is ours, for up to 32: a vote counts the probes that are below, which cut the
// part into P_ARY + 1 pieces, and no shared memory is used.
//
// Launch: blocks of a multiple of 32 and of P_ARY threads, any number of blocks. A query is answered as soon as it is
// found, so that few queries spread over many blocks: bits of presence are set one by one, and **the bitmap must be
// zero before**. Shared memory of `pary_list`, a query of a block: (P_ARY + 2) * WORD_BYTES + 8 bytes.

// Threads that take each step together: all of a warp, or all of a block.
#if P_ARY <= 32
#define TEAM WARP
#define TEAM_BARRIER() __syncwarp()
#else
#define TEAM blockDim.x
#define TEAM_BARRIER() __syncthreads()
#endif

// The first query of this thread's team, and how many queries all threads take at a time.
__device__ __forceinline__ u64 first_query() {
    return ((u64)blockIdx.x * blockDim.x + threadIdx.x / TEAM * TEAM) / P_ARY;
}
__device__ __forceinline__ u64 queries_at_once() { return (u64)gridDim.x * blockDim.x / P_ARY; }

// Answers one query, by one of its threads.
__device__ __forceinline__ void answer_alone(const Columns& columns, const Batch& batch, u64 at, Word query, u64 rank) {
    if (at >= batch.count) {
        return;
    }
    answer_rank(batch, at, rank);
    if (batch.values == nullptr && batch.present == nullptr) {
        return;
    }
    bool found = rank < columns.tuples && columns.keys[rank] == query;
    copy_value(columns.values, batch, at, found, rank);
    if (batch.present != nullptr && found) {
        atomicOr(batch.present + at / 32, 1u << (u32)(at & 31));
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    pary_list(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    // Of each query of the block: the probed keys, an upper bound, the query; then where the part begins.
    DYNAMIC_SHARED(uint4, shared);
    u32 group = threadIdx.x / P_ARY, member = threadIdx.x % P_ARY;
    Word* cache = (Word*)shared + group * (P_ARY + 2);
    u64* begin = (u64*)((Word*)shared + blockDim.x / P_ARY * (P_ARY + 2)) + group;
    u32 inside = threadIdx.x % TEAM / P_ARY;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        u64 at = base + inside;
        if (member == 0) {
            *begin = 0;
            // No query is above all ones, so it may stand for what lies behind the last key.
            cache[P_ARY] = (Word)~(Word)0;
            cache[P_ARY + 1] = load_query(batch, at);
        }
        TEAM_BARRIER();
        Word query = cache[P_ARY + 1];
        // The rank is from `begin` to `begin + length`; of all queries the parts are of one length.
        u64 length = columns.tuples, piece;
        do {
            piece = (length + P_ARY - 1) / P_ARY;
            u64 start = *begin + member * piece;
            bool inner = member * piece < length && start < columns.tuples;
            cache[member] = inner ? columns.keys[start] : (Word)~(Word)0;
            TEAM_BARRIER();
            if (cache[member] < query && !(cache[member + 1] < query)) {
                *begin = piece == 1 ? start + 1 : start;
            }
            TEAM_BARRIER();
            length = piece;
        } while (piece > 1);
        if (member == 0) {
            answer_alone(columns, batch, at, query, *begin);
        }
    }
}

#if P_ARY <= 32

extern "C" __global__ void __launch_bounds__(1024)
    pary_ballot(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x & 31, member = lane % P_ARY, group_begin = lane - member;
    u32 group_mask = FULL >> (32 - P_ARY) << group_begin;
    for (u64 base = first_query(); base < batch.count; base += queries_at_once()) {
        u64 at = base + lane / P_ARY;
        Word query = load_query(batch, at);
        u64 rank = 0;
        // How many ranks are possible, from `rank` on; the last key of each piece but the last is probed.
        for (u64 ranks = columns.tuples + 1, piece; ranks > 1; ranks = piece) {
            piece = (ranks + P_ARY) / (P_ARY + 1);
            u64 end = (member + 1) * piece, probe = rank + end - 1;
            bool below = end < ranks && probe < columns.tuples && columns.keys[probe] < query;
            rank += __popc(__ballot_sync(FULL, below) & group_mask) * piece;
        }
        if (member == 0) {
            answer_alone(columns, batch, at, query, rank);
        }
    }
}

#endif
