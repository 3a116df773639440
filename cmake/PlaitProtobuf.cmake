# Finds protobuf-c and its compiler: PLAIT_PROTOBUF_FOUND, the target plait_protobuf, and
#
#   plait_protobuf(<var> <file.proto>)     sets var to the C file that is made of the messages in file.proto, beside
#                                          which file.pb-c.h lies, in the current binary folder

add_library(plait_protobuf INTERFACE)
set(PLAIT_PROTOBUF_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  pkg_check_modules(PLAIT_PROTOBUF_C QUIET IMPORTED_TARGET libprotobuf-c)
  find_program(PLAIT_PROTOC_C NAMES protoc-c)
  mark_as_advanced(PLAIT_PROTOC_C)
endif()
if(PLAIT_PROTOBUF_C_FOUND AND PLAIT_PROTOC_C)
  set(PLAIT_PROTOBUF_FOUND ON)
  target_link_libraries(plait_protobuf INTERFACE PkgConfig::PLAIT_PROTOBUF_C)
  message(STATUS "protobuf-c: ${PLAIT_PROTOBUF_C_VERSION}")
else()
  message(STATUS "protobuf-c: not found, modules that need it are not built (script/bootstrap --all installs it)")
endif()

function(plait_protobuf var proto)
  get_filename_component(name ${proto} NAME_WE)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${name}.pb-c.c)
  add_custom_command(
    OUTPUT ${made} ${CMAKE_CURRENT_BINARY_DIR}/${name}.pb-c.h
    COMMAND ${PLAIT_PROTOC_C} --proto_path=${CMAKE_CURRENT_SOURCE_DIR} --c_out=${CMAKE_CURRENT_BINARY_DIR} ${proto}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
    VERBATIM)
  set_property(SOURCE ${made} PROPERTY COMPILE_OPTIONS -w) # not our code
  set(${var} ${made} PARENT_SCOPE)
endfunction()
