// SPDX-License-Identifier: Apache-2.0
// Versions as numbers: which texts are one, which of two is older, and how they are written.
#include "sealift/bundle/core/version.hpp"

#include <doctest/doctest.h>

using namespace sealift::bundle;

TEST_CASE("glibc versions are numbers, not texts") {
  CHECK(*parse_glibc("2.9") < *parse_glibc("2.36"));
  CHECK(parse_glibc("2.2.5") == GlibcVersion{2, 2});
  for (const char* bad : {"", "2", "2.", ".3", "2.x", "2.3.4.5", "-2.3", "2.36 ", "2.99999999999"}) {
    CAPTURE(std::string(bad));
    CHECK_FALSE(parse_glibc(bad));
  }
}

TEST_CASE("a version is one to four numbers and nothing else") {
  CHECK(Version::parse("580") == Version{580});
  CHECK(Version::parse("525.60.13") == Version{525, 60, 13});
  CHECK(Version::parse("450.80.02") == Version{450, 80, 2});
  CHECK(Version::parse("1.2.3.999999999") == Version{1, 2, 3, 999'999'999});
  for (const char* bad : {"", ".", "1.", ".1", "1..2", "1.2.3.4.5", "1.2.3.4.", "v1", "1.2rc1", "1.2.3.1000000000"}) {
    CAPTURE(std::string(bad));
    CHECK_FALSE(Version::parse(bad));
  }
}

TEST_CASE("versions are compared number by number") {
  const auto below = [](const char* a, const char* b) { return Version::leading(a) < Version::leading(b); };
  CHECK(below("3.4.9", "3.4.24"));
  CHECK_FALSE(below("3.4.24", "3.4.9"));
  CHECK(below("4.19.90-52.22.ky10", "4.19.91"));
  CHECK_FALSE(below("4.19.90-52.22.ky10", "4.19.90"));
  CHECK(below("535.183.01", "580"));
  CHECK_FALSE(below("580", "580.0"));
  CHECK(below("", "1"));
  CHECK(below("9.999999999", "9.1000000000"));
}

TEST_CASE("releases are compared by their numbers") {
  CHECK(Version::leading("4.9") < Version::leading("4.57.2"));
  CHECK(Version::leading("4.57") == Version::leading("4.57.0"));
  CHECK(Version::leading("4.57.2+local") == Version::leading("4.57.2"));
  CHECK(Version::leading("10") > Version::leading("9.9"));
  CHECK(Version::leading("") < Version::leading("0.1"));
}

TEST_CASE("a version is written with two numbers at least, and without zeros at its end") {
  CHECK(Version{}.text() == "0.0");
  CHECK(Version{2, 36}.text() == "2.36");
  CHECK(Version{3, 4, 29}.text() == "3.4.29");
  CHECK(Version{4, 2, 0}.text() == "4.2");
  CHECK(Version{1, 2, 0, 4}.text() == "1.2.0.4");
}
