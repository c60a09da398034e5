# kubegang_library(NAME SOURCES… DEPS…)   a static library, warnings are errors
# kubegang_test_library(NAME SOURCES… DEPS…)  one that only tests use
# kubegang_program(NAME SOURCES… DEPS…)   a program in bin/
# kubegang_test(NAME SOURCES… DEPS… [LABELS…] [TIMEOUT s])
#                                         a GoogleTest program, one ctest test; label `root` needs
#                                         root and cgroups, `e2e` starts clusters of processes
#                                         (`make test` may try it twice), `threads` runs under tsan too,
#                                         `slow` takes more than seconds: `make dev` leaves it out
# kubegang_benchmark(NAME SOURCES… DEPS…) a program in bin/ that `make bench` runs
# kubegang_fuzzer(NAME SOURCES… DEPS…)    a libFuzzer program in fuzz/, only with KUBEGANG_FUZZ
#                                         (clang); its seeds are in a folder corpus/NAME
include_guard()

# `all` is what `make test` needs: the programs and the tests.
add_custom_target(programs)        # what a user runs
add_custom_target(benchmarks)      # what `make bench` runs beside them
add_custom_target(threaded_tests)  # label `threads`: run under tsan too
add_custom_target(fuzzers)
option(KUBEGANG_FUZZ "build the libFuzzer targets (clang only)" OFF)

add_library(kubegang_flags INTERFACE)
target_include_directories(kubegang_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(kubegang_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Wswitch-enum
  -Wold-style-cast -Werror
  -Wno-missing-field-initializers)  # designated initialisers name only what differs from the default
target_compile_definitions(kubegang_flags INTERFACE KUBEGANG_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in `"text" + std::string` at -O2 (its bug 105651).
  target_compile_options(kubegang_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler looks for garbage first when its heap has 512 MiB, not 128: a twentieth of its time, and
  # 1.6 GiB instead of 1.1 for the largest file.
  target_compile_options(kubegang_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A class in a .cc file may hold types of its anonymous namespace; compiled as an #include of a
  # unity file g++ takes the .cc for a header, where that would be a mistake.
  target_compile_options(kubegang_flags INTERFACE -Wno-subobject-linkage)
endif()
set(KUBEGANG_SANITIZE "" CACHE STRING "value of -fsanitize for everything of ours")
if(KUBEGANG_FUZZ)
  target_compile_options(kubegang_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(KUBEGANG_SANITIZE)
  target_compile_options(kubegang_flags INTERFACE
    -fsanitize=${KUBEGANG_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(kubegang_flags INTERFACE -fsanitize=${KUBEGANG_SANITIZE})
endif()

# jemalloc in place of the C library's malloc, for a program that depends on it. Nothing of it is named in
# the program, so the linker must not leave it out; and the sanitizers bring a malloc of their own.
add_library(kubegang_malloc INTERFACE)
if(NOT KUBEGANG_SANITIZE)
  target_link_libraries(kubegang_malloc INTERFACE PkgConfig::jemalloc)
  target_link_options(kubegang_malloc INTERFACE -Wl,--no-as-needed)
endif()

# What is tested is compiled as it is shipped; the tests themselves gain nothing from -O2 but the wait.
function(kubegang_optimize_less name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# Precompiles what nearly every file includes, once for the libraries and once for the tests: without it
# the compiler reads the standard library, the JSON library and GoogleTest again for each file, which
# takes several seconds.
foreach(headers library_headers test_headers)
  add_library(${headers} OBJECT ${CMAKE_SOURCE_DIR}/cmake/headers.cc)
  target_link_libraries(${headers} PRIVATE kubegang_flags nlohmann_json::nlohmann_json)
endforeach()
target_precompile_headers(library_headers PRIVATE
  <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <deque> <filesystem> <fstream> <functional>
  <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <utility>
  <variant> <vector> <nlohmann/json.hpp>)
target_precompile_headers(test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
target_link_libraries(test_headers PRIVATE GTest::gtest GTest::gmock)
kubegang_optimize_less(test_headers)

function(kubegang_reuse name headers)
  target_precompile_headers(${name} REUSE_FROM ${headers})
  target_compile_options(${name} PRIVATE  # ccache needs to see the name of the header
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# The libraries' files get those headers only in unity builds, where a missing include is not seen
# anyway; file by file (preset dev) it is.
function(kubegang_as_shipped name)
  if(CMAKE_UNITY_BUILD)
    kubegang_reuse(${name} library_headers)
  endif()
endfunction()

function(kubegang_as_a_test name)
  kubegang_optimize_less(${name})
  kubegang_reuse(${name} test_headers)
endfunction()

function(kubegang_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC kubegang_flags ${arg_DEPS})
  kubegang_as_shipped(${name})
endfunction()

function(kubegang_test_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC kubegang_flags ${arg_DEPS})
  kubegang_optimize_less(${name})
  set_target_properties(${name} PROPERTIES KUBEGANG_OF_TESTS ON)
  if(CMAKE_UNITY_BUILD)
    target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock)  # its macros are in the headers
    kubegang_reuse(${name} test_headers)
  endif()
endfunction()

function(kubegang_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kubegang_flags ${arg_DEPS})
  kubegang_as_shipped(${name})
  add_dependencies(programs ${name})
endfunction()

# Sets `result` to the project's libraries that `targets` consist of and need, tests' own left out.
function(kubegang_shipped_libraries result targets)
  set(found "")
  while(targets)
    list(POP_FRONT targets one)
    if(NOT TARGET ${one} OR one IN_LIST found)
      continue()
    endif()
    get_target_property(type ${one} TYPE)
    get_target_property(imported ${one} IMPORTED)
    if(imported OR NOT type STREQUAL "STATIC_LIBRARY")
      continue()
    endif()
    list(APPEND found ${one})
    get_target_property(needed ${one} LINK_LIBRARIES)
    list(APPEND targets ${needed})
  endwhile()
  foreach(one IN LISTS found)
    get_target_property(of_tests ${one} KUBEGANG_OF_TESTS)
    if(of_tests)
      list(REMOVE_ITEM found ${one})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# A template that a test uses as well as what it tests (the JSON library's parser, a std::map) is
# compiled in both, and a program keeps the first that the linker sees. The test's own object files
# come before the libraries and are not optimized, so what is tested would run on slow copies. All
# of the libraries come first here, and what is tested runs as it is shipped.
function(kubegang_test_as_shipped name)
  kubegang_shipped_libraries(libraries "${ARGN}")
  if(NOT libraries)
    return()
  endif()
  set(files "")
  foreach(library IN LISTS libraries)
    string(APPEND files ",$<TARGET_FILE:${library}>")
  endforeach()
  target_link_options(${name} PRIVATE
    $<$<CONFIG:Release>:LINKER:--whole-archive${files},--no-whole-archive>)
endfunction()

# With SHARDS the program's tests are run as that many of ctest's, name, name.2, …, side by side.
function(kubegang_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;SHARDS" "SOURCES;DEPS;LABELS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kubegang_flags ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  kubegang_as_a_test(${name})
  kubegang_test_as_shipped(${name} ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE KUBEGANG_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             KUBEGANG_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set(tests ${name})
  if(arg_SHARDS)
    foreach(shard RANGE 2 ${arg_SHARDS})
      add_test(NAME ${name}.${shard} COMMAND ${name})
      list(APPEND tests ${name}.${shard})
    endforeach()
    set(index 0)
    foreach(test IN LISTS tests)
      set_tests_properties(${test} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
      math(EXPR index "${index} + 1")
    endforeach()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(KUBEGANG_SANITIZE)  # everything takes several times as long
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  # The part is the top folder: `make dev PART=operator` builds and runs its quick tests.
  string(REGEX REPLACE "^${CMAKE_SOURCE_DIR}/([^/]*).*" "\\1" part ${CMAKE_CURRENT_SOURCE_DIR})
  # What may take long begins first, also where ctest has no times of earlier runs.
  set_tests_properties(${tests} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} LABELS "${arg_LABELS};part_${part}")
  if(NOT TARGET ${part}_unit_tests)
    add_custom_target(${part}_unit_tests)
  endif()
  if(NOT "e2e" IN_LIST arg_LABELS AND NOT "root" IN_LIST arg_LABELS AND NOT "slow" IN_LIST arg_LABELS)
    add_dependencies(${part}_unit_tests ${name})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threaded_tests ${name})
  endif()
endfunction()

function(kubegang_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kubegang_flags ${arg_DEPS})
  add_dependencies(benchmarks ${name})
endfunction()

function(kubegang_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  if(NOT KUBEGANG_FUZZ)
    return()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kubegang_flags ${arg_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endfunction()
