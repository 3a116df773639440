# libplait.so.0 of all rooms but cli, the program of all rooms, and plait_testing: the same objects for tests, save that
# files with hooks for tests have them.

get_property(built GLOBAL PROPERTY PLAIT_BUILT_ROOMS)
set(library_rooms ${built})
list(REMOVE_ITEM library_rooms cli)
get_property(modules GLOBAL PROPERTY PLAIT_MODULES)

set(objects)
set(testing_objects)
set(libs)
foreach(room IN LISTS library_rooms)
  get_property(room_objects GLOBAL PROPERTY PLAIT_OBJECTS_${room})
  list(APPEND objects ${room_objects})
  get_property(room_objects GLOBAL PROPERTY PLAIT_TESTING_OBJECTS_${room})
  list(APPEND testing_objects ${room_objects})
  get_property(room_libs GLOBAL PROPERTY PLAIT_LIBS_${room})
  list(APPEND libs ${room_libs})
endforeach()

if(objects)
  add_library(plait_testing STATIC EXCLUDE_FROM_ALL ${testing_objects})
  set_target_properties(plait_testing PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(plait_testing PUBLIC plait_depends ${libs})

  # What modules take their own hidden copies from.
  add_library(plait_plain STATIC EXCLUDE_FROM_ALL ${objects})
  set_target_properties(plait_plain PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(plait_plain PUBLIC plait_depends ${libs})

  add_library(plait_shared SHARED ${objects})
  set_target_properties(plait_shared PROPERTIES OUTPUT_NAME plait EXPORT_NAME plait LINKER_LANGUAGE C
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(plait_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(plait_shared PRIVATE plait_depends ${libs})
  if(NOT PLAIT_SANITIZE)
    target_link_options(plait_shared PRIVATE -Wl,--no-undefined)
  endif()
  add_library(plait::plait ALIAS plait_shared)
endif()

if(TARGET pli_cli)
  get_property(cli_objects GLOBAL PROPERTY PLAIT_OBJECTS_cli)
  get_property(cli_testing_objects GLOBAL PROPERTY PLAIT_TESTING_OBJECTS_cli)
  add_library(plait_cli STATIC EXCLUDE_FROM_ALL ${cli_testing_objects})
  set_target_properties(plait_cli PROPERTIES LINKER_LANGUAGE C)
  get_property(cli_libs GLOBAL PROPERTY PLAIT_LIBS_cli)
  target_link_libraries(plait_cli PUBLIC plait_testing ${cli_libs})

  # The program holds its own copy of the rooms: it may call what the library hides.
  if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.c)
    add_executable(plait ${PROJECT_SOURCE_DIR}/src/cli/main.c ${cli_objects} ${objects})
    get_property(uses GLOBAL PROPERTY PLAIT_USES_cli)
    plait_include_rooms(plait cli ${uses})
    target_link_libraries(plait PRIVATE plait_depends ${libs} ${cli_libs})
    set_target_properties(plait PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    if(modules)
      add_dependencies(plait ${modules})
    endif()
  endif()
endif()
