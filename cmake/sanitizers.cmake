# SPDX-License-Identifier: Apache-2.0
# Environment of the tests that use MPI under the sanitizers. Open MPI leaks at exit from plugins that are unloaded by
# then, so no suppression can name them; its threads are not instrumented.
set(sanitizer_environment
  "ASAN_OPTIONS=detect_leaks=0"
  "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
