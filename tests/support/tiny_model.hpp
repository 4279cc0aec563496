// SPDX-License-Identifier: Apache-2.0
// Models as small as they can be: files by name, whole and sound, so that a test can put exactly one fault into one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sealift/safetensors.hpp"
#include "tests/support/temp_dir.hpp"

namespace sealift::test {

using ModelFiles = std::map<std::string, std::string>;

// A safetensors file with these tensors, four bytes each.
inline std::string tiny_safetensors(const std::vector<std::string>& names) {
  safetensors::Header header;
  for (const std::string& name : names) header.tensors.push_back({.name = name, .dtype = "F32", .shape = {1}});
  const std::string head = safetensors::write_header(header);
  return head + std::string(header.data_bytes(), 'w');
}

inline ModelFiles tiny_model() {
  return {{"config.json", R"({"model_type": "tiny", "rate": 0.5})"},
          {"tokenizer.json", "{}"},
          {"tokenizer_config.json", "{}"},
          {"model.safetensors", tiny_safetensors({"a", "b"})}};
}

inline ModelFiles sharded_model() {
  ModelFiles files = tiny_model();
  files.erase("model.safetensors");
  files["model-00001-of-00002.safetensors"] = tiny_safetensors({"a", "b"});
  files["model-00002-of-00002.safetensors"] = tiny_safetensors({"c"});
  files["model.safetensors.index.json"] =
      R"({"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors", )"
      R"("b": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}})";
  return files;
}

inline void write_model(const std::filesystem::path& folder, const ModelFiles& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [path, bytes] : files) write_file(folder / path, bytes);
}

}  // namespace sealift::test
