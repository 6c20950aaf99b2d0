# SPDX-License-Identifier: Apache-2.0
# The extension module of the Python package, for `./run wheel`: the harness of collective_bench, and natives in Python.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(_harness NB_STATIC python/native/module.cpp)
target_link_libraries(_harness PRIVATE harness collectives)
install(TARGETS _harness LIBRARY DESTINATION baton COMPONENT python)
