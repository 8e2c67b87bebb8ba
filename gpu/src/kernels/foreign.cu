// Batches in arrays of other libraries: keys of another type, a byte for each presence, a value for missing keys.
//
// `foreign_keys` turns numbers of any type into keys of the file's type. A number that is no such key, like -1 among
// unsigned keys, is a miss: it has a bit in `misses`, and a word that does not matter.
//
// `foreign_answers` runs after a search, whose presence has a bit for each key. It writes a byte for each key, and the
// values that the caller wants for missing ones. Words of 4 bytes can become 8.

// Types of numbers, as in foreign.rs.
#define LANE_U8 0u
#define LANE_U16 1u
#define LANE_U32 2u
#define LANE_U64 3u
#define LANE_I8 4u
#define LANE_I16 5u
#define LANE_I32 6u
#define LANE_I64 7u
#define LANE_F32 8u
#define LANE_F64 9u

// What becomes of values, as in foreign.rs.
#define FORM_WIDE 1u
#define FORM_SIGNED 2u
#define FORM_REPLACE 4u

// The same as ForeignKeys in foreign.rs.
struct ForeignKeys {
    const void* keys;
    Word* words;
    u32* misses;
    u64 count;
    u32 lane;
    u32 kind;
};
static_assert(sizeof(ForeignKeys) == BYTES_OF_FOREIGN_KEYS, "as in foreign.rs");

// The same as ForeignAnswers in foreign.rs.
struct ForeignAnswers {
    const u32* present;
    const u32* misses;
    const u32* narrow;
    void* values;
    u8* found;
    u64 count;
    u64 missing;
    u32 form;
    u32 unused;
};
static_assert(sizeof(ForeignAnswers) == BYTES_OF_FOREIGN_ANSWERS, "as in foreign.rs");

// The bits of a float.
__device__ __forceinline__ u64 bits_of(double number) {
    union {
        double number;
        u64 bits;
    } both;
    both.number = number;
    return both.bits;
}

// An integer that is not negative, as a key of some kind. Returns whether it is one.
__device__ __forceinline__ bool from_unsigned(u64 number, u32 kind, Word* word) {
    *word = (Word)number;
    if (kind == KIND_FLOAT) {
        double near = (double)number;
        *word = (Word)bits_of(near);
        return near < 18446744073709551616.0 && (u64)near == number;
    }
#if WORD_BYTES == 16
    return true;
#else
    u32 bits = kind == KIND_SIGNED ? WORD_BITS - 1 : WORD_BITS;
    return bits == 64 || number >> bits == 0;
#endif
}

// A negative integer, as a key of some kind. Returns whether it is one.
__device__ __forceinline__ bool from_negative(long long number, u32 kind, Word* word) {
    *word = (Word)number;
    if (kind == KIND_FLOAT) {
        double near = (double)number;
        *word = (Word)bits_of(near);
        return (long long)near == number;
    }
    return kind == KIND_SIGNED && (WORD_BYTES != 4 || number == (long long)(int)number);
}

__device__ __forceinline__ bool from_signed(long long number, u32 kind, Word* word) {
    return number < 0 ? from_negative(number, kind, word) : from_unsigned((u64)number, kind, word);
}

// A float, as a key that is one; what is no number is no key.
__device__ __forceinline__ bool from_float(double number, Word* word) {
    *word = (Word)bits_of(number);
    return number == number;
}

__device__ __forceinline__ bool key_of(const ForeignKeys& all, u64 at, Word* word) {
    switch (all.lane) {
    case LANE_U8: return from_unsigned(((const u8*)all.keys)[at], all.kind, word);
    case LANE_U16: return from_unsigned(((const u16*)all.keys)[at], all.kind, word);
    case LANE_U32: return from_unsigned(((const u32*)all.keys)[at], all.kind, word);
    case LANE_U64: return from_unsigned(((const u64*)all.keys)[at], all.kind, word);
    case LANE_I8: return from_signed(((const signed char*)all.keys)[at], all.kind, word);
    case LANE_I16: return from_signed(((const short*)all.keys)[at], all.kind, word);
    case LANE_I32: return from_signed(((const int*)all.keys)[at], all.kind, word);
    case LANE_I64: return from_signed(((const long long*)all.keys)[at], all.kind, word);
    case LANE_F32: return from_float((double)((const float*)all.keys)[at], word);
    default: return from_float(((const double*)all.keys)[at], word);
    }
}

// Whole warps stay together, for the ballot.
extern "C" __global__ void foreign_keys(const __grid_constant__ ForeignKeys all) {
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 end = (all.count + WARP - 1) / WARP * WARP;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < end; at += step) {
        bool is_miss = false;
        if (at < all.count) {
            Word word;
            is_miss = !key_of(all, at, &word);
            all.words[at] = word;
        }
        u32 bits = __ballot_sync(FULL, is_miss);
        if (at % WARP == 0) {
            all.misses[at / WARP] = bits;
        }
    }
}

// Presence of 32 keys, of which `at` is the first or a later one.
__device__ __forceinline__ u32 found_of(const ForeignAnswers& all, u64 at) {
    u32 bits = all.present[at / 32];
    return all.misses == nullptr ? bits : bits & ~all.misses[at / 32];
}

extern "C" __global__ void foreign_answers(const __grid_constant__ ForeignAnswers all) {
    u64 step = (u64)gridDim.x * blockDim.x, first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (all.found != nullptr) {
        // Eight bytes at a time.
        for (u64 eight = first; eight * 8 < all.count; eight += step) {
            u64 at = eight * 8, bytes = 0;
            u32 bits = found_of(all, at) >> (at % 32) & 0xFF;
            for (u32 i = 0; i < 8; i++) {
                bytes |= (u64)(bits >> i & 1) << (8 * i);
            }
            if (at + 8 <= all.count) {
                *(u64*)(all.found + at) = bytes;
            } else {
                for (u32 i = 0; at + i < all.count; i++) {
                    all.found[at + i] = (u8)(bytes >> (8 * i));
                }
            }
        }
    }
#if VALUE_BYTES > 0
    if (all.values == nullptr || (all.form & (FORM_WIDE | FORM_REPLACE)) == 0) {
        return;
    }
    for (u64 at = first; at < all.count; at += step) {
        bool is_found = (found_of(all, at) >> (at % 32) & 1) != 0;
        if ((all.form & FORM_WIDE) != 0) {
            u32 narrow = all.narrow[at];
            u64 wide = (all.form & FORM_SIGNED) != 0 ? (u64)(long long)(int)narrow : (u64)narrow;
            ((u64*)all.values)[at] = is_found ? wide : all.missing;
        } else if (!is_found) {
            ((Value*)all.values)[at] = (Value)all.missing;
        }
    }
#endif
}
