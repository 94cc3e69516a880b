// The kernels as C++, and those with planted faults.
#include "kernels.cu"
#include "ntt_forward.cu"
#include "ntt_forward_sum.cu"
#include "ntt_inverse.cu"
#include "key_switch.cu"
#include "cluster.cu"
#include "faults.cu"
