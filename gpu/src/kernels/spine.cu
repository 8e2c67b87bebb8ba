// Look-ups through the device image: the top in shared memory, a node a level, a tuple line.
//
// Each thread descends with a query of its own: a node is one sector, which it loads by itself. A tuple line is
// loaded by four threads for each of them in turn, 16 bytes each, since lanes that share a line cost one access;
// it goes through shared memory, where the thread that asked reads it. Codes and intervals as in image.rs.
//
// WORD_BYTES (4, 8), VALUE_BYTES (0, 4, 8), TUPLES (a line), VALUES_AT, THREADS (a block), LEVELS_MAX and FANOUT
// come from compile.rs.

typedef unsigned int u32;
typedef unsigned long long u64;

#if WORD_BYTES == 4
typedef u32 Word;
#define LEADING_ZEROS(x) ((u32)__clz((int)(x)))
#else
typedef u64 Word;
#define LEADING_ZEROS(x) ((u32)__clzll((long long)(x)))
#endif
#if VALUE_BYTES == 8
typedef u64 Value;
#else
typedef u32 Value;
#endif

// The same as Arguments in table.rs. Kernels take it as a grid constant: a copy of their own, whose `nodes` are
// chosen by level, would lie in memory and cost a load a level.
struct Arguments {
    const uint4* lines;
    const uint4* nodes[LEVELS_MAX];
    const u32* top;
    u64 low;
    u64 high;
    u64 tuples;
    u32 last_line;
    u32 top_count;
    u32 levels;
    u32 top_shift;
};

__device__ __forceinline__ u32 shift_of(Word left, Word right) {
    u32 bits = 8 * WORD_BYTES - LEADING_ZEROS(right - left);
    return bits > 16 ? bits - 16 : 0;
}

// Where 16 bytes of a thread's line lie in its block's stage: turned, so that reads do not meet in a bank.
__device__ __forceinline__ u32 staged(u32 row, u32 column) { return row * 4 + (column ^ (row >> 1 & 3)); }

__device__ __forceinline__ Word line_key(const u32* words, u32 slot) {
#if WORD_BYTES == 4
    return words[slot];
#else
    return (u64)words[2 * slot + 1] << 32 | words[2 * slot];
#endif
}

__device__ __forceinline__ Word last_key(const Arguments& table, u32 line) {
    return ((const Word*)(table.lines + (u64)line * 4))[TUPLES - 1];
}

struct Hit {
    u64 rank;
    Value value;
    bool found;
};

__device__ Hit look_up(const Arguments& table, const u32* top, uint4* stage, Word query) {
    Word low = (Word)table.low, high = (Word)table.high;
    Word offset = query < low ? 0 : (query > high ? high : query) - low;
    // The top: how many codes are below the query's.
    u32 code = (u32)(offset >> table.top_shift);
    u32 at = 0, size = table.top_count;
    while (size > 0) {
        u32 half = size / 2;
        bool below = top[at + half] < code;
        at = below ? at + half + 1 : at;
        size = below ? size - half - 1 : half;
    }
    Word all = high - low, mask = ((Word)1 << table.top_shift) - 1;
    Word left = at == 0 ? 0 : (Word)top[at - 1] << table.top_shift;
    Word right = at == table.top_count ? all : min((Word)((Word)top[at] << table.top_shift | mask), all);
    right = max(left, right);
    for (u32 level = table.levels; level-- > 0;) {
        const uint4* node = table.nodes[level] + (u64)at * 2;
        uint4 low_half = __ldg(node), high_half = __ldg(node + 1);
        u32 codes[8] = {low_half.x, low_half.y, low_half.z, low_half.w, high_half.x, high_half.y, high_half.z, high_half.w};
        u32 shift = shift_of(left, right);
        Word span = right - left;
        Word inside = offset < left ? 0 : min((Word)(offset - left), span);
        u32 wanted = (u32)(inside >> shift) * 0x10001u;
        u32 below = 0, before = 0, after = 0xFFFFFFFFu;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            u32 smaller = __vcmpltu2(codes[i], wanted);
            below += __popc(smaller);
            before = __vmaxu2(before, codes[i] & smaller);
            after = __vminu2(after, codes[i] | smaller);
        }
        below /= 16;
        before = max(before & 0xFFFFu, before >> 16);
        after = min(after & 0xFFFFu, after >> 16);
        Word last = ((Word)1 << shift) - 1;
        Word end = left + min((Word)((Word)after << shift | last), span);
        right = below == 16 ? right : end;
        left = below == 0 ? left : left + ((Word)before << shift);
        right = max(left, right);
        at = at * FANOUT + below;
    }
    u32 line = min(at, table.last_line);
    // Four threads load the lines of all four.
    u32 lane = threadIdx.x & 31, member = lane & 3, first = threadIdx.x & ~3u;
    uint4 parts[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 number = __shfl_sync(0xFFFFFFFFu, line, (int)((lane & ~3u) + i));
        parts[i] = __ldcs(table.lines + (u64)number * 4 + member);
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        stage[staged(first + i, member)] = parts[i];
    }
    __syncwarp();
    u32 words[16];
#pragma unroll
    for (u32 column = 0; column < (TUPLES * WORD_BYTES + 15) / 16; column++) {
        uint4 part = stage[staged(threadIdx.x, column)];
        words[4 * column] = part.x, words[4 * column + 1] = part.y;
        words[4 * column + 2] = part.z, words[4 * column + 3] = part.w;
    }
    u32 slot = 0;
    bool found = false;
#pragma unroll
    for (u32 i = 0; i < TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        found |= key == query;
    }
    Hit hit;
    hit.value = 0;
    const u32* row = (const u32*)stage;
    if (slot == TUPLES && line < table.last_line) {
        // A border whose cell the query shares was not passed: the first line whose last key is not below.
        u32 begin = line + 1, end = table.last_line;
        if (last_key(table, begin) < query) {
            begin++;
            while (begin < end) {
                u32 middle = begin + (end - begin) / 2;
                if (last_key(table, middle) < query) {
                    begin = middle + 1;
                } else {
                    end = middle;
                }
            }
        }
        line = min(begin, table.last_line);
        const u32* other = (const u32*)(table.lines + (u64)line * 4);
        slot = 0;
        found = false;
        for (u32 i = 0; i < TUPLES; i++) {
            Word key = line_key(other, i);
            slot += key < query;
            found |= key == query;
        }
#if VALUE_BYTES > 0
        u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
        hit.value = other[place];
#if VALUE_BYTES == 8
        hit.value |= (u64)other[place + 1] << 32;
#endif
#endif
    } else {
#if VALUE_BYTES > 0
        u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
        hit.value = row[staged(threadIdx.x, place / 4) * 4 + place % 4];
#if VALUE_BYTES == 8
        hit.value |= (u64)row[staged(threadIdx.x, (place + 1) / 4) * 4 + (place + 1) % 4] << 32;
#endif
#endif
    }
    u64 rank = (u64)line * TUPLES + slot;
    // A key of all ones may be padding.
    hit.found = found && rank < table.tuples;
    hit.rank = rank < table.tuples ? rank : table.tuples;
    hit.value = hit.found ? hit.value : 0;
    __syncwarp();
    return hit;
}

// Shared memory: the stage, then the top.
extern __shared__ uint4 shared[];

__device__ __forceinline__ const u32* load_top(const Arguments& table) {
    u32* top = (u32*)(shared + THREADS * 4);
    for (u32 i = threadIdx.x; i < table.top_count; i += THREADS) {
        top[i] = table.top[i];
    }
    __syncthreads();
    return top;
}

// Values and presence; a bitmap of 32-bit words, whose last one may be in part beyond the queries.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_values(const __grid_constant__ Arguments table, const Word* queries, u64 count, Value* values, u32* present) {
    const u32* top = load_top(table);
    for (u64 base = (u64)blockIdx.x * THREADS; base < count; base += (u64)gridDim.x * THREADS) {
        u64 i = base + threadIdx.x;
        Hit hit = look_up(table, top, shared, __ldcs(queries + min(i, count - 1)));
        u32 bits = __ballot_sync(0xFFFFFFFFu, hit.found && i < count);
        if (i < count) {
#if VALUE_BYTES > 0
            __stcs(values + i, hit.value);
#endif
            if ((threadIdx.x & 31) == 0) {
                present[i / 32] = bits;
            }
        }
    }
}

// Ranks of lower bounds.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_ranks(const __grid_constant__ Arguments table, const Word* queries, u64 count, u64* ranks) {
    const u32* top = load_top(table);
    for (u64 base = (u64)blockIdx.x * THREADS; base < count; base += (u64)gridDim.x * THREADS) {
        u64 i = base + threadIdx.x;
        Hit hit = look_up(table, top, shared, __ldcs(queries + min(i, count - 1)));
        if (i < count) {
            __stcs(ranks + i, hit.rank);
        }
    }
}
