// Segmented reduction in one pass, of runs that are not short (reduce.cuh).
//
// A warp goes over its part of a tile in rounds of eight tuples a lane, the next round's loads under way. In a round
// without a tail, which long runs are made of, each lane adds to a number of its own and nobody waits; at a tail the
// lanes' numbers are added up, and what stands between tails as in reduce.cu. Results go into shared memory, which has
// room for one in some six tuples: a warp that has more says so, everything stops, and reduce.cu does all of it.
//
// Blocks stay. Each takes the next tile as soon as it can, by a ticket, and puts off writing the results of one tile
// until it has read the next: by then the tiles before have told their counts, so that looking back hardly waits, and
// memory is never idle. Whoever has the lowest tile of which nothing is told waits for nobody, as it told of its tile
// before it looked back for the one before; so tickets, which are handed out in order, cannot lock each other.
//
// Sums of floats are taken in an order that places alone decide: in a lane round by round, over the lanes by halving
// distance, over warps and tiles as in reduce.cu.

#define REDUCERS 256u
#define REDUCER_WARPS (REDUCERS / WARP)
#define ITEMS 8u
#define ROUND (WARP * ITEMS)
#define ROUNDS 4u
// As many as need no registers but a block's own: what is put into memory takes longer than it saves.
constexpr u32 ROUNDS_UNROLLED = WORD_BYTES + VALUE_BYTES > 8 ? 2 : 4;
#define WARP_TUPLES (ROUND * ROUNDS)
#define TILE (WARP_TUPLES * REDUCER_WARPS)
// Results of a warp that there is room for.
#define ROOM (WARP_TUPLES * 5 / 32)
// Blocks that a multiprocessor has registers for; the same as `few_blocks` in relation/reduce.rs.
#define REDUCER_BLOCKS (WORD_BYTES + VALUE_BYTES > 12 ? 2 : WORD_BYTES + VALUE_BYTES > 8 ? 3 : 4)

// A lane's tuples of a round.
struct Items {
    Word keys[ITEMS];
    Value values[ITEMS];
};

// A tile: where its tuples are.
struct Tile {
    u32 number;
    u32 begin;
    u32 tuples;
    bool is_whole;

    __device__ __forceinline__ Tile(const Reduce& reduce, u32 at)
        : number(at), begin(at * TILE), tuples(min(reduce.tuples - begin, TILE)),
          is_whole(tuples == TILE && reduce.is_aligned != 0) {}

    __device__ __forceinline__ void load(const Reduce& reduce, u32 at, Items& to) const {
        if (is_whole) {
            load_vector(reduce.keys + begin + at, to.keys);
#if VALUE_BYTES > 0
            load_vector(reduce.values + begin + at, to.values);
#endif
        } else {
            load_some(reduce.keys + begin, at, tuples, to.keys);
#if VALUE_BYTES > 0
            load_some(reduce.values + begin, at, tuples, to.values);
#endif
        }
    }
};

// What a block knows of a tile whose results it has not written yet; in shared memory, as registers are few.
struct PutOff {
    u32 tile;
    u32 total;
    // Of each warp: its results, and those of the warps before it.
    u32 counts[REDUCER_WARPS];
    u32 ahead[REDUCER_WARPS];
    // What the tile leaves open, and whether its first run began before it.
    u64 left_open;
    bool is_continued;
};

// The whole of a kernel.
template <class Op> __device__ __forceinline__ void reduce_few(const Reduce& reduce, Op op) {
    // Of this tile and of the one before.
    __shared__ u64 results[2][REDUCER_WARPS][ROOM];
    __shared__ Word result_keys[2][REDUCER_WARPS][ROOM];
    __shared__ u32 counts[REDUCER_WARPS];
    __shared__ u64 sums[REDUCER_WARPS];
    __shared__ u64 start;
    __shared__ u64 carry_in;
    __shared__ u32 ticket;
    __shared__ PutOff put_offs[2];
    const u32 tiles = (reduce.tuples - 1) / TILE + 1;
    const u32 me = threadIdx.x, lane = me % WARP, warp = me / WARP, warp_from = warp * WARP_TUPLES;
    const bool is_last_warp = warp == REDUCER_WARPS - 1;
    auto take_ticket = [&]() {
        if (me == 0) {
            u64* tickets = reduce.told + tiles + 1;
            ticket = hear(tickets + 1) != 0 ? NOBODY : (u32)atomicAdd(tickets, 1ull);
        }
    };
    take_ticket();
    __syncthreads();
    Tile tile(reduce, min(ticket, tiles - 1));
    bool is_there = ticket < tiles, is_put_off = false;
    // The first round, and the key behind the warp's tuples.
    Items items;
    Word key_behind = 0;
    auto open_tile = [&]() {
        tile.load(reduce, warp_from + lane * ITEMS, items);
        u32 behind = tile.begin + warp_from + WARP_TUPLES;
        key_behind = behind < reduce.tuples ? __ldg(reduce.keys + behind) : 0;
    };
    if (is_there) {
        open_tile();
    }
    // Half of the threads see two tails: it ends before it has begun. What waits for this tile must not wait.
    u32 tails_seen = 0;
#pragma unroll
    for (u32 i = 1; i < ITEMS; i++) {
        tails_seen += is_there && items.keys[i - 1] != items.keys[i];
    }
    if (__syncthreads_count(tails_seen > 1) > REDUCERS / 2) {
        if (me == 0) {
            tell(reduce.told + tiles + 2, 1);
            tell(reduce.told + tile.number, SAID_ALL);
            tell_carry(reduce.carried, tile.number, SAID_ALL, Op::NEUTRAL);
        }
        is_there = false;
    }

    for (u32 side = 0; is_there || is_put_off; side ^= 1) {
        u64* const own_results = results[side][warp];
        Word* const own_keys = result_keys[side][warp];
        u32 own_count = 0;
        // What a lane has behind the last tail so far; of the last lane alone unless it is spread.
        u64 open = Op::NEUTRAL;
        bool is_spread = false, is_continued = false;
        if (is_there) {
            take_ticket();
            if (is_last_warp && tile.number > 0) {
                const Word* keys_from = reduce.keys + tile.begin;
                is_continued = __ldg(keys_from) == __ldg(keys_from - 1);
            }
#pragma unroll ROUNDS_UNROLLED
            for (u32 round = 0; round < ROUNDS; round++) {
                const u32 round_from = warp_from + round * ROUND, from = round_from + lane * ITEMS;
                const bool is_last = round + 1 == ROUNDS;
                Items next;
                if (!is_last) {
                    tile.load(reduce, from + ROUND, next);
                }
                // A bit a tail. What stands past the last tuple is as that one, and behind its tail.
                Word after = __shfl_down_sync(FULL, items.keys[0], 1);
                Word first_after = is_last ? key_behind : (Word)__shfl_sync(FULL, next.keys[0], 0);
                after = lane == WARP - 1 ? first_after : after;
                u32 tails = 0;
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) {
                    tails |= (u32)(items.keys[i] != (i + 1 < ITEMS ? items.keys[(i + 1) % ITEMS] : after)) << i;
                }
                const u32 mine = from < tile.tuples ? min(tile.tuples - from, ITEMS) : 0;
                if (tile.begin + tile.tuples == reduce.tuples) {
                    tails &= (1u << mine) - 1;
                    tails |= mine > 0 && from + mine == tile.tuples ? 1u << (mine - 1) : 0;
                }
                const u32 enders = __ballot_sync(FULL, tails != 0);
                if (enders == 0) {
                    op.at(tile.begin + round_from);
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) {
                        if (Op::IS_CHECKED == 0 || i < mine) {
                            open = op(open, op.of(reduce, items.values[i]));
                        }
                    }
                    is_spread = true;
                } else {
                    u64 prior = open;
                    op.at(tile.begin + round_from);
                    if (is_spread) {
#pragma unroll
                        for (u32 step = WARP / 2; step > 0; step /= 2) {
                            prior = op(prior, (u64)__shfl_xor_sync(FULL, prior, step));
                        }
                    } else {
                        prior = __shfl_sync(FULL, prior, WARP - 1);
                    }
                    is_spread = false;
                    const u32 own = (u32)__popc(tails);
                    u32 scanned = own;
#pragma unroll
                    for (u32 step = 1; step < WARP; step *= 2) {
                        u32 other = __shfl_up_sync(FULL, scanned, step);
                        scanned += lane >= step ? other : 0;
                    }
                    const u32 first = own_count + scanned - own;
                    u32 place = first;
                    u64 sum = Op::NEUTRAL;
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) {
                        op.at(tile.begin + from + i);
                        if (Op::IS_CHECKED == 0 || i < mine) {
                            sum = op(sum, op.of(reduce, items.values[i]));
                        }
                        if ((tails >> i & 1) != 0) {
                            if (place < ROOM) {
                                own_results[place] = sum;
                                own_keys[place] = items.keys[i];
                            }
                            place++;
                            sum = Op::NEUTRAL;
                        }
                    }
                    // Behind the last tail of all lanes up to this one.
                    u32 up_to = enders & (FULL >> (31 - lane));
                    u32 opener = up_to == 0 ? 0 : 31 - (u32)__clz((int)up_to);
                    op.at(tile.begin + from);
#pragma unroll
                    for (u32 step = 1; step < WARP; step *= 2) {
                        u64 other = __shfl_up_sync(FULL, sum, step);
                        sum = lane >= opener + step ? op(other, sum) : sum;
                    }
                    u64 before = __shfl_up_sync(FULL, sum, 1);
                    before = lane == 0 ? (u64)Op::NEUTRAL : before;
                    if (own > 0 && first < ROOM) {
                        if ((enders & ((1u << lane) - 1)) == 0) {
                            before = op(prior, before);
                        }
                        own_results[first] = op(before, own_results[first]);
                    }
                    open = lane == WARP - 1 ? sum : (u64)Op::NEUTRAL;
                    own_count += __shfl_sync(FULL, scanned, WARP - 1);
                }
                if (!is_last) {
                    items = next;
                }
            }
            // As other lanes have nothing where it is not spread, this is right either way.
            op.at(tile.begin + warp_from + WARP_TUPLES - ROUND);
#pragma unroll
            for (u32 step = WARP / 2; step > 0; step /= 2) {
                open = op(open, (u64)__shfl_xor_sync(FULL, open, step));
            }
            if (lane == 0) {
                counts[warp] = own_count;
                sums[warp] = open;
                if (own_count > ROOM) {
                    tell(reduce.told + tiles + 2, 1);
                }
            }
        }
        __syncthreads();
        const bool was_there = is_there;
        if (was_there) {
            // Over the warps, which each group of as many lanes does.
            const u32 group_lane = lane % REDUCER_WARPS;
            u32 count = counts[group_lane];
            u64 left = sums[group_lane];
            op.at(tile.begin + group_lane * WARP_TUPLES);
#pragma unroll
            for (u32 step = 1; step < REDUCER_WARPS; step *= 2) {
                u32 other_count = __shfl_up_sync(FULL, count, step, REDUCER_WARPS);
                u64 other = __shfl_up_sync(FULL, left, step, REDUCER_WARPS);
                if (group_lane >= step) {
                    left = count == 0 ? op(other, left) : left;
                    count += other_count;
                }
            }
            const u32 total = __shfl_sync(FULL, count, REDUCER_WARPS - 1, REDUCER_WARPS);
            const u32 own_end = __shfl_sync(FULL, count, (int)warp, REDUCER_WARPS);
            const u64 left_open = __shfl_sync(FULL, left, REDUCER_WARPS - 1, REDUCER_WARPS);
            u64 carry = __shfl_sync(FULL, left, (int)(max(warp, 1u) - 1), REDUCER_WARPS);
            if (me == 0) {
                tell(reduce.told + tile.number, (tile.number == 0 ? SAID_ALL : SAID_OWN) | total);
                put_offs[side].tile = tile.number;
                put_offs[side].total = total;
            }
            if (lane == 0) {
                if (is_last_warp) {
                    bool is_known = total > 0 || !is_continued;
                    tell_carry(reduce.carried, tile.number, is_known ? SAID_ALL : SAID_OWN, left_open);
                    put_offs[side].left_open = left_open;
                    put_offs[side].is_continued = is_continued;
                }
                put_offs[side].counts[warp] = own_count;
                put_offs[side].ahead[warp] = own_end - own_count;
                if (warp > 0 && own_count > 0) {
                    op.at(tile.begin + warp_from);
                    own_results[0] = op(carry, own_results[0]);
                }
            }
            is_there = ticket < tiles;
            if (is_there) {
                tile = Tile(reduce, ticket);
                open_tile();
            }
        }
        const PutOff& put_off = put_offs[side ^ 1];
        if (is_put_off) {
            if (warp == 0) {
                u64 to = look_back(reduce.told, put_off.tile);
                if (lane == 0) {
                    start = to;
                    if (put_off.tile > 0) {
                        tell(reduce.told + put_off.tile, SAID_ALL | (to + put_off.total));
                    }
                    if (put_off.tile + 1 == tiles) {
                        reduce.told[tiles] = to + put_off.total;
                    }
                }
            }
            if (is_last_warp) {
                u64 known = Op::NEUTRAL;
                if (put_off.is_continued) {
                    op.at(put_off.tile * TILE);
                    known = carry_back(reduce.carried, put_off.tile, op);
                    if (lane == 0 && put_off.total == 0) {
                        tell_carry(reduce.carried, put_off.tile, SAID_ALL, op(known, put_off.left_open));
                    }
                }
                if (lane == 0) {
                    carry_in = known;
                }
            }
        }
        __syncthreads();
        if (is_put_off) {
            // A warp's own results, many of them at whole lines.
            const u64* from = results[side ^ 1][warp];
            const Word* keys_from = result_keys[side ^ 1][warp];
            const u32 ahead = put_off.ahead[warp], written = min(put_off.counts[warp], ROOM);
            const u64 to = start + ahead;
            // Wraps below the first one.
            const u32 skipped = written < 4 * WARP ? 0 : (u32)to & (WARP - 1);
            for (u32 base = 0; base < written + skipped; base += WARP) {
                u32 at = base + lane - skipped;
                if (at < written) {
                    u64 result = from[at];
                    if (ahead + at == 0) {
                        op.at(put_off.tile * TILE);
                        result = op(carry_in, result);
                    }
                    __stcs(reduce.keys_to + to + at, keys_from[at]);
                    result = op.back(reduce, result);
                    if (reduce.to_bytes == 4) {
                        __stcs((u32*)reduce.values_to + to + at, (u32)result);
                    } else {
                        __stcs((u64*)reduce.values_to + to + at, result);
                    }
                }
            }
            // Its lanes write there next.
            __syncwarp();
        }
        is_put_off = was_there;
    }
    op.end(reduce);
}

// Blocks that stay, of REDUCERS threads.
extern "C" __global__ void __launch_bounds__(REDUCERS, REDUCER_BLOCKS)
few_sum(const __grid_constant__ Reduce reduce) {
    reduce_few(reduce, Sum());
}

#if VALUE_BYTES == 8
extern "C" __global__ void __launch_bounds__(REDUCERS, 2) few_checked(const __grid_constant__ Reduce reduce) {
    reduce_few(reduce, CheckedSum{0, NOBODY, reduce.kind == KIND_EXTENDED});
}
#endif

#if VALUE_BYTES > 0
extern "C" __global__ void __launch_bounds__(REDUCERS, REDUCER_BLOCKS)
few_float(const __grid_constant__ Reduce reduce) {
    reduce_few(reduce, FloatSum());
}

extern "C" __global__ void __launch_bounds__(REDUCERS, REDUCER_BLOCKS)
few_least(const __grid_constant__ Reduce reduce) {
    reduce_few(reduce, Least());
}
#endif
