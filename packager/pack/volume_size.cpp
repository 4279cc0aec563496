// SPDX-License-Identifier: Apache-2.0
// Each kind of disc has two standards; the smaller one counts, in sectors of 2048 bytes, less the room for the disc's
// file system (below 2 MiB) and for the seal, chunk list, installer and audit script that go on each disc. Volumes
// above 4 GiB (dvd-dl, bd) need UDF, or ISO 9660 with several extents a file.
#include "packager/pack/volume_size.hpp"

#include <charconv>
#include <string_view>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

namespace {

constexpr std::uint64_t kSector = 2048;
constexpr std::uint64_t kBeside = std::uint64_t{64} << 20;

struct Medium {
  const char* name;
  std::uint64_t bytes;
};
constexpr Medium kMedia[] = {
    {"cd", 360'000 * kSector - kBeside},        // 80 minutes, 737,280,000 bytes
    {"dvd", 2'295'104 * kSector - kBeside},     // DVD+R, 4,700,372,992 bytes; DVD-R has more
    {"dvd-dl", 4'171'712 * kSector - kBeside},  // DVD-R DL, 8,543,666,176 bytes; DVD+R DL has more
    {"bd", 12'219'392 * kSector - kBeside},     // BD-R, 25,025,314,816 bytes
    {"fat32", (std::uint64_t{4} << 30) - 1},    // its largest file; a stick may hold several
};

}  // namespace

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  static constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit.empty() || unit == "B" ? 0 : kUnits.find(unit[0]) + 1;
  const bool decimal = unit.size() == 2 && unit[1] == 'B';
  if (fault != std::errc() || (power == 0 && !unit.empty() && unit != "B") || unit.size() > 2 ||
      (unit.size() == 2 && !decimal))
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "this is not a size", .expected = "like 4700M, 1G or 25GB", .got = text});
  for (std::size_t i = 0; i < power; ++i) {
    if (value > bundle::kMaxPayloadSize)
      throw bundle::Error(bundle::ErrorCode::Usage,
                          {.what = "a size is too large", .expected = "at most 1024T", .got = text});
    value *= decimal ? 1000 : 1024;
  }
  return value;
}

unsigned parse_percent(const std::string& text) {
  unsigned value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (fault == std::errc() && (rest.empty() || rest == "%") && value >= 1 && value <= 100) return value;
  throw bundle::Error(
      bundle::ErrorCode::Usage,
      {.what = "this is not a share of the payload", .expected = "1% to 100%, such as 5%", .got = text});
}

std::uint64_t parse_volume_size(const std::string& text) {
  for (const Medium& medium : kMedia)
    if (text == medium.name) return medium.bytes;
  try {
    return parse_size(text);
  } catch (const bundle::Error& error) {
    bundle::Facts facts = error.facts();
    facts.expected += "; or cd, dvd, dvd-dl, bd, fat32";
    throw bundle::Error(error.code(), std::move(facts));
  }
}

}  // namespace sealift::packager
