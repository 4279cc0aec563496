// SPDX-License-Identifier: Apache-2.0
// A wheel of which a bundle carries only what the target lacks: an entry of the encoding `patch`. Its archive is there
// but for the bodies of some members, which are made from files of another wheel in the target's store; so the readers
// of zip and wheel read it as any other. What is made has the SHA-256 of RECORD, whatever the store really held.
// Format: FORMAT.md, "Patches".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/archive/zip_member.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kMaxPatchHead = std::uint64_t{16} << 20;  // bytes, decoded: it is kept in memory
inline constexpr std::uint64_t kMaxPatchBase = std::uint64_t{3} << 29;   // bytes of a file that is built on
inline constexpr std::string_view kPatchMagic = "sealift-patch-v1 ";

// The wheel's archive as a ByteSource; asked for bytes of a body that is not carried it throws Format.
class PatchedWheel final : public ByteSource {
 public:
  // `stored` are the entry's stored bytes, and must outlive this; `size` is the published wheel's. Reads the head;
  // throws Format.
  PatchedWheel(ByteSource& stored, std::uint64_t size);

  std::uint64_t size() const override { return size_; }
  std::string name() const override { return stored_.name(); }
  ByteView view(std::uint64_t offset, std::size_t wanted) override;

  // The SHA-256 of the file that this file is made from, which is its own where it has not changed; nothing where its
  // bytes are carried. Throws Format where archive and head do not agree.
  std::optional<Digest> base_of(const WheelFile& file);
  // Gives the file's bytes to `sink`, made from `base`, the bytes of the file that base_of() names. Throws Format, or
  // Digest unless they are what RECORD promises. What the sink got must not be used before this returns. Memory:
  // 32 MiB beside `base`.
  void rebuild(const WheelFile& file, ByteView base, const ByteSink& sink);

 private:
  enum class Kind { Carried, Same, Patched };

  // The bytes of one member, as they stand in the archive. Offsets and sizes in bytes.
  struct Body {
    Kind kind = Kind::Carried;
    std::uint64_t begin = 0, size = 0;       // in the archive
    std::uint64_t before = 0;                // bytes of earlier bodies in the archive
    std::uint64_t stored = 0;                // offset in `stored_`
    Digest base{};                           // of a Patched
    std::vector<std::uint64_t> frames = {};  // of a Patched: the sizes of its frames
  };

  void read_head();
  void read_bodies(std::string_view lines, std::uint64_t stored);
  const Body* body_at(std::uint64_t offset) const;  // the last that begins there or before
  const Body* body_of(const WheelFile& file);       // whose bytes are not carried
  void decode(const Body& body, const WheelFile& file, ByteView base, const ByteSink& sink);
  [[noreturn]] void refuse(const std::string& why) const;

  ByteSource& stored_;
  std::uint64_t size_;
  Bytes head_;             // lines, and behind them what of the archive is in no body
  std::size_t bones_ = 0;  // where that begins
  std::vector<Body> bodies_;
};

}  // namespace sealift::bundle
