# How a folder becomes a library, a test or a fuzz target. The folders need no list of files.

# halay_room(name DEPENDS rooms... LIBRARIES targets...): every .cc of src/<name> is the room's library halay_<name>;
# its *_test.cc are one program <name>_test; a main.cc belongs to neither.
function(halay_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ROOM_DEPENDS PREPEND halay_ OUTPUT_VARIABLE depends)
  if(sources)
    add_library(halay_${name} STATIC ${sources})
    target_link_libraries(halay_${name} PUBLIC ${depends} ${ROOM_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
  else()
    add_library(halay_${name} INTERFACE)
    target_link_libraries(halay_${name} INTERFACE ${depends} ${ROOM_LIBRARIES})
  endif()
  if(tests)
    halay_test(${name} SOURCES ${tests} LIBRARIES halay_${name})
  endif()
endfunction()

# halay_test(name SOURCES files... LIBRARIES targets... [LABELS words...] [SERIAL]): a GoogleTest program <name>_test.
# SERIAL: nothing else runs beside it. Results go to results/<name>.xml, where tools/run_tests.py counts them.
function(halay_test name)
  if(NOT HALAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "SERIAL" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name}_test ${TEST_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${TEST_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${TEST_LABELS}" RUN_SERIAL ${TEST_SERIAL}
                       ENVIRONMENT GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${name}.xml)
endfunction()

# halay_fuzz(name SOURCES files... LIBRARIES targets...): a libFuzzer program fuzz_<name> where HALAY_FUZZ is on;
# else a test that runs the target once over every file of tests/fuzz/corpus/<name>.
function(halay_fuzz name)
  cmake_parse_arguments(FUZZ "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(HALAY_FUZZ)
    add_executable(fuzz_${name} ${FUZZ_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  elseif(HALAY_TESTS)
    add_executable(fuzz_${name} ${FUZZ_SOURCES} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  else()
    return()
  endif()
  target_link_libraries(fuzz_${name} PRIVATE ${FUZZ_LIBRARIES})
endfunction()

# halay_add_folders(top): each folder below that has a CMakeLists.txt.
function(halay_add_folders top)
  file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${top}/*/CMakeLists.txt)
  foreach(list ${lists})
    get_filename_component(folder ${list} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endfunction()

# halay_static_runtime(target): the C++ library inside, so that the target runs wherever its C library is old enough.
function(halay_static_runtime target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HALAY_SANITIZE)
    # __cxa_pure_virtual is a weak reference of every abstract class, which alone does not pull it in.
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,-u,__cxa_pure_virtual)
  endif()
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--as-needed)
endfunction()
