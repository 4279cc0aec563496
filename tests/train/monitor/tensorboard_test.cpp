// SPDX-License-Identifier: Apache-2.0
// Event files as a reader of TFRecord and protobuf finds them.
#include "trainer/monitor/tensorboard.hpp"

#include "tests/support/temp_dir.hpp"
#include "trainer/monitor/monitor.hpp"

#include <algorithm>
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
  bool starts = false;  ///< SessionLog.START: what was told of this step and later ones is forgotten
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
      case 7 << 3 | 2: {
        auto session = take_block(bytes);
        CHECK(take_varint(session) == (1 << 3 | 0));
        event.starts = take_varint(session) == 1;
        CHECK(session.empty());
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

/// The curve `tag` as TensorBoard shows the files of `folder`: in the order of their names, and of what comes before a
/// start only the steps before its own (event_accumulator.py, _Purge).
std::vector<std::pair<std::int64_t, float>> curve_in(const std::filesystem::path& folder, const std::string& tag) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::int64_t, float>> curve;
  for (const auto& file : files) {
    for (const auto& event : read_events(file)) {
      if (event.starts) std::erase_if(curve, [&](const auto& point) { return point.first >= event.step; });
      if (event.value && event.tag == tag) curve.emplace_back(event.step, *event.value);
    }
  }
  return curve;
}

using Curve = std::vector<std::pair<std::int64_t, float>>;

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

TEST_CASE("a run that goes on from a checkpoint, or goes back to one, takes the place of what was there") {
  using sealift::trainer::HostOptions;
  using sealift::trainer::Monitor;
  const sealift::test::TempDir folder;
  HostOptions options;
  options.tensorboard = (folder.path() / "board").string();
  const auto run = [&](std::initializer_list<std::int64_t> steps, double loss) {
    Monitor monitor(options, {});
    for (const auto step : steps) {
      monitor.begin_step();
      monitor.end_step(step, {.loss = loss, .gradient_norm = 1, .tokens_per_second = 1});
      if (step % 2 == 0) monitor.logged({{"step", step}, {"eval_loss", loss + 1}});
    }
  };
  run({1, 2, 3, 4, 5}, 5);
  run({4, 5, 6}, 4);  // killed after step 5, its checkpoint is that of step 3
  CHECK(curve_in(options.tensorboard, "train/loss") == Curve{{1, 5}, {2, 5}, {3, 5}, {4, 4}, {5, 4}, {6, 4}});
  CHECK(curve_in(options.tensorboard, "eval/loss") == Curve{{2, 6}, {4, 5}, {6, 5}});
  run({7, 8, 9, 8, 9, 10}, 3);  // goes back to the checkpoint of step 7
  CHECK(curve_in(options.tensorboard, "train/loss") ==
        Curve{{1, 5}, {2, 5}, {3, 5}, {4, 4}, {5, 4}, {6, 4}, {7, 3}, {8, 3}, {9, 3}, {10, 3}});
  run({1, 2}, 2);  // another run into the folder, from its beginning
  CHECK(curve_in(options.tensorboard, "train/loss") == Curve{{1, 2}, {2, 2}});
}

TEST_CASE("a file comes after those of the folder, whatever the clock says") {
  const sealift::test::TempDir folder;
  std::ofstream(folder.path() / "events.out.tfevents.8000000000.far.1");
  const TensorBoard board(folder.path());
  CHECK(board.path().filename().string().starts_with("events.out.tfevents.8000000001."));
  std::ofstream(folder.path() / "events.out.tfevents.99999999999999.odd.1");
  std::ofstream(folder.path() / "events.out.tfevents.x");
  CHECK(TensorBoard(folder.path()).path().filename().string().starts_with("events.out.tfevents.8000000002."));
}

TEST_CASE("what a line of the log has beyond the step's own numbers is a scalar of its name") {
  using sealift::trainer::Monitor;
  const sealift::test::TempDir folder;
  sealift::trainer::HostOptions options;
  options.tensorboard = (folder.path() / "board").string();
  Monitor monitor(options, {});
  monitor.begin_step();
  monitor.end_step(1, {.loss = 2, .gradient_norm = 1, .tokens_per_second = 1});
  monitor.logged(
      {{"step", 1}, {"loss", 2.0}, {"learning_rate", 0.25}, {"epoch", 0.5}, {"accuracy", 0.75}, {"note", "text"}});
  monitor.logged({{"step", 1}, {"eval_loss", 3.0}, {"eval_accuracy", 0.5}});
  const auto value = [&](const std::string& tag) { return curve_in(options.tensorboard, tag); };
  CHECK(value("train/learning_rate") == Curve{{1, 0.25F}});
  CHECK(value("train/epoch") == Curve{{1, 0.5F}});
  CHECK(value("train/accuracy") == Curve{{1, 0.75F}});
  CHECK(value("eval/loss") == Curve{{1, 3}});
  CHECK(value("eval/accuracy") == Curve{{1, 0.5F}});
  CHECK(value("train/loss") == Curve{{1, 2}});  // once
  CHECK(value("train/note").empty());
}

TEST_CASE("a folder that cannot be made is refused before the run") {
  const sealift::test::TempDir folder;
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS(TensorBoard(folder.path() / "file" / "board"));
}
