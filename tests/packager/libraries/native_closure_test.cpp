// SPDX-License-Identifier: Apache-2.0
// The native closure: what is carried, what is left to the target, what is refused. Subjects are this test program and
// copies of it, since it is an ELF file that is always there.
#include "packager/libraries/native_closure.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include "packager/host/process.hpp"
#include "packager/libraries/library_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

const std::string kArch = "x86_64";

fs::path compile_library(const fs::path& folder, const std::string& name, const std::vector<std::string>& flags) {
  const fs::path source = folder / (name + ".c"), out = folder / name;
  write_file(source, "int answer_of_" + name.substr(3, name.find('.') - 3) + "(void) { return 42; }\n");
  std::vector<std::string> command = {"cc", "-shared",    "-fPIC",        "-Wl,--no-as-needed", "-Wl,-soname," + name,
                                      "-o", out.string(), source.string()};
  command.insert(command.end(), flags.begin(), flags.end());
  run_checked(command);
  return out;
}

}  // namespace

TEST_CASE("a C++ program needs libstdc++ and what that needs, but nothing of glibc") {
  NativeResolver resolver(kArch, NativeResolver::system_folders(kArch));
  CHECK(resolver.add("/proc/self/exe", "tests").empty());
  const NativeClosure& closure = resolver.closure();
  CHECK(closure.libraries.contains("libstdc++.so.6"));
  CHECK(closure.libraries.contains("libgcc_s.so.1"));
  for (const auto& [name, file] : closure.libraries) {
    CHECK_FALSE(name.starts_with("libc.so"));
    CHECK_FALSE(name.starts_with("libm.so"));
    CHECK_FALSE(name.starts_with("ld-linux"));
  }
}

TEST_CASE("libraries are found by the search path of who needs them, relative to where that lies") {
  const TempDir dir;
  fs::create_directories(dir / "inner");
  compile_library(dir / "inner", "libdeep.so", {});
  const fs::path middle = compile_library(dir.path(), "libmiddle.so",
                                          {"-L" + (dir / "inner").string(), "-ldeep", "-Wl,-rpath,$ORIGIN/inner"});
  NativeResolver resolver(kArch, {});
  CHECK(resolver.add(middle, "libmiddle.so").empty());
  REQUIRE(resolver.closure().libraries.contains("libdeep.so"));
  CHECK(fs::equivalent(resolver.closure().libraries.at("libdeep.so"), dir / "inner/libdeep.so"));
}

TEST_CASE("a sandbox is shown every folder from which a program's libraries come, and none of the system's") {
  const TempDir dir;
  for (const char* folder : {"deep", "named", "also"}) fs::create_directories(dir / folder);
  compile_library(dir / "deep", "libdeep.so", {});
  compile_library(dir / "also", "libalso.so", {});
  compile_library(dir.path(), "libmiddle.so", {"-L" + (dir / "deep").string(), "-ldeep", "-Wl,-rpath,$ORIGIN/deep"});
  const fs::path user = compile_library(dir.path(), "libuser.so",
                                        {"-L" + dir.path().string(), "-L" + (dir / "also").string(), "-lmiddle",
                                         "-lalso", "-lz", "-Wl,-rpath,$ORIGIN:$ORIGIN/named:$ORIGIN/none"});
  const fs::path root = dir.path();
  CHECK(library_folders(user, kArch, {root / "also"}) ==
        std::set<fs::path>{root, root / "also", root / "deep", root / "named"});
  CHECK(library_folders(user, kArch, {}) == std::set<fs::path>{root, root / "deep", root / "named"});
  write_file(root / "script", "#!/bin/sh\n");
  CHECK(library_folders(root / "script", kArch, {}).empty());
  CHECK_REFUSED(library_folders(root / "none", kArch, {}), Missing, "none");
}

TEST_CASE("something whose library is not there adds nothing and says what is missing") {
  const TempDir dir;
  compile_library(dir.path(), "libgone.so", {});
  const fs::path user = compile_library(dir.path(), "libuser.so", {"-L" + dir.path().string(), "-lgone", "-lz"});
  fs::remove(dir / "libgone.so");
  NativeResolver resolver(kArch, NativeResolver::system_folders(kArch));
  CHECK(resolver.add(user, "libuser.so") == std::vector<std::string>{"libgone.so"});
  CHECK(resolver.closure().libraries.empty());
  CHECK(resolver.closure().needs.empty());

  SUBCASE("for a program it is expected from a wheel") {
    CHECK(resolver.add_program(user, "bin/user") == std::vector<std::string>{"libgone.so"});
    CHECK(resolver.closure().libraries.contains("libz.so.1"));
  }
}

TEST_CASE("a library that the targets have is neither looked for nor carried, nor asked for its glibc") {
  const TempDir dir;
  compile_library(dir.path(), "libgone.so", {});
  const fs::path user = compile_library(dir.path(), "libuser.so", {"-L" + dir.path().string(), "-lgone", "-lz"});
  fs::remove(dir / "libgone.so");
  NativeResolver resolver(kArch, NativeResolver::system_folders(kArch), {"libgone*.so", "libz.so.1"});
  CHECK(resolver.add(user, "libuser.so").empty());
  CHECK(resolver.closure().libraries.empty());
  CHECK(resolver.closure().needs.size() == 1);
  CHECK(resolver.is_of_host("libz.so.1"));
  CHECK_FALSE(resolver.is_of_host("libz.so.2"));
}

TEST_CASE("a file that needs too new a glibc is refused with the keys that mend it") {
  const std::vector<NativeNeed> needs = {{.who = "/lib/libcrypt.so.1", .glibc = {2, 36}}};
  CHECK_REFUSED(check_glibc_floor(needs, {2, 31}), Platform, "/lib/libcrypt.so.1 needs 2.36");
  CHECK_REFUSED(check_glibc_floor(needs, {2, 31}), Platform, "[target] host_libraries = [\"NAME\"]");
  CHECK_REFUSED(check_glibc_floor(needs, {2, 31}), Platform, "[target] system = \"DIR\"");
  CHECK(check_glibc_floor(needs, {2, 36}) == bundle::GlibcVersion{2, 36});
}

TEST_CASE("what lies in a site-packages folder is a wheel's and is not carried twice") {
  const TempDir dir;
  fs::create_directories(dir / "site-packages/torch/lib");
  compile_library(dir / "site-packages/torch/lib", "libtensor.so", {});
  const fs::path user = compile_library(
      dir.path(), "libuser.so",
      {"-L" + (dir / "site-packages/torch/lib").string(), "-ltensor", "-Wl,-rpath,$ORIGIN/site-packages/torch/lib"});
  NativeResolver resolver(kArch, {});
  CHECK(resolver.add_program(user, "bin/user") == std::vector<std::string>{"libtensor.so"});
  CHECK_FALSE(resolver.closure().libraries.contains("libtensor.so"));
}

TEST_CASE("a library that nothing asked for is carried only when the target's glibc is new enough for it") {
  NativeResolver resolver(kArch, NativeResolver::system_folders(kArch));
  CHECK_FALSE(resolver.offer_library("libstdc++.so.6", {2, 2}));
  CHECK_FALSE(resolver.offer_library("libnowhere.so.1", {2, 99}));
  CHECK(resolver.closure().libraries.empty());
  CHECK(resolver.offer_library("libstdc++.so.6", {2, 99}));
  CHECK(resolver.closure().libraries.contains("libstdc++.so.6"));
}

TEST_CASE("a program of another architecture is refused") {
  const TempDir dir;
  std::string bytes = read_file("/proc/self/exe");
  bytes[18] = static_cast<char>(183);  // e_machine: EM_AARCH64
  write_file(dir / "program", bytes);
  NativeResolver resolver(kArch, {});
  CHECK_REFUSED(resolver.add(dir / "program", "bin/program"), Platform, "aarch64");
}

TEST_CASE("a script needs nothing") {
  const TempDir dir;
  write_file(dir / "script", "#!/bin/sh\n");
  write_file(dir / "empty", "");
  NativeResolver resolver(kArch, {});
  CHECK(resolver.add(dir / "script", "bin/script").empty());
  CHECK(resolver.add(dir / "empty", "bin/empty").empty());
  CHECK(resolver.closure().needs.empty());
}

TEST_CASE("the linker's folders are read with their includes") {
  const TempDir dir;
  write_file(dir / "ld.so.conf", "# first\ninclude conf.d/*.conf\n/opt/last # why\n");
  write_file(dir / "conf.d/a.conf", "/opt/a\n  /opt/b  \n");
  const auto folders = NativeResolver::system_folders(kArch, dir / "ld.so.conf");
  REQUIRE(folders.size() > 3);
  CHECK(folders[0] == "/opt/a");
  CHECK(folders[1] == "/opt/b");
  CHECK(folders[2] == "/opt/last");
}

TEST_CASE("a system below a root has the linker's folders there, and none of this machine's") {
  CHECK(NativeResolver::folders_of({}, kArch) == NativeResolver::system_folders(kArch));
  const auto folders = NativeResolver::folders_of("/arm", "aarch64");
  CHECK(folders.front() == "/arm/lib/aarch64-linux-gnu");
  for (const std::filesystem::path& folder : folders) CHECK(folder.string().starts_with("/arm/"));
}

TEST_CASE("a glibc that is too new is refused with who needs it, all in one message") {
  const std::vector<NativeNeed> needs = {{"bin/python3.11", {2, 35}}, {"lib/libold.so", {2, 14}}, {"bin/run", {2, 38}}};
  CHECK(check_glibc_floor(needs, {2, 38}) == bundle::GlibcVersion{2, 38});
  const bundle::Error error = test::refusal([&] { check_glibc_floor(needs, {2, 28}); });
  CHECK(error.code() == bundle::ErrorCode::Platform);
  CHECK(test::mentions(error, "bin/python3.11 needs 2.35"));
  CHECK(test::mentions(error, "bin/run needs 2.38"));
  CHECK_FALSE(test::mentions(error, "libold"));
}
