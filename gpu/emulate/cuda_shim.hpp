// Runs the text of CUDA kernels as C++ on a CPU, so that sanitizers and strict rules watch it.
//
// A program is: this header; the kernels' text; a line PLEACH_ENTRY(name) for each `extern "C" __global__` function,
// which makes `emulate_name`. A thread is a fiber (fibers.hpp). Warp collectives and barriers are rendezvous, which
// check what CUDA leaves undefined: a mask without its caller, lanes that meet at different calls or with different
// masks, lanes that have left, barriers that not all reach, shuffles from lanes that take no part. Lanes run in
// ascending, descending or random order, so that a missing barrier shows as a wrong answer; shared memory has its
// exact size and holds 0xA5 before each block. An error ends the launch, not the process, but for a sanitizer's.
//
// Options: -std=gnu++17 -O1 -g -fPIC -shared -fno-strict-aliasing -ffp-contract=off -fno-weak
// -fno-omit-frame-pointer -fno-thread-jumps -fno-tree-ch -fno-tree-dominator-opts -DPLEACH_PATHS -Wno-unknown-pragmas
// and for sanitizers -fsanitize=address,undefined -fsanitize-sections=pleach_shared -fno-sanitize-recover=all.
// With PLEACH_PATHS frame pointers tell two calls of one function apart; the -fno options keep g++ from copying calls.
// Not watched: races that no order of lanes shows; a spin on memory without an atomic, __ldcg, __nanosleep or fence.

#pragma once
#define PLEACH_EMULATED 1

#include "fibers.hpp"

// Words of CUDA's language.
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __constant__ static
#define __shared__ static __attribute__((section("pleach_shared")))
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_assume(condition) \
    ((condition) ? (void)0 : ::pleach_shim::fail(PLEACH_SITE("__builtin_assume"), "the assumption is false"))
#define DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(::pleach_shim::dynamic_shared)

#define PLEACH_VECTOR2(name, T, bytes)                                  \
    struct __attribute__((aligned(bytes), may_alias)) name { T x, y; }; \
    static inline name make_##name(T x, T y) { return name{x, y}; }
#define PLEACH_VECTOR4(name, T, bytes)                                        \
    struct __attribute__((aligned(bytes), may_alias)) name { T x, y, z, w; }; \
    static inline name make_##name(T x, T y, T z, T w) { return name{x, y, z, w}; }
PLEACH_VECTOR2(uchar2, unsigned char, 2)
PLEACH_VECTOR2(ushort2, unsigned short, 4)
PLEACH_VECTOR2(int2, int, 8)
PLEACH_VECTOR2(uint2, unsigned, 8)
PLEACH_VECTOR2(float2, float, 8)
PLEACH_VECTOR2(longlong2, long long, 16)
PLEACH_VECTOR2(ulonglong2, unsigned long long, 16)
PLEACH_VECTOR2(double2, double, 16)
PLEACH_VECTOR4(uchar4, unsigned char, 4)
PLEACH_VECTOR4(ushort4, unsigned short, 8)
PLEACH_VECTOR4(int4, int, 16)
PLEACH_VECTOR4(uint4, unsigned, 16)
PLEACH_VECTOR4(float4, float, 16)

namespace pleach_shim {

// Collectives of a warp.
template <class T> struct Identity { typedef T Type; };

template <class T> __forceinline__ U64 to_bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA exchanges values of 4 or 8 bytes");
    U64 bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> __forceinline__ T of_bits(U64 bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
// Types CUDA's calls have overloads for: smaller ones are converted to int, 128 bits have none.
template <class T> struct Exchanged { typedef T Type; };
template <> struct Exchanged<bool> { typedef int Type; };
template <> struct Exchanged<char> { typedef int Type; };
template <> struct Exchanged<signed char> { typedef int Type; };
template <> struct Exchanged<unsigned char> { typedef int Type; };
template <> struct Exchanged<short> { typedef int Type; };
template <> struct Exchanged<unsigned short> { typedef int Type; };

#define PLEACH_SHUFFLE(name, operation, Parameter)                                                              \
    template <class T>                                                                                          \
    __forceinline__ typename Exchanged<T>::Type name(const Site* site, U32 mask, T value, Parameter parameter,  \
                                                     int width = 32) {                                          \
        typedef typename Exchanged<T>::Type Type;                                                               \
        return of_bits<Type>(meet(site, operation, mask, to_bits((Type)value), (U32)parameter, (U32)width));    \
    }
PLEACH_SHUFFLE(shuffle, SHUFFLE, int)
PLEACH_SHUFFLE(shuffle_up, SHUFFLE_UP, U32)
PLEACH_SHUFFLE(shuffle_down, SHUFFLE_DOWN, U32)
PLEACH_SHUFFLE(shuffle_xor, SHUFFLE_XOR, int)

template <class T> __forceinline__ U32 match_any(const Site* site, U32 mask, T value) {
    return (U32)meet(site, MATCH, mask, to_bits((typename Exchanged<T>::Type)value));
}
__forceinline__ void sync_warp(const Site* site, U32 mask = 0xFFFFFFFFu) { meet(site, SYNC, mask, 0); }
__forceinline__ U32 ballot(const Site* site, U32 mask, int vote) { return (U32)meet(site, BALLOT, mask, vote != 0); }
__forceinline__ int any(const Site* site, U32 mask, int vote) { return (int)meet(site, ANY, mask, vote != 0); }
__forceinline__ int all(const Site* site, U32 mask, int vote) { return (int)meet(site, ALL, mask, vote != 0); }

#define PLEACH_REDUCE(name, operation, signed_operation)                                                     \
    __forceinline__ U32 name(const Site* site, U32 mask, U32 value) {                                        \
        return (U32)meet(site, operation, mask, value);                                                      \
    }                                                                                                        \
    __forceinline__ int name(const Site* site, U32 mask, int value) {                                        \
        return (int)(U32)meet(site, signed_operation, mask, (U32)value);                                     \
    }
PLEACH_REDUCE(reduce_add, ADD, ADD)
PLEACH_REDUCE(reduce_min, MIN, MIN_SIGNED)
PLEACH_REDUCE(reduce_max, MAX, MAX_SIGNED)
PLEACH_REDUCE(reduce_and, AND, AND)
PLEACH_REDUCE(reduce_or, OR, OR)
PLEACH_REDUCE(reduce_xor, XOR, XOR)

// Barriers of the block.
__forceinline__ void sync_threads(const Site* site) { meet_all(site, false); }
__forceinline__ int sync_threads_count(const Site* site, int vote) { return (int)(U32)meet_all(site, vote != 0); }
__forceinline__ int sync_threads_or(const Site* site, int vote) { return (U32)meet_all(site, vote != 0) != 0; }
__forceinline__ int sync_threads_and(const Site* site, int vote) {
    U64 counted = meet_all(site, vote != 0);
    return (U32)counted == (U32)(counted >> 32);
}

// Accesses with a hint to the caches, for the types CUDA has them for.
template <class T> struct Loadable { static const bool value = false; };
#define PLEACH_LOADABLE(T) \
    template <> struct Loadable<T> { static const bool value = true; };
PLEACH_LOADABLE(char) PLEACH_LOADABLE(signed char) PLEACH_LOADABLE(unsigned char)
PLEACH_LOADABLE(short) PLEACH_LOADABLE(unsigned short) PLEACH_LOADABLE(int) PLEACH_LOADABLE(unsigned)
PLEACH_LOADABLE(long) PLEACH_LOADABLE(unsigned long) PLEACH_LOADABLE(long long) PLEACH_LOADABLE(unsigned long long)
PLEACH_LOADABLE(float) PLEACH_LOADABLE(double) PLEACH_LOADABLE(uchar2) PLEACH_LOADABLE(uchar4)
PLEACH_LOADABLE(ushort2) PLEACH_LOADABLE(ushort4) PLEACH_LOADABLE(int2) PLEACH_LOADABLE(int4)
PLEACH_LOADABLE(uint2) PLEACH_LOADABLE(uint4) PLEACH_LOADABLE(longlong2) PLEACH_LOADABLE(ulonglong2)
PLEACH_LOADABLE(float2) PLEACH_LOADABLE(float4) PLEACH_LOADABLE(double2)

}  // namespace pleach_shim

template <class T> __forceinline__ T __ldg(const T* from) {
    static_assert(pleach_shim::Loadable<T>::value, "CUDA has no such load of this type");
    return *from;
}
template <class T> __forceinline__ T __ldcs(const T* from) { return __ldg(from); }
template <class T> __forceinline__ T __ldca(const T* from) { return __ldg(from); }
template <class T> __forceinline__ T __ldlu(const T* from) { return __ldg(from); }
template <class T> __forceinline__ T __ldcg(const T* from) {
    pleach_shim::spun();
    return __ldg(from);
}
template <class T> __forceinline__ T __ldcv(const T* from) { return __ldcg(from); }
template <class T> __forceinline__ void __stcs(T* to, typename pleach_shim::Identity<T>::Type value) {
    static_assert(pleach_shim::Loadable<T>::value, "CUDA has no such store of this type");
    *to = value;
}

#define __stcg(to, value) __stcs(to, value)
#define __stwb(to, value) __stcs(to, value)
#define __stwt(to, value) __stcs(to, value)

#define __syncthreads() ::pleach_shim::sync_threads(PLEACH_SITE("__syncthreads"))
#define __syncthreads_count(vote) ::pleach_shim::sync_threads_count(PLEACH_SITE("__syncthreads_count"), vote)
#define __syncthreads_or(vote) ::pleach_shim::sync_threads_or(PLEACH_SITE("__syncthreads_or"), vote)
#define __syncthreads_and(vote) ::pleach_shim::sync_threads_and(PLEACH_SITE("__syncthreads_and"), vote)
#define __syncwarp(...) ::pleach_shim::sync_warp(PLEACH_SITE("__syncwarp") __VA_OPT__(, ) __VA_ARGS__)
#define __ballot_sync(...) ::pleach_shim::ballot(PLEACH_SITE("__ballot_sync"), __VA_ARGS__)
#define __any_sync(...) ::pleach_shim::any(PLEACH_SITE("__any_sync"), __VA_ARGS__)
#define __all_sync(...) ::pleach_shim::all(PLEACH_SITE("__all_sync"), __VA_ARGS__)
#define __shfl_sync(...) ::pleach_shim::shuffle(PLEACH_SITE("__shfl_sync"), __VA_ARGS__)
#define __shfl_up_sync(...) ::pleach_shim::shuffle_up(PLEACH_SITE("__shfl_up_sync"), __VA_ARGS__)
#define __shfl_down_sync(...) ::pleach_shim::shuffle_down(PLEACH_SITE("__shfl_down_sync"), __VA_ARGS__)
#define __shfl_xor_sync(...) ::pleach_shim::shuffle_xor(PLEACH_SITE("__shfl_xor_sync"), __VA_ARGS__)
#define __match_any_sync(...) ::pleach_shim::match_any(PLEACH_SITE("__match_any_sync"), __VA_ARGS__)
#define __reduce_add_sync(...) ::pleach_shim::reduce_add(PLEACH_SITE("__reduce_add_sync"), __VA_ARGS__)
#define __reduce_min_sync(...) ::pleach_shim::reduce_min(PLEACH_SITE("__reduce_min_sync"), __VA_ARGS__)
#define __reduce_max_sync(...) ::pleach_shim::reduce_max(PLEACH_SITE("__reduce_max_sync"), __VA_ARGS__)
#define __reduce_and_sync(...) ::pleach_shim::reduce_and(PLEACH_SITE("__reduce_and_sync"), __VA_ARGS__)
#define __reduce_or_sync(...) ::pleach_shim::reduce_or(PLEACH_SITE("__reduce_or_sync"), __VA_ARGS__)
#define __reduce_xor_sync(...) ::pleach_shim::reduce_xor(PLEACH_SITE("__reduce_xor_sync"), __VA_ARGS__)
#define __trap() ::pleach_shim::fail(PLEACH_SITE("__trap"), "the kernel gives up")

// Points where other threads may run.
static inline void __nanosleep(unsigned) { pleach_shim::yield(); }
static inline void __threadfence() { pleach_shim::yield(); }
static inline void __threadfence_block() { pleach_shim::yield(); }
static inline void __threadfence_system() { pleach_shim::yield(); }
static inline long long clock64() { return (long long)pleach_shim::switches * 64; }

// Atomics: one OS thread runs a launch, so that plain accesses do.
#define PLEACH_ATOMIC(name, T, expression)                     \
    static inline T name(T* at, T value) {                     \
        pleach_shim::spun();                                   \
        T old = *at;                                           \
        *at = (T)(expression);                                 \
        return old;                                            \
    }
#define PLEACH_ATOMIC_CAS(T)                                   \
    static inline T atomicCAS(T* at, T expected, T value) {    \
        pleach_shim::spun();                                   \
        T old = *at;                                           \
        if (old == expected) {                                 \
            *at = value;                                       \
        }                                                      \
        return old;                                            \
    }
#define PLEACH_ATOMICS(T)                                      \
    PLEACH_ATOMIC(atomicMin, T, value < old ? value : old)     \
    PLEACH_ATOMIC(atomicMax, T, value > old ? value : old)     \
    PLEACH_ATOMIC(atomicAnd, T, old & value)                   \
    PLEACH_ATOMIC(atomicOr, T, old | value)                    \
    PLEACH_ATOMIC(atomicXor, T, old ^ value)
PLEACH_ATOMICS(int)
PLEACH_ATOMICS(unsigned)
PLEACH_ATOMICS(long long)
PLEACH_ATOMICS(unsigned long long)
PLEACH_ATOMIC(atomicAdd, int, (unsigned)old + (unsigned)value)
PLEACH_ATOMIC(atomicAdd, unsigned, old + value)
PLEACH_ATOMIC(atomicAdd, unsigned long long, old + value)
PLEACH_ATOMIC(atomicAdd, float, old + value)
PLEACH_ATOMIC(atomicAdd, double, old + value)
PLEACH_ATOMIC(atomicSub, int, (unsigned)old - (unsigned)value)
PLEACH_ATOMIC(atomicSub, unsigned, old - value)
PLEACH_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
PLEACH_ATOMIC(atomicExch, int, value)
PLEACH_ATOMIC(atomicExch, unsigned, value)
PLEACH_ATOMIC(atomicExch, unsigned long long, value)
PLEACH_ATOMIC(atomicExch, float, value)
PLEACH_ATOMIC_CAS(unsigned short)
PLEACH_ATOMIC_CAS(int)
PLEACH_ATOMIC_CAS(unsigned)
PLEACH_ATOMIC_CAS(unsigned long long)

// Numbers.
#define PLEACH_MIN_MAX(Result, A, B)                                                                    \
    static inline Result min(A a, B b) { return (Result)a < (Result)b ? (Result)a : (Result)b; }        \
    static inline Result max(A a, B b) { return (Result)a > (Result)b ? (Result)a : (Result)b; }
PLEACH_MIN_MAX(int, int, int)
PLEACH_MIN_MAX(unsigned, unsigned, unsigned)
PLEACH_MIN_MAX(unsigned, int, unsigned)
PLEACH_MIN_MAX(unsigned, unsigned, int)
PLEACH_MIN_MAX(long, long, long)
PLEACH_MIN_MAX(unsigned long, unsigned long, unsigned long)
PLEACH_MIN_MAX(long long, long long, long long)
PLEACH_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
PLEACH_MIN_MAX(unsigned long long, long long, unsigned long long)
PLEACH_MIN_MAX(unsigned long long, unsigned long long, long long)
PLEACH_MIN_MAX(float, float, float)
PLEACH_MIN_MAX(double, double, double)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;
    return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned byte = (unsigned)(bytes >> (selector >> 4 * i & 7) * 8 & 0xFF);
        if ((selector >> 4 * i & 8) != 0) {
            byte = (byte & 0x80) != 0 ? 0xFF : 0;
        }
        result |= byte << 8 * i;
    }
    return result;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

// Parts of 16 and 8 bits of a word: a part at a time.
#define PLEACH_PARTS(name, bits, expression)                            \
    static inline unsigned name(unsigned left, unsigned right) {        \
        const unsigned all = (1u << bits) - 1;                          \
        unsigned result = 0;                                            \
        for (unsigned shift = 0; shift < 32; shift += bits) {           \
            unsigned a = left >> shift & all, b = right >> shift & all; \
            result |= ((expression) & all) << shift;                    \
        }                                                               \
        return result;                                                  \
    }
#define PLEACH_PARTS_ALL(suffix, bits)                                  \
    PLEACH_PARTS(__vcmpltu##suffix, bits, a < b ? all : 0)              \
    PLEACH_PARTS(__vcmpleu##suffix, bits, a <= b ? all : 0)             \
    PLEACH_PARTS(__vcmpgtu##suffix, bits, a > b ? all : 0)              \
    PLEACH_PARTS(__vcmpgeu##suffix, bits, a >= b ? all : 0)             \
    PLEACH_PARTS(__vcmpeq##suffix, bits, a == b ? all : 0)              \
    PLEACH_PARTS(__vcmpne##suffix, bits, a != b ? all : 0)              \
    PLEACH_PARTS(__vmaxu##suffix, bits, a > b ? a : b)                  \
    PLEACH_PARTS(__vminu##suffix, bits, a < b ? a : b)                  \
    PLEACH_PARTS(__vadd##suffix, bits, a + b)                           \
    PLEACH_PARTS(__vsub##suffix, bits, a - b)
PLEACH_PARTS_ALL(2, 16)
PLEACH_PARTS_ALL(4, 8)

static inline unsigned __float_as_uint(float x) { return pleach_shim::of_bits<unsigned>(pleach_shim::to_bits(x)); }
static inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
static inline float __uint_as_float(unsigned x) { return pleach_shim::of_bits<float>(x); }
static inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
static inline long long __double_as_longlong(double x) { return (long long)pleach_shim::to_bits(x); }
static inline double __longlong_as_double(long long x) {
    return pleach_shim::of_bits<double>((unsigned long long)x);
}

// Makes `emulate_name`: as cuLaunchKernel, the arguments are pointers to values; 0, or 1 and a message. And
// `emulate_bytes_name`: bytes of an argument, 0 past the last one.
#define PLEACH_ENTRY(name)                                                                              \
    extern "C" __attribute__((visibility("default"))) int emulate_##name(                               \
        const EmulatedLaunch* launch, void** arguments, char* message, size_t message_bytes) {          \
        return ::pleach_shim::launch_entry(launch, #name, &name, arguments, message, message_bytes);    \
    }                                                                                                   \
    extern "C" __attribute__((visibility("default"))) size_t emulate_bytes_##name(size_t argument) {    \
        return ::pleach_shim::argument_bytes(&name, argument);                                          \
    }

// Makes `emulate_constant_name`: the address of constant memory, which the host writes.
#define PLEACH_CONSTANT(name)                                                                    \
    extern "C" __attribute__((visibility("default"))) void* emulate_constant_##name() { return name; }

extern "C" {
// Switches of fibers so far, which say how fast a program is.
__attribute__((visibility("default"))) unsigned long long pleach_switches() { return pleach_shim::switches; }

// Before the first launch: takes its stacks from a pool that another program made, or, given none, makes one, which
// stays for ever.
__attribute__((visibility("default"))) void* pleach_share_stacks(void* pool) {
    if (pool == nullptr) {
        pool = __builtin_malloc(sizeof(pleach_shim::Pool));
        pleach_shim::Pool fresh = {PTHREAD_MUTEX_INITIALIZER, nullptr};
        __builtin_memcpy(pool, &fresh, sizeof fresh);
    }
    pleach_shim::pool = (pleach_shim::Pool*)pool;
    return pool;
}
}
