// Planted fault: a scan of a block that reads the sums of its warps before all are written.
//
// Each warp scans by shuffles and puts its sum into shared memory; then each thread adds the sums of the warps before
// its own. Without the barrier between, a warp that runs ahead of another adds what lay there: the answers are wrong
// in the orders in which a later warp runs first.

struct Scan {
    const u32* in;
    u32* out;
    u64 count;
};

extern "C" __global__ void fault(const __grid_constant__ Scan scan) {
    __shared__ u32 sums[32];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = at < scan.count ? __ldg(scan.in + at) : 0;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        u32 other = __shfl_up_sync(FULL, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    if (lane == WARP - 1) {
        sums[warp] = sum;
    }
#if !FAULT
    __syncthreads();
#endif
    for (u32 before = 0; before < warp; before++) {
        sum += sums[before];
    }
    if (at < scan.count) {
        scan.out[at] = sum;
    }
}
