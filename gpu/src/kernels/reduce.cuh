// What both ways of reducing share: arguments, operations, and what tiles leave open.
//
// A tuple whose key differs from the next one is a *tail*; a run's result is written where its tail is. What the run
// that is open at a tile's begin has so far is looked back for in words of the tiles' own: a tile with a tail knows what
// it leaves open without asking anyone; one without passes on, and is added up by those behind it. Each half of that
// number stands in a word with its two bits, so that a word that is there is right.
//
// VALUE_BYTES is that of the column of values; with 0 tuples are counted.

// The same as Reduce in relation/reduce.rs. `told` as in sift.cu; `carried` has two words a tile, zeroed.
struct Reduce {
    const Word* keys;
    const Value* values;
    Word* keys_to;
    void* values_to;
    u64* told;
    u64* carried;
    u64* failed;
    // What is done to a value before, and to a result after: see `encoded`.
    u64 flip;
    u32 tuples;
    u32 ahead;
    u32 is_aligned;
    u32 kind;
    u32 shift;
    u32 to_bytes;
};
static_assert(sizeof(Reduce) == BYTES_OF_REDUCE, "as in relation/reduce.rs");

// Kinds of values.
#define KIND_FULL 0u
#define KIND_EXTENDED 1u
#define KIND_LOW_HALF 2u
#define KIND_ORDERED_FLOAT 3u

#define NOBODY 0xFFFFFFFFu

// Sums modulo 2^64. Signed words of 4 bytes are extended; of words of 8 bytes it may be the low or the high half.
struct Sum {
    enum : u64 { NEUTRAL = 0 };
    enum : u32 { IS_ORDERED = 0, IS_CHECKED = 0 };
    __device__ __forceinline__ u64 of(const Reduce& reduce, Value value) const {
#if VALUE_BYTES == 8
        return reduce.kind == KIND_LOW_HALF ? (u64)(u32)value : (u64)((long long)value >> reduce.shift);
#elif VALUE_BYTES == 4
        return reduce.kind == KIND_EXTENDED ? (u64)(long long)(int)value : (u64)value;
#else
        return 1;
#endif
    }
    __device__ __forceinline__ u64 back(const Reduce&, u64 sum) const { return sum; }
    __device__ __forceinline__ u64 operator()(u64 left, u64 right) { return left + right; }
    __device__ __forceinline__ void at(u32) {}
    __device__ __forceinline__ void end(const Reduce&) {}
};

#if VALUE_BYTES == 8
// Sums of words of 8 bytes: remembers the rank where one did not fit, of signed ones also where a part did not.
struct CheckedSum {
    enum : u64 { NEUTRAL = 0 };
    enum : u32 { IS_ORDERED = 0, IS_CHECKED = 1 };
    u32 rank;
    u32 wrong;
    bool is_signed;
    __device__ __forceinline__ u64 of(const Reduce&, Value value) const { return value; }
    __device__ __forceinline__ u64 back(const Reduce&, u64 sum) const { return sum; }
    __device__ __forceinline__ u64 operator()(u64 left, u64 right) {
        u64 sum = left + right;
        bool is_wrong = is_signed ? (((left ^ sum) & (right ^ sum)) >> 63) != 0 : sum < left;
        wrong = is_wrong ? min(wrong, rank) : wrong;
        return sum;
    }
    __device__ __forceinline__ void at(u32 place) { rank = place; }
    __device__ __forceinline__ void end(const Reduce& reduce) {
        if (wrong != NOBODY) {
            atomicMin(reduce.failed, (u64)wrong);
        }
    }
};
#endif

#if VALUE_BYTES > 0
struct FloatSum {
    enum : u64 { NEUTRAL = 1ull << 63 };
    enum : u32 { IS_ORDERED = 1, IS_CHECKED = 0 };
    __device__ __forceinline__ u64 of(const Reduce&, Value value) const {
#if VALUE_BYTES == 8
        return value;
#else
        return (u64)__double_as_longlong((double)__uint_as_float(value));
#endif
    }
    __device__ __forceinline__ u64 back(const Reduce&, u64 sum) const { return sum; }
    __device__ __forceinline__ u64 operator()(u64 left, u64 right) {
        double sum = __longlong_as_double((long long)left) + __longlong_as_double((long long)right);
        return (u64)__double_as_longlong(sum);
    }
    __device__ __forceinline__ void at(u32) {}
    __device__ __forceinline__ void end(const Reduce&) {}
};

// The least of words that are made so that their unsigned order is that of the values, or its reverse.
struct Least {
    enum : u64 { NEUTRAL = ~0ull };
    enum : u32 { IS_ORDERED = 0, IS_CHECKED = 0 };
    __device__ __forceinline__ u64 of(const Reduce& reduce, Value value) const {
        const u32 top = 8 * VALUE_BYTES - 1;
        if (reduce.kind == KIND_ORDERED_FLOAT) {
            value ^= (value >> top) != 0 ? (Value)~(Value)0 : (Value)1 << top;
        }
        return (u64)(Value)(value ^ (Value)reduce.flip);
    }
    __device__ __forceinline__ u64 back(const Reduce& reduce, u64 least) const {
        const u32 top = 8 * VALUE_BYTES - 1;
        Value value = (Value)least ^ (Value)reduce.flip;
        if (reduce.kind == KIND_ORDERED_FLOAT) {
            value ^= (value >> top) != 0 ? (Value)1 << top : (Value)~(Value)0;
        }
        return value;
    }
    __device__ __forceinline__ u64 operator()(u64 left, u64 right) { return left < right ? left : right; }
    __device__ __forceinline__ void at(u32) {}
    __device__ __forceinline__ void end(const Reduce&) {}
};
#endif

// What a tile leaves open: two words, each with a half.
__device__ __forceinline__ void tell_carry(u64* carried, u32 tile, u64 said, u64 carry) {
    tell(carried + 2 * (u64)tile, said | (u32)carry);
    tell(carried + 2 * (u64)tile + 1, said | carry >> 32);
}

// Hears both words; what they say, or nothing yet if they say different things.
__device__ __forceinline__ u64 hear_carry(const u64* carried, u32 tile, u64& carry) {
    const u64* from = carried + 2 * (u64)tile;
#ifdef PLEACH_EMULATED
    u64 low = hear(from), high = hear(from + 1);
#else
    u64 low, high;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(from) : "memory");
#endif
    carry = high << 32 | (u32)low;
    u64 said = low & ~SAID_NUMBER;
    return said == (high & ~SAID_NUMBER) ? said : 0;
}

// What the tiles before this one leave open. A whole warp calls it; tile 0 does not.
template <class Op> __device__ __forceinline__ u64 carry_back(const u64* carried, u32 tile, Op& op) {
    u32 lane = threadIdx.x % WARP, end = tile, lanes;
    u64 sum = Op::NEUTRAL;
    for (bool is_whole = false; !is_whole; end -= min(end, WARP)) {
        u64 carry = 0, said = lane < end ? hear_carry(carried, end - 1 - lane, carry) : SAID_ALL;
        while (!settle(said, lanes, is_whole)) {
            if (said == 0) {
                said = hear_carry(carried, end - 1 - lane, carry);
            }
        }
        carry = (lanes >> lane & 1) != 0 ? carry : (u64)Op::NEUTRAL;
        if constexpr (Op::IS_ORDERED == 0) {
            sum = op(carry, sum);
        } else if (is_whole) {
            // From the tile that knows all on.
            end -= (u32)__popc(lanes) - 1;
            break;
        }
    }
    if constexpr (Op::IS_ORDERED == 0) {
#pragma unroll
        for (u32 step = WARP / 2; step > 0; step /= 2) {
            sum = op(sum, (u64)__shfl_xor_sync(FULL, sum, step));
        }
    } else {
        // Tile end - 1 knows all; some behind it may by now.
        for (u32 at = end - 1; at < tile; at += WARP) {
            u64 carry = 0, said = 0;
            bool is_there = at + lane < tile;
            while (__any_sync(FULL, is_there && said == 0)) {
                if (is_there && said == 0) {
                    said = hear_carry(carried, at + lane, carry);
                }
            }
            u32 all = __ballot_sync(FULL, said >= SAID_ALL);
            u32 from = all == 0 ? 0 : 31 - (u32)__clz((int)all);
            for (u32 i = from; i < min(tile - at, WARP); i++) {
                u64 other = __shfl_sync(FULL, carry, (int)i);
                sum = i == from && all != 0 ? other : op(sum, other);
            }
        }
    }
    return sum;
}
