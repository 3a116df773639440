# What libplait links: the C library, POSIX threads, BLAS, zlib, zstd, xxhash, jansson and libcyaml. Nothing else;
# everything optional is a module (plait_module).

find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(plait_depends INTERFACE)
target_link_libraries(plait_depends INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

# plait_need(NAME PACKAGE MODULE...): the first pkg-config module that is there, or stop and name the Debian package.
function(plait_need name package)
  foreach(module IN LISTS ARGN)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
    if(${name}_FOUND)
      target_link_libraries(plait_depends INTERFACE PkgConfig::${name})
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${name} is missing. Install it with: apt-get install ${package}\n"
                      "(script/bootstrap installs all that Plait needs.)")
endfunction()

plait_need(BLAS libopenblas-dev openblas cblas)
plait_need(ZLIB zlib1g-dev zlib)
plait_need(ZSTD libzstd-dev libzstd)
plait_need(XXHASH libxxhash-dev libxxhash)
plait_need(JANSSON libjansson-dev jansson)
plait_need(CYAML libcyaml-dev libcyaml)
plait_need(YAML libyaml-dev yaml-0.1)         # what libcyaml stands on; its package does not bring it

if(PLAIT_TESTS)
  pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
  if(NOT CMOCKA_FOUND)
    message(STATUS "cmocka is missing, so no tests are built (script/bootstrap --all installs it)")
    set(PLAIT_TESTS OFF)
  endif()
endif()

# Open MPI of the private environment first, then whatever mpicc is on the path.
set(PLAIT_MPI_FOUND OFF)
if(PLAIT_MPI AND NOT CMAKE_CROSSCOMPILING)
  include(PlaitMpi)
endif()

# SimGrid, for the transport sim.
set(PLAIT_SIMGRID_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  pkg_check_modules(PLAIT_SIMGRID QUIET IMPORTED_TARGET simgrid)
endif()
if(PLAIT_SIMGRID_FOUND)
  message(STATUS "SimGrid: ${PLAIT_SIMGRID_VERSION}")
else()
  set(PLAIT_SIMGRID_FOUND OFF)
  message(STATUS "SimGrid: not found, the sim module is not built (script/bootstrap --all installs it)")
endif()

# oneDNN, for kernels of graphs: version 2, which takes its threads from OpenMP.
set(PLAIT_ONEDNN_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  find_path(PLAIT_ONEDNN_INCLUDE oneapi/dnnl/dnnl_version.h)
  find_library(PLAIT_ONEDNN_LIBRARY dnnl)
endif()
unset(PLAIT_ONEDNN_VERSION_2)
if(PLAIT_ONEDNN_INCLUDE AND PLAIT_ONEDNN_LIBRARY)
  find_package(OpenMP QUIET COMPONENTS C)
endif()
if(PLAIT_ONEDNN_INCLUDE AND PLAIT_ONEDNN_LIBRARY AND TARGET OpenMP::OpenMP_C)
  file(STRINGS ${PLAIT_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h PLAIT_ONEDNN_VERSION_2
       REGEX "DNNL_VERSION_MAJOR +2$")
endif()
if(PLAIT_ONEDNN_VERSION_2)
  set(PLAIT_ONEDNN_FOUND ON)
  add_library(plait_onednn INTERFACE)
  target_include_directories(plait_onednn SYSTEM INTERFACE ${PLAIT_ONEDNN_INCLUDE})
  target_link_libraries(plait_onednn INTERFACE ${PLAIT_ONEDNN_LIBRARY} OpenMP::OpenMP_C)
  message(STATUS "oneDNN: ${PLAIT_ONEDNN_LIBRARY}")
else()
  message(STATUS "oneDNN: version 2 not found, the onednn module is not built (script/bootstrap --all installs it)")
endif()

# METIS, for placements of graphs.
set(PLAIT_METIS_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  find_path(PLAIT_METIS_INCLUDE metis.h)
  find_library(PLAIT_METIS_LIBRARY metis)
endif()
if(PLAIT_METIS_INCLUDE AND PLAIT_METIS_LIBRARY)
  set(PLAIT_METIS_FOUND ON)
  add_library(plait_metis INTERFACE)
  target_include_directories(plait_metis SYSTEM INTERFACE ${PLAIT_METIS_INCLUDE})
  target_link_libraries(plait_metis INTERFACE ${PLAIT_METIS_LIBRARY})
  message(STATUS "METIS: ${PLAIT_METIS_LIBRARY}")
else()
  message(STATUS "METIS: not found, the metis module is not built (script/bootstrap --all installs it)")
endif()

# libmicrohttpd, for predictions over HTTP.
set(PLAIT_MICROHTTPD_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  pkg_check_modules(PLAIT_MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.59)
endif()
if(PLAIT_MICROHTTPD_FOUND)
  message(STATUS "libmicrohttpd: ${PLAIT_MICROHTTPD_VERSION}")
else()
  set(PLAIT_MICROHTTPD_FOUND OFF)
  message(STATUS "libmicrohttpd: not found, the http module is not built (script/bootstrap installs it)")
endif()

# protobuf-c, for modules whose files are made of its messages.
include(PlaitProtobuf)
