# The libraries that the build takes from the system. Each is named with its Debian package where it is missing.
find_package(Threads REQUIRED)

# halay_header_library(target header package): an INTERFACE target for a library that is headers only.
# HALAY_HEADERS is a folder that holds just these headers; the release wheel needs it, where /usr/include must not be seen.
set(HALAY_HEADERS "" CACHE PATH "Folder with the headers of the header-only dependencies, searched instead of the system's")
function(halay_header_library target header package)
  if(HALAY_HEADERS)
    find_path(${target}_INCLUDE ${header} PATHS ${HALAY_HEADERS} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  else()
    find_path(${target}_INCLUDE ${header})
  endif()
  if(NOT ${target}_INCLUDE)
    message(FATAL_ERROR "${header} is missing: run tools/setup, or install the package ${package} (its name in Debian)")
  endif()
  add_library(${target} INTERFACE)
  # Not for /usr/include itself: naming that as a system folder breaks the C++ library's own #include_next.
  if(NOT ${target}_INCLUDE STREQUAL "/usr/include")
    target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  endif()
endfunction()

halay_header_library(halay_cli11 CLI/CLI.hpp libcli11-dev)
halay_header_library(halay_xxhash xxhash.h libxxhash-dev)

if(HALAY_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "GoogleTest is missing: run `tools/setup test`, or install libgtest-dev and libgmock-dev (Debian)")
  endif()
endif()
if(HALAY_BENCH)
  find_package(benchmark)
  if(NOT benchmark_FOUND)
    message(FATAL_ERROR "Google Benchmark is missing: run `tools/setup bench`, or install libbenchmark-dev (Debian)")
  endif()
endif()
