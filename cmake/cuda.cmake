# SPDX-License-Identifier: Apache-2.0
# Code for NVIDIA GPUs, preset `cuda`. It compiles and links without a GPU. Without BATON_CUDA none of it is compiled.
option(BATON_CUDA "Build the executors, natives and kernels for NVIDIA GPUs" OFF)

# baton_add_cuda(TARGET PATTERN...): adds the CUDA sources that match the patterns to TARGET.
function(baton_add_cuda target)
  if(NOT BATON_CUDA)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
  target_sources(${target} PRIVATE ${sources})
  target_link_libraries(${target} PUBLIC baton_cuda)
endfunction()

# baton_add_cudnn(TARGET SOURCE): adds the source that includes cudnn-frontend, where that is found.
function(baton_add_cudnn target source)
  if(NOT BATON_CUDA OR NOT CUDNN_FRONTEND_INCLUDE_DIR OR NOT CUDNN_INCLUDE_DIR)
    return()
  endif()
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS
                              "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB")
  target_include_directories(${target} SYSTEM PRIVATE ${CUDNN_FRONTEND_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR}
                                                      ${CUDAToolkit_INCLUDE_DIRS})
endfunction()

# baton_add_cublas(TARGET SOURCE): adds the source that includes cublasLt.h, where the toolkit has that.
function(baton_add_cublas target source)
  if(NOT BATON_CUDA OR NOT CUBLASLT_INCLUDE_DIR)
    return()
  endif()
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_include_directories(${target} SYSTEM PRIVATE ${CUBLASLT_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
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

# Optional, for softmax blocks by cuDNN: headers alone, of the packages nvidia-cudnn-frontend, which ./run unpacks, and
# nvidia-cudnn-cu13 of PyPI, or of the Python in PATH. The library is opened when a program runs.
set(CUDNN_FRONTEND_ROOT "" CACHE PATH "Folder with include/cudnn_frontend.h, and include/cudnn.h if it lies nowhere else")
execute_process(COMMAND python3 -c "import sys; print(';'.join(p for p in sys.path if p.endswith('-packages')), end='')"
                OUTPUT_VARIABLE python_packages ERROR_QUIET)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${CUDNN_FRONTEND_ROOT} ENV CUDNN_FRONTEND_ROOT
          PATH_SUFFIXES include PATHS ${PROJECT_SOURCE_DIR}/build/cudnn_frontend ${python_packages})
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ENV CUDNN_ROOT PATH_SUFFIXES include nvidia/cudnn/include
          PATHS ${CUDAToolkit_INCLUDE_DIRS} ${python_packages} ${CUDNN_FRONTEND_ROOT} $ENV{CUDNN_FRONTEND_ROOT})
if(CUDNN_FRONTEND_INCLUDE_DIR AND CUDNN_INCLUDE_DIR)
  message(STATUS "Softmax blocks by cuDNN too: ${CUDNN_FRONTEND_INCLUDE_DIR}, ${CUDNN_INCLUDE_DIR}")
else()
  message(STATUS "Softmax blocks by our own kernels alone: cudnn_frontend.h or cudnn.h was not found")
endif()

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

add_library(baton_cuda INTERFACE)
target_include_directories(baton_cuda SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
target_link_libraries(baton_cuda INTERFACE CUDA::cudart_static ${NCCL_LIBRARY} ${CMAKE_DL_LIBS})
