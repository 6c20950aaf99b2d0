# SPDX-License-Identifier: Apache-2.0
# The compiled parts of the Python package, for `./run wheel`: the benches with natives and methods in Python, and
# with BATON_CUDA the executors of GPUs as a library of their own, which is opened where there are NCCL and a GPU.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
file(GLOB module_sources CONFIGURE_DEPENDS plots/native/*.cpp)
nanobind_add_module(_harness NB_STATIC ${module_sources} ${native_sources})
target_link_libraries(_harness PRIVATE layers sp_methods harness collectives)
# nanobind hides what its sources define, so that the executors of GPUs would find no registry to add themselves to.
set_target_properties(_harness PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
install(TARGETS _harness LIBRARY DESTINATION baton COMPONENT python)
# Objects of a build for this processor need its instructions, which the package asks for before it loads them.
get_target_property(native_options baton_native INTERFACE_COMPILE_OPTIONS)
if(native_options MATCHES "march=native")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "__(AVX[0-9A-Z]*|FMA|BMI2)__" instructions "${macros}")
  string(REPLACE "__" "" instructions "${instructions}")
  string(TOLOWER "${instructions}" instructions)
  file(WRITE ${CMAKE_BINARY_DIR}/instructions.txt "${instructions}")
  install(FILES ${CMAKE_BINARY_DIR}/instructions.txt DESTINATION baton COMPONENT python)
endif()
add_custom_target(python_parts)
add_dependencies(python_parts _harness)

if(BATON_CUDA)
  if(NOT TARGET sp_methods_cuda)
    message(FATAL_ERROR "BATON_OBJECTS has no objects for GPUs: ${BATON_OBJECTS} was configured without BATON_CUDA")
  endif()
  add_library(_cuda MODULE $<TARGET_OBJECTS:collectives_cuda> $<TARGET_OBJECTS:sp_methods_cuda>)
  set_target_properties(_cuda PROPERTIES PREFIX "" INSTALL_RPATH "$ORIGIN" BUILD_RPATH "$ORIGIN" LINKER_LANGUAGE CUDA)
  # Its registries are those of the module, which lies beside it.
  add_dependencies(_cuda _harness)
  target_link_libraries(_cuda PRIVATE baton_cuda baton_flags -L$<TARGET_FILE_DIR:_harness> -l:$<TARGET_FILE_NAME:_harness>)
  install(TARGETS _cuda LIBRARY DESTINATION baton COMPONENT python)
  add_dependencies(python_parts _cuda)
endif()
