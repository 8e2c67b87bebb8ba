// What all kernels share: words, values, a batch of queries and where its answers go.
//
// A program is this text and one kernel file, compiled for WORD_BYTES (4, 8, 16), the bytes of an encoded key, whose
// unsigned order is the order of keys, and for VALUE_BYTES (0, 4, 8), the bytes of a value; what answers from columns
// takes that number from the batch instead. Queries are words already, or keys of a kind that `load_query` encodes, so that a caller's array is searched as it lies. Answers are
// values with a bitmap of presence, or ranks of lower bounds of 4 or 8 bytes; where a pointer is null nobody asked.
//
// The same text is compiled as C++ for a machine without a GPU, which defines PLEACH_EMULATED.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned __int128 u128;

#if WORD_BYTES == 4
typedef u32 Word;
#elif WORD_BYTES == 8
typedef u64 Word;
#else
typedef u128 Word;
#endif
#if VALUE_BYTES == 8
typedef u64 Value;
#else
typedef u32 Value;
#endif

#define WARP 32u
#define FULL 0xFFFFFFFFu
#define WORD_BITS (8u * WORD_BYTES)

#ifndef PLEACH_EMULATED
// Shared memory whose size the launch says.
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

// Kinds of queries: what makes a word of them.
#define KIND_WORD 0u
#define KIND_SIGNED 1u
#define KIND_FLOAT 2u

// A batch; the same as Batch in kernel/mod.rs. `present` has a bit a query, in words of 32 bits; or a byte a query, if
// `present_bytes` is 1, which only spine_values and sweep know, for words of up to 8 bytes.
struct Batch {
    const Word* queries;
    u64 count;
    Value* values;
    u32* present;
    void* ranks;
    u16 kind;
    u16 present_bytes;
    u16 rank_bytes;
    u16 value_bytes;
};
static_assert(sizeof(Batch) == BYTES_OF_BATCH, "as in kernel/mod.rs");

// Encodes a query of some kind.
__device__ __forceinline__ Word encode(Word raw, u32 kind) {
    Word sign = (Word)1 << (WORD_BITS - 1);
    if (kind == KIND_SIGNED) {
        return raw ^ sign;
    }
    if (kind == KIND_FLOAT) {
        // -0.0 is 0.0.
        raw = raw == sign ? 0 : raw;
        return (raw & sign) != 0 ? (Word)~raw : (Word)(raw | sign);
    }
    return raw;
}

// A query past the last one is the last one.
__device__ __forceinline__ Word load_query(const Batch& batch, u64 at) {
    u64 clamped = at < batch.count ? at : batch.count - 1;
#if WORD_BYTES == 16
    const u64* halves = (const u64*)(batch.queries + clamped);
    return encode((Word)__ldcs(halves + 1) << 64 | __ldcs(halves), batch.kind);
#else
    return encode(__ldcs(batch.queries + clamped), batch.kind);
#endif
}

// Writes a rank, if ranks are asked for.
__device__ __forceinline__ void answer_rank(const Batch& batch, u64 at, u64 rank) {
    if (at >= batch.count || batch.ranks == nullptr) {
        return;
    }
    if (batch.rank_bytes == 4) {
        __stcs((u32*)batch.ranks + at, (u32)rank);
    } else {
        __stcs((u64*)batch.ranks + at, rank);
    }
}

// Writes the presence of 32 queries, of which `at` is the first.
__device__ __forceinline__ void write_present(const Batch& batch, u64 at, u32 bits) {
    if (batch.present != nullptr && (at & 31) == 0) {
        batch.present[at / 32] = bits;
    }
}

// Answers whether query `at` of a whole warp is present: lane i has the query at a multiple of 32 plus i. All 32 lanes
// call this together, also those past the last query.
__device__ __forceinline__ void answer_present(const Batch& batch, u64 at, bool found) {
    u32 bits = __ballot_sync(FULL, found && at < batch.count);
    if (at < batch.count) {
        write_present(batch, at, bits);
    }
}

// Answers value and presence, called as `answer_present`. An absent key's value is 0. Presence may be bytes where
// `may_be_bytes`; elsewhere that would take registers for nothing.
__device__ __forceinline__ void answer_value(const Batch& batch, u64 at, bool found, Value value,
                                             bool may_be_bytes = false) {
    u32 bits = __ballot_sync(FULL, found && at < batch.count);
    if (at >= batch.count) {
        return;
    }
#if VALUE_BYTES > 0
    if (batch.values != nullptr) {
        __stcs(batch.values + at, found ? value : (Value)0);
    }
#endif
    if (may_be_bytes && batch.present_bytes != 0) {
        __stcs((u8*)batch.present + at, (u8)found);
    } else {
        write_present(batch, at, bits);
    }
}

// Sorted keys and their values, of the batch's width: what the algorithms of the papers answer from.
struct Columns {
    const Word* keys;
    const void* values;
    u64 tuples;
};
static_assert(sizeof(Columns) == BYTES_OF_COLUMNS, "as in kernel/mod.rs");

// Writes the value of a query that was found at `rank`, or 0, if values are asked for.
__device__ __forceinline__ void copy_value(const void* values, const Batch& batch, u64 at, bool found, u64 rank) {
    if (at >= batch.count || batch.values == nullptr) {
        return;
    }
    if (batch.value_bytes == 8) {
        __stcs((u64*)batch.values + at, found ? __ldg((const u64*)values + rank) : (u64)0);
    } else if (batch.value_bytes == 4) {
        __stcs((u32*)batch.values + at, found ? __ldg((const u32*)values + rank) : 0u);
    }
}

// Answers a whole warp's queries, as `answer_present`, from the ranks of their lower bounds.
__device__ __forceinline__ void answer_columns(const Columns& columns, const Batch& batch, u64 at, Word query,
                                               u64 rank) {
    answer_rank(batch, at, rank);
    if (batch.values == nullptr && batch.present == nullptr) {
        return;
    }
    bool found = at < batch.count && rank < columns.tuples && columns.keys[rank] == query;
    copy_value(columns.values, batch, at, found, rank);
    answer_present(batch, at, found);
}
