# SPDX-License-Identifier: Apache-2.0
# How the tests run under the sanitizers. A buffer that cannot be had must come back as a null pointer, as it does
# without them.
set(sanitizer_environment
  "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
  "TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
set(sanitizer_environment_alone ${sanitizer_environment} "ASAN_OPTIONS=allocator_may_return_null=1")
# Open MPI leaks at its end from plugins that are unloaded by then, so that no suppression can name them.
set(sanitizer_environment_mpi ${sanitizer_environment} "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0")
