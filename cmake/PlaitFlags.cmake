# Flags that every file of the project gets.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Dev" FORCE)
endif()
set(CMAKE_C_FLAGS_DEV "-Og -g -fno-omit-frame-pointer" CACHE STRING "Flags of the build type Dev" FORCE)
set(CMAKE_CXX_FLAGS_DEV "${CMAKE_C_FLAGS_DEV}" CACHE STRING "Flags of the build type Dev, C++" FORCE)
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG" CACHE STRING "Flags of the build type Release" FORCE)

# Results must not depend on what the compiler fuses: no contraction, and never -ffast-math.
add_compile_options(-ffp-contract=off)
add_compile_options(
  $<$<COMPILE_LANGUAGE:C>:-Wall> $<$<COMPILE_LANGUAGE:C>:-Wextra> $<$<COMPILE_LANGUAGE:C>:-Wshadow>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wpointer-arith> $<$<COMPILE_LANGUAGE:C>:-Wvla>)
if(NOT PLAIT_COVERAGE)
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
endif()
add_compile_definitions(_GNU_SOURCE)
# At -O3 gcc cannot see that a failure never answers PLAIT_OK, and warns of outputs that only success sets; the
# presets at -Og keep the warning.
add_compile_options($<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:C>>:-Wno-maybe-uninitialized>)
# Texts that are cut to their place are cut on purpose.
add_compile_options($<$<AND:$<C_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:C>>:-Wno-format-truncation>)
if(PLAIT_WERROR)
  add_compile_options(-Werror)
endif()

if(PLAIT_SANITIZE)
  add_compile_options(-fsanitize=${PLAIT_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLAIT_SANITIZE})
endif()
if(PLAIT_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(PLAIT_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "The preset fuzz needs clang: apt-get install clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A second build of the same text costs nothing where ccache is there, also in another checkout.
if(NOT CMAKE_C_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER
        env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_CPP2=1 ${CCACHE_PROGRAM})
  endif()
endif()

# Files of kernels for one instruction set: by suffix. They are left out on other processors.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(PLAIT_KERNEL_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(PLAIT_KERNEL_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
  set(PLAIT_KERNEL_FLAGS_shani -msha -msse4.1)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(PLAIT_KERNEL_FLAGS_neon "-DPLI_NEON")
endif()
