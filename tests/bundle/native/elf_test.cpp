// SPDX-License-Identifier: Apache-2.0
// The ELF reader agrees with this very test program and the host's C library, and survives damage to both.
#include "sealift/bundle/native/elf.hpp"

#include <elf.h>
#include <gnu/libc-version.h>

#include "sealift/bundle/native/libc_version.hpp"
#include "tests/support/hostile/read_hostile.hpp"
#include "tests/support/offering_elf.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

std::filesystem::path host_libc() {
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"})
    if (std::filesystem::exists(path)) return std::filesystem::canonical(path);
  FAIL("no libc.so.6 on this host");
  return {};
}

}  // namespace

TEST_CASE("a program's libraries, interpreter and glibc floor are read") {
  FileSource source(std::filesystem::canonical("/proc/self/exe"));
  const std::optional<ElfFile> self = read_elf(source);
  REQUIRE(self);
  CHECK(self->dynamic);
  CHECK(self->interpreter.find("ld-linux") != std::string::npos);
  CHECK(std::find(self->needed.begin(), self->needed.end(), "libc.so.6") != self->needed.end());
  REQUIRE(self->glibc_floor());
  CHECK(*self->glibc_floor() <= *parse_glibc(gnu_get_libc_version()));
  CHECK(*self->glibc_floor() >= GlibcVersion{2, 2});
}

TEST_CASE("the C library's own version is what its banner says, as it says it itself") {
  FileSource source(host_libc());
  const std::optional<ElfFile> libc = read_elf(source);
  REQUIRE(libc);
  CHECK(libc->soname == "libc.so.6");
  CHECK(libc_version(source, *libc) == parse_glibc(gnu_get_libc_version()));
}

TEST_CASE("a C library that brought no new symbol is not taken for the version before it") {
  const auto version = [](const std::string& newest, const std::string& banner, std::size_t before = 100) {
    MemorySource source = source_of(
        make_offering_elf({"libc.so.6", "GLIBC_2.2.5", "GLIBC_" + newest}) + std::string(before, 'x') + banner, "libc");
    return libc_version(source, read_elf(source).value()).value_or(GlibcVersion{});
  };
  const std::string debian_11 = "GNU C Library (Debian GLIBC 2.31-13+deb11u11) stable release version 2.31.\nCopyright";
  CHECK(version("2.30", debian_11) == GlibcVersion{2, 31});
  CHECK(version("2.38", "GNU C Library (GNU libc) stable release version 2.40.\n") == GlibcVersion{2, 40});
  CHECK(version("2.39", "GNU C Library (GNU libc) development release version 2.39.9000.\n") == GlibcVersion{2, 39});
  for (std::size_t before = (1 << 20) - 700; before < 1 << 20; before += 7)  // wherever the pieces end
    REQUIRE(version("2.30", debian_11, before) == GlibcVersion{2, 31});
  CHECK(version("2.36", debian_11) == GlibcVersion{2, 36});  // what it offers, it is
  const GlibcVersion newest{2, 28};
  for (const std::string banner :
       {"", "release version 2.99", " release version x.y", " release version 2", " release version"})
    CHECK_MESSAGE(version("2.28", banner) == newest, banner);
}

TEST_CASE("the oldest kernel is read from the note that says it, and from no other") {
  FileSource source(host_libc());
  Bytes bytes = source.read(0, source.size());
  const auto floor = [&] {
    MemorySource copy(bytes, "libc.so.6");
    return read_elf(copy).value().kernel_floor;
  };
  const std::string kernel = floor();
  CHECK_FALSE(Version::leading(kernel) < Version::leading("2.6"));
  CHECK(Version::leading(kernel) < Version::leading("9"));
  const std::string tag("\4\0\0\0\x10\0\0\0\1\0\0\0GNU\0\0\0\0\0", 20);
  const std::size_t at = as_text(bytes).find(tag);
  REQUIRE(at != std::string::npos);
  bytes[at + 16] = std::byte{3};  // FreeBSD's
  CHECK(floor().empty());
  bytes[at + 16] = std::byte{0};
  CHECK(floor() == kernel);
  bytes[at + 8] = std::byte{2};  // another type of note
  CHECK(floor().empty());
  bytes[at + 8] = std::byte{1};
  bytes[at + 3] = std::byte{0xff};  // a name of 4 GiB
  CHECK(floor().empty());
}

TEST_CASE("other files than ELF are told apart") {
  for (const std::string& bytes : {std::string(), std::string("#!/bin/sh\n"), std::string(1000, '\0')}) {
    MemorySource source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end()), "x");
    CHECK_FALSE(read_elf(source));
  }
}

TEST_CASE("a damaged ELF file is read or refused, never more") {
  FileSource file(std::filesystem::canonical("/proc/self/exe"));
  const Bytes good = file.read(0, std::min<std::uint64_t>(file.size(), 300000));
  std::uint32_t state = 7;
  for (int round = 0; round < 3000; ++round) {
    Bytes bad = good;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525 + 1013904223;
      bad[(state >> 8) % (round % 2 == 0 ? 1024 : bad.size())] = static_cast<std::byte>(state);
    }
    if (round % 5 == 0) bad.resize(bad.size() / (round / 5 % 7 + 2));
    MemorySource source(std::move(bad), "the-elf");
    try {
      read_elf(source);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::Format);
      CHECK(mentions(error, "the-elf"));
    }
  }
}

namespace {

// A shared library that the system's compiler makes.
std::optional<ElfFile> compiled(const TempDir& dir, const std::string& flags, const std::string& code) {
  write_file(dir / "code.c", code);
  const std::string out = (dir / "code.so").string();
  REQUIRE(std::system(("cc -shared -w -o '" + out + "' '" + (dir / "code.c").string() + "' " + flags).c_str()) == 0);
  FileSource source(out);
  return read_elf(source);
}

}  // namespace

TEST_CASE("an executable stack and text relocations are seen") {
  const TempDir dir;
  const std::optional<ElfFile> good = compiled(dir, "-fPIC", "int a;\n");
  REQUIRE(good);
  CHECK(good->type == ET_DYN);
  CHECK_FALSE(good->executable_stack);
  CHECK_FALSE(good->text_relocations);
  CHECK(compiled(dir, "-fPIC -Wl,-z,execstack", "int a;\n")->executable_stack);
  CHECK(
      compiled(dir, "-fno-pic -mcmodel=large -Wl,-z,notext", "int a; int* f(void) { return &a; }\n")->text_relocations);
}

TEST_CASE("a RUNPATH of twenty thousand bytes is read, as TensorFlow 2.21.0 has one") {
  const TempDir dir;
  const std::string runpath = "$ORIGIN/" + std::string(20'289, 'x');
  const auto library = compiled(dir, "-fPIC -Wl,--enable-new-dtags,-rpath,'" + runpath + "'", "int a;\n");
  REQUIRE(library);
  CHECK(library->runpath == runpath);
}

TEST_CASE("versions that are only wanted weakly set no floor") {
  const TempDir dir;
  write_file(dir / "map", "V_1 { v; }; V_2 { w; };\n");
  const std::string map = "-fPIC -Wl,-soname,libv.so -Wl,--version-script=" + (dir / "map").string();
  const std::optional<ElfFile> library = compiled(dir, map, "void v(void) {} void w(void) {}\n");
  CHECK(library->offered_versions.contains("V_2"));
  std::filesystem::rename(dir / "code.so", dir / "libv.so");
  const std::optional<ElfFile> user = compiled(dir, "-fPIC '" + (dir / "libv.so").string() + "'",
                                               "void v(void); void w(void); void f(void) { v(); w(); }\n");
  CHECK(user->wanted_versions.at("libv.so") == std::set<std::string>{"V_1", "V_2"});

  // Not every linker marks versions of weak symbols: done by hand. A Vernaux begins with the hash of its name.
  std::string bytes = read_file(dir / "code.so");
  const std::uint32_t hash = ((std::uint32_t{'V'} << 4) + '_') * 16 + '2';
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&hash), sizeof hash));
  REQUIRE(at != std::string::npos);
  bytes[at + offsetof(Elf64_Vernaux, vna_flags)] |= VER_FLG_WEAK;
  MemorySource source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end()), "weak");
  CHECK(read_elf(source)->wanted_versions.at("libv.so") == std::set<std::string>{"V_1"});
}

TEST_CASE("packed relocations ask for the glibc that understands them") {
  ElfFile file;
  file.wanted_versions["libc.so.6"] = {"GLIBC_2.2.5", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"};
  CHECK(file.glibc_floor() == GlibcVersion{2, 36});
}

TEST_CASE("the processor's level that a property note asks for is read") {
  const TempDir dir;
  CHECK(compiled(dir, "-fPIC", "int a;\n")->cpu_floor.empty());
  CHECK(compiled(dir, "-fPIC -Wl,-z,x86-64-v2", "int a;\n")->cpu_floor == "x86-64-v2");
  CHECK(compiled(dir, "-fPIC -Wl,-z,x86-64-v4", "int a;\n")->cpu_floor == "x86-64-v4");
}
