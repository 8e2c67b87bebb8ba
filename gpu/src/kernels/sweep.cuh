// Ascending queries: a merge of the batch with the tuple lines, which are read once and in order. What sweep.cu and
// near_sweep.cu have in common.
//
// A block takes a tile of `rows` times THREADS consecutive queries. Two of its warps find the lines of the tile's
// first and last query, 32 probes a round; the lines between go through shared memory in chunks, parted into a column
// of keys and one of values, and each warp walks its rows of 32 queries along the keys: 32 probes at once find where a
// row may end, then each lane bisects the few keys between. Each tile verifies as it reads that it ascends.
//
// A tile that does not, or whose queries are few among many lines, is searched: each lane descends the device image to
// its own line, below the part of the top that the tile's first and last query span if its query lies between these.
// So order decides speed, never answers.
//
// Besides WORD_BYTES and VALUE_BYTES: TUPLES (a line) and VALUES_AT (bytes), THREADS (a block), LEVELS_MAX and FANOUT.
// Dynamic shared memory: 64 bytes a line of a chunk, and no less a thread.

// Blocks of a multiprocessor that registers must suffice for.
#if WORD_BYTES == 16
#define BLOCKS 3
#elif __CUDA_ARCH__ >= 800
#define BLOCKS 5
#else
#define BLOCKS 4
#endif
#define KEYS_BYTES (TUPLES * WORD_BYTES)
#define VALUES_BYTES (TUPLES * VALUE_BYTES)
// Parts of 16 bytes, where columns take whole ones.
#define WHOLE_PARTS (KEYS_BYTES % 16 == 0 && VALUES_BYTES % 16 == 0)
#define KEY_PARTS (KEYS_BYTES / 16)
#define VALUE_PARTS (VALUES_BYTES / 16)
// Keys from one probe of a row's end to the next.
#define STRIDE 8u

// The same as Arguments in algorithm/sweep.rs. `rows` of 32 queries are a warp's part of a tile; lines of a chunk are
// what shared memory holds; a tile whose ends lie `stream_lines` or more apart is not streamed. Nothing is done if
// `order`, unless it is null, says that `sample_order` met more than `descents_max` descents.
struct Sweep {
    Arguments image;
    const u32* order;
    u32 rows;
    u32 chunk_lines;
    u32 stream_lines;
    u32 descents_max;
};
static_assert(sizeof(Sweep) == BYTES_OF_SWEEP, "Arguments of algorithm/sweep.rs");

__device__ __forceinline__ Word from_lane(Word word, u32 lane) {
#if WORD_BYTES == 16
    u64 high = __shfl_sync(FULL, (u64)(word >> 64), (int)lane);
    return (Word)high << 64 | __shfl_sync(FULL, (u64)word, (int)lane);
#else
    return __shfl_sync(FULL, word, (int)lane);
#endif
}

// The first line whose last word a search does not pass, or the last line; a whole warp for one query.
template <class Asked> static __device__ u32 border(const Arguments& image, Word query) {
    u32 lane = threadIdx.x % WARP, begin = 0, end = image.last_line;
    while (begin < end) {
        u32 step = (end - begin) / (WARP + 1) + 1;
        u64 probe = (u64)begin + (u64)(lane + 1) * step - 1;
        bool below = probe < end && Asked::passes(last_key(image, probe), query);
        u32 passed = (u32)__popc(__ballot_sync(FULL, below));
        begin += passed * step;
        end = (u32)min((u64)end, (u64)begin + step - 1);
    }
    return begin;
}

// A warp's rows of a tile, in turn, with the next query on its way.
struct Rows {
    u64 at;
    u32 left;
    Word query;
    Word next;
    // Lane 0: the query before the row.
    Word before;
};

__device__ __forceinline__ Rows first_row(const Batch& batch, u64 tile_at, u32 rows) {
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 start = tile_at + (u64)warp * rows * WARP;
    Rows row;
    row.at = start + lane;
    row.left = start >= batch.count ? 0 : (u32)min((u64)rows, (batch.count - start + WARP - 1) / WARP);
    row.query = load_query(batch, row.at);
    row.next = row.left > 1 ? load_query(batch, row.at + WARP) : row.query;
    row.before = warp > 0 && lane == 0 ? load_query(batch, start - 1) : row.query;
    return row;
}

// Whether the lane's query is not below the one before it; once for each row, by all lanes.
__device__ __forceinline__ bool ascends(Rows& row) {
    u32 lane = threadIdx.x % WARP;
    Word left = from_lane(row.query, (lane + WARP - 1) % WARP);
    bool ascending = (lane == 0 ? row.before : left) <= row.query;
    row.before = left;
    return ascending;
}

__device__ __forceinline__ void advance(const Batch& batch, Rows& row) {
    row.at += WARP;
    row.left--;
    row.query = row.next;
    if (row.left > 1) {
        row.next = load_query(batch, row.at + WARP);
    }
}

// Parts lines into columns.
__device__ __forceinline__ void load_chunk(const uint4* lines, u32 count, uint4* keys, uint4* values) {
    u32 part = threadIdx.x % LINE_PARTS, first = threadIdx.x / LINE_PARTS;
    const uint4* from = lines + threadIdx.x % LINE_PARTS;
#if WHOLE_PARTS
    // Every fourth part of the lines is this thread's, and all of them go to the same column, or are zero bytes.
    bool is_key = part < KEY_PARTS;
    uint4* to = is_key ? keys + part : values + part - VALUES_AT / 16;
    u32 step = is_key ? KEY_PARTS : VALUE_PARTS;
    if (is_key || (VALUE_PARTS > 0 && part >= VALUES_AT / 16)) {
#pragma unroll 4
        for (u32 line = first; line < count; line += THREADS / LINE_PARTS) {
            copy_part(to + line * step, from + (u64)line * LINE_PARTS);
        }
    }
#else
#pragma unroll 4
    for (u32 line = first; line < count; line += THREADS / LINE_PARTS) {
        uint4 loaded = __ldcs(from + (u64)line * LINE_PARTS);
        u32 words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 word = 4 * part + i;
            if (word < KEYS_BYTES / 4) {
                ((u32*)keys)[line * (KEYS_BYTES / 4) + word] = words[i];
            } else if (word >= VALUES_AT / 4) {
                ((u32*)values)[line * (VALUES_BYTES / 4) + word - VALUES_AT / 4] = words[i];
            }
        }
    }
#endif
    arrived();
}

// Lines in shared memory, as columns.
struct Columned {
    const Word* keys;
    const Value* values;
    u64 first_rank;
    u32 size;
};

// Answers a tile from all lines of `begin` to `end`. Whether some query of this thread is below the one before it.
template <class Asked>
__device__ __forceinline__ bool stream(const Sweep& table, const Batch& batch, const Asked& asked, Rows& row,
                                       uint4* shared, u32 begin, u32 end) {
    const Word* keys = (const Word*)shared;
    uint4* value_parts = shared + (table.chunk_lines * KEYS_BYTES + 15) / 16;
    u32 lane = threadIdx.x % WARP;
    bool ascending = ascends(row), pending = true;
    typename Asked::Answer answer = {};
    for (u32 left = end - begin + 1, line = begin; left > 0;) {
        u32 count = min(left, table.chunk_lines);
        load_chunk(table.image.lines + (u64)line * LINE_PARTS, count, shared, value_parts);
        __syncthreads();
        u64 first_rank = (u64)line * TUPLES;
        u32 size = (u32)min((u64)count * TUPLES, table.image.tuples - first_rank), from = 0;
        bool is_last = count == left;
        Word last = keys[size - 1];
        while (row.left > 0) {
            bool is_here = pending && (is_last || !Asked::passes(last, row.query));
            u32 lanes = __ballot_sync(FULL, is_here);
            if (lanes == 0) {
                break;
            }
            // How far the row goes.
            u32 highest = WARP - 1 - (u32)__clz((int)lanes);
            Word farthest = from_lane(row.query, highest);
            u32 probe = from + (lane + 1) * STRIDE - 1;
            u32 passed = (u32)__popc(__ballot_sync(FULL, probe < size && Asked::passes(keys[probe], farthest)));
            u32 wide = passed < WARP ? min((passed + 1) * STRIDE - 1, size - from) : size - from;
            u32 slot = from;
            while (wide > 0) {
                u32 half = (wide + 1) / 2;
                slot += Asked::passes(keys[slot + half - 1], row.query) ? half : 0;
                wide -= half;
            }
            from = (u32)__shfl_sync(FULL, slot, (int)highest);
            if (is_here) {
                Columned lines = {keys, (const Value*)value_parts, first_rank, size};
                answer = asked.at_slot(table.image, batch, lines, slot, row.query);
                pending = false;
            }
            if (__any_sync(FULL, pending)) {
                break;
            }
            asked.put(batch, row.at, answer);
            advance(batch, row);
            if (row.left > 0) {
                ascending = ascends(row) && ascending;
            }
            pending = true;
        }
        left -= count;
        line += count;
        __syncthreads();
    }
    return !ascending;
}

// The first place of `begin` to `end` whose edge is not below the aim, or `end`; it is near by.
template <bool IS_MIRRORED>
__device__ __forceinline__ u32 next_place(const Arguments& image, Word aim, u32 begin, u32 end) {
    for (u32 step = 0; begin < end;) {
        u32 middle = begin + min(step, (end - begin) / 2);
        bool below = edge_key<IS_MIRRORED>(image, middle) < aim;
        begin = below ? middle + 1 : begin;
        end = below ? end : middle;
        step = below ? 2 * step + 1 : step;
    }
    return begin;
}

// Loads a line for each lane of a warp; four lanes load those of all four, since lanes that share one cost one access.
__device__ __forceinline__ void load_lines(const Arguments& image, uint4* stage, u32 line) {
    u32 member = threadIdx.x % LINE_PARTS, first = threadIdx.x - member;
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < LINE_PARTS; i++) {
        u32 number = (u32)__shfl_sync(FULL, line, (int)((first + i) % WARP));
        copy_part(stage + staged(first + i, member), image.lines + (u64)number * LINE_PARTS + member);
    }
    arrived();
    __syncwarp();
}

// The first and the last query of a tile, and their lines.
struct Ends {
    Word queries[2];
    u32 lines[2];
};

// Answers a tile: the one of this block, which shares `ends`.
template <class Asked>
__device__ __forceinline__ void sweep_tile(const Sweep& table, const Batch& batch, const Asked& asked, uint4* shared,
                                           Ends& ends) {
    if (table.order != nullptr && __ldg(table.order) > table.descents_max) {
        return;
    }
    u64 tile_at = (u64)blockIdx.x * table.rows * THREADS;
    u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        u64 tile_last = min(tile_at + (u64)table.rows * THREADS, batch.count) - 1;
        Word query = load_query(batch, warp == 0 ? tile_at : tile_last);
        u32 line = border<Asked>(table.image, query);
        if (threadIdx.x % WARP == 0) {
            ends.queries[warp] = query;
            ends.lines[warp] = line;
        }
    }
    Rows row = first_row(batch, tile_at, table.rows);
    __syncthreads();
    u32 begin = ends.lines[0], end = ends.lines[1];
    if (begin <= end && end - begin < table.stream_lines) {
        bool descends = stream(table, batch, asked, row, shared, begin, end);
        if (__syncthreads_or(descends) == 0) {
            return;
        }
    }
    asked.search(table.image, batch, first_row(batch, tile_at, table.rows), shared, ends);
}
