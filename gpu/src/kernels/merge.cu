// Joins and set operations of two sorted relations in one pass.
//
// The merge of both, left before right where keys are equal, is cut into tiles of as many tuples each (merge path), so
// that no skew makes one longer. `merge_cuts` finds the cuts; a block of `merge_one` or `merge_pairs` takes a tile: its
// keys go to shared memory, each thread merges its part, and notes in bits which tuples are left ones and which have a
// partner; these bits say which tuples come out. A left tuple's partner is the right one that is next when it is
// taken; a right tuple's is the left one that was taken last. So one key more on each side of the tile is all that is
// needed to decide, also where a run of equal keys is longer than many tiles. The block tells its count, places of
// what comes out are compacted in shared memory, and where they go is added up from what the tiles before told
// (decoupled look-back); then keys, values or ranks are written in order.
//
// What limits it is the wait for the slowest tile before, and how many tiles shared memory and registers of a
// multiprocessor hold meanwhile: keys of a tile some hundred blocks later are asked for early (AHEAD), the look-back
// reads 64 tiles at a time; while it does, the other warps load the first values, and one thread alone finds where a
// tile lies.
//
// Where a relation may have equal keys and that matters, the general loop asks more: with rule SET only first tuples of
// keys count; with MULTISET a tuple's number among its equals is compared with how many the other side has.
//
// Besides WORD_BYTES: ITEMS, tuples of a thread; MERGE_BLOCKS and PAIR_BLOCKS, blocks that a multiprocessor should
// hold; AHEAD.

#define MERGERS 256u
#define MERGER_WARPS (MERGERS / WARP)
#define MERGE_TILE (MERGERS * ITEMS)
#define CUTTERS 128u
// How far from the straight line cuts inside a tile are looked for first.
#define NEAR 64u
// Words of a vector of 16 bytes.
#define VECTOR (16u / WORD_BYTES)
#define BUFFER_VECTORS ((MERGE_TILE + 16u) / VECTOR)

#define RULE_ALL 0u
#define RULE_SET 1u
#define RULE_MULTISET 2u

// What comes out for a side: nothing, its values of 4 or 8 bytes, its ranks of 4 or 8 bytes.
#define OUT_NONE 0u
#define OUT_VALUE4 4u
#define OUT_VALUE8 8u
#define OUT_RANK8 108u

// A place in shared memory that is none. Places are addresses where keys are compared by instructions of our own, else
// numbers of words.
#define NOWHERE 0xFFFFu

// The same as Merge in relation/merge.rs. `emit` has a bit for each kind of tuple: 1 left alone, 2 left with partner,
// 4 right alone, 8 right with partner.
struct Merge {
    const Word* keys[2];
    const void* values[2];
    u64 counts[2];
    Word* keys_to;
    void* values_to[2];
    u8* sides_to;
    u64* cuts;
    u64* told;
    u64* found;
    u64 capacity;
    u32 tiles;
    u32 emit;
    u32 rule;
    u32 general;
    u32 kinds[2];
    // How many results of a tile have room in shared memory where they are pairs.
    u32 places;
    u32 unused;
};
static_assert(sizeof(Merge) == BYTES_OF_MERGE, "as in relation/merge.rs");

#ifdef PLEACH_EMULATED
#define BULK_COPIES 0
#else
#define BULK_COPIES (__CUDA_ARCH__ >= 900)
#endif

#if BULK_COPIES
__device__ __forceinline__ u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

// A gate opens when all bytes that are expected have come.
__device__ __forceinline__ void gate_make(u64* gate) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(gate)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ __forceinline__ void gate_expect(u64* gate, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(gate)), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void gate_wait(u64* gate) {
    asm volatile(
        "{\n.reg .pred open;\nagain:\nmbarrier.try_wait.parity.shared.b64 open, [%0], 0;\n@open bra done;\n"
        "bra again;\ndone:\n}" ::"r"(shared_address(gate))
        : "memory");
}
// What is copied here is not read again: it may leave the cache first.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, u32 bytes, u64* gate) {
    asm volatile(
        "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], policy;"
        "\n}" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(gate))
        : "memory");
}
#endif

// Asks for `count` elements of `bytes` bytes from `at` on, whole vectors that lie inside.
__device__ __forceinline__ void ask_for(const void* base, u64 at, u32 count, u32 bytes) {
    u32 whole = count * bytes & ~15u;
    if (whole > 0) {
        fetch_ahead((const void*)(((u64)base + at * bytes) & ~15ull), whole);
    }
}

__device__ __forceinline__ Word load_key(const Word* from) {
#if WORD_BYTES == 16
    const u64* halves = (const u64*)from;
    return (Word)__ldg(halves + 1) << 64 | __ldg(halves);
#else
    return __ldg(from);
#endif
}

__device__ __forceinline__ void store_key(Word* to, Word key) {
#if WORD_BYTES == 16
    *to = key;
#else
    __stcs(to, key);
#endif
}

// Whether the merge takes left tuple `left` before it has taken `diagonal` tuples.
__device__ __forceinline__ bool left_first(const Merge& merge, u64 left, u64 diagonal) {
    return load_key(merge.keys[0] + left) <= load_key(merge.keys[1] + (diagonal - 1 - left));
}

// cuts[t]: how many of the first t tiles' tuples are left ones. A block makes CUTTERS cuts: two warps find where its
// range begins and ends, 32 places a step; then each thread guesses between these, goes on by growing steps until its
// cut is passed, and halves. Blocks of CUTTERS threads, a thread a tile and one more.
extern "C" __global__ void __launch_bounds__(CUTTERS) merge_cuts(const __grid_constant__ Merge merge) {
    __shared__ u64 ends[2];
    u64 lefts = merge.counts[0], rights = merge.counts[1], both = lefts + rights;
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 first = (u64)blockIdx.x * CUTTERS * MERGE_TILE;
    u64 last = min(first + (u64)CUTTERS * MERGE_TILE, both);
    if (warp < 2) {
        u64 diagonal = warp == 0 ? first : last;
        u64 low = diagonal > rights ? diagonal - rights : 0, high = min(diagonal, lefts);
        while (low < high) {
            u64 span = high - low;
            u64 place = low + span * (lane + 1) / 33;
            u32 passed = __popc(__ballot_sync(FULL, left_first(merge, place, diagonal)));
            high = passed == 32 ? high : low + span * (passed + 1) / 33;
            low = passed == 0 ? low : low + span * passed / 33 + 1;
        }
        if (lane == 0) {
            ends[warp] = low;
        }
    }
    __syncthreads();
    u32 tile = blockIdx.x * CUTTERS + threadIdx.x;
    if (tile > merge.tiles) {
        return;
    }
    u64 diagonal = min((u64)tile * MERGE_TILE, both);
    u64 low = max(ends[0], diagonal > rights ? diagonal - rights : 0), high = min(ends[1], min(diagonal, lefts));
    u64 guess = ends[0] + (diagonal - first) * (ends[1] - ends[0]) / (last - first + 1);
    guess = max(guess, low);
    u64 step = 64;
    if (guess < high) {
        if (left_first(merge, guess, diagonal)) {
            low = guess + 1;
            while (low + step < high && left_first(merge, low + step, diagonal)) {
                low += step + 1;
                step *= 4;
            }
            high = min(high, low + step);
        } else {
            high = guess;
            while (low + step < high && !left_first(merge, high - step, diagonal)) {
                high -= step;
                step *= 4;
            }
            low = low + step < high ? high - step : low;
        }
    }
    while (low < high) {
        u64 middle = (low + high) / 2;
        if (left_first(merge, middle, diagonal)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    merge.cuts[tile] = low;
}

// A tile: its tuples of both relations, and where they lie in shared memory. Before the first key and behind the last
// one of each side lies one more, where the relation has it.
struct Tile {
    u64 left_from, right_from;
    u32 lefts, rights;
    u32 left_at, right_at;
    bool more_left, more_right;
};

// Keys of a tile that a block will take soon; values only of the one that this block takes, since those that come sooner
// are gone again when they are read.
__device__ __forceinline__ void ask_for_keys(const Merge& merge, u32 number) {
    u64 diagonal = (u64)number * MERGE_TILE, both = merge.counts[0] + merge.counts[1];
    u64 left = __ldg(merge.cuts + number), left_to = __ldg(merge.cuts + number + 1);
    u32 lefts = (u32)(left_to - left), rights = (u32)(min(diagonal + MERGE_TILE, both) - diagonal) - lefts;
    ask_for(merge.keys[0], left, lefts, WORD_BYTES);
    ask_for(merge.keys[1], diagonal - left, rights, WORD_BYTES);
}
__device__ __forceinline__ void ask_for_values(const Merge& merge, const Tile& tile) {
    if (merge.kinds[0] == OUT_VALUE4 || merge.kinds[0] == OUT_VALUE8) {
        ask_for(merge.values[0], tile.left_from, tile.lefts, merge.kinds[0]);
    }
    if (merge.kinds[1] == OUT_VALUE4 || merge.kinds[1] == OUT_VALUE8) {
        ask_for(merge.values[1], tile.right_from, tile.rights, merge.kinds[1]);
    }
}

// What a tile's loader knows: where its tuples lie, and which vectors hold them and their neighbours.
struct Load {
    Tile tile;
    u64 left_vector, right_vector;
    u32 left_vectors, right_vectors;
};

__device__ __forceinline__ Load find_tile(const Merge& merge, u32 number) {
    u64 lefts = merge.counts[0], rights = merge.counts[1], both = lefts + rights;
    u64 diagonal = (u64)number * MERGE_TILE, end = min(diagonal + MERGE_TILE, both);
    Load load;
    Tile& tile = load.tile;
    tile.left_from = __ldg(merge.cuts + number);
    u64 left_to = __ldg(merge.cuts + number + 1);
    u64 right_to = end - left_to;
    tile.right_from = diagonal - tile.left_from;
    tile.lefts = (u32)(left_to - tile.left_from);
    tile.rights = (u32)(right_to - tile.right_from);
    tile.more_left = left_to < lefts;
    tile.more_right = right_to < rights;
    load.left_vector = (tile.left_from > 0 ? tile.left_from - 1 : 0) / VECTOR;
    load.right_vector = (tile.right_from > 0 ? tile.right_from - 1 : 0) / VECTOR;
    load.left_vectors = (u32)(min(left_to / VECTOR + 1, (lefts + VECTOR - 1) / VECTOR) - load.left_vector);
    load.right_vectors = (u32)(min(right_to / VECTOR + 1, (rights + VECTOR - 1) / VECTOR) - load.right_vector);
    tile.left_at = (u32)(tile.left_from - load.left_vector * VECTOR);
    tile.right_at = (u32)(tile.right_from - load.right_vector * VECTOR) + load.left_vectors * VECTOR;
    return load;
}

// Of `vectors` vectors of a relation from `first` on those that have all their words.
__device__ __forceinline__ u32 whole_vectors(u64 tuples, u64 first, u32 vectors) {
    return (u32)min((u64)vectors, tuples / VECTOR - first);
}

// The words of the last vector of a relation.
__device__ __forceinline__ void copy_last(const Word* keys, u64 tuples, u64 vector, uint4* to) {
    for (u64 at = vector * VECTOR; at < tuples; at++) {
        ((Word*)to)[at - vector * VECTOR] = load_key(keys + at);
    }
}

// Loads the keys of a tile; all threads.
__device__ __forceinline__ void load_tile(const Merge& merge, u32 number, uint4* shared, u64* gate, Tile* told) {
#if BULK_COPIES
    if (threadIdx.x == 0) {
        gate_make(gate);
        Load load = find_tile(merge, number);
        *told = load.tile;
        // Vectors that lie inside; the words behind the last one by hand.
        u32 lefts = whole_vectors(merge.counts[0], load.left_vector, load.left_vectors);
        u32 rights = whole_vectors(merge.counts[1], load.right_vector, load.right_vectors);
        gate_expect(gate, (lefts + rights) * 16);
        if (lefts > 0) {
            copy_bulk(shared, (const uint4*)merge.keys[0] + load.left_vector, lefts * 16, gate);
        }
        if (rights > 0) {
            copy_bulk(shared + load.left_vectors, (const uint4*)merge.keys[1] + load.right_vector, rights * 16, gate);
        }
        if (lefts < load.left_vectors) {
            copy_last(merge.keys[0], merge.counts[0], load.left_vector + lefts, shared + lefts);
        }
        if (rights < load.right_vectors) {
            copy_last(merge.keys[1], merge.counts[1], load.right_vector + rights,
                      shared + load.left_vectors + rights);
        }
        ask_for_values(merge, load.tile);
        if (number + AHEAD < merge.tiles) {
            ask_for_keys(merge, number + AHEAD);
        }
    }
    __syncthreads();
    gate_wait(gate);
#else
    Load load = find_tile(merge, number);
    // Word by word, so that nothing behind the last key is read.
    Word* words = (Word*)shared;
    u64 left_first = load.left_vector * VECTOR, right_first = load.right_vector * VECTOR;
    u64 left_to = load.tile.left_from + load.tile.lefts, right_to = load.tile.right_from + load.tile.rights;
    u32 left_words = (u32)(min(left_to + 1, merge.counts[0]) - left_first);
    u32 right_words = (u32)(min(right_to + 1, merge.counts[1]) - right_first);
    for (u32 at = threadIdx.x; at < left_words + right_words; at += MERGERS) {
        bool is_left = at < left_words;
        u32 place = is_left ? at : at - left_words;
        words[is_left ? place : load.left_vectors * VECTOR + place] =
            load_key(is_left ? merge.keys[0] + left_first + place : merge.keys[1] + right_first + place);
    }
    if (threadIdx.x == 0) {
        *told = load.tile;
    }
    __syncthreads();
#endif
}

// How many of the first `diagonal` tuples of a tile's merge are left ones.
__device__ __forceinline__ u32 cut_tile(const Word* keys, const Tile& tile, u32 diagonal) {
    u32 low = diagonal > tile.rights ? diagonal - tile.rights : 0, high = min(diagonal, tile.lefts);
    // In bytes, so that a step is an addition.
    const char* left = (const char*)(keys + tile.left_at) - WORD_BYTES;
    const char* right = (const char*)(keys + tile.right_at + diagonal);
    low *= WORD_BYTES;
    high *= WORD_BYTES;
    // Most cuts lie near the straight line.
    if (tile.lefts + tile.rights == MERGE_TILE) {
        u32 guess = (u32)((float)diagonal * ((float)tile.lefts / (float)MERGE_TILE)) * WORD_BYTES;
        u32 from = max((int)low, (int)(guess - NEAR * WORD_BYTES)), to = min(high, guess + NEAR * WORD_BYTES);
        bool above = *(const Word*)(left + from) <= *(const Word*)(right - from) || from == low;
        bool below = !(*(const Word*)(left + to + WORD_BYTES) <= *(const Word*)(right - to - WORD_BYTES)) || to == high;
        bool near = from <= to && above && below;
        if (__all_sync(FULL, near)) {
            low = from;
            high = to;
#pragma unroll
            for (u32 step = NEAR * WORD_BYTES; step >= WORD_BYTES; step /= 2) {
                u32 next = low + step <= high ? low + step : low;
                low = *(const Word*)(left + next) <= *(const Word*)(right - next) ? next : low;
            }
            u32 next = low + WORD_BYTES <= high ? low + WORD_BYTES : low;
            low = *(const Word*)(left + next) <= *(const Word*)(right - next) ? next : low;
            return low / WORD_BYTES;
        }
    }
    u32 step = WORD_BYTES << (31 - __clz((int)(min(tile.lefts, tile.rights) | 1u)));
    for (; step >= WORD_BYTES; step /= 2) {
        // Where a step would lead too far, the same place is asked again, which says nothing new.
        u32 next = low + step <= high ? low + step : low;
        low = *(const Word*)(left + next) <= *(const Word*)(right - next) ? next : low;
    }
    return low / WORD_BYTES;
}

// A thread's tuples in their order, a bit each: which are left ones, which have a partner, which count at all.
struct Bits {
    u32 left, matched, counts;
};

// Words for the places of a thread's tuples, two each.
#define TOOK ((ITEMS + 1) / 2)

// Takes the tuples of a thread in order: `left_at` and `right_at` say where the next keys of both sides lie, `equal`
// has the bits of those at which both were equal, `took` the places of all.
template <u32 ITEM>
struct Take {
    static __device__ __forceinline__ void all(const Word* keys, Word& left_key, Word& right_key, u32& left_at,
                                               u32& right_at, u32& left, u32& equal, u32 (&took)[TOOK]) {
        u32 own;
#if !defined(PLEACH_EMULATED) && WORD_BYTES <= 8
#if WORD_BYTES == 4
#define KEY_REGISTER "r"
#define KEY_TYPE "u32"
#else
#define KEY_REGISTER "l"
#define KEY_TYPE "u64"
#endif
        // As it stands below, in ten instructions: predicates, no branches, no copies of registers.
        asm volatile(
            "{\n.reg .pred before, same;\n"
            "setp.le." KEY_TYPE " before, %0, %1;\nsetp.eq." KEY_TYPE " same, %0, %1;\n"
            "selp.u32 %6, %2, %3, before;\n"
            "@same or.b32 %5, %5, %7;\n@before or.b32 %4, %4, %7;\n"
            "@before add.u32 %2, %2, %8;\n@!before add.u32 %3, %3, %8;\n"
            "@before ld.shared." KEY_TYPE " %0, [%2];\n@!before ld.shared." KEY_TYPE " %1, [%3];\n}"
            : "+" KEY_REGISTER(left_key), "+" KEY_REGISTER(right_key), "+r"(left_at), "+r"(right_at), "+r"(left),
              "+r"(equal), "=r"(own)
            : "n"(1u << ITEM), "n"(WORD_BYTES)
            : "memory");
#else
        if (left_key == right_key) {
            equal |= 1u << ITEM;
        }
        own = left_key <= right_key ? left_at : right_at;
        if (left_key <= right_key) {
            left |= 1u << ITEM;
            left_key = keys[++left_at];
        } else {
            right_key = keys[++right_at];
        }
#endif
        took[ITEM / 2] = ITEM % 2 == 0 ? own : took[ITEM / 2] | own << 16;
        Take<ITEM + 1>::all(keys, left_key, right_key, left_at, right_at, left, equal, took);
    }
};
template <>
struct Take<ITEMS> {
    static __device__ __forceinline__ void all(const Word*, Word&, Word&, u32&, u32&, u32&, u32&, u32 (&)[TOOK]) {}
};
#if !defined(PLEACH_EMULATED) && WORD_BYTES <= 8
#define PLACE_OF(at) ((u32)__cvta_generic_to_shared(keys + (at)))
#define INDEX_OF(place) (((place) - PLACE_OF(0)) / WORD_BYTES)
#define STRIDE WORD_BYTES
#else
#define PLACE_OF(at) (at)
#define INDEX_OF(place) (place)
#define STRIDE 1u
#endif

// Inside both relations, where the keys of the right side are unique, or nobody asks for more than one right tuple.
__device__ __forceinline__ Bits merge_fast(const Word* keys, const Tile& tile, u32 diagonal, u32 low,
                                           u32 (&took)[TOOK]) {
    u32 first_left = tile.left_at + low, first_right = tile.right_at + diagonal - low;
    u32 left_at = PLACE_OF(first_left), right_at = PLACE_OF(first_right);
    Word left_key = keys[first_left], right_key = keys[first_right];
    u32 left = 0, equal = 0, before = keys[(int)first_left - 1] == right_key ? 1 : 0;
    Take<0>::all(keys, left_key, right_key, left_at, right_at, left, equal, took);
    u32 pairs = equal & left;
    return Bits{left, pairs | (~left & (pairs << 1 | before)), FULL};
}

// How many keys equal to that of `at` stand there and after it, or, backwards, before it.
__device__ __noinline__ u64 run_from(const Word* keys, u64 at, u64 end, Word key) {
    u64 low = at, jump = 1;
    while (low + jump <= end && load_key(keys + low + jump - 1) == key) {
        low += jump;
        jump *= 2;
    }
    while (jump > 0) {
        if (low + jump <= end && load_key(keys + low + jump - 1) == key) {
            low += jump;
        }
        jump /= 2;
    }
    return low - at;
}
__device__ __noinline__ u64 run_before(const Word* keys, u64 at, Word key) {
    u64 high = at, jump = 1;
    while (high >= jump && load_key(keys + high - jump) == key) {
        high -= jump;
        jump *= 2;
    }
    while (jump > 0) {
        if (high >= jump && load_key(keys + high - jump) == key) {
            high -= jump;
        }
        jump /= 2;
    }
    return at - high;
}

// Ends of relations, keys that stand more than once, and all rules.
__device__ __noinline__ Bits merge_general(const Merge& merge, const Word* keys, const Tile& tile, u32 diagonal,
                                           u32 low, u32 items) {
    u32 left_at = tile.left_at + low, right_at = tile.right_at + diagonal - low;
    u32 left_end = tile.left_at + tile.lefts + tile.more_left;
    u32 right_end = tile.right_at + tile.rights + tile.more_right;
    bool has_left = low > 0 || tile.left_from > 0, has_right = diagonal > low || tile.right_from > 0;
    // Of the key that was asked for last: how many tuples each side has, and the number of the next one of its side.
    Word asked = 0;
    bool is_asked = false;
    u64 lefts = 0, rights = 0, number = 0;
    Bits bits = {0, 0, 0};
#pragma unroll 1
    for (u32 item = 0; item < items; item++) {
        bool in_left = left_at < left_end, in_right = right_at < right_end;
        bool is_left = in_left && (!in_right || keys[left_at] <= keys[right_at]);
        u32 at = is_left ? left_at : right_at;
        Word key = keys[at];
        bool is_first = is_left ? !has_left || keys[(int)left_at - 1] != key
                                : !has_right || keys[(int)right_at - 1] != key;
        bool is_matched = is_left ? in_right && keys[right_at] == key : has_left && keys[(int)left_at - 1] == key;
        bool is_counted = true;
        if (merge.rule == RULE_SET) {
            is_counted = is_first;
        } else if (merge.rule == RULE_MULTISET) {
            u64 left_rank = tile.left_from + (left_at - tile.left_at);
            u64 right_rank = tile.right_from + (right_at - tile.right_at);
            if (!is_asked || asked != key) {
                u64 left_before = run_before(merge.keys[0], left_rank, key);
                u64 right_before = run_before(merge.keys[1], right_rank, key);
                lefts = left_before + run_from(merge.keys[0], left_rank, merge.counts[0], key);
                rights = right_before + run_from(merge.keys[1], right_rank, merge.counts[1], key);
                number = is_left ? left_before : right_before;
                asked = key;
                is_asked = true;
            } else if (is_left == ((bits.left >> (item - 1) & 1) != 0)) {
                number++;
            } else {
                number = 0;
            }
            // Equals pair by their numbers; the first ones of both sides do.
            is_matched = number < (is_left ? rights : lefts);
        }
        bits.left |= (is_left ? 1u : 0u) << item;
        bits.matched |= (is_matched ? 1u : 0u) << item;
        bits.counts |= (is_counted ? 1u : 0u) << item;
        if (is_left) {
            left_at++;
            has_left = true;
        } else {
            right_at++;
            has_right = true;
        }
    }
    return bits;
}

// Where the value of place 0 would lie, `first` its rank: a number, not a pointer, since no column need reach it.
template <class Out>
__device__ __forceinline__ u64 start_of(const void* values, u64 first) {
    return (u64)values + first * sizeof(Out);
}
template <class Out>
__device__ __forceinline__ Out value_at(u64 start, u32 place) {
    return __ldcs((const Out*)(start + (u64)place * sizeof(Out)));
}

// Writes what comes out for one side: `list` has places in shared memory, `first` makes ranks of them.
template <class Out>
__device__ __forceinline__ void put_values(Out* to, const Word* keys, u64 start, const u16* list, u32 count) {
#pragma unroll 4
    for (u32 at = threadIdx.x; at < count; at += MERGERS) {
        u32 place = list[at];
        Out value = 0;
        if (place != NOWHERE) {
            value = value_at<Out>(start, INDEX_OF(place));
        }
        __stcs(to + at, value);
    }
}
__device__ __forceinline__ void put_ranks(u64* to, const Word* keys, u64 first, const u16* list, u32 count) {
    for (u32 at = threadIdx.x; at < count; at += MERGERS) {
        u32 place = list[at];
        __stcs(to + at, place == NOWHERE ? ~0ull : first + INDEX_OF(place));
    }
}
// `first` is the rank of place 0.
__device__ __forceinline__ void put_side(const Merge& merge, const Word* keys, u32 side, u64 base, u64 first,
                                         const u16* list, u32 count) {
    const void* values = merge.values[side];
    void* to = merge.values_to[side];
    switch (merge.kinds[side]) {
        case OUT_VALUE4: put_values((u32*)to + base, keys, start_of<u32>(values, first), list, count); break;
        case OUT_VALUE8: put_values((u64*)to + base, keys, start_of<u64>(values, first), list, count); break;
        case OUT_RANK8: put_ranks((u64*)to + base, keys, first, list, count); break;
        default: break;
    }
}

// More results than any capacity: whoever adds up from here on has too many.
#define TOO_MANY (1ull << 61)

// Results of a thread that are under way at a time.
#define TOGETHER 4u

// What a thread writes at a time: keys and the values of both sides.
template <class Left, class Right>
struct Pairs {
    Left lefts[TOGETHER];
    Right rights[TOGETHER];
    u64 left, right;

    __device__ __forceinline__ Pairs(const Merge& merge, const Tile& tile)
        : left(start_of<Left>(merge.values[0], tile.left_from - tile.left_at)),
          right(start_of<Right>(merge.values[1], tile.right_from - tile.right_at)) {}
    __device__ __forceinline__ void load(const Merge& merge, const Word* keys, const u16* list, u32 first, u32 count) {
        const u16* others = list + merge.places;
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++) {
            u32 at = first + i * MERGERS;
            u32 place = at < count ? list[at] : NOWHERE, other = at < count ? others[at] : NOWHERE;
            lefts[i] = 0;
            rights[i] = 0;
            if (place != NOWHERE) {
                lefts[i] = value_at<Left>(left, INDEX_OF(place));
            }
            if (other != NOWHERE) {
                rights[i] = value_at<Right>(right, INDEX_OF(other));
            }
        }
    }
    __device__ __forceinline__ void store(const Merge& merge, const Word* keys, const u16* list, u64 base, u32 first,
                                          u32 count) {
        const u16* others = list + merge.places;
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++) {
            u32 at = first + i * MERGERS;
            if (at < count) {
                u32 place = list[at];
                store_key(merge.keys_to + base + at, keys[INDEX_OF(place != NOWHERE ? place : others[at])]);
                __stcs((Left*)merge.values_to[0] + base + at, lefts[i]);
                __stcs((Right*)merge.values_to[1] + base + at, rights[i]);
            }
        }
    }
};

// Keys and the values of the tuples that were taken.
template <class Out>
struct Taken {
    Out values[TOGETHER];
    u64 left, right;
    u32 border;

    __device__ __forceinline__ Taken(const Merge& merge, const Tile& tile)
        : left(start_of<Out>(merge.values[0], tile.left_from - tile.left_at)),
          right(start_of<Out>(merge.values[1], tile.right_from - tile.right_at)),
          border(tile.left_at + tile.lefts) {}
    __device__ __forceinline__ void load(const Merge&, const Word* keys, const u16* list, u32 first, u32 count) {
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++) {
            u32 at = first + i * MERGERS;
            if (at < count) {
                u32 place = INDEX_OF(list[at]);
                values[i] = value_at<Out>(place < border ? left : right, place);
            }
        }
    }
    __device__ __forceinline__ void store(const Merge& merge, const Word* keys, const u16* list, u64 base, u32 first,
                                          u32 count) {
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++) {
            u32 at = first + i * MERGERS;
            if (at < count) {
                store_key(merge.keys_to + base + at, keys[INDEX_OF((u32)list[at])]);
                __stcs((Out*)merge.values_to[0] + base + at, values[i]);
            }
        }
    }
};

// Looks back; the first warp.
__device__ __forceinline__ void find_base(const Merge& merge, u32 number, u64 counted, u64* base_shared) {
    u64 base = 0;
    if (number > 0 && counted != TOO_MANY) {
        base = look_back(merge.told, number);
        if (threadIdx.x == 0) {
            tell(merge.told + number, SAID_ALL | (base + counted));
        }
    }
    if (threadIdx.x == 0) {
        *base_shared = base;
        if (number + 1 == merge.tiles) {
            *merge.found = base + counted;
        }
    }
}

// Waits for the base while the first values come: only the first warp looks back.
template <class Some>
__device__ __forceinline__ void write_out(Some some, const Merge& merge, const Word* keys, const u16* list, u32 number,
                                          u32 total, u64 counted, u64* base_shared) {
#ifdef PLEACH_EMULATED
    bool early = false;
    if (threadIdx.x < WARP) {
        find_base(merge, number, counted, base_shared);
    }
#else
    bool early = threadIdx.x >= WARP;
    if (early) {
        asm volatile("bar.sync 1, %0;" ::"n"(MERGERS) : "memory");
        some.load(merge, keys, list, threadIdx.x, total);
    } else {
        asm volatile("bar.arrive 1, %0;" ::"n"(MERGERS) : "memory");
        find_base(merge, number, counted, base_shared);
    }
#endif
    __syncthreads();
    u64 base = *base_shared;
    // The host sees that there was too little room.
    if (base + counted > merge.capacity) {
        return;
    }
    if (!early) {
        some.load(merge, keys, list, threadIdx.x, total);
    }
    for (u32 first = threadIdx.x; first < total;) {
        some.store(merge, keys, list, base, first, total);
        first += TOGETHER * MERGERS;
        some.load(merge, keys, list, first, total);
    }
}

// A block a tile. With PAIRS both sides of each result come out, else the tuple that is taken, its value in the first
// column.
template <bool PAIRS>
__device__ __forceinline__ void merge_tile(const Merge& merge) {
    DYNAMIC_SHARED(uint4, shared);
    __shared__ u32 counts[MERGER_WARPS];
    __shared__ u64 gate;
    __shared__ Tile told;
    __shared__ u64 base_shared;
    uint4* buffer = shared + 1;
    const Word* keys = (const Word*)buffer;
    u16* list = (u16*)(buffer + BUFFER_VECTORS);
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, number = blockIdx.x;
    load_tile(merge, number, buffer, &gate, &told);
    const Tile& tile = told;
    u32 here = tile.lefts + tile.rights;
    u32 diagonal = min(threadIdx.x * ITEMS, here);
    u32 low = cut_tile(keys, tile, diagonal);
    Bits bits;
    u32 took[TOOK];
    if (merge.general == 0 && tile.left_from > 0 && tile.right_from > 0 && tile.more_left && tile.more_right) {
        bits = merge_fast(keys, tile, diagonal, low, took);
    } else {
        bits = merge_general(merge, keys, tile, diagonal, low, min(ITEMS, here - diagonal));
        u32 left_at = tile.left_at + low, right_at = tile.right_at + diagonal - low;
#pragma unroll
        for (u32 item = 0; item < ITEMS; item++) {
            u32 own = PLACE_OF((bits.left & 1u << item) != 0 ? left_at++ : right_at++);
            took[item / 2] = item % 2 == 0 ? own : took[item / 2] | own << 16;
        }
    }
    // A mask of all bits, or none, for each kind of tuple.
    u32 emit = merge.emit;
    u32 left_alone = 0 - (emit & 1), left_matched = 0 - (emit >> 1 & 1);
    u32 right_alone = 0 - (emit >> 2 & 1), right_matched = 0 - (emit >> 3 & 1);
    u32 out = (bits.left & ((bits.matched & left_matched) | (~bits.matched & left_alone))) |
              (~bits.left & ((bits.matched & right_matched) | (~bits.matched & right_alone)));
    out &= bits.counts & ((1u << ITEMS) - 1);
    u32 count = __popc(out), sum = count;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u32 other = __shfl_up_sync(FULL, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == WARP - 1) {
        counts[warp] = sum;
    }
    __syncthreads();
    u32 total = 0, before = 0;
#pragma unroll
    for (u32 i = 0; i < MERGER_WARPS; i++) {
        before += i < warp ? counts[i] : 0;
        total += counts[i];
    }
    // Pairs of keys that are not unique as was promised may have no room: then none of the tiles from here on has.
    bool is_too_many = PAIRS && total > merge.places;
    u64 counted = is_too_many ? TOO_MANY : total;
    if (threadIdx.x == 0) {
        tell(merge.told + number, (number == 0 || is_too_many ? SAID_ALL : SAID_OWN) | counted);
    }
    out = is_too_many ? 0 : out;
    u16* to = list + (before + sum - count);
    if (PAIRS) {
        u16* other_to = to + merge.places;
        // Of a left tuple: this, and its number here, less its place is the next right one's.
        u32 across = PLACE_OF(tile.left_at) + PLACE_OF(tile.right_at) + diagonal * STRIDE;
        if (emit == 2) {
#pragma unroll
            for (u32 item = 0; item < ITEMS; item++) {
                if ((out & 1u << item) != 0) {
                    u32 own = item % 2 == 0 ? took[item / 2] & 0xFFFF : took[item / 2] >> 16;
                    *to++ = (u16)own;
                    *other_to++ = (u16)(across + item * STRIDE - own);
                }
            }
        } else {
#pragma unroll
            for (u32 item = 0; item < ITEMS; item++) {
                if ((out & 1u << item) != 0) {
                    u32 own = item % 2 == 0 ? took[item / 2] & 0xFFFF : took[item / 2] >> 16;
                    bool is_left = (bits.left & 1u << item) != 0, is_matched = (bits.matched & 1u << item) != 0;
                    *to++ = (u16)(is_left ? own : NOWHERE);
                    *other_to++ = (u16)(!is_left ? own : is_matched ? across + item * STRIDE - own : NOWHERE);
                }
            }
        }
    } else {
#pragma unroll
        for (u32 item = 0; item < ITEMS; item++) {
            if ((out & 1u << item) != 0) {
                *to++ = (u16)(item % 2 == 0 ? took[item / 2] : took[item / 2] >> 16);
            }
        }
    }
    u32 left_kind = merge.kinds[0], right_kind = merge.kinds[1];
    if (PAIRS && merge.sides_to == nullptr && left_kind == OUT_VALUE4 && right_kind == OUT_VALUE4) {
        write_out(Pairs<u32, u32>(merge, tile), merge, keys, list, number, total, counted, &base_shared);
        return;
    }
    if (PAIRS && merge.sides_to == nullptr && left_kind == OUT_VALUE8 && right_kind == OUT_VALUE8) {
        write_out(Pairs<u64, u64>(merge, tile), merge, keys, list, number, total, counted, &base_shared);
        return;
    }
    if (!PAIRS && left_kind == OUT_VALUE4) {
        write_out(Taken<u32>(merge, tile), merge, keys, list, number, total, counted, &base_shared);
        return;
    }
    if (!PAIRS && left_kind == OUT_VALUE8) {
        write_out(Taken<u64>(merge, tile), merge, keys, list, number, total, counted, &base_shared);
        return;
    }
    if (warp == 0) {
        find_base(merge, number, counted, &base_shared);
    }
    __syncthreads();
    u64 base = base_shared;
    if (base + counted > merge.capacity) {
        return;
    }
    u64 left_first = tile.left_from - tile.left_at, right_first = tile.right_from - tile.right_at;
    if (PAIRS) {
        const u16* others = list + merge.places;
        if (merge.keys_to != nullptr) {
            for (u32 at = threadIdx.x; at < total; at += MERGERS) {
                u32 place = list[at];
                store_key(merge.keys_to + base + at, keys[INDEX_OF(place != NOWHERE ? place : others[at])]);
            }
        }
        put_side(merge, keys, 0, base, left_first, list, total);
        put_side(merge, keys, 1, base, right_first, others, total);
        if (merge.sides_to != nullptr) {
            for (u32 at = threadIdx.x; at < total; at += MERGERS) {
                merge.sides_to[base + at] = (u8)((list[at] != NOWHERE ? 1 : 0) | (others[at] != NOWHERE ? 2 : 0));
            }
        }
    } else {
#pragma unroll 4
        for (u32 at = threadIdx.x; at < total; at += MERGERS) {
            store_key(merge.keys_to + base + at, keys[INDEX_OF((u32)list[at])]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(MERGERS, MERGE_BLOCKS) merge_one(const __grid_constant__ Merge merge) {
    merge_tile<false>(merge);
}

extern "C" __global__ void __launch_bounds__(MERGERS, PAIR_BLOCKS) merge_pairs(const __grid_constant__ Merge merge) {
    merge_tile<true>(merge);
}
