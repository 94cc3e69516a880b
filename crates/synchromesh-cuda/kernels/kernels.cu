// Every kernel that needs no cluster, one translation unit.
#include "ntt.cu"
#include "key_switch.cu"
#include "pointwise.cu"
#include "convert.cu"
#include "sample.cu"
