// SPDX-License-Identifier: Apache-2.0
// A failed allocation returns a null pointer under a sanitizer too, as it does without one.

// NOLINTBEGIN(readability-identifier-naming): the sanitizers' own names
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// NOLINTEND(readability-identifier-naming)
