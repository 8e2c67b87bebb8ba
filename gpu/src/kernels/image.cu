// The device image, made from the tuple lines: the same bytes as image.rs, whose text says what they are.
//
// `image_bits` finds out which bits all borders share; the host chooses the gap. `image_top` makes the top, then
// `image_level` a level of nodes a launch, the last level first, since a node's interval follows from the codes above
// it. A thread makes a node by itself: the numbers of its ancestors follow from its own, so it walks down to its
// interval in a few loads, which its neighbours share, and has eight borders, a sector each, in flight together.
//
// Lines may lie in pinned memory. Damaged lines may descend: then codes are any, and nothing else is read.
// 256 threads a block, any grid.

// Nodes below one, so many levels further down.
__device__ __forceinline__ u32 nodes_of(u32 steps) {
    u32 count = 1;
    for (u32 i = 0; i < steps; i++) {
        count *= FANOUT;
    }
    return count;
}

// The interval of a node, from the codes next to its ancestors.
__device__ __forceinline__ Interval interval_of(const Arguments& table, u32 level, u32 node) {
    u32 span = nodes_of(table.levels - 1 - level), child = min(node / span, table.top_count);
    Interval interval = below_top(table, table.top, child);
    for (u32 above = table.levels - 1; above > level; above--) {
        span /= FANOUT;
        child = node / span;
        u32 slot = child % FANOUT;
        const u16* codes = (const u16*)(table.nodes[above] + (u64)(child / FANOUT) * 2);
        u32 shift = shift_of<16>(interval.left, interval.right);
        Word width = interval.right - interval.left, last = ((Word)1 << shift) - 1;
        Interval inner = interval;
        if (slot > 0) {
            inner.left = interval.left + least((Word)((Word)codes[slot - 1] << shift), width);
        }
        if (slot < FANOUT - 1u) {
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
    for (u64 unit = (u64)blockIdx.x * blockDim.x + threadIdx.x; unit < table.last_unit; unit += step) {
        Word word = last_key(table, unit);
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
        u64 unit = min(((u64)i + 1) * span, (u64)table.last_unit) - 1;
        ((u32*)table.top)[i] = (u32)(offset_of(table, last_key(table, unit)) >> table.top_shift);
    }
}

// Eight codes of a node, whose borders are on their way together: of CODE_BITS each, from child `first` of its level
// on.
template <u32 CODE_BITS>
__device__ __forceinline__ void make_codes(const Arguments& table, const Interval& interval, u64 first, u64 span,
                                           u32* to) {
    Word words[8];
    u32 packed[CODE_BITS / 4] = {};
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u64 unit = (first + i + 1) * span - 1;
        words[i] = unit < table.last_unit ? last_key(table, unit) : (Word)0;
    }
    u32 shift = shift_of<CODE_BITS>(interval.left, interval.right);
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        Word offset = most(interval.left, least(offset_of(table, words[i]), interval.right));
        bool is_there = (first + i + 1) * span - 1 < table.last_unit;
        u32 code = is_there ? (u32)((offset - interval.left) >> shift) : FULL >> (32 - CODE_BITS);
        packed[i * CODE_BITS / 32] |= code << i * CODE_BITS % 32;
    }
#pragma unroll
    for (u32 i = 0; i < CODE_BITS / 4; i++) {
        to[i] = packed[i];
    }
}

// The nodes of a level, when those above are made.
extern "C" __global__ void __launch_bounds__(256, 2) image_level(const __grid_constant__ Arguments table, u32 level) {
    u64 span = span_of(level), below = span_of(level + 1), step = (u64)gridDim.x * blockDim.x;
    u64 count = ((u64)table.last_unit + below) / below;
    for (u64 node = (u64)blockIdx.x * blockDim.x + threadIdx.x; node < count; node += step) {
        Interval interval = interval_of(table, level, (u32)node);
        u32* to = (u32*)(table.nodes[level] + node * 2);
#if CELLS
        if (level == 0) {
#pragma unroll 1
            for (u32 part = 0; part < 4; part++) {
                make_codes<8>(table, interval, node * LOW_FANOUT + part * 8, span, to + part * 2);
            }
            continue;
        }
#endif
#pragma unroll 1
        for (u32 part = 0; part < 2; part++) {
            make_codes<16>(table, interval, node * FANOUT + part * 8, span, to + part * 4);
        }
    }
}

#if CELLS && VALUE_BYTES > 0

// Swaps the middle parts of lines, so that each half has the values of its keys.
extern "C" __global__ void __launch_bounds__(256) cells_from_lines(const __grid_constant__ Arguments table) {
    uint4* lines = (uint4*)table.lines;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 line = (u64)blockIdx.x * blockDim.x + threadIdx.x; line <= table.last_line; line += step) {
        uint4 keys = lines[line * 4 + 1], values = lines[line * 4 + 2];
        lines[line * 4 + 1] = values;
        lines[line * 4 + 2] = keys;
    }
}

#endif
