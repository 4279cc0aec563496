// SPDX-License-Identifier: Apache-2.0
// Headers of rpm packages: what is read of them, and what a mirror could put there instead.
#include "packager/rpm/rpm_header.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/rpm_repository.hpp"
#include "tests/support/tiny_rpm.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;

namespace {

RpmHeader header_of(const std::string& bytes) {
  const bundle::ByteView view = bundle::as_bytes(bytes);
  bundle::MemorySource source(bundle::Bytes(view.begin(), view.end()), "x.rpm");
  return read_rpm_header(source);
}

std::string with(std::size_t tag, const RpmTag& other) {
  std::vector<RpmTag> tags = rpm_tags();
  tags[tag] = other;
  return rpm_of(rpm_section(tags));
}

}  // namespace

TEST_CASE("a package's header says name, version, architecture and licence, of a made one and of a real one") {
  const RpmHeader tiny = header_of(tiny_rpm());
  CHECK(tiny.name == "tool");
  CHECK(tiny.evr() == "1:2.0-1.el9");
  CHECK(tiny.arch == "noarch");
  CHECK(tiny.licence == "MIT and Zlib");
  CHECK(tiny.vendor == "Fixture");
  CHECK_FALSE(tiny.source);

  bundle::FileSource real(rpm_repositories() / "signed/alpha-1.0-1.noarch.rpm");
  const RpmHeader alpha = read_rpm_header(real);
  CHECK(alpha.name == "alpha");
  CHECK(alpha.evr() == "1.0-1");
  CHECK(alpha.arch == "noarch");
  CHECK(alpha.licence == "MIT and Zlib");
  CHECK_FALSE(alpha.source);
}

TEST_CASE("a package that ends anywhere in its headers is refused, and no byte of them makes its reader fall") {
  const std::string good = tiny_rpm();
  const std::size_t headers = good.size() - std::string("payload").size();
  for (std::size_t size = 0; size < headers; ++size) CHECK_REFUSED(header_of(good.substr(0, size)), Format, "x.rpm");
  for (std::size_t at = 0; at < headers; ++at)
    for (const int bit : {0, 3, 7}) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      try {
        header_of(changed);
      } catch (const bundle::Error& error) {
        CHECK(error.code() == bundle::ErrorCode::Format);
      }
    }
}

TEST_CASE("headers with counts that no package has, values outside or of another kind, or without a name are refused") {
  CHECK_REFUSED(header_of(rpm_of(rpm_section(rpm_tags(), 0xffffffff))), Format, "larger than any");
  CHECK_REFUSED(header_of(rpm_of(rpm_section(rpm_tags(), 0, 0xffffffff))), Format, "larger than any");
  CHECK_REFUSED(header_of(rpm_of(rpm_section(rpm_tags(), 60000))), Format, "behind its file");
  CHECK_REFUSED(header_of(with(0, {1000, 4, rpm_number(7)})), Format, "name is no text");
  CHECK_REFUSED(header_of(with(3, {1003, 6, "1\0"})), Format, "epoch is no number");
  CHECK_REFUSED(header_of(with(0, {1000, 6, std::string(1, '\0')})), Format, "no name");
  CHECK_REFUSED(header_of(with(6, {1999, 6, std::string(1, '\0')})), Format, "architecture");
  CHECK_REFUSED(header_of(with(5, {1014, 6, std::string(70000, 'x')})), Format, "no end");
  CHECK(header_of(with(7, {1999, 6, std::string(1, '\0')})).source);
  std::string outside = rpm_section({{1000, 6, "x"}});
  outside.replace(16 + 8, 4, rpm_number(0x7fffffff));
  CHECK_REFUSED(header_of(rpm_of(outside)), Format, "name is no text");
}
