// Kernels with faults that the emulator must find; each sums neighbours through shared memory.
#include "device.h"

// No fault: out[i] = in[i] + in[i + 1].
DEV_KERNEL(faultless, u64* out, const u64* in) {
    DEV_SHARED();
    shared[threadIdx.x] = in[threadIdx.x];
    DEV_BARRIER();
    out[threadIdx.x] = shared[threadIdx.x] + shared[(threadIdx.x + 1) % blockDim.x];
}

// Only half of the threads wait.
DEV_KERNEL(divergent_barrier, u64* out, const u64* in) {
    DEV_SHARED();
    shared[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x % 2 == 0) {
        DEV_BARRIER();
    }
    out[threadIdx.x] = shared[threadIdx.x];
}

// One word behind the end of shared memory.
DEV_KERNEL(shared_overrun, u64* out, const u64* in) {
    DEV_SHARED();
    shared[threadIdx.x + 1] = in[threadIdx.x];
    out[threadIdx.x] = 0;
}

// Reads shared memory that nobody wrote.
DEV_KERNEL(uninitialised_shared, u64* out, const u64* in) {
    DEV_SHARED();
    out[threadIdx.x] = shared[threadIdx.x] + 0 * in[threadIdx.x];
}

// Declared without barriers.
DEV_KERNEL(undeclared_barrier, u64* out, const u64* in) {
    DEV_BARRIER();
    out[threadIdx.x] = in[threadIdx.x];
}

DEV_EXPORT(faultless, 1024)
DEV_EXPORT(divergent_barrier, 1024)
DEV_EXPORT(shared_overrun, 1024)
DEV_EXPORT(uninitialised_shared, 1024)
DEV_EXPORT_FLAT(undeclared_barrier, 1024)
