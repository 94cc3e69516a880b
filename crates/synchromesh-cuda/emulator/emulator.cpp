// Runs kernels on the CPU, block after block, with checks; see emulator.h.
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

// Runs the threads of one block that do not wait for each other.
Fault run_flat(const u32* block, Order& order) {
    for (u32 t : order.next()) {
        here.thread = index_of(t, block);
        current_launch.kernel->run(current_launch.arguments);
    }
    return current_launch.fault;
}

Fault check(const Kernel& kernel, const u32* grid, const u32* block, size_t shared, const size_t* sizes, size_t count,
            size_t bytes) {
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
    return shared > MAX_SHARED || shared % sizeof(u64) != 0 ? SHARED_SIZE : NONE;
}

}  // namespace

bool enter(const Kernel& kernel) { return kernels().emplace(kernel.name, kernel).second; }

const Kernel* find(const char* name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

void barrier() {
    if (current_launch.kernel->flat) {
        current_launch.fault = UNDECLARED_BARRIER;
        return;
    }
    wait();
}

}  // namespace emulator

using namespace emulator;

// Launches a kernel on `bytes` bytes of arguments, of these sizes, and waits for it; 0, or what is wrong. `skipped` plants
// a fault: the barrier, counted from 1, at which threads do not wait.
extern "C" int synchromesh_emulate(const char* name, const u32* grid, const u32* block, size_t shared,
                                   const void* arguments, size_t bytes, const size_t* sizes, size_t count, u32 order,
                                   size_t skipped) {
    const Kernel* found = find(name);
    if (found == nullptr) {
        return NO_KERNEL;
    }
    const Kernel& kernel = *found;
    Fault fault = check(kernel, grid, block, shared, sizes, count, bytes);
    if (fault != NONE) {
        return fault;
    }
    u32 threads = block[0] * block[1] * block[2];
    size_t words = shared / sizeof(u64);
    std::vector<u64> memory(words + 2 * GUARD);
    current_launch.kernel = &kernel;
    current_launch.arguments = arguments;
    current_launch.fault = NONE;
    current_launch.skipped = skipped;
    Order blocks((size_t)grid[0] * grid[1] * grid[2], order), within(threads, order);
    here = {{0, 0, 0}, {0, 0, 0}, {block[0], block[1], block[2]}, {grid[0], grid[1], grid[2]}, memory.data() + GUARD};
    for (u32 b : blocks.next()) {
        here.block = index_of(b, grid);
        std::fill(memory.begin(), memory.end(), POISON);
        fault = kernel.flat ? run_flat(block, within) : run_block(threads, block, within);
        auto intact = [&](size_t i) { return memory[i] == POISON && memory[GUARD + words + i] == POISON; };
        for (size_t i = 0; i < GUARD && fault == NONE; i++) {
            fault = intact(i) ? NONE : OVERRUN;
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
