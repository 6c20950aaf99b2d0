# SPDX-License-Identifier: Apache-2.0
# Compiler flags of all targets.
add_library(baton_flags INTERFACE)
set(warnings -Wall -Wextra -Wno-missing-field-initializers)
target_compile_options(baton_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
# NCCL's device headers have unused parameters.
string(REPLACE ";" "," cuda_warnings "${warnings};-Wno-unused-parameter")
target_compile_options(baton_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_warnings}>")
# GCC warns about its own AVX-512 headers where Eigen inlines them.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(baton_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
# Open MPI's C++ bindings are gone from the standard, and their header warns.
target_compile_definitions(baton_flags INTERFACE OMPI_SKIP_MPICXX)
# Position-independent objects, which the Python package takes too, call one another as directly as others.
add_library(baton_of_package INTERFACE)
target_compile_options(baton_of_package INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
# For what computes in timed rounds. The rest, simulated times too, is the same on every machine.
add_library(baton_native INTERFACE)
if(BATON_NATIVE AND NOT BATON_SANITIZER)
  target_compile_options(baton_native INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(BATON_SANITIZER)
  target_compile_options(baton_flags INTERFACE -fsanitize=${BATON_SANITIZER} -fno-omit-frame-pointer)
  target_link_options(baton_flags INTERFACE -fsanitize=${BATON_SANITIZER})
endif()
