# Everything comes from Debian 12 packages; `make deps` installs them.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(prometheus-cpp REQUIRED CONFIG)
find_package(GTest 1.12 REQUIRED)
find_package(benchmark 1.7 REQUIRED)
# Debian's cpp-httplib is a shared library without a CMake config; its flags must match it.
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
# WebSocket for pods/exec.
find_library(WSLAY_LIBRARY wslay REQUIRED)
# The database of kubegang-records.
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
# Its copy in PostgreSQL.
pkg_check_modules(libpqxx REQUIRED IMPORTED_TARGET libpqxx)
# PMIx for MPI, and what it needs, as archives: its program runs in images without libraries.
pkg_check_modules(pmix REQUIRED pmix>=4.2)
find_library(PMIX_LIBRARY libpmix.a REQUIRED HINTS ${pmix_LIBDIR})
find_library(HWLOC_LIBRARY libhwloc.a REQUIRED)
find_library(EVENT_CORE_LIBRARY libevent_core.a REQUIRED)
find_library(EVENT_PTHREADS_LIBRARY libevent_pthreads.a REQUIRED)
find_library(Z_LIBRARY libz.a REQUIRED)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # A checkout in another folder finds what this one has compiled: paths below the checkout are taken
  # relative to the build's folder. The sloppiness is what ccache asks for before it caches what uses a
  # precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
