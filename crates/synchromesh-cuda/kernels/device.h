// The words that the kernels are written in: CUDA under a CUDA compiler, the emulator under any other.
//
// A kernel is a body, DEV_KERNEL(name, arguments...), that knows its batch element, its limb and how many limbs there are,
// and the table entry DEV_EXPORT(name, threads) makes two entry points of it: `name` for one list of arguments, and
// `name_merged` for several lists that lie in device memory, each with the grid of a launch of its own. Either takes one
// parameter, a structure.
#pragma once
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned short u16;

// Arguments in memory one behind the other, each at its alignment; src/arguments.rs lays them out in the same way.
template <class... T>
struct Pack;
template <class T>
struct Pack<T> {
    T head;
};
template <class T, class U, class... Rest>
struct Pack<T, U, Rest...> {
    T head;
    Pack<U, Rest...> tail;
};

template <class T>
struct Bare {
    typedef T Type;
};
template <class T>
struct Bare<const T&> {
    typedef T Type;
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEV_FN __device__ __forceinline__
#define DEV_METHOD __device__ __forceinline__
#define DEV_CONSTANT __device__ constexpr
#define DEV_ARG(type) const type&
#define DEV_SHARED() \
    extern __shared__ u64 dev_shared[]; \
    u64* const shared = dev_shared
#define DEV_BARRIER() __syncthreads()
#define DEV_UNROLL _Pragma("unroll")
#define DEV_ONE_TURN _Pragma("unroll 1")
// What was loaded before is loaded again, and not kept in registers.
#define DEV_RELOAD() asm volatile("" ::: "memory")
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Waits for all threads of the cluster; what they wrote before, into shared memory too, is seen by all after.
#define DEV_CLUSTER_BARRIER() \
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory")
// The word of block `rank` of the cluster at the place that `own` has in this block's shared memory.
DEV_FN u64* cluster_shared(u64* own, u32 rank) {
    u64* there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
    return there;
}
#endif
// Registers for a quarter of the warps that a multiprocessor of 2048 threads holds, at least.
#define DEV_LEAST_BLOCKS(threads) (512 / (threads))
#define DEV_EXPORT(kernel, threads) \
    extern "C" __global__ void __launch_bounds__(threads, DEV_LEAST_BLOCKS(threads)) \
        kernel(const __grid_constant__ Entry<kernel##_body>::Arguments arguments) { \
        Entry<kernel##_body>::run(arguments); \
    } \
    extern "C" __global__ void __launch_bounds__(threads, DEV_LEAST_BLOCKS(threads)) \
        kernel##_merged(const __grid_constant__ Entry<kernel##_body>::Several several) { \
        Entry<kernel##_body>::run_merged(several); \
    }
#define DEV_EXPORT_FLAT(kernel, threads) DEV_EXPORT(kernel, threads)
DEV_FN u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }
// A word that no other block asks for: it leaves the second-level cache first.
DEV_FN u64 load_once(const u64* from) { return __ldcs(from); }
DEV_FN u32 reverse_bits(u32 x) { return __brev(x); }
DEV_FN double double_of(u64 x) { return __ull2double_rn(x); }
DEV_FN double double_mul(double a, double b) { return __dmul_rn(a, b); }
DEV_FN double double_add(double a, double b) { return __dadd_rn(a, b); }
DEV_FN double double_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
DEV_FN u64 double_floor(double x) { return __double2ull_rd(x); }
DEV_FN u64 bits_of(double x) { return (u64)__double_as_longlong(x); }
DEV_FN double double_from(u64 bits) { return __longlong_as_double((i64)bits); }
#else
#include "emulator.h"
#endif

#define DEV_KERNEL(kernel, ...) \
    DEV_FN void kernel##_body([[maybe_unused]] u32 element, [[maybe_unused]] u32 limb, \
                              [[maybe_unused]] u32 limb_count, __VA_ARGS__)

// How a body is entered. One list: the grid is blocks x limbs x batch elements. `count` lists: blocks x (lists x batch
// elements) x limbs, so that what the lists have in common, a key say, is read by neighbours.
template <auto BODY>
struct Entry;
template <class... A, void (*BODY)(u32, u32, u32, A...)>
struct Entry<BODY> {
    typedef Pack<typename Bare<A>::Type...> Arguments;
    // Where lists lie, and how many.
    typedef Pack<const Arguments*, u32> Several;

    static DEV_METHOD void run(const Arguments& arguments) {
        unpack(blockIdx.z, blockIdx.y, gridDim.y, arguments);
    }
    static DEV_METHOD void run_merged(const Several& several) {
        u32 elements = gridDim.y / several.tail.head;
        unpack(blockIdx.y % elements, blockIdx.z, gridDim.z, several.head[blockIdx.y / elements]);
    }

private:
    template <class T, class... Done>
    static DEV_METHOD void unpack(u32 element, u32 limb, u32 limbs, const Pack<T>& last, const Done&... done) {
        BODY(element, limb, limbs, done..., last.head);
    }
    template <class T, class U, class... Rest, class... Done>
    static DEV_METHOD void unpack(u32 element, u32 limb, u32 limbs, const Pack<T, U, Rest...>& pack,
                                  const Done&... done) {
        unpack(element, limb, limbs, pack.tail, done..., pack.head);
    }
};
