// Streams of the paper on relational algebra that need no CTA-join: block streaming alone (Figures 15, 16), and UNION.
//
// `paper_stream` loads all blocks of a partition, checks their ranges and does nothing with what is left. UNION looks
// every tuple up in the other block by binary search, which says where it stands among both: its number is that of the
// results before it on its own side and on the other.

struct Nothing {
    u64 discarded;
    u64 blocks;
    __device__ __forceinline__ void loaded(u32 lefts, u32 rights) { blocks += (lefts > 0) + (rights > 0); }
    __device__ __forceinline__ void merge(u32, u32) { __syncthreads(); }
    __device__ __forceinline__ void run(const Range&) {}
};

// A block a partition. Shared memory: blocks of both inputs.
extern "C" __global__ void __launch_bounds__(512, 2) paper_stream(const __grid_constant__ Merge merge) {
    DYNAMIC_SHARED(u64, shared);
    Nothing step = {0, 0};
    stream_partition(merge, blocks_at((u8*)shared, merge), step);
}

// Places among the results of each tuple of a block that is one, and how many there are. All threads call it.
__device__ __forceinline__ u32 number_heads(const Word* keys, u32 count, const Word* others, u32 other_count,
                                            u16* numbers) {
    u32 carried = 0, total = 0;
    for (u32 base = 0; base < count; base += blockDim.x) {
        u32 i = base + threadIdx.x;
        bool is_result = i < count && (i == 0 || keys[i - 1] != keys[i]);
        if (is_result && other_count > 0) {
            u32 at = bound_in(others, 0, other_count, keys[i], false);
            is_result = at == other_count || others[at] != keys[i];
        }
        u32 before = carried + scan_block((u32)is_result, &total);
        if (i < count) {
            numbers[i] = (u16)before;
        }
        carried += total;
    }
    if (threadIdx.x == 0) {
        numbers[count] = (u16)carried;
    }
    __syncthreads();
    return carried;
}

struct Union {
    const Merge& merge_of;
    const Blocks& blocks_of;
    Stage& stage;
    Written& at;
    u16* left_numbers;
    u16* right_numbers;
    u64 discarded;
    u64 blocks;

    __device__ __forceinline__ void loaded(u32 lefts, u32 rights) { blocks += (lefts > 0) + (rights > 0); }

    // Stages results of one side, those of a number from `done` on.
    __device__ __forceinline__ void put_side(const Word* keys, const u8* values, u32 count, const u16* numbers,
                                             const Word* others, u32 other_count, const u16* other_numbers, u32 done,
                                             u32 take, u32 to) const {
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            if (numbers[i + 1] > numbers[i]) {
                u32 number = numbers[i] + other_numbers[bound_in(others, 0, other_count, keys[i], false)] - done;
                if (number < take) {
                    stage.keys[to + number] = keys[i];
                    u32 bytes = merge_of.sink.left_bytes;
                    store_value(stage.left, to + number, bytes, load_value(values, i, bytes));
                }
            }
        }
    }

    __device__ __forceinline__ void merge(u32 lefts, u32 rights) {
        const Blocks& b = blocks_of;
        u32 total = number_heads(b.left, lefts, nullptr, 0, left_numbers);
        total += number_heads(b.right, rights, b.left, lefts, right_numbers);
        emit(merge_of.sink, stage, at, total, [&](u64 done, u32 take, u32 to) {
            put_side(b.left, b.left_values, lefts, left_numbers, b.right, rights, right_numbers, (u32)done, take, to);
            put_side(b.right, b.right_values, rights, right_numbers, b.left, lefts, left_numbers, (u32)done, take, to);
        });
        __syncthreads();
    }

    __device__ __forceinline__ void run(const Range& range) {
        bool is_left = range.left < range.left_end;
        const View& view = is_left ? merge_of.left : merge_of.right;
        emit(merge_of.sink, stage, at, 1, [&](u64, u32, u32 to) {
            if (threadIdx.x == 0) {
                u64 slot = slot_of(view, is_left ? range.left : range.right);
                stage.keys[to] = view.keys[slot];
                store_value(stage.left, to, merge_of.sink.left_bytes, load_value(view.values, slot, view.value_bytes));
            }
        });
    }
};

// A block a partition. Shared memory: blocks of both inputs, a stage of a block's tuples, and a number of 16 bits for
// each tuple of both blocks and one more.
extern "C" __global__ void __launch_bounds__(512, 2) paper_union(const __grid_constant__ Merge merge) {
    DYNAMIC_SHARED(u64, shared);
    Blocks blocks = blocks_at((u8*)shared, merge);
    u8* staged = behind(blocks, merge);
    Stage stage = stage_at(staged, merge.block_tuples, merge.sink);
    u16* numbers = (u16*)(stage.right + (u64)merge.block_tuples * merge.sink.right_bytes);
    Written at = start_writing(merge.sink, blockIdx.x);
    Union step = {merge, blocks, stage, at, numbers, numbers + merge.block_tuples + 1, 0, 0};
    stream_partition(merge, blocks, step);
    end_writing(merge.sink, stage, at);
}
