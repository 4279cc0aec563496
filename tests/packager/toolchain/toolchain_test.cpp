// SPDX-License-Identifier: Apache-2.0
// The carried compiler: its launcher, run in front of a script that plays zig, and the bundle that brings both.
#include "packager/toolchain/toolchain.hpp"

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
    for (const ToolchainFile& file : toolchain_files({.c = true, .cxx = true}, target, "3.11"))
      put(file.place, file.text);
    put("lib/python3.11/site-packages/ziglang/zig", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  }
  // What zig was given, or the errors.
  std::string run(const std::vector<std::string>& arguments, std::map<std::string, std::string> variables,
                  const std::string& program = "libexec/sealift/cc") const {
    std::vector<std::string> command = {"/usr/bin/env", "-i"};
    for (const auto& [name, value] : variables) command.push_back(name + "=" + value);
    command.push_back((dir / program).string());
    command.insert(command.end(), arguments.begin(), arguments.end());
    const ProcessResult result = run_process(command);
    return result.exit_code == 0 ? result.out : result.err;
  }

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

TEST_CASE("the C++ launcher gives OpenMP its header, and torch's runtime behind a bridge where it links") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 28}});
  const std::string own = prefix.dir / "libexec/sealift", begin = "<c++><-target><x86_64-linux-gnu.2.28>";
  const auto given = [&](const std::vector<std::string>& words) {
    return prefix.run(words, {{"HOME", "/root"}}, "libexec/sealift/c++");
  };
  CHECK(given({"a b.cpp", "-lgomp"}) == begin + "<-fno-sanitize=undefined><a b.cpp>");
  CHECK(given({"-x", "c++-header", "-fopenmp", "a.h"}) ==
        begin + "<-fno-sanitize=undefined><-x><c++-header><-fopenmp><a.h><-isystem><" + own + "/include>");
  CHECK(given({"-fopenmp", "a.cpp"}).find("c++: -fopenmp needs the runtime that torch brings") == 0);
  const std::string torch = "lib/python3.11/site-packages/torch/lib/libgomp.so.1";
  prefix.put(torch, "");
  CHECK(given({"-fopenmp", "-c", "a.cpp"}).find("libgomp") == std::string::npos);
  const std::string linked = given({"-shared", "it's.cpp", "-fopenmp", "-lgomp", "-o", "x.so"});
  CHECK(linked == begin + "<-fno-sanitize=undefined><-shared><it's.cpp><-fopenmp><-o><x.so><-isystem><" + own +
                      "/include><" + own + "/openmp.cpp><" + own + "/../../" + torch + ">");
}

TEST_CASE("an extension of torch is compiled by the host's g++, and by nothing where there is none") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 28}});
  const std::vector<std::string> words = {"-DTORCH_EXTENSION_NAME=mine", "a.cpp", "-lgomp"};
  const std::string none = (prefix.dir / "none").string(), there = (prefix.dir / "there").string();
  CHECK(prefix.run(words, {{"HOME", "/root"}, {"PATH", none}}, "libexec/sealift/c++") ==
        "c++: an extension of torch needs libstdc++: install g++ on this host, or carry it ([apt] packages)");
  prefix.put("there/g++", "#!/bin/sh\nprintf '(%s)' g++ \"$@\"\n");
  CHECK(prefix.run(words, {{"HOME", "/root"}, {"PATH", there}}, "libexec/sealift/c++") ==
        "(g++)(-DTORCH_EXTENSION_NAME=mine)(a.cpp)(-lgomp)");
}

TEST_CASE("the carried openssl gives way to the host's, and has one answer where there is none") {
  const Prefix prefix({.arch = "x86_64", .glibc = {2, 28}}), other({.arch = "x86_64", .glibc = {2, 28}});
  write_file(prefix.dir / "header.i", "int x;\n");
  const std::string file = (prefix.dir / "header.i").string(), bin = (prefix.dir / "bin").string(),
                    more = (other.dir / "bin").string(), host = (prefix.dir / "host").string();
  // Without the host's own openssl, which this machine may have: its sha512sum alone.
  fs::create_directories(host);
  fs::create_symlink("/usr/bin/sha512sum", host + "/sha512sum");
  const std::string path = bin + ":" + more + ":" + host;
  const std::string said = prefix.run({"sha512", file}, {{"PATH", path}}, "bin/openssl");
  const std::string begin = "SHA2-512(" + file + ")= ";
  CHECK(said.substr(0, begin.size()) == begin);
  CHECK(said.size() == begin.size() + 128 + 1);
  CHECK(said.find_first_not_of("0123456789abcdef\n", begin.size()) == std::string::npos);
  CHECK(prefix.run({"version"}, {{"PATH", path}}, "bin/openssl").find("this host has none") != std::string::npos);
  prefix.put("host/openssl", "#!/bin/sh\necho \"the host's: $*\"\n");
  CHECK(prefix.run({"enc", "-d"}, {{"PATH", path}}, "bin/openssl") == "the host's: enc -d\n");
}

TEST_CASE("the compiler's variables name the prefix and the user's own folder") {
  CHECK(toolchain_variables({}).empty());
  const bundle::Variables variables = toolchain_variables({.c = true});
  CHECK(variables.at("CC") == "${PREFIX}/libexec/sealift/cc");
  CHECK(variables.at("ZIG_LOCAL_CACHE_DIR") == "${CACHE}/zig");
  CHECK_FALSE(variables.contains("CXX"));
  CHECK(toolchain_variables({.c = true, .cxx = true}).at("CXX") == "${PREFIX}/libexec/sealift/c++");
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
  const std::string text = toolchain_files({.c = true}, workshop.lock.target, "3.11").at(0).text;
  CHECK(toolchain_files({.c = true}, workshop.lock.target, "3.11").size() == 1);
  CHECK(entry->sha256 == bundle::sha256(bundle::as_bytes(text)));
  CHECK(text.find("gnu.2.28 ") != std::string::npos);
}
