# SPDX-License-Identifier: Apache-2.0
# Writes baton_build.hpp with the current commit. It runs at every build and touches the file only when that changed.
# BATON_COMMIT in the environment takes precedence: it names the commit of a copy within another repository. `git archive`
# has written its commit into the file `archived_commit`, which elsewhere holds a placeholder.
# A changed tree is called COMMIT-dirty-DIGEST: the digest is of its difference, so that it equals itself alone.
find_package(Git QUIET)
set(sources CMakeLists.txt cmake collectives harness sp_methods) # they are globbed, so an untracked file is compiled too

# git(RESULT WORDS...): the output of git, whose own words are in `git_said` where it fails.
macro(git result)
  execute_process(COMMAND ${GIT_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE ${result}
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE git_said RESULT_VARIABLE git_failed)
endmacro()

# Sets `result` to a digest of all that differs from the commit: of changes, and of names and contents of new sources.
function(digest_of_difference result)
  execute_process(COMMAND ${GIT_EXECUTABLE} -c diff.mnemonicPrefix=false -c diff.noprefix=false diff --no-color --no-ext-diff
                          --no-textconv --full-index HEAD
                  COMMAND ${GIT_EXECUTABLE} hash-object --stdin
                  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE changes ERROR_QUIET)
  execute_process(COMMAND ${GIT_EXECUTABLE} ls-files --others --exclude-standard -- ${sources}
                  COMMAND ${GIT_EXECUTABLE} hash-object --stdin-paths
                  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE contents ERROR_QUIET)
  string(SHA1 digest "${changes}${untracked}${contents}")
  string(SUBSTRING ${digest} 0 8 digest)
  set(${result} ${digest} PARENT_SCOPE)
endfunction()

set(BUILD_COMMIT unknown)
set(BUILD_COMMIT_LACKS "")
file(STRINGS ${SOURCE}/cmake/archived_commit archived REGEX "^[0-9a-f]+$")
if(DEFINED ENV{BATON_COMMIT})
  set(BUILD_COMMIT $ENV{BATON_COMMIT})
elseif(archived)
  string(SUBSTRING "${archived}" 0 12 BUILD_COMMIT)
elseif(GIT_FOUND)
  git(described describe --always --dirty --abbrev=12)
  if(git_failed)
    string(REGEX MATCH "[^\n]+" BUILD_COMMIT_LACKS "git says: ${git_said}")
    string(REGEX REPLACE "[\"\\\\]" "" BUILD_COMMIT_LACKS "${BUILD_COMMIT_LACKS}")
  else()
    git(untracked ls-files --others --exclude-standard -- ${sources})
    string(REGEX REPLACE "-dirty$" "" BUILD_COMMIT "${described}")
    if(untracked OR described MATCHES "-dirty$")
      digest_of_difference(digest)
      string(APPEND BUILD_COMMIT -dirty-${digest})
    endif()
  endif()
else()
  set(BUILD_COMMIT_LACKS "there is no git here")
endif()
configure_file(${SOURCE}/cmake/baton_build.hpp.in ${TARGET} @ONLY)
