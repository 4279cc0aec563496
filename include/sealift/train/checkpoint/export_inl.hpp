// SPDX-License-Identifier: Apache-2.0
// The bodies of export.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/export.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY std::vector<ExportFile> plan_export(const std::filesystem::path& path,
                                                 const std::vector<std::pair<std::string, ExportTensor>>& tensors,
                                                 const ExportOptions& options) {
  std::vector<ExportFile> files(1);
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    const bool convert = options.dtype && !tensor.keeps_dtype && at::isFloatingType(tensor.dtype);
    auto entry = describe(name, convert ? *options.dtype : tensor.dtype, tensor.shape);
    const auto size = safetensors::bytes_of(entry.dtype, entry.shape, name);
    if (options.max_file_bytes > 0 && bytes > 0 && bytes + size > options.max_file_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += size;
    files.back().header.tensors.push_back(std::move(entry));
  }
  const auto number = [](std::size_t value) {
    const auto digits = std::to_string(value);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].header.metadata["format"] = "pt";  // what Hugging Face's readers look for
    files[i].path = options.max_file_bytes == 0
                        ? path
                        : path / ("model-" + number(i + 1) + "-of-" + number(files.size()) + ".safetensors");
  }
  return files;
}

SEALIFT_BODY void write_set_index(const std::filesystem::path& folder, const std::vector<ExportFile>& files) {
  std::uint64_t total = 0;
  safetensors::Json map = safetensors::Json::object();
  for (const auto& file : files) {
    total += file.header.data_bytes();
    for (const auto& tensor : file.header.tensors) map[tensor.name] = file.path.filename().string();
  }
  const auto text = safetensors::Json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2) + "\n";
  OutputFile file(folder / kSetIndex);
  file.write(text.data(), text.size());
  file.commit();
}

/// Reads every tensor slab by slab and, if `writes`, writes it. An error of writing is returned, not thrown: reading
/// may need all ranks, so a rank whose disk is full goes on with them to the end.
SEALIFT_BODY std::exception_ptr write_export(const std::filesystem::path& path,
                                             const std::vector<std::pair<std::string, ExportTensor>>& tensors,
                                             const ExportOptions& options, bool writes) {
  std::exception_ptr error;
  const auto try_to = [&](auto work) {
    if (!writes || error) return;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  };
  const bool is_set = options.max_file_bytes > 0;
  const std::map<std::string, ExportTensor> by_name(tensors.begin(), tensors.end());
  auto files = plan_export(path, tensors, options);
  try_to([&] {
    if (is_set) std::filesystem::create_directories(path);
    TORCH_CHECK(!is_set || !std::filesystem::exists(path / kSetIndex), path.string(),
                " has an export already, whose files would be mixed with these; choose another folder");
  });
  for (auto& [file_path, header] : files) {
    const auto text = safetensors::write_header(header);
    std::optional<OutputFile> file;
    try_to([&, &file_path = file_path] {
      file.emplace(file_path);
      file->write(text.data(), text.size());
    });
    for (const auto& entry : header.tensors) {
      const auto& tensor = by_name.at(entry.name);
      const auto type = scalar_type(entry.dtype, entry.name);
      const auto numel = static_cast<std::int64_t>(entry.bytes() / at::elementSize(type));
      const auto width = static_cast<std::int64_t>(at::elementSize(tensor.dtype));
      const auto step = std::max<std::int64_t>(1, options.slab_bytes / width);
      for (std::int64_t first = 0; first < numel; first += step) {
        const auto slab = tensor.slab(first, std::min(step, numel - first));
        try_to([&] {
          const auto data = slab.to(type).contiguous();
          file->write(data.const_data_ptr(), data.nbytes());
        });
      }
    }
    try_to([&] { file->commit(); });
  }
  try_to([&] {
    if (is_set) write_set_index(path, files);
  });
  return error;
}

SEALIFT_BODY at::Tensor gather_slab(const ShardedParameter& parameter, Collectives& group, std::int64_t first,
                                    std::int64_t numel) {
  at::NoGradGuard no_grad;
  auto slab = torch::zeros({numel}, parameter.shard.options().requires_grad(false));
  const auto begin = std::max(first, parameter.offset);
  const auto end = std::min(first + numel, parameter.offset + parameter.shard.numel());
  if (begin < end) {
    slab.narrow(0, begin - first, end - begin)
        .copy_(parameter.shard.detach().reshape({-1}).narrow(0, begin - parameter.offset, end - begin));
  }
  if (!parameter.replicated) group.all_reduce(slab.view(at::kByte)).wait();
  return slab.to(at::kCPU);
}

}  // namespace detail

SEALIFT_BODY void export_safetensors(const std::filesystem::path& path, const torch::nn::Module& model,
                                     Parallel& parallel, const ExportOptions& options) {
  auto& groups = parallel.groups();
  const bool writes = groups.world.rank() == 0;
  std::vector<std::pair<std::string, detail::ExportTensor>> tensors;
  const auto add = [&](const std::string& name, detail::ExportTensor tensor) {
    const auto written = options.name ? options.name(name) : name;
    if (written.empty()) return false;
    tensor.keeps_dtype = options.keeps_dtype && options.keeps_dtype(name);
    if (options.change && writes) {
      tensor.slab = [&options, name, slab = std::move(tensor.slab)](std::int64_t first, std::int64_t numel) {
        return options.change(name, first, slab(first, numel));
      };
    }
    const auto second = options.second_names.find(written);
    if (second != options.second_names.end()) tensors.emplace_back(second->second, tensor);
    tensors.emplace_back(written, std::move(tensor));
    return true;
  };
  for (const auto& parameter : parallel.parameters()) {
    std::int64_t begin = 0;  // of the tensor, in the parameter
    const auto written = options.file_tensors ? options.file_tensors(parameter.name, parameter.sizes)
                                              : std::vector<NamedShape>{{parameter.name, parameter.sizes}};
    for (const auto& [name, sizes] : written) {
      const auto elements = [&, begin](std::int64_t first, std::int64_t numel) {
        if (!parameter.stored) return detail::gather_slab(parameter, parallel.holders(), begin + first, numel);
        auto slab = torch::empty({numel}, parameter.shard.options().device(at::kCPU));
        if (writes) options.stored->read(parameter.name, parameter.sizes, begin + first, slab);
        return slab;
      };
      const bool added = add(name, {parameter.shard.scalar_type(), sizes, elements});
      TORCH_CHECK(!added || !parameter.stored || options.stored, "parameter '", parameter.name,
                  "' is kept encoded, so its elements are not there to export; give ExportOptions::stored the source, ",
                  "or leave it out by ExportOptions::name");
      begin += c10::multiply_integers(sizes);
    }
  }
  for (const auto& item : model.named_buffers()) {
    const auto buffer = item.value();
    add(item.key(), {buffer.scalar_type(), buffer.sizes().vec(), [buffer](std::int64_t first, std::int64_t numel) {
                       return buffer.detach().reshape({-1}).narrow(0, first, numel).to(at::kCPU);
                     }});
  }
  const auto error = detail::write_export(path, tensors, options, writes);
  detail::all_saved(groups.world, "exporting to " + path.string(), [&]() -> std::string {
    if (error) std::rethrow_exception(error);
    return "";
  });
}

SEALIFT_BODY void export_checkpoint(const std::filesystem::path& checkpoint, const std::filesystem::path& path,
                                    const ExportOptions& options) {
  auto files = detail::open_checkpoint(checkpoint);
  TORCH_CHECK(files.index.frozen, checkpoint.string(),
              " was saved without frozen parameters, so it is no whole model; ",
              "load it after parallelize() with the source of the others, and use export_safetensors()");
  auto& pieces = files.pieces;
  pieces.check_digests();
  std::vector<std::pair<std::string, detail::ExportTensor>> tensors;
  const auto add = [&](const std::string& prefix, const std::map<std::string, StoredTensor>& stored) {
    for (const auto& [name, tensor] : stored) {
      tensors.push_back({name,
                         {scalar_type(tensor.dtype, name), tensor.shape,
                          [&pieces, key = prefix + name](std::int64_t first, std::int64_t numel) {
                            auto slab = pieces.request(key, first, numel);
                            pieces.read();
                            return slab;
                          }}});
    }
  };
  add("model/", files.index.parameters);
  add("buffer/", files.index.buffers);
  if (const auto error = detail::write_export(path, tensors, options, true)) std::rethrow_exception(error);
}

SEALIFT_BODY void load_safetensors(const std::filesystem::path& path, torch::nn::Module& model, Parallel& parallel) {
  std::vector<detail::Assignment> assignments;
  detail::all_or_none(parallel.groups().world, "loading " + path.string(), [&]() -> std::string {
    SafetensorsSource source(path);
    std::map<std::string, ShardedParameter> held;
    for (const auto& parameter : parallel.parameters()) held[parameter.name] = parameter;
    const auto buffers = model.named_buffers();
    auto wanted = detail::wanted_tensors(model);
    for (auto& tensor : wanted) {  // parameters that the policy ignores are not required
      if (const auto parameter = held.find(tensor.name); parameter != held.end()) {
        tensor.dtype = parameter->second.shard.scalar_type();
        tensor.sizes = parameter->second.sizes;  // a split one is a part in the model
      }
      tensor.required = held.contains(tensor.name) || buffers.contains(tensor.name);
    }
    source.check(wanted);
    for (const auto& tensor : wanted) {
      if (!tensor.required) continue;
      const auto parameter = held.find(tensor.name);
      const bool is_buffer = parameter == held.end();
      TORCH_CHECK(is_buffer || !parameter->second.stored, "parameter '", tensor.name, "' is kept encoded; give ",
                  "parallelize() a SafetensorsSource instead");
      const auto target = is_buffer ? buffers[tensor.name] : parameter->second.shard;
      assignments.push_back({target, torch::empty({target.numel()}, tensor.dtype)});
      source.read(tensor.name, tensor.sizes, is_buffer ? 0 : parameter->second.offset, assignments.back().value);
    }
    return "";
  });
  detail::assign(assignments);
}

}  // namespace sealift::train
