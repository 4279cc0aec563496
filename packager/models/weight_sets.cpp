// SPDX-License-Identifier: Apache-2.0
// See weight_sets.hpp. Sources: transformers' _get_resolved_checkpoint_files, which takes a single file before an index
// and every tensor of the index's files; vLLM's filter_duplicate_safetensors_files, which keeps what an index names.
#include "packager/models/weight_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "packager/models/model_formats.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::packager {

namespace {

namespace fs = std::filesystem;
using bundle::SafePath;

constexpr std::uint64_t kMaxShardIndex = std::uint64_t{64} << 20;
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

std::string folder_of_file(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// An index: which file each tensor is said to be in.
using Index = std::map<std::string, std::string>;

// Throws FormatError where it is malformed.
Index read_index(const std::string& path, const fs::path& file) {
  const safetensors::Json index = safetensors::parse_json(bundle::read_text(file, kMaxShardIndex), 8, path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    throw safetensors::FormatError(path + ": it has no weight_map");
  Index files;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) throw safetensors::FormatError(path + ": a value of weight_map is not a file name");
    files[tensor] = folder_of_file(path) + shard.get<std::string>();
  }
  return files;
}

std::set<std::string> files_of(const Index& index) {
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) files.insert(file);
  return files;
}

class SetCheck {
 public:
  SetCheck(const ModelFilePlaces& files, const StoredFiles& stored, std::vector<std::string>& faults,
           std::vector<std::string>& warnings)
      : files_(files), stored_(stored), faults_(faults), warnings_(warnings) {}

  void run() {
    for (const auto& [path, file] : files_)
      if (path.ends_with(kIndexSuffix)) check_index(path, file);
    check_parts();
  }

 private:
  bool has(const std::string& path) const { return files_.contains(path); }
  void fault(std::string text) { faults_.push_back(std::move(text)); }
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

  void check_index(const std::string& path, const fs::path& file) {
    if (file.empty()) return;
    Index index;
    try {
      index = read_index(path, file);
    } catch (const safetensors::FormatError& error) {
      return fault(error.what());
    }
    const std::set<std::string> listed = listed_[path] = files_of(index);
    const std::string single = path.substr(0, path.size() - kIndexSuffix.size()) + std::string(kSuffix);
    std::vector<std::string> missing;
    for (const std::string& name : listed)
      if (!has(name)) missing.push_back(SafePath::printable(name));
    if (has(single) && listed != std::set<std::string>{single}) return warn_of_two(path, single, listed, missing);
    if (!missing.empty()) fault(fmt::format("{} names files that are not there: {}", path, some_of(missing)));
    check_places(path, index, listed);
    check_twins(path, listed);
  }

  // The file counts for transformers, the index for vLLM.
  void warn_of_two(const std::string& index, const std::string& single, const std::set<std::string>& listed,
                   const std::vector<std::string>& missing) {
    if (missing.size() == listed.size())
      return warn(
          fmt::format("{} names files that are not there, such as {}: transformers takes {}, and vLLM finds no "
                      "weights; leave the index out with exclude",
                      index, missing.front(), single));
    warn(
        fmt::format("two sets of weights: transformers takes {}, vLLM the {} files that {} names; leave one set out "
                    "with exclude",
                    single, listed.size(), index));
  }

  // A tensor that is in another of the index's files is found by transformers and vLLM, which read all of them.
  void check_places(const std::string& path, const Index& index, const std::set<std::string>& listed) {
    std::map<std::string, std::vector<std::string>> absent, moved;  // by the file that the index says
    for (const auto& [tensor, file] : index) {
      const auto found = stored_.find(file);
      if (found == stored_.end() || found->second.tensors.contains(tensor)) continue;
      const bool elsewhere = std::any_of(listed.begin(), listed.end(), [&](const std::string& other) {
        const auto at = stored_.find(other);
        return at != stored_.end() && at->second.tensors.contains(tensor);
      });
      (elsewhere ? moved : absent)[file].push_back(SafePath::printable(tensor));
    }
    for (const auto& [file, names] : absent)
      fault(fmt::format("{} lists tensors in {} that are not there: {}", path, file, some_of(names)));
    for (const auto& [file, names] : moved)
      warn(
          fmt::format("{} lists tensors in {} that are in another of its files: {}; transformers finds them, "
                      "loaders that go by the index do not",
                      path, file, some_of(names)));
  }

  void check_twins(const std::string& path, const std::set<std::string>& listed) {
    std::map<std::string, std::string> seen;
    for (const std::string& file : listed)
      if (const auto found = stored_.find(file); found != stored_.end())
        for (const auto& [tensor, entry] : found->second.tensors)
          if (const auto [twin, fresh] = seen.emplace(tensor, file); !fresh)
            fault(fmt::format("{}: the tensor {} is in {} and in {}", path, SafePath::printable(tensor), twin->second,
                              file));
  }

  // By name: every part of a sharded file, and the index that loaders read.
  void check_parts() {
    std::map<std::pair<std::string, unsigned>, std::set<unsigned>> sets;  // folder and stem, count -> numbers
    std::map<std::pair<std::string, unsigned>, std::string> first;
    for (const auto& [path, file] : files_) {
      const std::string folder = folder_of_file(path);
      const std::optional<ShardName> shard = shard_name(path.substr(folder.size()));
      if (!shard || shard->suffix != kSuffix) continue;
      const std::pair<std::string, unsigned> set = {folder + shard->stem, shard->count};
      sets[set].insert(shard->number);
      listed_parts_[set] = listed_parts_[set] || is_listed(folder + shard->stem, path);
    }
    for (const auto& [set, have] : sets) check_parts_of(set.first, set.second, have);
  }

  bool is_listed(const std::string& stem, const std::string& path) const {
    const auto index = listed_.find(stem + std::string(kIndexSuffix));
    return index != listed_.end() && index->second.contains(path);
  }

  void check_parts_of(const std::string& stem, unsigned count, const std::set<unsigned>& have) {
    const std::string index = stem + std::string(kIndexSuffix), single = stem + std::string(kSuffix);
    const std::string parts = fmt::format("{}-*-of-{:05}.safetensors", stem, count);
    if (has(single) && !has(index))
      return warn(
          fmt::format("{} are beside {}: transformers takes the one file, vLLM reads all of them; leave one set "
                      "out with exclude",
                      parts, single));
    if (listed_.contains(index) && !listed_parts_.at({stem, count})) {
      if (!has(single)) warn(fmt::format("{}: {} names none of them, so nothing reads them", parts, index));
      return;
    }
    if (has(single)) return;  // told where the index was looked at
    std::vector<std::string> missing;
    for (unsigned i = 1; i <= count; ++i)
      if (!have.contains(i)) missing.push_back(std::to_string(i));
    if (!missing.empty()) fault(fmt::format("{}: parts are missing: {}", parts, some_of(missing)));
    if (!has(index)) fault(index + " is missing; without it loaders do not find the parts");
  }

  const ModelFilePlaces& files_;
  const StoredFiles& stored_;
  std::vector<std::string>&faults_, &warnings_;
  std::map<std::string, std::set<std::string>> listed_;  // index -> the files that it names
  std::map<std::pair<std::string, unsigned>, bool> listed_parts_;
};

}  // namespace

std::string some_of(const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t i = 0; i < texts.size() && i < 5; ++i) out += (i > 0 ? ", " : "") + texts[i];
  return texts.size() > 5 ? fmt::format("{} and {} more", out, texts.size() - 5) : out;
}

StoredFiles read_stored(const ModelFilePlaces& files, std::vector<std::string>& faults) {
  StoredFiles stored;
  for (const auto& [path, file] : files) {
    if (!path.ends_with(kSuffix) || file.empty()) continue;
    bundle::FileSource source(file);
    try {
      const safetensors::Header header = safetensors::read_header(
          source.size(),
          [&](std::uint64_t offset, char* data, std::size_t size) {
            source.read_exactly(offset, std::as_writable_bytes(std::span(data, size)));
          },
          path);
      StoredFile& entry = stored[path];
      entry.data_begin = header.data_begin;
      for (const safetensors::Tensor& tensor : header.tensors) entry.tensors.emplace(tensor.name, tensor);
    } catch (const safetensors::FormatError& error) {
      faults.push_back(error.what());
    }
  }
  return stored;
}

void check_sets(const ModelFilePlaces& files, const StoredFiles& stored, std::vector<std::string>& faults,
                std::vector<std::string>& warnings) {
  SetCheck(files, stored, faults, warnings).run();
}

std::vector<std::string> set_of_transformers(const ModelFilePlaces& files, const StoredFiles& stored) {
  std::vector<std::string> set;
  const std::string single = "model.safetensors", index = "model.safetensors.index.json";
  if (files.contains(single)) {
    set = {single};
  } else if (const auto found = files.find(index); found != files.end() && !found->second.empty()) {
    try {
      const std::set<std::string> listed = files_of(read_index(index, found->second));
      set.assign(listed.begin(), listed.end());
    } catch (const safetensors::FormatError&) {  // told by check_sets
    }
  }
  const auto unread = [&](const std::string& path) { return !stored.contains(path); };
  if (std::any_of(set.begin(), set.end(), unread)) set.clear();
  return set;
}

}  // namespace sealift::packager
