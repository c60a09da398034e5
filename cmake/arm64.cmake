# Toolchain: programs for arm64 from a machine of another kind, against the libraries that tools/sysroot has unpacked
# (preset arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT ${KUBEGANG_SYSROOT})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KUBEGANG_SYSROOT)
# Assertions of libraries name their headers, which must not depend on the folder of the checkout. ccache makes paths relative
# (cmake/Dependencies.cmake).
file(RELATIVE_PATH sysroot_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SYSROOT})
set(CMAKE_CXX_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SYSROOT}/=/ -ffile-prefix-map=${sysroot_from_build}/=/")
# Programs are this machine's, all else is the sysroot's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
