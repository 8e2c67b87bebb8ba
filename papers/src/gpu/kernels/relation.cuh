// What the operators of the paper on relational algebra share (Diamos et al. 2012, section 4): relations as they are
// read, results as they are written, searches, prefix sums.
//
// A relation is sorted columns, or a list of pages (section 4.3): slots of a pool, each a column's piece of
// `page_tuples`, whose order a directory says; `starts` has the rank of each page's first tuple and, last, of none. A
// rank is found by bisection, and streams step from page to page. Results are compacted in shared memory until it is
// full, then leave in bulk: to the block's own place in a temporary, which a gather closes up later, or to the block's
// own pages, each taken from the pool by an atomic increment and linked to the one before it. What does not fit there
// is counted and not written, so that the host can try again with sizes that are exact.
//
// Values have 0, 4 or 8 bytes, told by the launch.

#define NO_PAGE 0xFFFFFFFFu

// What is called from many places: part of each on a device, as all else; a call where g++ compiles, which is faster.
#ifdef PLEACH_EMULATED
#define MANY_CALLS __noinline__
#else
#define MANY_CALLS __forceinline__
#endif

#define OPERATION_JOIN 0u
#define OPERATION_INTERSECTION 1u
#define OPERATION_DIFFERENCE 2u
#define OPERATION_UNION 3u

// The same as View in relation/columns.rs. Of a dense relation `directory` is null.
struct View {
    const Word* keys;
    const u8* values;
    const u64* starts;
    const u32* directory;
    u64 tuples;
    u64 pages;
    u32 page_tuples;
    u32 value_bytes;
};
static_assert(sizeof(View) == BYTES_OF_PAPER_VIEW, "as in relation/columns.rs");

// The same as Sink in relation/sink.rs. Of a temporary `links` is null, and block b may write from places[b] on,
// before places[b + 1]. Of pages, `first` has the first one of each block.
struct Sink {
    Word* keys;
    u8* left;
    u8* right;
    const u64* places;
    u64* counts;
    u32* links;
    u32* first;
    u32* taken;
    u32* overflow;
    u32 pages;
    u32 page_tuples;
    u32 left_bytes;
    u32 right_bytes;
};
static_assert(sizeof(Sink) == BYTES_OF_PAPER_SINK, "as in relation/sink.rs");

__device__ __forceinline__ u64 load_value(const u8* from, u64 at, u32 bytes) {
    if (bytes == 8) {
        return ((const u64*)from)[at];
    }
    return bytes == 4 ? (u64)((const u32*)from)[at] : 0ull;
}

__device__ __forceinline__ void store_value(u8* to, u64 at, u32 bytes, u64 value) {
    if (bytes == 8) {
        ((u64*)to)[at] = value;
    } else if (bytes == 4) {
        ((u32*)to)[at] = (u32)value;
    }
}

// The page of a rank below the tuples; 0 of a dense relation.
__device__ __forceinline__ u64 page_of(const View& view, u64 rank) {
    u64 begin = 0, end = view.directory == nullptr ? 0 : view.pages;
    while (end - begin > 1) {
        u64 middle = begin + (end - begin) / 2;
        if (view.starts[middle] <= rank) {
            begin = middle;
        } else {
            end = middle;
        }
    }
    return begin;
}

// Moves a page on to that of a rank, which is not before it.
__device__ __forceinline__ u64 page_from(const View& view, u64 page, u64 rank) {
    while (view.directory != nullptr && page + 1 < view.pages && rank >= view.starts[page + 1]) {
        page++;
    }
    return page;
}

// Where the tuple of a rank stands, by a page at or before its own.
__device__ __forceinline__ u64 slot_from(const View& view, u64 page, u64 rank) {
    if (view.directory == nullptr) {
        return rank;
    }
    page = page_from(view, page, rank);
    return (u64)view.directory[page] * view.page_tuples + (rank - view.starts[page]);
}

__device__ __forceinline__ u64 slot_of(const View& view, u64 rank) {
    return slot_from(view, page_of(view, rank), rank);
}

__device__ __forceinline__ Word key_of(const View& view, u64 rank) { return view.keys[slot_of(view, rank)]; }

// First rank from `begin` on, before `end`, whose key is not below a key; not at most, of an upper bound.
__device__ MANY_CALLS u64 bound(const View& view, u64 begin, u64 end, Word key, bool is_upper) {
    while (begin < end) {
        u64 middle = begin + (end - begin) / 2;
        Word found = key_of(view, middle);
        if (found < key || (is_upper && found == key)) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

// The same among keys in shared memory.
__device__ __forceinline__ u32 bound_in(const Word* keys, u32 begin, u32 end, Word key, bool is_upper) {
    while (begin < end) {
        u32 middle = begin + (end - begin) / 2;
        Word found = keys[middle];
        if (found < key || (is_upper && found == key)) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

// Sum of the threads before this one in the block, and of all; all threads call it.
template <class T> __device__ __forceinline__ T scan_block(T mine, T* total) {
    __shared__ T warps[32];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    T sum = mine;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        T left = __shfl_up_sync(FULL, sum, step);
        sum += lane >= step ? left : (T)0;
    }
    if (lane == WARP - 1) {
        warps[warp] = sum;
    }
    __syncthreads();
    T before = 0, whole = 0;
    for (u32 i = 0; i < blockDim.x / WARP; i++) {
        before += i < warp ? warps[i] : (T)0;
        whole += warps[i];
    }
    __syncthreads();
    *total = whole;
    return before + sum - mine;
}

// Results of a block in shared memory, and how many are there.
struct Stage {
    Word* keys;
    u8* left;
    u8* right;
    u32 capacity;
    u32 staged;
};

// Bytes of a stage: as stage_bytes in relation/sink.rs.
__device__ __forceinline__ Stage stage_at(u8* shared, u32 capacity, const Sink& sink) {
    u8* left = shared + (u64)capacity * WORD_BYTES;
    return {(Word*)shared, left, left + (u64)capacity * sink.left_bytes, capacity, 0};
}

// How far a block has come with its results; the same in all of its threads.
struct Written {
    u32 block;
    u32 page;
    u32 filled;
    bool is_lost;
    u64 written;
    u64 count;
};

__device__ __forceinline__ Written start_writing(const Sink& sink, u32 block) {
    if (sink.links != nullptr && threadIdx.x == 0) {
        sink.first[block] = NO_PAGE;
    }
    return {block, NO_PAGE, sink.page_tuples, false, 0, 0};
}

__device__ MANY_CALLS void put(const Sink& sink, const Stage& stage, u64 to, u32 from, u32 count) {
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        sink.keys[to + i] = stage.keys[from + i];
        store_value(sink.left, to + i, sink.left_bytes, load_value(stage.left, from + i, sink.left_bytes));
        store_value(sink.right, to + i, sink.right_bytes, load_value(stage.right, from + i, sink.right_bytes));
    }
}

// Takes a page for the block, and links it to the one before.
__device__ __forceinline__ u32 take_page(const Sink& sink, const Written& at) {
    __shared__ u32 taken;
    if (threadIdx.x == 0) {
        u32 page = atomicAdd(sink.taken, 1u);
        taken = page < sink.pages ? page : NO_PAGE;
        if (taken != NO_PAGE) {
            sink.links[page] = NO_PAGE;
            *(at.page == NO_PAGE ? sink.first + at.block : sink.links + at.page) = page;
        }
    }
    __syncthreads();
    u32 page = taken;
    __syncthreads();
    return page;
}

// Writes what is staged. All threads call it, after a barrier; it ends with one.
__device__ MANY_CALLS void flush(const Sink& sink, Stage& stage, Written& at) {
    if (sink.links == nullptr) {
        u64 to = sink.places[at.block] + at.written;
        at.is_lost = at.is_lost || to + stage.staged > sink.places[at.block + 1];
        if (!at.is_lost) {
            put(sink, stage, to, 0, stage.staged);
        }
    } else {
        for (u32 done = 0; done < stage.staged && !at.is_lost;) {
            if (at.filled == sink.page_tuples) {
                u32 page = take_page(sink, at);
                at.is_lost = page == NO_PAGE;
                at.page = page;
                at.filled = 0;
            }
            if (!at.is_lost) {
                u32 take = min(stage.staged - done, sink.page_tuples - at.filled);
                put(sink, stage, (u64)at.page * sink.page_tuples + at.filled, done, take);
                at.filled += take;
                done += take;
            }
        }
    }
    at.written += stage.staged;
    stage.staged = 0;
    __syncthreads();
}

// Stages `total` results, as many at a time as fit: write(done, take, to) puts those from number `done` on at `to` on.
// All threads call it.
template <class Write>
__device__ __forceinline__ void emit(const Sink& sink, Stage& stage, Written& at, u64 total, const Write& write) {
    for (u64 done = 0; done < total && !at.is_lost;) {
        u32 take = (u32)min((u64)(stage.capacity - stage.staged), total - done);
        write(done, take, stage.staged);
        __syncthreads();
        stage.staged += take;
        done += take;
        if (stage.staged == stage.capacity) {
            flush(sink, stage, at);
        }
    }
    at.count += total;
}

// Writes the rest, and tells how many results there are, or would be.
__device__ __forceinline__ void end_writing(const Sink& sink, Stage& stage, Written& at) {
    flush(sink, stage, at);
    if (threadIdx.x == 0) {
        sink.counts[at.block] = at.count;
        if (at.is_lost) {
            atomicOr(sink.overflow, 1u);
        }
    }
}
