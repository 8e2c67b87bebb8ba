// Look-ups through the device image (spine.cuh): values, presence and the ranks of lower bounds.

// What a query finds in a line whose words of 32 bits are given, wherever they lie.
__device__ __forceinline__ Hit look_into(const Arguments& table, const u32* words, u32 line, Word query) {
    u32 slot = 0;
    Hit hit = {0, 0, false};
    for (u32 i = 0; i < TUPLES; i++) {
        Word key = line_key(words, i);
        slot += key < query;
        hit.found |= key == query;
    }
#if VALUE_BYTES > 0
    u32 place = VALUES_AT / 4 + min(slot, TUPLES - 1u) * (VALUE_BYTES / 4);
    hit.value = words[place];
#if VALUE_BYTES == 8
    hit.value |= (u64)words[place + 1] << 32;
#endif
#endif
    complete(table, hit, line, slot);
    return hit;
}

// Looks a query up; for a whole warp, of which each thread has one.
__device__ __forceinline__ Hit look_up(const Arguments& table, const AnyTop& top, uint4* stage, Word query) {
    u32 line = descend(table, top, query);
    Hit hit = {0, 0, false};
    load_lines(table, stage, line, true);
    u32 slot = slot_of(stage, query, hit.found);
    // A border whose cell the query shares was not passed. The last line has no border.
    bool is_left = slot == TUPLES && line < table.last_line;
    for (u32 turn = 0; __any_sync(FULL, is_left); turn++) {
        if (is_left) {
            line = turn == 0 ? line + 1 : step_right<false>(table, line, query);
        }
        __syncwarp();
        load_lines(table, stage, line, is_left);
        if (is_left) {
            slot = slot_of(stage, query, hit.found);
            is_left = slot == TUPLES && line < table.last_line;
        }
    }
    complete_staged(table, stage, hit, line, slot);
    __syncwarp();
    return hit;
}

// Values and presence.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_values(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    if (is_swept(table)) {
        return;
    }
    AnyTop top = load_top(table, stage + STAGE_PARTS);
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 at = first_query(batch.count);
    // The next query is on its way while this one is searched.
    Word next = load_query(batch, at);
    for (; (at & ~(u64)31) < batch.count; at += step) {
        Word query = next;
        next = load_query(batch, at + step);
        Hit hit = look_up(table, top, stage, query);
        answer_value(batch, at, hit.found, hit.value, WORD_BYTES <= 8);
    }
}

// Ranks of lower bounds, and what else is asked for.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    spine_ranks(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    if (is_swept(table)) {
        return;
    }
    AnyTop top = load_top(table, stage + STAGE_PARTS);
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

#if LOW_BITS != 32

__device__ __forceinline__ Hit look_up_few(const Arguments& table, uint4* stage, Word query) {
    Place found = few_line<false>(table, stage, query);
    u32 line = found.at;
    const u32* words = found.words;
    if (line_key(words, TUPLES - 1) < query && line < table.last_line) {
        line = step_right<false>(table, line, query);
        words = (const u32*)(table.lines + (u64)line * LINE_PARTS);
    }
    return look_into(table, words, line, query);
}

// What a short batch is asked for.
struct FewGet {
    typedef Hit Answer;

    __device__ __forceinline__ Hit look(const Arguments& table, const Batch&, uint4* stage, Word query) const {
        return look_up_few(table, stage, query);
    }

    __device__ __forceinline__ void answer(const Batch& batch, u64 at, const Hit& hit) const {
        answer_rank(batch, at, hit.rank);
#if VALUE_BYTES > 0
        if (batch.values != nullptr) {
            batch.values[at] = hit.found ? hit.value : (Value)0;
        }
#endif
    }

    __device__ __forceinline__ bool is_there(const Hit& hit) const { return hit.found; }
};

// Whatever is asked for, of a short batch.
extern "C" __global__ void __launch_bounds__(GROUP * WARP, 1)
    spine_few(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, stage);
    few_all(table, batch, stage, FewGet());
}

#endif

#if LOW_BITS != 8

// Writes down the line of each query, and marks its piece.
extern "C" __global__ void __launch_bounds__(THREADS, 1) hybrid_lines(const __grid_constant__ Arguments table,
                                                                      const __grid_constant__ Batch batch,
                                                                      const __grid_constant__ Part part) {
    DYNAMIC_SHARED(uint4, stage);
    note_lines<false>(table, batch, part, stage);
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
    if (is_swept(table)) {
        return;
    }
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
            number = step_right<false>(table, (u32)number, query);
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
