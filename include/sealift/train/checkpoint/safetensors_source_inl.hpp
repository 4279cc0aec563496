// SPDX-License-Identifier: Apache-2.0
// The bodies of safetensors_source.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/checkpoint_index_inl.hpp>  // IndexReader
#include <sealift/train/checkpoint/safetensors_source.hpp>
#include <sealift/train/comm/device.hpp>

namespace sealift::train {

namespace detail {

/// The files of a plain model: `path` itself, or the files in a folder's index.
SEALIFT_BODY std::vector<std::filesystem::path> plain_files(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  const auto index = path / kSetIndex;
  if (!std::filesystem::exists(index)) return {path / "model.safetensors"};
  const auto json = safetensors::parse_json(read_text(index, std::uint64_t{256} << 20), 8, index.string());
  const auto map = IndexReader(json, index.string()).object("weight_map");
  std::set<std::string> names;
  for (const auto& [tensor, value] : map.json().items()) names.insert(IndexReader::text(value, map.where()));
  std::vector<std::filesystem::path> files;
  for (const auto& name : names) {
    TORCH_CHECK(!name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
                    name != "." && name != "..",
                index.string(), " names the file '", name.substr(0, 80), "', which is not in its folder");
    files.push_back(path / name);
  }
  return files;
}

}  // namespace detail

SEALIFT_BODY SafetensorsSource::SafetensorsSource(const std::filesystem::path& path, SafetensorsOptions options)
    : path_(path.string()), options_(std::move(options)) {
  for (const auto& file_path : detail::plain_files(path)) {
    const auto file = pieces_.open(file_path);
    for (const auto& entry : pieces_.header(file).tensors) {
      const auto name = options_.name ? options_.name(entry.name) : entry.name;
      if (name.empty()) continue;
      Stored stored{{.dtype = entry.dtype}, file};
      for (const auto size : entry.shape) stored.tensor.shape.push_back(static_cast<std::int64_t>(size));
      const auto [other, is_new] = stored_.emplace(name, std::move(stored));
      TORCH_CHECK(is_new, pieces_.path(file), " has ", name, " (as ", entry.name, "), which ",
                  other->second.file == file ? "it has twice" : "another file has too",
                  "; take the files from one export");
      pieces_.add(name, file, entry, 0);
    }
  }
}

SEALIFT_BODY void SafetensorsSource::check(const std::vector<WantedTensor>& wanted) {
  std::vector<std::string> missing, extra, different;
  std::vector<WantedTensor> others;
  std::set<std::string> known;
  keys_.clear();
  for (const auto& tensor : wanted) {
    auto names = tensor.aliases;
    names.insert(names.begin(), tensor.name);
    known.insert(names.begin(), names.end());
    const auto name =
        std::find_if(names.begin(), names.end(), [&](const auto& each) { return stored_.contains(each); });
    others.push_back(tensor);
    if (name == names.end()) {
      if (tensor.required) missing.push_back(tensor.name);
      continue;
    }
    others.back().required = false;  // `otherwise` may have it too: a base whose head an adapter replaces
    const auto& stored = stored_.at(*name);
    if (!fits(stored.tensor, tensor)) different.push_back(difference(tensor, stored));
    keys_[tensor.name] = *name;
  }
  for (const auto& [name, tensor] : stored_) {
    if (!known.contains(name)) extra.push_back(name);
  }
  if (options_.otherwise) missing.clear();
  TORCH_CHECK(missing.empty() && extra.empty() && different.empty(), path_, " is of another model.",
              missing.empty() ? "" : " Not stored: " + detail::listed(missing) + ".",
              extra.empty() ? "" : " Not in the model: " + detail::listed(extra) + ".",
              different.empty() ? "" : " Different: " + detail::listed(different) + ".",
              " Nothing was loaded; build the model that was saved, or map its names");
  if (options_.otherwise) options_.otherwise->check(others);
}

SEALIFT_BODY bool SafetensorsSource::has(const std::string& name) const {
  return keys_.contains(name) || (options_.otherwise && options_.otherwise->has(name));
}

SEALIFT_BODY void SafetensorsSource::read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin,
                                          at::Tensor out) {
  const auto key = keys_.find(name);
  if (key == keys_.end() && options_.otherwise) return options_.otherwise->read(name, sizes, begin, out);
  TORCH_CHECK(key != keys_.end(), path_, " has no ", name, " that was asked for in check()");
  const auto dtype = pieces_.tensors().at(key->second).dtype;
  if (out.is_cpu() && out.scalar_type() == dtype) {
    pieces_.request_into(out, key->second, begin);
    return pieces_.read();
  }
  at::NoGradGuard no_grad;
  const auto most = kPieceBytes / static_cast<std::int64_t>(at::elementSize(dtype));
  const auto buffer =
      torch::empty({std::min(most, out.numel())}, torch::dtype(dtype).pinned_memory(is_accelerator(out.device())));
  for (std::int64_t first = 0; first < out.numel(); first += most) {
    const auto piece = buffer.narrow(0, 0, std::min(most, out.numel() - first));
    pieces_.request_into(piece, key->second, begin + first);
    pieces_.read();
    out.narrow(0, first, piece.numel()).copy_(piece);
  }
}

SEALIFT_BODY bool SafetensorsSource::fits(const StoredTensor& stored, const WantedTensor& wanted) {
  const auto dtype = scalar_type(stored.dtype, wanted.name);
  const bool converts = at::isFloatingType(dtype) && at::isFloatingType(wanted.dtype);
  return stored.shape == wanted.sizes && (dtype == wanted.dtype || converts);
}

SEALIFT_BODY std::string SafetensorsSource::difference(const WantedTensor& wanted, const Stored& stored) const {
  return c10::str(wanted.name, " (stored ", stored.tensor.dtype, " ", at::IntArrayRef(stored.tensor.shape), " in ",
                  std::filesystem::path(pieces_.path(stored.file)).filename().string(), ", the model has ",
                  dtype_name(wanted.dtype), " ", at::IntArrayRef(wanted.sizes), ")");
}

}  // namespace sealift::train
