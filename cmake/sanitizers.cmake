# SPDX-License-Identifier: Apache-2.0
# What the sanitizers must not blame on us: the MPI library keeps memory and uses shared memory between processes.
set(sanitizer_environment
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
  "ASAN_OPTIONS=detect_odr_violation=0"
  "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
  "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:ignore_noninstrumented_modules=1")
