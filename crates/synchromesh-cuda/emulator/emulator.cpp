// Runs kernels on the CPU, cluster after cluster, with checks; see emulator.h.
#include "device.h"

#include <map>
#include <string>

#ifdef SYNCHROMESH_EMULATOR_THREADS
#include "threads.h"
#else
#include "fibers.h"
#endif

namespace emulator {

thread_local Here here;

namespace {

const size_t MAX_SHARED = 160 * 1024;
const size_t GUARD = 64;
const u64 POISON = 0xdeadbeefdeadbeefull;

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> table;
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
    if (count != kernel.count) {
        return ARGUMENT_COUNT;
    }
    if (!std::equal(sizes, sizes + count, kernel.sizes) || bytes != kernel.bytes || bytes > 4096) {
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

bool enter(const Kernel& kernel) { return kernels().emplace(kernel.name, kernel).second; }

const Kernel* find(const char* name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
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

// Launches a kernel on `bytes` bytes of arguments, of these sizes, and waits for it; 0, or what is wrong. `cluster` blocks
// along x are a cluster. `skipped` plants a fault: the barrier, counted from 1, at which threads do not wait.
extern "C" int synchromesh_emulate(const char* name, const u32* grid, const u32* block, u32 cluster, size_t shared,
                                   const void* arguments, size_t bytes, const size_t* sizes, size_t count, u32 order,
                                   size_t skipped) {
    const Kernel* found = find(name);
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
    current_launch = {&kernel, arguments, NONE, skipped, cluster, threads, memory.data() + GUARD, stride};
    Order clusters((size_t)grid[0] * grid[1] * grid[2] / cluster, order), team(cluster, order), within(threads, order);
    std::vector<Here> blocks(cluster);
    for (u32 c : clusters.next()) {
        for (u32 rank = 0; rank < cluster; rank++) {
            blocks[rank] = {{0, 0, 0},
                            index_of(c * cluster + rank, grid),
                            {block[0], block[1], block[2]},
                            {grid[0], grid[1], grid[2]},
                            current_launch.shared + rank * stride};
        }
        std::fill(memory.begin(), memory.end(), POISON);
        fault = kernel.flat ? run_flat(blocks, block, within) : run_cluster(blocks, block, team, within);
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

// The name of entry point `index`, or null behind the last one.
extern "C" const char* synchromesh_emulated_kernel(size_t index) {
    auto at = kernels().begin();
    for (; index > 0 && at != kernels().end(); index--) {
        ++at;
    }
    return at == kernels().end() ? nullptr : at->second.name;
}
