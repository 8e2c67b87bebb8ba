// Floors and ceilings of ascending queries, by the merge of sweep.cuh.
//
// A floor is the key before the slot where the merge of upper bounds ends. Before the first slot of a chunk that is the
// last tuple of the line before it, which is read where it lies. A tile that is not merged goes through the image, for
// floors a mirrored one.

// The query's tuple by the image, for each query of a warp in any order.
template <bool IS_FLOOR>
__device__ __forceinline__ void search_near(const Arguments& image, const Batch& batch, const Near& near, Rows row,
                                            uint4* stage, const Ends& ends) {
    // Places of the image between which tuples of queries between both ends are. A floor can be in the line before the
    // one where its upper bound is.
    u32 begin = IS_FLOOR ? image.last_line - ends.lines[1] : ends.lines[0];
    u32 end = IS_FLOOR ? image.last_line - max(ends.lines[0], 1u) + 1 : ends.lines[1];
    end = min(end, image.last_line);
    u64 span = span_of(image, image.levels);
    u32 first = (u32)(begin / span), last = (u32)(end / span);
    const u32 none = IS_FLOOR ? 0 : TUPLES;
    for (; row.left > 0; advance(batch, row)) {
        Word query = row.query, aim = IS_FLOOR ? (Word)~query : query;
        bool is_between = ends.queries[0] <= query && query <= ends.queries[1];
        u32 lowest = is_between ? begin : 0, highest = is_between ? end : image.last_line;
        u32 at = line_between(image, is_between ? first : 0, is_between ? last : image.top_count, aim);
        at = max(at, lowest);
        load_lines(image, stage, line_at<IS_FLOOR>(image, at));
        u32 passed = staged_passed<IS_FLOOR>(stage, query);
        // A border whose cell the query shares was not passed. The last place has no border.
        bool is_right = passed == none && at < highest;
        if (__any_sync(FULL, is_right)) {
            at = is_right ? next_place<IS_FLOOR>(image, aim, at + 1, highest) : at;
            load_lines(image, stage, line_at<IS_FLOOR>(image, at));
            passed = staged_passed<IS_FLOOR>(stage, query);
        }
        Found found = found_staged<IS_FLOOR>(image, stage, line_at<IS_FLOOR>(image, at), passed);
        if (IS_FLOOR) {
            hold(batch, near, query, found);
        }
        answer_near(batch, near, row.at, found);
    }
}

// What a tile is asked for.
template <bool IS_FLOOR> struct SweepNear {
    typedef Found Answer;
    const Near& near;

    static __device__ __forceinline__ bool passes(Word key, Word query) { return ::passes<IS_FLOOR>(key, query); }

    __device__ __forceinline__ Found at_slot(const Arguments& image, const Batch& batch, const Columned& lines,
                                             u32 slot, Word query) const {
        if (IS_FLOOR && slot == 0) {
            Found none = {0, 0, 0, false};
            if (lines.first_rank == 0) {
                return none;
            }
            u32 line = (u32)(lines.first_rank / TUPLES) - 1;
            const u32* words = (const u32*)(image.lines + (u64)line * LINE_PARTS);
            Found found = {lines.first_rank - 1, last_key(image, line), line_value(words, TUPLES - 1), true};
            hold(batch, near, query, found);
            return found;
        }
        u32 place = IS_FLOOR ? slot - 1 : min(slot, lines.size - 1);
        Found found = {lines.first_rank + place, lines.keys[place], 0, IS_FLOOR || slot < lines.size};
#if VALUE_BYTES > 0
        found.value = lines.values[place];
#endif
        if (IS_FLOOR) {
            hold(batch, near, query, found);
        }
        return found;
    }

    __device__ __forceinline__ void put(const Batch& batch, u64 at, const Found& found) const {
        answer_near(batch, near, at, found);
    }

    __device__ __forceinline__ void search(const Arguments& image, const Batch& batch, const Rows& row, uint4* stage,
                                           const Ends& ends) const {
        search_near<IS_FLOOR>(image, batch, near, row, stage, ends);
    }
};

// A block a tile.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sweep_floor(const __grid_constant__ Sweep table, const __grid_constant__ Batch batch,
                const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, shared);
    __shared__ Ends ends;
    sweep_tile(table, batch, SweepNear<true>{near}, shared, ends);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sweep_ceiling(const __grid_constant__ Sweep table, const __grid_constant__ Batch batch,
                  const __grid_constant__ Near near) {
    DYNAMIC_SHARED(uint4, shared);
    __shared__ Ends ends;
    sweep_tile(table, batch, SweepNear<false>{near}, shared, ends);
}
