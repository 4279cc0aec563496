// SPDX-License-Identifier: Apache-2.0
// See beyond_config.hpp.
#include "trainer/models/beyond_config.hpp"

#include "trainer/models/weight_files.hpp"

#include <c10/util/StringUtil.h>

#include <charconv>

namespace sealift::trainer {

bool is_beyond(const std::string& stored, const DecoderConfig& config) {
  const std::string layers = "model.layers.";
  if (stored.starts_with(layers)) {
    std::int64_t number = 0;
    const auto* begin = stored.data() + layers.size();
    const auto [end, fault] = std::from_chars(begin, stored.data() + stored.size(), number);
    return fault == std::errc() && end != begin && *end == '.' && number >= config.layers;
  }
  return !stored.starts_with("model.") && !stored.starts_with("lm_head.") &&
         !(config.reward_head && stored.starts_with("score."));
}

std::string beyond_config(const std::filesystem::path& folder, const DecoderConfig& config) {
  std::vector<std::string> names;
  std::size_t all = 0;
  for (const auto& [name, shape] : stored_shapes(folder)) {
    if (is_beyond(name, config) && ++all <= 3) names.push_back(name);
  }
  if (all == 0) return {};
  return c10::str("note: ", all, " tensors of ", folder.string(), " are of no part that its config.json describes (",
                  config.layers, " layers), and are left out, as in transformers: ", c10::Join(", ", names),
                  all > names.size() ? " ..." : "");
}

}  // namespace sealift::trainer
