# SPDX-License-Identifier: Apache-2.0
# Writes baton_build.hpp with the current commit. It runs at every build and touches the file only when that changed.
# BATON_COMMIT in the environment takes precedence: it names the commit of a copy within another repository. `git archive`
# has written its commit into the file `archived_commit`, which elsewhere holds a placeholder.
find_package(Git QUIET)
set(BUILD_COMMIT unknown)
file(STRINGS ${SOURCE}/cmake/archived_commit archived REGEX "^[0-9a-f]+$")
if(DEFINED ENV{BATON_COMMIT})
  set(BUILD_COMMIT $ENV{BATON_COMMIT})
elseif(archived)
  string(SUBSTRING "${archived}" 0 12 BUILD_COMMIT)
elseif(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE described
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(BUILD_COMMIT ${described})
    # Sources are globbed, so an untracked file is compiled too.
    execute_process(COMMAND ${GIT_EXECUTABLE} ls-files --others --exclude-standard
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE unknown_files ERROR_QUIET)
    if(unknown_files AND NOT described MATCHES "-dirty$")
      string(APPEND BUILD_COMMIT -dirty)
    endif()
  endif()
endif()
# Names of executors in code for GPUs, also where that is not compiled.
file(GLOB executors ${SOURCE}/collectives/executors/*/executor.cu)
set(names)
foreach(executor IN LISTS executors)
  file(STRINGS ${executor} lines REGEX "(registered\\(|\\.name = )\"[a-z0-9_]+\"")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "\"[a-z0-9_]+\"" name "${line}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(JOIN names ", " BUILD_DEVICE_EXECUTORS)
configure_file(${SOURCE}/cmake/baton_build.hpp.in ${TARGET} @ONLY)
