// The device image, as the kernels read it: what Spine, Image and Sweep have in common. Codes, intervals and gaps as in
// image.rs. Nodes come from image.cu, whose codes of borders that do not exist are all ones: so no child is taken that
// is not there.
//
// An image leads to the first line whose last key is not below a word. A *mirrored* one is that of the table read
// backwards, with inverted words: its places count from the last line, and it leads to the last line whose first key is
// not above a query, in which the query's floor is.
//
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line), VALUES_AT (bytes of a line), FANOUT, LEVELS_MAX; LOW_BITS, bits of
// a code of level 0, if it is compiled for one of them.

#ifdef LOW_BITS
#define LOW_BITS_OF(table) ((u32)LOW_BITS)
#else
#define LOW_BITS_OF(table) ((table).low_bits)
#endif
// Children of a node of level 0.
#define LOW_FANOUT_OF(table) (256u / LOW_BITS_OF(table) + 1)
#define LINE_PARTS 4u

// The same as in algorithm/arguments.rs. Kernels take it as a grid constant: a copy of their own, whose `nodes`
// are chosen by level, would lie in memory and cost a load a level. `low` and `high` are the ends of all words without
// the gap; words of 16 bytes have high halves. `spine` does nothing if `order`, unless it is null, says that
// `sample_order` met at most `descents_max` descents: then `sweep` answers.
struct Arguments {
    const uint4* lines;
    const uint4* nodes[LEVELS_MAX];
    const u32* top;
    const uint4* compact;
    u64 low[2];
    u64 high[2];
    u64 gap_value[2];
    u64 tuples;
    u32 last_line;
    u32 top_count;
    u32 levels;
    u32 top_shift;
    // Of 16 bytes, of the compact top.
    u32 compact_parts;
    u32 bucket_bits;
    u32 bucket_shift;
    // Bits of a code of level 0.
    u32 low_bits;
    u32 gap_at;
    u32 gap_bits;
    const u32* order;
    u32 descents_max;
    // Whether lines are many more than the level 2 cache has room for.
    u32 streams_lines;
    // Of a fine image: children of a group of the top, and whether nodes of the last level have 64 bytes.
    u32 group_children;
    u16 is_wide;
    u16 is_mirrored;
};
static_assert(sizeof(Arguments) == BYTES_OF_SPINE, "as in algorithm/arguments.rs");

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

// What lies below child `at` of the top, between its codes next to it, if there are any.
__device__ __forceinline__ Interval between(const Arguments& table, u32 at, u32 before, u32 after) {
    Word all = word_of(table.high) - word_of(table.low), mask = ((Word)1 << table.top_shift) - 1;
    Interval interval;
    interval.left = at == 0 ? 0 : (Word)before << table.top_shift;
    interval.right = at == table.top_count ? all : least((Word)((Word)after << table.top_shift | mask), all);
    interval.right = most(interval.left, interval.right);
    return interval;
}

__device__ __forceinline__ Interval below_top(const Arguments& table, u32 at) {
    return between(table, at, at == 0 ? 0 : __ldg(table.top + at - 1), at == table.top_count ? 0 : __ldg(table.top + at));
}

// The compact top, wherever it lies: buckets, then the codes.
struct Top {
    const u64* buckets;
    const u16* codes;
};

__device__ __forceinline__ Top top_at(const Arguments& table, const uint4* at) {
    const u64* buckets = (const u64*)at;
    return {buckets, (const u16*)(buckets + (1u << table.bucket_bits))};
}

// A bucket, and where the codes of it stand.
struct Bucket {
    u32 number;
    u32 begin;
    u32 end;
    u32 before;
    u32 after;
    // What a query's code has beside its bucket.
    u32 low;
};

__device__ __forceinline__ Bucket bucket_of(const Arguments& table, const Top& top, Word offset) {
    u32 code = (u32)(offset >> table.top_shift), number = code >> table.bucket_shift;
    u64 found = top.buckets[number];
    u32 ends = (u32)found, beside = (u32)(found >> 32);
    return {number,          ends & 0xFFFFu, ends >> 16,
            beside & 0xFFFFu, beside >> 16,  code & ((1u << table.bucket_shift) - 1)};
}

// What lies below child `at` of the top, which is in a bucket or right of it.
__device__ __forceinline__ Interval below_bucket(const Arguments& table, const Top& top, const Bucket& bucket, u32 at) {
    u32 shift = table.bucket_shift;
    u32 before = at == 0 ? 0 : (at > bucket.begin ? bucket.number : bucket.before) << shift | top.codes[at - 1];
    u32 after = at == table.top_count ? 0 : (at < bucket.end ? bucket.number : bucket.after) << shift | top.codes[at];
    return between(table, at, before, after);
}

// An offset's code in a node of level 0, or of another one.
__device__ __forceinline__ u32 low_code(const Arguments& table, Word offset, const Interval& interval) {
    Word left = interval.left;
    Word inside = offset < left ? (Word)0 : least((Word)(offset - left), (Word)(interval.right - left));
    u32 shift = LOW_BITS_OF(table) == 8 ? shift_of<8>(left, interval.right) : shift_of<16>(left, interval.right);
    return (u32)(inside >> shift);
}

__device__ __forceinline__ u32 high_code(Word offset, const Interval& interval) {
    Word inside = offset < interval.left ? (Word)0 : (Word)(offset - interval.left);
    Word span = interval.right - interval.left;
    return (u32)(least(inside, span) >> shift_of<16>(interval.left, interval.right));
}

// How many of 16 bytes of codes of level 0 are below one.
__device__ __forceinline__ u32 low_below(const Arguments& table, const uint4& part, u32 code) {
    u32 codes[4] = {part.x, part.y, part.z, part.w}, below = 0;
    if (LOW_BITS_OF(table) == 8) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            below += (u32)__popc(__vcmpltu4(codes[i], code * 0x1010101u));
        }
        return below / 8;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        below += (u32)__popc(__vcmpltu2(codes[i], code * 0x10001u));
    }
    return below / 16;
}

// Of eight codes of 16 bits: how many are below one, and the codes next to it, the upper one inverted: so that of two
// parts of a node the larger ones count.
struct Beside {
    u32 below;
    u32 ends;
};

__device__ __forceinline__ Beside high_below(const uint4& part, u32 code) {
    u32 codes[4] = {part.x, part.y, part.z, part.w}, wanted = code * 0x10001u;
    u32 below = 0, before = 0, after = FULL;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 smaller = __vcmpltu2(codes[i], wanted);
        below += (u32)__popc(smaller);
        before = __vmaxu2(before, codes[i] & smaller);
        after = __vminu2(after, codes[i] | smaller);
    }
    before = max(before & 0xFFFFu, before >> 16);
    after = min(after & 0xFFFFu, after >> 16);
    return {below / 16, before | ~after << 16};
}

// The interval becomes that of its child of that number, between these codes.
__device__ __forceinline__ void narrow(Interval& interval, u32 below, u32 ends) {
    Word left = interval.left, right = interval.right, span = right - left;
    u32 shift = shift_of<16>(left, right), before = ends & 0xFFFFu, after = ~ends >> 16;
    Word last = ((Word)1 << shift) - 1;
    Word end = left + least((Word)((Word)after << shift | last), span);
    right = below == FANOUT - 1 ? right : end;
    left = below == 0 ? left : left + ((Word)before << shift);
    interval.left = left;
    interval.right = most(left, right);
}

// The child of a node that an offset belongs to, of a level above 0; the interval becomes the child's.
__device__ __forceinline__ u32 child_of(const uint4& low, const uint4& high, Word offset, Interval& interval) {
    u32 code = high_code(offset, interval);
    Beside a = high_below(low, code), b = high_below(high, code);
    u32 below = a.below + b.below;
    narrow(interval, below, __vmaxu2(a.ends, b.ends));
    return below;
}

// Both halves of a node, of two neighbouring threads' ones: they load each node together, which is one access then, and
// each looks at its half for both.
struct Halves {
    uint4 even;
    uint4 odd;
};

__device__ __forceinline__ Halves load_halves(const uint4* nodes, u32 at) {
    u32 is_odd = threadIdx.x & 1, other = __shfl_xor_sync(FULL, at, 1);
    return {__ldg(nodes + (u64)(is_odd ? other : at) * 2 + is_odd), __ldg(nodes + (u64)(is_odd ? at : other) * 2 + is_odd)};
}

// The line below child `at` of the top, whose interval is given; for a whole warp, of which each thread has a query.
__device__ __forceinline__ u32 line_below(const Arguments& table, u32 at, Word offset, Interval interval) {
    bool is_odd = (threadIdx.x & 1) != 0;
    for (u32 level = table.levels; level-- > 1;) {
        u32 code = high_code(offset, interval), other = __shfl_xor_sync(FULL, code, 1);
        Halves halves = load_halves(table.nodes[level], at);
        Beside even = high_below(halves.even, is_odd ? other : code);
        Beside odd = high_below(halves.odd, is_odd ? code : other);
        u32 below = is_odd ? odd.below : even.below, ends = is_odd ? odd.ends : even.ends;
        below += __shfl_xor_sync(FULL, is_odd ? even.below : odd.below, 1);
        ends = __vmaxu2(ends, __shfl_xor_sync(FULL, is_odd ? even.ends : odd.ends, 1));
        narrow(interval, below, ends);
        at = at * FANOUT + below;
    }
    if (table.levels > 0) {
        u32 code = low_code(table, offset, interval), other = __shfl_xor_sync(FULL, code, 1);
        Halves halves = load_halves(table.nodes[0], at);
        u32 even = low_below(table, halves.even, is_odd ? other : code);
        u32 odd = low_below(table, halves.odd, is_odd ? code : other);
        u32 below = (is_odd ? odd : even) + __shfl_xor_sync(FULL, is_odd ? even : odd, 1);
        at = at * LOW_FANOUT_OF(table) + below;
    }
    return min(at, table.last_line);
}

// The query's line by the image, or one left of it, below children `first` to `last` of the top, one of which is above
// the query's line; for a whole warp.
__device__ __forceinline__ u32 line_between(const Arguments& table, u32 first, u32 last, Word query) {
    Word offset = offset_of(table, query);
    u32 code = (u32)(offset >> table.top_shift), at = first;
    for (u32 size = last - first; size > 0;) {
        u32 half = (size + 1) / 2;
        at += __ldg(table.top + at + half - 1) < code ? half : 0;
        size -= half;
    }
    return line_below(table, at, offset, below_top(table, at));
}

// Of lines that are looked up by their last words: how many an image leads to a line left of their own, and how many
// others are looked at until it is found.
struct Looks {
    u32 astray;
    u32 others;
};

__device__ __forceinline__ void look(Looks& looks, bool is_counted, u64 line, u32 found) {
    u32 left = found < line ? (u32)(line - found) : 0;
    if (is_counted && left > 0) {
        looks.astray++;
        looks.others += left == 1 ? 1 : 2 * (32 - (u32)__clz((int)left));
    }
}

__device__ __forceinline__ void add_looks(const Looks& looks, u64* sums) {
    if (looks.astray > 0) {
        atomicAdd(sums, (u64)looks.astray);
        atomicAdd(sums + 1, (u64)looks.others);
    }
}

// Lines below a child of a level.
__device__ __forceinline__ u64 span_of(const Arguments& table, u32 level) {
    u64 span = level == 0 ? 1 : LOW_FANOUT_OF(table);
    for (u32 i = 1; i < level; i++) {
        span *= FANOUT;
    }
    return span;
}

// The last key of a line: but for the last one's, the border right of it.
__device__ __forceinline__ Word last_key(const Arguments& table, u64 line) {
    const Word* key = (const Word*)(table.lines + line * LINE_PARTS) + (TUPLES - 1);
#if WORD_BYTES == 16
    const u64* halves = (const u64*)key;
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(key);
#endif
}

// The first key of a line.
__device__ __forceinline__ Word first_key(const Arguments& table, u64 line) {
    const u64* halves = (const u64*)(table.lines + line * LINE_PARTS);
#if WORD_BYTES == 16
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg((const Word*)halves);
#endif
}

// The line at a place of an image, and the edge of a place, up to which aims lead there.
template <bool IS_MIRRORED> __device__ __forceinline__ u32 line_at(const Arguments& table, u32 at) {
    return IS_MIRRORED ? table.last_line - at : at;
}

template <bool IS_MIRRORED> __device__ __forceinline__ Word edge_key(const Arguments& table, u64 at) {
    return IS_MIRRORED ? (Word)~first_key(table, table.last_line - at) : last_key(table, at);
}

// The same where the image says whether it is mirrored.
__device__ __forceinline__ Word border_key(const Arguments& table, u64 at) {
    return table.is_mirrored != 0 ? edge_key<true>(table, at) : edge_key<false>(table, at);
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

// 16 bytes to shared memory, which are there after `arrived` and a barrier.
__device__ __forceinline__ void copy_part(uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800 && !defined(PLEACH_EMULATED)
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
    *to = __ldcs(from);
#endif
}

__device__ __forceinline__ void arrived() {
#if __CUDA_ARCH__ >= 800 && !defined(PLEACH_EMULATED)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A word of 32 bits of this thread's staged line.
__device__ __forceinline__ u32 staged_word(const uint4* stage, u32 word) {
    return ((const u32*)stage)[staged(threadIdx.x, word / 4) * 4 + word % 4];
}

// How many keys of this thread's staged line are below the query, and whether one is equal.
__device__ __forceinline__ u32 slot_of(const uint4* stage, Word query, bool& found) {
    u32 words[16], slot = 0;
#pragma unroll
    for (u32 column = 0; column < (TUPLES * WORD_BYTES + 15) / 16; column++) {
        uint4 part = stage[staged(threadIdx.x, column)];
        words[4 * column] = part.x, words[4 * column + 1] = part.y;
        words[4 * column + 2] = part.z, words[4 * column + 3] = part.w;
    }
    found = false;
#pragma unroll
    for (u32 i = 0; i < TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        found |= key == query;
    }
    return slot;
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
    answer_value(batch, at, hit.found, hit.value, WORD_BYTES <= 8);
}

// Completes what was found in a slot of a line: a key of all ones may be padding.
__device__ __forceinline__ void complete(const Arguments& table, Hit& hit, u32 line, u32 slot) {
    u64 rank = (u64)line * TUPLES + slot;
    hit.found = hit.found && rank < table.tuples;
    hit.rank = min(rank, table.tuples);
}

// The same, of this thread's staged line.
__device__ __forceinline__ void complete_staged(const Arguments& table, const uint4* stage, Hit& hit, u32 line, u32 slot) {
#if VALUE_BYTES > 0
    u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
    hit.value = staged_word(stage, place);
#if VALUE_BYTES == 8
    hit.value |= (u64)staged_word(stage, place + 1) << 32;
#endif
#endif
    complete(table, hit, line, slot);
}
