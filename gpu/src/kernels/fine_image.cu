// The fine image, made from the tuple lines: the same bytes as fine.rs, whose text says what they are.
//
// `fine_top` makes the top, then `fine_level` a level of nodes a launch, the last level first. A thread makes a word, a
// code or a node by itself, and walks down to its interval through what was made before.
//
// Lines may lie in pinned memory. Damaged lines may descend: then codes are any, and nothing else is read.
// 256 threads a block, any grid.

// The border right of child `child` of a level, as an offset; `other` if there is none.
__device__ __forceinline__ Word fine_border(const Arguments& table, u64 child, u64 span, Word other) {
    u64 line = (child + 1) * span - 1;
    return line < table.last_line ? offset_of(table, border_key(table, line)) : other;
}

// The top: words, then the codes of each group.
extern "C" __global__ void __launch_bounds__(256) fine_top(const __grid_constant__ Arguments table) {
    u64 span = fine_span(table, table.levels);
    FineTop top = fine_top_at(table.compact);
    u32 children = table.group_children, inner = children - 1, step = gridDim.x * blockDim.x;
    Word all = word_of(table.high) - word_of(table.low);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < GROUPS * children; i += step) {
        u32 group = i / children, slot = i % children;
        u64 first = (u64)group * children;
        Word right = fine_border(table, first + inner, span, all);
        if (slot == inner) {
            ((Word*)top.words)[group] = right;
            continue;
        }
        Word left = group == 0 ? (Word)0 : fine_border(table, first - 1, span, all);
        Interval interval = {left, most(left, right)};
        bool is_there = (first + slot + 1) * span - 1 < table.last_line;
        u32 code = is_there ? fine_code<32>(fine_border(table, first + slot, span, all), interval) : FULL;
        ((u32*)top.codes)[group * inner + slot] = code;
    }
}

// The interval of a node, from the words and codes next to its ancestors.
__device__ __forceinline__ Interval fine_interval(const Arguments& table, u32 level, u64 node) {
    u64 span = 1;
    for (u32 above = level + 1; above < table.levels; above++) {
        span *= fine_fanout(table, above);
    }
    FineTop top = fine_top_at(table.compact);
    u32 child = (u32)(node / span), inner = table.group_children - 1;
    u32 group = min(child / table.group_children, GROUPS - 1u), slot = child % table.group_children;
    Interval interval = fine_group(top, group);
    if (inner > 0) {
        const u32* codes = top.codes + group * inner;
        fine_narrow(interval, slot == 0 ? 0 : codes[slot - 1], slot == inner ? FULL : codes[slot]);
    }
    for (u32 above = table.levels - 1; above > level; above--) {
        u32 fanout = fine_fanout(table, above);
        u64 parent = node / span;
        span /= fanout;
        slot = (u32)(node / span - parent * fanout);
        const u32* codes = (const u32*)table.nodes[above] + parent * (fanout - 1);
        fine_narrow(interval, slot == 0 ? 0 : codes[slot - 1], slot == fanout - 1 ? FULL : codes[slot]);
    }
    return interval;
}

// The nodes of a level, when those above are made.
extern "C" __global__ void __launch_bounds__(256) fine_level(const __grid_constant__ Arguments table, u32 level) {
    u32 fanout = fine_fanout(table, level);
    u64 span = fine_span(table, level), below = span * fanout, step = (u64)gridDim.x * blockDim.x;
    u64 count = ((u64)table.last_line + below) / below;
    for (u64 node = (u64)blockIdx.x * blockDim.x + threadIdx.x; node < count; node += step) {
        Interval interval = fine_interval(table, level, node);
        u32* to = (u32*)table.nodes[level] + node * (fanout - 1);
        if (level > 0) {
            for (u32 slot = 0; slot < fanout - 1; slot++) {
                u64 child = node * fanout + slot;
                bool is_there = (child + 1) * span - 1 < table.last_line;
                to[slot] = is_there ? fine_code<32>(fine_border(table, child, span, 0), interval) : FULL;
            }
            continue;
        }
        // Bytes of codes, one after the other; a half of a node is 16 bytes.
        u8* bytes = (u8*)(table.nodes[0] + node * 2);
        u32 bits = table.low_bits, a_half = 128 / bits;
        for (u32 slot = 0; slot < fanout - 1; slot++) {
            u64 line = node * fanout + slot;
            u32 code = FULL >> (32 - bits);
            if (line < table.last_line) {
                Word border = fine_border(table, line, 1, 0);
                code = bits == 16   ? fine_code<16>(border, interval)
                       : bits == 24 ? fine_code<24>(border, interval)
                                    : fine_code<32>(border, interval);
            }
            u8* at = bytes + slot / a_half * 16 + slot % a_half * (bits / 8);
            for (u32 byte = 0; byte < bits / 8; byte++) {
                at[byte] = (u8)(code >> 8 * byte);
            }
        }
        if (bits == 24) {
            bytes[15] = bytes[31] = 0;
        }
    }
}

// As `image_sample`, through a fine image.
extern "C" __global__ void __launch_bounds__(256)
    fine_sample(const __grid_constant__ Arguments table, u64 count, u64* sums) {
    FineTop top = fine_top_at(table.compact);
    u64 step = (u64)gridDim.x * blockDim.x;
    Looks looks = {0, 0};
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; (at & ~(u64)31) < count; at += step) {
        u64 line = min(at, count - 1) * table.last_line / count;
        look(looks, at < count, line, fine_line(table, top, border_key(table, line)));
    }
    add_looks(looks, sums);
}
