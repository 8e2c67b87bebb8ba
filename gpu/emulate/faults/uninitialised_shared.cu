// Planted fault: a scan that adds into shared memory which nobody has set to zero.
//
// Warps add their sums to the counters of all warps after them. On a GPU the memory often is zero, so that this may
// work for long; here it holds 0xA5 before each block, and the answers are wrong.

struct Scan {
    const u32* in;
    u32* out;
    u64 count;
};

extern "C" __global__ void fault(const __grid_constant__ Scan scan) {
    __shared__ u32 before[32];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#if !FAULT
    if (threadIdx.x < 32) {
        before[threadIdx.x] = 0;
    }
    __syncthreads();
#endif
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = at < scan.count ? __ldg(scan.in + at) : 0;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        u32 other = __shfl_up_sync(FULL, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    if (lane == WARP - 1) {
        for (u32 later = warp + 1; later < blockDim.x / WARP; later++) {
            atomicAdd(before + later, sum);
        }
    }
    __syncthreads();
    if (at < scan.count) {
        scan.out[at] = sum + before[warp];
    }
}
