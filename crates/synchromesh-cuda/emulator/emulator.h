// CUDA's execution model on a CPU, as far as the kernels use it: blocks of threads, barriers, shared memory.
//
// A thread of a block is a fiber that runs until it reaches a barrier or its end; then the next one runs. Between two
// barriers threads run in a chosen order, so that a result that depends on it shows. Shared memory is poisoned before
// each block and guarded on both sides.
#pragma once
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#define DEV_FN static inline
#define DEV_METHOD inline
#define DEV_KERNEL static void
#define DEV_BOUNDS(threads)
#define DEV_ARG(type) const type&
#define DEV_SHARED() u64* const shared = emulator::here.shared
#define DEV_BARRIER() emulator::barrier()
#define DEV_UNROLL
#define DEV_EXPORT(kernel) static const bool exported_##kernel = emulator::add(#kernel, kernel, false);
#define DEV_EXPORT_FLAT(kernel) static const bool exported_##kernel = emulator::add(#kernel, kernel, true);

namespace emulator {

struct Index {
    u32 x, y, z;
};

// What a thread sees of its place.
struct Here {
    Index thread, block, threads, blocks;
    u64* shared;
};
extern thread_local Here here;

// Waits for all threads of the block.
void barrier();

// A kernel: how to call it, and the sizes of its arguments in bytes.
struct Kernel {
    const char* name;
    void* function;
    void (*call)(void* function, void* const* arguments);
    const size_t* sizes;
    size_t count;
    // Never waits at a barrier.
    bool flat;
};

bool enter(const Kernel& kernel);

template <class... Arguments, size_t... I>
void apply(void (*function)(Arguments...), void* const* arguments, std::index_sequence<I...>) {
    function(*static_cast<std::remove_reference_t<Arguments>*>(arguments[I])...);
}

template <class... Arguments>
void call(void* function, void* const* arguments) {
    apply(reinterpret_cast<void (*)(Arguments...)>(function), arguments, std::index_sequence_for<Arguments...>());
}

template <class... Arguments>
bool add(const char* name, void (*function)(Arguments...), bool flat) {
    static const size_t sizes[] = {sizeof(std::remove_reference_t<Arguments>)...};
    return enter({name, reinterpret_cast<void*>(function), call<Arguments...>, sizes, sizeof...(Arguments), flat});
}

}  // namespace emulator

#define threadIdx (emulator::here.thread)
#define blockIdx (emulator::here.block)
#define blockDim (emulator::here.threads)
#define gridDim (emulator::here.blocks)

DEV_FN u64 mul_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
DEV_FN u32 reverse_bits(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
DEV_FN double double_of(u64 x) { return (double)x; }
DEV_FN double double_mul(double a, double b) { return a * b; }
DEV_FN double double_add(double a, double b) { return a + b; }
DEV_FN u64 double_floor(double x) { return (u64)std::floor(x); }
