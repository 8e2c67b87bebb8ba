// The device image, made from the tuple lines: the same bytes as image.rs, whose text says what they are.
//
// `image_bits` finds out which bits all borders share; the host chooses the gap. `image_top` makes the top,
// `image_buckets` its compact form, then `image_level` a level of nodes a launch, the last level first, since a node's interval follows from the codes above
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
    Interval interval = below_top(table, child);
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
    for (u64 line = (u64)blockIdx.x * blockDim.x + threadIdx.x; line < table.last_line; line += step) {
        Word word = border_key(table, line);
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
    u64 span = span_of(table, table.levels);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < table.top_count; i += gridDim.x * blockDim.x) {
        u64 line = min(((u64)i + 1) * span, (u64)table.last_line) - 1;
        ((u32*)table.top)[i] = (u32)(offset_of(table, border_key(table, line)) >> table.top_shift);
    }
}

// The first code of the top of a bucket or a later one.
__device__ __forceinline__ u32 first_of(const Arguments& table, u64 bucket) {
    u32 at = 0;
    for (u32 size = table.top_count; size > 0;) {
        u32 half = (size + 1) / 2;
        at += table.top[at + half - 1] >> table.bucket_shift < bucket ? half : 0;
        size -= half;
    }
    return at;
}

// The compact top, when the top is made.
extern "C" __global__ void __launch_bounds__(256) image_buckets(const __grid_constant__ Arguments table) {
    u64* buckets = (u64*)table.compact;
    u32 count = 1u << table.bucket_bits, mask = (1u << table.bucket_shift) - 1;
    u16* codes = (u16*)(buckets + count);
    u32 step = gridDim.x * blockDim.x, shift = table.bucket_shift;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < max(count, table.top_count); i += step) {
        if (i < table.top_count) {
            codes[i] = (u16)(table.top[i] & mask);
        }
        if (i < count) {
            u32 begin = first_of(table, i), end = first_of(table, (u64)i + 1);
            u32 before = begin == 0 ? 0 : table.top[begin - 1] >> shift;
            u32 after = end == table.top_count ? 0 : table.top[end] >> shift;
            buckets[i] = (u64)(before | after << 16) << 32 | (begin | end << 16);
        }
    }
}

// How much of the line right of a border, 256 for all of it, has the border's code, so that queries there are led to the
// line left of it.
__device__ __forceinline__ u32 astray(Word border, Word next, Word last_of_cell, u32 shift) {
    // 256 cells of up to 24 bits.
    u32 dropped = shift > 24 ? shift - 24 : 0;
    u32 part = (u32)((last_of_cell - border) >> dropped), whole = (u32)((next - border) >> dropped);
    return whole == 0 ? 256 : min(part * 256 / whole, 256u);
}

// Eight codes of a node, whose borders are on their way together: of CODE_BITS each, from child `first` of its level
// on. Returns what of the lines between them is led astray.
template <u32 CODE_BITS>
__device__ __forceinline__ u32 make_codes(const Arguments& table, const Interval& interval, u64 first, u64 span,
                                          u32* to) {
    Word words[8];
    u32 packed[CODE_BITS / 4] = {};
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        u64 line = (first + i + 1) * span - 1;
        words[i] = line < table.last_line ? border_key(table, line) : (Word)0;
    }
    u32 shift = shift_of<CODE_BITS>(interval.left, interval.right), sum = 0;
    Word before = 0, cell = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        Word offset = most(interval.left, least(offset_of(table, words[i]), interval.right)) - interval.left;
        bool is_there = (first + i + 1) * span - 1 < table.last_line;
        u32 code = is_there ? (u32)(offset >> shift) : FULL >> (32 - CODE_BITS);
        packed[i * CODE_BITS / 32] |= code << i * CODE_BITS % 32;
        sum += i > 0 && is_there && offset >= before ? astray(before, offset, cell, shift) : 0;
        before = offset;
        cell = offset | (((Word)1 << shift) - 1);
    }
#pragma unroll
    for (u32 i = 0; i < CODE_BITS / 4; i++) {
        to[i] = packed[i];
    }
    return sum;
}

// The nodes of a level, when those above are made. Adds up what lowest codes of 8 bits lead astray.
extern "C" __global__ void __launch_bounds__(256, 2)
    image_level(const __grid_constant__ Arguments table, u32 level, u64* sum) {
    u64 span = span_of(table, level), below = span_of(table, level + 1), step = (u64)gridDim.x * blockDim.x;
    u64 count = ((u64)table.last_line + below) / below;
    for (u64 node = (u64)blockIdx.x * blockDim.x + threadIdx.x; node < count; node += step) {
        Interval interval = interval_of(table, level, (u32)node);
        u32* to = (u32*)(table.nodes[level] + node * 2);
        if (level == 0 && LOW_BITS_OF(table) == 8) {
            u32 count = 0;
#pragma unroll 1
            for (u32 part = 0; part < 4; part++) {
                count += make_codes<8>(table, interval, node * LOW_FANOUT_OF(table) + part * 8, span, to + part * 2);
            }
            if (count > 0) {
                atomicAdd(sum, (u64)count);
            }
            continue;
        }
#pragma unroll 1
        for (u32 part = 0; part < 2; part++) {
            make_codes<16>(table, interval, node * FANOUT + part * 8, span, to + part * 4);
        }
    }
}

// Looks some lines up by their last words, and adds up `Looks`. `count` lines, at most `last_line`; whole warps.
extern "C" __global__ void __launch_bounds__(256, 2)
    image_sample(const __grid_constant__ Arguments table, u64 count, u64* sums) {
    u64 step = (u64)gridDim.x * blockDim.x;
    Looks looks = {0, 0};
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; (at & ~(u64)31) < count; at += step) {
        u64 line = min(at, count - 1) * table.last_line / count;
        look(looks, at < count, line, line_between(table, 0, table.top_count, border_key(table, line)));
    }
    add_looks(looks, sums);
}
