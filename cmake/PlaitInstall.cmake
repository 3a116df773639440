# What `cmake --install` lays down.

include(CMakePackageConfigHelpers)
if(NOT TARGET plait_shared)
  return()
endif()

install(TARGETS plait_shared EXPORT plait LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/plait DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET plait)
  install(TARGETS plait RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(module IN LISTS modules)
  install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/plait)
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plait)
install(EXPORT plait NAMESPACE plait:: FILE plait-targets.cmake DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/plait-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/plait-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plait-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plait-config.cmake ${PROJECT_BINARY_DIR}/plait-config-version.cmake
        DESTINATION ${package_dir})

get_property(requires GLOBAL PROPERTY PLAIT_PC_REQUIRES)
list(JOIN requires ", " PLAIT_PC_REQUIRES)
file(RELATIVE_PATH PLAIT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/plait.pc.in ${PROJECT_BINARY_DIR}/plait.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/plait.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
