// SPDX-License-Identifier: Apache-2.0
// See chunk_config.hpp.
#include "trainer/models/chunk_config.hpp"

namespace sealift::trainer {
namespace {

/// Layers without rotation: 0 in no_rope_layers, whose name says the opposite; else one of every so many.
std::vector<bool> read_unturned(ConfigKeys& keys, std::int64_t layers) {
  const auto every = keys.integer("no_rope_layer_interval", 1, ConfigKeys::kMost, 4);
  const auto* list = keys.find("no_rope_layers");
  std::vector<bool> unturned;
  if (!list || (list->is_array() && list->empty())) {
    for (std::int64_t layer = 1; layer <= layers; ++layer) unturned.push_back(layer % every == 0);
    return unturned;
  }
  const auto expected = "a list of 0 or 1, one for each layer";
  if (!list->is_array() || list->size() < static_cast<std::size_t>(layers)) keys.refuse("no_rope_layers", expected);
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    const auto& each = (*list)[i];
    if (each != 0 && each != 1) keys.refuse("no_rope_layers", expected);
    unturned.push_back(each == 0);
  }
  return unturned;
}

}  // namespace

void read_chunks(ConfigKeys& keys, DecoderConfig& config) {
  config.unturned = read_unturned(keys, config.layers);
  const bool none = keys.has("attention_chunk_size") && !keys.find("attention_chunk_size");
  const auto chunk = none ? 0 : keys.integer("attention_chunk_size", 1, ConfigKeys::kMost, 8192);
  std::vector<bool> chunked;
  for (const bool unturned : config.unturned) chunked.push_back(!unturned);
  if (const auto* types = keys.find("layer_types")) {
    const auto expected = "chunked_attention or full_attention for each layer";
    if (!types->is_array() || types->size() != chunked.size()) keys.refuse("layer_types", expected);
    for (std::size_t i = 0; i < chunked.size(); ++i) {
      chunked[i] = (*types)[i] == "chunked_attention";
      if (!chunked[i] && (*types)[i] != "full_attention") keys.refuse("layer_types", expected);
    }
  }
  for (const bool each : chunked) {
    if (each && none) keys.refuse("attention_chunk_size", "a number of tokens, since layers are chunked");
    config.chunks.push_back(each ? chunk : 0);
  }
  if (keys.flag("use_qk_norm", true)) config.turned_norm_eps = config.norm_eps;
  const Temperature heat{.scale = keys.number("attn_scale", -1e6, 1e6, 0.1),
                         .floor = static_cast<double>(keys.integer("floor_scale", 1, ConfigKeys::kMost, 8192))};
  if (keys.flag("attn_temperature_tuning", true)) config.temperature = heat;
}

}  // namespace sealift::trainer
