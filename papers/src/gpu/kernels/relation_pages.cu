// Lists of pages of the paper on relational algebra (sections 4.3 and 6.1): the final linking, and both conversions.
//
// After an operator each block has a chain of pages, full but for the last one. A thread walks each chain and notes
// its pages in the directory, at a place that a scan of the chains' lengths gave, with the rank of their first tuples.
// Then each page is linked to the next one of the directory, which links the chains to one list in the order of keys.

// The same as Chains in relation/pages.rs.
struct Chains {
    const u64* counts;
    const u64* tuples_before;
    const u64* pages_before;
    const u32* first;
    u32* links;
    u32* directory;
    u64* starts;
    u32 chains;
    u32 page_tuples;
};
static_assert(sizeof(Chains) == BYTES_OF_PAPER_CHAINS, "as in relation/pages.rs");

// Pages of each chain.
extern "C" __global__ void __launch_bounds__(256)
    paper_chains(const u64* counts, u64* pages, u32 chains, u32 page_tuples) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < chains; i += gridDim.x * blockDim.x) {
        pages[i] = (counts[i] + page_tuples - 1) / page_tuples;
    }
}

extern "C" __global__ void __launch_bounds__(256) paper_directory(const __grid_constant__ Chains chains) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < chains.chains; i += gridDim.x * blockDim.x) {
        u64 at = chains.pages_before[i], end = chains.pages_before[i + 1], start = chains.tuples_before[i];
        for (u32 page = chains.first[i]; at < end; at++, page = chains.links[page], start += chains.page_tuples) {
            chains.directory[at] = page;
            chains.starts[at] = start;
        }
        if (i + 1 == chains.chains) {
            chains.starts[end] = chains.tuples_before[chains.chains];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) paper_link(const __grid_constant__ Chains chains, u64 pages) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < pages; i += (u64)gridDim.x * blockDim.x) {
        chains.links[chains.directory[i]] = i + 1 < pages ? chains.directory[i + 1] : NO_PAGE;
    }
}

// A column between pages and an array; the same as Convert in relation/pages.rs.
struct Convert {
    u8* dense;
    u8* paged;
    const u64* starts;
    const u32* directory;
    u64 pages;
    u32 page_tuples;
    u32 bytes;
};
static_assert(sizeof(Convert) == BYTES_OF_PAPER_CONVERT, "as in relation/pages.rs");

template <class T> __device__ __forceinline__ void copy(T* to, const T* from, u32 count) {
    for (u32 base = threadIdx.x; base < count; base += blockDim.x * 4) {
        T items[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            items[i] = from[min(base + i * blockDim.x, count - 1)];
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (base + i * blockDim.x < count) {
                to[base + i * blockDim.x] = items[i];
            }
        }
    }
}

template <class T> __device__ __forceinline__ void convert(const Convert& task, bool is_to_pages) {
    for (u64 page = blockIdx.x; page < task.pages; page += gridDim.x) {
        u64 start = task.starts[page];
        u32 count = (u32)(task.starts[page + 1] - start);
        T* dense = (T*)task.dense + start;
        T* paged = (T*)task.paged + (u64)task.directory[page] * task.page_tuples;
        copy(is_to_pages ? paged : dense, is_to_pages ? dense : paged, count);
    }
}

// A block a page.
extern "C" __global__ void __launch_bounds__(256) paper_to_dense(const __grid_constant__ Convert task) {
    if (task.bytes == 8) {
        convert<u64>(task, false);
    } else {
        convert<u32>(task, false);
    }
}

extern "C" __global__ void __launch_bounds__(256) paper_to_pages(const __grid_constant__ Convert task) {
    if (task.bytes == 8) {
        convert<u64>(task, true);
    } else {
        convert<u32>(task, true);
    }
}

// A directory of pages that lie in order, full but for the last one.
extern "C" __global__ void __launch_bounds__(256)
    paper_in_order(const __grid_constant__ Chains chains, u64 pages, u64 tuples) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i <= pages; i += (u64)gridDim.x * blockDim.x) {
        chains.starts[i] = min(i * chains.page_tuples, tuples);
        if (i < pages) {
            chains.directory[i] = (u32)i;
            chains.links[i] = i + 1 < pages ? (u32)i + 1 : NO_PAGE;
        }
    }
}
