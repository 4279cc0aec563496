// SPDX-License-Identifier: Apache-2.0
// Whole words decide, never parts of them: an A10 is no A100. See gpu_models.hpp.
#include "sealift/bundle/native/gpu_models.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "sealift/bundle/native/gpu_code.hpp"

namespace sealift::bundle {
namespace {

struct Model {
  std::string_view word;
  unsigned capability;
};

constexpr Model kModels[] = {
    {"P100", 60},  {"P4", 61},    {"P40", 61},   {"V100", 70},   {"V100S", 70}, {"GV100", 70},  {"T4", 75},
    {"T4G", 75},   {"A100", 80},  {"A800", 80},  {"A30", 80},    {"A30X", 80},  {"A100X", 80},  {"A2", 86},
    {"A10", 86},   {"A10G", 86},  {"A16", 86},   {"A40", 86},    {"A2000", 86}, {"A4000", 86},  {"A4500", 86},
    {"A5000", 86}, {"A5500", 86}, {"A6000", 86}, {"L2", 89},     {"L4", 89},    {"L20", 89},    {"L40", 89},
    {"L40S", 89},  {"L40G", 89},  {"Ada", 89},   {"H20", 90},    {"H100", 90},  {"H200", 90},   {"H800", 90},
    {"GH200", 90}, {"B100", 100}, {"B200", 100}, {"GB200", 100}, {"B300", 103}, {"GB300", 103}, {"GB10", 121}};

// Names of whose last number only the thousands count: "RTX 4090" is of the 4000s.
struct Series {
  std::string_view word;
  char thousands;
  unsigned capability;
};
constexpr Series kGeForce[] = {
    {"GTX", '1', 61}, {"RTX", '2', 75}, {"RTX", '3', 86}, {"RTX", '4', 89}, {"RTX", '5', 120}};

// Chips by ranges of PCI device numbers.
struct Range {
  unsigned first, last, capability;
};
constexpr Range kRanges[] = {{0x15f0, 0x15ff, 60},  {0x1b00, 0x1d5f, 61},  {0x1d80, 0x1dff, 70},  {0x1e00, 0x1fff, 75},
                             {0x2080, 0x20ff, 80},  {0x2180, 0x21ff, 75},  {0x2200, 0x228f, 86},  {0x2300, 0x23ff, 90},
                             {0x2400, 0x25ff, 86},  {0x2680, 0x28ff, 89},  {0x2900, 0x29ff, 100}, {0x2b80, 0x2bff, 120},
                             {0x2c00, 0x2c7f, 120}, {0x2d00, 0x2dff, 120}, {0x2f00, 0x2f7f, 120}};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" -"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<unsigned> of_number(std::string_view word) {
  if (word.size() != 9 || !word.starts_with("10de:")) return std::nullopt;
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(word.data() + 5, word.data() + 9, number, 16);
  if (fault != std::errc() || end != word.data() + 9) return std::nullopt;
  for (const Range& range : kRanges)
    if (number >= range.first && number <= range.last) return range.capability;
  return std::nullopt;
}

bool is_number_of_a_card(std::string_view word) {
  return word.size() == 4 && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<unsigned> gpu_capability(std::string_view gpu) {
  const std::vector<std::string_view> words = words_of(gpu);
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  for (const std::string_view word : words)
    if (const auto said = GpuImage::parse(word); said && said->kind == GpuImage::Kind::Code) return said->architecture;
  for (const std::string_view word : words)
    if (const auto known = of_number(word)) return known;
  for (const Model& model : kModels)
    if (has(model.word)) return model.capability;
  if (has("RTX") && has("Blackwell")) return 120;
  if (has("TITAN")) return has("V") ? std::optional(70U) : has("RTX") ? std::optional(75U) : std::nullopt;
  if (has("Quadro") && has("RTX")) return 75;
  if (!has("GeForce")) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i)
    for (const Series& series : kGeForce) {
      if (words[i - 1] != series.word || !is_number_of_a_card(words[i]) || words[i][0] != series.thousands) continue;
      return words[i].starts_with("16") ? 75U : series.capability;
    }
  return std::nullopt;
}

}  // namespace sealift::bundle
