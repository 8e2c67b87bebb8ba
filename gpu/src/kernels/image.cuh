// The device image, as the kernels read it: what Spine, Image and Sweep have in common. Codes, intervals and gaps as in
// image.rs. Nodes come from image.cu, whose codes of borders that do not exist are all ones: so no child is taken that
// is not there.
//
// The image leads to units: lines, or if CELLS is 1 their halves, which then hold the keys and values of half of the
// tuples each (image.cu swaps the middle parts of lines for it).
//
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line), VALUES_AT (bytes of a line as it lies in the file), CELLS,
// FANOUT and LOW_FANOUT (of level 0), LEVELS_MAX.

// Parts of 16 bytes of a unit, its tuples, and where its values begin, in words of 32 bits.
#if CELLS
#define UNIT_PARTS 2u
#define UNIT_TUPLES (TUPLES / 2u)
#define UNIT_VALUES_AT 4u
#else
#define UNIT_PARTS 4u
#define UNIT_TUPLES (TUPLES + 0u)
#define UNIT_VALUES_AT (VALUES_AT / 4u)
#endif

// The same as Arguments in algorithm/spine.rs. Kernels take it as a grid constant: a copy of their own, whose `nodes`
// are chosen by level, would lie in memory and cost a load a level. `low` and `high` are the ends of all words without
// the gap; words of 16 bytes have high halves. `spine` does nothing if `order`, unless it is null, says that
// `sample_order` met at most `descents_max` descents: then `sweep` answers.
struct Arguments {
    const uint4* lines;
    const uint4* nodes[LEVELS_MAX];
    const u32* top;
    u64 low[2];
    u64 high[2];
    u64 gap_value[2];
    u64 tuples;
    // Of the last line, and of the last unit.
    u32 last_line;
    u32 last_unit;
    u32 top_count;
    u32 levels;
    u32 top_shift;
    u32 gap_at;
    u32 gap_bits;
    const u32* order;
    u32 descents_max;
};
static_assert(sizeof(Arguments) == BYTES_OF_SPINE, "as in algorithm/spine.rs");

#if WORD_BYTES == 16
__device__ __forceinline__ Word word_of(const u64* halves) { return (Word)halves[1] << 64 | halves[0]; }
__device__ __forceinline__ Word least(Word a, Word b) { return a < b ? a : b; }
__device__ __forceinline__ Word most(Word a, Word b) { return a < b ? b : a; }
__device__ __forceinline__ u32 leading_zeros(Word x) {
    u64 upper = (u64)(x >> 64);
    return upper != 0 ? (u32)__clzll((long long)upper) : 64 + (u32)__clzll((long long)(u64)x);
}
#else
__device__ __forceinline__ Word word_of(const u64* halves) { return (Word)halves[0]; }
__device__ __forceinline__ Word least(Word a, Word b) { return min(a, b); }
__device__ __forceinline__ Word most(Word a, Word b) { return max(a, b); }
#if WORD_BYTES == 4
__device__ __forceinline__ u32 leading_zeros(Word x) { return (u32)__clz((int)x); }
#else
__device__ __forceinline__ u32 leading_zeros(Word x) { return (u32)__clzll((long long)x); }
#endif
#endif

// Bits that codes of CODE_BITS drop in an interval.
template <u32 CODE_BITS> __device__ __forceinline__ u32 shift_of(Word left, Word right) {
    u32 bits = WORD_BITS - leading_zeros(right - left);
    return bits > CODE_BITS ? bits - CODE_BITS : 0;
}

// A word without the bits that all borders share.
__device__ __forceinline__ Word close_gap(const Arguments& table, Word word) {
    if (table.gap_bits == 0) {
        return word;
    }
    Word below = ((Word)1 << table.gap_at) - 1, value = word_of(table.gap_value);
    Word upper = word >> table.gap_at;
    Word inside = upper & (((Word)1 << table.gap_bits) - 1);
    Word lower = inside == value ? (Word)(word & below) : (inside > value ? below : (Word)0);
    return (Word)(upper >> table.gap_bits << table.gap_at) | lower;
}

__device__ __forceinline__ Word offset_of(const Arguments& table, Word query) {
    Word low = word_of(table.low), high = word_of(table.high), closed = close_gap(table, query);
    return closed < low ? (Word)0 : (Word)((closed > high ? high : closed) - low);
}

// The offsets in which a subtree's borders lie, both ends included.
struct Interval {
    Word left;
    Word right;
};

// What lies below child `at` of the top.
__device__ __forceinline__ Interval below_top(const Arguments& table, const u32* top, u32 at) {
    Word all = word_of(table.high) - word_of(table.low), mask = ((Word)1 << table.top_shift) - 1;
    Interval interval;
    interval.left = at == 0 ? 0 : (Word)top[at - 1] << table.top_shift;
    interval.right = at == table.top_count ? all : least((Word)((Word)top[at] << table.top_shift | mask), all);
    interval.right = most(interval.left, interval.right);
    return interval;
}

// The child of a node that an offset belongs to; the interval becomes the child's.
__device__ __forceinline__ u32 child_of(const u32* codes, Word offset, Interval& interval) {
    Word left = interval.left, right = interval.right;
    u32 shift = shift_of<16>(left, right);
    Word span = right - left;
    Word inside = offset < left ? 0 : least((Word)(offset - left), span);
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
    Word end = left + least((Word)((Word)after << shift | last), span);
    right = below == 16 ? right : end;
    left = below == 0 ? left : left + ((Word)before << shift);
    interval.left = left;
    interval.right = most(left, right);
    return below;
}

// The child of a node of level 0.
__device__ __forceinline__ u32 low_child_of(const u32* codes, Word offset, const Interval& interval) {
    Word left = interval.left;
    Word inside = offset < left ? (Word)0 : least((Word)(offset - left), (Word)(interval.right - left));
    u32 below = 0;
#if CELLS
    u32 wanted = (u32)(inside >> shift_of<8>(left, interval.right)) * 0x1010101u;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        below += (u32)__popc(__vcmpltu4(codes[i], wanted));
    }
    return below / 8;
#else
    u32 wanted = (u32)(inside >> shift_of<16>(left, interval.right)) * 0x10001u;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        below += (u32)__popc(__vcmpltu2(codes[i], wanted));
    }
    return below / 16;
#endif
}

// Codes of a node.
struct Node {
    u32 codes[8];
};

__device__ __forceinline__ Node load_node(const uint4* from) {
    uint4 low = __ldg(from), high = __ldg(from + 1);
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// The unit below child `at` of the top, whose interval is given.
__device__ __forceinline__ u32 unit_below(const Arguments& table, u32 at, Word offset, Interval interval) {
    for (u32 level = table.levels; level-- > 1;) {
        Node node = load_node(table.nodes[level] + (u64)at * 2);
        at = at * FANOUT + child_of(node.codes, offset, interval);
    }
    if (table.levels > 0) {
        Node node = load_node(table.nodes[0] + (u64)at * 2);
        at = at * LOW_FANOUT + low_child_of(node.codes, offset, interval);
    }
    return min(at, table.last_unit);
}

// Units below a child of a level.
__device__ __forceinline__ u64 span_of(u32 level) {
    u64 span = level == 0 ? 1 : LOW_FANOUT;
    for (u32 i = 1; i < level; i++) {
        span *= FANOUT;
    }
    return span;
}

// The last key of a unit: but for the last one's, the border right of it.
__device__ __forceinline__ Word last_key(const Arguments& table, u64 unit) {
    const Word* key = (const Word*)(table.lines + unit * UNIT_PARTS) + (UNIT_TUPLES - 1);
#if WORD_BYTES == 16
    const u64* halves = (const u64*)key;
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(key);
#endif
}

// Where 16 bytes of a thread's line lie in its block's stage: turned, so that reads do not meet in a bank.
__device__ __forceinline__ u32 staged(u32 row, u32 column) { return row * 4 + (column ^ (row >> 1 & 3)); }

// A key of a line whose words of 32 bits are given.
__device__ __forceinline__ Word line_key(const u32* words, u32 slot) {
#if WORD_BYTES == 4
    return words[slot];
#elif WORD_BYTES == 8
    return (u64)words[2 * slot + 1] << 32 | words[2 * slot];
#else
    u64 upper = (u64)words[4 * slot + 3] << 32 | words[4 * slot + 2];
    return (Word)upper << 64 | ((u64)words[4 * slot + 1] << 32 | words[4 * slot]);
#endif
}

// What a query found.
struct Hit {
    u64 rank;
    Value value;
    bool found;
};

// A whole warp answers together, as `answer_value`.
__device__ __forceinline__ void answer_hit(const Batch& batch, u64 at, const Hit& hit) {
    answer_rank(batch, at, hit.rank);
    answer_value(batch, at, hit.found, hit.value);
}
