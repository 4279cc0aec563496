// SPDX-License-Identifier: Apache-2.0
// The bodies of checkpoint_index.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/safetensors.hpp>
#include <sealift/train/checkpoint/checkpoint_index.hpp>

#include <charconv>

namespace sealift::train {

SEALIFT_BODY std::string rank_file(std::int64_t rank) {
  const auto digits = std::to_string(rank);
  return "rank-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + ".safetensors";
}

SEALIFT_BODY std::string file_name(const CheckpointIndex& index, std::size_t number) {
  const auto rank = static_cast<std::int64_t>(number);
  return rank < index.mesh.world_size() ? rank_file(rank) : kBuffersFile;
}

SEALIFT_BODY std::string step_folder(std::int64_t step) {
  const auto digits = std::to_string(step);
  return "step-" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

SEALIFT_BODY std::string write_index(const CheckpointIndex& index) {
  using safetensors::Json;
  Json json = {{"format", "sealift.checkpoint"},
               {"version", 1},
               {"mesh", {{"replicate", index.mesh.replicate}, {"shard", index.mesh.shard}}},
               {"step", index.state.step},
               {"sampler_position", index.state.sampler_position},
               {"seed", index.state.seed},
               {"notes", index.state.notes},
               {"parameters", Json::object()},
               {"buffers", Json::object()},
               {"optimizer", {{"kind", index.optimizer}, {"groups", Json::array()}}},
               {"files", Json::array()}};
  if (!index.frozen) json["frozen"] = false;
  for (const auto& [name, tensor] : index.parameters) {
    json["parameters"][name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
  }
  for (const auto& [name, tensor] : index.buffers) {
    json["buffers"][name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
  }
  for (const auto& group : index.groups) {
    json["optimizer"]["groups"].push_back(
        {{"hyperparameters", group.hyperparameters}, {"parameters", group.parameters}});
  }
  for (std::size_t i = 0; i < index.files.size(); ++i) {
    json["files"].push_back(
        {{"name", file_name(index, i)}, {"bytes", index.files[i].bytes}, {"sha256", index.files[i].sha256}});
  }
  return json.dump(1) + "\n";
}

namespace detail {

/// Reads one JSON object field by field; every message names the place.
class IndexReader {
 public:
  IndexReader(const safetensors::Json& json, std::string where) : json_(json), where_(std::move(where)) {
    TORCH_CHECK(json_.is_object(), where_, " is no JSON object; the checkpoint is damaged");
  }

  const safetensors::Json& at(const std::string& key) const {
    const auto found = json_.find(key);
    TORCH_CHECK(found != json_.end(), where_, " has no ", key, "; the checkpoint is damaged");
    return *found;
  }
  IndexReader object(const std::string& key) const { return {at(key), where_ + "." + key}; }
  const safetensors::Json& array(const std::string& key) const {
    TORCH_CHECK(at(key).is_array(), where_, ".", key, " is no list; the checkpoint is damaged");
    return at(key);
  }
  std::string text(const std::string& key) const { return text(at(key), where_ + "." + key); }
  static std::string text(const safetensors::Json& value, const std::string& where) {
    TORCH_CHECK(value.is_string(), where, " is no text; the checkpoint is damaged");
    return value.get<std::string>();
  }
  std::int64_t count(const std::string& key) const { return count(at(key), where_ + "." + key); }
  static std::int64_t count(const safetensors::Json& value, const std::string& where) {
    TORCH_CHECK(value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{1} << 62, where, " is ",
                value.dump().substr(0, 40), "; expected a whole number from 0 to 2^62");
    return value.get<std::int64_t>();
  }
  const safetensors::Json& json() const { return json_; }
  const std::string& where() const { return where_; }

 private:
  const safetensors::Json& json_;
  std::string where_;
};

SEALIFT_BODY std::map<std::string, StoredTensor> read_tensors(const IndexReader& object) {
  std::map<std::string, StoredTensor> result;
  for (const auto& [name, value] : object.json().items()) {
    const IndexReader entry(value, object.where() + "." + name);
    StoredTensor tensor{.dtype = entry.text("dtype")};
    std::vector<std::uint64_t> sizes;
    for (const auto& size : entry.array("shape")) {
      tensor.shape.push_back(IndexReader::count(size, entry.where() + ".shape"));
      sizes.push_back(static_cast<std::uint64_t>(tensor.shape.back()));
    }
    const auto bytes = safetensors::bytes_of(tensor.dtype, sizes, entry.where());  // refuses what does not fit 64 bits
    tensor.numel = static_cast<std::int64_t>(bytes / at::elementSize(scalar_type(tensor.dtype, entry.where())));
    result.emplace(name, std::move(tensor));
  }
  return result;
}

}  // namespace detail

SEALIFT_BODY CheckpointIndex read_index(const std::filesystem::path& folder) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
  constexpr std::int64_t kMaxRanks = 1'000'000;
  const auto path = folder / kIndexFile;
  TORCH_CHECK(std::filesystem::exists(path), folder.string(),
              " has no index.json, so it is no whole checkpoint; latest_checkpoint() finds the last one that is");
  const auto json = safetensors::parse_json(read_text(path, kMaxBytes), 8, path.string());
  const detail::IndexReader root(json, path.string());
  TORCH_CHECK(root.text("format") == "sealift.checkpoint" && root.count("version") == 1, path.string(),
              ": expected format sealift.checkpoint, version 1; got ", root.text("format"), ", ", root.count("version"),
              "; load it with the version that wrote it");
  CheckpointIndex index;
  const auto replicate = root.object("mesh").count("replicate"), shard = root.object("mesh").count("shard");
  TORCH_CHECK(replicate >= 1 && replicate <= kMaxRanks && shard >= 1 && shard <= kMaxRanks, path.string(), ": mesh is ",
              replicate, "x", shard, "; expected at least 1x1");
  index.mesh = {replicate, shard};
  index.state.step = root.count("step");
  index.state.sampler_position = root.count("sampler_position");
  TORCH_CHECK(root.at("seed").is_number_unsigned(), path.string(), ": seed is no whole number");
  index.state.seed = root.at("seed").get<std::uint64_t>();
  for (const auto& [key, value] : root.object("notes").json().items()) {
    index.state.notes[key] = detail::IndexReader::text(value, path.string() + ".notes." + key);
  }
  if (root.json().contains("frozen")) {
    TORCH_CHECK(root.at("frozen").is_boolean(), path.string(), ".frozen is neither true nor false");
    index.frozen = root.at("frozen").get<bool>();
  }
  index.parameters = detail::read_tensors(root.object("parameters"));
  index.buffers = detail::read_tensors(root.object("buffers"));
  const auto optimizer = root.object("optimizer");
  index.optimizer = optimizer.text("kind");
  for (const auto& value : optimizer.array("groups")) {
    const detail::IndexReader entry(value, optimizer.where() + ".groups");
    StoredGroup group;
    for (const auto& [key, number] : entry.object("hyperparameters").json().items()) {
      TORCH_CHECK(number.is_number(), entry.where(), ".", key, " is no number; the checkpoint is damaged");
      group.hyperparameters[key] = number.get<double>();
    }
    for (const auto& name : entry.array("parameters")) {
      group.parameters.push_back(detail::IndexReader::text(name, entry.where()));
    }
    index.groups.push_back(std::move(group));
  }
  const auto expected = index.mesh.world_size() + (index.buffers.empty() ? 0 : 1);
  const auto& files = root.array("files");
  TORCH_CHECK(static_cast<std::int64_t>(files.size()) == expected, path.string(), " lists ", files.size(),
              " files; expected ", expected, ", one per rank and one for buffers");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const detail::IndexReader entry(files[i], path.string() + ".files");
    TORCH_CHECK(entry.text("name") == file_name(index, i), path.string(), ": file ", i, " is called ",
                entry.text("name"), "; expected ", file_name(index, i));
    FileDigest file{static_cast<std::uint64_t>(entry.count("bytes")), entry.text("sha256")};
    TORCH_CHECK(file.sha256.size() == Sha256::kHexDigits &&
                    file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos,
                path.string(), ": the digest of ", file_name(index, i), " is ", file.sha256.substr(0, 80),
                "; expected 64 hexadecimal digits");
    index.files.push_back(std::move(file));
  }
  return index;
}

SEALIFT_BODY std::map<std::int64_t, std::filesystem::path> list_steps(const std::filesystem::path& folder) {
  std::map<std::int64_t, std::filesystem::path> steps;
  if (!std::filesystem::is_directory(folder)) return steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("step-")) continue;
    std::int64_t step = 0;
    const auto* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 5, end, step);
    if (error == std::errc{} && stop == end && name == step_folder(step)) steps.emplace(step, entry.path());
  }
  return steps;
}

SEALIFT_BODY bool is_whole(const std::filesystem::path& step_folder) {
  return std::filesystem::exists(step_folder / kIndexFile);
}

SEALIFT_BODY std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder) {
  const auto steps = list_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (is_whole(step->second)) return step->second;
  }
  return std::nullopt;
}

}  // namespace sealift::train
