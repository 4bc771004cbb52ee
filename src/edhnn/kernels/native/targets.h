// Which instruction sets are compiled in, and how a namespace is compiled for one of them.
#pragma once

#include "problems.h"

#if defined(__x86_64__) || defined(_M_X64)
#define EDHNN_X86 1
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 warns about its own header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#endif

#if defined(__clang__)
#define EDHNN_DO(text) _Pragma(#text)
#define EDHNN_TARGET(features) EDHNN_DO(clang attribute push(__attribute__((target(features))), apply_to = function))
#define EDHNN_TARGET_END _Pragma("clang attribute pop")
#elif defined(__GNUC__)
#define EDHNN_DO(text) _Pragma(#text)
#define EDHNN_TARGET(features) _Pragma("GCC push_options") EDHNN_DO(GCC target(features))
#define EDHNN_TARGET_END _Pragma("GCC pop_options")
#else  // MSVC takes intrinsics as they come
#define EDHNN_TARGET(features)
#define EDHNN_TARGET_END
#endif

#if defined(__SANITIZE_ADDRESS__)  // speed does not matter there, and inlining makes the compiler take minutes
#define EDHNN_INLINE inline
#elif defined(__GNUC__)
#define EDHNN_INLINE inline __attribute__((always_inline))
#else
#define EDHNN_INLINE __forceinline
#endif

namespace edhnn {

template <typename T>
Kernels<T> portable_kernels();
#ifdef EDHNN_X86
template <typename T>
Kernels<T> avx2_kernels();
template <typename T>
Kernels<T> avx512_kernels();
#endif

}  // namespace edhnn
