# SPDX-License-Identifier: Apache-2.0
# Finds what softmax blocks by cuDNN take to build: headers alone, of the packages nvidia-cudnn-frontend, which ./run unpacks, and
# nvidia-cudnn-cu13 of PyPI, which torch brings, or of any Python that this shell knows. The library is opened when a program runs.
# `cmake -P cmake/cudnn.cmake` says what was found.
set(python_packages "")
foreach(python IN ITEMS python3 python $ENV{VIRTUAL_ENV}/bin/python3 $ENV{CONDA_PREFIX}/bin/python3 /usr/bin/python3)
  set(found "")
  execute_process(COMMAND ${python} -c "import sys; print(';'.join(p for p in sys.path if p.endswith('-packages')), end='')"
                  OUTPUT_VARIABLE found ERROR_QUIET)
  list(APPEND python_packages ${found})
endforeach()
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${CUDNN_FRONTEND_ROOT} ENV CUDNN_FRONTEND_ROOT
          PATH_SUFFIXES include torch/include
          PATHS ${CMAKE_CURRENT_LIST_DIR}/../build/cudnn_frontend ${python_packages} $ENV{CONDA_PREFIX})
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ENV CUDNN_ROOT PATH_SUFFIXES include nvidia/cudnn/include
          PATHS ${CUDAToolkit_INCLUDE_DIRS} ${python_packages} ${CUDNN_FRONTEND_ROOT} $ENV{CUDNN_FRONTEND_ROOT} $ENV{CONDA_PREFIX})
if(CUDNN_FRONTEND_INCLUDE_DIR AND CUDNN_INCLUDE_DIR)
  message(STATUS "Softmax blocks by cuDNN too: ${CUDNN_FRONTEND_INCLUDE_DIR}, ${CUDNN_INCLUDE_DIR}")
else()
  message(STATUS "Softmax blocks by our own kernels alone: cudnn_frontend.h or cudnn.h was not found")
endif()
