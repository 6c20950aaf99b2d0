# SPDX-License-Identifier: Apache-2.0
# Code for NVIDIA GPUs, preset `cuda`. It compiles and links without a GPU. Without BATON_CUDA none of it is compiled.
set(BATON_CUDA OFF CACHE STRING "Executors, natives and kernels for NVIDIA GPUs: OFF, ON for all programs, or BESIDE for programs \
in bin/gpu that share the host's objects with those in bin")

# baton_cuda_part(NAME pattern...): the part `cuda` of a library that the Python package takes too, from the CUDA sources that
# match the patterns. It must be called before objects.cmake is exported.
function(baton_cuda_part name)
  if(BATON_CUDA)
    baton_part(${name} cuda)
    baton_add_cuda(${name}_cuda ${ARGN})
    set_target_properties(${name}_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
    set(parts_for_gpus ${parts_for_gpus} ${name}_cuda PARENT_SCOPE)
  endif()
endfunction()

# baton_add_cuda(TARGET pattern...): adds the CUDA sources that match the patterns to TARGET.
function(baton_add_cuda target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
  target_sources(${target} PRIVATE ${sources})
  target_link_libraries(${target} PUBLIC baton_cuda)
endfunction()

# baton_no_device_code(SOURCE...): these CUDA sources have no device code, nor have their headers. The host's compiler takes
# less time for them than nvcc, and complains if that is no longer so.
function(baton_no_device_code)
  if(BATON_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()
baton_no_device_code(collectives/executors/cuda/ranks.cu collectives/executors/nccl/executor.cu
                     collectives/executors/nccl/natives/exchanges.cu collectives/executors/peer/executor.cu
                     collectives/executors/peer/natives/auto_scan.cu harness/micro/device_step_timer.cu
                     sp_methods/kernels/device/cudnn/calls.cu)

# baton_add_library_calls(TARGET SOURCE FOLDER...): adds a source that calls one of NVIDIA's libraries, if the folders of its
# headers were found.
function(baton_add_library_calls target source)
  if(NOT BATON_CUDA OR "${ARGN}" MATCHES "NOTFOUND")
    return()
  endif()
  target_sources(${target} PRIVATE ${source})
  target_include_directories(${target} SYSTEM PRIVATE ${ARGN} ${CUDAToolkit_INCLUDE_DIRS})
endfunction()

# baton_gpu_program(PROGRAM...): adds programs to the target gpu_programs. With BESIDE they are no part of `all` and lie in
# bin/gpu.
function(baton_gpu_program)
  if(NOT TARGET gpu_programs)
    add_custom_target(gpu_programs)
  endif()
  add_dependencies(gpu_programs ${ARGN})
  if(BATON_CUDA STREQUAL BESIDE)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/gpu)
  endif()
endfunction()

# baton_also_on_gpus(PROGRAM...): programs that run with and without GPUs. With BESIDE each gets a second form, gpu_PROGRAM.
function(baton_also_on_gpus)
  foreach(program IN LISTS ARGN)
    if(BATON_CUDA STREQUAL BESIDE)
      get_target_property(sources ${program} SOURCES)
      get_target_property(folder ${program} SOURCE_DIR)
      get_target_property(libraries ${program} LINK_LIBRARIES)
      list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/]")
      list(TRANSFORM libraries PREPEND gpu_ REGEX "^with_")
      add_executable(gpu_${program} ${sources})
      set_target_properties(gpu_${program} PROPERTIES OUTPUT_NAME ${program})
      target_link_libraries(gpu_${program} PRIVATE ${libraries})
      baton_gpu_program(gpu_${program})
    else()
      baton_gpu_program(${program})
    endif()
  endforeach()
endfunction()

if(NOT BATON_CUDA)
  return()
endif()

# Not REQUIRED, so that one line says what is missing.
find_package(CUDAToolkit 12.4 QUIET)
if(NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(FATAL_ERROR "Preset cuda needs nvcc 12.4 or newer, and none was found; put it in PATH, or set CUDAToolkit_ROOT.")
endif()
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_ROOT PATH_SUFFIXES include PATHS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ENV NCCL_ROOT PATH_SUFFIXES lib lib64
             PATHS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  message(FATAL_ERROR "Preset cuda needs NCCL, and nccl.h or libnccl.so was not found; install libnccl-dev, or set NCCL_ROOT.")
endif()
file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_version REGEX "^#define NCCL_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" nccl_version "${nccl_version}")
if(nccl_version VERSION_LESS 2.28)
  message(FATAL_ERROR "Preset cuda needs NCCL 2.28 or newer for its windows, and ${NCCL_INCLUDE_DIR}/nccl.h is ${nccl_version}.")
endif()

# Optional, for softmax blocks by cuDNN.
set(CUDNN_FRONTEND_ROOT "" CACHE PATH "Folder with include/cudnn_frontend.h, and include/cudnn.h if it lies nowhere else")
include(cmake/cudnn.cmake)
set_source_files_properties(sp_methods/kernels/device/cudnn/plans.cpp PROPERTIES COMPILE_DEFINITIONS
                            "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB")

# Optional, for products of models: the header alone. The library is opened when a program runs.
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT CUBLASLT_INCLUDE_DIR)
  message(STATUS "No products of models on GPUs: cublasLt.h was not found")
endif()

# Ampere, Hopper with its own instructions, and newer chips that the compiler knows; the newest also as PTX, for chips
# that come after it. Binaries run on later chips of the same major version.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-arch OUTPUT_VARIABLE known)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
  if(known MATCHES "compute_100" AND known MATCHES "compute_120")
    list(APPEND CMAKE_CUDA_ARCHITECTURES 100-real 120)
  else()
    list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
  endif()
endif()
set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)

if(NOT BATON_OBJECTS) # which bring it
  add_library(baton_cuda INTERFACE)
  target_include_directories(baton_cuda SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
  target_link_libraries(baton_cuda INTERFACE CUDA::cudart_static ${NCCL_LIBRARY} ${CMAKE_DL_LIBS})
  set(parts_for_gpus baton_cuda)
endif()
