// SPDX-License-Identifier: Apache-2.0
// Event files as a reader of TFRecord and protobuf finds them.
#include "trainer/monitor/tensorboard.hpp"

#include "tests/support/temp_dir.hpp"

#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

using sealift::trainer::crc32c;
using sealift::trainer::TensorBoard;

namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Number>
Number take(std::string& bytes) {
  REQUIRE(bytes.size() >= sizeof(Number));
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.erase(0, sizeof number);
  return number;
}

std::uint64_t take_varint(std::string& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
}

std::string take_block(std::string& bytes) {
  const auto size = take_varint(bytes);
  REQUIRE(size <= bytes.size());
  auto block = bytes.substr(0, size);
  bytes.erase(0, size);
  return block;
}

/// TFRecord's unmasking: the inverse of the mask that its documentation gives.
std::uint32_t unmasked(std::uint32_t crc) {
  const auto rotated = crc - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version, tag;
  std::optional<float> value;
};

Event parse(std::string bytes) {
  Event event;
  while (!bytes.empty()) {
    switch (take_varint(bytes)) {
      case 1 << 3 | 1:
        event.wall_time = take<double>(bytes);
        break;
      case 2 << 3:
        event.step = static_cast<std::int64_t>(take_varint(bytes));
        break;
      case 3 << 3 | 2:
        event.version = take_block(bytes);
        break;
      case 5 << 3 | 2: {
        auto summary = take_block(bytes);
        CHECK(take_varint(summary) == (1 << 3 | 2));
        auto value = take_block(summary);
        CHECK(summary.empty());
        CHECK(take_varint(value) == (1 << 3 | 2));
        event.tag = take_block(value);
        CHECK(take_varint(value) == (2 << 3 | 5));
        event.value = take<float>(value);
        CHECK(value.empty());
        break;
      }
      default:
        FAIL("unknown field");
    }
  }
  return event;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  auto bytes = content_of(path);
  std::vector<Event> events;
  while (!bytes.empty()) {
    const auto length_bytes = bytes.substr(0, 8);
    const auto length = take<std::uint64_t>(bytes);
    CHECK(unmasked(take<std::uint32_t>(bytes)) == crc32c(length_bytes));
    REQUIRE(length <= bytes.size());
    const auto data = bytes.substr(0, length);
    bytes.erase(0, length);
    CHECK(unmasked(take<std::uint32_t>(bytes)) == crc32c(data));
    events.push_back(parse(data));
  }
  return events;
}

}  // namespace

TEST_CASE("checksums are those of RFC 3720, B.4") {
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(crc32c("") == 0);
}

TEST_CASE("an event file begins with its version and holds the scalars that were added") {
  const sealift::test::TempDir folder;
  std::filesystem::path path;
  {
    TensorBoard board(folder.path() / "runs" / "one");
    path = board.path();
    board.add(1, "train/loss", 4.5, 1.7e9);
    board.add(300, "speed", 1e6, 1.7e9 + 0.25);
    CHECK(read_events(path).size() == 3);  // before it is closed
  }
  CHECK(path.filename().string().starts_with("events.out.tfevents."));
  const auto events = read_events(path);
  REQUIRE(events.size() == 3);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].wall_time > 1.7e9);
  CHECK(events[1].tag == "train/loss");
  CHECK(events[1].value == 4.5F);
  CHECK(events[1].step == 1);
  CHECK(events[2].step == 300);  // two bytes of a varint
  CHECK(events[2].value == 1e6F);
  CHECK(events[2].wall_time == 1.7e9 + 0.25);
}

TEST_CASE("a folder that cannot be made is refused before the run") {
  const sealift::test::TempDir folder;
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS(TensorBoard(folder.path() / "file" / "board"));
}
