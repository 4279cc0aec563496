// SPDX-License-Identifier: Apache-2.0
// Which safetensors files of a model are one set of weights: a file, or the parts that an index names. Two sets in one
// folder, and files of no set, are told, since transformers and vLLM then load different models. `model_check` asks.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sealift/safetensors.hpp"

namespace sealift::packager {

// Path in the model -> its place on this machine, empty when it is not here yet.
using ModelFilePlaces = std::map<std::string, std::filesystem::path>;

// What a safetensors file's header says.
struct StoredFile {
  std::uint64_t data_begin = 0;
  std::map<std::string, safetensors::Tensor> tensors;
};
using StoredFiles = std::map<std::string, StoredFile>;

// Of the files that are here and can be read; the others are faults.
StoredFiles read_stored(const ModelFilePlaces& files, std::vector<std::string>& faults);

// Every part of a sharded file, every file and tensor of an index; what transformers never looks at is a warning.
void check_sets(const ModelFilePlaces& files, const StoredFiles& stored, std::vector<std::string>& faults,
                std::vector<std::string>& warnings);

// The files in the model's own folder that transformers takes: model.safetensors, else those of the index. None where
// one is not here yet or cannot be read.
std::vector<std::string> set_of_transformers(const ModelFilePlaces& files, const StoredFiles& stored);

// "a, b, c and 7 more"
std::string some_of(const std::vector<std::string>& texts);

}  // namespace sealift::packager
