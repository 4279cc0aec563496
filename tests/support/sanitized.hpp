// SPDX-License-Identifier: Apache-2.0
// Whether this program was compiled for ThreadSanitizer, which takes the C library's place and many times as long.
#pragma once

namespace sealift::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

}  // namespace sealift::test
