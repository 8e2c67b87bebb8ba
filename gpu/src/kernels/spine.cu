// Look-ups through the device image: the top in shared memory, a node a level, then a cell or a tuple line.
//
// Each thread descends with a query of its own: a node is one sector, which it loads by itself, and so is a cell. A
// tuple line is loaded by four threads for each of them in turn, 16 bytes each, since lanes that share a line cost one
// access; it goes through shared memory, where the thread that asked reads it.
//
// Besides what image.cuh takes: THREADS (most of a block), FEW_TOP_MAX (codes of a top that short batches copy).
// Dynamic shared memory: STAGE_PARTS of 16 bytes, or FEW_PARTS for `spine_few`, then the top, whole multiples of 16
// bytes as in memory.

// The unit of a query, or one left of it. All threads take the same number of steps in the top.
__device__ __forceinline__ u32 descend(const Arguments& table, const u32* top, Word query) {
    Word offset = offset_of(table, query);
    u32 code = (u32)(offset >> table.top_shift), at = 0;
    for (u32 size = table.top_count; size > 0;) {
        u32 half = (size + 1) / 2;
        at += top[at + half - 1] < code ? half : 0;
        size -= half;
    }
    return unit_below(table, at, offset, below_top(table, top, at));
}

// Right of a unit whose keys all are below a query, because a border whose cell the query shares was not passed: the
// first unit whose last key is not below, which is near by. The last unit has no border.
__device__ __forceinline__ u32 step_right(const Arguments& table, u32 unit, Word query) {
    u32 begin = unit + 1, end = table.last_unit, step = 0;
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

// What a query finds in a unit whose words of 32 bits are given, wherever they lie.
__device__ __forceinline__ Hit look_into(const Arguments& table, const u32* words, u32 unit, Word query) {
    u32 slot = 0;
    Hit hit = {0, 0, false};
    for (u32 i = 0; i < UNIT_TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        hit.found |= key == query;
    }
#if VALUE_BYTES > 0
    u32 place = UNIT_VALUES_AT + min(slot, UNIT_TUPLES - 1u) * (VALUE_BYTES / 4);
    hit.value = words[place];
#if VALUE_BYTES == 8
    hit.value |= (u64)words[place + 1] << 32;
#endif
#endif
    u64 rank = (u64)unit * UNIT_TUPLES + slot;
    // A key of all ones may be padding.
    hit.found = hit.found && rank < table.tuples;
    hit.rank = rank < table.tuples ? rank : table.tuples;
    return hit;
}

#if CELLS

// A cell is one sector, which its thread loads by itself, and keeps in registers.
struct Cell {
    u32 words[8];
};

__device__ __forceinline__ Cell load_cell(const Arguments& table, u32 cell) {
    const uint4* from = table.lines + (u64)cell * UNIT_PARTS;
    uint4 low = __ldcs(from), high = __ldcs(from + 1);
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ __forceinline__ u32 slot_of(const Cell& cell, Word query, bool& found) {
    u32 slot = 0;
    found = false;
#pragma unroll
    for (u32 i = 0; i < UNIT_TUPLES; i++) {
        Word key = line_key(cell.words, i);
        slot += key < query;
        found |= key == query;
    }
    return slot;
}

__device__ __forceinline__ Hit look_up(const Arguments& table, const u32* top, uint4*, Word query) {
    u32 number = descend(table, top, query);
    Cell cell = load_cell(table, number);
    Hit hit = {0, 0, false};
    u32 slot = slot_of(cell, query, hit.found);
    // The next one, mostly.
    for (u32 turn = 0; slot == UNIT_TUPLES && number < table.last_unit; turn++) {
        number = turn == 0 ? number + 1 : step_right(table, number, query);
        cell = load_cell(table, number);
        slot = slot_of(cell, query, hit.found);
    }
#if VALUE_BYTES > 0
    u32 place = min(slot, UNIT_TUPLES - 1u);
#pragma unroll
    for (u32 i = 0; i < UNIT_TUPLES; i++) {
#if VALUE_BYTES == 4
        hit.value = place == i ? cell.words[UNIT_VALUES_AT + i] : hit.value;
#else
        u64 value = (u64)cell.words[UNIT_VALUES_AT + 2 * i + 1] << 32 | cell.words[UNIT_VALUES_AT + 2 * i];
        hit.value = place == i ? value : hit.value;
#endif
    }
#endif
    u64 rank = (u64)number * UNIT_TUPLES + slot;
    // A key of all ones may be padding.
    hit.found = hit.found && rank < table.tuples;
    hit.rank = rank < table.tuples ? rank : table.tuples;
    return hit;
}

// What stands before the top in shared memory: of short batches a group's lines.
#define STAGE_PARTS 0u

#else

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
    Hit hit = {0, 0, false};
    if (slot == TUPLES && line < table.last_unit) {
        line = step_right(table, line, query);
        hit = look_into(table, (const u32*)(table.lines + (u64)line * 4), line, query);
    } else {
#if VALUE_BYTES > 0
        const u32* row = (const u32*)stage;
        u32 place = UNIT_VALUES_AT + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
        hit.value = row[staged(threadIdx.x, place / 4) * 4 + place % 4];
#if VALUE_BYTES == 8
        hit.value |= (u64)row[staged(threadIdx.x, (place + 1) / 4) * 4 + (place + 1) % 4] << 32;
#endif
#endif
        u64 rank = (u64)line * TUPLES + slot;
        hit.found = found && rank < table.tuples;
        hit.rank = rank < table.tuples ? rank : table.tuples;
    }
    __syncwarp();
    return hit;
}

// What stands before the top in shared memory: a line for each thread.
#define STAGE_PARTS (THREADS * 4u)

#endif

// The top, copied to shared memory.
__device__ __forceinline__ const u32* load_top(const Arguments& table, uint4* top) {
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
    const u32* top = load_top(table, stage + STAGE_PARTS);
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
    const u32* top = load_top(table, stage + STAGE_PARTS);
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
// What a warp has in shared memory, before the top: the parts of all units of a node, and its answer. Behind that of
// all warps are the group's queries.
#define OWN_PARTS (LOW_FANOUT * UNIT_PARTS + 4u)
#define FEW_PARTS (GROUP * (OWN_PARTS + 1u))
static_assert(FEW_PARTS * 16 == BYTES_OF_FEW, "as in algorithm/spine.rs");
static_assert(sizeof(Hit) <= 64, "an answer has four parts");

__device__ __forceinline__ Hit look_up_few(const Arguments& table, const u32* top, uint4* stage, Word query) {
    u32 lane = threadIdx.x % WARP;
    Word offset = offset_of(table, query);
    u32 code = (u32)(offset >> table.top_shift);
    u32 at = 0, size = table.top_count;
    while (size > 0) {
        // Each lane looks at the last codes of four pieces, which are on their way together.
        u32 piece = (size + 4 * WARP - 1) / (4 * WARP), below = 0;
        u32 codes[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 end = (i * WARP + lane + 1) * piece;
            codes[i] = end <= size ? top[at + end - 1] : FULL;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 end = (i * WARP + lane + 1) * piece;
            below += (u32)__popc(__ballot_sync(FULL, end <= size && codes[i] < code));
        }
        at += below * piece;
        size = min(size - below * piece, piece - 1);
    }
    Interval interval = below_top(table, top, at);
    u32 level = table.levels;
    // A node and all its children, which are nodes of level `level - 2`.
    for (; level >= 2; level -= 2) {
        Node node = load_node(table.nodes[level - 1] + (u64)at * 2), child = {};
        u64 number = (u64)at * FANOUT + lane;
        if (lane < FANOUT && number * span_of(level - 1) <= table.last_unit) {
            child = load_node(table.nodes[level - 2] + number * 2);
        }
        u32 below = child_of(node.codes, offset, interval);
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            node.codes[i] = __shfl_sync(FULL, child.codes[i], (int)below);
        }
        at = at * FANOUT + below;
        if (level > 2) {
            at = at * FANOUT + child_of(node.codes, offset, interval);
        } else {
            at = at * LOW_FANOUT + low_child_of(node.codes, offset, interval);
        }
    }
    // The last node and all its units, or a unit.
    u32 units = level == 1 ? LOW_FANOUT : 1u, row = 0;
    u32 first = min(at * units, table.last_unit);
    units = min(units, table.last_unit - first + 1);
    const u32 rounds = (LOW_FANOUT * UNIT_PARTS + WARP - 1) / WARP;
    uint4 parts[rounds];
#pragma unroll
    for (u32 i = 0; i < rounds; i++) {
        u32 part = i * WARP + lane;
        if (part < units * UNIT_PARTS) {
            parts[i] = __ldcs(table.lines + (u64)first * UNIT_PARTS + part);
        }
    }
    if (level == 1) {
        Node node = load_node(table.nodes[0] + (u64)at * 2);
        row = min(low_child_of(node.codes, offset, interval), units - 1);
    }
#pragma unroll
    for (u32 i = 0; i < rounds; i++) {
        u32 part = i * WARP + lane;
        if (part < units * UNIT_PARTS) {
            stage[part] = parts[i];
        }
    }
    __syncwarp();
    u32 unit = first + row;
    const u32* words = (const u32*)(stage + row * UNIT_PARTS);
    if (line_key(words, UNIT_TUPLES - 1) < query && unit < table.last_unit) {
        unit = step_right(table, unit, query);
        words = (const u32*)(table.lines + (u64)unit * UNIT_PARTS);
    }
    return look_into(table, words, unit, query);
}

// Whatever is asked for, of a short batch: a block has at least GROUP warps, the others only help to load the top.
// There are groups for all of the bitmap's words of 32 bits.
extern "C" __global__ void __launch_bounds__(512, 1)
    spine_few(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    Word* queries = (Word*)(stage + GROUP * OWN_PARTS);
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u64 step = (u64)gridDim.x * GROUP, groups_end = (batch.count + 31) / 32 * 32;
    // A group's queries travel together, which over the link is one access, and while the top does: they are encoded
    // when both are there. A top that is long is searched where it lies.
    Batch plain = batch;
    plain.kind = KIND_WORD;
    Word query = 0;
    if (threadIdx.x < GROUP) {
        query = load_query(plain, (u64)blockIdx.x * GROUP + threadIdx.x);
    }
    const u32* top = table.top;
    if (table.top_count <= FEW_TOP_MAX) {
        top = load_top(table, stage + FEW_PARTS);
    }
    uint4* own = stage + warp * OWN_PARTS;
    for (u64 first = (u64)blockIdx.x * GROUP; first < groups_end; first += step) {
        if (threadIdx.x < GROUP) {
            queries[threadIdx.x] = query;
            query = load_query(plain, first + step + threadIdx.x);
        }
        __syncthreads();
        if (warp < GROUP && first + warp < batch.count) {
            Hit hit = look_up_few(table, top, own, encode(queries[warp], batch.kind));
            if (lane == 0) {
                *(Hit*)(own + LOW_FANOUT * UNIT_PARTS) = hit;
            }
        }
        __syncthreads();
        if (warp == 0) {
            Hit hit = {0, 0, false};
            u64 at = first + lane;
            if (lane < GROUP && at < batch.count) {
                hit = *(const Hit*)(stage + lane * OWN_PARTS + LOW_FANOUT * UNIT_PARTS);
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

#if !CELLS

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
    const u32* top = load_top(table, stage + STAGE_PARTS);
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
        if (line_key(words, TUPLES - 1) < query && number < table.last_unit) {
            number = step_right(table, (u32)number, query);
            words = (const u32*)(table.lines + number * 4);
        }
        Hit hit = look_into(table, words, (u32)number, query);
        answer_rank(batch, at, hit.rank);
#if VALUE_BYTES > 0
        if (batch.values != nullptr) {
            batch.values[at] = hit.found ? hit.value : (Value)0;
        }
#endif
        if (hit.found && batch.present != nullptr) {
            atomicOr(batch.present + at / 32, 1u << (at % 32));
        }
    }
}

#endif
