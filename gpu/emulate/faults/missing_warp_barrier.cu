// Planted fault: a scan of tiles whose lanes exchange through shared memory without a barrier of the warp.
//
// In each step a lane puts its sum into shared memory and takes that of the lane before it. On a GPU lanes of a warp
// mostly run in step, so that this may work for long; here it is wrong in the orders in which the reader runs first.

struct Scan {
    const u32* in;
    u32* out;
    u64 count;
};

extern "C" __global__ void fault(const __grid_constant__ Scan scan) {
    DYNAMIC_SHARED(u32, stage);
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 lane = threadIdx.x % WARP;
    u32 sum = at < scan.count ? __ldg(scan.in + at) : 0;
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        stage[threadIdx.x] = sum;
#if !FAULT
        __syncwarp();
#endif
        u32 other = lane >= distance ? stage[threadIdx.x - distance] : 0;
        __syncwarp();
        sum += other;
    }
    stage[threadIdx.x] = sum;
    __syncthreads();
    for (u32 end = WARP; end <= threadIdx.x - lane; end += WARP) {
        sum += stage[end - 1];
    }
    if (at < scan.count) {
        scan.out[at] = sum;
    }
}
