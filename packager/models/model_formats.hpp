// SPDX-License-Identifier: Apache-2.0
// What the files of a model are, by name and by their first bytes: which are the same weights once more, which are
// pickles, which patterns match. Pure functions: lock and create ask the same questions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

// As the hub's own clients read patterns: '*' also crosses '/', "folder/" is everything in it.
bool matches_any(const std::string& path, const std::vector<std::string>& patterns);

// What clients and file systems leave in a model's folder that is no part of it (.git, .cache, ModelScope's index).
bool is_bookkeeping(std::string_view path);

// "model-00002-of-00005.safetensors": the parts of a sharded file's name.
struct ShardName {
  std::string stem;  // "model"
  unsigned number = 0;
  unsigned count = 0;
  std::string suffix;  // ".safetensors"
};
std::optional<ShardName> shard_name(std::string_view file_name);

// The paths that repeat weights which complete safetensors files of the same folder hold: other frameworks' formats,
// exports (onnx/, openvino/, coreml/) and original/. Completeness goes by name; `create` opens what stays.
std::vector<std::string> duplicate_formats(const std::vector<std::string>& paths);

// Why loading this file may run code that somebody put in it; empty when nothing says so. By name alone, or with the
// file itself: a pickle has a start of its own, and torch.save writes a zip that holds one.
std::string pickle_by_name(std::string_view path);
std::string pickle_by_content(std::string_view path, const std::filesystem::path& file);

}  // namespace sealift::packager
