// Looks back from every tile while tiles tell: after onepass.cuh and reduce.cuh, on an emulated device alone, whose
// blocks run one after the other and so never wait for each other.

// What a tile says next.
struct News {
    u64 said;
    u64 count;
    u64 sum;
    u64 float_sum;
    u64 tile;
};

struct Looks {
    const News* news;
    u64* told;
    u64* carried;
    u64* floats;
    u64* found;
    u64 news_count;
    u64 tiles;
};

// Slower than what looks back, so that it waits.
__device__ __forceinline__ void rest() {
    for (u32 i = 0; i < 25; i++) {
        __nanosleep(100);
    }
}

// The first warp looks back, and the first thread of the second one says all news, half of a carry at a time.
extern "C" __global__ void look_backs(const __grid_constant__ Looks looks) {
    if (threadIdx.x < WARP) {
        for (u32 tile = 1; tile <= looks.tiles; tile++) {
            Sum sum;
            FloatSum float_sum;
            // Each of them is the one that waits.
            u64 told = tile % 3 == 1 ? look_back(looks.told, tile) : 0;
            u64 floats = tile % 3 == 0 ? carry_back(looks.floats, tile, float_sum) : 0;
            u64 carried = carry_back(looks.carried, tile, sum);
            told = tile % 3 != 1 ? look_back(looks.told, tile) : told;
            floats = tile % 3 != 0 ? carry_back(looks.floats, tile, float_sum) : floats;
            if (threadIdx.x == 0) {
                looks.found[3 * tile] = told;
                looks.found[3 * tile + 1] = carried;
                looks.found[3 * tile + 2] = floats;
            }
        }
    } else if (threadIdx.x == WARP) {
        for (u64 i = 0; i < looks.news_count; i++) {
            const News& news = looks.news[i];
            u64 said = news.said << 62;
            tell(looks.told + news.tile, said | news.count);
            tell(looks.carried + 2 * news.tile, said | (u32)news.sum);
            tell(looks.floats + 2 * news.tile + 1, said | news.float_sum >> 32);
            rest();
            tell(looks.carried + 2 * news.tile + 1, said | news.sum >> 32);
            tell(looks.floats + 2 * news.tile, said | (u32)news.float_sum);
            rest();
        }
    }
}
