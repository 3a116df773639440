# What `cmake --install` lays down.

include(CMakePackageConfigHelpers)
if(NOT TARGET plait_shared)
  return()
endif()

install(TARGETS plait_shared EXPORT plait LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/plait DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET plait)
  install(TARGETS plait RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

  # The program writes its own man page and completion, from its one table of options.
  file(GLOB cli_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
  set(has_pages)
  foreach(file IN LISTS cli_files)
    file(STRINGS ${file} hits REGEX "\"completion\"" LIMIT_COUNT 1)
    list(APPEND has_pages ${hits})
  endforeach()
  if(has_pages AND NOT CMAKE_CROSSCOMPILING)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/plait.1 COMMAND plait help --man > plait.1 DEPENDS plait
                       WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
    set(scripts)
    foreach(shell IN ITEMS bash zsh fish)
      add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/plait.${shell}
                         COMMAND plait help --completion ${shell} > plait.${shell}
                         DEPENDS plait WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
      list(APPEND scripts ${PROJECT_BINARY_DIR}/plait.${shell})
    endforeach()
    add_custom_target(plait_pages ALL DEPENDS ${PROJECT_BINARY_DIR}/plait.1 ${scripts})
    install(FILES ${PROJECT_BINARY_DIR}/plait.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${PROJECT_BINARY_DIR}/plait.bash RENAME plait
            DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
    install(FILES ${PROJECT_BINARY_DIR}/plait.zsh RENAME _plait
            DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
    install(FILES ${PROJECT_BINARY_DIR}/plait.fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
  endif()
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

file(RELATIVE_PATH PLAIT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/plait.pc.in ${PROJECT_BINARY_DIR}/plait.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/plait.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
