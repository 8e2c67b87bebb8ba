// Queries sorted by some of their bits, each with its number: Harmonia's partially-sorted aggregation (section 4.1).
//
// A stable radix sort, least digit first, in as few passes as the bits want digits of 8, of widths that differ by one
// at most. What is sorted by is a query's distance from the table's smallest key, no more than that of the largest, so
// that the bits that all keys share cost nothing. `sort_count` counts all digits in one read. `sort_pass` is one read
// and one write: a block takes the next tile, ranks its queries (a warp finds lanes of the same digit by votes and
// counts in shared memory), tells its counts, stages the queries in their order, and meanwhile adds up what the tiles
// before it told (decoupled look-back). Then queries leave in runs, and after them their numbers by the same places.
//
// Besides WORD_BYTES: ITEMS, queries of a thread of a tile.

#define SORTERS 512u
#define SORTER_WARPS (SORTERS / WARP)
#define DIGITS 256u
#define SORT_PASSES 16u
#define TILE (SORTERS * ITEMS)

// What a tile told: nothing yet, its own counts, or those of all tiles up to it.
#define TOLD_OWN (1u << 30)
#define TOLD_ALL (2u << 30)
#define TOLD_COUNT (TOLD_OWN - 1)

// The same as Pass in algorithm/psa.rs. `numbers` may be null: then they count from `first`.
struct Sort {
    const Word* queries;
    const u32* numbers;
    Word* queries_to;
    u32* numbers_to;
    u32* counts;
    u32* told;
    u32* turn;
    u64 low[2];
    u64 span[2];
    u32 count;
    u32 first;
    u32 kind;
    u32 shift;
    u32 width;
    u32 bits;
    u32 passes;
    u32 pass;
};
static_assert(sizeof(Sort) == BYTES_OF_SORT, "as in algorithm/psa.rs");

// What other blocks tell, and telling it: whole words, past the caches of a multiprocessor.
#ifdef PLEACH_EMULATED
__device__ __forceinline__ u32 hear(const u32* from) { return __ldcg(from); }
__device__ __forceinline__ void tell(u32* to, u32 word) { __stcg(to, word); }
#else
__device__ __forceinline__ u32 hear(const u32* from) {
    u32 word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ void tell(u32* to, u32 word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
#endif

__device__ __forceinline__ Word word_of(const u64 (&halves)[2]) {
#if WORD_BYTES == 16
    return (Word)halves[1] << 64 | halves[0];
#else
    return (Word)halves[0];
#endif
}

// What a query is sorted by.
__device__ __forceinline__ Word place_of(const Sort& sort, Word query) {
    Word low = word_of(sort.low), span = word_of(sort.span);
    Word place = query < low ? (Word)0 : (Word)(query - low);
    return (place < span ? place : span) >> sort.shift;
}

__device__ __forceinline__ u32 digit_of(const Sort& sort, Word place, u32 pass) {
    u32 from = pass * sort.width, left = sort.bits - from;
    return (u32)(place >> from) & ((1u << (left < sort.width ? left : sort.width)) - 1);
}

__device__ __forceinline__ Word load_word(const Sort& sort, u32 at) {
#if WORD_BYTES == 16
    const u64* halves = (const u64*)(sort.queries + at);
    return encode((Word)__ldcs(halves + 1) << 64 | __ldcs(halves), sort.kind);
#else
    return encode(__ldcs(sort.queries + at), sort.kind);
#endif
}

// Any grid of blocks of SORTERS threads. `counts` is zeroed.
extern "C" __global__ void __launch_bounds__(SORTERS) sort_count(const __grid_constant__ Sort sort) {
    __shared__ u32 counts[SORT_PASSES * DIGITS];
    for (u32 i = threadIdx.x; i < sort.passes * DIGITS; i += SORTERS) {
        counts[i] = 0;
    }
    __syncthreads();
    u32 threads = gridDim.x * SORTERS;
    for (u64 base = blockIdx.x * SORTERS + threadIdx.x; base < sort.count; base += 4ull * threads) {
        Word queries[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u64 at = base + (u64)i * threads;
            queries[i] = load_word(sort, at < sort.count ? (u32)at : sort.count - 1);
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            Word place = place_of(sort, queries[i]);
            for (u32 pass = 0; pass < sort.passes && base + (u64)i * threads < sort.count; pass++) {
                atomicAdd(counts + pass * DIGITS + digit_of(sort, place, pass), 1u);
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < sort.passes * DIGITS; i += SORTERS) {
        if (counts[i] != 0) {
            atomicAdd(sort.counts + i, counts[i]);
        }
    }
}

// Sums of what stands before each of the first DIGITS threads, low and high half apart. All threads call it.
__device__ __forceinline__ u64 scan_digits(u64 own, u64* sums) {
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 sum = own;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u64 other = __shfl_up_sync(FULL, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == WARP - 1) {
        sums[warp] = sum;
    }
    __syncthreads();
    u64 before = 0;
#pragma unroll
    for (u32 i = 0; i < DIGITS / WARP; i++) {
        before += i < warp ? sums[i] : 0;
    }
    return before + sum - own;
}

// A block a tile, of SORTERS threads; shared memory: a word a query of a tile, and a count a warp and digit. `told` and
// `turn` are zeroed.
extern "C" __global__ void __launch_bounds__(SORTERS, 2) sort_pass(const __grid_constant__ Sort sort) {
    DYNAMIC_SHARED(u64, shared);
    __shared__ u64 sums[SORTER_WARPS];
    __shared__ u32 starts[DIGITS];
    __shared__ u32 bases[DIGITS];
    __shared__ u32 taken;
    Word* stage = (Word*)shared;
    u32* number_stage = (u32*)shared;
    u32* ranked = (u32*)(stage + TILE);
    u32 me = threadIdx.x, lane = me % WARP, warp = me / WARP;
    if (me == 0) {
        taken = atomicAdd(sort.turn + sort.pass, 1u);
    }
    u32* mine = ranked + warp * DIGITS;
#pragma unroll
    for (u32 i = 0; i < DIGITS / WARP; i++) {
        mine[i * WARP + lane] = 0;
    }
    __syncthreads();
    u32 tile = taken, begin = tile * TILE;
    u32 tiled = min(sort.count - begin, TILE), from = warp * (WARP * ITEMS);

    Word queries[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = from + i * WARP + lane;
        queries[i] = load_word(sort, begin + (at < tiled ? at : tiled - 1));
    }
    // Rank among the warp's queries of the same digit, and the digit above it.
    u32 ranks[ITEMS];
    u32 width = min(sort.width, sort.bits - sort.pass * sort.width);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 row = from + i * WARP;
        ranks[i] = 0;
        if (row < tiled) {
            u32 digit = digit_of(sort, place_of(sort, queries[i]), sort.pass);
            bool is_there = row + lane < tiled;
            u32 same = __ballot_sync(FULL, is_there);
#pragma unroll
            for (u32 bit = 0; bit < 8; bit++) {
                if (bit < width) {
                    bool is_set = (digit >> bit & 1) != 0;
                    u32 votes = __ballot_sync(FULL, is_set);
                    same &= is_set ? votes : ~votes;
                }
            }
            u32 before = __popc(same & ((1u << lane) - 1));
            u32 count = is_there ? mine[digit] : 0;
            __syncwarp();
            if (is_there && before == 0) {
                mine[digit] = count + __popc(same);
            }
            __syncwarp();
            ranks[i] = digit << 16 | (count + before);
        }
    }
    __syncthreads();

    u32 count = 0;
    u64 counted = 0;
    u32* told = sort.told + (u64)tile * DIGITS + me;
    if (me < DIGITS) {
#pragma unroll
        for (u32 i = 0; i < SORTER_WARPS; i++) {
            u32 each = ranked[i * DIGITS + me];
            ranked[i * DIGITS + me] = count;
            count += each;
        }
        tell(told, (tile == 0 ? TOLD_ALL : TOLD_OWN) | count);
        counted = (u64)__ldg(sort.counts + sort.pass * DIGITS + me) << 32 | count;
    }
    u64 scanned = scan_digits(counted, sums);
    u32 start = (u32)scanned;
    if (me < DIGITS) {
        starts[me] = start;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 digit = ranks[i] >> 16;
        ranks[i] = starts[digit] + mine[digit] + (ranks[i] & 0xFFFFu);
        if (from + i * WARP + lane < tiled) {
            stage[ranks[i]] = queries[i];
        }
    }
    if (me < DIGITS) {
        u32 before = 0;
        for (u32 at = tile; at > 0;) {
            at--;
            u32 said = hear(sort.told + (u64)at * DIGITS + me);
            while (said < TOLD_OWN) {
                said = hear(sort.told + (u64)at * DIGITS + me);
            }
            before += said & TOLD_COUNT;
            if (said >= TOLD_ALL) {
                break;
            }
        }
        if (tile > 0) {
            tell(told, TOLD_ALL | (before + count));
        }
        bases[me] = (u32)(scanned >> 32) + before - start;
    }
    __syncthreads();

    u32 places[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = i * SORTERS + me;
        places[i] = 0;
        if (at < tiled) {
            Word query = stage[at];
            places[i] = bases[digit_of(sort, place_of(sort, query), sort.pass)] + at;
            sort.queries_to[places[i]] = query;
        }
    }
    u32 numbers[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = begin + min(from + i * WARP + lane, tiled - 1);
        numbers[i] = sort.numbers == nullptr ? sort.first + at : __ldcs(sort.numbers + at);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        if (from + i * WARP + lane < tiled) {
            number_stage[ranks[i]] = numbers[i];
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = i * SORTERS + me;
        if (at < tiled) {
            sort.numbers_to[places[i]] = number_stage[at];
        }
    }
}
