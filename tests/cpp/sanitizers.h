#pragma once
// EPONA_SANITIZED: the address or thread sanitizer owns the heap. g++ defines macros, clang answers __has_feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EPONA_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EPONA_SANITIZED
#endif
#endif
