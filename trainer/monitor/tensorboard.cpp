// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files.
// See tensorboard.hpp. A file is TFRecord frames (tensorflow/core/lib/io/record_writer.h): length, its checksum, data,
// its checksum. The data are `Event` messages (tensorflow/core/util/event.proto) in protobuf's encoding: fields with a
// tag of number * 8 + type, where type 0 is a varint, 1 eight bytes, 2 a length and bytes, 5 four bytes.
#include "trainer/monitor/tensorboard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <stdexcept>

#include <unistd.h>

namespace sealift::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

std::string tag(int field, int type) {
  return varint(static_cast<std::uint64_t>(field * 8 + type));
}

std::string block(int field, const std::string& bytes) {
  return tag(field, 2) + varint(bytes.size()) + bytes;
}

/// Checksums beside their data are masked: a checksum over both must not contain its own kind.
std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8U;
}

std::string wall_time(double seconds) {
  return tag(1, 1) + bytes_of(seconds);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::string_view kBeginning = "events.out.tfevents.";

/// The seconds in the name of the last file of `folder`; 0 where there is none.
std::int64_t latest_in(const std::filesystem::path& folder) {
  std::int64_t latest = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(kBeginning)) continue;
    std::int64_t seconds = 0;
    std::from_chars(name.data() + kBeginning.size(), name.data() + name.size(), seconds);
    constexpr std::int64_t kSameDigits = 9'999'999'998;  // names are compared as texts
    if (seconds <= kSameDigits) latest = std::max(latest, seconds);
  }
  return latest;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      entries[i] = i;
      for (int bit = 0; bit < 8; ++bit) entries[i] = (entries[i] >> 1) ^ ((entries[i] & 1) ? 0x82f63b78U : 0);
    }
    return entries;
  }();
  std::uint32_t crc = ~0U;
  for (const auto byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff];
  return ~crc;
}

TensorBoard::TensorBoard(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto start = now();
  // The name that TensorBoard looks for; files of one folder are read in the order of their names.
  const auto seconds = std::max(static_cast<std::int64_t>(start), latest_in(folder) + 1);
  path_ = folder / (std::string(kBeginning) + std::to_string(seconds) + "." + host_name() + "." +
                    std::to_string(getpid()) + ".sealift");
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) throw std::runtime_error("cannot write " + path_.string() + "; choose another folder with --tensorboard");
  write(wall_time(start) + block(3, "brain.Event:2"));
}

void TensorBoard::restart(std::int64_t step) {
  constexpr std::uint64_t kStart = 1;  // SessionLog.START
  write(wall_time(now()) + tag(2, 0) + varint(static_cast<std::uint64_t>(step)) + block(7, tag(1, 0) + varint(kStart)));
}

void TensorBoard::add(std::int64_t step, const std::string& name, double value, double seconds) {
  const auto scalar = block(1, name) + tag(2, 5) + bytes_of(static_cast<float>(value));
  write(wall_time(seconds) + tag(2, 0) + varint(static_cast<std::uint64_t>(step)) + block(5, block(1, scalar)));
}

void TensorBoard::write(std::string_view event) {
  const auto length = bytes_of(static_cast<std::uint64_t>(event.size()));
  file_ << length << bytes_of(masked(crc32c(length))) << event << bytes_of(masked(crc32c(event))) << std::flush;
}

}  // namespace sealift::trainer
