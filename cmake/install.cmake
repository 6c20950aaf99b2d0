# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: programs into bin/, machines for the simulator, models and the Python of
# `baton report`, `compare`, `advise` and `doctor` into share/baton/, documents into share/doc/baton/.
include(GNUInstallDirs)
install(TARGETS collective_bench operator_bench doctor_readings DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET model_bench)
  install(TARGETS model_bench DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY sp_methods/models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/baton/models FILES_MATCHING PATTERN *.json
          PATTERN kernels EXCLUDE PATTERN reference EXCLUDE)
endif()
install(PROGRAMS cmake/packaging/baton DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY results/paper/settings DESTINATION ${CMAKE_INSTALL_DATADIR}/baton)
install(DIRECTORY topologies DESTINATION ${CMAKE_INSTALL_DATADIR}/baton)
install(DIRECTORY plots/baton DESTINATION ${CMAKE_INSTALL_DATADIR}/baton/plots PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
