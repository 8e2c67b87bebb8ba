// Floors, ceilings and nearest tuples through the device image, descended as in spine.cuh.
//
// The nearest tuple is the floor or the one after it, which is mostly in the same line.

#if WORD_BYTES == 8
// The number of a float's word.
__device__ __forceinline__ double float_of(Word word) {
    union {
        u64 bits;
        double number;
    } both;
    both.bits = decode(word, KIND_FLOAT);
    return both.number;
}
#endif

// Whether the key above a query is nearer to it than the one at or below it.
__device__ __forceinline__ bool is_nearer(u32 kind, Word query, Word below, Word above) {
#if WORD_BYTES == 8
    if (kind == KIND_FLOAT) {
        return below != query && float_of(above) - float_of(query) < float_of(query) - float_of(below);
    }
#endif
    // Words of integers have the distances of the integers.
    return below != query && above - query < query - below;
}

// The nearest tuple, of the floor in a line and what follows it there, as far as that is the line's.
__device__ __forceinline__ void choose_nearest(const Arguments& table, u32 kind, Word query, u32 line, u32 passed,
                                               Word next_key, Value next_value, Found& found) {
    u64 next = (u64)line * TUPLES + passed;
    if (next < table.tuples && (!found.is_there || is_nearer(kind, query, found.key, next_key))) {
        found = {next, next_key, next_value, true};
    }
}

// The tuple near a query; for a whole warp, of which each thread has one.
template <int WANTED>
__device__ __forceinline__ Found look_near(const Arguments& table, const Batch& batch, const AnyTop& top, uint4* stage,
                                           Word query) {
    const bool is_floor = WANTED != CEILING;
    Word aim = is_floor ? (Word)~query : query;
    u32 at = descend(table, top, aim);
    load_lines(table, stage, line_at<is_floor>(table, at), true);
    u32 passed = staged_passed<is_floor>(stage, query);
    // A border whose cell the query shares was not passed. The last place has no border.
    const u32 none = is_floor ? 0 : TUPLES;
    bool is_right = passed == none && at < table.last_line;
    for (u32 turn = 0; __any_sync(FULL, is_right); turn++) {
        if (is_right) {
            at = turn == 0 ? at + 1 : step_right<is_floor>(table, at, aim);
        }
        __syncwarp();
        load_lines(table, stage, line_at<is_floor>(table, at), is_right);
        if (is_right) {
            passed = staged_passed<is_floor>(stage, query);
            is_right = passed == none && at < table.last_line;
        }
    }
    u32 line = line_at<is_floor>(table, at);
    Found found = found_staged<is_floor>(table, stage, line, passed);
    if (WANTED == NEAREST) {
        Word key = staged_key(stage, min(passed, TUPLES - 1u));
        Value value = staged_value(stage, min(passed, TUPLES - 1u));
        if (passed == TUPLES && line < table.last_line && found.key != query) {
            const u32* words = (const u32*)(table.lines + ((u64)line + 1) * LINE_PARTS);
            key = first_key(table, line + 1);
            value = line_value(words, 0);
        }
        choose_nearest(table, batch.kind, query, line, passed, key, value, found);
    }
    __syncwarp();
    return found;
}

// Answers a batch.
template <int WANTED>
__device__ __forceinline__ void near_all(const Arguments& table, const Batch& batch, const Near& near, uint4* stage) {
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
        Found found = look_near<WANTED>(table, batch, top, stage, query);
        if (WANTED == FLOOR) {
            hold(batch, near, query, found);
        }
        answer_near(batch, near, at, found);
    }
}

// Floors, also of intervals, through a mirrored image.
extern "C" __global__ void __launch_bounds__(THREADS, 1) near_floor(const __grid_constant__ Arguments table,
                                                                    const __grid_constant__ Batch batch,
                                                                    const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    near_all<FLOOR>(table, batch, near, stage);
}

// Ceilings, through an image.
extern "C" __global__ void __launch_bounds__(THREADS, 1) near_ceiling(const __grid_constant__ Arguments table,
                                                                      const __grid_constant__ Batch batch,
                                                                      const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    near_all<CEILING>(table, batch, near, stage);
}

// Nearest tuples, through a mirrored image.
extern "C" __global__ void __launch_bounds__(THREADS, 1) near_nearest(const __grid_constant__ Arguments table,
                                                                      const __grid_constant__ Batch batch,
                                                                      const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    near_all<NEAREST>(table, batch, near, stage);
}

// How many keys of a line whose words are given a search passes.
template <bool IS_FLOOR> __device__ __forceinline__ u32 line_passed(const u32* words, Word query) {
    u32 slot = 0;
    for (u32 i = 0; i < TUPLES; i++) {
        slot += passes<IS_FLOOR>(line_key(words, i), query);
    }
    return slot;
}

// The tuple near a query, from the place that the image leads to, of a line wherever it lies.
template <int WANTED>
__device__ __forceinline__ Found look_from(const Arguments& table, const Batch& batch, Place place, Word query) {
    const bool is_floor = WANTED != CEILING;
    u32 passed = line_passed<is_floor>(place.words, query);
    if (passed == (is_floor ? 0 : TUPLES) && place.at < table.last_line) {
        place.at = step_right<is_floor>(table, place.at, is_floor ? (Word)~query : query);
        place.words = (const u32*)(table.lines + (u64)line_at<is_floor>(table, place.at) * LINE_PARTS);
        passed = line_passed<is_floor>(place.words, query);
    }
    u32 line = line_at<is_floor>(table, place.at);
    Found found = found_in<is_floor>(table, place.words, line, passed);
    if (WANTED == NEAREST && (u64)line * TUPLES + passed < table.tuples) {
        const u32* words = passed < TUPLES ? place.words : (const u32*)(table.lines + ((u64)line + 1) * LINE_PARTS);
        u32 slot = passed % TUPLES;
        choose_nearest(table, batch.kind, query, line, passed, line_key(words, slot), line_value(words, slot), found);
    }
    return found;
}

// Writes what is asked for, but for presence; a thread by itself.
__device__ __forceinline__ void answer_alone(const Batch& batch, const Near& near, u64 at, const Found& found) {
    answer_tuple(batch, near, at, found);
#if VALUE_BYTES > 0
    if (batch.values != nullptr) {
        batch.values[at] = found.is_there ? found.value : (Value)0;
    }
#endif
}

#if LOW_BITS != 32

// The tuple near a query; by a whole warp.
template <int WANTED>
__device__ __forceinline__ Found look_near_few(const Arguments& table, const Batch& batch, uint4* stage, Word query) {
    const bool is_floor = WANTED != CEILING;
    return look_from<WANTED>(table, batch, few_line<is_floor>(table, stage, is_floor ? (Word)~query : query), query);
}

// What a short batch is asked for.
template <int WANTED> struct FewNear {
    typedef Found Answer;
    const Near& near;

    __device__ __forceinline__ Found look(const Arguments& table, const Batch& batch, uint4* stage, Word query) const {
        Found found = look_near_few<WANTED>(table, batch, stage, query);
        if (WANTED == FLOOR) {
            hold(batch, near, query, found);
        }
        return found;
    }

    __device__ __forceinline__ void answer(const Batch& batch, u64 at, const Found& found) const {
        answer_alone(batch, near, at, found);
    }

    __device__ __forceinline__ bool is_there(const Found& found) const { return found.is_there; }
};

// The same of short batches.
extern "C" __global__ void __launch_bounds__(GROUP * WARP, 1) near_few_floor(const __grid_constant__ Arguments table,
                                                                             const __grid_constant__ Batch batch,
                                                                             const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    few_all(table, batch, stage, FewNear<FLOOR>{near});
}

extern "C" __global__ void __launch_bounds__(GROUP * WARP, 1) near_few_ceiling(const __grid_constant__ Arguments table,
                                                                               const __grid_constant__ Batch batch,
                                                                               const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    few_all(table, batch, stage, FewNear<CEILING>{near});
}

extern "C" __global__ void __launch_bounds__(GROUP * WARP, 1) near_few_nearest(const __grid_constant__ Arguments table,
                                                                               const __grid_constant__ Batch batch,
                                                                               const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, stage);
    few_all(table, batch, stage, FewNear<NEAREST>{near});
}

#endif

#if LOW_BITS != 8

// Writes down the line of each query's floor, and marks its piece; for ceilings `hybrid_lines` does.
extern "C" __global__ void __launch_bounds__(THREADS, 1) near_lines(const __grid_constant__ Arguments table,
                                                                    const __grid_constant__ Batch batch,
                                                                    const __grid_constant__ Part part) {
    DYNAMIC_SHARED(uint4, stage);
    note_lines<true>(table, batch, part, stage);
}

// Answers the queries whose lines are in a part, as `hybrid_answer` does.
template <int WANTED>
__device__ __forceinline__ void answer_part(const Arguments& table, const Batch& batch, const Near& near,
                                            const Part& part) {
    const bool is_floor = WANTED != CEILING;
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
        Place place = {is_floor ? table.last_line - (u32)number : (u32)number,
                         (const u32*)(part.lines + (number - part.first) * 4)};
        Found found = look_from<WANTED>(table, batch, place, query);
        if (WANTED == FLOOR) {
            hold(batch, near, query, found);
        }
        answer_alone(batch, near, at, found);
        if (found.is_there && batch.present != nullptr) {
            atomicOr(batch.present + at / 32, 1u << (at % 32));
        }
    }
}

extern "C" __global__ void near_part_floor(const __grid_constant__ Arguments table, const __grid_constant__ Batch batch,
                                           const __grid_constant__ Near near, const __grid_constant__ Part part) {
    answer_part<FLOOR>(table, batch, near, part);
}

extern "C" __global__ void near_part_ceiling(const __grid_constant__ Arguments table,
                                             const __grid_constant__ Batch batch, const __grid_constant__ Near near,
                                             const __grid_constant__ Part part) {
    answer_part<CEILING>(table, batch, near, part);
}

extern "C" __global__ void near_part_nearest(const __grid_constant__ Arguments table,
                                             const __grid_constant__ Batch batch, const __grid_constant__ Near near,
                                             const __grid_constant__ Part part) {
    answer_part<NEAREST>(table, batch, near, part);
}

#endif
