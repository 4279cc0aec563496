// SPDX-License-Identifier: Apache-2.0
// The carried compiler: its launcher, run in front of a script that plays zig, and the bundle that brings both.
#include "packager/job/toolchain.hpp"

#include <doctest/doctest.h>

#include "bundle/manifest/compiler_place.hpp"
#include "packager/host/process.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

// An environment whose zig prints what it was given.
struct Prefix {
  TempDir dir;

  explicit Prefix(const bundle::Target& target) {
    put("libexec/sealift/cc", compiler_launcher(target, "3.11"));
    put("lib/python3.11/site-packages/ziglang/zig", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  }
  std::string run(const std::vector<std::string>& arguments, std::map<std::string, std::string> variables) const {
    std::vector<std::string> command = {"/usr/bin/env", "-i"};
    for (const auto& [name, value] : variables) command.push_back(name + "=" + value);
    command.push_back((dir / "libexec/sealift/cc").string());
    command.insert(command.end(), arguments.begin(), arguments.end());
    const ProcessResult result = run_process(command);
    return result.exit_code == 0 ? result.out : result.err;
  }

 private:
  void put(const std::string& path, const std::string& text) const {
    write_file(dir / path, text);
    fs::permissions(dir / path, fs::perms(0755));
  }
};

}  // namespace

TEST_CASE("the launcher compiles for the target's glibc with the environment's own zig, whatever PATH is") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 28}});
  CHECK(prefix.run({"a b.c", "-o", "it's"}, {{"HOME", "/root"}}) ==
        "<cc><-target><x86_64-linux-gnu.2.28><-fno-sanitize=undefined><a b.c><-o><it's>");
}

TEST_CASE("for a glibc that the compiler is older than, it compiles for the newest that it knows") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 43}});
  CHECK(prefix.run({}, {{"ZIG_GLOBAL_CACHE_DIR", "/tmp/zig"}}).find("gnu.2.38>") != std::string::npos);
}

TEST_CASE("without any place for what is compiled the launcher says what to set, and writes nowhere") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 28}});
  CHECK(prefix.run({"x.c"}, {}) == "cc: no place for what is compiled; set HOME or ZIG_GLOBAL_CACHE_DIR");
}

TEST_CASE("the compiler's variables name the prefix and the user's own folder") {
  CHECK(toolchain_variables({}).empty());
  const bundle::Variables variables = toolchain_variables({.c = true});
  CHECK(variables.at("CC") == "${PREFIX}/libexec/sealift/cc");
  CHECK(variables.at("ZIG_LOCAL_CACHE_DIR") == "${CACHE}/zig");
  CHECK_NOTHROW(bundle::parse_variables(bundle::write_variables(variables), "here"));
}

TEST_CASE("a bundle with a compiler has its launcher as a program, from the lock alone") {
  Workshop workshop;
  workshop.lock.toolchain.c = true;
  workshop.lock.variables = toolchain_variables(workshop.lock.toolchain);
  const CreateResult result = workshop.pack();
  const bundle::Entry* entry =
      result.manifest.find(bundle::SafePath::parse(std::string(bundle::kCompilerEntry), "test"));
  REQUIRE(entry != nullptr);
  CHECK(entry->executable);
  const std::string text = compiler_launcher(workshop.lock.target, "3.11");
  CHECK(entry->sha256 == bundle::sha256(bundle::as_bytes(text)));
  CHECK(text.find("gnu.2.28 ") != std::string::npos);
}
