// Restricts the Highway targets to those that pay. Include it first, before hwy/foreach_target.h:
//
//   #include "kernels/targets.h"           // float kernels: SSE2, AVX2, AVX-512
// or, where integer dot products matter:
//   #define EPONA_WITH_INT_DOT             // adds AVX-512 with VNNI
//   #include "kernels/targets.h"
//
// No include guard: foreach_target.h includes the source file once for each target.
#ifndef HWY_ATTAINABLE_TARGETS_X86
#ifdef EPONA_WITH_INT_DOT
#define HWY_ATTAINABLE_TARGETS_X86 HWY_ENABLED(HWY_STATIC_TARGET | HWY_SSE2 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_ATTAINABLE_TARGETS_X86 HWY_ENABLED(HWY_STATIC_TARGET | HWY_SSE2 | HWY_AVX2 | HWY_AVX3)
#endif
#endif
