// Descents through the device image: the top in shared memory, a node a level, then a tuple line. What spine.cu and
// near.cu have in common.
//
// Each thread descends with a query of its own, but loads are shared, since what counts is how many accesses there are:
// two threads load a node for each of them in turn, 16 bytes each, and four a line. Nodes are looked at where they
// arrive, a half by each thread, and the halves' counts are exchanged; lines go through shared memory, where the thread
// that asked reads its own. The few queries that have to look at the next line do so together.
//
// LOW_BITS of 32 stand for the fine image (fine.cuh), which is searched in the same way. A mirrored image (image.cuh)
// is searched by inverted queries, and leads to places that count from the last line.
//
// Besides what image.cuh takes: LOW_BITS, THREADS (most of a block). Dynamic shared memory: STAGE_PARTS of 16 bytes,
// then the compact top; FEW_PARTS for short batches.

// What stands before the top in shared memory: a line for each thread.
#define STAGE_PARTS (THREADS * LINE_PARTS)

#if LOW_BITS == 32
typedef FineTop AnyTop;

__device__ __forceinline__ AnyTop any_top_at(const Arguments&, const uint4* at) { return fine_top_at(at); }

__device__ __forceinline__ u32 descend(const Arguments& table, const AnyTop& top, Word query) {
    return fine_line(table, top, query);
}
#else
typedef Top AnyTop;

__device__ __forceinline__ AnyTop any_top_at(const Arguments& table, const uint4* at) { return top_at(table, at); }

// The line of a query, or one left of it; for a whole warp.
__device__ __forceinline__ u32 descend(const Arguments& table, const AnyTop& top, Word query) {
    Word offset = offset_of(table, query);
    Bucket bucket = bucket_of(table, top, offset);
    u32 at = bucket.begin;
    for (u32 size = max(bucket.end, at) - at; size > 0;) {
        u32 half = (size + 1) / 2;
        at += top.codes[at + half - 1] < bucket.low ? half : 0;
        size -= half;
    }
    return line_below(table, at, offset, below_bucket(table, top, bucket, at));
}
#endif

// Right of a place whose edge is below an aim, because a border whose cell the aim shares was not passed: the first
// place whose edge is not below, which is near by. The last one has no border.
template <bool IS_MIRRORED> __device__ __forceinline__ u32 step_right(const Arguments& table, u32 at, Word aim) {
    u32 begin = at + 1, end = table.last_line, step = 0;
    while (begin < end) {
        u32 middle = begin + min(step, (end - begin) / 2);
        if (edge_key<IS_MIRRORED>(table, middle) < aim) {
            begin = middle + 1;
            step = 2 * step + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

// 16 bytes of a line to shared memory, which are there after `arrived` and a barrier. Through level 1: where many
// queries ask for one line, level 2 would serve them one after another. Lines of a large table leave level 2 first, since
// nodes are read more often.
__device__ __forceinline__ void copy_line_part(const Arguments& table, uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800 && !defined(PLEACH_EMULATED)
    u64 policy;
    if (table.streams_lines != 0) {
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    }
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "l"(policy)
                 : "memory");
#else
    *to = __ldcs(from);
#endif
}

// Stages the lines of those threads of a warp that want one.
__device__ __forceinline__ void load_lines(const Arguments& table, uint4* stage, u32 line, bool is_wanted) {
    u32 member = threadIdx.x % LINE_PARTS, first = threadIdx.x - member;
    u32 wanted = __ballot_sync(FULL, is_wanted) >> first % WARP;
#pragma unroll
    for (u32 i = 0; i < LINE_PARTS; i++) {
        u32 number = __shfl_sync(FULL, line, (int)((first + i) % WARP));
        if ((wanted >> i & 1) != 0) {
            copy_line_part(table, stage + staged(first + i, member), table.lines + (u64)number * LINE_PARTS + member);
        }
    }
    arrived();
    __syncwarp();
}

// The compact top, or a fine one, copied to shared memory.
__device__ __forceinline__ AnyTop load_top(const Arguments& table, uint4* to) {
    for (u32 i = threadIdx.x; i < table.compact_parts; i += blockDim.x) {
        to[i] = __ldg(table.compact + i);
    }
    __syncthreads();
    return any_top_at(table, to);
}

// Whether a sample says that the batch ascends, so that `sweep` answers it.
__device__ __forceinline__ bool is_swept(const Arguments& table) {
    return table.order != nullptr && *table.order <= table.descents_max;
}

// The first query of a thread; its next ones are a grid further. Short batches are spread over all blocks by warps.
__device__ __forceinline__ u64 first_query(u64 count) {
    u64 warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    bool is_short = count <= (u64)gridDim.x * blockDim.x;
    return (is_short ? warp * gridDim.x + blockIdx.x : blockIdx.x * warps + warp) * WARP + threadIdx.x % WARP;
}

// A place of the image, and the words of its line, wherever they lie.
struct Place {
    u32 at;
    const u32* words;
};

#if LOW_BITS != 32

// Short batches: a warp a query, whose lanes load more than they need, so that two levels, or the last level and the
// lines, cost one wait. A block answers GROUP queries at a time, the bits of which are a byte of the bitmap.
#define GROUP 8u
// What a warp has in shared memory, the parts of all lines of a node, and its answer. Behind that of all warps are
// the group's queries.
#define LOW_FANOUT (256u / LOW_BITS + 1)
#define OWN_PARTS (LOW_FANOUT * LINE_PARTS + 4u)
#define FEW_PARTS (GROUP * (OWN_PARTS + 1u))
static_assert(FEW_PARTS * 16 == BYTES_OF_FEW, "as in algorithm/spine.rs");

// A node.
struct Node {
    uint4 low;
    uint4 high;
};

__device__ __forceinline__ Node load_node(const uint4* from) { return {__ldg(from), __ldg(from + 1)}; }

__device__ __forceinline__ uint4 from_lane(const uint4& part, u32 lane) {
    return {__shfl_sync(FULL, part.x, (int)lane), __shfl_sync(FULL, part.y, (int)lane),
            __shfl_sync(FULL, part.z, (int)lane), __shfl_sync(FULL, part.w, (int)lane)};
}

__device__ __forceinline__ u32 low_child_of(const Arguments& table, const Node& node, Word offset,
                                            const Interval& interval) {
    u32 code = low_code(table, offset, interval);
    return low_below(table, node.low, code) + low_below(table, node.high, code);
}

// The place of an aim by the image, or one left of it; by a whole warp.
template <bool IS_MIRRORED>
__device__ __forceinline__ Place few_line(const Arguments& table, uint4* stage, Word aim) {
    u32 lane = threadIdx.x % WARP;
    Top top = top_at(table, table.compact);
    Word offset = offset_of(table, aim);
    Bucket bucket = bucket_of(table, top, offset);
    u32 at = bucket.begin, size = max(bucket.end, at) - at;
    while (size > 0) {
        // Each lane looks at the last code of a piece.
        u32 piece = (size + WARP - 1) / WARP, end = (lane + 1) * piece;
        bool is_below = end <= size && top.codes[at + end - 1] < bucket.low;
        u32 below = (u32)__popc(__ballot_sync(FULL, is_below));
        at += below * piece;
        size = min(size - below * piece, piece - 1);
    }
    Interval interval = below_bucket(table, top, bucket, at);
    u32 level = table.levels;
    // A node and all its children, which are nodes of level `level - 2`.
    for (; level >= 2; level -= 2) {
        Node node = load_node(table.nodes[level - 1] + (u64)at * 2), child = {};
        u64 number = (u64)at * FANOUT + lane;
        if (lane < FANOUT && number * span_of(table, level - 1) <= table.last_line) {
            child = load_node(table.nodes[level - 2] + number * 2);
        }
        u32 below = child_of(node.low, node.high, offset, interval);
        node.low = from_lane(child.low, below);
        node.high = from_lane(child.high, below);
        at = at * FANOUT + below;
        if (level > 2) {
            at = at * FANOUT + child_of(node.low, node.high, offset, interval);
        } else {
            at = at * LOW_FANOUT + low_child_of(table, node, offset, interval);
        }
    }
    // The last node and all its lines, or a line.
    u32 lines = level == 1 ? LOW_FANOUT : 1u, row = 0;
    u32 first = min(at * lines, table.last_line);
    lines = min(lines, table.last_line - first + 1);
    u32 lowest = IS_MIRRORED ? table.last_line - (first + lines - 1) : first;
    const u32 rounds = (LOW_FANOUT * LINE_PARTS + WARP - 1) / WARP;
    uint4 parts[rounds];
#pragma unroll
    for (u32 i = 0; i < rounds; i++) {
        u32 part = i * WARP + lane;
        if (part < lines * LINE_PARTS) {
            parts[i] = __ldcs(table.lines + (u64)lowest * LINE_PARTS + part);
        }
    }
    if (level == 1) {
        Node node = load_node(table.nodes[0] + (u64)at * 2);
        row = min(low_child_of(table, node, offset, interval), lines - 1);
    }
#pragma unroll
    for (u32 i = 0; i < rounds; i++) {
        u32 part = i * WARP + lane;
        if (part < lines * LINE_PARTS) {
            stage[part] = parts[i];
        }
    }
    __syncwarp();
    u32 slot = IS_MIRRORED ? lines - 1 - row : row;
    return {first + row, (const u32*)(stage + slot * LINE_PARTS)};
}

// Answers a short batch: a block has GROUP warps, and there are groups for all of the bitmap's words of 32 bits. A warp
// looks a query up; then a warp writes the answers of a group.
template <class Asked>
__device__ __forceinline__ void few_all(const Arguments& table, const Batch& batch, uint4* stage, const Asked& asked) {
    typedef typename Asked::Answer Answer;
    static_assert(sizeof(Answer) <= 64, "an answer has four parts");
    Word* queries = (Word*)(stage + GROUP * OWN_PARTS);
    u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u64 step = (u64)gridDim.x * GROUP, groups_end = (batch.count + 31) / 32 * 32;
    // A group's queries travel together, which over the link is one access.
    Batch plain = batch;
    plain.kind = KIND_WORD;
    Word query = 0;
    if (threadIdx.x < GROUP) {
        query = load_query(plain, (u64)blockIdx.x * GROUP + threadIdx.x);
    }
    uint4* own = stage + warp * OWN_PARTS;
    for (u64 first = (u64)blockIdx.x * GROUP; first < groups_end; first += step) {
        if (threadIdx.x < GROUP) {
            queries[threadIdx.x] = query;
            query = load_query(plain, first + step + threadIdx.x);
        }
        __syncthreads();
        if (first + warp < batch.count) {
            Answer found = asked.look(table, batch, own, encode(queries[warp], batch.kind));
            if (lane == 0) {
                *(Answer*)(own + LOW_FANOUT * LINE_PARTS) = found;
            }
        }
        __syncthreads();
        if (warp == 0) {
            bool is_there = false;
            u64 at = first + lane;
            if (lane < GROUP && at < batch.count) {
                Answer found = *(const Answer*)(stage + lane * OWN_PARTS + LOW_FANOUT * LINE_PARTS);
                asked.answer(batch, at, found);
                is_there = asked.is_there(found);
            }
            u32 bits = __ballot_sync(FULL, is_there);
            if (lane == 0 && batch.present != nullptr) {
                ((u8*)batch.present)[first / 8] = (u8)bits;
            }
        }
        __syncthreads();
    }
}

#endif

#if LOW_BITS != 8

// What follows searches lines that stay with the host, part by part; see algorithm/hybrid.rs.
#define PIECE_LINES 64u

// The same as Part in algorithm/hybrid.rs.
struct Part {
    u32* numbers;
    u8* touched;
    uint4* lines;
    u64 first;
    u64 count;
};
static_assert(sizeof(Part) == BYTES_OF_PART, "as in algorithm/spine.rs");

// Writes down the line of each query, and marks its piece.
template <bool IS_MIRRORED>
__device__ __forceinline__ void note_lines(const Arguments& table, const Batch& batch, const Part& part,
                                           uint4* stage) {
    if (is_swept(table)) {
        return;
    }
    AnyTop top = load_top(table, stage + STAGE_PARTS);
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = first_query(batch.count); (at & ~(u64)31) < batch.count; at += step) {
        Word query = load_query(batch, at);
        u32 line = line_at<IS_MIRRORED>(table, descend(table, top, IS_MIRRORED ? (Word)~query : query));
        if (at >= batch.count) {
            continue;
        }
        part.numbers[at] = line;
        u8* piece = part.touched + line / PIECE_LINES;
        if (*piece == 0) {
            *piece = 1;
        }
    }
}

#endif
