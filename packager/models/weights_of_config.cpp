// SPDX-License-Identifier: Apache-2.0
// See weights_of_config.hpp. The trainer says the same of the same folders (trainer/models/weight_files.cpp), held to
// transformers by tests/packager/models/weight_folders_test.py.
#include "packager/models/weights_of_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "packager/models/python_json.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/saved_wrapper.hpp"

namespace sealift::packager {

namespace {

using safetensors::Json;
using safetensors::Tensor;

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// A tensor and where its bytes are.
struct Place {
  const std::filesystem::path* file;
  std::uint64_t begin;
  const Tensor* tensor;
};

class ConfigCheck {
 public:
  ConfigCheck(const ModelFilePlaces& files, const StoredFiles& stored, Json config, std::vector<std::string>& faults,
              std::vector<std::string>& warnings)
      : config_(std::move(config)), faults_(config_.contains("auto_map") ? warnings : faults), warnings_(warnings) {
    for (const std::string& path : set_of_transformers(files, stored)) {
      const StoredFile& file = stored.at(path);
      for (const auto& [name, tensor] : file.tensors)
        places_[name] = {.file = &files.at(path), .begin = file.data_begin + tensor.begin, .tensor = &tensor};
    }
  }

  void run() {
    if (places_.empty() || is_wrapped()) return;
    check_rows();
    check_head();
  }

 private:
  const Place* find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
  }
  bool ties(bool value) const {
    const auto found = config_.find("tie_word_embeddings");
    return found != config_.end() && *found == value;
  }

  bool is_wrapped() {
    const std::optional<SavedWrapper> wrapper = saved_wrapper(places_);
    if (!wrapper) return false;
    const bool before_all = wrapper->name.empty();
    faults_.push_back(fmt::format(
        "{}, so a wrapper was saved and not the model, and loaders go on with random values; "
        "{}, or take it {} the names",
        before_all ? fmt::format("every tensor's name begins with {}", wrapper->part)
                   : fmt::format("{} has {} in it", bundle::SafePath::printable(wrapper->name), wrapper->part),
        wrapper->remedy, before_all ? "off" : "out of"));
    return true;
  }

  void check_rows() {
    const Place* embedding = find(kEmbedding);
    const std::uint64_t rows = embedding && !embedding->tensor->shape.empty() ? embedding->tensor->shape.front() : 0;
    check_rows(kEmbedding, "embedding",
               fmt::format("set vocab_size to {}, or resize the embedding and save the model again", rows));
    if (ties(false)) check_rows(kHead, "lm_head", "save the model again with a head of as many rows as its embedding");
  }

  void check_rows(const char* name, const char* what, const std::string& remedy) {
    const Place* table = find(name);
    const auto said = config_.find("vocab_size");
    if (!table || table->tensor->shape.empty() || said == config_.end() || !said->is_number_unsigned()) return;
    const std::uint64_t rows = table->tensor->shape.front(), expected = said->get<std::uint64_t>();
    if (rows == expected) return;
    faults_.push_back(fmt::format("the {} has {} rows, and config.json says vocab_size {}, so no loader takes it; {}",
                                  what, rows, expected, remedy));
  }

  void check_head() {
    const Place *embedding = find(kEmbedding), *head = find(kHead);
    if (embedding && head && ties(true) && !are_equal(*embedding, *head))
      warnings_.push_back(
          "config.json ties lm_head to the embedding, and another lm_head.weight is stored: transformers keeps "
          "it, vLLM takes the embedding; set tie_word_embeddings to false to have it everywhere");
    const auto names = config_.find("architectures");
    const bool generates = names != config_.end() && names->is_array() && !names->empty() &&
                           names->front().is_string() && names->front().get<std::string>().ends_with("ForCausalLM");
    if (generates && ties(false) && !head && (embedding || find("embed_tokens.weight")))
      warnings_.push_back(
          fmt::format("it has no lm_head.weight{}, and transformers goes on with a random one; save the model by "
                      "AutoModelForCausalLM",
                      embedding ? "" : ", since the model's body was saved alone"));
  }

  static bool are_equal(const Place& a, const Place& b) {
    if (a.tensor->dtype != b.tensor->dtype || a.tensor->shape != b.tensor->shape) return false;
    bundle::FileSource left(*a.file), right(*b.file);
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    for (std::uint64_t at = 0; at < a.tensor->bytes(); at += kPiece) {
      const std::uint64_t count = std::min(kPiece, a.tensor->bytes() - at);
      if (left.read(a.begin + at, count) != right.read(b.begin + at, count)) return false;
    }
    return true;
  }

  Json config_;
  std::vector<std::string>&faults_, &warnings_;
  std::map<std::string, Place> places_;
};

}  // namespace

void check_weights_of_config(const ModelFilePlaces& files, const StoredFiles& stored, std::vector<std::string>& faults,
                             std::vector<std::string>& warnings) {
  const auto found = files.find("config.json");
  if (found == files.end() || files.contains("adapter_config.json")) return;
  Json config = python_object(found->second);
  if (config.is_object()) ConfigCheck(files, stored, std::move(config), faults, warnings).run();
}

}  // namespace sealift::packager
