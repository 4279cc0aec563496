// SPDX-License-Identifier: Apache-2.0
// A pylock, which uv or a stranger wrote: what is taken from it has a digest and a plain name, and lines that go back
// to uv are lines.
#include "packager/resolve/pylock.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  const bundle::Target target{.arch = "x86_64", .glibc = {2, 36}};
  accepted([&] {
    const packager::PythonChoice choice = packager::choose_packages(text, "/evidence", "3.11", target);
    for (const packager::LockedWheel& wheel : choice.wheels)
      must(wheel.file_name.find('/') == std::string::npos, "a wheel's name is no path");
  });
  accepted([&] {
    for (const std::string& line : packager::pylock_as_requirements(text, "/evidence", "3.11", target))
      must(line.find_first_of("\n\r") == std::string::npos, "a requirement is one line");
  });
}
