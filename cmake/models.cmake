# SPDX-License-Identifier: Apache-2.0
# model_bench: a model's blocks, their workloads, and the library of their products. Without it the bench is left out.
find_package(OpenBLAS CONFIG QUIET)
if(NOT OpenBLAS_FOUND)
  message(STATUS "model_bench is left out: no OpenBLAS (Debian's libopenblas-dev)")
  return()
endif()
file(GLOB_RECURSE model_sources CONFIGURE_DEPENDS sp_methods/models/*.cpp)
list(FILTER model_sources EXCLUDE REGEX "/device/")
baton_library(models SOURCES ${model_sources} NEEDS sp_methods ${OpenBLAS_LIBRARIES})
target_include_directories(models SYSTEM PRIVATE ${OpenBLAS_INCLUDE_DIRS})
baton_precompile(models <Eigen/Core>)
baton_cuda_part(models sp_methods/models/*.cu)
baton_add_library_calls(models_cuda sp_methods/models/kernels/device/cublas.cpp "${CUBLASLT_INCLUDE_DIR}")

file(GLOB model_workload_sources CONFIGURE_DEPENDS harness/models/*.cpp)
baton_library(model_workloads SOURCES ${model_workload_sources} NEEDS layers models)
target_compile_definitions(model_workloads PRIVATE MODELS="${PROJECT_SOURCE_DIR}/sp_methods/models")
baton_precompile(model_workloads <fmt/format.h> <nlohmann/json.hpp>)

add_executable(model_bench harness/model_bench.cpp)
target_link_libraries(model_bench PRIVATE with_model_workloads)
