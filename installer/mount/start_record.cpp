// SPDX-License-Identifier: Apache-2.0
// Text: the image's digest, then a number a line. Anybody may have written it, so it is bounded and numbers are
// checked; a wrong one costs a read.
#include "installer/mount/start_record.hpp"

#include <unistd.h>

#include <charconv>
#include <set>
#include <string>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxRecord = std::uint64_t{1} << 20;

std::string first_line(const bundle::Digest& image) {
  return "sealift-start-v1 " + bundle::fingerprint_text(image) + "\n";
}

}  // namespace

std::vector<std::uint64_t> read_start_record(const fs::path& file, const bundle::Digest& image, std::uint64_t count) {
  std::string text;
  try {
    text = bundle::read_text(file, kMaxRecord);
  } catch (const bundle::Error&) {
    return {};
  }
  const std::string begin = first_line(image);
  if (!text.starts_with(begin)) return {};
  std::vector<std::uint64_t> chunks;
  std::set<std::uint64_t> known;
  const char* at = text.data() + begin.size();
  for (const char* const end = text.data() + text.size(); at != end;) {
    std::uint64_t chunk = 0;
    const auto [behind, error] = std::from_chars(at, end, chunk);
    if (error != std::errc() || behind == end || *behind != '\n' || chunk >= count) return {};
    if (known.insert(chunk).second) chunks.push_back(chunk);
    at = behind + 1;
  }
  return chunks;
}

void write_start_record(const fs::path& file, const bundle::Digest& image, const std::vector<std::uint64_t>& chunks) {
  std::string text = first_line(image);
  for (const std::uint64_t chunk : chunks) text += std::to_string(chunk) + "\n";
  if (text.size() > kMaxRecord) return;
  const fs::path beside = file.string() + "." + std::to_string(::getpid()) + ".new";
  bundle::write_text(beside, text);
  std::error_code error;
  fs::rename(beside, file, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(beside, ignored);
  bundle::throw_errno("the record of a start cannot be written", file, error.value());
}

}  // namespace sealift::installer
