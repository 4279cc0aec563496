// SPDX-License-Identifier: Apache-2.0
// Classifies a model's files by name and by first bytes: which repeat the same weights, which are pickles, which match
// a pattern. Pure functions, because `lock` and `create` ask the same questions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

// Patterns as the hub's own clients read them: '*' also matches '/', and "folder/" matches everything in the folder.
bool matches_any(const std::string& path, const std::vector<std::string>& patterns);

// Whether clients or file systems left this in a model's folder (.git, .cache, ModelScope's index).
bool is_bookkeeping(std::string_view path);

// "model-00002-of-00005.safetensors": the parts of a sharded file's name.
struct ShardName {
  std::string stem;  // "model"
  unsigned number = 0;
  unsigned count = 0;
  std::string suffix;  // ".safetensors"
};
std::optional<ShardName> shard_name(std::string_view file_name);

// The paths that repeat the weights of complete safetensors files of the same folder: other frameworks' formats,
// exports (onnx/, openvino/, coreml/) and original/. Completeness is judged by name; `create` opens the files that
// stay.
std::vector<std::string> duplicate_formats(const std::vector<std::string>& paths);

// Why loading this file may run code that somebody put in it; empty when there is no sign of that. Judged by the name
// alone, or by the file: a pickle begins with its own bytes, and torch.save writes a zip that holds a pickle.
std::string pickle_by_name(std::string_view path);
std::string pickle_by_content(std::string_view path, const std::filesystem::path& file);

}  // namespace sealift::packager
