// A launch in progress, and the order of its blocks and threads.
#pragma once
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "device.h"

namespace emulator {
namespace {

// What is wrong with a launch; src/emulated.rs has the words.
enum Fault {
    NONE,
    NO_KERNEL,
    ARGUMENT_COUNT,
    ARGUMENT_SIZE,
    SHAPE,
    SHARED_SIZE,
    DIVERGED,
    OVERRUN,
    UNDECLARED_BARRIER,
    CLUSTER_SHAPE,
    NO_SUCH_BLOCK,
    OUT_OF_REACH,
    MISALIGNED,
    OUT_OF_BOUNDS,
};

// The order of threads between barriers, of clusters, and of the blocks of a cluster: 0 ascending, 1 descending, others drawn from a generator
// with that seed.
class Order {
public:
    Order(size_t count, u32 order) : order(order), generator(order), indices(count) {
        std::iota(indices.begin(), indices.end(), 0);
        if (order == 1) {
            std::reverse(indices.begin(), indices.end());
        }
    }
    const std::vector<u32>& next() {
        if (order > 1) {
            std::shuffle(indices.begin(), indices.end(), generator);
        }
        return indices;
    }

private:
    u32 order;
    std::mt19937_64 generator;
    std::vector<u32> indices;
};

// The launch in progress on this thread of the host.
struct CurrentLaunch {
    const Kernel* kernel = nullptr;
    const void* arguments = nullptr;
    Fault fault = NONE;
    // The barrier that every thread passes without waiting, to plant a fault; 0 for none.
    size_t skipped = 0;
    // Blocks of a cluster, threads of a block, the shared memory of the first block, and how many words it is apart in
    // neighbours.
    u32 cluster = 1;
    u32 threads = 0;
    u64* shared = nullptr;
    size_t stride = 0;
};
thread_local CurrentLaunch current_launch;

Index index_of(u32 linear, const u32* shape) {
    return {linear % shape[0], linear / shape[0] % shape[1], linear / shape[0] / shape[1]};
}

}  // namespace
}  // namespace emulator
