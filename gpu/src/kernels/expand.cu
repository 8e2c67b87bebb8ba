// Joins where keys stand more than once on both sides: what merge.cu answered as rows of ranks becomes pairs.
//
// A row is a left tuple and the first right one of its key, or a tuple without a partner. `expand_count` counts the
// pairs of each row, a thread a row, by steps of doubling length and then by halves; the counts are scanned to offsets
// (all.cu). Then a thread a pair finds its row in the offsets by halves and writes the pair, so long runs of equal keys
// are as fast as short ones. `find_repeats` tells whether keys stand more than once at all.

#define OUT_VALUE4 4u
#define OUT_VALUE8 8u
#define OUT_RANK8 108u
#define NO_RANK (~0ull)

// The same as Expand in relation/expand.rs.
struct Expand {
    const Word* keys[2];
    const void* values[2];
    u64 rights;
    const u64* rows[2];
    u64 count;
    u64* offsets;
    u64 total;
    Word* keys_to;
    void* values_to[2];
    u8* sides_to;
    u32 kinds[2];
};
static_assert(sizeof(Expand) == BYTES_OF_EXPAND, "as in relation/expand.rs");

__device__ __forceinline__ Word key_at(const Word* keys, u64 rank) {
#if WORD_BYTES == 16
    const u64* halves = (const u64*)(keys + rank);
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(keys + rank);
#endif
}

// How many pairs each row makes.
extern "C" __global__ void expand_count(const __grid_constant__ Expand expand) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < expand.count; row += step) {
        u64 left = expand.rows[0][row], right = expand.rows[1][row], pairs = 1;
        if (left != NO_RANK && right != NO_RANK) {
            Word key = key_at(expand.keys[0], left);
            u64 begin = right, end = expand.rights, jump = 0;
            while (begin < end) {
                u64 middle = begin + min(jump, (end - begin) / 2);
                if (key_at(expand.keys[1], middle) == key) {
                    begin = middle + 1;
                    jump = 2 * jump + 1;
                } else {
                    end = middle;
                }
            }
            pairs = begin - right;
        }
        expand.offsets[row] = pairs;
    }
}

__device__ __forceinline__ void put_out(const Expand& expand, u32 side, u64 at, u64 rank) {
    bool is_none = rank == NO_RANK;
    switch (expand.kinds[side]) {
        case OUT_VALUE4:
            ((u32*)expand.values_to[side])[at] = is_none ? 0 : ((const u32*)expand.values[side])[rank];
            break;
        case OUT_VALUE8:
            ((u64*)expand.values_to[side])[at] = is_none ? 0 : ((const u64*)expand.values[side])[rank];
            break;
        case OUT_RANK8: ((u64*)expand.values_to[side])[at] = rank; break;
        default: break;
    }
}

// Writes all pairs.
extern "C" __global__ void expand_fill(const __grid_constant__ Expand expand) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < expand.total; at += step) {
        // The last row whose offset is not above.
        u64 begin = 0, end = expand.count;
        while (end - begin > 1) {
            u64 middle = begin + (end - begin) / 2;
            if (expand.offsets[middle] <= at) {
                begin = middle;
            } else {
                end = middle;
            }
        }
        u64 left = expand.rows[0][begin], right = expand.rows[1][begin];
        if (left != NO_RANK && right != NO_RANK) {
            right += at - expand.offsets[begin];
        }
        if (expand.keys_to != nullptr) {
            expand.keys_to[at] = left != NO_RANK ? key_at(expand.keys[0], left) : key_at(expand.keys[1], right);
        }
        put_out(expand, 0, at, left);
        put_out(expand, 1, at, right);
        if (expand.sides_to != nullptr) {
            expand.sides_to[at] = (u8)((left != NO_RANK ? 1 : 0) | (right != NO_RANK ? 2 : 0));
        }
    }
}

// Sets `*found` if a key stands twice.
extern "C" __global__ void find_repeats(const Word* keys, u64 count, u32* found) {
    u64 step = (u64)gridDim.x * blockDim.x;
    bool repeats = false;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x + 1; at < count; at += step) {
        repeats |= key_at(keys, at) == key_at(keys, at - 1);
    }
    if (repeats) {
        *found = 1;
    }
}

// What was left is right.
extern "C" __global__ void expand_swap_sides(u8* sides, u64 count) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        sides[at] = (u8)((sides[at] & 1) << 1 | sides[at] >> 1);
    }
}
