// Sorted columns, made from the tuple lines: what algorithms other than `spine` search.
//
// A warp takes 32 lines at a time: it loads them as they lie, 16 bytes a thread, so that lines in pinned memory come in
// whole packets, and stages them in shared memory. Then it writes their keys and after them their values, in order, a
// thread one element, so that writes lie together too. Rows of the stage are turned by their number, as in spine.cu,
// so that elements of the same slot do not meet in a bank.
//
// Nothing is written beyond the last tuple, and no line read that does not exist. `keys` and `values` may be null.
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line) and VALUES_AT (bytes). 256 threads a block, any grid.

#define WARPS 8u

// The same as Lines in resident.rs.
struct Lines {
    const uint4* lines;
    Word* keys;
    Value* values;
    u64 tuples;
};
static_assert(sizeof(Lines) == BYTES_OF_LINES, "as in resident.rs");

// Where 4 bytes of a row lie: the turn keeps 16 bytes together.
__device__ __forceinline__ u32 staged(u32 row, u32 word) { return row * 16 + (word ^ (row >> 1 & 3) * 4); }

__device__ __forceinline__ u64 two_of(const u32* stage, u32 row, u32 word) {
    return (u64)stage[staged(row, word + 1)] << 32 | stage[staged(row, word)];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) columns_from_lines(const __grid_constant__ Lines from) {
    __shared__ uint4 stages[WARPS * 128];
    u32 lane = threadIdx.x % WARP;
    uint4* stage = stages + threadIdx.x / WARP * 128;
    const u32* words = (const u32*)stage;
    u64 lines = (from.tuples + TUPLES - 1) / TUPLES, step = (u64)gridDim.x * WARPS * WARP;
    for (u64 first = ((u64)blockIdx.x * WARPS + threadIdx.x / WARP) * WARP; first < lines; first += step) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 row = i * 8 + lane / 4, column = lane % 4;
            if (first + row < lines) {
                stage[row * 4 + (column ^ (row >> 1 & 3))] = __ldcs(from.lines + (first + row) * 4 + column);
            }
        }
        __syncwarp();
        u64 left = from.tuples - first * TUPLES;
        u32 count = left < WARP * TUPLES ? (u32)left : WARP * TUPLES;
        if (from.keys != nullptr) {
            for (u32 i = lane; i < count; i += WARP) {
                u32 row = i / TUPLES, slot = i % TUPLES;
#if WORD_BYTES == 4
                Word key = words[staged(row, slot)];
#elif WORD_BYTES == 8
                Word key = two_of(words, row, 2 * slot);
#else
                Word key = (Word)two_of(words, row, 4 * slot + 2) << 64 | two_of(words, row, 4 * slot);
#endif
                from.keys[first * TUPLES + i] = key;
            }
        }
#if VALUE_BYTES > 0
        if (from.values != nullptr) {
            for (u32 i = lane; i < count; i += WARP) {
                u32 row = i / TUPLES, word = VALUES_AT / 4 + i % TUPLES * (VALUE_BYTES / 4);
#if VALUE_BYTES == 4
                from.values[first * TUPLES + i] = words[staged(row, word)];
#else
                from.values[first * TUPLES + i] = two_of(words, row, word);
#endif
            }
        }
#endif
        __syncwarp();
    }
}
