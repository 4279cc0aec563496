# Cross compiles what runs inside for aarch64 targets, on x86-64 Debian: its cross compiler, and the static libraries of its
# arm64 packages, which `cmake/prerequisites.sh aarch64` unpacks into a folder. Headers without code (Boost's, nlohmann's,
# CLI11's) are the host's. What comes out is static, so no glibc of a target is too old for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
get_filename_component(arm64 ${CMAKE_CURRENT_LIST_DIR}/../build/prerequisites/aarch64 ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${arm64}/static ${arm64}/isal)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
# Some of OpenSSL's headers differ between architectures and lie apart.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${arm64}/static/usr/include/aarch64-linux-gnu")
