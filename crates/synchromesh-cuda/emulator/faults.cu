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

// No fault in a cluster of all blocks: block b has in[i] + b from the block before it, through its shared memory.
DEV_KERNEL(handed_on, u64* out, const u64* in) {
    DEV_SHARED();
    DEV_CLUSTER_BARRIER();
    u32 next = (blockIdx.x + 1) % gridDim.x;
    *cluster_shared(shared + threadIdx.x, next) = in[threadIdx.x] + next;
    DEV_CLUSTER_BARRIER();
    out[blockIdx.x * blockDim.x + threadIdx.x] = shared[threadIdx.x];
}

// Half of the blocks do not come to the barrier of the cluster.
DEV_KERNEL(divergent_cluster, u64* out, const u64* in) {
    if (blockIdx.x % 2 == 0) {
        DEV_CLUSTER_BARRIER();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = in[threadIdx.x];
}

DEV_EXPORT(faultless, 1024)
DEV_EXPORT(handed_on, 1024)
DEV_EXPORT(divergent_cluster, 1024)
DEV_EXPORT(divergent_barrier, 1024)
DEV_EXPORT(shared_overrun, 1024)
DEV_EXPORT(uninitialised_shared, 1024)
DEV_EXPORT_FLAT(undeclared_barrier, 1024)
