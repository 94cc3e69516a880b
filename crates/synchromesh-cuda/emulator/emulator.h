// CUDA's execution model on a CPU, as far as the kernels use it: clusters of blocks of threads, barriers, shared memory.
//
// A thread of a block is a fiber that runs until it reaches a barrier or its end; then the next one runs. Between two
// barriers threads run in a chosen order, and of the blocks of a cluster one runs ahead to the barrier of the cluster, in
// a chosen order too, so that a result that depends on it shows. Shared memory is poisoned before each block, guarded on
// both sides, and out of reach for other blocks of the cluster before its block runs and after it has ended.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#define DEV_FN static inline
#define DEV_METHOD inline
#define DEV_CONSTANT constexpr
#define DEV_ARG(type) const type&
#define DEV_SHARED() u64* const shared = emulator::here.shared
#define DEV_BARRIER() emulator::barrier(false)
#define DEV_CLUSTER_BARRIER() emulator::barrier(true)
#define DEV_UNROLL
#define DEV_ONE_TURN
#define DEV_RELOAD()
#define DEV_EXPORT(kernel, threads) \
    static const bool exported_##kernel = emulator::add<kernel##_body>(#kernel, #kernel "_merged", threads, false);
#define DEV_EXPORT_FLAT(kernel, threads) \
    static const bool exported_##kernel = emulator::add<kernel##_body>(#kernel, #kernel "_merged", threads, true);

template <auto BODY>
struct Entry;

namespace emulator {

struct Index {
    u32 x, y, z;
};

// What a thread sees of its place.
struct Here {
    Index thread, block, threads, blocks;
    u64* shared;
    size_t shared_bytes;
};
extern thread_local Here here;

// Waits for all threads of the block, or of the cluster.
void barrier(bool of_cluster);

// The word of block `rank` of the cluster at the place that `own` has in this block's shared memory.
u64* shared_of(u64* own, u32 rank);

// What is wrong with an access: the launch fails, and it goes to memory that nobody reads.
char* out_of_bounds();
char* misaligned();

// Classes of instructions that are counted; build/cpp.rs says which is of which.
const u32 CLASSES = 14;
// All instructions of an assembler, and those of each pipe; kernels/compile.py says which is of which.
const u32 PIPES = 5;

// What launches did, twin of `Counts` in src/counts.rs: instructions as warps issue them, and memory as warps reach it.
struct Counts {
    u64 launches, blocks, threads;
    u64 issued[CLASSES];
    // The same of what an assembler made of it.
    u64 assembled[PIPES];
    // Bytes that warps ask for, each once, and the sectors of 32 bytes that they are in; those that a cache had not, or
    // had to write back.
    u64 global_bytes, global_sectors, missed_sectors;
    // Shared memory's passes over its banks, those that it would take without conflicts, and the most for one.
    u64 shared_passes, shared_least, shared_ways;
};

// Instructions by class of a stretch of an entry that is run as one.
struct Stretch {
    u32 counts[CLASSES];
    u32 assembled[PIPES];
};

// An access to memory: how many bytes, whether its addresses are those of shared memory, and whether it writes.
struct Site {
    u32 bytes;
    bool shared;
    bool writes;
    // What it brings in leaves the second-level cache first.
    bool once;
};

class Cache;

// What is known of an entry for counting.
struct Listing {
    const Stretch* stretches;
    size_t count;
    const Site* sites;
};

// What a thread that begins is counted into.
struct Counters {
    // How often it has run each stretch.
    u32* stretches;
    // Its accesses, site and address; null where they are not wanted.
    std::vector<std::pair<u32, u64>>* accesses;
};
Counters begin(size_t stretches);

// Sets of kernels: the sources, the PTX, and from the next number on the PTX with a planted fault each.
const u32 SOURCES = 0, PTX = 1;

// An entry point of a kernel: how to run a thread of it, and the sizes of its arguments in bytes.
struct Kernel {
    const char* name;
    void (*run)(const void* arguments);
    // Null where they are not known one by one.
    const size_t* sizes;
    size_t count;
    // Of all arguments, as they lie in memory.
    size_t bytes;
    // Most threads of a block.
    u32 threads;
    // Never waits at a barrier.
    bool flat;
    u32 set;
    // Null where nothing is counted.
    const Listing* listing;
};

bool enter(const Kernel& kernel);

// The entry point of a name in a set, or null; what a planted fault leaves as it is is the PTX's.
const Kernel* find(const char* name, u32 set = SOURCES);

// Says what the fault of a set is.
bool plant(u32 set, const char* fault);

// How a launch is run.
struct Manner {
    u32 set;
    // Of threads, see `Order` in launch.h.
    u32 order;
    // Plants a fault: the barrier, counted from 1, at which threads do not wait; 0 for none.
    size_t skipped;
    // What the launch is added to, or null.
    Counts* counts;
    // The second-level cache that the launch finds, or null. With one, of the clusters along x the first is run, and the
    // first and the last warp of its first block count for all: they do the same on other words.
    Cache* cache;
};

template <class T>
struct Sizes;
template <class... T>
struct Sizes<Pack<T...>> {
    static constexpr size_t list[] = {sizeof(T)...};
    static constexpr size_t count = sizeof...(T);
};

// Enters both entry points of a kernel.
template <auto BODY>
bool add(const char* name, const char* merged, u32 threads, bool flat) {
    typedef typename ::Entry<BODY>::Arguments Arguments;
    typedef typename ::Entry<BODY>::Several Several;
    auto run = [](const void* list) { ::Entry<BODY>::run(*static_cast<const Arguments*>(list)); };
    auto run_merged = [](const void* list) { ::Entry<BODY>::run_merged(*static_cast<const Several*>(list)); };
    typedef Sizes<Arguments> One;
    typedef Sizes<Several> Many;
    return enter({name, run, One::list, One::count, sizeof(Arguments), threads, flat, SOURCES, nullptr}) &&
           enter({merged, run_merged, Many::list, Many::count, sizeof(Several), threads, flat, SOURCES, nullptr});
}

}  // namespace emulator

// Launches a kernel on `bytes` bytes of arguments, of these sizes, and waits for it; 0, or what is wrong. `cluster` blocks
// along x are a cluster.
extern "C" int synchromesh_emulate(const char* name, const u32* grid, const u32* block, u32 cluster, size_t shared,
                                   const void* arguments, size_t bytes, const size_t* sizes, size_t count,
                                   const emulator::Manner* manner);

#define threadIdx (emulator::here.thread)
#define blockIdx (emulator::here.block)
#define blockDim (emulator::here.threads)
#define gridDim (emulator::here.blocks)

DEV_FN u64* cluster_shared(u64* own, u32 rank) { return emulator::shared_of(own, rank); }
DEV_FN u64 mul_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
DEV_FN u64 load_once(const u64* from) { return *from; }
DEV_FN u32 reverse_bits(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
DEV_FN double double_of(u64 x) { return (double)x; }
DEV_FN double double_mul(double a, double b) { return a * b; }
DEV_FN double double_add(double a, double b) { return a + b; }
DEV_FN double double_fma(double a, double b, double c) { return std::fma(a, b, c); }
DEV_FN u64 double_floor(double x) { return (u64)std::floor(x); }
DEV_FN u64 bits_of(double x) {
    u64 bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEV_FN double double_from(u64 bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
