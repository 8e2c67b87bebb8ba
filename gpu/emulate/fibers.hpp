// Threads of a CUDA launch as fibers of one OS thread: what cuda_shim.hpp runs kernels on.
//
// The blocks of a launch run one after the other on the caller's OS thread, and a lock of each program lets one launch
// of it run at a time. A fiber has a stack with a guard page below and is switched by a few instructions, or by
// ucontext where the CPU is no x86-64. A thread runs until it waits: then the next one of the round that can run has
// its turn, so that the order of a round (ascending, descending, shuffled) is the order in which threads go on. A warp
// collective is a group of lanes with one mask at one call; the lane that completes it computes all results. What CUDA
// leaves undefined is checked when a lane arrives or leaves, and when nobody can run. An error writes its message
// and switches back to the launch for good: the other fibers are forgotten, their stacks used again.
// Two calls of a collective are the same one if their sites (a static of the source line) and, with PLEACH_PATHS, the
// return addresses that led there are.

#pragma once

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#if !defined(__x86_64__) || defined(PLEACH_UCONTEXT)
#define PLEACH_UCONTEXT_USED 1
#include <ucontext.h>
#endif

#ifdef __SANITIZE_ADDRESS__
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom_old, size_t* size_old);
void __asan_poison_memory_region(const volatile void* address, size_t size);
void __asan_unpoison_memory_region(const volatile void* address, size_t size);
void __asan_set_error_report_callback(void (*callback)(const char*));
long write(int file, const void* bytes, size_t size);
}
#define PLEACH_UNPOISON(address, size) __asan_unpoison_memory_region(address, size)
#else
#define PLEACH_UNPOISON(address, size) ((void)0)
#endif
// For frames of a fiber that is left for good: their red zones would stay.
#define PLEACH_UNWATCHED __attribute__((noinline, no_sanitize("address", "undefined")))

#pragma GCC visibility push(hidden)

// The same as EmulatedLaunch in driver/emulated.rs. Order: 0 ascending, 1 descending, 2 random from `seed`.
struct EmulatedLaunch {
    unsigned grid[3];
    unsigned block[3];
    unsigned dynamic_shared_bytes;
    unsigned order;
    unsigned long long seed;
};

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

// Bounds of the section that holds static shared memory.
extern "C" {
extern char __start_pleach_shared[] __attribute__((weak));
extern char __stop_pleach_shared[] __attribute__((weak));
}

namespace pleach_shim {

typedef unsigned U32;
typedef unsigned long long U64;

const U32 THREADS_MAX = 1024;
const U32 SHARED_BYTES_MAX = 232448;
const size_t STACK_BYTES = 128 << 10;
#ifdef __x86_64__
const size_t PAGE_BYTES = 4096;
#else
// The largest that is in use.
const size_t PAGE_BYTES = 65536;
#endif
// Yields of threads while no thread arrives anywhere or leaves, after which the launch is said to spin for ever.
const U64 SPINS_MAX = 20000000;
const U32 ATOMICS_A_TURN = 256;

alignas(1024) static unsigned char dynamic_shared[SHARED_BYTES_MAX];

struct Site {
    const char* name;
    const char* file;
    int line;
};

#define PLEACH_SITE(name)                                                               \
    ([]() -> const ::pleach_shim::Site* {                                               \
        static const ::pleach_shim::Site site = {name, __FILE__, __LINE__};             \
        return &site;                                                                   \
    }())

enum Operation {
    SYNC, BALLOT, ANY, ALL, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, MATCH,
    ADD, MIN, MAX, MIN_SIGNED, MAX_SIGNED, AND, OR, XOR, COUNT,
};

enum State { RUNS, IN_WARP, IN_BARRIER, LEFT };

struct Fiber {
#ifdef PLEACH_UCONTEXT_USED
    ucontext_t context;
#else
    void* stack_pointer;
#endif
    const void* stack;
    size_t stack_bytes;
    void* fake_stack;
    void** base;
    uint3 index;
    U32 number;
    State state;
    // What it waits for.
    const Site* site;
    U64 path;
    U32 mask;
    U32 parameter;
    U32 width;
    U64 value;
    U64 result;
};

// Lanes that wait for each other.
struct Group {
    const Site* site;
    U64 path;
    U32 mask;
    U32 arrived;
};

struct Warp {
    U32 existing;
    U32 left;
    U32 in_barrier;
    U32 groups;
    Group group[32];
};

struct Barrier {
    const Site* site;
    U64 path;
    U32 arrived;
    U32 first;
    U32 count;
};

struct Call {
    void (*run)(const Call&);
    void* entry;
    void** arguments;
};

// Stacks of a launch, each above a guard page. All programs of a process may share them, as each guard costs two of the
// some ten thousand mappings that a process may have.
struct Stacks {
    Stacks* next;
    unsigned char* memory;
    U32 mapped;
};
struct Pool {
    pthread_mutex_t lock;
    Stacks* unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Pool own_pool = {PTHREAD_MUTEX_INITIALIZER, nullptr};
static Pool* pool = &own_pool;
static Stacks* stacks;
static Fiber fibers[THREADS_MAX];
static Fiber origin;
static Fiber* current;
static const Call* call;
static const char* entry_name;
static Warp warps[THREADS_MAX / 32];
static Barrier barrier;
static U32 threads, alive, dynamic_bytes;
// The order of threads in a round, and who can run, by place in that order.
static unsigned short sequence[THREADS_MAX], place[THREADS_MAX];
static U64 ready[THREADS_MAX / 64];
static U32 cursor, order;
static U64 random_state, spins, switches;
static U32 atomics;
static bool failed;
static char failure[1024];

static U32 random_below(U32 end) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (U32)((random_state >> 11) % end);
}

// Switches of stacks.
#ifdef PLEACH_UCONTEXT_USED
static void switch_context(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }
#else
extern "C" void pleach_switch(void** from, void* to);
asm(R"(
    .text
    .p2align 4
    .hidden pleach_switch
    .type pleach_switch, @function
pleach_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size pleach_switch, . - pleach_switch
)");
static inline void switch_context(Fiber* from, Fiber* to) { pleach_switch(&from->stack_pointer, to->stack_pointer); }
#endif

PLEACH_UNWATCHED static void arrived_from(Fiber* from, void* fake_stack) {
#ifdef __SANITIZE_ADDRESS__
    const void* bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
    if (from == &origin) {
        origin.stack = bottom;
        origin.stack_bytes = bytes;
    }
#else
    (void)from, (void)fake_stack;
#endif
}

static Fiber* switched_from;

PLEACH_UNWATCHED static void switch_to(Fiber* to) {
    Fiber* from = current;
    if (from == to) {
        return;
    }
    switches++;
    current = to;
    switched_from = from;
    threadIdx = to->index;
    atomics = 0;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
    switch_context(from, to);
    arrived_from(switched_from, from->fake_stack);
}

// Ends the launch with a message, as the running thread.
__attribute__((noinline, noreturn)) static void give_up() {
    failed = true;
    switch_to(&origin);
    __builtin_unreachable();
}

static void append(const char* format, ...) {
    size_t used = __builtin_strlen(failure);
    __builtin_va_list list;
    __builtin_va_start(list, format);
    __builtin_vsnprintf(failure + used, sizeof failure - used, format, list);
    __builtin_va_end(list);
}

static void append_thread(const Fiber& fiber) {
    append("thread (%u, %u, %u), lane %u of warp %u", fiber.index.x, fiber.index.y, fiber.index.z, fiber.number % 32,
           fiber.number / 32);
}

static void append_site(const Site* site) { append("%s at %s:%d", site->name, site->file, site->line); }

// Begins a message: the entry, the block, the running thread and where it is.
static void begin_failure(const Site* site) {
    failure[0] = 0;
    append("%s, block (%u, %u, %u), ", entry_name, blockIdx.x, blockIdx.y, blockIdx.z);
    append_thread(*current);
    append(", ");
    if (site != nullptr) {
        append_site(site);
        append(": ");
    }
}

__attribute__((noinline, noreturn)) static void fail(const Site* site, const char* text) {
    begin_failure(site);
    append("%s", text);
    give_up();
}

// As the running thread is in the way of another, which waits.
__attribute__((noinline, noreturn)) static void fail_with(const Site* site, const char* text, const Fiber& other) {
    begin_failure(site);
    append("%s: ", text);
    append_thread(other);
    if (other.site != nullptr && (other.state == IN_WARP || other.state == IN_BARRIER)) {
        append(", waits in ");
        append_site(other.site);
        if (other.state == IN_WARP) {
            append(" with mask 0x%08x", other.mask);
        }
        if (other.site == site) {
            append(" (the same line, by another call or another mask)");
        }
    }
    give_up();
}

// Turns of threads.
static void begin_round() {
    cursor = 0;
    if (order != 2) {
        return;
    }
    for (U32 i = threads; i > 1; i--) {
        U32 other = random_below(i);
        unsigned short kept = sequence[i - 1];
        sequence[i - 1] = sequence[other];
        sequence[other] = kept;
    }
    __builtin_memset(ready, 0, sizeof ready);
    for (U32 i = 0; i < threads; i++) {
        place[sequence[i]] = (unsigned short)i;
        if (fibers[sequence[i]].state == RUNS) {
            ready[i / 64] |= 1ull << (i % 64);
        }
    }
}

static Fiber* next_ready() {
    U32 words = (threads + 63) / 64;
    for (U32 pass = 0; pass < 2; pass++) {
        U32 word = cursor / 64;
        if (word < words) {
            U64 bits = ready[word] & (~0ull << (cursor % 64));
            while (bits == 0 && ++word < words) {
                bits = ready[word];
            }
            if (bits != 0) {
                U32 found = word * 64 + (U32)__builtin_ctzll(bits);
                cursor = found + 1;
                return &fibers[sequence[found]];
            }
        }
        begin_round();
    }
    return nullptr;
}

static void set_ready(Fiber& fiber) {
    U32 at = place[fiber.number];
    fiber.state = RUNS;
    ready[at / 64] |= 1ull << (at % 64);
}

static void set_waiting(Fiber& fiber, State state) {
    U32 at = place[fiber.number];
    fiber.state = state;
    ready[at / 64] &= ~(1ull << (at % 64));
}

// Gives the turn away; the running thread's state says whether it gets another.
PLEACH_UNWATCHED static void take_turns() {
    Fiber* next = next_ready();
    if (next != nullptr) {
        switch_to(next);
        return;
    }
    if (alive == 0) {
        switch_to(&origin);
        return;
    }
    for (U32 i = 0; i < threads; i++) {
        if (fibers[i].state != LEFT) {
            current = &fibers[i];
            begin_failure(fibers[i].site);
            append("waits for ever, as %u of %u threads do", alive, threads);
            break;
        }
    }
    failed = true;
    // The state of `current` was taken for the message only.
    switch_to(&origin);
}

static void yield() {
    if (++spins > SPINS_MAX) {
        fail(nullptr, "threads spin for ever: none arrives at a barrier or leaves");
    }
    take_turns();
}

// After an access that a spin may be made of.
static inline void spun() {
    if (++atomics >= ATOMICS_A_TURN) {
        yield();
    }
}

// The calls that led here, from their frames.
#ifdef PLEACH_PATHS
#define PLEACH_PATH() ::pleach_shim::path_from((void**)__builtin_frame_address(0))
__attribute__((no_sanitize("address", "undefined"))) static U64 path_from(void** frame) {
    U64 path = 0;
    void** base = current->base;
    while (frame < base) {
        path = (path ^ (U64)frame[1]) * 0x9E3779B97F4A7C15ull;
        path ^= path >> 29;
        void** up = (void**)frame[0];
        if (up <= frame) {
            break;
        }
        frame = up;
    }
    return path;
}
#else
#define PLEACH_PATH() ((::pleach_shim::U64)__builtin_return_address(0))
#endif

static void finish_group(Warp& warp, Fiber* lanes, Group& group, Operation operation) {
    U64 total = 0;
    U32 votes = 0;
    bool first = true;
    for (U32 bits = group.arrived; bits != 0; bits &= bits - 1) {
        U32 lane = (U32)__builtin_ctz(bits);
        U64 value = lanes[lane].value;
        votes |= value != 0 ? 1u << lane : 0;
        switch (operation) {
            case ADD: total = (U32)(total + value); break;
            case MIN: total = first || value < total ? value : total; break;
            case MAX: total = first || value > total ? value : total; break;
            case MIN_SIGNED: total = first || (int)value < (int)total ? value : total; break;
            case MAX_SIGNED: total = first || (int)value > (int)total ? value : total; break;
            case AND: total = first ? value : total & value; break;
            case OR: total |= value; break;
            case XOR: total ^= value; break;
            default: break;
        }
        first = false;
    }
    for (U32 bits = group.arrived; bits != 0; bits &= bits - 1) {
        U32 lane = (U32)__builtin_ctz(bits);
        Fiber& fiber = lanes[lane];
        U32 from = lane, begin = lane & ~(fiber.width - 1), end = begin + fiber.width;
        switch (operation) {
            case SYNC: break;
            case BALLOT: fiber.result = votes; break;
            case ANY: fiber.result = votes != 0; break;
            case ALL: fiber.result = votes == group.arrived; break;
            case SHUFFLE: from = begin + (fiber.parameter & (fiber.width - 1)); break;
            case SHUFFLE_UP: from = fiber.parameter <= lane - begin ? lane - fiber.parameter : lane; break;
            case SHUFFLE_DOWN: from = fiber.parameter < end - lane ? lane + fiber.parameter : lane; break;
            case SHUFFLE_XOR: from = (lane ^ fiber.parameter) < end ? lane ^ fiber.parameter : lane; break;
            case MATCH: {
                U32 same = 0;
                for (U32 rest = group.arrived; rest != 0; rest &= rest - 1) {
                    U32 other = (U32)__builtin_ctz(rest);
                    same |= lanes[other].value == fiber.value ? 1u << other : 0;
                }
                fiber.result = same;
                break;
            }
            default: fiber.result = total; break;
        }
        if (operation >= SHUFFLE && operation <= SHUFFLE_XOR) {
            if (from > 31 || (group.arrived >> from & 1) == 0) {
                begin_failure(group.site);
                append("lane %u reads lane %u, which takes no part (mask 0x%08x, %u threads a block)", lane, from,
                       group.mask, threads);
                give_up();
            }
            fiber.result = lanes[from].value;
        }
        set_ready(fiber);
    }
    group = warp.group[--warp.groups];
}

// A warp collective. Two calls of it are the same one if `site` and the calls that led to it are the same.
__attribute__((noinline)) static U64 meet(const Site* site, Operation operation, U32 mask, U64 value, U32 parameter = 0,
                                          U32 width = 32) {
    Fiber& fiber = *current;
    U32 lane = fiber.number % 32, bit = 1u << lane;
    Warp& warp = warps[fiber.number / 32];
    Fiber* lanes = &fibers[fiber.number - lane];
    U64 path = PLEACH_PATH();
    spins = 0;
    if ((mask & bit) == 0) {
        begin_failure(site);
        append("the mask 0x%08x lacks the caller", mask);
        give_up();
    }
    if ((mask & warp.left) != 0) {
        fail_with(site, "a lane of the mask has left the kernel", lanes[__builtin_ctz(mask & warp.left)]);
    }
    if ((mask & warp.in_barrier) != 0) {
        fail_with(site, "a lane of the mask is elsewhere", lanes[__builtin_ctz(mask & warp.in_barrier)]);
    }
    if (width == 0 || width > 32 || (width & (width - 1)) != 0) {
        fail(site, "the width is no power of two up to 32");
    }
    Group* found = nullptr;
    for (U32 i = 0; i < warp.groups; i++) {
        Group& group = warp.group[i];
        if (group.site == site && group.path == path && group.mask == mask) {
            found = &group;
        } else if ((group.mask & bit) != 0 && (group.arrived & mask) != 0) {
            begin_failure(site);
            append("a lane of the mask 0x%08x waits for this one elsewhere: ", mask);
            append_thread(lanes[__builtin_ctz(group.arrived & mask)]);
            append(", in ");
            append_site(group.site);
            append(" with mask 0x%08x", group.mask);
            if (group.site == site) {
                append(group.mask == mask ? " (the same line, by another call)" : " (the same line, another mask)");
            }
            give_up();
        }
    }
    if (found == nullptr) {
        found = &warp.group[warp.groups++];
        *found = Group{site, path, mask, 0};
    }
    found->arrived |= bit;
    fiber.site = site;
    fiber.mask = mask;
    fiber.value = value;
    fiber.parameter = parameter;
    fiber.width = width;
    set_waiting(fiber, IN_WARP);
    if (found->arrived == (mask & warp.existing)) {
        finish_group(warp, lanes, *found, operation);
    }
    take_turns();
    return fiber.result;
}

static void finish_barrier() {
    for (U32 i = 0; i < threads; i++) {
        if (fibers[i].state == IN_BARRIER) {
            fibers[i].result = barrier.count | (U64)barrier.arrived << 32;
            set_ready(fibers[i]);
        }
    }
    for (U32 i = 0; i < (threads + 31) / 32; i++) {
        warps[i].in_barrier = 0;
    }
    barrier.arrived = 0;
    barrier.count = 0;
}

// A barrier of the block; counts the threads whose value is not 0, and above 32 bits those that came.
__attribute__((noinline)) static U64 meet_all(const Site* site, bool value) {
    Fiber& fiber = *current;
    U32 lane = fiber.number % 32;
    Warp& warp = warps[fiber.number / 32];
    U64 path = PLEACH_PATH();
    spins = 0;
    for (U32 i = 0; i < warp.groups; i++) {
        if ((warp.group[i].mask >> lane & 1) != 0) {
            fail_with(site, "a lane waits for this one elsewhere",
                      fibers[fiber.number - lane + (U32)__builtin_ctz(warp.group[i].arrived)]);
        }
    }
    if (barrier.arrived == 0) {
        barrier.site = site;
        barrier.path = path;
        barrier.first = fiber.number;
    } else if (barrier.site != site || barrier.path != path) {
        fail_with(site, "a thread of the block is at another barrier", fibers[barrier.first]);
    }
    barrier.arrived++;
    barrier.count += value;
    warp.in_barrier |= 1u << lane;
    fiber.site = site;
    set_waiting(fiber, IN_BARRIER);
    if (barrier.arrived == alive) {
        finish_barrier();
    }
    take_turns();
    return fiber.result;
}

PLEACH_UNWATCHED static void leave() {
    Fiber& fiber = *current;
    U32 lane = fiber.number % 32;
    Warp& warp = warps[fiber.number / 32];
    spins = 0;
    for (U32 i = 0; i < warp.groups; i++) {
        if ((warp.group[i].mask >> lane & 1) != 0) {
            fail_with(nullptr, "leaves the kernel while a lane waits for it",
                      fibers[fiber.number - lane + (U32)__builtin_ctz(warp.group[i].arrived)]);
        }
    }
    warp.left |= 1u << lane;
    alive--;
    fiber.site = nullptr;
    set_waiting(fiber, LEFT);
    if (alive > 0 && barrier.arrived == alive) {
        finish_barrier();
    }
    take_turns();
}

// A fiber runs one thread of each block.
PLEACH_UNWATCHED static void fiber_main() {
    arrived_from(switched_from, nullptr);
    current->base = (void**)__builtin_frame_address(0);
    for (;;) {
        call->run(*call);
        leave();
    }
}

#ifdef __SANITIZE_ADDRESS__
// Says which thread met a sanitizer.
static void on_report(const char*) {
    begin_failure(nullptr);
    append("met the error above\n");
    long written = write(2, failure, __builtin_strlen(failure));
    (void)written;
}
#endif

const size_t STACK_STEP = STACK_BYTES + PAGE_BYTES;

static bool take_stacks() {
    pthread_mutex_lock(&pool->lock);
    stacks = pool->unused;
    pool->unused = stacks != nullptr ? stacks->next : nullptr;
    pthread_mutex_unlock(&pool->lock);
    if (stacks != nullptr) {
        return true;
    }
    void* memory =
        mmap(nullptr, THREADS_MAX * STACK_STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stacks = (Stacks*)__builtin_malloc(sizeof(Stacks));
    if (memory == MAP_FAILED || stacks == nullptr) {
        return false;
    }
    *stacks = Stacks{nullptr, (unsigned char*)memory, 0};
    return true;
}

static void give_stacks_back() {
    pthread_mutex_lock(&pool->lock);
    stacks->next = pool->unused;
    pool->unused = stacks;
    pthread_mutex_unlock(&pool->lock);
}

__attribute__((destructor)) static void free_stacks() {
    for (Stacks* each = own_pool.unused; each != nullptr;) {
        Stacks* next = each->next;
        munmap(each->memory, THREADS_MAX * STACK_STEP);
        __builtin_free(each);
        each = next;
    }
}

static bool make_fiber(U32 number) {
    unsigned char* stack = stacks->memory + number * STACK_STEP + PAGE_BYTES;
    if (number >= stacks->mapped) {
        if (mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
            return false;
        }
        stacks->mapped = number + 1;
    }
    Fiber& fiber = fibers[number];
    fiber.stack = stack;
    fiber.stack_bytes = STACK_BYTES;
    fiber.fake_stack = nullptr;
    // Stacks start at different offsets, else all of them share a few lines of the cache.
    size_t colour = number % 31 * 128;
#ifdef PLEACH_UCONTEXT_USED
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack;
    fiber.context.uc_stack.ss_size = STACK_BYTES - colour;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
#else
    // As after a call: 8 bytes below a multiple of 16.
    void** top = (void**)(stack + STACK_BYTES - colour - 56);
    top[0] = nullptr;
    *--top = (void*)fiber_main;
    for (U32 i = 0; i < 6; i++) {
        *--top = nullptr;
    }
    fiber.stack_pointer = top;
#endif
    return true;
}

static void fill(unsigned char* begin, size_t bytes) {
#ifdef __x86_64__
    // Not by a store that ASan watches: there are red zones between static arrays.
    asm volatile("rep stosb" : "+D"(begin), "+c"(bytes) : "a"(0xA5) : "memory");
#else
    for (size_t i = 0; i < bytes; i++) {
        ((volatile unsigned char*)begin)[i] = 0xA5;
    }
#endif
}

static void begin_block() {
    __builtin_memset(warps, 0, sizeof(Warp) * ((threads + 31) / 32));
    barrier = Barrier{nullptr, 0, 0, 0, 0};
    alive = threads;
    spins = 0;
    __builtin_memset(ready, 0, sizeof ready);
    for (U32 i = 0; i < threads; i++) {
        sequence[i] = (unsigned short)(order == 1 ? threads - 1 - i : i);
        place[sequence[i]] = (unsigned short)i;
        ready[i / 64] |= 1ull << (i % 64);
        warps[i / 32].existing |= 1u << (i % 32);
        fibers[i].state = RUNS;
        fibers[i].site = nullptr;
    }
    begin_round();
    fill(dynamic_shared, dynamic_bytes);
    if (__start_pleach_shared != nullptr) {
        fill((unsigned char*)__start_pleach_shared, (size_t)(__stop_pleach_shared - __start_pleach_shared));
    }
}

static bool check_launch(const EmulatedLaunch& launch) {
    U64 size = 1;
    for (U32 i = 0; i < 3; i++) {
        size *= launch.block[i];
        if (launch.grid[i] == 0 || launch.block[i] == 0 || launch.block[i] > THREADS_MAX) {
            append("%s: a grid or block has no size, or a block has too many threads", entry_name);
            return false;
        }
    }
    if (size > THREADS_MAX || launch.block[2] > 64 || launch.grid[1] > 65535 || launch.grid[2] > 65535 ||
        launch.grid[0] > 0x7FFFFFFFu) {
        append("%s: the grid or the block is too large", entry_name);
        return false;
    }
    if (launch.dynamic_shared_bytes > SHARED_BYTES_MAX) {
        append("%s: %u bytes of shared memory are too many", entry_name, launch.dynamic_shared_bytes);
        return false;
    }
    threads = (U32)size;
    return true;
}

static bool make_fibers(const EmulatedLaunch& launch) {
    for (U32 i = 0; i < threads; i++) {
        fibers[i].number = i;
        fibers[i].index.x = i % launch.block[0];
        fibers[i].index.y = i / launch.block[0] % launch.block[1];
        fibers[i].index.z = i / launch.block[0] / launch.block[1];
        if (!make_fiber(i)) {
            return false;
        }
    }
    return true;
}

static void run_blocks(const EmulatedLaunch& launch) {
    bool has_stacks = take_stacks();
    if (!has_stacks || !make_fibers(launch)) {
        append("%s: no memory for stacks", entry_name);
        failed = true;
        if (has_stacks) {
            give_stacks_back();
        }
        return;
    }
    gridDim.x = launch.grid[0], gridDim.y = launch.grid[1], gridDim.z = launch.grid[2];
    blockDim.x = launch.block[0], blockDim.y = launch.block[1], blockDim.z = launch.block[2];
    order = launch.order;
    dynamic_bytes = launch.dynamic_shared_bytes;
    random_state = (launch.seed + 1) * 0x9E3779B97F4A7C15ull | 1;
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(dynamic_shared + launch.dynamic_shared_bytes,
                                sizeof dynamic_shared - launch.dynamic_shared_bytes);
    __asan_set_error_report_callback(on_report);
#endif
    for (U32 z = 0; z < gridDim.z && !failed; z++) {
        for (U32 y = 0; y < gridDim.y && !failed; y++) {
            for (U32 x = 0; x < gridDim.x && !failed; x++) {
                blockIdx.x = x, blockIdx.y = y, blockIdx.z = z;
                begin_block();
                current = &origin;
                switch_to(next_ready());
            }
        }
    }
#ifdef __SANITIZE_ADDRESS__
    __asan_set_error_report_callback(nullptr);
#endif
    // What is poisoned would stay so for what is mapped here when the program is unloaded.
    PLEACH_UNPOISON(dynamic_shared, sizeof dynamic_shared);
    if (failed) {
        for (U32 i = 0; i < threads; i++) {
            PLEACH_UNPOISON(fibers[i].stack, STACK_BYTES);
        }
    }
    give_stacks_back();
}

static int launch_call(const EmulatedLaunch* launch, const char* name, const Call& made, char* message, size_t bytes) {
    pthread_mutex_lock(&lock);
    failed = false;
    failure[0] = 0;
    entry_name = name;
    call = &made;
    if (!check_launch(*launch)) {
        failed = true;
    } else {
        run_blocks(*launch);
    }
    int status = failed ? 1 : 0;
    if (message != nullptr && bytes > 0) {
        __builtin_snprintf(message, bytes, "%s", failure);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// Arguments, by the kernel's type.
template <class T> struct Plain { typedef T Type; };
template <class T> struct Plain<const T> { typedef T Type; };
template <size_t... I> struct Indices {};
template <size_t N, size_t... I> struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I> struct MakeIndices<0, I...> { typedef Indices<I...> Type; };

template <size_t I, class T> struct alignas(T) alignas(16) Slot {
    unsigned char bytes[sizeof(T)];
};
template <class Numbers, class... T> struct Slots;
template <size_t... I, class... T> struct Slots<Indices<I...>, T...> : Slot<I, T>... {
    void* at[sizeof...(T) + 1] = {static_cast<Slot<I, T>*>(this)->bytes...};
};

template <class... Arguments, size_t... I>
static void run_entry(const Call& made, Indices<I...>) {
    typedef void (*Entry)(Arguments...);
    ((Entry)made.entry)(*(typename Plain<Arguments>::Type*)made.arguments[I]...);
}

template <class... Arguments> static void run_call(const Call& made) {
    run_entry<Arguments...>(made, typename MakeIndices<sizeof...(Arguments)>::Type());
}

// The arguments as CUDA's launch takes them: pointers to values, which may lie anywhere.
template <class... Arguments>
static int launch_entry(const EmulatedLaunch* launch, const char* name, void (*entry)(Arguments...), void** given,
                        char* message, size_t bytes) {
    Slots<typename MakeIndices<sizeof...(Arguments)>::Type, Arguments...> slots;
    size_t sizes[] = {sizeof(Arguments)..., 0};
    for (size_t i = 0; i < sizeof...(Arguments); i++) {
        __builtin_memcpy(slots.at[i], given[i], sizes[i]);
    }
    Call made = {run_call<Arguments...>, (void*)entry, slots.at};
    return launch_call(launch, name, made, message, bytes);
}

// Bytes of an argument; 0 past the last one.
template <class... Arguments> static size_t argument_bytes(void (*)(Arguments...), size_t at) {
    size_t sizes[] = {sizeof(Arguments)..., 0};
    return at < sizeof...(Arguments) ? sizes[at] : 0;
}

}  // namespace pleach_shim
