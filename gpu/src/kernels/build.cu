// Building a table on the device: columns of sorted words and their values become tuple lines and a spine.
//
// Both are, byte for byte, what the CPU builder writes. `build_tuple_lines` is a copy: a thread moves a unit of a line. The
// spine is built level by level from the column of keys alone: the borders of a spine line are pairs of neighbouring
// keys, so no level reads the one below it. A warp makes a spine line, a lane one border or two: cell width from the
// outer borders, then, only if some border fails at the first base, all other bases at once, a lane two of them.
//
// Which encoding a level gets is decided on the device: `build_level` is launched once for each level and candidate,
// in the order of preference; its last block judges the level by its cost, and launches for what is decided already
// or for levels that are not there end at once. So a build needs no answer from the device until its end. Level 0 has
// a fixed place and each other level ends where the one below it begins, as in the section, whose start is known last.
//
// THREADS of a block, PHASES, TRIAL_LINES and SPINE_LEVELS_MAX (those of the CPU builder) come from build/lines.rs.

#define KEYS_END (TUPLES * WORD_BYTES)
#define UNROLL 4u

#if KEYS_END % 16 == 0 && VALUES_AT % 16 == 0
typedef uint4 Unit;
#define UNIT_BYTES 16
#else
typedef u32 Unit;
#define UNIT_BYTES 4
#endif
#define UNITS (64 / UNIT_BYTES)

// Columns and where their tuple lines go; the same as LinesTask in build/lines.rs.
struct LinesTask {
    const u32* keys;
    const u32* values;
    Unit* lines;
    u64 tuples;
};
static_assert(sizeof(LinesTask) == BYTES_OF_LINES_TASK, "as in build/lines.rs");

// Four bytes of a line, which may be the last one or the zeros behind it.
__device__ u32 line_word(const LinesTask& task, u64 line, u32 at) {
    if (line * TUPLES >= task.tuples) {
        return 0;
    }
    if (at < KEYS_END / 4) {
        u64 from = line * (KEYS_END / 4) + at;
        return from < task.tuples * (WORD_BYTES / 4) ? task.keys[from] : 0xFFFFFFFFu;
    }
#if VALUE_BYTES > 0
    if (at >= VALUES_AT / 4) {
        u64 from = line * ((64 - VALUES_AT) / 4) + (at - VALUES_AT / 4);
        return from < task.tuples * (VALUE_BYTES / 4) ? task.values[from] : 0;
    }
#endif
    return 0;
}

// A unit of a line, of which the first `copied` are full and lie in the columns as units do.
__device__ __forceinline__ Unit line_unit(const LinesTask& task, u64 line, u32 at, u64 copied) {
    if (line < copied) {
        const Unit* from = (const Unit*)task.keys + line * (KEYS_END / UNIT_BYTES) + at;
        bool stored = at < KEYS_END / UNIT_BYTES;
#if VALUE_BYTES > 0
        if (at >= VALUES_AT / UNIT_BYTES) {
            from = (const Unit*)task.values + line * ((64 - VALUES_AT) / UNIT_BYTES) + (at - VALUES_AT / UNIT_BYTES);
            stored = true;
        }
#endif
        return stored ? __ldcs(from) : Unit{};
    }
#if UNIT_BYTES == 16
    u32 word = at * 4;
    return make_uint4(line_word(task, line, word), line_word(task, line, word + 1), line_word(task, line, word + 2),
                      line_word(task, line, word + 3));
#else
    return line_word(task, line, at);
#endif
}

// Any number of blocks.
extern "C" __global__ void __launch_bounds__(THREADS) build_tuple_lines(const __grid_constant__ LinesTask task) {
    u64 lines = (task.tuples + TUPLES - 1) / TUPLES;
    u64 units = (lines + (lines & 1)) * UNITS;
    bool aligned = (((u64)task.keys | (u64)task.values) & (UNIT_BYTES - 1)) == 0;
    u64 copied = aligned ? task.tuples / TUPLES : 0;
    u64 step = (u64)gridDim.x * THREADS * UNROLL;
    for (u64 start = (u64)blockIdx.x * THREADS * UNROLL + threadIdx.x; start < units; start += step) {
        Unit parts[UNROLL];
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            u64 at = start + i * THREADS;
            parts[i] = at < units ? line_unit(task, at / UNITS, (u32)(at % UNITS), copied) : Unit{};
        }
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            u64 at = start + i * THREADS;
            if (at < units) {
                __stcs(task.lines + at, parts[i]);
            }
        }
    }
}

// How far a spine is; the same as Progress in build/lines.rs, where the host reads it at the end.
struct Progress {
    // Of the level that comes next: its children, the tuple lines under each, and under each child of these (0 if the
    // children are tuple lines).
    u64 children;
    u64 span;
    u64 inner;
    // Lines of the accepted levels but level 0, with their padding.
    u64 above;
    // Accepted lines that are flagged inexact.
    u64 inexact;
    // Cost of the candidate at work.
    u64 runs;
    u64 heavy;
    u64 flagged;
    // Blocks of it that are done.
    u32 tickets;
    // Levels accepted.
    u32 level;
    // Whether 8-bit codes are refused for level 0.
    u32 refused;
    u32 zero;
    u8 encodings[SPINE_LEVELS_MAX];
};
static_assert(sizeof(Progress) == BYTES_OF_PROGRESS, "as in build/lines.rs");

// One candidate of one level; the same as LevelTask in build/lines.rs. `spine` is where level 0 begins.
struct LevelTask {
    const Word* keys;
    uint4* spine;
    Progress* progress;
    u64 tuples;
    u32 level;
    u32 encoding;
    u32 slots;
    u32 code_bytes;
    u32 uneven;
    u32 trial;
};
static_assert(sizeof(LevelTask) == BYTES_OF_LEVEL_TASK, "as in build/lines.rs");

#define ENCODING_RAW 0u
#define SHIFT_AT 62u
#define FLAGS_AT 63u
#define BASE_AT (SHIFT_AT - WORD_BYTES)
#define INEXACT 1u
// Codes of 8 bits.
#define SLOTS_MAX BASE_AT

__device__ __forceinline__ u32 bit_length(Word word) {
#if WORD_BYTES == 4
    return 32 - (u32)__clz((int)word);
#elif WORD_BYTES == 8
    return 64 - (u32)__clzll((long long)word);
#else
    u64 high = (u64)(word >> 64);
    return high != 0 ? 128 - (u32)__clzll((long long)high) : 64 - (u32)__clzll((long long)(u64)word);
#endif
}

// What a warp shares while it makes a spine line: the keys beside each border, and the line.
struct Stage {
    uint4 line[4];
    Word last[SLOTS_MAX];
    Word first[SLOTS_MAX];
};

// The first base, of PHASES evenly spaced ones down from the first border, at which the fewest borders fail. Only
// borders narrower than a cell can fail; those of equal keys fail at all bases.
__device__ Word choose_base(const Stage& stage, u32 count, Word left, Word right, u32 shift, Word code_last) {
    u32 lane = threadIdx.x % WARP;
    bool failing = false;
    for (u32 slot = lane; slot < count; slot += WARP) {
        Word last = stage.last[slot], first = stage.first[slot];
        failing |= first != last && (Word)(first - left) >> shift == (Word)(last - left) >> shift;
    }
    if (!__any_sync(FULL, failing)) {
        return left;
    }
    static_assert(PHASES == 2 * WARP, "a lane has two bases");
    Word step = ((Word)1 << shift) / PHASES;
    step = step == 0 ? 1 : step;
    Word bases[2] = {left - step * (Word)lane, left - step * (Word)(lane + WARP)};
    u32 fails[2] = {0, 0};
#pragma unroll 1
    for (u32 start = 0; start < count; start += WARP) {
        u32 slot = start + lane;
        bool narrow = slot < count && stage.first[slot] != stage.last[slot] &&
                      (Word)(stage.first[slot] - stage.last[slot]) >> shift == 0;
#pragma unroll 1
        for (u32 rest = __ballot_sync(FULL, narrow); rest != 0; rest &= rest - 1) {
            u32 at = start + (u32)__ffs((int)rest) - 1;
            Word last = stage.last[at], first = stage.first[at];
            fails[0] += (Word)(first - bases[0]) >> shift == (Word)(last - bases[0]) >> shift;
            fails[1] += (Word)(first - bases[1]) >> shift == (Word)(last - bases[1]) >> shift;
        }
    }
    // All bases that fit come before all that do not. Of cells narrower than PHASES some are tried again, for nothing.
    u32 best = 0xFFFFFFFFu;
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
        u32 phase = lane + i * WARP;
        bool fits = bases[i] <= left && (Word)(right - bases[i]) >> shift <= code_last;
        best = min(best, fits ? fails[i] * PHASES + phase : 0xFFFFFFFFu);
    }
    for (u32 other = WARP / 2; other > 0; other /= 2) {
        best = min(best, __shfl_xor_sync(FULL, best, (int)other));
    }
    return left - step * (Word)(best % PHASES);
}

// Cost of lines: borders that begin a run of different keys with one code, heavy borders, flagged lines.
struct Cost {
    u32 runs;
    u32 heavy;
    u32 flagged;
};

// Makes spine line `line` of a level, by a whole warp.
__device__ Cost encode_line(const LevelTask& task, const Progress& level, u64 line, Stage& stage, uint4* to) {
    u32 lane = threadIdx.x % WARP;
    u64 child = line * (task.slots + 1);
    u32 count = (u32)min(level.children - child - 1, (u64)task.slots);
    bool raw = task.encoding == ENCODING_RAW;
    u64 width = level.span * TUPLES;
    for (u32 slot = lane; slot < count; slot += WARP) {
        // The first key of the child to the right.
        u64 place = (child + slot + 1) * width;
        stage.last[slot] = task.keys[place - 1];
        stage.first[slot] = raw ? 0 : task.keys[place];
    }
    __syncwarp();
    Cost cost = {0, 0, 0};
    Word base = 0;
    u32 shift = 0;
    if (!raw && count > 0) {
        Word code_last = (Word)(((u64)1 << (8 * task.code_bytes)) - 2);
        Word left = stage.last[0], right = stage.last[count - 1];
        u32 bits = bit_length(right - left);
        shift = bits > 8 * task.code_bytes ? bits - 8 * task.code_bytes : 0;
        shift += (Word)(right - left) >> shift > code_last;
        base = shift == 0 ? left : choose_base(stage, count, left, right, shift, code_last);
    }
    u8* bytes = (u8*)stage.line;
#pragma unroll 1
    for (u32 start = 0; start < task.slots; start += WARP) {
        u32 slot = start + lane;
        bool used = slot < count;
        Word last = used ? stage.last[slot] : base, first = used ? stage.first[slot] : base;
        Word cell = (Word)(last - base) >> shift;
        bool fails = used && shift > 0 && (Word)(first - base) >> shift <= cell;
        if (__any_sync(FULL, fails)) {
            cost.flagged = 1;
            bool is_heavy = false, runs_on = false;
            if (fails && first != last) {
                u64 place = (child + slot + 1) * width + level.inner * TUPLES;
                Word second = place < task.tuples ? task.keys[place] : first;
                is_heavy = (Word)(second - base) >> shift == cell;
                Word next = slot + 1 < count ? stage.last[slot + 1] : last;
                runs_on = next != last && (Word)(next - base) >> shift == cell;
            }
            cost.heavy += (u32)__popc(__ballot_sync(FULL, is_heavy));
            cost.runs += (u32)__popc(__ballot_sync(FULL, runs_on));
        }
        Word code = used ? cell : (Word)~(Word)0;
        if (slot < task.slots) {
#pragma unroll 1
            for (u32 i = 0; i < task.code_bytes; i++) {
                bytes[slot * task.code_bytes + i] = (u8)(code >> (8 * i));
            }
        }
    }
    u32 at = task.slots * task.code_bytes + lane;
    if (at < 64) {
        u8 byte = at >= BASE_AT && at < SHIFT_AT ? (u8)(base >> (8 * (at - BASE_AT))) : 0;
        byte = at == SHIFT_AT ? (u8)shift : byte;
        bytes[at] = at == FLAGS_AT && cost.flagged != 0 ? (u8)INEXACT : byte;
    }
    __syncwarp();
    if (lane < 4) {
        to[line * 4 + lane] = stage.line[lane];
    }
    __syncwarp();
    return cost;
}

// Whether a level may keep an encoding: `acceptable` of format/src/spine.rs.
__device__ bool acceptable(bool uneven, u64 borders, u64 runs, u64 heavy) {
    return uneven ? runs <= borders / 64 && heavy <= borders / 8 : runs == 0 && heavy <= borders / 64;
}

// Judges a candidate, after all its blocks are done.
__device__ void judge(const LevelTask& task, u64 lines, u64 padded) {
    Progress& progress = *task.progress;
    u64 runs = __ldcg(&progress.runs), heavy = __ldcg(&progress.heavy), flagged = __ldcg(&progress.flagged);
    u64 borders = task.trial != 0 ? lines * task.slots : progress.children - lines;
    bool accepted = acceptable(task.uneven != 0, borders, runs, heavy);
    progress.tickets = 0;
    progress.runs = progress.heavy = progress.flagged = 0;
    if (task.trial != 0) {
        progress.refused = accepted ? 0 : 1;
        return;
    }
    if (!accepted || task.level >= SPINE_LEVELS_MAX) {
        return;
    }
    progress.inner = progress.span;
    progress.span *= task.slots + 1;
    progress.children = lines;
    progress.above += task.level == 0 ? 0 : padded;
    progress.inexact += flagged;
    progress.encodings[task.level] = (u8)task.encoding;
    progress.level = task.level + 1;
}

// Must come before all candidates of level 0. One thread.
extern "C" __global__ void build_begin(const __grid_constant__ LevelTask task) {
    Progress progress = {};
    progress.children = (task.tuples + TUPLES - 1) / TUPLES;
    progress.span = 1;
    *task.progress = progress;
}

// Any number of blocks. A trial judges the first whole lines of level 0 with 8-bit codes.
extern "C" __global__ void __launch_bounds__(THREADS) build_level(const __grid_constant__ LevelTask task) {
    __shared__ Stage stages[THREADS / WARP];
    __shared__ u64 costs[3];
    const Progress level = *task.progress;
    bool tried = task.level == 0 && task.code_bytes == 1 && level.refused != 0;
    if (level.level != task.level || level.children <= 1 || tried) {
        return;
    }
    u32 fanout = task.slots + 1;
    u64 lines = (level.children + task.slots) / fanout;
    if (task.trial != 0) {
        lines = min(level.children / fanout, (u64)TRIAL_LINES);
    }
    u64 padded = lines + (lines & 1);
    uint4* to = task.spine - (task.level == 0 ? 0 : level.above + padded) * 4;
    if (threadIdx.x < 3) {
        costs[threadIdx.x] = 0;
    }
    __syncthreads();
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u64 step = (u64)gridDim.x * (THREADS / WARP);
    u64 runs = 0, heavy = 0, flagged = 0;
    for (u64 line = (u64)blockIdx.x * (THREADS / WARP) + warp; line < lines; line += step) {
        u64 elsewhere = lane == 0 ? __ldcg(&task.progress->runs) : 0;
        Cost cost = encode_line(task, level, line, stages[warp], to);
        heavy += cost.heavy;
        flagged += cost.flagged;
        if (task.uneven != 0) {
            runs += cost.runs;
            continue;
        }
        // A run refuses even words, whatever follows.
        if (lane == 0 && cost.runs != 0) {
            atomicAdd(&task.progress->runs, (u64)cost.runs);
        }
        if (__any_sync(FULL, elsewhere != 0 || cost.runs != 0)) {
            break;
        }
    }
    if (lane == 0) {
        atomicAdd(&costs[0], runs);
        atomicAdd(&costs[1], heavy);
        atomicAdd(&costs[2], flagged);
    }
    if (blockIdx.x == 0 && (lines & 1) != 0 && threadIdx.x < 4) {
        to[lines * 4 + threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&task.progress->runs, costs[0]);
        atomicAdd(&task.progress->heavy, costs[1]);
        atomicAdd(&task.progress->flagged, costs[2]);
        __threadfence();
        if (atomicAdd(&task.progress->tickets, 1u) == gridDim.x - 1) {
            __threadfence();
            judge(task, lines, padded);
        }
    }
}
