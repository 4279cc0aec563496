// SPDX-License-Identifier: Apache-2.0
// The texts of a wheel: the input is cut at NUL bytes into RECORD rows, METADATA, entry points and a .pth file, which
// are put into a zip that is in order. What is accepted must not run anything or name anything outside.
#include "sealift/bundle/wheel/wheel.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  std::string parts[5];
  for (std::string& part : parts) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  TinyWheel wheel{.extra_record = parts[0]};
  if (!parts[1].empty()) wheel.files["demo-1.0.dist-info/METADATA"] = parts[1];
  if (!parts[2].empty()) wheel.entry_points = parts[2];
  if (!parts[3].empty()) wheel.files["demo.pth"] = parts[3];
  if (!parts[4].empty()) wheel.files["demo-1.0.dist-info/WHEEL"] = parts[4];
  const std::string bytes = make_wheel(wheel);
  accepted([&] {
    MemorySource source = source_of(bytes, "wheel");
    Wheel read(source, wheel.file_name());
    must(read.files().size() == wheel.files.size() + 2 - wheel.files.count("demo-1.0.dist-info/METADATA") -
                                    wheel.files.count("demo-1.0.dist-info/WHEEL") + (parts[2].empty() ? 0 : 1),
         "every file is there");
    for (const WheelFile& file : read.files()) read.extract(file, [](ByteView) {});
    for (const EntryPoint& point : read.entry_points())
      must(point.script.find('/') == std::string::npos && SafePath::parse(point.script, "").text() == point.script &&
               point.function.find_first_of(" ;()\n") == std::string::npos &&
               point.module.find_first_of(" ;()\n") == std::string::npos,
           "an entry point is a name and a call");
    must(normalized_version(*read.metadata_field("Version")) == normalized_version("1.0"), "the version is the file's");
  });
}
