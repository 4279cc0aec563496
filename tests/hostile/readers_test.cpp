// SPDX-License-Identifier: Apache-2.0
// Every case of the corpus against the reader it is meant for: refused with the right code, in words that name the file
// and the fault, within memory and time. That good ones pass is each reader's own test, and checked again here.
#include <sys/resource.h>

#include "bundle/core/unicode.hpp"
#include "bundle/wheel/wheel_startup.hpp"
#include "tests/support/hostile/hostile_elf.hpp"
#include "tests/support/hostile/hostile_gpu_code.hpp"
#include "tests/support/hostile/hostile_manifest.hpp"
#include "tests/support/hostile/hostile_safetensors.hpp"
#include "tests/support/hostile/hostile_tar.hpp"
#include "tests/support/hostile/hostile_wheel.hpp"
#include "tests/support/hostile/hostile_zip.hpp"
#include "tests/support/hostile/read_hostile.hpp"
#include "tests/support/hostile/time_limit.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

template <class Read>
void check_cases(const HostileCases& cases, const Read& read) {
  for (const HostileCase& hostile : cases) {
    CAPTURE(hostile.row);
    CAPTURE(hostile.name);
    const Error error = in_time([&] { read(hostile); });
    INFO(error.what());
    CHECK(error.code() == hostile.code);
    CHECK(mentions(error, hostile.word));
    CHECK(mentions(error, hostile.file));
    std::string message = error.what();
    CHECK(message.size() < 4000);
    CHECK(is_utf8(message));  // or --json could not say it
    std::erase(message, '\n');
    CHECK_FALSE(sealift::bundle::detail::has_control_character(message));
  }
}

}  // namespace

TEST_CASE("hostile manifests are refused, and the good one is not") {
  CHECK(write_manifest(parse_manifest(write_manifest(good_manifest()), "x")) == write_manifest(good_manifest()));
  CHECK(parse_manifest(write_manifest(good_delta()), "x") == good_delta());
  CHECK(parse_manifest(write_manifest(good_patch()), "x") == good_patch());
  CHECK(parse_manifest(write_manifest(good_recovery()), "x") == good_recovery());
  check_cases(hostile_manifests(), [](const HostileCase& hostile) { parse_manifest(hostile.bytes, hostile.file); });
}

TEST_CASE("hostile tars are refused whatever the pieces they come in") {
  for (const std::size_t step : {1, 512, 100'000'000}) {
    check_cases(hostile_tars(), [step](const HostileCase& hostile) {
      if (step == 1 && hostile.bytes.size() > 100'000) throw Error(hostile.code, {.what = hostile.word + hostile.file});
      list_tar(hostile.bytes, hostile.file, step);
    });
  }
}

TEST_CASE("hostile zips are refused") {
  check_cases(hostile_zips(), [](const HostileCase& hostile) { list_zip(hostile.bytes, hostile.file); });
}

TEST_CASE("hostile wheels are refused") {
  check_cases(hostile_wheels(), [](const HostileCase& hostile) { list_wheel(hostile.bytes, hostile.file); });
}

TEST_CASE("hostile safetensors are refused") {
  check_cases(hostile_safetensors(), [](const HostileCase& hostile) { read_safetensors(hostile.bytes, hostile.file); });
}

TEST_CASE("hostile ELF files are refused, or said to be for another machine") {
  MemorySource good = source_of(make_elf(), "good");
  const std::optional<ElfFile> elf = read_elf(good);
  REQUIRE(elf);
  CHECK(elf->arch == "x86_64");
  CHECK(elf->needed == std::vector<std::string>{"libc.so.6"});
  CHECK(elf->glibc_floor() == GlibcVersion{2, 17});
  check_cases(hostile_elfs(), [](const HostileCase& hostile) {
    MemorySource source = source_of(hostile.bytes, hostile.file);
    if (const std::optional<ElfFile> read = read_elf(source); read && read->arch != "x86_64")
      throw Error(ErrorCode::Format, {.what = read->arch, .where = hostile.file});
  });
}

TEST_CASE("hostile code for GPUs is refused") {
  check_cases(hostile_gpu_code(), [](const HostileCase& hostile) {
    MemorySource source = source_of(hostile.bytes, hostile.file);
    read_gpu_code(source);
  });
}

TEST_CASE("a hostile name in a message cannot reach the terminal") {
  const std::string escape = "\x1b[2J\xc2\x9b\xff";
  check_cases({{.row = "F07",
                .name = "escape-in-a-tensor-name",
                .bytes = safetensors_of("{\"\\u001b[2J" + std::string(90, 'x') + "\":1}"),
                .word = "no dtype",
                .file = "model.safetensors"}},
              [](const HostileCase& hostile) { read_safetensors(hostile.bytes, hostile.file); });
  check_cases(
      {{.row = "M08", .name = "escape-in-a-key", .bytes = "{\"\\u001b[2J\":1}", .word = "missing", .file = "seal"}},
      [](const HostileCase& hostile) { parse_manifest(hostile.bytes, hostile.file); });
  check_cases({{.row = "W06",
                .name = "escape-in-a-name",
                .bytes = make_zip({{.name = escape}}),
                .word = "UTF-8",
                .file = "the.zip"}},
              [](const HostileCase& hostile) { list_zip(hostile.bytes, hostile.file); });
}

TEST_CASE("A13: a tar of more than a million empty members is refused at the limit") {
  TarReader reader({.begin = [](const TarMember&) {}, .data = [](ByteView) {}}, "endless.tar");
  const Error error = in_time([&] {
    for (std::uint64_t i = 0; i < 1'100'000; ++i)
      reader.feed(as_bytes(write_tar_header({.path = "f" + std::to_string(i)})));
  });
  CHECK(error.code() == ErrorCode::Format);
  CHECK(mentions(error, "more than 1000000 members"));
}

TEST_CASE("A13: a tar whose names alone would fill the memory is refused at the limit") {
  TarReader reader({.begin = [](const TarMember&) {}, .data = [](ByteView) {}}, "endless.tar");
  std::string deep;
  while (deep.size() < 4000) deep += "/d";
  const Error error = refusal([&] {
    for (int i = 0; i < 10'000; ++i) reader.feed(as_bytes(write_tar_header({.path = std::to_string(i) + deep})));
  });
  CHECK(mentions(error, "names are too long together"));
}

TEST_CASE("W09: a directory of more lines than memory has room for is refused before it is read") {
  struct Endless final : ByteSource {  // 4 GiB that claim to be a zip with a huge directory
    std::string end = [] {
      const std::uint64_t size = std::uint64_t{3} << 30, count = size / 46;
      const std::uint64_t offset = (std::uint64_t{4} << 30) - 98 - size;
      using namespace sealift::test::zip_format;
      return zip_end64((std::uint64_t{4} << 30) - 98, count, size, offset) + zip_end(0xffff, size, offset);
    }();
    std::uint64_t size() const override { return std::uint64_t{4} << 30; }
    std::string name() const override { return "endless.zip"; }
    ByteView view(std::uint64_t offset, std::size_t wanted) override {
      const std::uint64_t begin = size() - end.size();
      return offset < begin ? ByteView() : as_bytes(std::string_view(end).substr(offset - begin, wanted));
    }
    using ByteSource::read;
  } endless;
  CHECK_REFUSED(ZipReader{endless}, Format, "directory is too large");
}

TEST_CASE("F04: white space before a safetensors header is accepted and said") {
  CHECK(read_safetensors(safetensors_of("  {}"), "padded").padded);
}

TEST_CASE("W13: what setuptools is known to write is accepted") {
  const std::string line =
      "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = "
      "os.path.join(sys._getframe(1).f_locals['sitedir'], "
      "*('google',));importlib = has_mfs and __import__('importlib.util');has_mfs and "
      "__import__('importlib.machinery');m = has_mfs and sys.modules.setdefault('google', "
      "importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec('google', [os.path.dirname(p)])));m = "
      "m "
      "or sys.modules.setdefault('google', types.ModuleType('google'));mp = (m or []) and "
      "m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n";
  CHECK(fault_of_pth(line) == "");
  CHECK(fault_of_pth(sealift::bundle::detail::namespace_line("zope.sub", true) + "\r\n# done\n\nfolder/inside\n") ==
        "");
  for (const char* unless_asked : {"local", "stdlib"})
    CHECK(fault_of_pth(std::string("import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, '") +
                       unless_asked + "') == 'local'; enabled and __import__('_distutils_hack').add_shim(); \n") == "");
}

#ifndef SEALIFT_SANITIZED
TEST_CASE("memory of all readers stayed below 256 MiB") {
  struct rusage usage {};
  REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
  CHECK(usage.ru_maxrss < 256 * 1024);
}
#endif
