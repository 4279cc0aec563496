// SPDX-License-Identifier: Apache-2.0
// Reads the head, shows the archive, and makes what is not carried; see patched_wheel.hpp.
#include "sealift/bundle/wheel/patched_wheel.hpp"

#include <algorithm>
#include <charconv>

#include "bundle/archive/zip_directory.hpp"
#include "bundle/archive/zstd.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kShownPiece = std::size_t{1} << 20;

// Takes what stands before `end` off the front of `text`; nothing when there is no `end`.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// A decimal number of at most 15 digits, so that sums of a few do not overflow.
std::optional<std::uint64_t> patch_number(std::optional<std::string_view> text) {
  std::uint64_t value = 0;
  if (!text || text->empty() || text->size() > 15 || (text->size() > 1 && text->front() == '0')) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

void pass_range(ByteSource& source, std::uint64_t begin, std::uint64_t size, const ByteSink& sink) {
  for (std::uint64_t at = 0; at < size;) {
    const ByteView piece =
        source.view(begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(size - at, kShownPiece)));
    sink(piece);
    at += piece.size();
  }
}

}  // namespace

PatchedWheel::PatchedWheel(ByteSource& stored, std::uint64_t size) : stored_(stored), size_(size) {
  read_head();
}

void PatchedWheel::refuse(const std::string& why) const {
  throw Error(ErrorCode::Format, {.what = "a wheel that is carried as a patch is not acceptable: " + why,
                                  .where = stored_.name(),
                                  .next = "this entry was not made by sealift-pack; do not use it"});
}

// The first line says how long the frame behind it is, and what it decodes to.
void PatchedWheel::read_head() {
  constexpr std::uint64_t kMaxLine = 64;
  const Bytes start = stored_.read(0, std::min(kMaxLine, stored_.size()));
  std::string_view text = as_text(start);
  if (!text.starts_with(kPatchMagic)) refuse("it does not begin as a patch");
  text.remove_prefix(kPatchMagic.size());
  const auto decoded = patch_number(take_until(text, ' ')), frame = patch_number(take_until(text, '\n'));
  const std::uint64_t begin = start.size() - text.size();
  if (!decoded || !frame || *decoded > kMaxPatchHead || *frame > stored_.size() - begin)
    refuse("its first line is damaged");
  head_.reserve(static_cast<std::size_t>(*decoded));
  ZstdDecoder decoder(*decoded, stored_.name());
  pass_range(stored_, begin, *frame, [&](ByteView piece) {
    decoder.feed(piece, [&](ByteView out) { head_.insert(head_.end(), out.begin(), out.end()); });
  });
  decoder.finish();
  const std::string_view whole = as_text(head_);
  const std::size_t end = whole.starts_with('\n') ? 0 : whole.find("\n\n");
  if (end == whole.npos) refuse("its list of members has no end");
  bones_ = end == 0 ? 1 : end + 2;
  read_bodies(whole.substr(0, bones_ - 1), begin + *frame);
}

// `stored`: where the bytes of the first body begin.
void PatchedWheel::read_bodies(std::string_view lines, std::uint64_t stored) {
  std::uint64_t end = 0, before = 0;
  while (!lines.empty()) {
    std::string_view line = *take_until(lines, '\n');
    const std::optional<std::string_view> kind = take_until(line, ' ');
    const std::optional<std::uint64_t> begin = patch_number(take_until(line, ' '));
    const bool patched = kind == "patch";
    if (!patched && kind != "carried" && kind != "same") refuse("its list of members is damaged");
    const std::optional<std::uint64_t> size = patch_number(patched ? take_until(line, ' ') : std::optional(line));
    if (!begin || !size || *size == 0 || *begin < end || *begin > size_ || *size > size_ - *begin)
      refuse("its members are not where a wheel has them");
    Body body{.kind = patched          ? Kind::Patched
                      : kind == "same" ? Kind::Same
                                       : Kind::Carried,
              .begin = *begin,
              .size = *size,
              .before = before,
              .stored = stored};
    if (body.kind == Kind::Carried) {
      if (*size > stored_.size() - stored) refuse("it is cut short");
      stored += *size;
    }
    if (patched) {
      const std::optional<std::string_view> base = take_until(line, ' ');
      const std::optional<Digest> digest = base ? Digest::from_hex(*base) : std::nullopt;
      if (!digest) refuse("its list of members is damaged");
      body.base = *digest;
      for (bool more = true; more;) {
        const std::size_t comma = line.find(',');
        const std::optional<std::uint64_t> frame = patch_number(line.substr(0, comma));
        if (!frame || *frame > stored_.size() - stored) refuse("it is cut short");
        body.frames.push_back(*frame);
        stored += *frame;
        more = comma != line.npos;
        if (more) line.remove_prefix(comma + 1);
      }
    }
    end = *begin + *size;
    before += *size;
    bodies_.push_back(std::move(body));
  }
  if (stored != stored_.size()) refuse("bytes follow its last member");
  if (size_ - before != head_.size() - bones_) refuse("it is not as large as the wheel that was published");
}

const PatchedWheel::Body* PatchedWheel::body_at(std::uint64_t offset) const {
  const auto next = std::upper_bound(bodies_.begin(), bodies_.end(), offset,
                                     [](std::uint64_t wanted, const Body& body) { return wanted < body.begin; });
  return next == bodies_.begin() ? nullptr : &*(next - 1);
}

ByteView PatchedWheel::view(std::uint64_t offset, std::size_t wanted) {
  const Body* const body = body_at(offset);
  if (body != nullptr && offset - body->begin < body->size) {
    if (body->kind != Kind::Carried) refuse("bytes that it must carry are left to the store");
    const std::uint64_t at = offset - body->begin;
    return stored_.view(body->stored + at, static_cast<std::size_t>(std::min<std::uint64_t>(wanted, body->size - at)));
  }
  const std::uint64_t passed = body == nullptr ? 0 : body->before + body->size;
  const Body* const next = body == nullptr ? bodies_.data() : body + 1;
  const std::uint64_t end = next < bodies_.data() + bodies_.size() ? next->begin : size_;
  return ByteView(head_)
      .subspan(static_cast<std::size_t>(bones_ + offset - passed))
      .first(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, end - offset)));
}

const PatchedWheel::Body* PatchedWheel::body_of(const WheelFile& file) {
  const detail::ZipBody place = detail::check_zip_header(*this, file.member);
  const Body* const body = file.member.compressed_size == 0 ? nullptr : body_at(place.begin);
  if (body == nullptr || place.begin - body->begin >= body->size || body->kind == Kind::Carried) return nullptr;
  if (body->begin != place.begin || body->size != file.member.compressed_size)
    refuse("a part of a member is left to the store: " + SafePath::printable(file.path));
  detail::check_zip_end(*this, file.member, place);
  return body;
}

std::optional<Digest> PatchedWheel::base_of(const WheelFile& file) {
  const Body* const body = body_of(file);
  if (body == nullptr) return std::nullopt;
  return body->kind == Kind::Same ? file.sha256 : body->base;
}

void PatchedWheel::rebuild(const WheelFile& file, ByteView base, const ByteSink& sink) {
  const Body* const body = body_of(file);
  if (body == nullptr) refuse("a member is carried and made as well: " + SafePath::printable(file.path));
  Hasher hasher;
  std::uint64_t made = 0;
  const ByteSink take = [&](ByteView piece) {
    made += piece.size();
    if (made > file.member.size) refuse("a member is longer than it says: " + SafePath::printable(file.path));
    hasher.update(piece);
    sink(piece);
  };
  if (body->kind == Kind::Same)
    for (std::size_t at = 0; at < base.size(); at += kShownPiece)
      take(base.subspan(at, std::min(kShownPiece, base.size() - at)));
  else
    decode(*body, file, base, take);
  if (const Digest digest = hasher.finish(); made != file.member.size || digest != file.sha256)
    throw Error(ErrorCode::Digest,
                {.what = "what a patch makes is not what was published",
                 .where = stored_.name() + ", " + SafePath::printable(file.path),
                 .expected = std::to_string(file.member.size) + " bytes, sha256 " + file.sha256.hex(),
                 .got = std::to_string(made) + " bytes, sha256 " + digest.hex()});
}

// One frame for each piece of the file.
void PatchedWheel::decode(const Body& body, const WheelFile& file, ByteView base, const ByteSink& sink) {
  if (body.frames.size() != (file.member.size + kPatchPiece - 1) / kPatchPiece)
    refuse("a patch has more or fewer frames than its file has pieces: " + SafePath::printable(file.path));
  std::uint64_t left = file.member.size, stored = body.stored;
  for (const std::uint64_t frame : body.frames) {
    const std::uint64_t piece = std::min(left, kPatchPiece);
    ZstdDecoder decoder(piece, stored_.name() + ", " + SafePath::printable(file.path), base);
    pass_range(stored_, stored, frame, [&](ByteView bytes) { decoder.feed(bytes, sink); });
    decoder.finish();
    left -= piece;
    stored += frame;
  }
}

}  // namespace sealift::bundle
