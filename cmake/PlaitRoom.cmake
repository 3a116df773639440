# The functions that rooms, tests, modules and fuzzers are declared with.
#
#   plait_room(<name> [SOURCES file...] [USES room...] [LIBS target...])
#       The room src/<name>. It may include its own headers, those of the rooms it USES ("<room>/<header>.h") and the
#       public ones (<plait/...h>), and no others. Without SOURCES: every .c below the folder, save *_test.c,
#       *_fuzz.c, main.c, files of kernels for another processor, and subfolders with a CMakeLists.txt of their own
#       (modules; these are entered by themselves). *_test.c become tests, *_fuzz.c fuzzers, by themselves too.
#   plait_test(<name> SOURCES file... [ROOM room] [USES room...] [LIBS target...] [LABELS label...] [TIMEOUT s])
#       A cmocka program, linked to all rooms with all symbols, run by ctest. TIMEOUT: so many seconds it may take when nothing
#       else runs (300); it is ended after three times as many, since a busy machine is no fault of the test's.
#   plait_mpi_test(<name> RANKS n (SOURCES file... | COMMAND word...) [ROOM room] [USES room...] [ARGS word...])
#       The same under mpirun with n processes; nothing where no MPI was found. Label mpi.
#   plait_module(<name> [SOURCES file...] [ROOM room] [USES room...] [LIBS target...])
#       plait-<name>.so, loaded when asked for. It has its own hidden copy of the functions of rooms that it calls.
#   plait_fuzz(<name> SOURCES file...[ROOM room])
#       A libFuzzer program under the preset fuzz; elsewhere a replay of tests/fuzz/corpus/<name>/ as a test.
#
# Defined for all C files: PLI_VERSION ("0.1.0"), PLI_MODULE_DIR (where modules are installed, absolute) and
# PLI_MODULE_DIR_FROM_BIN (the same, relative to the folder of the installed program). In the build tree modules lie
# in modules/ beside the program.

set(PLAIT_INC_ROOT ${PROJECT_BINARY_DIR}/inc)
file(RELATIVE_PATH PLAIT_MODULE_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/plait)
add_compile_definitions(
  PLI_VERSION="${PROJECT_VERSION}"
  PLI_MODULE_DIR="${CMAKE_INSTALL_FULL_LIBDIR}/plait"
  PLI_MODULE_DIR_FROM_BIN="${PLAIT_MODULE_FROM_BIN}")

# An include root for each room that holds nothing but the room: inc/<room>/<room> -> src/<room>.
foreach(room IN LISTS PLAIT_ROOMS)
  file(MAKE_DIRECTORY ${PLAIT_INC_ROOT}/${room})
  if(NOT EXISTS ${PLAIT_INC_ROOT}/${room}/${room})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${room} ${PLAIT_INC_ROOT}/${room}/${room} SYMBOLIC)
  endif()
endforeach()

# Stops unless room may use each of the others.
function(plait_check_uses room)
  list(FIND PLAIT_ROOMS ${room} at)
  if(at LESS 0)
    message(FATAL_ERROR "${room} is no room; the rooms are: ${PLAIT_ROOMS}")
  endif()
  foreach(used IN LISTS ARGN)
    list(FIND PLAIT_ROOMS ${used} used_at)
    if(used_at LESS 0)
      message(FATAL_ERROR "The room ${room} uses ${used}, which is no room; the rooms are: ${PLAIT_ROOMS}")
    elseif(used_at GREATER_EQUAL at)
      message(FATAL_ERROR "The room ${room} uses ${used}, but calls go down only: ${PLAIT_ROOMS}")
    endif()
  endforeach()
endfunction()

function(plait_include_rooms target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  foreach(room IN LISTS ARGN)
    target_include_directories(${target} PRIVATE ${PLAIT_INC_ROOT}/${room})
  endforeach()
endfunction()

# Drops kernel files of other processors from the list var, and sets the flags of those that stay.
function(plait_kernel_flags var)
  set(kept)
  foreach(file IN LISTS ${var})
    if(file MATCHES "_(avx2|avx512|shani|neon)\\.c$")
      set(isa ${CMAKE_MATCH_1})
      if(NOT DEFINED PLAIT_KERNEL_FLAGS_${isa})
        continue()
      endif()
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${PLAIT_KERNEL_FLAGS_${isa}})
    endif()
    list(APPEND kept ${file})
  endforeach()
  set(${var} ${kept} PARENT_SCOPE)
endfunction()

# Compiles sources into the object library target, as a part of the room name.
function(plait_object_library target name)
  add_library(${target} OBJECT ${ARGN})
  target_compile_definitions(${target} PRIVATE PLAIT_NO_SITES) # those are for users' calls
  get_property(uses GLOBAL PROPERTY PLAIT_USES_${name})
  get_property(libs GLOBAL PROPERTY PLAIT_LIBS_${name})
  plait_include_rooms(${target} ${name} ${uses})
  target_link_libraries(${target} PRIVATE plait_depends ${libs})
endfunction()

# A file with hooks for tests (#ifdef PLI_TESTING) is compiled twice: without them for what is installed, and with them
# for plait_testing (once, with them, for gcov, which cannot merge the two). Sets the properties PLAIT_OBJECTS_<room> and PLAIT_TESTING_OBJECTS_<room>.
function(plait_room_objects name)
  set(hooked)
  foreach(file IN LISTS ARGN)
    file(STRINGS ${file} hooks REGEX "^#if.*PLI_TESTING" LIMIT_COUNT 1)
    if(hooks AND PLAIT_COVERAGE)
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS PLI_TESTING)
    elseif(hooks)
      list(APPEND hooked ${file})
    endif()
  endforeach()
  set(plain ${ARGN})
  set(objects)
  set(testing)
  if(hooked)
    list(REMOVE_ITEM plain ${hooked})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${hooked})
    plait_object_library(pli_${name}_hooked ${name} ${hooked})
    plait_object_library(pli_${name}_testing ${name} ${hooked})
    target_compile_definitions(pli_${name}_testing PRIVATE PLI_TESTING)
    list(APPEND objects $<TARGET_OBJECTS:pli_${name}_hooked>)
    list(APPEND testing $<TARGET_OBJECTS:pli_${name}_testing>)
  endif()
  plait_object_library(pli_${name} ${name} ${plain})
  set_property(GLOBAL PROPERTY PLAIT_OBJECTS_${name} ${objects} $<TARGET_OBJECTS:pli_${name}>)
  set_property(GLOBAL PROPERTY PLAIT_TESTING_OBJECTS_${name} ${testing} $<TARGET_OBJECTS:pli_${name}>)
endfunction()

function(plait_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "plait_room(${name}): unknown words: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  plait_check_uses(${name} ${ARG_USES})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})

  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.c)
  file(GLOB_RECURSE inner CONFIGURE_DEPENDS ${dir}/*/CMakeLists.txt)
  foreach(list_file IN LISTS inner)
    get_filename_component(module_dir ${list_file} DIRECTORY)
    if(NOT module_dir STREQUAL dir)
      list(FILTER all EXCLUDE REGEX "^${module_dir}/")
      list(APPEND module_dirs ${module_dir})
    endif()
  endforeach()
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.c$")
  if(ARG_SOURCES)
    set(sources)
    foreach(file IN LISTS ARG_SOURCES)
      get_filename_component(file ${file} ABSOLUTE)
      list(APPEND sources ${file})
    endforeach()
  else()
    set(sources ${all})
    list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|/main)\\.c$")
  endif()
  plait_kernel_flags(sources)

  set_property(GLOBAL PROPERTY PLAIT_USES_${name} "${ARG_USES}")
  set_property(GLOBAL PROPERTY PLAIT_LIBS_${name} "${ARG_LIBS}")
  set_property(GLOBAL PROPERTY PLAIT_TESTS_${name} "${tests}")
  set_property(GLOBAL PROPERTY PLAIT_FUZZERS_${name} "${fuzzers}")
  if(sources)
    plait_room_objects(${name} ${sources})
    set_property(GLOBAL APPEND PROPERTY PLAIT_BUILT_ROOMS ${name})
  endif()
  set(PLAIT_ROOM ${name})
  foreach(module_dir IN LISTS module_dirs)
    add_subdirectory(${module_dir})
  endforeach()
endfunction()

# base/arena_test.c -> base.arena; table/consistency/policies_test.c -> table.consistency.policies
function(plait_name_of room file suffix name_var)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src/${room} ${file})
  string(REGEX REPLACE "${suffix}$" "" path ${path})
  string(REPLACE "/" "." path ${path})
  set(${name_var} ${room}.${path} PARENT_SCOPE)
endfunction()

# The environment in which sanitized programs run under ctest.
set(PLAIT_TEST_ENV
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allocator_may_return_null=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp"
    "PLAIT_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "PLAIT_BUILD_DIR=${PROJECT_BINARY_DIR}")

# Leaks inside of an MPI are suppressed by the libraries on their stack, which the fast unwinder does not see. Where
# libraries that are loaded on request (an MPI's plugins) have thread-local storage, the sanitizer misreads the header
# in front of such a block now and then, and the leak checker falls over the wrong address ("LeakSanitizer has
# encountered a fatal error", exit 1): so it does not follow that storage.
string(CONCAT PLAIT_MPI_SANITIZER_ENV "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:"
       "allocator_may_return_null=1:fast_unwind_on_malloc=0:intercept_tls_get_addr=0")

function(plait_test_properties name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;ENV" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(PLAIT_TEST_TIMEOUT)
    set(deadline ${PLAIT_TEST_TIMEOUT})
  else()
    math(EXPR deadline "3 * ${ARG_TIMEOUT}")
  endif()
  set(env ${PLAIT_TEST_ENV} ${PLAIT_MPI_ENV} ${ARG_ENV})
  if(mpi IN_LIST ARG_LABELS)
    list(APPEND env ${PLAIT_MPI_SANITIZER_ENV})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${deadline} LABELS "${ARG_LABELS}" ENVIRONMENT "${env}"
                       SKIP_RETURN_CODE 77)
endfunction()

function(plait_test_program target)
  cmake_parse_arguments(ARG "" "ROOM" "SOURCES;USES;LIBS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  if(ARG_ROOM)
    get_property(uses GLOBAL PROPERTY PLAIT_USES_${ARG_ROOM})
    get_property(libs GLOBAL PROPERTY PLAIT_LIBS_${ARG_ROOM})
  endif()
  plait_include_rooms(${target} ${ARG_ROOM} ${uses} ${ARG_USES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE PLI_TESTING)
  # A test is compiled more often than its loops run: the compiler's time is a third of the whole suite's.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Dev>:-O0> $<$<CONFIG:Release>:-O1>)
  if(ARG_ROOM STREQUAL cli OR cli IN_LIST ARG_USES)
    target_link_libraries(${target} PRIVATE plait_cli)
  endif()
  target_link_libraries(${target} PRIVATE plait_direct plait_testing PkgConfig::CMOCKA ${libs} ${ARG_LIBS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(modules)
    add_dependencies(${target} ${modules})
  endif()
endfunction()

function(plait_test name)
  if(NOT PLAIT_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "ROOM;TIMEOUT" "SOURCES;USES;LIBS;LABELS" ${ARGN})
  string(REPLACE "." "_" target test_${name})
  plait_test_program(${target} SOURCES ${ARG_SOURCES} ROOM "${ARG_ROOM}" USES ${ARG_USES} LIBS ${ARG_LIBS})
  add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  plait_test_properties(${name} LABELS ${ARG_ROOM} ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# Root may start ranks, more of them than cores, unbound, and a waiting rank yields.
set(PLAIT_MPI_ENV
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1)

function(plait_mpi_test name)
  if(NOT PLAIT_TESTS OR NOT PLAIT_MPI_FOUND OR NOT PLAIT_MPIRUN)
    return()
  endif()
  cmake_parse_arguments(ARG "" "RANKS;ROOM;TIMEOUT" "SOURCES;COMMAND;USES;LIBS;ARGS;LABELS" ${ARGN})
  if(ARG_SOURCES)
    string(REPLACE "." "_" target test_${name})
    plait_test_program(${target} SOURCES ${ARG_SOURCES} ROOM "${ARG_ROOM}" USES ${ARG_USES} LIBS ${ARG_LIBS})
    set(ARG_COMMAND $<TARGET_FILE:${target}>)
  endif()
  add_test(NAME ${name} COMMAND sh ${PROJECT_SOURCE_DIR}/tests/mpi/mpirun.sh ${PLAIT_MPIRUN} -n ${ARG_RANKS} ${ARG_COMMAND} ${ARG_ARGS}
           WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  plait_test_properties(${name} LABELS mpi ${ARG_ROOM} ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
  set_tests_properties(${name} PROPERTIES PROCESSORS 2)
endfunction()

# Called when all rooms are known, since a test links them all.
function(plait_add_room_tests)
  foreach(room IN LISTS PLAIT_ROOMS)
    get_property(tests GLOBAL PROPERTY PLAIT_TESTS_${room})
    foreach(file IN LISTS tests)
      plait_name_of(${room} ${file} "_test.c" name)
      plait_test(${name} SOURCES ${file} ROOM ${room})
    endforeach()
  endforeach()
endfunction()

function(plait_fuzz name)
  cmake_parse_arguments(ARG "" "ROOM" "SOURCES;USES" ${ARGN})
  string(REPLACE "." "_" target fuzz_${name})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT PLAIT_FUZZ)
    if(NOT PLAIT_TESTS OR NOT BUILD_TESTING)
      return()
    endif()
    list(APPEND ARG_SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
  endif()
  add_executable(${target} ${ARG_SOURCES})
  get_property(uses GLOBAL PROPERTY PLAIT_USES_${ARG_ROOM})
  plait_include_rooms(${target} ${ARG_ROOM} ${uses} ${ARG_USES})
  if(ARG_ROOM STREQUAL cli)
    target_link_libraries(${target} PRIVATE plait_cli)
  endif()
  target_link_libraries(${target} PRIVATE plait_testing)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME fuzz_${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(PLAIT_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND ${target} -runs=10000 -max_total_time=20 -timeout=10
             -error_exitcode=1 ${corpus}) # its preset is 77, which is how a test says that it is skipped
  else()
    add_test(NAME fuzz.${name} COMMAND ${target} ${corpus})
  endif()
  plait_test_properties(fuzz.${name} LABELS fuzz ${ARG_ROOM})
endfunction()

# src/data/formats/libsvm_fuzz.c is the fuzzer data.formats.libsvm with the corpus
# tests/fuzz/corpus/data.formats.libsvm/.
function(plait_add_fuzzers)
  foreach(room IN LISTS PLAIT_ROOMS)
    get_property(fuzzers GLOBAL PROPERTY PLAIT_FUZZERS_${room})
    foreach(file IN LISTS fuzzers)
      plait_name_of(${room} ${file} "_fuzz.c" name)
      plait_fuzz(${name} SOURCES ${file} ROOM ${room})
    endforeach()
  endforeach()
endfunction()

function(plait_module name)
  cmake_parse_arguments(ARG "" "ROOM" "SOURCES;USES;LIBS" ${ARGN})
  if(NOT ARG_ROOM)
    set(ARG_ROOM ${PLAIT_ROOM})
  endif()
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "(_test|_fuzz)\\.c$")
  endif()
  get_property(uses GLOBAL PROPERTY PLAIT_USES_${ARG_ROOM})
  add_library(plait-${name} MODULE ${ARG_SOURCES})
  target_compile_definitions(plait-${name} PRIVATE PLAIT_NO_SITES)
  plait_include_rooms(plait-${name} ${ARG_ROOM} ${uses} ${ARG_USES})
  target_link_libraries(plait-${name} PRIVATE ${ARG_LIBS} plait_plain)
  target_link_options(plait-${name} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(plait-${name} PROPERTIES PREFIX "" OUTPUT_NAME plait-${name} SUFFIX .so
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  set_property(GLOBAL APPEND PROPERTY PLAIT_MODULES plait-${name})
endfunction()
