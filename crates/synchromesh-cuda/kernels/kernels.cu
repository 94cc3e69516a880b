// Kernels without transforms, a translation unit.
#include "pointwise.cu"
#include "convert.cu"
#include "sample.cu"
