// SPDX-License-Identifier: Apache-2.0
// The list of a patch's members, a NUL, and their bytes, put around an archive that is in order. What is made of it has
// the digests of RECORD, whatever list and bytes say.
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  static const TinyWheel base = with_library(4000), wheel = with_changed_library(4000);
  static const TinyPatch good(make_patch(wheel, base));
  static const std::size_t size = make_wheel(wheel).size();
  const std::size_t end = std::min(text.find('\0'), text.size());
  TinyPatch patch = good;
  patch.lines = text.substr(0, end);
  patch.bodies = text.substr(std::min(end + 1, text.size()));
  const std::string bytes = patch.text();
  accepted([&] {
    MemorySource stored = memory_source(bytes, "patch");
    PatchedWheel source(stored, size);
    Wheel read(source, wheel.file_name());
    for (const WheelFile& file : read.files()) {
      std::string made;
      const ByteSink sink = [&](ByteView piece) { made += as_text(piece); };
      const std::optional<Digest> from = source.base_of(file);
      if (from)
        source.rebuild(file, as_bytes(base.files.at("native/lib.so")), sink);
      else
        read.extract(file, sink);
      must(made.size() == file.member.size, "what is made has its size");
      must(sha256(as_bytes(made)) == file.sha256, "what is made is what RECORD promises");
    }
  });
}
