// Searches a FAST section as it lies in the file, of any form and geometry (spec/FORMAT.md, section 18).
//
// A thread takes one query down. At each level of pages it finds its page by arithmetic or, in a compressed tree, by
// the page's record, which says how the query becomes a word of the page. In a page it goes from line to line, in a
// line from block to block; in a block it halves, a key a step, so that of a line of 64 bytes it reads less than two
// sectors. The number of the gap where it ends is the rank of the lower bound; or a number near it, if words are
// partial keys: then keys of the tuple lines beside it decide, and others as far away as need be.
//
// The plan of the levels, of which there are few, is the host's. What the section says is not trusted: a record that
// cannot be, or whose page is not inside the section, leads to the first child, and numbers are clamped.
//
// Besides WORD_BYTES, VALUE_BYTES and STORED_BYTES: TUPLES (a line) and VALUES_AT (bytes).

// A level of pages; the same as Pages in algorithm/fast_section.rs.
struct Pages {
    // Number of the last page.
    u64 last;
    // First byte of the first page; in a compressed tree, of the first record.
    u64 start;
    // From one page to the next without gaps; free bytes after so many pages, and what replaces a division by these.
    u64 stride;
    u64 gap_bytes;
    u64 gap_magic;
    u32 levels;
    // Nonzero if all lines of the level are one run.
    u32 is_run;
    // By the logarithm of the bytes of a word, less one: the first depth of lines in the plan, and their number.
    u32 first[4];
    u32 depths[4];
    // Bytes of a page, of the last page.
    u64 bytes[4][2];
};
static_assert(sizeof(Pages) == BYTES_OF_PAGES, "as in algorithm/fast_section.rs");

// Lines of one depth; the same as Lines in algorithm/fast_section.rs.
struct Lines {
    // First byte in a page, and number of the last line: in a whole page, in the last one.
    u64 start[2];
    u64 last[2];
    // From one group of lines to the next, and from line to line in a group.
    u32 pitch;
    u32 line_bytes;
    // Logarithm of the lines of a group; levels of a line, and of a block.
    u32 group;
    u32 levels;
    u32 d_k;
    u32 unused;
};
static_assert(sizeof(Lines) == BYTES_OF_LINES, "as in algorithm/fast_section.rs");

// The same as Arguments in algorithm/fast_section.rs.
struct Tree {
    const u8* section;
    u64 bytes;
    const u8* lines;
    u64 tuples;
    // Levels of pages, then depths of lines, in vectors of 16 bytes.
    const uint4* plan;
    u32 plan_vectors;
    u32 levels;
    // Nonzero if pages have records; if words may be partial; if N is a power of two, and the last key has no node.
    u32 is_paged;
    u32 is_lossy;
    u32 last_decides;
    u32 unused;
};
static_assert(sizeof(Tree) == BYTES_OF_FAST_SECTION, "as in algorithm/fast_section.rs");

__device__ __forceinline__ u64 ones(u32 bits) { return ((u64)1 << bits) - 1; }

template <typename Key> __device__ __forceinline__ Key load(const u8* at) { return __ldg((const Key*)at); }
#if STORED_BYTES == 16 || WORD_BYTES == 16
template <> __device__ __forceinline__ u128 load<u128>(const u8* at) {
    const u64* halves = (const u64*)at;
    return (u128)__ldg(halves + 1) << 64 | __ldg(halves);
}
#endif

// A query as a word of a page. Words that equal it count as below the query if `is_above`.
template <typename Key> struct Probe {
    Key word;
    bool is_above;
    __device__ __forceinline__ bool is_over(Key key) const { return key < word || (is_above && key == word); }
};

// Child of the line at `at`.
template <typename Key> __device__ __forceinline__ u32 child_of(const u8* at, const Lines& depth, Probe<Key> probe) {
    u32 child = 0;
    for (u32 above = 0; above < depth.levels;) {
        u32 levels = min(depth.d_k, depth.levels - above), node = 1;
        const u8* block = at + (ones(above) + child * ones(levels)) * sizeof(Key);
        for (u32 level = 0; level < levels; level++) {
            node = 2 * node + (u32)probe.is_over(load<Key>(block + (u64)(node - 1) * sizeof(Key)));
        }
        child = child << levels | (node - (1u << levels));
        above += levels;
    }
    return child;
}

// Goes from line `gap` of a page, or run of pages, down its depths.
template <typename Key>
__device__ __forceinline__ u64
lines_of(const Lines* depths, u32 count, const u8* page, u32 part, u64 gap, Probe<Key> probe) {
    for (u32 i = 0; i < count; i++) {
        const Lines& depth = depths[i];
        u64 line = min(gap, depth.last[part]);
        u64 inside = line & ones(depth.group);
        const u8* at = page + depth.start[part] + (line >> depth.group) * depth.pitch + inside * depth.line_bytes;
        gap = line << depth.levels | child_of<Key>(at, depth, probe);
    }
    return gap;
}

// Records of 4- and 8-byte words are computed with 64 bits.
#if STORED_BYTES == 16
typedef u128 Wide;
#else
typedef u64 Wide;
#endif

struct Record {
    Wide base;
    u64 place;
    u32 kept;
    u32 width;
};

__device__ __forceinline__ Record load_record(const u8* at) {
    const u64* words = (const u64*)at;
    Record record;
#if STORED_BYTES == 16
    record.base = (Wide)__ldg(words + 1) << 64 | __ldg(words);
    u64 after = __ldg(words + 2);
    // A page begins at a multiple of 16, whatever the record says: words are loaded whole.
    record.place = __ldg(words + 3) & ~(u64)15;
    record.kept = (u32)after;
    record.width = (u32)(after >> 32) & 0xFFu;
#else
    record.base = __ldg(words);
    u64 after = __ldg(words + 1);
    record.place = (after >> 24) * 16;
    record.kept = (u32)after & 0xFFFFu;
    record.width = (u32)(after >> 16) & 0xFFu;
#endif
    return record;
}

// All bits of the nibbles for which there is a bit among 16.
__device__ __forceinline__ u64 spread_nibbles(u32 kept) {
    u64 left = kept & 0xFFFFu;
    left = (left | left << 24) & 0x000000FF000000FFull;
    left = (left | left << 12) & 0x000F000F000F000Full;
    left = (left | left << 6) & 0x0303030303030303ull;
    left = (left | left << 3) & 0x1111111111111111ull;
    return left * 15;
}

// Makes a word of a query, as PageRecord in format/src/classic/paged.rs; false if all words are below it.
__device__ __forceinline__ bool probe_of(const Record& record, Stored query, Probe<Stored>& probe) {
    probe.is_above = false;
    if (record.kept == 0) {
        Wide distance = (Wide)query > record.base ? (Wide)query - record.base : 0;
        probe.word = (Stored)distance;
        return record.width >= sizeof(Wide) || distance >> (8 * record.width) == 0;
    }
    Wide mask = spread_nibbles(record.kept);
#if STORED_BYTES == 16
    mask |= (Wide)spread_nibbles(record.kept >> 16) << 64;
#endif
    // Nothing is known of the bits below the last kept nibble, if a word has no room for more.
    bool is_full = (u32)__popc(record.kept) >= 2 * record.width;
    Wide known = is_full ? ~((mask & (~mask + 1)) - 1) : ~(Wide)0;
    Wide off = ((Wide)query ^ record.base) & known & ~mask, key = query;
    if (off != 0) {
        // The topmost bit decides: kept nibbles after it become all zero or all ones.
        for (u32 step = 1; step < 8 * sizeof(Wide); step *= 2) {
            off |= off >> step;
        }
        probe.is_above = (key & (off ^ off >> 1)) != 0;
        key = probe.is_above ? key | off : key & ~off;
    }
    Wide word = 0;
    for (u32 left = record.kept; left != 0;) {
        u32 nibble = 31 - (u32)__clz((int)left);
        word = word << 4 | (key >> (4 * nibble) & 15);
        left &= ~(1u << nibble);
    }
    probe.word = (Stored)word;
    return true;
}

// Goes down the page of a compressed tree.
__device__ __forceinline__ u64
down_page(const Tree& tree, const Pages& level, const Lines* lines, u64 page, Stored query) {
    const u32 record_bytes = STORED_BYTES == 16 ? 32 : 16;
    Record record = load_record(tree.section + level.start + page * record_bytes);
    u32 width = record.width;
    bool has_width = width <= STORED_BYTES && (width == 2 || width == 4 || width == 8 || width == 16);
    if (!has_width || (u32)__popc(record.kept) > 2 * width) {
        return 0;
    }
    u32 log = (u32)__ffs((int)width) - 2, part = page == level.last;
    u64 bytes = level.bytes[log][part];
    if (bytes > tree.bytes || record.place > tree.bytes - bytes) {
        return 0;
    }
    Probe<Stored> probe;
    if (!probe_of(record, query, probe)) {
        return ones(level.levels);
    }
    const Lines* depths = lines + level.first[log];
    u32 count = level.depths[log];
    const u8* at = tree.section + record.place;
    if (width == STORED_BYTES) {
        return lines_of<Stored>(depths, count, at, part, 0, probe);
    }
    if (width == 2) {
        return lines_of<u16>(depths, count, at, part, 0, {(u16)probe.word, probe.is_above});
    }
#if STORED_BYTES == 16
    if (width == 8) {
        return lines_of<u64>(depths, count, at, part, 0, {(u64)probe.word, probe.is_above});
    }
#endif
    return lines_of<u32>(depths, count, at, part, 0, {(u32)probe.word, probe.is_above});
}

// The gap in which a query ends.
__device__ __forceinline__ u64 descend(const Tree& tree, const Pages* levels, const Lines* lines, Stored query) {
    u64 gap = 0;
    for (u32 i = 0; i < tree.levels; i++) {
        const Pages& level = levels[i];
        if (tree.is_paged != 0) {
            u64 page = min(gap, level.last);
            gap = page << level.levels | down_page(tree, level, lines, page, query);
            continue;
        }
        Probe<Stored> probe = {query, false};
        const u32 log = STORED_BYTES == 4 ? 1 : STORED_BYTES == 8 ? 2 : 3;
        const Lines* depths = lines + level.first[log];
        if (level.is_run != 0) {
            gap = lines_of<Stored>(depths, level.depths[log], tree.section + level.start, 1, gap, probe);
            continue;
        }
        u64 page = min(gap, level.last);
        u64 unit = level.gap_magic == 0 ? page : __umul64hi(page, level.gap_magic);
        const u8* at = tree.section + level.start + page * level.stride + unit * level.gap_bytes;
        u32 part = page == level.last;
        gap = page << level.levels | lines_of<Stored>(depths, level.depths[log], at, part, 0, probe);
    }
    return min(gap, tree.tuples);
}

__device__ __forceinline__ const u8* line_of(const Tree& tree, u64 rank) { return tree.lines + rank / TUPLES * 64; }

// The key of a rank, from its tuple line.
__device__ __forceinline__ Word key_of(const Tree& tree, u64 rank) {
    return load<Word>(line_of(tree, rank) + rank % TUPLES * WORD_BYTES);
}

// The lower bound, if the tuples before `rank` may be too few or too many.
__device__ __forceinline__ u64 near_rank(const Tree& tree, u64 rank, Word query) {
    u64 low, high;
    if (rank < tree.tuples && key_of(tree, rank) < query) {
        low = rank + 1, high = low;
        for (u64 step = 1; high < tree.tuples && key_of(tree, high) < query; step *= 2) {
            low = high + 1;
            high = min(low + step, tree.tuples);
        }
    } else if (rank > 0 && key_of(tree, rank - 1) >= query) {
        high = rank - 1, low = high;
        for (u64 step = 1; low > 0 && key_of(tree, low - 1) >= query; step *= 2) {
            high = low - 1;
            low = high - min(step, high);
        }
    } else {
        return rank;
    }
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        bool is_below = key_of(tree, middle) < query;
        low = is_below ? middle + 1 : low;
        high = is_below ? high : middle;
    }
    return low;
}

// Any grid of whole warps. Shared memory: the plan.
extern "C" __global__ void __launch_bounds__(256)
    fast_section(const __grid_constant__ Tree tree, const __grid_constant__ Short short_words,
                 const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, plan);
    for (u32 i = threadIdx.x; i < tree.plan_vectors; i += blockDim.x) {
        plan[i] = tree.plan[i];
    }
    __syncthreads();
    const Pages* levels = (const Pages*)plan;
    const Lines* lines = (const Lines*)(levels + tree.levels);
    bool wants_keys = batch.values != nullptr || batch.present != nullptr;
    u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - threadIdx.x % WARP < batch.count; at += threads) {
        Word query = load_query(batch, at);
        Sought sought = seek(short_words, query);
        u64 rank = tree.tuples;
        if (!sought.is_end) {
            rank = descend(tree, levels, lines, sought.word);
            if (tree.is_lossy != 0) {
                rank = near_rank(tree, rank, query);
            } else if (tree.last_decides != 0 && rank + 1 >= tree.tuples) {
                rank = tree.tuples - 1 + (u64)(key_of(tree, tree.tuples - 1) < query);
            }
        }
        answer_rank(batch, at, rank);
        if (wants_keys) {
            bool is_found = rank < tree.tuples && key_of(tree, rank) == query;
            Value value = 0;
#if VALUE_BYTES > 0
            if (is_found) {
                value = load<Value>(line_of(tree, rank) + VALUES_AT + rank % TUPLES * VALUE_BYTES);
            }
#endif
            answer_value(batch, at, is_found, value);
        }
    }
}
