// SPDX-License-Identifier: Apache-2.0
// Symbols that nothing defines: read from what the system's compiler makes, judged by who loads the file, and packed.
#include "packager/native/symbol_check.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include "packager/host/process.hpp"
#include "packager/native/native_check.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/hostile/hostile_elf.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::test;
using Kind = NativeFinding::Kind;

namespace {

const std::string kSitePackages = "lib/python3.11/site-packages/";

// Made in a folder by cc; `links` are other files there.
struct Maker {
  TempDir dir;

  NativeFile make(const std::string& path, const std::string& owner, const std::string& code,
                  const std::string& flags = "-shared -fPIC", const std::vector<std::string>& links = {}) const {
    const std::string name = path.substr(path.rfind('/') + 1);
    write_file(dir / "code.c", code);
    std::string command =
        "cc -w -x c " + (dir / "code.c").string() + " -x none " + flags + " -o " + (dir / name).string();
    if (name.find(".so") != name.npos) command += " -Wl,-soname," + name;
    for (const std::string& link : links) command += " " + (dir / link).string();
    REQUIRE(std::system(command.c_str()) == 0);
    NativeFile file{.path = path, .owner = owner, .from_wheel = true};
    bundle::FileSource source(dir / name);
    file.elf = bundle::read_elf(source).value();
    file.symbols = bundle::read_elf_symbols(source);
    return file;
  }
};

std::vector<NativeFinding> undefined(std::vector<NativeFile> files) {
  NativeFiles all;
  all.files = std::move(files);
  std::sort(all.files.begin(), all.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  const bundle::Target target{.arch = "x86_64", .glibc = {2, 99}};
  std::vector<NativeFinding> found;
  for (const NativeFinding& finding : check_native(all, target, "libexec/python3.11").findings)
    if (finding.kind == Kind::UndefinedSymbol) found.push_back(finding);
  return found;
}

}  // namespace

TEST_CASE("symbols are read apart: defined for others, needed from others, neither weak ones nor glibc's") {
  const Maker maker;
  const bundle::ElfSymbols symbols =
      maker
          .make("x.so", "x",
                "extern int needed(void); __attribute__((weak)) int maybe(void); static int own(void) { "
                "return 1; } int given(void) { return needed() + (maybe ? maybe() : own()) + puts(\"\"); }")
          .symbols;
  CHECK(symbols.undefined == std::vector<std::string>{"needed"});
  CHECK(symbols.defines(bundle::symbol_hash("given")));
  CHECK_FALSE(symbols.defines(bundle::symbol_hash("own")));
  CHECK_FALSE(symbols.defines(bundle::symbol_hash("needed")));
  maker.make("libneeded.so", "x", "int needed(void) { return 1; }");
  for (const char* style : {"sysv", "gnu", "both"})  // a program that defines nothing, by each kind of hash table
    CHECK(maker
              .make("tool", "x", "int needed(void); int main(void) { return needed(); }",
                    std::string("-Wl,--hash-style=") + style, {"libneeded.so"})
              .symbols.undefined == std::vector<std::string>{"needed"});
  bundle::FileSource self(fs::canonical("/proc/self/exe"));
  CHECK(bundle::read_elf_symbols(self).undefined.size() > 10);
}

TEST_CASE("a damaged table of symbols is read or refused, never more") {
  const Maker maker;
  maker.make("x.so", "x", "int needed(void); int given(void) { return needed(); }");
  bundle::FileSource file(maker.dir / "x.so");
  const bundle::Bytes good = file.read(0, file.size());
  std::uint32_t state = 11;
  for (int round = 0; round < 3000; ++round) {
    bundle::Bytes bad = good;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525 + 1013904223;
      bad[(state >> 8) % (round % 2 == 0 ? 2048 : bad.size())] = static_cast<std::byte>(state);
    }
    if (round % 5 == 0) bad.resize(bad.size() / (round / 5 % 7 + 2));
    bundle::MemorySource source(std::move(bad), "the-elf");
    try {
      bundle::read_elf_symbols(source);
    } catch (const bundle::Error& error) {
      CHECK(error.code() == bundle::ErrorCode::Format);
    }
  }
  for (const HostileCase& hostile : hostile_elfs()) {
    const bundle::ByteView view = bundle::as_bytes(hostile.bytes);
    bundle::MemorySource source({view.begin(), view.end()}, "the-elf");
    try {
      bundle::read_elf_symbols(source);
    } catch (const bundle::Error& error) {
      CHECK(error.code() == bundle::ErrorCode::Format);
    }
  }
}

TEST_CASE("a trainer that was built for another torch is refused with the symbols that are gone") {
  const Maker maker;
  const std::string owner = "torch-2.15.0-cp311-cp311-linux_x86_64.whl";
  maker.make("libtorch.so", owner, "int kept(void) { return 1; } int gone(void) { return 2; }");
  const NativeFile trainer =
      maker.make("bin/trainer", "the program bin/trainer",
                 "int kept(void); int gone(void); int main(void) { return kept() + gone(); }", "", {"libtorch.so"});
  const NativeFile newer = maker.make(kSitePackages + "torch/lib/libtorch.so", owner, "int kept(void) { return 1; }");
  const std::vector<NativeFinding> found = undefined({trainer, newer});
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::Refusal);
  CHECK(found[0].what == "the program bin/trainer needs gone, which nothing in the bundle defines");

  SUBCASE("wherever else in the bundle it is defined, it counts") {
    const NativeFile other = maker.make(kSitePackages + "o/libother.so", "o", "int gone(void) { return 2; }");
    CHECK(undefined({trainer, newer, other}).empty());
  }
  SUBCASE("a file for another machine defines nothing") {
    NativeFile other = maker.make(kSitePackages + "o/libother.so", "o", "int gone(void) { return 2; }");
    other.elf.arch = "aarch64";
    CHECK(undefined({trainer, newer, other}).size() == 1);
  }
}

TEST_CASE("who loads a file decides how its undefined symbols are judged") {
  const Maker maker;
  const std::string code = "int of_the_host(void); int f(void) { return of_the_host(); }";
  const auto one = [&](const std::string& path, const std::vector<NativeFile>& others = {}) {
    std::vector<NativeFile> files = others;
    files.push_back(maker.make(path, "x.whl", code));
    const std::vector<NativeFinding> found = undefined(files);
    return found.size() == 1 ? found[0].severity : static_cast<Severity>(99);
  };
  CHECK(one(kSitePackages + "x/_c.abi3.so") == Severity::Refusal);
  CHECK(one(kSitePackages + "x/_c.cpython-311-x86_64-linux-gnu.so") == Severity::Refusal);
  CHECK(one(kSitePackages + "x/plugin.so") == Severity::Warning);  // whatever opens it may define it
  maker.make("libbase.so", "x.whl", code);
  CHECK(one("lib/libbase.so",
            {maker.make(kSitePackages + "x/user.so", "x.whl", "int f(void); int g(void) { return f(); }",
                        "-shared -fPIC -Wl,-rpath,\\$ORIGIN/../../..", {"libbase.so"})}) ==
        Severity::Refusal);  // another one needs it
}

TEST_CASE("a file that needs a library of the driver or the site is not judged by its symbols") {
  const Maker maker;
  const std::string code = "int cuInit(void); int f(void) { return cuInit(); }";
  maker.make("libcuda.so.1", "x", "int cuInit(void) { return 0; }");
  CHECK(undefined({maker.make(kSitePackages + "x/_c.abi3.so", "x.whl", code, "-shared -fPIC", {"libcuda.so.1"})})
            .empty());
  CHECK(undefined({maker.make(kSitePackages + "x/_c.abi3.so", "x.whl", code)}).size() == 1);
}

TEST_CASE("what the target's glibc defines is defined, also for a file that names no version") {
  const std::vector<std::uint64_t> glibc = glibc_symbols("x86_64", {"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"});
  for (const char* name : {"puts", "dlsym", "pthread_create", "sin", "__tls_get_addr"})
    CHECK_MESSAGE(std::binary_search(glibc.begin(), glibc.end(), bundle::symbol_hash(name)), name);
  CHECK_FALSE(std::binary_search(glibc.begin(), glibc.end(), bundle::symbol_hash("of_the_host")));
  CHECK(glibc_symbols("x86_64", {"/nowhere"}).empty());
}

TEST_CASE("create refuses it before anything is written, also when it has read the files before") {
  Workshop workshop;
  const std::string folder = workshop.dir.path().string();
  write_file(workshop.dir / "code.c", "int of_nobody(void); int f(void) { return of_nobody(); }\n");
  run_checked({"cc", "-shared", "-fPIC", "-nostdlib", "-o", folder + "/_c.abi3.so", folder + "/code.c"});
  workshop.add_wheel({.name = "native", .files = {{"native/_c.abi3.so", read_file(workshop.dir / "_c.abi3.so")}}});
  for (const char* time : {"first", "from the cache"}) {
    INFO(time);
    CHECK_REFUSED(workshop.pack(), Platform, "native/_c.abi3.so of native-1.0-py3-none-any.whl needs of_nobody");
    CHECK_FALSE(fs::exists(workshop.dir / "out"));
  }
}
