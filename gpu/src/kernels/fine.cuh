// The fine image, as the kernels read it: fine.rs says what it is. Words and codes of the top lie together, at
// `compact`; intervals and offsets are those of image.cuh.
//
// Besides what image.cuh takes: GROUPS, FINE_FANOUT, WIDE_FANOUT.

#define WIDE_PARTS 4u

struct FineTop {
    const Word* words;
    const u32* codes;
};

__device__ __forceinline__ FineTop fine_top_at(const uint4* at) {
    const Word* words = (const Word*)at;
    return {words, (const u32*)(words + GROUPS)};
}

// A node's children, of a level.
__device__ __forceinline__ u32 fine_fanout(const Arguments& table, u32 level) {
    return level == 0 ? 2 * (128 / table.low_bits) + 1
                      : (table.is_wide != 0 && level + 1 == table.levels ? WIDE_FANOUT : FINE_FANOUT);
}

// Lines below a child of a level.
__device__ __forceinline__ u64 fine_span(const Arguments& table, u32 level) {
    u64 span = 1;
    for (u32 i = 0; i < level; i++) {
        span *= fine_fanout(table, i);
    }
    return span;
}

// The code of an offset, also of one beyond the interval's ends.
template <u32 CODE_BITS> __device__ __forceinline__ u32 fine_code(Word offset, const Interval& interval) {
    Word inside = offset < interval.left ? (Word)0 : (Word)(offset - interval.left);
    Word span = interval.right - interval.left;
    return (u32)(least(inside, span) >> shift_of<CODE_BITS>(interval.left, interval.right));
}

// The interval becomes that between two codes of 32 bits: 0, or all ones, where there is none.
__device__ __forceinline__ void fine_narrow(Interval& interval, u32 before, u32 after) {
    Word left = interval.left, span = interval.right - left;
    u32 shift = shift_of<32>(left, interval.right);
    Word last = ((Word)1 << shift) - 1;
    interval.left = left + least((Word)((Word)before << shift), span);
    interval.right = most(interval.left, left + least((Word)((Word)after << shift | last), span));
}

__device__ __forceinline__ Interval fine_group(const FineTop& top, u32 group) {
    Word left = group == 0 ? (Word)0 : top.words[group - 1];
    return {left, most(left, top.words[group])};
}

// The child of the top that an offset belongs to, and its interval. All threads take as many steps.
__device__ __forceinline__ u32 fine_child_of_top(const Arguments& table, const FineTop& top, Word offset,
                                                 Interval& interval) {
    u32 group = 0;
#pragma unroll
    for (u32 half = GROUPS / 2; half > 0; half /= 2) {
        group += top.words[group + half - 1] < offset ? half : 0;
    }
    interval = fine_group(top, group);
    u32 inner = table.group_children - 1, code = fine_code<32>(offset, interval), at = 0;
    const u32* codes = top.codes + group * inner;
    for (u32 size = inner; size > 0;) {
        u32 half = (size + 1) / 2;
        at += codes[at + half - 1] < code ? half : 0;
        size -= half;
    }
    if (inner > 0) {
        fine_narrow(interval, at == 0 ? 0 : codes[at - 1], at == inner ? FULL : codes[at]);
    }
    return group * table.group_children + at;
}

// Of four codes of 32 bits: how many are below one, and the codes next to it, where there are any.
struct FineBeside {
    u32 below;
    u32 before;
    u32 after;
};

__device__ __forceinline__ FineBeside fine_below(const uint4& part, u32 code) {
    u32 codes[4] = {part.x, part.y, part.z, part.w};
    FineBeside found = {0, 0, FULL};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool is_below = codes[i] < code;
        found.below += is_below;
        found.before = is_below ? max(found.before, codes[i]) : found.before;
        found.after = is_below ? found.after : min(found.after, codes[i]);
    }
    return found;
}

// Two threads exchange what they found for each other in halves of their nodes.
__device__ __forceinline__ FineBeside fine_exchange(const FineBeside& kept, const FineBeside& given, u32 distance) {
    return {kept.below + __shfl_xor_sync(FULL, given.below, (int)distance),
            max(kept.before, __shfl_xor_sync(FULL, given.before, (int)distance)),
            min(kept.after, __shfl_xor_sync(FULL, given.after, (int)distance))};
}

__device__ __forceinline__ FineBeside fine_choose(bool first, const FineBeside& a, const FineBeside& b) {
    return {first ? a.below : b.below, first ? a.before : b.before, first ? a.after : b.after};
}

// How many of a half's eight codes of 16 bits, five of 24 or four of 32 are below one.
template <u32 CODE_BITS> __device__ __forceinline__ u32 fine_low_below(const uint4& half, u32 code) {
    if (CODE_BITS == 32) {
        return (half.x < code) + (half.y < code) + (half.z < code) + (half.w < code);
    }
    if (CODE_BITS == 24) {
        const u32 mask = 0xFFFFFFu;
        return ((half.x & mask) < code) + ((half.x >> 24 | (half.y << 8 & mask)) < code) +
               ((half.y >> 16 | (half.z << 16 & mask)) < code) + (half.z >> 8 < code) + ((half.w & mask) < code);
    }
    u32 wanted = code * 0x10001u, below = (u32)__popc(__vcmpltu2(half.x, wanted));
    below += (u32)__popc(__vcmpltu2(half.y, wanted));
    below += (u32)__popc(__vcmpltu2(half.z, wanted));
    below += (u32)__popc(__vcmpltu2(half.w, wanted));
    return below / 16;
}

// The line below a node of level 0, whose interval is given; for a whole warp.
template <u32 CODE_BITS>
__device__ __forceinline__ u32 fine_line_below(const Arguments& table, u32 at, Word offset, const Interval& interval) {
    bool is_odd = (threadIdx.x & 1) != 0;
    u32 code = fine_code<CODE_BITS>(offset, interval), other = __shfl_xor_sync(FULL, code, 1);
    Halves halves = load_halves(table.nodes[0], at);
    u32 even = fine_low_below<CODE_BITS>(halves.even, is_odd ? other : code);
    u32 odd = fine_low_below<CODE_BITS>(halves.odd, is_odd ? code : other);
    return at * (2 * (128 / CODE_BITS) + 1) + (is_odd ? odd : even) + __shfl_xor_sync(FULL, is_odd ? even : odd, 1);
}

// The line of a query, or one left of it; for a whole warp, of which each thread has a query. Two threads load a node
// for each of them in turn, four a wide one.
__device__ __forceinline__ u32 fine_line(const Arguments& table, const FineTop& top, Word query) {
    Word offset = offset_of(table, query);
    Interval interval;
    u32 at = fine_child_of_top(table, top, offset, interval), level = table.levels;
    bool is_odd = (threadIdx.x & 1) != 0;
    if (table.is_wide != 0) {
        level--;
        u32 member = threadIdx.x % WIDE_PARTS, first = threadIdx.x % WARP - member;
        u32 code = fine_code<32>(offset, interval);
        FineBeside found[WIDE_PARTS];
        uint4 parts[WIDE_PARTS];
#pragma unroll
        for (u32 i = 0; i < WIDE_PARTS; i++) {
            u32 number = __shfl_sync(FULL, at, (int)(first + i));
            parts[i] = __ldg(table.nodes[level] + (u64)number * WIDE_PARTS + member);
        }
#pragma unroll
        for (u32 i = 0; i < WIDE_PARTS; i++) {
            found[i] = fine_below(parts[i], __shfl_sync(FULL, code, (int)(first + i)));
        }
        bool is_upper = member >= 2;
        FineBeside even = fine_exchange(fine_choose(is_upper, found[2], found[0]),
                                        fine_choose(is_upper, found[0], found[2]), 2);
        FineBeside odd = fine_exchange(fine_choose(is_upper, found[3], found[1]),
                                       fine_choose(is_upper, found[1], found[3]), 2);
        FineBeside all = fine_exchange(fine_choose(is_odd, odd, even), fine_choose(is_odd, even, odd), 1);
        fine_narrow(interval, all.before, all.after);
        at = at * WIDE_FANOUT + all.below;
    }
    while (level > 1) {
        level--;
        u32 code = fine_code<32>(offset, interval), other = __shfl_xor_sync(FULL, code, 1);
        Halves halves = load_halves(table.nodes[level], at);
        FineBeside even = fine_below(halves.even, is_odd ? other : code);
        FineBeside odd = fine_below(halves.odd, is_odd ? code : other);
        FineBeside all = fine_exchange(fine_choose(is_odd, odd, even), fine_choose(is_odd, even, odd), 1);
        fine_narrow(interval, all.before, all.after);
        at = at * FINE_FANOUT + all.below;
    }
    if (level > 0) {
        at = table.low_bits == 16   ? fine_line_below<16>(table, at, offset, interval)
             : table.low_bits == 24 ? fine_line_below<24>(table, at, offset, interval)
                                    : fine_line_below<32>(table, at, offset, interval);
    }
    return min(at, table.last_line);
}
