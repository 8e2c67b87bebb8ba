// Stages of the paper on relational algebra that stand alone: PROJECT (Figure 3), PRODUCT (Figure 4), the two passes of
// SELECT (Figure 5), and of the SET family and JOIN (Figures 6 and 7) the partition, its bounds, the scan, the gather.
//
// `paper_partition` is the double-sided search: a thread looks a pivot up in both inputs, so that tuples of a key
// are in one partition; each launch cuts every range of the last one, with pivots of the other side. `paper_bounds`
// leaves out what cannot match and says how many results to expect. `paper_select` compacts a CTA's share.
// `paper_scan` is one block: there are no more counts than CTAs.

// The same as Partition in relation/partition.rs: cuts at multiples of `from` are known, those of `to` wanted.
struct Partition {
    View left;
    View right;
    u64* left_cuts;
    u64* right_cuts;
    u32 partitions;
    u32 from;
    u32 to;
    u32 side;
};
static_assert(sizeof(Partition) == BYTES_OF_PAPER_PARTITION, "as in relation/partition.rs");

extern "C" __global__ void __launch_bounds__(256) paper_partition(const __grid_constant__ Partition cuts) {
    u32 wanted = cuts.partitions / cuts.to, parts = cuts.from / cuts.to;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i <= wanted; i += gridDim.x * blockDim.x) {
        u32 at = i * cuts.to, parent = at / cuts.from * cuts.from, part = (at - parent) / cuts.to;
        if (at == 0 || at == cuts.partitions) {
            cuts.left_cuts[at] = at == 0 ? 0 : cuts.left.tuples;
            cuts.right_cuts[at] = at == 0 ? 0 : cuts.right.tuples;
        } else if (part > 0) {
            bool is_first = parent == 0, is_last = parent + cuts.from == cuts.partitions;
            Range range = {is_first ? 0 : cuts.left_cuts[parent],
                           is_last ? cuts.left.tuples : cuts.left_cuts[parent + cuts.from],
                           is_first ? 0 : cuts.right_cuts[parent],
                           is_last ? cuts.right.tuples : cuts.right_cuts[parent + cuts.from]};
            cut(cuts.left, cuts.right, range, cuts.side, part, parts, cuts.left_cuts + at, cuts.right_cuts + at);
        }
    }
}

// The same as Bounds in relation/partition.rs.
struct Bounds {
    View left;
    View right;
    const u64* left_cuts;
    const u64* right_cuts;
    Range* ranges;
    u64* expected;
    u32 partitions;
    u32 operation;
};
static_assert(sizeof(Bounds) == BYTES_OF_PAPER_BOUNDS, "as in relation/partition.rs");

extern "C" __global__ void __launch_bounds__(256) paper_bounds(const __grid_constant__ Bounds bounds) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < bounds.partitions; i += gridDim.x * blockDim.x) {
        Range range = {bounds.left_cuts[i], bounds.left_cuts[i + 1], bounds.right_cuts[i], bounds.right_cuts[i + 1]};
        range = narrow(bounds.left, bounds.right, range, bounds.operation);
        bounds.ranges[i] = range;
        u64 lefts = range.left_end - range.left, rights = range.right_end - range.right, expected = lefts + rights;
        switch (bounds.operation) {
        // Right if the keys of one side are unique.
        case OPERATION_JOIN: expected = max(lefts, rights); break;
        case OPERATION_INTERSECTION: expected = min(lefts, rights); break;
        case OPERATION_DIFFERENCE: expected = lefts; break;
        }
        bounds.expected[i] = expected;
    }
}

#define SCANNED 8u

// Where each of the counts begins, and their sum. One block.
extern "C" __global__ void __launch_bounds__(1024) paper_scan(const u64* counts, u64* places, u32 count) {
    u64 carried = 0;
    for (u32 base = 0; base < count; base += blockDim.x * SCANNED) {
        u64 mine[SCANNED], sum = 0, total;
#pragma unroll
        for (u32 i = 0; i < SCANNED; i++) {
            u32 at = base + threadIdx.x * SCANNED + i;
            mine[i] = at < count ? counts[at] : 0;
            sum += mine[i];
        }
        u64 before = carried + scan_block(sum, &total);
#pragma unroll
        for (u32 i = 0; i < SCANNED; i++) {
            u32 at = base + threadIdx.x * SCANNED + i;
            if (at < count) {
                places[at] = before;
            }
            before += mine[i];
        }
        carried += total;
    }
    if (threadIdx.x == 0) {
        places[count] = carried;
    }
}

// The same as Gather in relation/sink.rs.
struct Gather {
    const Word* keys;
    const u8* left;
    const u8* right;
    const u64* from;
    const u64* to;
    Word* keys_to;
    u8* left_to;
    u8* right_to;
    u32 left_bytes;
    u32 right_bytes;
};
static_assert(sizeof(Gather) == BYTES_OF_PAPER_GATHER, "as in relation/sink.rs");

#define GATHERED 4u

// Several loads of a thread before the first is stored.
template <class T> __device__ __forceinline__ void copy(T* to, const T* from, u64 count) {
    for (u64 base = threadIdx.x; base < count; base += blockDim.x * GATHERED) {
        T items[GATHERED];
#pragma unroll
        for (u32 i = 0; i < GATHERED; i++) {
            u64 at = base + i * blockDim.x;
            items[i] = from[at < count ? at : count - 1];
        }
#pragma unroll
        for (u32 i = 0; i < GATHERED; i++) {
            if (base + i * blockDim.x < count) {
                to[base + i * blockDim.x] = items[i];
            }
        }
    }
}

__device__ __forceinline__ void copy_values(u8* to, const u8* from, u64 at, u64 source, u64 count, u32 bytes) {
    if (bytes == 4) {
        copy((u32*)to + at, (const u32*)from + source, count);
    } else if (bytes == 8) {
        copy((u64*)to + at, (const u64*)from + source, count);
    }
}

// A block a place.
extern "C" __global__ void __launch_bounds__(256) paper_gather(const __grid_constant__ Gather gather) {
    u64 from = gather.from[blockIdx.x], to = gather.to[blockIdx.x], count = gather.to[blockIdx.x + 1] - to;
    if (count > 0) {
        copy(gather.keys_to + to, gather.keys + from, count);
        copy_values(gather.left_to, gather.left, to, from, count, gather.left_bytes);
        copy_values(gather.right_to, gather.right, to, from, count, gather.right_bytes);
    }
}

// The same as Select in relation/unary.rs. A key is taken from low to high, both included, if its bits are these.
struct Select {
    View from;
    Sink sink;
    u64 low;
    u64 high;
    u64 mask;
    u64 bits;
    u64 share;
};
static_assert(sizeof(Select) == BYTES_OF_PAPER_SELECT, "as in relation/unary.rs");

#define SELECTED 4u

// A block a share. Shared memory: a stage.
extern "C" __global__ void __launch_bounds__(512) paper_select(const __grid_constant__ Select select) {
    DYNAMIC_SHARED(u64, shared);
    const View& from = select.from;
    u32 tile = blockDim.x * SELECTED;
    Stage stage = stage_at((u8*)shared, tile, select.sink);
    Written at = start_writing(select.sink, blockIdx.x);
    u64 begin = min(blockIdx.x * select.share, from.tuples), end = min(begin + select.share, from.tuples);
    u64 page = page_of(from, begin);
    for (u64 base = begin; base < end; base += tile) {
        Word keys[SELECTED];
        u64 slots[SELECTED], match_count = 0, matches;
        page = page_from(from, page, base);
#pragma unroll
        for (u32 i = 0; i < SELECTED; i++) {
            u64 rank = base + i * blockDim.x + threadIdx.x;
            slots[i] = slot_from(from, page, rank < end ? rank : end - 1);
            keys[i] = from.keys[slots[i]];
        }
        // A count of 16 bits for each of the tuples, so that one prefix sum serves them all.
#pragma unroll
        for (u32 i = 0; i < SELECTED; i++) {
            u64 key = keys[i], rank = base + i * blockDim.x + threadIdx.x;
            bool is_match = key >= select.low && key <= select.high && (key & select.mask) == select.bits && rank < end;
            match_count |= (u64)is_match << 16 * i;
        }
        u64 before = scan_block(match_count, &matches);
        u32 total = 0, numbers[SELECTED];
#pragma unroll
        for (u32 i = 0; i < SELECTED; i++) {
            numbers[i] = total + (u32)(before >> 16 * i & 0xFFFF);
            total += (u32)(matches >> 16 * i & 0xFFFF);
        }
        emit(select.sink, stage, at, total, [&](u64 done, u32 take, u32 to) {
#pragma unroll
            for (u32 i = 0; i < SELECTED; i++) {
                if ((match_count >> 16 * i & 1) != 0 && numbers[i] - (u32)done < take) {
                    u32 place = to + numbers[i] - (u32)done;
                    stage.keys[place] = keys[i];
                    u64 value = load_value(from.values, slots[i], from.value_bytes);
                    store_value(stage.left, place, select.sink.left_bytes, value);
                }
            }
        });
    }
    end_writing(select.sink, stage, at);
}

// The same as Project in relation/unary.rs.
struct Project {
    View from;
    Word* keys;
    u8* values;
    u64 value_mask;
    u32 key_shift;
    u32 value_shift;
    u32 value_bytes;
    u32 unused;
};
static_assert(sizeof(Project) == BYTES_OF_PAPER_PROJECT, "as in relation/unary.rs");

extern "C" __global__ void __launch_bounds__(256) paper_project(const __grid_constant__ Project project) {
    u64 step = (u64)gridDim.x * blockDim.x, first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 rank = first; rank < project.from.tuples; rank += step) {
        u64 slot = slot_of(project.from, rank);
        project.keys[rank] = (Word)(project.from.keys[slot] >> project.key_shift);
        u64 value = load_value(project.from.values, slot, project.from.value_bytes);
        store_value(project.values, rank, project.value_bytes, value >> project.value_shift & project.value_mask);
    }
}

// The same as Product in relation/unary.rs. The results of left tuple i are from i * rights on.
struct Product {
    View left;
    View right;
    Word* keys;
    u8* left_to;
    u8* right_to;
    u32 left_bytes;
    u32 right_bytes;
    u32 combine;
    u32 unused;
};
static_assert(sizeof(Product) == BYTES_OF_PAPER_PRODUCT, "as in relation/unary.rs");

#define COMBINE_BOTH 0u
#define COMBINE_SUM 1u
// Tuples of either side that a block buffers.
#define PRODUCT_LEFTS 16u
#define PRODUCT_RIGHTS 512u

// A block combines some left tuples with some right ones, both buffered, and writes a run of each left one.
extern "C" __global__ void __launch_bounds__(256) paper_product(const __grid_constant__ Product product) {
    __shared__ Word keys[PRODUCT_LEFTS];
    __shared__ u64 lefts[PRODUCT_LEFTS];
    __shared__ u64 rights[PRODUCT_RIGHTS];
    u64 pieces = (product.right.tuples + PRODUCT_RIGHTS - 1) / PRODUCT_RIGHTS;
    u64 tasks = (product.left.tuples + PRODUCT_LEFTS - 1) / PRODUCT_LEFTS * pieces;
    for (u64 task = blockIdx.x; task < tasks; task += gridDim.x) {
        u64 left = task / pieces * PRODUCT_LEFTS, right = task % pieces * PRODUCT_RIGHTS;
        u32 left_count = (u32)min(product.left.tuples - left, (u64)PRODUCT_LEFTS);
        u32 right_count = (u32)min(product.right.tuples - right, (u64)PRODUCT_RIGHTS);
        for (u32 i = threadIdx.x; i < left_count; i += blockDim.x) {
            u64 slot = slot_of(product.left, left + i);
            keys[i] = product.left.keys[slot];
            lefts[i] = load_value(product.left.values, slot, product.left.value_bytes);
        }
        for (u32 i = threadIdx.x; i < right_count && product.right.value_bytes > 0; i += blockDim.x) {
            u64 slot = slot_of(product.right, right + i);
            rights[i] = load_value(product.right.values, slot, product.right.value_bytes);
        }
        __syncthreads();
        for (u32 i = 0; i < left_count; i++) {
            u64 to = (left + i) * product.right.tuples + right;
            for (u32 j = threadIdx.x; j < right_count; j += blockDim.x) {
                product.keys[to + j] = keys[i];
                u64 other = product.right.value_bytes > 0 ? rights[j] : 0;
                u64 value = product.combine == COMBINE_SUM ? lefts[i] + other : lefts[i];
                store_value(product.left_to, to + j, product.left_bytes, value);
                store_value(product.right_to, to + j, product.right_bytes, other);
            }
        }
        __syncthreads();
    }
}
