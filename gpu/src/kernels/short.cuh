// Words of a section as the file has it, which may be shorter than keys, and queries as such words.
//
// The rule is that of format/src/short.rs: key = base + spread(word), where `spread` moves up to four runs of bits to
// their places, or leaves a distance as it is. A query without a word comes before the first larger word, or after
// all. If words are as long as keys, they are the keys.
//
// Besides WORD_BYTES: STORED_BYTES (4, 8 or 16, at most WORD_BYTES), the bytes of a word of the section.

#if STORED_BYTES == 4
typedef u32 Stored;
#elif STORED_BYTES == 8
typedef u64 Stored;
#else
typedef u128 Stored;
#endif
#define STORED_TYPE

// The same as Arguments in stored.rs.
struct Short {
    u64 base[2];
    // The largest word.
    u64 most;
    u64 mask[4];
    u32 from[4];
    u32 at[4];
    u32 subtracts;
    u32 unused;
};
static_assert(sizeof(Short) == BYTES_OF_SHORT, "as in stored.rs");

// A query among the words: the first word that is not below it, and whether that is its own; or the end of all.
struct Sought {
    Stored word;
    bool is_own;
    bool is_end;
};

#if STORED_BYTES < WORD_BYTES
__device__ __forceinline__ Word spread_word(const Short& from, u64 word) {
    if (from.subtracts != 0) {
        return (Word)(word & from.most);
    }
    Word key = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        key |= (Word)(word >> from.at[i] & from.mask[i]) << from.from[i];
    }
    return key;
}

__device__ __forceinline__ u64 gather_word(const Short& from, Word distance) {
    if (from.subtracts != 0) {
        return (u64)distance & from.most;
    }
    u64 word = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        word |= ((u64)(distance >> from.from[i]) & from.mask[i]) << from.at[i];
    }
    return word;
}

__device__ __forceinline__ Sought seek(const Short& from, Word key) {
#if WORD_BYTES == 16
    Word base = (Word)from.base[1] << 64 | from.base[0];
#else
    Word base = (Word)from.base[0];
#endif
    if (key < base) {
        return {0, false, false};
    }
    Word distance = key - base;
    u64 word = gather_word(from, distance);
    Word other = distance ^ spread_word(from, word);
    if (other == 0) {
        return {(Stored)word, true, false};
    }
    // The highest bit that no run keeps decides: keys that agree above it are smaller.
    for (u32 step = 1; step < WORD_BITS; step *= 2) {
        other |= other >> step;
    }
    u64 last = gather_word(from, distance | other);
    bool is_end = last >= from.most;
    return {(Stored)(is_end ? from.most : last + 1), false, is_end};
}
#else
__device__ __forceinline__ Sought seek(const Short&, Word key) { return {key, true, false}; }
#endif
