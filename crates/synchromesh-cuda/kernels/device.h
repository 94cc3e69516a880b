// The words that the kernels are written in: CUDA under a CUDA compiler, the emulator under any other.
#pragma once
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned short u16;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEV_FN __device__ __forceinline__
#define DEV_METHOD __device__ __forceinline__
#define DEV_KERNEL extern "C" __global__ void
#define DEV_BOUNDS(threads) __launch_bounds__(threads)
#define DEV_ARG(type) const __grid_constant__ type
#define DEV_SHARED() \
    extern __shared__ u64 dev_shared[]; \
    u64* const shared = dev_shared
#define DEV_BARRIER() __syncthreads()
#define DEV_UNROLL _Pragma("unroll")
#define DEV_EXPORT(kernel)
#define DEV_EXPORT_FLAT(kernel)
DEV_FN u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }
DEV_FN u32 reverse_bits(u32 x) { return __brev(x); }
DEV_FN double double_of(u64 x) { return __ull2double_rn(x); }
DEV_FN double double_mul(double a, double b) { return __dmul_rn(a, b); }
DEV_FN double double_add(double a, double b) { return __dadd_rn(a, b); }
DEV_FN u64 double_floor(double x) { return __double2ull_rd(x); }
#else
#include "emulator.h"
#endif
