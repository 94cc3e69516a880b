// Runs kernels on the CPU, cluster after cluster, with checks; see emulator.h.
#include "device.h"

#include <map>
#include <string>
#include <utility>

#ifdef SYNCHROMESH_EMULATOR_THREADS
#include "threads.h"
#else
#include "fibers.h"
#endif
#include "trace.h"

namespace emulator {

thread_local Here here;

namespace {

const size_t MAX_SHARED = 160 * 1024;
const size_t GUARD = 64;
const u64 POISON = 0xdeadbeefdeadbeefull;

std::map<std::pair<u32, std::string>, Kernel>& kernels() {
    static std::map<std::pair<u32, std::string>, Kernel> table;
    return table;
}

// What is planted in the sets from PTX + 1 on.
std::map<u32, const char*>& faults() {
    static std::map<u32, const char*> table;
    return table;
}

// Most blocks of a cluster that every card with clusters takes.
const u32 MAX_CLUSTER = 8;

// Runs the blocks of a cluster, whose threads do not wait for each other.
Fault run_flat(const std::vector<Here>& blocks, const u32* block, Order& order) {
    for (const Here& place : blocks) {
        here = place;
        for (u32 t : order.next()) {
            here.thread = index_of(t, block);
            current_launch.kernel->run(current_launch.arguments);
        }
    }
    return current_launch.fault;
}

Fault check(const Kernel& kernel, const u32* grid, const u32* block, u32 cluster, size_t shared, const size_t* sizes,
            size_t count, size_t bytes) {
    if (kernel.sizes != nullptr && count != kernel.count) {
        return ARGUMENT_COUNT;
    }
    bool alike = kernel.sizes == nullptr || std::equal(sizes, sizes + count, kernel.sizes);
    if (!alike || bytes != kernel.bytes || bytes > 4096) {
        return ARGUMENT_SIZE;
    }
    u64 threads = (u64)block[0] * block[1] * block[2];
    bool empty = threads == 0 || grid[0] == 0 || grid[1] == 0 || grid[2] == 0;
    if (empty || threads > kernel.threads || block[2] > 64 || grid[0] > 0x7fffffff || grid[1] > 65535 ||
        grid[2] > 65535) {
        return SHAPE;
    }
    if (cluster == 0 || cluster > MAX_CLUSTER || grid[0] % cluster != 0) {
        return CLUSTER_SHAPE;
    }
    return shared > MAX_SHARED || shared % sizeof(u64) != 0 ? SHARED_SIZE : NONE;
}

}  // namespace

bool enter(const Kernel& kernel) { return kernels().emplace(std::make_pair(kernel.set, kernel.name), kernel).second; }

const Kernel* find(const char* name, u32 set) {
    auto found = kernels().find({set, name});
    if (found == kernels().end() && set > PTX) {
        found = kernels().find({PTX, name});
    }
    return found == kernels().end() ? nullptr : &found->second;
}

bool plant(u32 set, const char* fault) { return faults().emplace(set, fault).second; }

char* misaligned() {
    static thread_local char nowhere[16];
    current_launch.fault = MISALIGNED;
    return nowhere;
}

char* out_of_bounds() {
    static thread_local char nowhere[16];
    current_launch.fault = OUT_OF_BOUNDS;
    return nowhere;
}

Counters begin(size_t stretches) {
    ThreadTrace& trace = of_thread(here, current_launch.cluster);
    return {trace.begin(stretches), tracing ? &trace.accesses : nullptr};
}

void barrier(bool of_cluster) {
    if (current_launch.kernel->flat) {
        current_launch.fault = UNDECLARED_BARRIER;
        return;
    }
    wait(of_cluster);
}

u64* shared_of(u64* own, u32 rank) {
    if (rank >= current_launch.cluster) {
        current_launch.fault = NO_SUCH_BLOCK;
        return own;
    }
    if (!within_reach(rank)) {
        current_launch.fault = OUT_OF_REACH;
    }
    return current_launch.shared + rank * current_launch.stride + (own - here.shared);
}

}  // namespace emulator

using namespace emulator;

extern "C" int synchromesh_emulate(const char* name, const u32* grid, const u32* block, u32 cluster, size_t shared,
                                   const void* arguments, size_t bytes, const size_t* sizes, size_t count,
                                   const Manner* manner) {
    const Kernel* found = find(name, manner->set);
    if (found == nullptr) {
        return NO_KERNEL;
    }
    const Kernel& kernel = *found;
    Fault fault = check(kernel, grid, block, cluster, shared, sizes, count, bytes);
    if (fault != NONE) {
        return fault;
    }
    u32 threads = block[0] * block[1] * block[2];
    // Each block's shared memory between its guards.
    size_t words = shared / sizeof(u64), stride = words + 2 * GUARD;
    std::vector<u64> memory(cluster * stride);
    u64* const first_shared = memory.data() + GUARD;
    current_launch = {&kernel, arguments, NONE, manner->skipped, cluster, threads, first_shared, stride};
    const u32 order = manner->order;
    const size_t cluster_count = (size_t)grid[0] * grid[1] * grid[2] / cluster;
    Order clusters(cluster_count, order), team(cluster, order), within(threads, order);
    std::vector<Here> blocks(cluster);
    const bool sampled = manner->cache != nullptr;
    Tracing counting(manner->counts, kernel.listing, manner->cache, grid[0]);
    for (u32 c : clusters.next()) {
        if (sampled && index_of(c * cluster, grid).x != 0) {
            continue;
        }
        for (u32 rank = 0; rank < cluster; rank++) {
            blocks[rank] = {{0, 0, 0},
                            index_of(c * cluster + rank, grid),
                            {block[0], block[1], block[2]},
                            {grid[0], grid[1], grid[2]},
                            first_shared + rank * stride,
                            shared};
        }
        std::fill(memory.begin(), memory.end(), POISON);
        counting.begin(cluster, threads);
        fault = kernel.flat ? run_flat(blocks, block, within) : run_cluster(blocks, block, team, within);
        counting.end({(u64)first_shared, stride * sizeof(u64), (u64)(first_shared + (cluster - 1) * stride) + shared});
        for (u32 rank = 0; rank < cluster && fault == NONE; rank++) {
            const u64* first = memory.data() + rank * stride;
            auto intact = [&](size_t i) { return first[i] == POISON && first[GUARD + words + i] == POISON; };
            for (size_t i = 0; i < GUARD && fault == NONE; i++) {
                fault = intact(i) ? NONE : OVERRUN;
            }
        }
        if (fault != NONE) {
            return fault;
        }
    }
    return NONE;
}

extern "C" Cache* synchromesh_emulated_cache(size_t bytes) { return new Cache(bytes); }

extern "C" void synchromesh_emulated_cache_drop(Cache* cache) { delete cache; }

// The name of entry point `index` of a set, or null behind the last one.
extern "C" const char* synchromesh_emulated_kernel(u32 set, size_t index) {
    auto at = kernels().lower_bound({set, ""});
    for (; index > 0 && at != kernels().end(); index--) {
        ++at;
    }
    return at == kernels().end() || at->first.first != set ? nullptr : at->second.name;
}

// What is planted in the set of a number, or null.
extern "C" const char* synchromesh_emulated_fault(u32 set) {
    auto found = faults().find(set);
    return found == faults().end() ? nullptr : found->second;
}
