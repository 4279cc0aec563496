// SPDX-License-Identifier: Apache-2.0
// Damage in the cache is found where a file is read, and mended where its bytes can be had again.
#include "packager/pack/content_supply.hpp"

#include <doctest/doctest.h>

#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::files_of;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("a wheel that is damaged in the cache is fetched again before it is packed") {
  Workshop workshop;
  workshop.pack("one");
  write_file(workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex(), "not a wheel");
  workshop.pack("two");
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
}

TEST_CASE("a wheel whose damage no reader sees is found while it is written, and fetched again") {
  Workshop workshop;
  workshop.pack("one");  // keeps what the native check read of the wheel
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex();
  const std::size_t before = workshop.server.requests().size();
  workshop.pack("two");
  CHECK(workshop.server.requests().size() == before);
  std::string bytes = read_file(file);
  bytes[bytes.find("libdemo.so") + 60] ^= 1;  // in the compressed bytes of a member
  write_file(file, bytes);
  workshop.pack("three");
  CHECK(workshop.server.requests().size() == before + 1);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "three/demo-1"));
  CHECK_FALSE(fs::exists(workshop.dir / "three/.demo-1.partial"));
}

TEST_CASE("what was checked of another wheel counts for nothing: it is found while the right one is written") {
  Workshop workshop;
  const test::TinyWheel tiny{.name = "more", .files = {{"more.py", "MORE = 1\n"}}};
  const LockedWheel more = workshop.add_wheel(tiny);
  const fs::path file = workshop.cache() / "sha256" / more.sha256.hex();
  bool same = false;
  // Each a sound wheel, of the same name.
  SUBCASE("with a file more") {
    test::TinyWheel other = tiny;
    other.files["more_still.py"] = "";
    write_file(file, test::make_wheel(other));
  }
  SUBCASE("with the same files, of the same sizes") {
    same = true;
    write_file(file, test::make_wheel({.name = "more", .files = {{"more.py", "MORE = 2\n"}}}));
  }
  if (!same) CHECK_REFUSED(workshop.pack("one"), Digest, "run the same command again");
  CHECK_FALSE(fs::exists(workshop.dir / "one/demo-1"));
  CHECK_FALSE(fs::exists(workshop.dir / "one/.demo-1.partial"));
  workshop.pack("two");
  fs::remove(file);
  workshop.pack("three");
  CHECK(files_of(workshop.dir / "two/demo-1") == files_of(workshop.dir / "three/demo-1"));
}

TEST_CASE("a damaged file is fetched again where it is read, and no step is taken twice for it") {
  Workshop workshop;
  const LockedWheel more = workshop.add_wheel({.name = "more", .files = {{"more.py", "MORE = 1\n"}}});
  workshop.pack("one");
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.wheels[0].sha256.hex();
  std::string bytes = read_file(file);
  SUBCASE("in planning: its directory is gone") {
    write_file(file, bytes.substr(0, bytes.size() - 30));
  }
  SUBCASE("in the native check, which has not kept what it read: a member is another one") {
    fs::remove_all(workshop.cache() / "native");
    bytes[bytes.find("libdemo.so") + 60] ^= 1;
    write_file(file, bytes);
  }
  SUBCASE("in writing") {
    bytes[bytes.find("libdemo.so") + 60] ^= 1;
    write_file(file, bytes);
  }
  const std::size_t before = workshop.server.requests().size();
  const fs::path said = workshop.dir / "said";
  std::FILE* stream = std::fopen(said.c_str(), "w");
  workshop.pack("two", 0, {}, stream);
  std::fclose(stream);
  CHECK(workshop.server.requests().size() == before + 1);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
  const std::string text = read_file(said);
  INFO(text);
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("demo-1.0-py3-none-any.whl in the cache is damaged") == 1);
  CHECK(count("native: ") == 1);
  CHECK(count("writing demo-1") == 1);
}

TEST_CASE("a lost or damaged interpreter is refused with what to do") {
  Workshop workshop;
  const fs::path file = workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex();
  write_file(file, "damaged");
  CHECK_REFUSED(workshop.pack(), Digest, "lock again");
  fs::remove(file);
  const std::size_t before = workshop.server.requests().size();
  CHECK_REFUSED(workshop.pack(), Missing, "lock again");
  CHECK(workshop.server.requests().size() == before);  // known before anything is fetched
}
