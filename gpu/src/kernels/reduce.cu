// Segmented reduction in one pass, of any runs: one tuple for each run of equal keys (reduce.cuh).
//
// A block takes a tile, a thread eight tuples that stand together. A thread adds up between its tails, and puts what it
// has at each into shared memory; what is behind the last one is scanned over the warp and over the warps, as far as no
// tail lies between, and added to the first result of the thread where the run ends. Then each warp writes its results,
// and the keys of their tails, together.
//
// Where a tile's results begin is found by looking back at the counts of tails (onepass.cuh), and what was open at its
// begin by another warp. Where runs are long, reduce_few.cu is faster.
//
// Sums of floats are taken within a thread from left to right, then over the threads of a warp and over the warps by
// doubling distance, then over tiles from left to right: the same in each launch, as places alone decide.

#define REDUCERS 512u
#define REDUCER_WARPS (REDUCERS / WARP)
#define ITEMS 8u
#define TILE (REDUCERS * ITEMS)
// Blocks that a multiprocessor has registers for.
#define REDUCER_BLOCKS (WORD_BYTES + VALUE_BYTES > 12 ? 3 : 4)
// Results of 128 bytes are 8 apart from the next ones, so that runs of one tuple have no bank of their own.
#define PLACE_OF(at) ((at) + ((at) >> 4))

// Reduces a tile: the whole of a kernel.
template <class Op> __device__ __forceinline__ void reduce_tile(const Reduce& reduce, Op op) {
    // Those of a warp begin at its first tuple's place.
    __shared__ u64 results[PLACE_OF(TILE)];
    __shared__ u16 places[TILE];
    __shared__ u32 counts[REDUCER_WARPS];
    __shared__ u64 sums[REDUCER_WARPS];
    __shared__ u64 start;
    __shared__ u64 carry_in;
    __shared__ bool has_carry;
    const u32 tile = blockIdx.x, begin = tile * TILE, tiled = min(reduce.tuples - begin, TILE);
    const u32 me = threadIdx.x, lane = me % WARP, warp = me / WARP, from = me * ITEMS, warp_from = warp * WARP * ITEMS;
    const Word* keys_from = reduce.keys + begin;
    if (me == 0 && reduce.is_aligned != 0) {
        u64 next = (u64)tile + reduce.ahead;
        if ((next + 1) * TILE <= reduce.tuples) {
            fetch_ahead(reduce.keys + next * TILE, TILE * WORD_BYTES);
#if VALUE_BYTES > 0
            fetch_ahead(reduce.values + next * TILE, TILE * VALUE_BYTES);
#endif
        }
    }

    // A bit a tail. What stands past the last tuple is as that one, and behind its tail, so that nobody sees it.
    const u32 mine = from < tiled ? min(tiled - from, ITEMS) : 0;
    u32 tails = 0;
    Value values[ITEMS] = {};
    {
        Word keys[ITEMS];
        if (tiled == TILE && reduce.is_aligned != 0) {
            load_vector(keys_from + from, keys);
#if VALUE_BYTES > 0
            load_vector(reduce.values + begin + from, values);
#endif
        } else {
            load_some(keys_from, from, tiled, keys);
#if VALUE_BYTES > 0
            load_some(reduce.values + begin, from, tiled, values);
#endif
        }
        Word next = __shfl_down_sync(FULL, keys[0], 1);
        if (lane == WARP - 1 && begin + from + ITEMS < reduce.tuples) {
            next = __ldg(keys_from + from + ITEMS);
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            tails |= (u32)(keys[i] != (i + 1 < ITEMS ? keys[(i + 1) % ITEMS] : next)) << i;
        }
        if (begin + tiled == reduce.tuples) {
            tails &= (1u << mine) - 1;
            tails |= mine > 0 && from + mine == tiled ? 1u << (mine - 1) : 0;
        }
    }
    // Whether the run at the tile's begin began before.
    const bool is_last_warp = warp == REDUCER_WARPS - 1;
    const bool is_continued = is_last_warp && tile > 0 && __ldg(keys_from) == __ldg(keys_from - 1);

    // Results of the thread's tails, of what stands in the thread alone; and what stands behind the last one.
    const u32 own = (u32)__popc(tails);
    u32 scanned = own;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u32 other = __shfl_up_sync(FULL, scanned, step);
        scanned += lane >= step ? other : 0;
    }
    const u32 first = warp_from + scanned - own;
    u32 place = first;
    u64 sum = Op::NEUTRAL;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        op.at(begin + from + i);
        if (Op::IS_CHECKED == 0 || i < mine) {
            sum = op(sum, op.of(reduce, values[i]));
        }
        if ((tails >> i & 1) != 0) {
            results[PLACE_OF(place)] = sum;
            places[place] = (u16)(from + i);
            place++;
            sum = Op::NEUTRAL;
        }
    }
    // Behind the last tail of all threads of the warp up to this one.
    u32 enders = __ballot_sync(FULL, tails != 0), up_to = enders & (FULL >> (31 - lane));
    u32 opener = up_to == 0 ? 0 : 31 - (u32)__clz((int)up_to);
    op.at(begin + from);
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u64 other = __shfl_up_sync(FULL, sum, step);
        sum = lane >= opener + step ? op(other, sum) : sum;
    }
    u64 before = __shfl_up_sync(FULL, sum, 1);
    before = lane == 0 ? (u64)Op::NEUTRAL : before;
    if (lane == WARP - 1) {
        counts[warp] = scanned;
        sums[warp] = sum;
    }
    __syncthreads();

    // The same over the warps, which each group of as many lanes does.
    const u32 group_lane = lane % REDUCER_WARPS;
    u32 count = counts[group_lane];
    u64 open = sums[group_lane];
    op.at(begin + group_lane * (WARP * ITEMS));
#pragma unroll
    for (u32 step = 1; step < REDUCER_WARPS; step *= 2) {
        u32 other_count = __shfl_up_sync(FULL, count, step, REDUCER_WARPS);
        u64 other = __shfl_up_sync(FULL, open, step, REDUCER_WARPS);
        if (group_lane >= step) {
            open = count == 0 ? op(other, open) : open;
            count += other_count;
        }
    }
    const u32 total = __shfl_sync(FULL, count, REDUCER_WARPS - 1, REDUCER_WARPS);
    const u32 own_end = __shfl_sync(FULL, count, (int)warp, REDUCER_WARPS);
    const u64 left_open = __shfl_sync(FULL, open, REDUCER_WARPS - 1, REDUCER_WARPS);
    u64 carry = __shfl_sync(FULL, open, (int)(max(warp, 1u) - 1), REDUCER_WARPS);
    carry = warp == 0 ? (u64)Op::NEUTRAL : carry;
    if (me == 0) {
        tell(reduce.told + tile, (tile == 0 ? SAID_ALL : SAID_OWN) | total);
    }
    if (is_last_warp && lane == 0) {
        has_carry = is_continued;
        tell_carry(reduce.carried, tile, total > 0 || !is_continued ? SAID_ALL : SAID_OWN, left_open);
    }

    // The first result of the thread has what stands before the thread, but for what the tiles before know.
    if (own > 0) {
        op.at(begin + from);
        if ((enders & ((1u << lane) - 1)) == 0) {
            before = op(carry, before);
        }
        results[PLACE_OF(first)] = op(before, results[PLACE_OF(first)]);
    }
    if (warp == 0) {
        u64 to = look_back(reduce.told, tile);
        if (lane == 0) {
            start = to;
            if (tile > 0) {
                tell(reduce.told + tile, SAID_ALL | (to + total));
            }
            if (tile + 1 == gridDim.x) {
                reduce.told[tile + 1] = to + total;
            }
        }
    }
    if (is_last_warp && is_continued) {
        op.at(begin);
        u64 known = carry_back(reduce.carried, tile, op);
        if (lane == 0) {
            carry_in = known;
            if (total == 0) {
                tell_carry(reduce.carried, tile, SAID_ALL, op(known, left_open));
            }
        }
    }
    __syncthreads();

    // A warp's own results, many of them at whole lines.
    const u32 results_count = counts[warp], ahead = own_end - results_count;
    const u64 to = start + ahead;
    // Wraps below the first one.
    const u32 skipped = results_count < 4 * WARP ? 0 : (u32)to & (WARP - 1);
    for (u32 base = 0; base < results_count + skipped; base += WARP) {
        u32 at = base + lane - skipped;
        if (at < results_count) {
            u64 result = results[PLACE_OF(warp_from + at)];
            if (ahead + at == 0 && has_carry) {
                op.at(begin);
                result = op(carry_in, result);
            }
            __stcs(reduce.keys_to + to + at, __ldg(keys_from + places[warp_from + at]));
            result = op.back(reduce, result);
            if (reduce.to_bytes == 4) {
                __stcs((u32*)reduce.values_to + to + at, (u32)result);
            } else {
                __stcs((u64*)reduce.values_to + to + at, result);
            }
        }
    }
    op.end(reduce);
}

// A block a tile, of REDUCERS threads.
extern "C" __global__ void __launch_bounds__(REDUCERS, REDUCER_BLOCKS)
reduce_sum(const __grid_constant__ Reduce reduce) {
    reduce_tile(reduce, Sum());
}

#if VALUE_BYTES == 8
extern "C" __global__ void __launch_bounds__(REDUCERS, 3) reduce_checked(const __grid_constant__ Reduce reduce) {
    reduce_tile(reduce, CheckedSum{0, NOBODY, reduce.kind == KIND_EXTENDED});
}

// Puts sums of high halves and of low halves together, in the place of the former; notes the first that does not fit.
extern "C" __global__ void __launch_bounds__(REDUCERS) reduce_join(u64* high, const u64* low, u32 count, u64* failed) {
    u32 at = blockIdx.x * REDUCERS + threadIdx.x;
    if (at < count) {
        long long whole = (long long)high[at] + (long long)(low[at] >> 32);
        if (whole != (long long)(int)whole) {
            atomicMin(failed, (u64)at);
        }
        high[at] = (u64)whole << 32 | (u32)low[at];
    }
}
#endif

#if VALUE_BYTES > 0
extern "C" __global__ void __launch_bounds__(REDUCERS, 3) reduce_float(const __grid_constant__ Reduce reduce) {
    reduce_tile(reduce, FloatSum());
}

extern "C" __global__ void __launch_bounds__(REDUCERS, REDUCER_BLOCKS)
reduce_least(const __grid_constant__ Reduce reduce) {
    reduce_tile(reduce, Least());
}
#endif
