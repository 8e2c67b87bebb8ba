// Look-ups through the device image: the top in shared memory, a node a level, a tuple line.
//
// Each thread descends with a query of its own: a node is one sector, which it loads by itself. A tuple line is
// loaded by four threads for each of them in turn, 16 bytes each, since lanes that share a line cost one access;
// it goes through shared memory, where the thread that asked reads it. Codes, intervals and gaps as in image.rs. Nodes
// come from image.cu, whose codes of borders that do not exist are all ones: so no child is taken that is not there.
//
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line) and VALUES_AT (bytes), THREADS (most of a block), LEVELS_MAX and
// FANOUT. Dynamic shared memory: 64 bytes for each of THREADS, then the top, whole multiples of 16 bytes as in memory.

// The line of a query, or one left of it.
__device__ __forceinline__ u32 descend(const Arguments& table, const u32* top, Word query) {
    Word offset = offset_of(table, query);
    // The top: how many codes are below the query's.
    u32 code = (u32)(offset >> table.top_shift);
    u32 at = 0, size = table.top_count;
    while (size > 0) {
        u32 half = size / 2;
        bool below = top[at + half] < code;
        at = below ? at + half + 1 : at;
        size = below ? size - half - 1 : half;
    }
    return line_below(table, at, offset, below_top(table, top, at));
}

// Right of a line whose keys all are below a query, because a border whose cell the query shares was not passed: the
// first line whose last key is not below, which is near by. The last line has no border.
__device__ __forceinline__ u32 step_right(const Arguments& table, u32 line, Word query) {
    u32 begin = line + 1, end = table.last_line, step = 0;
    while (begin < end) {
        u32 middle = begin + min(step, (end - begin) / 2);
        if (last_key(table, middle) < query) {
            begin = middle + 1;
            step = 2 * step + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

__device__ __forceinline__ Hit look_up(const Arguments& table, const u32* top, uint4* stage, Word query) {
    u32 line = descend(table, top, query);
    // Four threads load the lines of all four.
    u32 lane = threadIdx.x & 31, member = lane & 3, first = threadIdx.x & ~3u;
    uint4 parts[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 number = __shfl_sync(FULL, line, (int)((lane & ~3u) + i));
        parts[i] = __ldcs(table.lines + (u64)number * 4 + member);
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        stage[staged(first + i, member)] = parts[i];
    }
    __syncwarp();
    u32 words[16];
#pragma unroll
    for (u32 column = 0; column < (TUPLES * WORD_BYTES + 15) / 16; column++) {
        uint4 part = stage[staged(threadIdx.x, column)];
        words[4 * column] = part.x, words[4 * column + 1] = part.y;
        words[4 * column + 2] = part.z, words[4 * column + 3] = part.w;
    }
    u32 slot = 0;
    bool found = false;
#pragma unroll
    for (u32 i = 0; i < TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        found |= key == query;
    }
    Hit hit;
    hit.value = 0;
    if (slot == TUPLES && line < table.last_line) {
        line = step_right(table, line, query);
        const u32* other = (const u32*)(table.lines + (u64)line * 4);
        slot = 0;
        found = false;
        for (u32 i = 0; i < TUPLES; i++) {
            Word key = line_key(other, i);
            slot += key < query;
            found |= key == query;
        }
#if VALUE_BYTES > 0
        u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
        hit.value = other[place];
#if VALUE_BYTES == 8
        hit.value |= (u64)other[place + 1] << 32;
#endif
#endif
    } else {
#if VALUE_BYTES > 0
        const u32* row = (const u32*)stage;
        u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
        hit.value = row[staged(threadIdx.x, place / 4) * 4 + place % 4];
#if VALUE_BYTES == 8
        hit.value |= (u64)row[staged(threadIdx.x, (place + 1) / 4) * 4 + (place + 1) % 4] << 32;
#endif
#endif
    }
    u64 rank = (u64)line * TUPLES + slot;
    // A key of all ones may be padding.
    hit.found = found && rank < table.tuples;
    hit.rank = rank < table.tuples ? rank : table.tuples;
    __syncwarp();
    return hit;
}

// The top, copied behind the stage.
__device__ __forceinline__ const u32* load_top(const Arguments& table, uint4* stage) {
    uint4* top = stage + THREADS * 4;
    const uint4* from = (const uint4*)table.top;
    for (u32 i = threadIdx.x; i < (table.top_count + 3) / 4; i += blockDim.x) {
        top[i] = __ldg(from + i);
    }
    __syncthreads();
    return (const u32*)top;
}

// The first query of a thread; its next ones are a grid further. Short batches are spread over all blocks by warps.
__device__ __forceinline__ u64 first_query(u64 count) {
    u64 warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    bool is_short = count <= (u64)gridDim.x * blockDim.x;
    return (is_short ? warp * gridDim.x + blockIdx.x : blockIdx.x * warps + warp) * WARP + threadIdx.x % WARP;
}

// Values and presence.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_values(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    if (table.order != nullptr && *table.order <= table.descents_max) {
        return;
    }
    const u32* top = load_top(table, stage);
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 at = first_query(batch.count);
    // The next query is on its way while this one is searched.
    Word next = load_query(batch, at);
    for (; (at & ~(u64)31) < batch.count; at += step) {
        Word query = next;
        next = load_query(batch, at + step);
        Hit hit = look_up(table, top, stage, query);
        answer_value(batch, at, hit.found, hit.value);
    }
}

// Ranks of lower bounds, and what else is asked for.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_ranks(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    if (table.order != nullptr && *table.order <= table.descents_max) {
        return;
    }
    const u32* top = load_top(table, stage);
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 at = first_query(batch.count);
    Word next = load_query(batch, at);
    for (; (at & ~(u64)31) < batch.count; at += step) {
        Word query = next;
        next = load_query(batch, at + step);
        Hit hit = look_up(table, top, stage, query);
        answer_rank(batch, at, hit.rank);
        answer_value(batch, at, hit.found, hit.value);
    }
}

// Short batches: a warp a query, whose lanes load more than they need, so that two levels, or the last level and the
// lines, cost one wait. A block answers GROUP queries at a time, the bits of which are a byte of the bitmap.
#define GROUP 8u
static_assert(THREADS >= GROUP * WARP, "each warp of a group has room in the stage");

__device__ __forceinline__ Hit look_up_few(const Arguments& table, const u32* top, uint4* stage, Word query) {
    u32 lane = threadIdx.x % WARP;
    Word offset = offset_of(table, query);
    u32 code = (u32)(offset >> table.top_shift);
    u32 at = 0, size = table.top_count;
    while (size > 0) {
        // Each lane looks at the last code of a piece.
        u32 piece = (size + WARP - 1) / WARP, end = (lane + 1) * piece;
        u32 below = __popc(__ballot_sync(FULL, end <= size && top[at + min(end, size) - 1] < code)) * piece;
        at += below;
        size = min(size - below, piece - 1);
    }
    Interval interval = below_top(table, top, at);
    u32 level = table.levels;
    u64 span = 1;
    for (u32 i = 1; i < level; i++) {
        span *= FANOUT;
    }
    // A node and all its children; `span` is how many lines a child has.
    for (; level >= 2; level -= 2, span /= FANOUT * FANOUT) {
        uint4 halves[2], child_halves[2] = {};
        const uint4* node = table.nodes[level - 1] + (u64)at * 2;
        halves[0] = __ldg(node), halves[1] = __ldg(node + 1);
        u64 child = (u64)at * FANOUT + lane;
        if (lane < FANOUT && child * span <= table.last_line) {
            const uint4* from = table.nodes[level - 2] + child * 2;
            child_halves[0] = __ldg(from), child_halves[1] = __ldg(from + 1);
        }
        u32 codes[8] = {halves[0].x, halves[0].y, halves[0].z, halves[0].w,
                        halves[1].x, halves[1].y, halves[1].z, halves[1].w};
        u32 child_codes[8] = {child_halves[0].x, child_halves[0].y, child_halves[0].z, child_halves[0].w,
                              child_halves[1].x, child_halves[1].y, child_halves[1].z, child_halves[1].w};
        u32 below = child_of(codes, offset, interval);
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            codes[i] = __shfl_sync(FULL, child_codes[i], (int)below);
        }
        at = at * FANOUT + below;
        at = at * FANOUT + child_of(codes, offset, interval);
    }
    // The last node and all its lines, or a line.
    u32 first = at * (level == 1 ? FANOUT : 1), row = 0;
    u32 lines = min(level == 1 ? FANOUT : 1u, table.last_line - min(first, table.last_line) + 1);
    first = min(first, table.last_line);
    uint4 parts[3];
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        u32 part = i * WARP + lane;
        if (part < lines * 4) {
            parts[i] = __ldcs(table.lines + (u64)first * 4 + part);
        }
    }
    if (level == 1) {
        const uint4* node = table.nodes[0] + (u64)at * 2;
        uint4 low_half = __ldg(node), high_half = __ldg(node + 1);
        u32 codes[8] = {low_half.x,  low_half.y,  low_half.z,  low_half.w,
                        high_half.x, high_half.y, high_half.z, high_half.w};
        row = min(child_of(codes, offset, interval), lines - 1);
    }
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        u32 part = i * WARP + lane;
        if (part < lines * 4) {
            stage[part] = parts[i];
        }
    }
    __syncwarp();
    u32 line = first + row;
    const u32* words = (const u32*)(stage + row * 4);
    if (line_key(words, TUPLES - 1) < query && line < table.last_line) {
        line = step_right(table, line, query);
        words = (const u32*)(table.lines + (u64)line * 4);
    }
    u32 slot = 0;
    bool found = false;
    for (u32 i = 0; i < TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        found |= key == query;
    }
    Hit hit;
    hit.value = 0;
#if VALUE_BYTES > 0
    u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
    hit.value = words[place];
#if VALUE_BYTES == 8
    hit.value |= (u64)words[place + 1] << 32;
#endif
#endif
    u64 rank = (u64)line * TUPLES + slot;
    hit.found = found && rank < table.tuples;
    hit.rank = rank < table.tuples ? rank : table.tuples;
    return hit;
}

// Whatever is asked for, of a short batch: a block has at least GROUP warps, the others only help to load the top.
// There are groups for all of the bitmap's words of 32 bits.
extern "C" __global__ void __launch_bounds__(512, 1)
    spine_few(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u64 step = (u64)gridDim.x * GROUP, groups_end = (batch.count + 31) / 32 * 32;
    // The query travels while the top does: it is encoded when both are there.
    Batch plain = batch;
    plain.kind = KIND_WORD;
    Word query = load_query(plain, (u64)blockIdx.x * GROUP + warp);
    const u32* top = load_top(table, stage);
    // A warp has room for its lines and, behind them, for its answer.
    uint4* own = stage + warp * WARP * 4;
    for (u64 first = (u64)blockIdx.x * GROUP; first < groups_end; first += step) {
        if (warp < GROUP && first + warp < batch.count) {
            Hit hit = look_up_few(table, top, own, encode(query, batch.kind));
            if (lane == 0) {
                *(Hit*)(own + FANOUT * 4) = hit;
            }
            query = load_query(plain, first + step + warp);
        }
        __syncthreads();
        if (warp == 0) {
            Hit hit = {0, 0, false};
            u64 at = first + lane;
            if (lane < GROUP && at < batch.count) {
                hit = *(const Hit*)(stage + lane * WARP * 4 + FANOUT * 4);
                answer_rank(batch, at, hit.rank);
#if VALUE_BYTES > 0
                if (batch.values != nullptr) {
                    batch.values[at] = hit.found ? hit.value : (Value)0;
                }
#endif
            }
            u32 bits = __ballot_sync(FULL, hit.found);
            if (lane == 0 && batch.present != nullptr) {
                ((u8*)batch.present)[first / 8] = (u8)bits;
            }
        }
        __syncthreads();
    }
}

// What follows searches lines that stay with the host, part by part; see algorithm/hybrid.rs.
#define PIECE_LINES 64u

// The same as Part in algorithm/hybrid.rs.
struct Part {
    u32* numbers;
    u8* touched;
    uint4* lines;
    u64 first;
    u64 count;
};
static_assert(sizeof(Part) == BYTES_OF_PART, "as in algorithm/hybrid.rs");

// Writes down the line of each query, and marks its piece.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hybrid_lines(const __grid_constant__ Arguments table,
                                                                      const __grid_constant__ Batch batch,
                                                                      const __grid_constant__ Part part) {
    DYNAMIC_SHARED(uint4, stage);
    const u32* top = load_top(table, stage);
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = first_query(batch.count); at < batch.count; at += step) {
        u32 line = descend(table, top, load_query(batch, at));
        part.numbers[at] = line;
        u8* piece = part.touched + line / PIECE_LINES;
        if (*piece == 0) {
            *piece = 1;
        }
    }
}

// Copies the touched pieces of a part to the device.
extern "C" __global__ void hybrid_fetch(const __grid_constant__ Arguments table, const __grid_constant__ Part part) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < part.count * 4; at += step) {
        u64 line = part.first + at / 4;
        if (part.touched[line / PIECE_LINES] != 0) {
            part.lines[at] = __ldcs(table.lines + line * 4 + at % 4);
        }
    }
}

// Answers the queries whose lines are in a part. The few whose line is not the one of the descent go on where the lines
// lie with the host: only touched pieces are here. Presence is or-ed to what is there.
extern "C" __global__ void hybrid_answer(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch,
                                         const __grid_constant__ Part part) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < batch.count; at += step) {
        u64 number = part.numbers[at];
        // Also of those left of the part: the difference wraps.
        if (number - part.first >= part.count) {
            continue;
        }
        Word query = load_query(batch, at);
        const u32* words = (const u32*)(part.lines + (number - part.first) * 4);
        if (line_key(words, TUPLES - 1) < query && number < table.last_line) {
            number = step_right(table, (u32)number, query);
            words = (const u32*)(table.lines + number * 4);
        }
        u32 slot = 0;
        bool found = false;
        for (u32 i = 0; i < TUPLES; i++) {
            Word key = line_key(words, i);
            slot += key < query;
            found |= key == query;
        }
        u64 rank = number * TUPLES + slot;
        found = found && rank < table.tuples;
        answer_rank(batch, at, rank < table.tuples ? rank : table.tuples);
#if VALUE_BYTES > 0
        if (batch.values != nullptr) {
            u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
            Value value = words[place];
#if VALUE_BYTES == 8
            value |= (u64)words[place + 1] << 32;
#endif
            batch.values[at] = found ? value : (Value)0;
        }
#endif
        if (found && batch.present != nullptr) {
            atomicOr(batch.present + at / 32, 1u << (at % 32));
        }
    }
}
