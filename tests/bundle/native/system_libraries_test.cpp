// SPDX-License-Identifier: Apache-2.0
// Names of libraries, as wheels ask for them and as hosts have them.
#include "sealift/bundle/native/system_libraries.hpp"

#include <doctest/doctest.h>

using namespace sealift::bundle;

TEST_CASE("glibc's and the driver's libraries are the target's, under the names that old hosts use too") {
  for (const char* name : {"libc.so.6", "libc-2.31.so", "ld-linux-x86-64.so.2", "ld-2.28.so", "libm.so.6", "libdl.so.2",
                           "libpthread-2.28.so", "libnss_files.so.2", "libthread_db.so.1"}) {
    CHECK_MESSAGE(is_glibc_library(name), name);
    CHECK_MESSAGE(belongs_to_target(name), name);
  }
  for (const char* name : {"libcuda.so.1", "libcuda.so.580.65.06", "libcuda.so", "libnvidia-ml.so.1",
                           "libnvidia-tileiras.so.590.48.01", "libnvidia-vksc-core.so.1", "libnvoptix.so.1"}) {
    CHECK_MESSAGE(is_driver_library(name), name);
    CHECK_MESSAGE(belongs_to_target(name), name);
  }
  for (const char* name :
       {"libcudart.so.13", "libcrypto.so.3", "libcx.so", "libstdc++.so.6", "libc10.so", "libldap.so.2", "libnccl.so.2",
        "libnvrtc.so.13", "libnvJitLink.so.13", "python3.11", "libc.so", ""}) {
    CHECK_MESSAGE(!belongs_to_target(name), name);
    CHECK_MESSAGE(!may_come_from_target(name), name);
  }
}

TEST_CASE("each architecture has its dynamic linker, which is glibc's") {
  CHECK(loader_name("x86_64") == "ld-linux-x86-64.so.2");
  CHECK(loader_name("aarch64") == "ld-linux-aarch64.so.1");
  CHECK(loader_name("riscv64").empty());
  CHECK(is_glibc_library(loader_name("aarch64")));
  CHECK(belongs_to_target(loader_name("aarch64")));
}

TEST_CASE("libnsl is no stranger in a process, but a bundle does not rely on it") {
  CHECK(may_come_from_target("libnsl.so.1"));
  CHECK_FALSE(belongs_to_target("libnsl.so.1"));
}
