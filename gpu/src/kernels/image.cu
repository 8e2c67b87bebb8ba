// The device image, made from the tuple lines: the same bytes as image.rs, whose text says what they are.
//
// `image_bits` finds out which bits all borders share; the host chooses the gap. `image_top` makes the top, then
// `image_level` a level of nodes a launch, the last level first, since a node's interval follows from the codes above
// it. A thread makes a node by itself: the numbers of its ancestors follow from its own, so it walks down to its
// interval in a few loads, which its neighbours share, and has eight borders, a sector each, in flight together.
//
// Lines may lie in pinned memory. Damaged lines may descend: then codes are any, and nothing else is read.
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line), LEVELS_MAX and FANOUT. 256 threads a block, any grid.

#define NODE (FANOUT - 1u)

// Lines below a child of a level.
__device__ __forceinline__ u32 span_of(u32 level) {
    u32 span = 1;
    for (u32 i = 0; i < level; i++) {
        span *= FANOUT;
    }
    return span;
}

// The interval of a node, from the codes next to its ancestors.
__device__ __forceinline__ Interval interval_of(const Arguments& table, u32 level, u32 node) {
    u32 span = span_of(table.levels - 1 - level), child = min(node / span, table.top_count);
    Interval interval = below_top(table, table.top, child);
    for (u32 above = table.levels - 1; above > level; above--) {
        span /= FANOUT;
        child = node / span;
        u32 slot = child % FANOUT;
        const u16* codes = (const u16*)(table.nodes[above] + (u64)(child / FANOUT) * 2);
        u32 shift = shift_of(interval.left, interval.right);
        Word width = interval.right - interval.left, last = ((Word)1 << shift) - 1;
        Interval inner = interval;
        if (slot > 0) {
            inner.left = interval.left + least((Word)((Word)codes[slot - 1] << shift), width);
        }
        if (slot < NODE) {
            inner.right = interval.left + least((Word)((Word)codes[slot] << shift | last), width);
        }
        interval.left = inner.left;
        interval.right = most(inner.left, inner.right);
    }
    return interval;
}

// The bits that some border has, then those that some border lacks; zeros at first.
extern "C" __global__ void __launch_bounds__(256) image_bits(const __grid_constant__ Arguments table, u32* bits) {
    Word any = 0, all = (Word)~(Word)0;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 line = (u64)blockIdx.x * blockDim.x + threadIdx.x; line < table.last_line; line += step) {
        Word word = last_key(table, line);
        any |= word;
        all &= word;
    }
#pragma unroll
    for (u32 part = 0; part < WORD_BYTES / 4; part++) {
        u32 some = (u32)(any >> (32 * part)), lacked = ~(u32)(all >> (32 * part));
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            some |= __shfl_xor_sync(FULL, some, distance);
            lacked |= __shfl_xor_sync(FULL, lacked, distance);
        }
        if (threadIdx.x % WARP == 0) {
            atomicOr(bits + part, some);
            atomicOr(bits + WORD_BYTES / 4 + part, lacked);
        }
    }
}

// The top.
extern "C" __global__ void __launch_bounds__(256) image_top(const __grid_constant__ Arguments table) {
    u64 span = span_of(table.levels);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < table.top_count; i += gridDim.x * blockDim.x) {
        u64 line = min(((u64)i + 1) * span, (u64)table.last_line) - 1;
        ((u32*)table.top)[i] = (u32)(offset_of(table, last_key(table, line)) >> table.top_shift);
    }
}

// The nodes of a level, when those above are made.
extern "C" __global__ void __launch_bounds__(256, 2) image_level(const __grid_constant__ Arguments table, u32 level) {
    u64 span = span_of(level), below = span * FANOUT;
    u64 count = ((u64)table.last_line + below) / below, step = (u64)gridDim.x * blockDim.x;
    for (u64 node = (u64)blockIdx.x * blockDim.x + threadIdx.x; node < count; node += step) {
        Interval interval = interval_of(table, level, (u32)node);
        u32 shift = shift_of(interval.left, interval.right);
#pragma unroll 1
        for (u32 half = 0; half < 2; half++) {
            u64 first = node * below + half * (NODE / 2) * span;
            Word words[NODE / 2];
#pragma unroll
            for (u32 i = 0; i < NODE / 2; i++) {
                u64 line = first + (i + 1) * span - 1;
                words[i] = line < table.last_line ? last_key(table, line) : (Word)0;
            }
            u32 codes[NODE / 2];
#pragma unroll
            for (u32 i = 0; i < NODE / 2; i++) {
                Word offset = most(interval.left, least(offset_of(table, words[i]), interval.right));
                bool is_there = first + (i + 1) * span - 1 < table.last_line;
                codes[i] = is_there ? (u32)((offset - interval.left) >> shift) : 0xFFFFu;
            }
            uint4 packed;
            packed.x = codes[0] | codes[1] << 16, packed.y = codes[2] | codes[3] << 16;
            packed.z = codes[4] | codes[5] << 16, packed.w = codes[6] | codes[7] << 16;
            ((uint4*)table.nodes[level])[node * 2 + half] = packed;
        }
    }
}
