// Ascending queries: values, presence and the ranks of lower bounds, by the merge of sweep.cuh.

// Answers a tile by a search for each query, in any order.
__device__ __forceinline__ void search(const Arguments& image, const Batch& batch, Rows row, uint4* stage,
                                       const Ends& ends) {
    u64 span = span_of(image, image.levels);
    u32 first = (u32)(ends.lines[0] / span), last = (u32)(ends.lines[1] / span);
    for (; row.left > 0; advance(batch, row)) {
        Word query = row.query;
        bool is_between = ends.queries[0] <= query && query <= ends.queries[1];
        u32 begin = is_between ? ends.lines[0] : 0, end = is_between ? ends.lines[1] : image.last_line;
        u32 line = line_between(image, is_between ? first : 0, is_between ? last : image.top_count, query);
        line = max(line, begin);
        load_lines(image, stage, line);
        Hit hit = {0, 0, false};
        u32 slot = slot_of(stage, query, hit.found);
        // A border whose cell the query shares was not passed. The last line has no border.
        bool is_right = slot == TUPLES && line < end;
        if (__any_sync(FULL, is_right)) {
            line = is_right ? next_place<false>(image, query, line + 1, end) : line;
            load_lines(image, stage, line);
            slot = slot_of(stage, query, hit.found);
        }
        complete_staged(image, stage, hit, line, slot);
        answer_hit(batch, row.at, hit);
    }
}

// What a tile is asked for.
struct SweepGet {
    typedef Hit Answer;

    static __device__ __forceinline__ bool passes(Word key, Word query) { return key < query; }

    __device__ __forceinline__ Hit at_slot(const Arguments&, const Batch&, const Columned& lines, u32 slot,
                                           Word query) const {
        Hit hit = {lines.first_rank + slot, 0, slot < lines.size && lines.keys[slot] == query};
#if VALUE_BYTES > 0
        hit.value = hit.found ? lines.values[slot] : 0;
#endif
        return hit;
    }

    __device__ __forceinline__ void put(const Batch& batch, u64 at, const Hit& hit) const {
        answer_hit(batch, at, hit);
    }

    __device__ __forceinline__ void search(const Arguments& image, const Batch& batch, const Rows& row, uint4* stage,
                                           const Ends& ends) const {
        ::search(image, batch, row, stage, ends);
    }
};

// A block a tile.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sweep(const __grid_constant__ Sweep table, const __grid_constant__ Batch batch) {
    DYNAMIC_SHARED(uint4, shared);
    __shared__ Ends ends;
    sweep_tile(table, batch, SweepGet(), shared, ends);
}

// How often a query is below the one before it, in up to `places` rows that are spread over the batch, and from each to
// the next; one block. It only helps to choose: `found` gets that number, and how many pairs were looked at.
extern "C" __global__ void __launch_bounds__(1024)
    sample_order(const __grid_constant__ Batch batch, u32 places, u32* found) {
    __shared__ Word firsts[WARP], lasts[WARP];
    __shared__ u32 counts[WARP];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    // Rows must not overlap.
    u64 whole = max(batch.count / WARP, (u64)1);
    u32 rows = (u32)min((u64)places, whole), a_warp = (rows + warps - 1) / warps, descents = 0;
    u32 begin = min(warp * a_warp, rows), end = min(begin + a_warp, rows);
    Word before = 0;
    for (u32 i = begin; i < end; i++) {
        u64 row = rows > 1 ? (whole - 1) * i / (rows - 1) : 0;
        Word query = load_query(batch, row * WARP + lane);
        Word left = from_lane(query, (lane + WARP - 1) % WARP);
        if (i == begin && lane == 0) {
            firsts[warp] = query;
        }
        descents += lane == 0 ? i > begin && query < before : query < left;
        before = left;
    }
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        descents += __shfl_xor_sync(FULL, descents, (int)half);
    }
    if (lane == 0) {
        lasts[warp] = before;
        counts[warp] = descents;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sum = counts[0];
        for (u32 i = 1; i < warps && i * a_warp < rows; i++) {
            sum += counts[i] + (firsts[i] < lasts[i - 1]);
        }
        found[0] = sum;
        found[1] = rows * WARP - 1;
    }
}
