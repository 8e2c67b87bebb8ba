// What a device can do at best, and batches of queries whose answers are known: for benchmarks.
//
// The limits: reads at random places of an array, of 8 bytes by a thread (`random_words`) or of lines of 64 bytes by
// four lanes (`random_lines`), IN_FLIGHT of them a thread before the first one is used; a copy; a kernel that does
// nothing. Each read counts into a sum, so that none is left out and a test can tell that they were the right ones.
//
// The batches: queries drawn by a seed from a sorted column of distinct keys, each with the answer that it must get,
// which follows from the query and not from a search: the value of a key is a mix of it, `value_of`. `make_ascending`
// sorts by groups of neighbours: each group draws from its own part of the table. `compare_answers` counts
// differences, `sum_values` adds answers up for programs that cannot hand over all of them. Peers draw the same queries
// by the same formulas (bench/peers/gpu), which is why these use nothing but 64-bit products, shifts and sums.
//
// IN_FLIGHT 0 is the program of the batches. Launch: blocks of a multiple of 32 threads, any number of blocks.

// Loads of random reads.
#define LOAD_PLAIN 0u
#define LOAD_READ_ONLY 1u
#define LOAD_STREAMING 2u

// The same as Reads in measure.rs: `reads` of them, over `units` places, fewer than 2^32.
struct Reads {
    const void* from;
    u64 units;
    u64 reads;
    u64* sum;
    u32 seed;
    u32 load;
};
static_assert(sizeof(Reads) == BYTES_OF_READS, "Reads in measure.rs");

// The same as Move in measure.rs.
struct Move {
    const uint4* from;
    uint4* to;
    u64 count;
};
static_assert(sizeof(Move) == BYTES_OF_MOVE, "Move in measure.rs");

// The same as Draw in measure.rs: what queries are drawn from, and where they and their answers go.
struct Draw {
    const Word* keys;
    u64 tuples;
    Word* queries;
    Value* values;
    u32* present;
    u64 count;
    u64 seed;
    double octaves;
    u64 kind;
};
static_assert(sizeof(Draw) == BYTES_OF_DRAW, "Draw in measure.rs");

// The same as Compare in measure.rs: `differences` counts, and has the first place after the number.
struct Compare {
    const Value* values;
    const Value* wanted;
    const u32* present;
    const u32* wanted_present;
    u64 count;
    u64* differences;
    // Which query each answer is of; null if they stand in order.
    const u32* numbers;
};
static_assert(sizeof(Compare) == BYTES_OF_COMPARE, "Compare in measure.rs");

// Kinds of queries.
#define DRAW_PRESENT 0ull
#define DRAW_HALF_ABSENT 1ull
#define DRAW_ZIPF 2ull

// Queries of a group that is sorted, one a thread.
#define GROUP 1024u

__device__ __forceinline__ u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 threads_in_all() { return (u64)gridDim.x * blockDim.x; }

__device__ __forceinline__ u64 mix64(u64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// Adds a sum of each lane to one in memory; all lanes of the warp call this.
__device__ __forceinline__ void add_up(u64* to, u64 sum) {
    for (u32 step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(FULL, sum, step);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(to, sum);
    }
}

#if IN_FLIGHT > 0

// Threads of a block at most, so that all that is in flight has registers.
#define READERS (IN_FLIGHT < 16 ? 1024 : 512)

// A place of a read, spread over `units`.
__device__ __forceinline__ u32 place(u64 read, u32 seed, u32 units) {
    u32 x = (u32)read + seed;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return __umulhi(x ^ x >> 16, units);
}

// Loads of 8 and of 16 bytes in four ways.
struct Plain {
    __device__ __forceinline__ static u64 word(const u64* at) { return *at; }
    __device__ __forceinline__ static uint4 quarter(const uint4* at) { return *at; }
};
struct ReadOnly {
    __device__ __forceinline__ static u64 word(const u64* at) { return __ldg(at); }
    __device__ __forceinline__ static uint4 quarter(const uint4* at) { return __ldg(at); }
};
struct Streaming {
    __device__ __forceinline__ static u64 word(const u64* at) { return __ldcs(at); }
    __device__ __forceinline__ static uint4 quarter(const uint4* at) { return __ldcs(at); }
};
struct NoAllocate {
#ifdef PLEACH_EMULATED
    __device__ __forceinline__ static u64 word(const u64* at) { return *at; }
    __device__ __forceinline__ static uint4 quarter(const uint4* at) { return *at; }
#else
    __device__ __forceinline__ static u64 word(const u64* at) {
        u64 word;
        asm("ld.global.nc.L1::no_allocate.b64 %0, [%1];" : "=l"(word) : "l"(at));
        return word;
    }
    __device__ __forceinline__ static uint4 quarter(const uint4* at) {
        uint4 words;
        asm("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
            : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
            : "l"(at));
        return words;
    }
#endif
};

template <class Load> __device__ __forceinline__ u64 read_words(const Reads& reads) {
    const u64* from = (const u64*)reads.from;
    u64 step = threads_in_all(), lane = threadIdx.x & 31, sum = 0;
    for (u64 base = thread_number() - lane; base < reads.reads; base += step * IN_FLIGHT) {
        u64 words[IN_FLIGHT], at = base + lane;
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            words[i] = Load::word(from + place(at + i * step, reads.seed, (u32)reads.units));
        }
        // Else some would be used before the others are asked for.
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            sum += at + i * step < reads.reads ? words[i] : 0;
        }
    }
    return sum;
}

// Four lanes have the four quarters of a line.
template <class Load> __device__ __forceinline__ u64 read_lines(const Reads& reads) {
    const uint4* from = (const uint4*)reads.from + (threadIdx.x & 3);
    u64 step = threads_in_all() / 4, lane = threadIdx.x & 31, sum = 0;
    for (u64 base = (thread_number() - lane) / 4; base < reads.reads; base += step * IN_FLIGHT) {
        u64 at = base + lane / 4;
        uint4 words[IN_FLIGHT];
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            words[i] = Load::quarter(from + (u64)place(at + i * step, reads.seed, (u32)reads.units) * 4);
        }
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            u64 all = ((u64)words[i].y << 32 | words[i].x) + ((u64)words[i].w << 32 | words[i].z);
            sum += at + i * step < reads.reads ? all : 0;
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(READERS) random_words(const __grid_constant__ Reads reads) {
    u64 sum;
    switch (reads.load) {
    case LOAD_PLAIN: sum = read_words<Plain>(reads); break;
    case LOAD_READ_ONLY: sum = read_words<ReadOnly>(reads); break;
    case LOAD_STREAMING: sum = read_words<Streaming>(reads); break;
    default: sum = read_words<NoAllocate>(reads);
    }
    add_up(reads.sum, sum);
}

extern "C" __global__ void __launch_bounds__(READERS) random_lines(const __grid_constant__ Reads reads) {
    u64 sum;
    switch (reads.load) {
    case LOAD_PLAIN: sum = read_lines<Plain>(reads); break;
    case LOAD_READ_ONLY: sum = read_lines<ReadOnly>(reads); break;
    case LOAD_STREAMING: sum = read_lines<Streaming>(reads); break;
    default: sum = read_lines<NoAllocate>(reads);
    }
    add_up(reads.sum, sum);
}

// More than 8 in flight would not fit into a thread's registers.
#define COPIED (IN_FLIGHT < 8 ? IN_FLIGHT : 8)
extern "C" __global__ void __launch_bounds__(1024) copy_words(const __grid_constant__ Move move) {
    u64 step = threads_in_all();
    for (u64 at = thread_number(); at < move.count; at += step * COPIED) {
        uint4 words[COPIED];
#pragma unroll
        for (u32 i = 0; i < COPIED; i++) {
            u64 from = at + i * step;
            words[i] = __ldcs(move.from + (from < move.count ? from : move.count - 1));
        }
#pragma unroll
        for (u32 i = 0; i < COPIED; i++) {
            if (at + i * step < move.count) {
                __stcs(move.to + at + i * step, words[i]);
            }
        }
    }
}

extern "C" __global__ void nothing(u32) {}

#else

__device__ __forceinline__ Value value_of(Word key) { return (Value)mix64((u64)key ^ 0x5851F42D4C957F2Dull); }

// The number by which query `at` is drawn.
__device__ __forceinline__ u64 number_of(u64 seed, u64 at) { return mix64(seed + (at + 1) * 0x9E3779B97F4A7C15ull); }

// A number below `bound`, by a number that is mixed.
__device__ __forceinline__ u64 below(u64 number, u64 bound) {
    return bound >> 32 != 0 ? __umul64hi(number, bound) : (number >> 32) * bound >> 32;
}

// The rank of a key by Zipf's law: the k-th most frequent key is drawn 1/k as often as the first, and lies anywhere.
__device__ __forceinline__ u64 zipf_rank(const Draw& draw, u64 number) {
    // The inverse of the distribution, taken as continuous: 2 to a power, whose fraction a polynomial serves.
    double power = (double)(number >> 11) * (1.0 / 9007199254740992.0) * draw.octaves;
    u32 whole = (u32)power;
    double part = power - (double)whole;
    double within = 1.0 + part * (0.69583282 + part * (0.22606716 + part * 0.07810002));
    u64 k = (u64)(within * (double)(1ull << whole));
    k = max(1ull, min(k, draw.tuples));
    return below(mix64(k * 0x9E3779B97F4A7C15ull), draw.tuples);
}

// A key that is not there, near the one of that rank: in the gap above it, else above all; itself if there is no room.
__device__ __forceinline__ Word absent_near(const Draw& draw, u64 rank, u64 number) {
    Word key = draw.keys[rank];
    Word room = rank + 1 < draw.tuples ? (Word)(draw.keys[rank + 1] - key - 1) : (Word)0;
    Word base = key;
    if (room == 0) {
        base = draw.keys[draw.tuples - 1];
        room = (Word)min((u64)((Word)~(Word)0 - base), draw.tuples);
    }
    return room == 0 ? key : (Word)(base + 1 + (Word)__umul64hi(mix64(number), (u64)room));
}

__device__ __forceinline__ void put(const Draw& draw, u64 at, Word query, bool is_there) {
    u32 bits = __ballot_sync(FULL, is_there && at < draw.count);
    if (at < draw.count) {
        draw.queries[at] = query;
        draw.values[at] = is_there ? value_of(query) : (Value)0;
        if ((at & 31) == 0) {
            draw.present[at / 32] = bits;
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024) make_queries(const __grid_constant__ Draw draw) {
    u64 lane = threadIdx.x & 31;
    for (u64 base = thread_number() - lane; base < draw.count; base += threads_in_all()) {
        u64 number = number_of(draw.seed, base + lane);
        u64 rank = draw.kind == DRAW_ZIPF ? zipf_rank(draw, number) : below(number, draw.tuples);
        Word key = draw.keys[rank], query = key;
        u64 coin = mix64(number ^ 0x00C0FFEE00000000ull);
        if (draw.kind == DRAW_HALF_ABSENT && (coin & 1) != 0) {
            query = absent_near(draw, rank, coin);
        }
        put(draw, base + lane, query, query == key);
    }
}

// Present keys in ascending order. Blocks of GROUP threads.
extern "C" __global__ void __launch_bounds__(GROUP) make_ascending(const __grid_constant__ Draw draw) {
    __shared__ u64 ranks[GROUP];
    u32 me = threadIdx.x;
    u64 groups = (draw.count + GROUP - 1) / GROUP;
    for (u64 group = blockIdx.x; group < groups; group += gridDim.x) {
        u64 at = group * GROUP + me;
        u64 low = group * draw.tuples / groups, high = (group + 1) * draw.tuples / groups;
        // Past the last query nothing comes before those that are.
        ranks[me] = at < draw.count ? low + below(number_of(draw.seed, at), high - low) : ~0ull;
        __syncthreads();
        for (u32 size = 2; size <= GROUP; size *= 2) {
            for (u32 step = size / 2; step > 0; step /= 2) {
                u32 other = me ^ step;
                if (other > me) {
                    u64 a = ranks[me], b = ranks[other];
                    if ((a > b) == ((me & size) == 0)) {
                        ranks[me] = b;
                        ranks[other] = a;
                    }
                }
                __syncthreads();
            }
        }
        u64 rank = min(ranks[me], draw.tuples - 1);
        put(draw, at, draw.keys[rank], true);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(1024) compare_answers(const __grid_constant__ Compare compare) {
    for (u64 at = thread_number(); at < compare.count; at += threads_in_all()) {
        u64 of = compare.numbers == nullptr ? at : min((u64)compare.numbers[at], compare.count - 1);
        u32 differ = compare.present[at / 32] >> (at & 31) ^ compare.wanted_present[of / 32] >> (of & 31);
        if (compare.values[at] != compare.wanted[of] || (differ & 1) != 0) {
            atomicAdd(compare.differences, 1ull);
            atomicMin(compare.differences + 1, at);
        }
    }
}

// Sums are compared, so sums of 32-bit values must not wrap there: they are added as 64 bits.
extern "C" __global__ void __launch_bounds__(1024) sum_values(const __grid_constant__ Compare compare) {
    u64 sum = 0;
    for (u64 at = thread_number(); at < compare.count; at += threads_in_all()) {
        sum += compare.values[at];
    }
    add_up(compare.differences, sum);
}

#endif
