// All values of each query's key: count, scan, fill.
//
// From the rank of a query's lower bound on, its tuples are those with an equal key. A thread a query counts them by
// steps of doubling length, then bisects, in the tuple lines. The counts are scanned to offsets: each block scans a
// tile, one block scans the tiles' sums, each block adds its own. Then a thread a value finds its query in the offsets
// by bisection and copies, so long runs of equal keys are as fast as short ones.
//
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line) and VALUES_AT (bytes).

// Threads of a block, and counts of a tile.
#define ALL_THREADS 256u
#define TILE 2048u

// The same as All in all.rs.
struct All {
    const u8* lines;
    u64 tuples;
    u64* ranks;
    u64* offsets;
    u64* sums;
    Value* values;
    u64 total;
};
static_assert(sizeof(All) == BYTES_OF_ALL, "as in all.rs");

// Where a byte of a tuple's line lies, by its place in the file's line.
__device__ __forceinline__ const u8* place_of(const All& all, u64 rank, u32 byte) {
    return all.lines + rank / TUPLES * 64 + byte;
}

__device__ __forceinline__ Word key_at(const All& all, u64 rank) {
    return *(const Word*)place_of(all, rank, (u32)(rank % TUPLES) * WORD_BYTES);
}

// Counts the tuples of each query's key. The ranks are a search's, so none is beyond the tuples.
extern "C" __global__ void all_count(const __grid_constant__ All all, const __grid_constant__ Batch batch) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < batch.count; at += step) {
        Word query = load_query(batch, at);
        u64 begin = min(all.ranks[at], all.tuples), end = all.tuples, jump = 0;
        u64 first = begin;
        while (begin < end) {
            u64 middle = begin + min(jump, (end - begin) / 2);
            if (key_at(all, middle) == query) {
                begin = middle + 1;
                jump = 2 * jump + 1;
            } else {
                end = middle;
            }
        }
        all.offsets[at] = begin - first;
    }
}

// Sum of the threads before this one in the block, and of all; all threads call it.
__device__ __forceinline__ u64 scan_block(u64 mine, u64* total) {
    __shared__ u64 warps[ALL_THREADS / 32];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 sum = mine;
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u64 left = __shfl_up_sync(FULL, sum, distance);
        sum += lane >= distance ? left : 0;
    }
    if (lane == 31) {
        warps[warp] = sum;
    }
    __syncthreads();
    u64 before = 0, whole = 0;
    for (u32 i = 0; i < ALL_THREADS / 32; i++) {
        before += i < warp ? warps[i] : 0;
        whole += warps[i];
    }
    __syncthreads();
    *total = whole;
    return before + sum - mine;
}

// Scans each tile by itself, and writes its sum.
extern "C" __global__ void __launch_bounds__(ALL_THREADS) all_tiles(const __grid_constant__ All all, u64 count) {
    u64 tiles = (count + TILE - 1) / TILE;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        u64 carried = 0;
        for (u32 part = 0; part < TILE; part += ALL_THREADS) {
            u64 at = tile * TILE + part + threadIdx.x, total;
            u64 mine = at < count ? all.offsets[at] : 0;
            u64 before = scan_block(mine, &total);
            if (at < count) {
                all.offsets[at] = carried + before;
            }
            carried += total;
        }
        if (threadIdx.x == 0) {
            all.sums[tile] = carried;
        }
    }
}

// Scans the tiles' sums; one block.
extern "C" __global__ void __launch_bounds__(ALL_THREADS) all_sums(const __grid_constant__ All all, u64 count) {
    u64 tiles = (count + TILE - 1) / TILE, carried = 0;
    for (u64 base = 0; base < tiles; base += ALL_THREADS) {
        u64 at = base + threadIdx.x, total;
        u64 mine = at < tiles ? all.sums[at] : 0;
        u64 before = scan_block(mine, &total);
        if (at < tiles) {
            all.sums[at] = carried + before;
        }
        carried += total;
    }
    if (threadIdx.x == 0) {
        all.offsets[count] = carried;
    }
}

// Adds to each offset what stands before its tile.
extern "C" __global__ void all_add(const __grid_constant__ All all, u64 count) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        all.offsets[at] += all.sums[at / TILE];
    }
}

// Writes the values, those of a query together and in order.
extern "C" __global__ void all_fill(const __grid_constant__ All all, u64 count) {
#if VALUE_BYTES > 0
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < all.total; at += step) {
        // The last query whose offset is not above.
        u64 begin = 0, end = count;
        while (end - begin > 1) {
            u64 middle = begin + (end - begin) / 2;
            if (all.offsets[middle] <= at) {
                begin = middle;
            } else {
                end = middle;
            }
        }
        u64 rank = all.ranks[begin] + (at - all.offsets[begin]);
        rank = min(rank, all.tuples - 1);
        const u8* value = place_of(all, rank, VALUES_AT + (u32)(rank % TUPLES) * VALUE_BYTES);
#if VALUE_BYTES == 8
        all.values[at] = (u64)((const u32*)value)[1] << 32 | ((const u32*)value)[0];
#else
        all.values[at] = *(const u32*)value;
#endif
    }
#endif
}
