# SPDX-License-Identifier: Apache-2.0
# `--export chakra`, which libprotobuf encodes: linked into the programs, so that they run where it is not installed. Without
# it the format is left out, as it is in the Python package.
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf QUIET)
if(Protobuf_FOUND)
  baton_part(harness chakra harness/record/chakra.cpp)
  target_link_libraries(harness_chakra PUBLIC protobuf::libprotobuf-lite)
else()
  message(STATUS "--export chakra is left out: no libprotobuf (Debian's libprotobuf-dev)")
endif()
