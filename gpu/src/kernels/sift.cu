// SELECT in one pass: the tuples of a column pair that a condition takes, in their order.
//
// A block takes a tile. Its threads load tuples by vectors of 16 bytes and keep a bit a tuple; a prefix sum of the bits,
// four vectors of a thread in one word, gives each tuple that is taken its place within the tile. The tile's count is
// told before anything else is done, tuples go to their places in shared memory, a warp looks back for where the tile's
// results begin, and threads write whole lines.
//
// A condition is a range and some bits of key or value, or a key that differs from the one before. Blocks stay: each
// takes the next tile by a ticket and asks for its tuples, and puts off looking back for one tile until the next one's
// count is told. By then the tiles before have told theirs. Tickets are handed out in order, and whoever has the lowest
// tile of which nothing is told waits for nobody, so they cannot lock each other.
//
// A condition may also be a program for a stack of 64-bit words, which all threads run alike: each step for all items
// of a vector, its topmost word in registers, the others in the shared memory that would hold tuples. There a block has
// one tile; places are those of ranks, and threads copy the tuples that the ranks name: from the first cache level, as
// they were just read, or from the second, where a block of some tiles before had them fetched. Few such blocks of a
// multiprocessor are better than many: all wait for the slowest tile before them, and what is under way at a time makes
// it slow.
//
// VALUE_BYTES is that of the column of values.

#define SIFTERS 256u
#define SIFTER_WARPS (SIFTERS / WARP)
// Items of a vector of keys, and vectors of a thread, whose counts are bytes of a word.
#define VECTOR (16u / WORD_BYTES)
#define VECTORS 4u
#define TILE (SIFTERS * VECTOR * VECTORS)
#define COPIES 4u
#define OPS_MAX 64u

// A step of a program; the same as Step in relation/condition.rs.
struct Step {
    u64 operand;
    u32 code;
    u32 load;
};

// The same as Sift in relation/select.rs. `told` has a word a tile, one for the count of all, and one for tickets,
// zeroed. `sides`: how many tiles there is shared memory for, one or two; with one nothing is put off.
struct Sift {
    const Word* keys;
    const Value* values;
    Word* keys_to;
    Value* values_to;
    u64* told;
    u64* failed;
    const u64* words;
    u64 low;
    u64 span;
    u64 mask;
    u64 bits;
    u32 tuples;
    u32 ahead;
    u32 is_aligned;
    u32 uses;
    u32 steps;
    u32 sides;
    Step program[OPS_MAX];
};
static_assert(sizeof(Sift) == BYTES_OF_SIFT, "as in relation/select.rs");

#define USES_KEYS 1u
#define USES_VALUES 2u

template <class T> __device__ __forceinline__ bool is_within(const Sift& sift, T word) {
    return (T)(word - (T)sift.low) <= (T)sift.span && (word & (T)sift.mask) == (T)sift.bits;
}

// Conditions: bits of the items of a vector, of which `at` is the rank of the first.
struct OfKeys {
    __device__ __forceinline__ u32 operator()(const Sift& sift, const Word (&keys)[VECTOR], const Value (&)[VECTOR],
                                              u32) const {
        u32 bits = 0;
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            bits |= (u32)is_within(sift, keys[i]) << i;
        }
        return bits;
    }
};

struct OfValues {
    __device__ __forceinline__ u32 operator()(const Sift& sift, const Word (&)[VECTOR], const Value (&values)[VECTOR],
                                              u32) const {
        u32 bits = 0;
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            bits |= (u32)is_within(sift, values[i]) << i;
        }
        return bits;
    }
};

// The first tuple of each key.
struct OfFirsts {
    __device__ __forceinline__ u32 operator()(const Sift& sift, const Word (&keys)[VECTOR], const Value (&)[VECTOR],
                                              u32 at) const {
        u32 before = min(at, sift.tuples) - 1;
        u32 bits = at == 0 || __ldg(sift.keys + before) != keys[0];
#pragma unroll
        for (u32 i = 1; i < VECTOR; i++) {
            bits |= (u32)(keys[i] != keys[i - 1]) << i;
        }
        return bits;
    }
};

// Steps; the same as in relation/condition.rs.
#define STEP_LOAD 0u
#define STEP_PUSH 1u
#define STEP_NOT 2u
#define STEP_AMONG 3u
#define STEP_ADD 4u
#define STEP_SUBTRACT 5u
#define STEP_MULTIPLY 6u
#define STEP_ADD_SIGNED 7u
#define STEP_SUBTRACT_SIGNED 8u
#define STEP_MULTIPLY_SIGNED 9u
#define STEP_ADD_UNSIGNED 10u
#define STEP_SUBTRACT_UNSIGNED 11u
#define STEP_MULTIPLY_UNSIGNED 12u
#define STEP_DIVIDE_SIGNED 13u
#define STEP_DIVIDE_UNSIGNED 14u
#define STEP_REMAINDER_SIGNED 15u
#define STEP_REMAINDER_UNSIGNED 16u
#define STEP_AND 17u
#define STEP_OR 18u
#define STEP_XOR 19u
#define STEP_LEFT 20u
#define STEP_RIGHT_SIGNED 21u
#define STEP_RIGHT_UNSIGNED 22u
#define STEP_EQUAL 23u
#define STEP_BELOW_SIGNED 24u
#define STEP_BELOW_UNSIGNED 25u
#define STEP_AT_MOST_UNSIGNED 26u
// The operand is the right word, and the stack's topmost one the left.
#define STEP_IMMEDIATE 0x100u

#define SIDE_KEY 0u
#define SIDE_VALUE 1u

// What a step makes of two words; sets `is_wrong` where a checked one has no result.
__device__ __forceinline__ u64 of_two(u32 code, u64 left, u64 right, bool& is_wrong) {
    u64 sum = left + right, rest = left - right, product = left * right;
    const u64 least = 1ull << 63;
    switch (code) {
    case STEP_ADD: return sum;
    case STEP_SUBTRACT: return rest;
    case STEP_MULTIPLY: return product;
    case STEP_ADD_SIGNED: is_wrong = (((left ^ sum) & (right ^ sum)) >> 63) != 0; return sum;
    case STEP_SUBTRACT_SIGNED: is_wrong = (((left ^ right) & (left ^ rest)) >> 63) != 0; return rest;
    case STEP_MULTIPLY_SIGNED: {
        u64 high = __umul64hi(left, right) - (left >= least ? right : 0) - (right >= least ? left : 0);
        is_wrong = high != 0 - (product >> 63);
        return product;
    }
    case STEP_ADD_UNSIGNED: is_wrong = sum < left; return sum;
    case STEP_SUBTRACT_UNSIGNED: is_wrong = left < right; return rest;
    case STEP_MULTIPLY_UNSIGNED: is_wrong = __umul64hi(left, right) != 0; return product;
    case STEP_DIVIDE_SIGNED:
    case STEP_DIVIDE_UNSIGNED:
    case STEP_REMAINDER_SIGNED:
    case STEP_REMAINDER_UNSIGNED: {
        bool is_signed = code == STEP_DIVIDE_SIGNED || code == STEP_REMAINDER_SIGNED;
        bool is_remainder = code == STEP_REMAINDER_SIGNED || code == STEP_REMAINDER_UNSIGNED;
        bool flips_left = is_signed && left >= least, flips_right = is_signed && right >= least;
        u64 of = flips_left ? 0 - left : left, by = flips_right ? 0 - right : right;
        // The least number by -1 is one too many.
        is_wrong = by == 0 || (is_signed && left == least && by == 1 && flips_right && !is_remainder);
        by = by == 0 ? 1 : by;
        u64 quotient = of / by, left_over = of - quotient * by;
        u64 result = is_remainder ? left_over : quotient;
        return (is_remainder ? flips_left : flips_left != flips_right) ? 0 - result : result;
    }
    case STEP_AND: return left & right;
    case STEP_OR: return left | right;
    case STEP_XOR: return left ^ right;
    case STEP_LEFT: return left << (right & 63);
    case STEP_RIGHT_SIGNED: return (u64)((long long)left >> (right & 63));
    case STEP_RIGHT_UNSIGNED: return left >> (right & 63);
    case STEP_EQUAL: return left == right;
    case STEP_BELOW_SIGNED: return (left ^ least) < (right ^ least);
    case STEP_BELOW_UNSIGNED: return left < right;
    default: return left <= right;
    }
}

// Whether a word stands in a list that ascends.
__device__ __forceinline__ bool is_among(const u64* words, u32 length, u64 word) {
    u32 begin = 0, end = length;
    while (begin < end) {
        u32 middle = begin + (end - begin) / 2;
        if (__ldg(words + middle) < word) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < length && __ldg(words + begin) == word;
}

// A program; `stack` has VECTOR words a thread for each word on the stack but the topmost.
struct OfProgram {
    u64* stack;

    __device__ __forceinline__ u64& below(u32 depth, u32 item) const {
        return stack[((depth - 2) * VECTOR + item) * SIFTERS + threadIdx.x];
    }

    __device__ __forceinline__ u32 operator()(const Sift& sift, const Word (&keys)[VECTOR],
                                              const Value (&values)[VECTOR], u32 at) const {
        u64 top[VECTOR] = {};
        u32 depth = 0, bits = 0, wrong = 0;
        for (u32 number = 0; number < sift.steps; number++) {
            u64 operand = sift.program[number].operand;
            u32 code = sift.program[number].code & 0xFF, load = sift.program[number].load;
            bool is_immediate = (sift.program[number].code & STEP_IMMEDIATE) != 0;
            if (code <= STEP_PUSH) {
                depth++;
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    if (depth > 1) {
                        below(depth, i) = top[i];
                    }
                    u64 word = operand;
                    if (code == STEP_LOAD) {
                        u32 side = load & 3, shift = load >> 8 & 63, unused = load >> 16 & 63;
                        // A rank of an item past the last one counts for nothing, and must not be wrong.
                        u64 rank = min(at + i, sift.tuples - 1);
                        word = side == SIDE_KEY ? (u64)keys[i] : side == SIDE_VALUE ? (u64)values[i] : rank;
                        word = (word ^ operand) >> shift << unused;
                        word = (load >> 24) != 0 ? (u64)((long long)word >> unused) : word >> unused;
                    }
                    top[i] = word;
                }
            } else if (code == STEP_NOT) {
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    top[i] ^= 1;
                }
            } else if (code == STEP_AMONG) {
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    top[i] = is_among(sift.words + (u32)operand, (u32)(operand >> 32), top[i]);
                }
            } else {
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    u64 left = is_immediate ? top[i] : below(depth, i);
                    bool is_wrong = false;
                    top[i] = of_two(code, left, is_immediate ? operand : top[i], is_wrong);
                    wrong |= (u32)is_wrong << i;
                }
                depth -= !is_immediate;
            }
        }
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            bits |= (u32)(top[i] == 1) << i;
        }
        if (wrong != 0) {
            atomicMin(sift.failed, (u64)min(at + (u32)__ffs((int)wrong) - 1, sift.tuples - 1));
        }
        return bits;
    }
};

__device__ __forceinline__ u32 bytes_of(u32 word) {
    return (word & 0xFF) + (word >> 8 & 0xFF) + (word >> 16 & 0xFF) + (word >> 24);
}

// Of a vector's items those that are there and taken.
__device__ __forceinline__ u32 taken_of(u32 taken, u32 at, u32 tiled) {
    u32 there = at < tiled ? tiled - at : 0;
    return taken & (there < VECTOR ? (1u << there) - 1 : (1u << VECTOR) - 1);
}

// Places within the warp, four vectors at a time: what the lanes before have of each, and all.
__device__ __forceinline__ u32 scan_packed(u32 packed, u32& sums) {
    const u32 lane = threadIdx.x % WARP;
    u32 scanned = packed;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u32 other = __shfl_up_sync(FULL, scanned, step);
        scanned += lane >= step ? other : 0;
    }
    sums = __shfl_sync(FULL, scanned, WARP - 1);
    return scanned - packed;
}

// Sifts tiles, as many as it gets: the whole of a kernel.
template <class Condition> __device__ __forceinline__ void sift_tiles(const Sift& sift, const Condition& condition) {
    // Keys of each side, then values of each.
    DYNAMIC_SHARED(u64, staged);
    __shared__ u32 counts[SIFTER_WARPS];
    __shared__ u64 start;
    __shared__ u32 ticket;
    const u32 tiles = (sift.tuples - 1) / TILE + 1;
    u64* const tickets = sift.told + tiles + 1;
    const u32 me = threadIdx.x, lane = me % WARP, warp = me / WARP, sides = sift.sides;
    const u32 first = warp * (WARP * VECTOR * VECTORS) + lane * VECTOR;
    Word* const staged_keys = (Word*)staged;
#if VALUE_BYTES > 0
    Value* const staged_values = (Value*)(staged_keys + sides * TILE);
#endif
    if (me == 0) {
        ticket = (u32)atomicAdd(tickets, 1ull);
    }
    __syncthreads();
    u32 tile = ticket, begin = 0, tiled = 0;
    __syncthreads();
    Word keys[VECTORS][VECTOR];
    Value values[VECTORS][VECTOR];
    auto open_tile = [&]() {
        begin = tile * TILE, tiled = min(sift.tuples - begin, TILE);
        const bool is_vectored = tiled == TILE && sift.is_aligned != 0;
#pragma unroll
        for (u32 i = 0; i < VECTORS; i++) {
            u32 at = first + i * (WARP * VECTOR);
            if (is_vectored) {
                load_vector(sift.keys + begin + at, keys[i]);
#if VALUE_BYTES > 0
                load_vector(sift.values + begin + at, values[i]);
#endif
            } else {
                load_some(sift.keys + begin, at, tiled, keys[i]);
#if VALUE_BYTES > 0
                load_some(sift.values + begin, at, tiled, values[i]);
#endif
            }
        }
    };
    if (tile < tiles) {
        open_tile();
    }

    // What is put off: a tile, its count, and the side where its tuples are.
    bool is_put_off = false;
    u32 put_off = 0, put_off_total = 0, put_off_side = 0;
    for (u32 side = 0; tile < tiles || is_put_off; side = sides - 1 - side) {
        const bool is_there = tile < tiles;
        const u32 now = tile;
        u32 bits = 0, packed = 0, sums = 0, scanned = 0;
        if (is_there) {
            if (me == 0) {
                ticket = (u32)atomicAdd(tickets, 1ull);
            }
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) {
                u32 at = first + i * (WARP * VECTOR);
                u32 taken = taken_of(condition(sift, keys[i], values[i], begin + at), at, tiled);
                bits |= taken << i * VECTOR;
                packed |= (u32)__popc(taken) << i * 8;
            }
            scanned = scan_packed(packed, sums);
            if (lane == 0) {
                counts[warp] = bytes_of(sums);
            }
        }
        __syncthreads();
        u32 total = 0;
        if (is_there) {
            u32 place = side * TILE;
#pragma unroll
            for (u32 i = 0; i < SIFTER_WARPS; i++) {
                place += i < warp ? counts[i] : 0;
                total += counts[i];
            }
            if (me == 0) {
                tell(sift.told + now, (now == 0 ? SAID_ALL : SAID_OWN) | total);
            }
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) {
                u32 at = place + (scanned >> i * 8 & 0xFF);
                place += sums >> i * 8 & 0xFF;
#pragma unroll
                for (u32 j = 0; j < VECTOR; j++) {
                    if ((bits >> (i * VECTOR + j) & 1) != 0) {
                        staged_keys[at] = keys[i][j];
#if VALUE_BYTES > 0
                        staged_values[at] = values[i][j];
#endif
                        at++;
                    }
                }
            }
            tile = ticket;
            if (tile < tiles) {
                open_tile();
            }
        }
        if (sides == 1) {
            is_put_off = true, put_off = now, put_off_total = total;
        }
        if (is_put_off && warp == 0) {
            u64 before = look_back(sift.told, put_off);
            if (lane == 0) {
                start = before;
                if (put_off > 0) {
                    tell(sift.told + put_off, SAID_ALL | (before + put_off_total));
                }
                if (put_off + 1 == tiles) {
                    sift.told[tiles] = before + put_off_total;
                }
            }
        }
        __syncthreads();
        if (is_put_off) {
            // Results from a whole line on; those before it by the threads before.
            const u64 to = start;
            const u32 from = put_off_side * TILE, skipped = (u32)to & (WARP - 1);
            for (u32 base = 0; base < put_off_total + skipped; base += SIFTERS) {
                // Wraps below the first one.
                u32 at = base + me - skipped;
                if (at < put_off_total) {
                    __stcs(sift.keys_to + to + at, staged_keys[from + at]);
#if VALUE_BYTES > 0
                    __stcs(sift.values_to + to + at, staged_values[from + at]);
#endif
                }
            }
        }
        is_put_off = is_there && sides == 2;
        put_off = now, put_off_total = total, put_off_side = side;
    }
}

// Sifts a tile by a program: the whole of a kernel.
__device__ __forceinline__ void sift_tile(const Sift& sift, const OfProgram& condition) {
    __shared__ u16 places[TILE];
    __shared__ u32 counts[SIFTER_WARPS];
    __shared__ u64 start;
    const u32 tile = blockIdx.x, begin = tile * TILE, tiled = min(sift.tuples - begin, TILE);
    const u32 me = threadIdx.x, lane = me % WARP, warp = me / WARP;
    const bool is_vectored = tiled == TILE && sift.is_aligned != 0;
    if (me == 0 && sift.is_aligned != 0) {
        u64 next = (u64)tile + sift.ahead;
        if ((next + 1) * TILE <= sift.tuples) {
            fetch_ahead(sift.keys + next * TILE, TILE * WORD_BYTES);
#if VALUE_BYTES > 0
            fetch_ahead(sift.values + next * TILE, TILE * VALUE_BYTES);
#endif
        }
    }

    // A bit a tuple, and the counts of each vector.
    const Word* keys_from = sift.keys + begin;
    const u32 first = warp * (WARP * VECTOR * VECTORS) + lane * VECTOR;
    u32 bits = 0, packed = 0;
#pragma unroll 1
    for (u32 i = 0; i < VECTORS; i++) {
        Word keys[VECTOR] = {};
        Value values[VECTOR] = {};
        u32 at = first + i * (WARP * VECTOR);
        if ((sift.uses & USES_KEYS) != 0) {
            if (is_vectored) {
                load_vector(keys_from + at, keys);
            } else {
                load_some(keys_from, at, tiled, keys);
            }
        }
#if VALUE_BYTES > 0
        if ((sift.uses & USES_VALUES) != 0) {
            if (is_vectored) {
                load_vector(sift.values + begin + at, values);
            } else {
                load_some(sift.values + begin, at, tiled, values);
            }
        }
#endif
        u32 taken = taken_of(condition(sift, keys, values, begin + at), at, tiled);
        bits |= taken << i * VECTOR;
        packed |= (u32)__popc(taken) << i * 8;
    }

    u32 sums, scanned = scan_packed(packed, sums);
    if (lane == 0) {
        counts[warp] = bytes_of(sums);
    }
    __syncthreads();
    u32 place = 0, total = 0;
#pragma unroll
    for (u32 i = 0; i < SIFTER_WARPS; i++) {
        place += i < warp ? counts[i] : 0;
        total += counts[i];
    }
    if (me == 0) {
        tell(sift.told + tile, (tile == 0 ? SAID_ALL : SAID_OWN) | total);
    }
#pragma unroll
    for (u32 i = 0; i < VECTORS; i++) {
        u32 at = place + (scanned >> i * 8 & 0xFF);
        place += sums >> i * 8 & 0xFF;
#pragma unroll
        for (u32 j = 0; j < VECTOR; j++) {
            if ((bits >> (i * VECTOR + j) & 1) != 0) {
                places[at] = (u16)(first + i * (WARP * VECTOR) + j);
                at++;
            }
        }
    }
    if (warp == 0) {
        u64 before = look_back(sift.told, tile);
        if (lane == 0) {
            start = before;
            if (tile > 0) {
                tell(sift.told + tile, SAID_ALL | (before + total));
            }
            if (tile + 1 == gridDim.x) {
                sift.told[tile + 1] = before + total;
            }
        }
    }
    __syncthreads();

    // Results from a whole line on; those before it by the threads before.
    u64 to = start;
    Word* keys_to = sift.keys_to + to;
    // Wraps below the first one.
    const u32 skipped = (u32)to & (WARP - 1), from = me - skipped;
    for (u32 base = 0; base < total + skipped; base += SIFTERS * COPIES) {
        Word keys[COPIES];
#if VALUE_BYTES > 0
        Value values[COPIES];
#endif
#pragma unroll
        for (u32 j = 0; j < COPIES; j++) {
            u32 at = from + base + j * SIFTERS;
            if (at < total) {
                u32 rank = places[at];
                keys[j] = __ldg(keys_from + rank);
#if VALUE_BYTES > 0
                values[j] = __ldg(sift.values + begin + rank);
#endif
            }
        }
#pragma unroll
        for (u32 j = 0; j < COPIES; j++) {
            u32 at = from + base + j * SIFTERS;
            if (at < total) {
                __stcs(keys_to + at, keys[j]);
#if VALUE_BYTES > 0
                __stcs(sift.values_to + to + at, values[j]);
#endif
            }
        }
    }
}

// Blocks that stay, of SIFTERS threads. Shared memory: tuples of a tile, once or twice.
extern "C" __global__ void __launch_bounds__(SIFTERS, 3) sift_keys(const __grid_constant__ Sift sift) {
    sift_tiles(sift, OfKeys());
}

extern "C" __global__ void __launch_bounds__(SIFTERS, 3) sift_firsts(const __grid_constant__ Sift sift) {
    sift_tiles(sift, OfFirsts());
}

#if VALUE_BYTES > 0
extern "C" __global__ void __launch_bounds__(SIFTERS, 3) sift_values(const __grid_constant__ Sift sift) {
    sift_tiles(sift, OfValues());
}
#endif

// A block a tile, of SIFTERS threads. Shared memory: a stack.
extern "C" __global__ void __launch_bounds__(SIFTERS, 4) sift_program(const __grid_constant__ Sift sift) {
    DYNAMIC_SHARED(u64, stack);
    sift_tile(sift, OfProgram{stack});
}
