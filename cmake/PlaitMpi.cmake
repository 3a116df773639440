# Finds an MPI: .venv/ (Open MPI from PyPI, script/bootstrap --all), else mpicc on the path, else pkg-config.
# Sets PLAIT_MPI_FOUND, PLAIT_MPIRUN, PLAIT_MPI_ULFM (it tells of dead processes) and the target plait_mpi.

add_library(plait_mpi INTERFACE)
find_program(PLAIT_MPICC NAMES mpicc PATHS ${PROJECT_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
find_program(PLAIT_MPICC NAMES mpicc)
if(PLAIT_MPICC)
  execute_process(COMMAND ${PLAIT_MPICC} -show OUTPUT_VARIABLE show RESULT_VARIABLE bad
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT bad)
    separate_arguments(words UNIX_COMMAND "${show}")
    foreach(word IN LISTS words)
      if(word MATCHES "^-I(.+)")
        target_include_directories(plait_mpi SYSTEM INTERFACE ${CMAKE_MATCH_1})
      elseif(word MATCHES "^-(L|l|Wl,)")
        target_link_libraries(plait_mpi INTERFACE ${word}) # behind the objects, or --as-needed drops it
      endif()
    endforeach()
    set(PLAIT_MPI_FOUND ON)
  endif()
endif()
if(NOT PLAIT_MPI_FOUND)
  pkg_search_module(PLAIT_MPI_PC QUIET IMPORTED_TARGET ompi-c mpich mpi)
  if(PLAIT_MPI_PC_FOUND)
    target_link_libraries(plait_mpi INTERFACE PkgConfig::PLAIT_MPI_PC)
    set(PLAIT_MPI_FOUND ON)
  endif()
endif()
find_program(PLAIT_MPIRUN NAMES mpirun mpiexec PATHS ${PROJECT_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
find_program(PLAIT_MPIRUN NAMES mpirun mpiexec)
mark_as_advanced(PLAIT_MPICC PLAIT_MPIRUN)
if(PLAIT_MPI_FOUND)
  include(CheckCSourceCompiles)
  get_target_property(CMAKE_REQUIRED_INCLUDES plait_mpi INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT CMAKE_REQUIRED_INCLUDES)
    set(CMAKE_REQUIRED_INCLUDES)
  endif()
  if(TARGET PkgConfig::PLAIT_MPI_PC)
    get_target_property(CMAKE_REQUIRED_INCLUDES PkgConfig::PLAIT_MPI_PC INTERFACE_INCLUDE_DIRECTORIES)
  endif()
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # compiled, not linked
  check_c_source_compiles("
    #include <mpi.h>
    #include <mpi-ext.h>
    int main(void) { MPI_Group g; return MPIX_FT + MPIX_ERR_PROC_FAILED_PENDING + MPIX_Comm_failure_ack(MPI_COMM_WORLD) +
      MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &g) + MPIX_Comm_revoke(MPI_COMM_WORLD); }" PLAIT_MPI_ULFM)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  unset(CMAKE_REQUIRED_INCLUDES)
  message(STATUS "MPI: ${PLAIT_MPICC}")
else()
  message(STATUS "MPI: none found, the mpi module is not built (script/bootstrap --all installs one)")
endif()
