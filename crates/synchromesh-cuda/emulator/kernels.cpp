// The kernels as C++, and those with planted faults.
#include "kernels.cu"
#include "cluster.cu"
#include "faults.cu"
