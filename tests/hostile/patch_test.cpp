// SPDX-License-Identifier: Apache-2.0
// Patches on hostile bases and golden files of strangers: a right one with random changes, a few hundred at a time.
// What comes out is what was promised, or it is refused by name; nothing else, and never a crash.
#include "bundle/core/golden_file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_patch.hpp"

#include <array>
#include <random>

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

using Random = std::mt19937_64;  // its numbers are the standard's

std::size_t below(Random& random, std::size_t end) {
  return end == 0 ? 0 : static_cast<std::size_t>(random() % end);
}

// Flipped, cut, doubled, longer, empty, or other bytes altogether.
std::string damaged(std::string bytes, Random& random) {
  const std::size_t at = below(random, bytes.size()), kind = below(random, 7);
  if (kind == 0) return {};
  if (kind == 1) return bytes.substr(0, at);
  if (kind == 2) return bytes + bytes.substr(at);
  if (kind == 3) return noise(bytes.size());
  if (kind == 4) return bytes.insert(at, noise(1 + below(random, 100)));
  if (kind == 5) return bytes.erase(at, 1 + below(random, 100));
  if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
  return bytes;
}

// How often what is made of `patch` and files of `base` that somebody changed under their names is what was promised,
// and how often it is refused.
std::array<int, 2> with_hostile_base(const std::string& patch, const TinyWheel& wheel, const TinyWheel& base,
                                     Random& random) {
  MemorySource stored = memory_source(patch, "patch");
  PatchedWheel source(stored, make_wheel(wheel).size());
  std::map<Digest, std::string> had;
  for (const auto& [path, bytes] : base.files) had.emplace(sha256(as_bytes(bytes)), bytes);
  Wheel read(source, wheel.file_name());
  std::array<int, 2> ends{};
  for (const WheelFile& file : read.files()) {
    const std::optional<Digest> from = source.base_of(file);
    if (!from) continue;
    std::string bytes;
    try {
      source.rebuild(file, as_bytes(damaged(had.at(*from), random)), [&](ByteView piece) { bytes += as_text(piece); });
      CHECK(bytes == wheel.files.at(file.path));
      ++ends[0];
    } catch (const Error& error) {
      CHECK((error.code() == ErrorCode::Digest || error.code() == ErrorCode::Format));
      CHECK(bytes.size() <= wheel.files.at(file.path).size());
      ++ends[1];
    }
  }
  return ends;
}

const std::string kGolden = R"({"format": "sealift.golden", "version": 1, "name": "tiny", "verb": "sft",
 "settings": {"model": "models/tiny", "learning_rate": "0.1"}, "rows": 4, "ranks": 2, "method": "ddp", "inputs": {"data/a":
 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}, "steps": 2, "losses": ["2.5", "2.25"],
 "norms": ["1", "0.5"], "weights": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "device": "cpu",
 "arch": "x86_64", "torch": "2.11.0", "threads": 1, "tolerances": {"fp32": "0.001"}})";

constexpr const char* kNasty[] = {"\"\\u001b]0;x\\u0007\"",
                                  "\"\\u202ex\"",
                                  "\"../../etc/passwd\"",
                                  "\"/etc/passwd\"",
                                  "-1",
                                  "1e999",
                                  "\"nan\"",
                                  "\"inf\"",
                                  "\"0x1p9999\"",
                                  "99999999999999999999",
                                  "null",
                                  "[]",
                                  "{}",
                                  "[[[[[[[[[]]]]]]]]]",
                                  "\"\"",
                                  "true",
                                  "\"a\\nb\"",
                                  "4294967296"};

// One value, or a few bytes, of a right golden file are others.
std::string stranger(Random& random) {
  std::string text = kGolden;
  if (below(random, 4) == 0) return damaged(text, random);
  const std::size_t at = below(random, text.size());
  const std::size_t begin = text.find_first_of(":,[", at);
  const std::size_t end = begin == text.npos ? begin : text.find_first_of(",]}", begin + 1);
  if (end == text.npos) return text + text;
  return text.substr(0, begin + 1) + kNasty[below(random, std::size(kNasty))] + text.substr(end);
}

}  // namespace

TEST_CASE("X12: a patch on a base that somebody changed makes the promised files, or is refused") {
  const TinyWheel base = with_library(40'000);
  TinyWheel wheel = base;
  wheel.version = "2.0";
  for (auto& [path, bytes] : wheel.files)
    if (bytes.size() > 1000) bytes.replace(bytes.size() / 2, 5, "other");
  const std::string patch = make_patch(wheel, base);
  REQUIRE_FALSE(patch.empty());
  Random random(20);
  int made = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    const auto [good, bad] = with_hostile_base(patch, wheel, base, random);
    made += good;
    refused += bad;
  }
  MESSAGE((made + refused) << " tries: " << refused << " refused, " << made << " made what was promised");
  CHECK(refused >= 500);
  int taken = 0, others = 0;  // and patches that somebody changed, on the right base
  for (int i = 0; i < 300; ++i) {
    const std::string changed = damaged(patch, random);
    try {
      Random none(1);
      with_hostile_base(changed, wheel, base, none);
      ++taken;
    } catch (const Error& error) {
      CHECK((error.code() == ErrorCode::Digest || error.code() == ErrorCode::Format ||
             error.code() == ErrorCode::Missing || error.code() == ErrorCode::Conflict));
      ++others;
    }
  }
  MESSAGE((taken + others) << " changed patches: " << others << " refused as they were opened");
  CHECK(others > 100);
}

TEST_CASE("X11: a golden file of a stranger is taken with values that a site would take, or refused by name") {
  CHECK(parse_golden(kGolden, "golden").losses.size() == 2);
  Random random(11);
  int taken = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = stranger(random);
    try {
      const GoldenFile golden = parse_golden(text, "golden");
      CHECK(golden.losses.size() == golden.norms.size());
      CHECK((golden.ranks >= 1 && golden.ranks <= kMaxGoldenRanks));
      for (const auto& [path, digest] : golden.inputs) CHECK(is_path_below(path));
      for (const auto& [name, value] : golden.settings)
        if (is_path_setting(name)) CHECK(is_path_below(value));
      ++taken;
    } catch (const Error& error) {
      CAPTURE(text);
      CHECK((error.code() == ErrorCode::Format || error.code() == ErrorCode::Usage));
      ++refused;
    }
  }
  MESSAGE((taken + refused) << " tries: " << refused << " refused, " << taken << " taken");
  CHECK(refused > 1000);
}
