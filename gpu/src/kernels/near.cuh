// Tuples near queries that need not be keys: what near.cu and near_sweep.cu have in common.
//
// The floor of a query is the last tuple whose key is at most the query, its ceiling the first one whose key is at
// least the query. An image leads to the line that has the ceiling, a mirrored one (image.cuh) to the line that has the
// floor: so neither costs another line than a look-up does. Key and value are read where the line is.
//
// In files of intervals, whose values begin with the last key of an interval, a floor that ends before the query does
// not count.
//
// Besides what image.cuh takes: BYTES_OF_NEAR.

// Which tuple is wanted.
#define FLOOR 0
#define CEILING 1
#define NEAREST 2

// What is wanted besides the answers of the batch; the same as NearArguments in algorithm/near.rs. `keys` is null if
// nobody asks.
struct Near {
    Word* keys;
    u32 is_interval;
    u32 unused;
};
static_assert(sizeof(Near) == BYTES_OF_NEAR, "NearArguments of algorithm/near.rs");

// The tuple near a query.
struct Found {
    u64 rank;
    Word key;
    Value value;
    bool is_there;
};

// The key of a word; the other way round than `encode`.
__device__ __forceinline__ Word decode(Word word, u32 kind) {
    Word sign = (Word)1 << (WORD_BITS - 1);
    if (kind == KIND_SIGNED) {
        return word ^ sign;
    }
    if (kind == KIND_FLOAT) {
        return (word & sign) != 0 ? (Word)(word ^ sign) : (Word)~word;
    }
    return word;
}

// Whether a key is before the slot that a search of this direction ends at.
template <bool IS_FLOOR> __device__ __forceinline__ bool passes(Word key, Word query) {
    return IS_FLOOR ? key <= query : key < query;
}

// Drops the floor of a query that its interval does not hold.
__device__ __forceinline__ void hold(const Batch& batch, const Near& near, Word query, Found& found) {
#if VALUE_BYTES >= WORD_BYTES
    if (near.is_interval != 0) {
        found.is_there = found.is_there && encode((Word)found.value, batch.kind) >= query;
    }
#endif
}

// Writes rank and key, as far as they are asked for. Without a tuple the rank is all ones, and key and value are 0.
__device__ __forceinline__ void answer_tuple(const Batch& batch, const Near& near, u64 at, const Found& found) {
    answer_rank(batch, at, found.is_there ? found.rank : ~(u64)0);
    if (near.keys != nullptr && at < batch.count) {
        Word key = found.is_there ? decode(found.key, batch.kind) : (Word)0;
#if WORD_BYTES == 16
        u64* halves = (u64*)(near.keys + at);
        __stcs(halves, (u64)key);
        __stcs(halves + 1, (u64)(key >> 64));
#else
        __stcs(near.keys + at, key);
#endif
    }
}

// Writes value and presence, too; a whole warp, as `answer_value`.
__device__ __forceinline__ void answer_near(const Batch& batch, const Near& near, u64 at, const Found& found) {
    answer_tuple(batch, near, at, found);
    answer_value(batch, at, found.is_there, found.value, WORD_BYTES <= 8);
}

// A value of a line whose words of 32 bits are given.
__device__ __forceinline__ Value line_value(const u32* words, u32 slot) {
    (void)words, (void)slot;
#if VALUE_BYTES == 8
    const u32* place = words + VALUES_AT / 4 + slot * 2;
    return (u64)place[1] << 32 | place[0];
#elif VALUE_BYTES == 4
    return words[VALUES_AT / 4 + slot];
#else
    return 0;
#endif
}

// How many keys of this thread's staged line a search passes.
template <bool IS_FLOOR> __device__ __forceinline__ u32 staged_passed(const uint4* stage, Word query) {
    u32 words[16], slot = 0;
#pragma unroll
    for (u32 column = 0; column < (TUPLES * WORD_BYTES + 15) / 16; column++) {
        uint4 part = stage[staged(threadIdx.x, column)];
        words[4 * column] = part.x, words[4 * column + 1] = part.y;
        words[4 * column + 2] = part.z, words[4 * column + 3] = part.w;
    }
#pragma unroll
    for (u32 i = 0; i < TUPLES; i++) {
        slot += passes<IS_FLOOR>(line_key(words, i), query);
    }
    return slot;
}

// A key and a value of this thread's staged line.
__device__ __forceinline__ Word staged_key(const uint4* stage, u32 slot) {
    u32 words[WORD_BYTES / 4];
#pragma unroll
    for (u32 i = 0; i < WORD_BYTES / 4; i++) {
        words[i] = staged_word(stage, slot * (WORD_BYTES / 4) + i);
    }
    return line_key(words, 0);
}

__device__ __forceinline__ Value staged_value(const uint4* stage, u32 slot) {
    (void)stage, (void)slot;
#if VALUE_BYTES == 8
    u32 place = VALUES_AT / 4 + slot * 2;
    return (u64)staged_word(stage, place + 1) << 32 | staged_word(stage, place);
#elif VALUE_BYTES == 4
    return staged_word(stage, VALUES_AT / 4 + slot);
#else
    return 0;
#endif
}

// Where the tuple is in a line of which a search passed so many keys. Keys of all ones may be padding.
struct Slot {
    u64 rank;
    u32 slot;
    bool is_there;
};

template <bool IS_FLOOR>
__device__ __forceinline__ Slot slot_near(const Arguments& table, u32 line, u32 passed) {
    u64 first = (u64)line * TUPLES;
    if (IS_FLOOR) {
        u32 real = (u32)min((u64)passed, table.tuples - first);
        u32 slot = max(real, 1u) - 1;
        return {first + slot, slot, real > 0};
    }
    return {first + passed, min(passed, TUPLES - 1u), first + passed < table.tuples};
}

// What stands in a slot of this thread's staged line.
template <bool IS_FLOOR>
__device__ __forceinline__ Found found_staged(const Arguments& table, const uint4* stage, u32 line, u32 passed) {
    Slot near = slot_near<IS_FLOOR>(table, line, passed);
    return {near.rank, staged_key(stage, near.slot), staged_value(stage, near.slot), near.is_there};
}

// The same, of a line whose words are given.
template <bool IS_FLOOR>
__device__ __forceinline__ Found found_in(const Arguments& table, const u32* words, u32 line, u32 passed) {
    Slot near = slot_near<IS_FLOOR>(table, line, passed);
    return {near.rank, line_key(words, near.slot), line_value(words, near.slot), near.is_there};
}
