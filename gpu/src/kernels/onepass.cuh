// What operators of one pass share: vectors of columns, lines fetched ahead, and what tiles tell each other.
//
// A block takes the tile of its own number: blocks begin in the order of their numbers, so those it waits for run or
// have run. It tells what its tile counted as soon as it knows; a warp then adds up what the tiles before told
// (decoupled look-back), the nearest first, until one told the sum of all up to it, and tells that sum of its own.
// A word says by two bits whether nothing is told yet, the tile's own number, or that of all tiles up to it; words are
// whole, so that nothing else has to be ordered.

#define SAID_OWN (1ull << 62)
#define SAID_ALL (2ull << 62)
#define SAID_NUMBER (SAID_OWN - 1)

// What other blocks tell, and telling it: past the caches of a multiprocessor.
#ifdef PLEACH_EMULATED
__device__ __forceinline__ u64 hear(const u64* from) { return __ldcg(from); }
__device__ __forceinline__ void tell(u64* to, u64 word) { __stcg(to, word); }
#else
__device__ __forceinline__ u64 hear(const u64* from) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ void tell(u64* to, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
#endif

// Brings bytes to the level 2 cache, where the device does so with one instruction: whole vectors from a whole one on.
__device__ __forceinline__ void fetch_ahead(const void* from, u32 bytes) {
#if !defined(PLEACH_EMULATED) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

// Some consecutive items by loads of at most 16 bytes; `from` is so aligned.
template <u32 COUNT> __device__ __forceinline__ void load_vector(const u32* from, u32 (&to)[COUNT]) {
    if constexpr (COUNT % 4 == 0) {
#pragma unroll
        for (u32 i = 0; i < COUNT; i += 4) {
            uint4 four = __ldg((const uint4*)(from + i));
            to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (u32 i = 0; i < COUNT; i += 2) {
            uint2 two = __ldg((const uint2*)(from + i));
            to[i] = two.x, to[i + 1] = two.y;
        }
    }
}
template <u32 COUNT> __device__ __forceinline__ void load_vector(const u64* from, u64 (&to)[COUNT]) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i += 2) {
        ulonglong2 two = __ldg((const ulonglong2*)(from + i));
        to[i] = two.x, to[i + 1] = two.y;
    }
}

// The same one by one, those past the last item as the last one; not aligned.
template <class T, u32 COUNT>
__device__ __forceinline__ void load_some(const T* from, u32 at, u32 count, T (&to)[COUNT]) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
        to[i] = __ldg(from + min(at + i, count - 1));
    }
}

template <u32 COUNT> __device__ __forceinline__ void store_vector(u32* to, const u32 (&from)[COUNT]) {
    if constexpr (COUNT % 4 == 0) {
#pragma unroll
        for (u32 i = 0; i < COUNT; i += 4) {
            __stcs((uint4*)(to + i), make_uint4(from[i], from[i + 1], from[i + 2], from[i + 3]));
        }
    } else {
#pragma unroll
        for (u32 i = 0; i < COUNT; i += 2) {
            __stcs((uint2*)(to + i), make_uint2(from[i], from[i + 1]));
        }
    }
}
template <u32 COUNT> __device__ __forceinline__ void store_vector(u64* to, const u64 (&from)[COUNT]) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i += 2) {
        __stcs((ulonglong2*)(to + i), make_ulonglong2(from[i], from[i + 1]));
    }
}

// Windows of a warp's width that are heard together.
#define WINDOWS 2u

// Which lanes of a window count: those from the nearest tile to the first that told of all, and whether there is one.
// False if one of them has told nothing yet.
__device__ __forceinline__ bool settle(u64 said, u32& lanes, bool& is_whole) {
    u32 all = __ballot_sync(FULL, said >= SAID_ALL), some = __ballot_sync(FULL, said >= SAID_OWN);
    is_whole = all != 0;
    lanes = is_whole ? all ^ (all - 1) : FULL;
    return (lanes & ~some) == 0;
}

// Sum of what the tiles before this one counted. A whole warp calls it.
__device__ __forceinline__ u64 look_back(const u64* told, u32 tile) {
    u32 lane = threadIdx.x % WARP;
    u64 sum = 0;
    bool is_whole = tile == 0;
    for (u32 end = tile; !is_whole; end -= min(end, WINDOWS * WARP)) {
        u64 said[WINDOWS];
#pragma unroll
        for (u32 i = 0; i < WINDOWS; i++) {
            u32 back = i * WARP + lane;
            said[i] = back < end ? hear(told + (end - 1 - back)) : SAID_ALL;
        }
#pragma unroll
        for (u32 i = 0; i < WINDOWS; i++) {
            if (!is_whole) {
                u32 lanes;
                while (!settle(said[i], lanes, is_whole)) {
                    if (said[i] < SAID_OWN) {
                        said[i] = hear(told + (end - 1 - (i * WARP + lane)));
                    }
                }
                sum += (lanes >> lane & 1) != 0 ? said[i] & SAID_NUMBER : 0;
            }
        }
    }
#pragma unroll
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        sum += __shfl_xor_sync(FULL, sum, step);
    }
    return sum;
}
