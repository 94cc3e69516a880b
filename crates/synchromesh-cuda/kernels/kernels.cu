// Every kernel, one translation unit.
#include "key_switch.cu"
#include "pointwise.cu"
#include "convert.cu"
#include "sample.cu"
