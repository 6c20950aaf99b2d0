# SPDX-License-Identifier: Apache-2.0
# Headers from outside that most sources of a target include, parsed once a target. Sources still include what they use:
# .ci/run's clang-tidy reads them without this.
#
# Off under ccache, which cannot keep what was compiled with them.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
set(standard_headers <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string> <vector>)

# baton_precompile(TARGET HEADER...): those, and the standard library's that are everywhere.
function(baton_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN} ${standard_headers})
endfunction()
