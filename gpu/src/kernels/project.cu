// PROJECT and PRODUCT: columns that are computed from columns, in place, so that memory is all they cost.
//
// `project` makes a key and a value of each tuple, each of up to eight bit fields of key, value and rank. A thread
// takes one vector of two or four tuples, so many that no column has more than 16 bytes of it, and a field for all
// tuples of the vector at a time.
//
// `product_pairs` makes all pairs of tuples: result t is of left tuple t / rights and right tuple t % rights. A thread
// writes a vector of 16 bytes or two, of keys first and then of values, and divides by multiplications.
//
// Memory is fastest where what is under way lies together: so blocks are small, and a thread has one vector.
//
// `pick` takes values in the order of numbers, after a sort.
//
// VALUE_BYTES is that of the column of values of `project`, and of the results' values of `product_pairs`.

#define PROJECTORS 256u
#define FIELDS_MAX 8u

#define SOURCE_KEY 0u
#define SOURCE_VALUE 1u
#define SOURCE_RANK 2u

// The same as Part in relation/project.rs: of a source shifted right, some bits, shifted left.
struct Part {
    u64 mask;
    u32 source;
    u16 right;
    u16 left;
};

// The same as Project in relation/project.rs; of keys and values. A column that is not wanted has no bytes.
struct Project {
    const Word* keys;
    const Value* values;
    void* to[2];
    u32 to_bytes[2];
    u32 parts[2];
    u32 tuples;
    u32 uses;
    u32 is_aligned;
    u32 unused;
    Part part[2][FIELDS_MAX];
};
static_assert(sizeof(Project) == BYTES_OF_PROJECT, "as in relation/project.rs");

#define USES_KEYS 1u
#define USES_VALUES 2u

template <u32 COUNT>
__device__ __forceinline__ void make(const Project& project, u32 side, const Word (&keys)[COUNT],
                                     const Value (&values)[COUNT], u32 rank, u64 (&made)[COUNT]) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
        made[i] = 0;
    }
    for (u32 number = 0; number < project.parts[side]; number++) {
        u64 mask = project.part[side][number].mask;
        u32 source = project.part[side][number].source;
        u32 right = project.part[side][number].right, left = project.part[side][number].left;
#pragma unroll
        for (u32 i = 0; i < COUNT; i++) {
            u64 word = source == SOURCE_KEY ? (u64)keys[i] : source == SOURCE_VALUE ? (u64)values[i] : (u64)(rank + i);
            made[i] |= (word >> right & mask) << left;
        }
    }
}

// A vector of COUNT tuples a thread.
template <u32 COUNT> __device__ __forceinline__ void project_tile(const Project& project) {
    const u32 begin = blockIdx.x * (PROJECTORS * COUNT), at = threadIdx.x * COUNT;
    const u32 tiled = min(project.tuples - begin, PROJECTORS * COUNT);
    const bool is_whole = tiled == PROJECTORS * COUNT && project.is_aligned != 0;
    Word keys[COUNT] = {};
    Value values[COUNT] = {};
    if ((project.uses & USES_KEYS) != 0) {
        if (is_whole) {
            load_vector(project.keys + begin + at, keys);
        } else {
            load_some(project.keys + begin, at, tiled, keys);
        }
    }
#if VALUE_BYTES > 0
    if ((project.uses & USES_VALUES) != 0) {
        if (is_whole) {
            load_vector(project.values + begin + at, values);
        } else {
            load_some(project.values + begin, at, tiled, values);
        }
    }
#endif
#pragma unroll
    for (u32 side = 0; side < 2; side++) {
        if (project.to_bytes[side] == 0) {
            continue;
        }
        u64 made[COUNT];
        make(project, side, keys, values, begin + at, made);
        u32* narrow_to = (u32*)project.to[side] + begin + at;
        u64* wide_to = (u64*)project.to[side] + begin + at;
        if (is_whole && project.to_bytes[side] == 4) {
            u32 narrow[COUNT];
#pragma unroll
            for (u32 j = 0; j < COUNT; j++) {
                narrow[j] = (u32)made[j];
            }
            store_vector(narrow_to, narrow);
        } else if (is_whole) {
            store_vector(wide_to, made);
        } else {
#pragma unroll
            for (u32 j = 0; j < COUNT; j++) {
                if (at + j < tiled && project.to_bytes[side] == 4) {
                    __stcs(narrow_to + j, (u32)made[j]);
                } else if (at + j < tiled) {
                    __stcs(wide_to + j, made[j]);
                }
            }
        }
    }
}

// Blocks of PROJECTORS threads, of two tuples each, or of four where all columns have 4 bytes.
#if WORD_BYTES == 4 && VALUE_BYTES <= 4
extern "C" __global__ void __launch_bounds__(PROJECTORS) project_four(const __grid_constant__ Project project) {
    project_tile<4>(project);
}
#endif

extern "C" __global__ void __launch_bounds__(PROJECTORS) project_two(const __grid_constant__ Project project) {
    project_tile<2>(project);
}

// The same as Pick in relation/sort.rs.
struct Pick {
    const Value* values;
    const u32* numbers;
    Value* to;
    u64 count;
};
static_assert(sizeof(Pick) == BYTES_OF_PICK, "as in relation/project.rs");

// Any grid.
extern "C" __global__ void __launch_bounds__(PROJECTORS) pick(const __grid_constant__ Pick pick) {
    u64 step = (u64)gridDim.x * PROJECTORS;
    for (u64 at = (u64)blockIdx.x * PROJECTORS + threadIdx.x; at < pick.count; at += step) {
        __stcs(pick.to + at, __ldg(pick.values + __ldcs(pick.numbers + at)));
    }
}

// The same as Product in relation/project.rs. `magic` is 2^64 / rights, rounded up; of one right tuple it is 0.
struct Product {
    const Word* left_keys;
    const Value* left_values;
    const Value* rights_from;
    Word* keys_to;
    Value* values_to;
    u64 results;
    u64 magic;
    u32 rights;
    u32 combine;
    u32 is_aligned;
    u32 unused;
};
static_assert(sizeof(Product) == BYTES_OF_PRODUCT, "as in relation/project.rs");

#define COMBINE_LEFT 0u
#define COMBINE_RIGHT 1u
#define COMBINE_SUM 2u
#define COMBINE_XOR 3u
#define COMBINE_MIN 4u
#define COMBINE_MAX 5u

// Results of a block.
#define PRODUCT_TILE (PROJECTORS * 4u)

// Vectors of a column of a tile: `vector(i, j, to)` makes results from left tuple i and right tuple j on, `one` one.
template <class T, class MakeVector, class MakeOne>
__device__ __forceinline__ void expand(const Product& product, T* to, const MakeVector& vector, const MakeOne& one) {
    const u32 COUNT = 16 / sizeof(T);
    const u64 begin = (u64)blockIdx.x * PRODUCT_TILE;
    const u32 tiled = (u32)min(product.results - begin, (u64)PRODUCT_TILE);
    // The quotient, or one more.
    u64 left = product.magic == 0 ? begin : __umul64hi(begin, product.magic);
    left -= left * product.rights > begin;
    const u32 right = (u32)(begin - left * product.rights);
    to += begin;
    auto place = [&](u32 at, u64& i, u32& j) {
        u32 past = right + at;
        u32 whole = product.magic == 0 ? past : (u32)__umul64hi(past, product.magic);
        i = left + whole;
        j = past - whole * product.rights;
    };
    u64 i;
    u32 j;
    if (tiled == PRODUCT_TILE) {
#pragma unroll 4
        for (u32 at = threadIdx.x * COUNT; at < PRODUCT_TILE; at += PROJECTORS * COUNT) {
            T made[COUNT];
            place(at, i, j);
            vector(i, j, made);
            store_vector(to + at, made);
        }
    } else {
        for (u32 at = threadIdx.x; at < tiled; at += PROJECTORS) {
            place(at, i, j);
            __stcs(to + at, one(i, j));
        }
    }
}

// Left items of a vector: mostly the same one.
template <class T, u32 COUNT>
__device__ __forceinline__ void lefts(const Product& product, const T* from, u64 i, u32 j, T (&to)[COUNT]) {
    T item = __ldg(from + i);
#pragma unroll
    for (u32 k = 0; k < COUNT; k++) {
        to[k] = item;
        j++;
        if (k + 1 < COUNT && j == product.rights) {
            j = 0;
            i++;
            item = __ldg(from + i);
        }
    }
}

#if VALUE_BYTES > 0
template <u32 COUNT>
__device__ __forceinline__ void rights(const Product& product, u32 j, Value (&to)[COUNT]) {
    if (product.is_aligned != 0 && j % COUNT == 0 && j + COUNT <= product.rights) {
        load_vector(product.rights_from + j, to);
    } else {
#pragma unroll
        for (u32 k = 0; k < COUNT; k++) {
            to[k] = __ldg(product.rights_from + j);
            j = j + 1 == product.rights ? 0 : j + 1;
        }
    }
}

__device__ __forceinline__ Value combined(u32 combine, Value left, Value right) {
    switch (combine) {
    case COMBINE_SUM: return left + right;
    case COMBINE_XOR: return left ^ right;
    case COMBINE_MIN: return left < right ? left : right;
    default: return left > right ? left : right;
    }
}
#endif

// A block a tile of PRODUCT_TILE results.
extern "C" __global__ void __launch_bounds__(PROJECTORS) product_pairs(const __grid_constant__ Product product) {
    expand(
        product, product.keys_to,
        [&](u64 i, u32 j, Word(&to)[16 / WORD_BYTES]) { lefts(product, product.left_keys, i, j, to); },
        [&](u64 i, u32) { return __ldg(product.left_keys + i); });
#if VALUE_BYTES > 0
    const u32 COUNT = 16 / VALUE_BYTES;
    if (product.combine == COMBINE_LEFT) {
        expand(
            product, product.values_to,
            [&](u64 i, u32 j, Value(&to)[COUNT]) { lefts(product, product.left_values, i, j, to); },
            [&](u64 i, u32) { return __ldg(product.left_values + i); });
    } else if (product.combine == COMBINE_RIGHT) {
        expand(
            product, product.values_to, [&](u64, u32 j, Value(&to)[COUNT]) { rights(product, j, to); },
            [&](u64, u32 j) { return __ldg(product.rights_from + j); });
    } else {
        expand(
            product, product.values_to,
            [&](u64 i, u32 j, Value(&to)[COUNT]) {
                Value others[COUNT];
                lefts(product, product.left_values, i, j, to);
                rights(product, j, others);
#pragma unroll
                for (u32 k = 0; k < COUNT; k++) {
                    to[k] = combined(product.combine, to[k], others[k]);
                }
            },
            [&](u64 i, u32 j) {
                return combined(product.combine, __ldg(product.left_values + i), __ldg(product.rights_from + j));
            });
    }
#endif
}
