// SPDX-License-Identifier: Apache-2.0
// See python_json.hpp.
#include "packager/models/python_json.hpp"

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

std::string with_plain_numbers(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    const std::size_t word = quoted ? 0 : rest.starts_with("NaN") ? 3 : rest.starts_with("Infinity") ? 8 : 0;
    if (word > 0) {
      out += '0';
      at += word - 1;
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    out += text[at];
    if (quoted && text[at] == '\\' && at + 1 < text.size()) out += text[++at];
  }
  return out;
}

safetensors::Json python_object(const std::filesystem::path& file) {
  if (file.empty()) return {};
  try {
    safetensors::Json json =
        safetensors::parse_json(with_plain_numbers(bundle::read_text(file, kMaxConfig)), 64, file.string());
    return json.is_object() ? json : safetensors::Json();
  } catch (const safetensors::FormatError&) {
    return {};
  }
}

}  // namespace sealift::packager
