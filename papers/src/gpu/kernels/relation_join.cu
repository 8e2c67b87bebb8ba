// CTA-joins of the paper on relational algebra (section 4.2, Figure 8), and JOIN, INTERSECTION and DIFFERENCE by them.
//
// Two sorted blocks are in shared memory. Each thread has BLOCKING tuples of the left one in registers and finds
// where the right tuples of the same key begin, and how many there are; a prefix sum of the counts says where results
// go. How they are found is CTA_JOIN, one of five: 0 binary search, of lower and upper bound; 1 the same for a
// thread's first and last tuple, then all in between; 2 all against all; 3 a hash table; 4 the join network.
// Runs of equal keys are whole in both blocks, so a count serves duplicates. `paper_cta_join` is Table 3.

#define BINARY_SEARCH 0
#define BLOCKED_SEARCH 1
#define BRUTE_FORCE 2
#define HASH 3
#define NETWORK 4

// Tuples of a thread: the paper's register blocking.
#if CTA_JOIN == BINARY_SEARCH
#define BLOCKING 1u
#elif CTA_JOIN == BRUTE_FORCE
#define BLOCKING 2u
#else
#define BLOCKING 4u
#endif
#define NO_ENTRY 0xFFFFu

// Matches of a thread's left tuples: first right one, and how many.
struct Matches {
    u32 first[BLOCKING];
    u32 count[BLOCKING];
};

// Keys of a thread's left tuples; past the last one it is the last one.
__device__ __forceinline__ u32 load_own(const Word* left, u32 lefts, Word (&own)[BLOCKING]) {
    u32 from = threadIdx.x * BLOCKING;
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        own[i] = left[min(from + i, lefts - 1)];
    }
    return from < lefts ? min(lefts - from, BLOCKING) : 0;
}

// Right tuples from `begin` on, before `end`, each against all of a thread's; none before `begin` match.
__device__ __forceinline__ void compare_all(const Word* right, u32 begin, u32 end, const Word (&own)[BLOCKING],
                                            Matches& found) {
    u32 below[BLOCKING] = {}, equal[BLOCKING] = {};
    for (u32 at = begin; at < end; at++) {
        Word key = right[at];
#pragma unroll
        for (u32 i = 0; i < BLOCKING; i++) {
            below[i] += key < own[i];
            equal[i] += key == own[i];
        }
    }
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        found.first[i] = begin + below[i];
        found.count[i] = equal[i];
    }
}

__device__ __forceinline__ void search_each(const Word* right, u32 rights, const Word (&own)[BLOCKING],
                                            Matches& found) {
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        found.first[i] = bound_in(right, 0, rights, own[i], false);
        found.count[i] = bound_in(right, found.first[i], rights, own[i], true) - found.first[i];
    }
}

#if CTA_JOIN == BINARY_SEARCH
__device__ __forceinline__ void match(const Word*, u32, const Word* right, u32 rights, u16*, u32,
                                      const Word (&own)[BLOCKING], u32, Matches& found) {
    search_each(right, rights, own, found);
}
#elif CTA_JOIN == BLOCKED_SEARCH
__device__ __forceinline__ void match(const Word*, u32, const Word* right, u32 rights, u16*, u32,
                                      const Word (&own)[BLOCKING], u32 owned, Matches& found) {
    u32 begin = bound_in(right, 0, rights, own[0], false);
    u32 end = bound_in(right, begin, rights, own[BLOCKING - 1], true);
    compare_all(right, begin, owned > 0 ? end : begin, own, found);
}
#elif CTA_JOIN == BRUTE_FORCE
__device__ __forceinline__ void match(const Word*, u32, const Word* right, u32 rights, u16*, u32,
                                      const Word (&own)[BLOCKING], u32, Matches& found) {
    compare_all(right, 0, rights, own, found);
}
#elif CTA_JOIN == HASH
// `entries` is a power of two.
__device__ __forceinline__ u32 hash(Word key, u32 entries) {
    u64 mixed = (u64)key * 0x9E3779B97F4A7C15ull;
    return (u32)(mixed >> 40) & (entries - 1);
}

// Threads write their right tuples' numbers into the table without atomics and read back who won; losers come again in
// the next round. That race is the algorithm (racecheck reports it); writes are volatile, so that one of them wins
// whole. Of a run of equal keys the first one goes in (each duplicate would take a round of its own), and the
// others are counted behind it.
__device__ __forceinline__ void match(const Word*, u32, const Word* right, u32 rights, u16* table, u32 entries,
                                      const Word (&own)[BLOCKING], u32 owned, Matches& found) {
    u32 waiting = 0;
    for (u32 i = threadIdx.x; i < entries; i += blockDim.x) {
        table[i] = NO_ENTRY;
    }
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        u32 at = threadIdx.x * BLOCKING + i;
        bool is_head = at < rights && (at == 0 || right[at - 1] != right[at]);
        waiting |= (u32)is_head << i;
        found.count[i] = 0;
        found.first[i] = 0;
    }
    do {
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < BLOCKING; i++) {
            u32 at = threadIdx.x * BLOCKING + i;
            if ((waiting >> i & 1) != 0) {
                ((volatile u16*)table)[hash(right[at], entries)] = (u16)at;
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < BLOCKING; i++) {
            u32 at = threadIdx.x * BLOCKING + i;
            if ((waiting >> i & 1) != 0 && table[hash(right[at], entries)] == at) {
                waiting &= ~(1u << i);
            }
        }
#pragma unroll
        for (u32 i = 0; i < BLOCKING; i++) {
            u32 entry = i < owned && found.count[i] == 0 ? table[hash(own[i], entries)] : NO_ENTRY;
            if (entry < rights && right[entry] == own[i]) {
                u32 end = entry + 1;
                while (end < rights && right[end] == own[i]) {
                    end++;
                }
                found.first[i] = entry;
                found.count[i] = end - entry;
            }
        }
    } while (__syncthreads_or(waiting != 0) != 0);
}
#else
// A window of the right block is cut in two at each stage, as the thread's group of left tuples is; the halves overlap
// by a quarter of a half. Which of them a group goes to is said by comparing its ends with the tuples beside the
// halves. If it needs both, it leaves by a side exit, to binary search. What groups of a stage have in common their
// threads read together, by broadcast; the last window, of a single thread, is compared out of registers.
__device__ __forceinline__ void match(const Word* left, u32 lefts, const Word* right, u32 rights, u16*, u32,
                                      const Word (&own)[BLOCKING], u32 owned, Matches& found) {
    u32 begin = 0, window = rights;
    bool is_out = false;
    for (u32 group = blockDim.x / 2; group > 0; group /= 2) {
        u32 half = window / 2 + window / 8 + 1;
        if (half >= window) {
            break;
        }
        u32 from = threadIdx.x / group * group * BLOCKING;
        Word first = left[min(from, lefts - 1)], last = left[min(from + group * BLOCKING, lefts) - 1];
        // Of a group without a tuple anything will do.
        bool is_low = from >= lefts || last < right[begin + half];
        bool is_high = right[begin + (window - half) - 1] < first;
        is_out = is_out || (!is_low && !is_high);
        if (is_out) {
            break;
        }
        begin += is_low ? 0 : window - half;
        window = half;
    }
    if (is_out) {
        search_each(right, rights, own, found);
    } else {
        compare_all(right, begin, owned > 0 ? begin + window : begin, own, found);
    }
}
#endif

// Counts of results, of 0 past a thread's last tuple.
__device__ __forceinline__ u32 count_results(const Word* left, u32 owned, u32 operation, Matches& found) {
    u32 sum = 0;
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        u32 at = threadIdx.x * BLOCKING + i, count = i < owned ? found.count[i] : 0;
        if (operation != OPERATION_JOIN && i < owned) {
            bool is_head = at == 0 || left[at - 1] != left[at];
            count = is_head && (count > 0) == (operation == OPERATION_INTERSECTION) ? 1 : 0;
        }
        found.count[i] = count;
        sum += count;
    }
    return sum;
}

struct Join {
    const Merge& merge_of;
    const Blocks& blocks_of;
    Stage& stage;
    Written& at;
    u16* table;
    u32 entries;
    u64 discarded;
    u64 blocks;

    __device__ __forceinline__ void loaded(u32 lefts, u32 rights) { blocks += (lefts > 0) + (rights > 0); }

    __device__ __forceinline__ void merge(u32 lefts, u32 rights) {
        bool is_idle = lefts == 0 || (rights == 0 && merge_of.operation != OPERATION_DIFFERENCE);
        if (is_idle) {
            __syncthreads();
            return;
        }
        const Blocks& b = blocks_of;
        Word own[BLOCKING];
        Matches found;
        u32 owned = load_own(b.left, lefts, own), total;
        match(b.left, lefts, b.right, rights, table, entries, own, owned, found);
        u32 sum = count_results(b.left, owned, merge_of.operation, found);
        u32 before = scan_block(sum, &total);
        emit(merge_of.sink, stage, at, total, [&](u64 done, u32 take, u32 to) {
            u32 number = before;
#pragma unroll
            for (u32 i = 0; i < BLOCKING; i++) {
                u32 mine = threadIdx.x * BLOCKING + i, end = number + found.count[i];
                for (u32 result = max(number, (u32)done); result < min(end, (u32)done + take); result++) {
                    u32 place = to + result - (u32)done;
                    stage.keys[place] = own[i];
                    u32 left_bytes = merge_of.sink.left_bytes, right_bytes = merge_of.sink.right_bytes;
                    store_value(stage.left, place, left_bytes, load_value(b.left_values, mine, left_bytes));
                    u32 partner = found.first[i] + result - number;
                    store_value(stage.right, place, right_bytes, load_value(b.right_values, partner, right_bytes));
                }
                number = end;
            }
        });
    }

    // All results of a key.
    __device__ __forceinline__ void run(const Range& range) {
        u64 lefts = range.left_end - range.left, rights = range.right_end - range.right, total = lefts * rights;
        if (merge_of.operation != OPERATION_JOIN) {
            total = lefts > 0 && (rights > 0) == (merge_of.operation == OPERATION_INTERSECTION);
        }
        emit(merge_of.sink, stage, at, total, [&](u64 done, u32 take, u32 to) {
            for (u32 i = threadIdx.x; i < take; i += blockDim.x) {
                u64 pair = done + i, row = merge_of.operation == OPERATION_JOIN ? pair / rights : 0;
                u64 slot = slot_of(merge_of.left, range.left + row);
                stage.keys[to + i] = merge_of.left.keys[slot];
                u32 left_bytes = merge_of.sink.left_bytes, right_bytes = merge_of.sink.right_bytes;
                store_value(stage.left, to + i, left_bytes, load_value(merge_of.left.values, slot, left_bytes));
                if (right_bytes > 0) {
                    u64 partner = slot_of(merge_of.right, range.right + (pair - row * rights));
                    u64 value = load_value(merge_of.right.values, partner, right_bytes);
                    store_value(stage.right, to + i, right_bytes, value);
                }
            }
        });
    }
};

// A block a partition. Shared memory: blocks of both inputs, a stage of a block's tuples, and for HASH a table of 16
// bits an entry, at least two for each tuple of a block and a power of two of them.
extern "C" __global__ void __launch_bounds__(512, 2) paper_merge(const __grid_constant__ Merge merge) {
    DYNAMIC_SHARED(u64, shared);
    Blocks blocks = blocks_at((u8*)shared, merge);
    u8* staged = behind(blocks, merge);
    Stage stage = stage_at(staged, merge.block_tuples, merge.sink);
    u16* table = (u16*)(stage.right + (u64)merge.block_tuples * merge.sink.right_bytes);
    Written at = start_writing(merge.sink, blockIdx.x);
    u32 entries = 2;
    while (entries < 2 * merge.block_tuples) {
        entries *= 2;
    }
    Join step = {merge, blocks, stage, at, table, entries, 0, 0};
    stream_partition(merge, blocks, step);
    end_writing(merge.sink, stage, at);
}

// The same as CtaJoin in relation/cta.rs. Of each block: its results, and cycles of matching, of the prefix sum,
// and of compacting results.
struct CtaJoin {
    const Word* left;
    const Word* right;
    Word* results;
    u64* cycles;
    u32 tuples;
    u32 entries;
};
static_assert(sizeof(CtaJoin) == BYTES_OF_PAPER_CTA_JOIN, "as in relation/cta.rs");

// Every block joins the same two inputs of `tuples`; the first one writes results, as many as there are tuples at most.
// Shared memory: both inputs, as many results, and the table.
extern "C" __global__ void __launch_bounds__(512) paper_cta_join(const __grid_constant__ CtaJoin task) {
    DYNAMIC_SHARED(u64, shared);
    Word* left = (Word*)shared;
    Word* right = left + task.tuples;
    Word* results = right + task.tuples;
    u16* table = (u16*)(results + task.tuples);
    for (u32 i = threadIdx.x; i < task.tuples; i += blockDim.x) {
        left[i] = task.left[i];
        right[i] = task.right[i];
    }
    __syncthreads();
    long long began = clock64();
    Word own[BLOCKING];
    Matches found;
    u32 owned = load_own(left, task.tuples, own), total;
    match(left, task.tuples, right, task.tuples, table, task.entries, own, owned, found);
    u32 sum = count_results(left, owned, OPERATION_JOIN, found);
    __syncthreads();
    long long matched = clock64();
    u32 number = scan_block(sum, &total);
    long long summed = clock64();
#pragma unroll
    for (u32 i = 0; i < BLOCKING; i++) {
        for (u32 end = number + found.count[i]; number < end; number++) {
            if (number < task.tuples) {
                results[number] = own[i];
            }
        }
    }
    __syncthreads();
    long long ended = clock64();
    if (threadIdx.x == 0) {
        u64* cycles = task.cycles + 4 * blockIdx.x;
        cycles[0] = total;
        cycles[1] = (u64)(matched - began);
        cycles[2] = (u64)(summed - matched);
        cycles[3] = (u64)(ended - summed);
    }
    for (u32 i = threadIdx.x; i < min(total, task.tuples) && blockIdx.x == 0; i += blockDim.x) {
        task.results[i] = results[i];
    }
}
