# SPDX-License-Identifier: Apache-2.0
# baton_build.hpp holds the commit and the tools of this build, for the records.
set(build_header ${CMAKE_BINARY_DIR}/generated/baton_build.hpp)
add_custom_target(build_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DTARGET=${build_header}
          "-DBUILD_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DBUILD_VERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
          -DBUILD_BENCHMARK=${benchmark_VERSION} -DBUILD_CLI11=${CLI11_VERSION} -P ${PROJECT_SOURCE_DIR}/cmake/write_build_header.cmake
  BYPRODUCTS ${build_header} VERBATIM)
add_dependencies(harness build_header)
target_include_directories(harness PUBLIC ${CMAKE_BINARY_DIR}/generated)
