// Planted fault: a scan whose last warp takes the total from a lane that is not there.
//
// Lanes past the last number do not take part. The sum of a warp is its last lane's, which in a partial warp is absent:
// what a shuffle from there gives is undefined. Right is the last lane of the mask.

struct Scan {
    const u32* in;
    u32* out;
    u64 count;
};

extern "C" __global__ void fault(const __grid_constant__ Scan scan) {
    __shared__ u32 sums[32];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 mask = __ballot_sync(FULL, at < scan.count), sum = 0;
    if (at < scan.count) {
        sum = __ldg(scan.in + at);
        for (u32 distance = 1; distance < WARP; distance *= 2) {
            u32 other = __shfl_up_sync(mask, sum, distance);
            sum += lane >= distance ? other : 0;
        }
#if FAULT
        u32 last = WARP - 1;
#else
        u32 last = WARP - 1 - (u32)__clz((int)mask);
#endif
        u32 total = __shfl_sync(mask, sum, (int)last);
        if (lane == 0) {
            sums[warp] = total;
        }
    }
    __syncthreads();
    for (u32 before = 0; before < warp; before++) {
        sum += sums[before];
    }
    if (at < scan.count) {
        scan.out[at] = sum;
    }
}
