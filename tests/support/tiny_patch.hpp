// SPDX-License-Identifier: Apache-2.0
// Patches of small wheels, made by the code that the packager uses, and taken apart so that a test can put one fault
// into one.
#pragma once

#include <stdexcept>
#include <string>

#include "bundle/archive/zstd.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"
#include "sealift/bundle/wheel/wheel_patch.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

inline bundle::MemorySource memory_source(std::string_view bytes, const std::string& name) {
  const bundle::ByteView view = bundle::as_bytes(bytes);
  return {bundle::Bytes(view.begin(), view.end()), name};
}

// The stored bytes of the patch of `wheel` on `base`; empty when it is not worth it.
inline std::string make_patch(const TinyWheel& wheel, const TinyWheel& base, bundle::WheelPatch* made = nullptr) {
  const TempDir dir;
  bundle::MemorySource after = memory_source(make_wheel(wheel), wheel.file_name());
  bundle::MemorySource before = memory_source(make_wheel(base), base.file_name());
  const auto patch =
      bundle::make_wheel_patch({.source = after, .file_name = wheel.file_name()},
                               {.source = before, .file_name = base.file_name()}, dir.path(), dir / "patch");
  if (!patch) return {};
  if (made != nullptr) *made = *patch;
  return read_file(dir / "patch");
}

// A patch in its parts.
struct TinyPatch {
  std::string lines;   // one for each body
  std::string bones;   // the archive without them
  std::string bodies;  // their bytes

  explicit TinyPatch(const std::string& stored) {
    const std::size_t end = stored.find('\n'), space = stored.rfind(' ', end), first = stored.find(' ');
    const std::size_t frame = std::stoul(stored.substr(space + 1, end - space - 1));
    std::string head;
    bundle::ZstdDecoder decoder(std::stoul(stored.substr(first + 1)), "head");
    decoder.feed(bundle::as_bytes(stored.substr(end + 1, frame)),
                 [&](bundle::ByteView piece) { head += bundle::as_text(piece); });
    decoder.finish();
    lines = head.substr(0, head.find("\n\n") + 1);
    bones = head.substr(lines.size() + 1);
    bodies = stored.substr(end + 1 + frame);
  }
  std::string text() const {
    const std::string head = lines + "\n" + bones;
    std::string frame;
    const bundle::ByteSink sink = [&](bundle::ByteView piece) { frame += bundle::as_text(piece); };
    bundle::ZstdEncoder encoder(head.size());
    encoder.feed(bundle::as_bytes(head), sink);
    encoder.finish(sink);
    return std::string(bundle::kPatchMagic) + std::to_string(head.size()) + " " + std::to_string(frame.size()) + "\n" +
           frame + bodies;
  }
};

// A wheel of a library of `size` bytes that do not shrink, and two modules; and its next version, in which a few bytes
// of the library and one module have changed.
inline TinyWheel with_library(std::size_t size = 3'000'000) {
  return {.name = "native",
          .files = {{"native/__init__.py", "VERSION = 1\n"},
                    {"native/lib.so", noise(size)},
                    {"native/table.py", "TABLE = '" + noise(5000).substr(4500) + "'\n"}}};
}
inline TinyWheel with_changed_library(std::size_t size = 3'000'000, const std::string& version = "1.1") {
  TinyWheel wheel = with_library(size);
  wheel.version = version;
  wheel.files["native/__init__.py"] = "VERSION = '" + version + "'\n";
  std::string& library = wheel.files["native/lib.so"];
  library.replace(size / 3, 7, version + "abcd");
  library.insert(size / 2, "four more words of code");
  return wheel;
}

}  // namespace sealift::test
