// Thrust as a peer: lower_bound of a batch of queries, then gather of the values, on the tables of `pleach bench gpu`.
//
//     thrust BATCH REPETITIONS KEY_TYPE:TUPLES...      as in: thrust 67108864 7 u32:16777216 u64:67108864
//
// Keys, values and queries are those of gpu/src/kernels/measure.cu, made here by the same formulas: keys are mixed
// numbers from 1 on, sorted; the value of a key is a mix of it; query i of seed s follows from i and s. Each case is
// measured with queries in no order and with ascending ones, repetition r with the queries of seed r; seed 0 warms up.
// A line of JSON for each case and order: milliseconds of the device a repetition, and the sum of the answers of each
// seed, by which they are checked. Ranks are of 32 bits, the leanest that thrust can be asked for.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <vector>

typedef uint32_t u32;
typedef unsigned long long u64;

__host__ __device__ inline u64 mix64(u64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

__host__ __device__ inline u32 mix32(u32 x) {
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

template <class Word> struct KeyOf {
    __host__ __device__ Word operator()(u64 i) const {
        return sizeof(Word) == 4 ? (Word)mix32((u32)i) : (Word)mix64(i);
    }
};

template <class Word> struct ValueOf {
    __host__ __device__ Word operator()(Word key) const { return (Word)mix64((u64)key ^ 0x5851F42D4C957F2Dull); }
};

template <class Word> struct QueryOf {
    const Word* keys;
    u64 tuples, seed, groups;
    bool is_sorted;
    __host__ __device__ Word operator()(u64 i) const {
        u64 number = mix64(seed + (i + 1) * 0x9E3779B97F4A7C15ull) >> 32;
        if (!is_sorted) {
            return keys[number * tuples >> 32];
        }
        u64 group = i / 1024, low = group * tuples / groups, high = (group + 1) * tuples / groups;
        return keys[low + (number * (high - low) >> 32)];
    }
};

struct Widen {
    template <class Word> __host__ __device__ u64 operator()(Word word) const { return word; }
};

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <class Word> void measure(const char* type, u64 tuples, u64 batch, u64 repetitions) {
    thrust::device_vector<Word> keys(tuples), values(tuples), queries(batch), answers(batch);
    thrust::device_vector<u32> ranks(batch);
    thrust::counting_iterator<u64> one(1), zero(0);
    thrust::transform(one, one + tuples, keys.begin(), KeyOf<Word>{});
    thrust::sort(keys.begin(), keys.end());
    thrust::transform(keys.begin(), keys.end(), values.begin(), ValueOf<Word>{});
    cudaStream_t stream = nullptr;
    cudaEvent_t start, end;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&end));
    const u64 groups = (batch + 1023) / 1024;
    for (bool is_sorted : {false, true}) {
        std::vector<float> ms;
        std::vector<u64> sums;
        for (u64 seed = 0; seed <= repetitions; seed++) {
            const Word* column = thrust::raw_pointer_cast(keys.data());
            QueryOf<Word> query{column, tuples, mix64(seed), groups, is_sorted};
            thrust::transform(zero, zero + batch, queries.begin(), query);
            if (is_sorted) {
                thrust::sort(queries.begin(), queries.end());
            }
            check(cudaMemset(thrust::raw_pointer_cast(answers.data()), 0x5A, batch * sizeof(Word)));
            check(cudaDeviceSynchronize());
            auto policy = thrust::cuda::par_nosync.on(stream);
            check(cudaEventRecord(start, stream));
            thrust::lower_bound(policy, keys.begin(), keys.end(), queries.begin(), queries.end(), ranks.begin());
            thrust::gather(policy, ranks.begin(), ranks.end(), values.begin(), answers.begin());
            check(cudaEventRecord(end, stream));
            check(cudaEventSynchronize(end));
            float elapsed = 0;
            check(cudaEventElapsedTime(&elapsed, start, end));
            if (seed > 0) {
                ms.push_back(elapsed);
            }
            sums.push_back(
                thrust::transform_reduce(answers.begin(), answers.end(), Widen{}, (u64)0, thrust::plus<u64>()));
        }
        printf("{\"engine\": \"thrust\", \"version\": \"%d.%d.%d\", ", THRUST_MAJOR_VERSION, THRUST_MINOR_VERSION,
               THRUST_SUBMINOR_VERSION);
        printf("\"key_type\": \"%s\", \"tuples\": %llu, \"order\": \"%s\", \"ms\": [", type, tuples,
               is_sorted ? "sorted" : "random");
        for (size_t i = 0; i < ms.size(); i++) {
            printf("%s%.6f", i == 0 ? "" : ", ", ms[i]);
        }
        printf("], \"sums\": [");
        for (size_t i = 0; i < sums.size(); i++) {
            printf("%s\"%llu\"", i == 0 ? "" : ", ", sums[i]);
        }
        printf("]}\n");
        fflush(stdout);
    }
}

int main(int count, char** arguments) {
    if (count < 4) {
        fprintf(stderr, "usage: thrust BATCH REPETITIONS KEY_TYPE:TUPLES...\n");
        return 2;
    }
    u64 batch = strtoull(arguments[1], nullptr, 10), repetitions = strtoull(arguments[2], nullptr, 10);
    for (int i = 3; i < count; i++) {
        u64 tuples = strtoull(arguments[i] + 4, nullptr, 10);
        if (strncmp(arguments[i], "u32:", 4) == 0) {
            measure<u32>("u32", tuples, batch, repetitions);
        } else {
            measure<u64>("u64", tuples, batch, repetitions);
        }
    }
    return 0;
}
