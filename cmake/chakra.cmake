# SPDX-License-Identifier: Apache-2.0
# `--export chakra`, which libprotobuf encodes: linked into the programs, so that they run where it is not installed. Without
# it the format is left out, as it is in the Python package, whose library holds position-independent code alone.
set(Protobuf_USE_STATIC_LIBS ON)
if(NOT BATON_PYTHON)
  find_package(Protobuf QUIET)
endif()
if(Protobuf_FOUND)
  target_sources(harness PRIVATE harness/record/chakra.cpp)
  target_link_libraries(harness PUBLIC protobuf::libprotobuf-lite)
else()
  message(STATUS "--export chakra is left out: no libprotobuf (Debian's libprotobuf-dev)")
endif()
