# SPDX-License-Identifier: Apache-2.0
# Libraries are objects, since the linker drops self-registering files from a static one. Programs, the Python package and
# programs for GPUs link the same objects. A program links with_NAME: the objects of NAME, of its parts and of what it needs.
# gpu_with_NAME has the parts for GPUs too.

# baton_library(NAME SOURCES source... NEEDS library...)
function(baton_library name)
  cmake_parse_arguments(its "" "" "SOURCES;NEEDS" ${ARGN})
  add_library(${name} OBJECT ${its_SOURCES})
  target_link_libraries(${name} PUBLIC ${its_NEEDS})
  foreach(with IN ITEMS with_ gpu_with_)
    add_library(${with}${name} INTERFACE)
    target_sources(${with}${name} INTERFACE $<TARGET_OBJECTS:${name}>)
    target_link_libraries(${with}${name} INTERFACE ${name})
    foreach(needed IN LISTS its_NEEDS)
      if(TARGET ${with}${needed})
        target_link_libraries(${with}${name} INTERFACE ${with}${needed})
      endif()
    endforeach()
  endforeach()
endfunction()

# baton_shared(NAME): the objects of NAME serve the Python package too, so they are position-independent.
function(baton_shared name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PRIVATE baton_of_package)
endfunction()

# baton_part(NAME PART source...): NAME_PART, objects that programs link beside those of NAME. With BATON_CUDA=BESIDE, only
# programs for GPUs link the part `cuda`.
function(baton_part name part)
  add_library(${name}_${part} OBJECT ${ARGN})
  target_link_libraries(${name}_${part} PUBLIC ${name})
  set(forms gpu_with_ with_)
  if(part STREQUAL cuda AND BATON_CUDA STREQUAL BESIDE)
    set(forms gpu_with_)
    set_target_properties(${name}_${part} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  foreach(with IN LISTS forms)
    target_sources(${with}${name} INTERFACE $<TARGET_OBJECTS:${name}_${part}>)
    target_link_libraries(${with}${name} INTERFACE ${name}_${part})
  endforeach()
endfunction()
