// SPDX-License-Identifier: Apache-2.0
// Which glibc is taken along, what it says about itself, and what is refused.
#include "packager/libraries/carried_runtime.hpp"

#include <doctest/doctest.h>
#include <elf.h>
#include <gnu/libc-version.h>

#include <cstring>

#include "packager/host/own_program.hpp"
#include "packager/libraries/native_closure.hpp"
#include "tests/support/offering_elf.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

RuntimeFiles of_this_machine() {
  return find_runtime("x86_64", NativeResolver::system_folders("x86_64"));
}

}  // namespace

TEST_CASE("this machine's glibc is found whole, with its version and the kernel that it asks for") {
  const RuntimeFiles found = of_this_machine();
  CHECK(found.runtime.glibc == bundle::parse_glibc(gnu_get_libc_version()));
  CHECK_FALSE(found.runtime.kernel.empty());
  for (const char* name : {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libpthread.so.0", "libresolv.so.2"}) {
    CAPTURE(name);
    REQUIRE(found.files.contains(name));
    CHECK(found.files.at(name).parent_path() == found.files.at("libc.so.6").parent_path());
  }
  CHECK_FALSE(found.files.contains("libstdc++.so.6"));  // lies in lib/, carried or not
}

TEST_CASE("what is carried comes to lie where the launcher looks, and only the loader is a program") {
  Tree tree;
  carry_runtime(tree, of_this_machine());
  REQUIRE(tree.contains("lib/runtime/ld-linux-x86-64.so.2"));
  CHECK(tree.at("lib/runtime/ld-linux-x86-64.so.2").executable);
  CHECK_FALSE(tree.at("lib/runtime/libc.so.6").executable);
  for (const auto& [path, item] : tree) CHECK(is_runtime_file(path));
  CHECK_FALSE(is_runtime_file("lib/libstdc++.so.6"));
}

TEST_CASE("a glibc that is none, is not whole, or cannot be told a program's name is not carried") {
  const TempDir dir;
  CHECK_REFUSED(find_runtime("x86_64", {dir.path()}), Missing, "no glibc on this machine");
  for (const auto& [name, file] : of_this_machine().files) fs::copy_file(fs::canonical(file), dir / name);
  CHECK(find_runtime("x86_64", {dir / "nothing", dir.path()}).files.size() == of_this_machine().files.size());
  SUBCASE("of another architecture") {
    CHECK_REFUSED(find_runtime("aarch64", {dir.path()}), Missing, "libc.so.6 for aarch64");
  }
  SUBCASE("a library is gone") {
    fs::remove(dir / "libmvec.so.1");
    CHECK_REFUSED(find_runtime("x86_64", {dir.path()}), Missing, "libmvec.so.1");
  }
  SUBCASE("a library is another's") {
    fs::remove(dir / "libm.so.6");
    write_file(dir / "libm.so.6", test::make_offering_elf({"libm.so.6"}, EM_AARCH64));
    CHECK_REFUSED(find_runtime("x86_64", {dir.path()}), Missing, "libm.so.6");
  }
  SUBCASE("a name service is gone, which the target may do without") {
    fs::remove(dir / "libnss_hesiod.so.2");
    CHECK_FALSE(find_runtime("x86_64", {dir.path()}).files.contains("libnss_hesiod.so.2"));
  }
  SUBCASE("too old") {
    fs::remove(dir / "libc.so.6");
    write_file(dir / "libc.so.6", test::make_offering_elf({"libc.so.6", "GLIBC_2.2.5", "GLIBC_2.32"}));
    CHECK_REFUSED(find_runtime("x86_64", {dir.path()}), Platform, "2.33 or newer");
  }
}

TEST_CASE("aarch64's glibc is carried with the loader of its own name, and with a vector library where it has one") {
  const TempDir dir;
  for (const auto& [name, file] : of_this_machine().files) {  // for aarch64, as far as a header says it
    std::string bytes = test::read_file(file);
    const Elf64_Half machine = EM_AARCH64;
    std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    if (name != "libmvec.so.1")
      write_file(dir / (name == "ld-linux-x86-64.so.2" ? "ld-linux-aarch64.so.1" : name), bytes);
  }
  const RuntimeFiles found = find_runtime("aarch64", {dir.path()});
  CHECK(found.files.contains("ld-linux-aarch64.so.1"));
  CHECK_FALSE(found.files.contains("libmvec.so.1"));
  Tree tree;
  carry_runtime(tree, found);
  CHECK(tree.at("lib/runtime/ld-linux-aarch64.so.1").executable);
  fs::remove(dir / "ld-linux-aarch64.so.1");
  CHECK_REFUSED(find_runtime("aarch64", {dir.path()}), Missing, "ld-linux-aarch64.so.1");
}

TEST_CASE("things are loaded with the carried glibc, and everything else of the target stays the target's") {
  const bundle::Target target{.arch = "x86_64", .glibc = {2, 28}, .kernel = "4.19"};
  CHECK(loaded_with(target, std::nullopt) == target);
  const bundle::Target loaded = loaded_with(target, bundle::CarriedRuntime{.glibc = {2, 36}, .kernel = "3.2.0"});
  CHECK(loaded.glibc == bundle::GlibcVersion{2, 36});
  CHECK(loaded.kernel == "4.19");
}

TEST_CASE(
    "a launcher stands before programs that search beside themselves, and before all dynamic ones with a runtime") {
  const TempDir dir;
  CHECK_FALSE(wants_launcher("/bin/ls", false));
  CHECK(wants_launcher("/bin/ls", true));
  CHECK_FALSE(wants_launcher(SEALIFT_START, true));  // static
  write_file(dir / "script", "#!/bin/sh\n");
  CHECK_FALSE(wants_launcher(dir / "script", true));
}
