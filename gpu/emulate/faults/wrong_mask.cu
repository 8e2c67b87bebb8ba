// Planted fault: a search by votes of eight lanes whose mask is that of the first eight for all of them.
//
// Eight lanes probe the ends of eight pieces and vote which are below. The mask of a group has to be moved to the
// group's lanes; as it is, most callers are not in it, which CUDA leaves undefined.

#define GROUP 8u

extern "C" __global__ void fault(const __grid_constant__ Columns columns, const __grid_constant__ Batch batch) {
    u32 lane = threadIdx.x % WARP, member = lane % GROUP, first = lane - member;
#if FAULT
    u32 mask = 0xFFu;
#else
    u32 mask = 0xFFu << first;
#endif
    u64 begin = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane;
    Word mine = load_query(batch, begin + lane);
    u64 mine_rank = 0;
    for (u32 turn = 0; turn < GROUP; turn++) {
        Word query = __shfl_sync(mask, mine, (int)turn, (int)GROUP);
        u64 rank = 0;
        for (u64 ranks = columns.tuples + 1, piece; ranks > 1; ranks = piece) {
            piece = (ranks + GROUP) / (GROUP + 1);
            u64 end = (member + 1) * piece, probe = rank + end - 1;
            bool below = end < ranks && probe < columns.tuples && columns.keys[probe] < query;
            rank += __popc(__ballot_sync(mask, below)) * piece;
        }
        mine_rank = member == turn ? rank : mine_rank;
    }
    answer_columns(columns, batch, begin + lane, mine, mine_rank);
}
