// Builds the classic tree of spec/FORMAT.md, section 18, full form, from a column of sorted keys on the device.
//
// Every slot of the tree takes one key, found by arithmetic. Slots behind the last key take all ones, and so do the
// free ones of a padded tree: there is one for each line of a group, behind the group's lines, but none among lines of
// one key.
//
// `classic_paper` is the build of Kim et al., TODS 36(4), 2011, section 5.2.1: pages are shared out evenly, and one
// lane of each half-warp writes its pages slot by slot. `classic_build` gives each key a thread: keys are cut into
// chunks, and a block writes all lines whose keys are in a chunk, lowest first, so that memory is read once and lines
// above are read from a cache. Neighbouring threads read neighbouring keys where lines are lowest, and write the slots
// of a line in another order.
//
// Besides WORD_BYTES: DEPTHS_MAX (depths of lines that a tree has at most).

#define LANES 16u
// Keys on the way of a thread.
#define LOADS 4u

// Lines of one depth; the same as Level in fast.cu and in build/classic.rs.
struct Level {
    // Slot of the first line of the first page, and, without that page's slots, of the last one.
    u64 start[2];
    u64 page_slots;
    u64 last_page;
    // Number of the last line of the whole depth.
    u64 last;
    u32 pitch;
    // Levels of the page above these lines, of a line, and of the tree below them.
    u32 above;
    u32 levels;
    u32 below;
    // Logarithm of the lines that share a pitch.
    u32 group;
    // 0 if all lines of the depth are one run.
    u32 paged;
};

// The same as Arguments in build/classic.rs.
struct Build {
    const Word* keys;
    u64 tuples;
    Word* slots;
    // Slots, and slots with the zeros behind them.
    u64 used;
    u64 whole;
    // `classic_paper`: pages of a thread.
    u64 pages_each;
    // `classic_build`: number of the last chunk of 2^chunk_levels keys.
    u64 last_chunk;
    u32 chunk_levels;
    u32 d_k;
    u32 depths;
    u32 padded;
    Level levels[DEPTHS_MAX];
};
static_assert(sizeof(Build) == BYTES_OF_CLASSIC, "as in build/classic.rs");

__device__ __forceinline__ u64 nodes(u32 levels) { return ((u64)1 << levels) - 1; }

// Where a line is: its group's slot, its number in the group, and whether it is the last one of its run.
struct Place {
    u64 group;
    u32 inside;
    bool last;
};

__device__ __forceinline__ Place place_of(const Level& level, u64 line) {
    u64 slot = level.start[0], inner = line, last = level.last;
    if (level.paged) {
        u64 page = line >> level.above;
        bool part = page == level.last_page;
        slot = (part ? level.start[1] : slot) + page * level.page_slots;
        inner = line & nodes(level.above);
        last = part ? last - (page << level.above) : nodes(level.above);
    }
    return {slot + (inner >> level.group) * level.pitch, (u32)(inner & nodes(level.group)), inner == last};
}

__device__ __forceinline__ u64 slot_of(const Level& level, const Place& place) {
    return place.group + place.inside * (u32)nodes(level.levels);
}

// Key of rank `rank` in a line; `at` is `line << levels | rank`.
__device__ __forceinline__ Word key_of(const Build& build, const Level& level, u64 at) {
    u64 index = ((at + 1) << level.below) - 1;
    return index < build.tuples ? build.keys[index] : ~(Word)0;
}

// Slot in its line of the key of rank `rank < 2^levels - 1`.
__device__ __forceinline__ u32 slot_in_line(u32 levels, u32 d_k, u32 rank) {
    u32 zeros = (u32)__ffs((int)(rank + 1)) - 1, depth = levels - 1 - zeros, node = rank >> zeros >> 1;
    if (levels <= d_k) {
        return (1u << depth) - 1 + node;
    }
    u32 above = depth / d_k * d_k, within = depth - above, block_levels = min(d_k, levels - above);
    u32 block = (node >> within) * ((1u << block_levels) - 1);
    return (1u << above) - 1 + block + (1u << within) - 1 + (node & ((1u << within) - 1));
}

// Free slots: the one that goes with a line, and places for lines that the last group of a run lacks.
__device__ __forceinline__ void fill_free(const Build& build, const Level& level, const Place& place) {
    u32 line_slots = (u32)nodes(level.levels), taken = line_slots << level.group;
    Word* slots = build.slots + place.group;
    if (taken + place.inside < level.pitch) {
        slots[taken + place.inside] = ~(Word)0;
    }
    if (place.last) {
        for (u32 slot = (place.inside + 1) * line_slots; slot < taken; slot++) {
            slots[slot] = ~(Word)0;
        }
        for (u32 slot = taken + place.inside + 1; slot < level.pitch; slot++) {
            slots[slot] = ~(Word)0;
        }
    }
}

// Zeros behind the last slot.
__device__ __forceinline__ void fill_end(const Build& build, u32 at, u32 step) {
    for (u64 slot = build.used + at; slot < build.whole; slot += step) {
        build.slots[slot] = 0;
    }
}

// Writes a line, in the order of its slots: blocks, their levels, and nodes from the left.
__device__ __forceinline__ void paper_line(const Build& build, const Level& level, u64 line) {
    Place place = place_of(level, line);
    Word* out = build.slots + slot_of(level, place);
    for (u32 above = 0; above < level.levels; above += build.d_k) {
        u32 block_levels = min(build.d_k, level.levels - above);
        for (u32 block = 0; block < 1u << above; block++) {
            for (u32 depth = 0; depth < block_levels; depth++) {
#pragma unroll 1
                for (u32 node = 0; node < 1u << depth; node++) {
                    u64 number = (u64)(block << depth | node) * 2 + 1;
                    u64 rank = (number << (level.levels - 1 - above - depth)) - 1;
                    *out++ = key_of(build, level, (line << level.levels) + rank);
                }
            }
        }
    }
    if (build.padded) {
        fill_free(build, level, place);
    }
}

// Blocks of one warp; of each half-warp one thread builds. Pages of all depths, top first, are one list.
extern "C" __global__ void __launch_bounds__(WARP) classic_paper(const __grid_constant__ Build build) {
    if (threadIdx.x % LANES != 0) {
        return;
    }
    u64 builder = (u64)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    u64 first = builder * build.pages_each, end = first + build.pages_each, before = 0;
    u32 next = 0;
    for (u32 top = 0; top < build.depths; top = next) {
        for (next = top + 1; next < build.depths && build.levels[next].above > 0; next++) {
        }
        u64 count = build.levels[top].last + 1;
        for (u64 page = max(first, before); page < min(end, before + count); page++) {
            for (u32 depth = top; depth < next; depth++) {
                const Level& level = build.levels[depth];
                u64 line = (page - before) << level.above;
                u64 last = min(line + nodes(level.above), level.last);
                for (; line <= last; line++) {
                    paper_line(build, level, line);
                }
            }
        }
        before += count;
    }
    if (builder == 0) {
        fill_end(build, 0, 1);
    }
}

// Writes the lines from `line` to `end`, with `threads` threads of which this is number `thread`. 2^levels of them take
// a line; the last one of these has no key, but free slots.
__device__ __forceinline__ void build_lines(
    const Build& build, const Level& level, u64 line, u64 end, u64 thread, u64 threads) {
    u64 spare = nodes(level.levels), last = end << level.levels;
    for (u64 first = (line << level.levels) + thread; first < last; first += LOADS * threads) {
        Word keys[LOADS];
#pragma unroll
        for (u32 i = 0; i < LOADS; i++) {
            u64 at = first + i * threads;
            keys[i] = at < last ? key_of(build, level, at) : 0;
        }
#pragma unroll
        for (u32 i = 0; i < LOADS; i++) {
            u64 at = first + i * threads;
            if (at < last) {
                Place place = place_of(level, at >> level.levels);
                u64 rank = at & spare;
                if (rank < spare) {
                    build.slots[slot_of(level, place) + slot_in_line(level.levels, build.d_k, (u32)rank)] = keys[i];
                } else if (build.padded) {
                    fill_free(build, level, place);
                }
            }
        }
    }
}

// Blocks of any size. Lines with more keys under them than a chunk has are written by all blocks together.
extern "C" __global__ void __launch_bounds__(1024) classic_build(const __grid_constant__ Build build) {
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x, threads = (u64)gridDim.x * blockDim.x;
    u32 high = 0;
    for (; high < build.depths; high++) {
        const Level& level = build.levels[high];
        if (level.levels + level.below <= build.chunk_levels) {
            break;
        }
        build_lines(build, level, 0, level.last + 1, thread, threads);
    }
    if (high < build.depths) {
        for (u64 chunk = blockIdx.x; chunk <= build.last_chunk; chunk += gridDim.x) {
            for (u32 low = build.depths; low-- > high;) {
                const Level& level = build.levels[low];
                u32 lines = build.chunk_levels - level.levels - level.below;
                u64 end = min((chunk + 1) << lines, level.last + 1);
                build_lines(build, level, chunk << lines, end, threadIdx.x, blockDim.x);
            }
        }
    }
    if (blockIdx.x == 0) {
        fill_end(build, threadIdx.x, blockDim.x);
    }
}
