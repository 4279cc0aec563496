// SPDX-License-Identifier: Apache-2.0
// See trained_end.hpp.
// Special tokens are those of tokenizer.json; a newline behind the end of a turn is learned too, so two tokens count.
#include "trainer/fine_tune/trained_end.hpp"

#include <sealift/train.hpp>

#include <set>

namespace sealift::trainer {
namespace {

safetensors::Json json_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return safetensors::Json::object();
  return safetensors::parse_json(train::read_text(path, std::uint64_t{256} << 20), 32, path.string());
}

std::set<std::int64_t> special_tokens(const std::filesystem::path& model) {
  std::set<std::int64_t> tokens;
  const auto json = json_of(model / "tokenizer.json");
  const auto added = json.find("added_tokens");
  if (added == json.end() || !added->is_array()) return tokens;
  for (const auto& each : *added) {
    if (each.is_object() && each.value("special", false) && each.contains("id") && each["id"].is_number_integer()) {
      tokens.insert(each["id"].get<std::int64_t>());
    }
  }
  return tokens;
}

/// The last special token among the last two that count.
std::optional<std::int64_t> end_of(const TokenSequence& sequence, const std::set<std::int64_t>& special) {
  int seen = 0;
  for (auto at = sequence.size(); at-- > 0 && seen < 2;) {
    if (!sequence.counts(at)) continue;
    if (special.contains(sequence.token(at))) return sequence.token(at);
    ++seen;
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> trained_end(const TokenFile& data, const std::filesystem::path& model) {
  const auto special = special_tokens(model);
  std::optional<std::int64_t> end;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(1000, data->header().sequences); ++i) {
    const auto found = end_of(data.view().sequence(i), special);
    if (!found || (end && *end != *found)) return {};
    end = found;
  }
  return end;
}

bool lacks_template(const TokenFile& data, const std::filesystem::path& model) {
  if (data->header().template_sha256.find_first_not_of('0') == std::string::npos) return false;
  for (const char* name : {"chat_template.jinja", "chat_template.json", "additional_chat_templates"}) {
    if (std::filesystem::exists(model / name)) return false;
  }
  return !json_of(model / "tokenizer_config.json").contains("chat_template");
}

}  // namespace sealift::trainer
