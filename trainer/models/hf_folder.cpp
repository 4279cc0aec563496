// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/hf_folder.hpp"

#include "trainer/models/beyond_config.hpp"
#include "trainer/models/mxfp4.hpp"
#include "trainer/models/stored_experts.hpp"
#include "trainer/models/weight_files.hpp"

#include <set>

namespace sealift::trainer {
namespace {

namespace fs = std::filesystem;
using safetensors::Json;

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{256} << 20;

/// What makes text of token numbers and back, and how the model is meant to be sampled.
constexpr std::array kTokenizerFiles{"added_tokens.json", "chat_template.jinja",     "chat_template.json",
                                     "merges.txt",        "special_tokens_map.json", "tokenizer.json",
                                     "tokenizer.model",   "tokenizer_config.json",   "vocab.json",
                                     "vocab.txt",         "generation_config.json",  "LICENSE",
                                     "tekken.json"};

/// Refuses the parameters that a folder of this config has, so that a file which lacks one is not filled by chance.
class Newcomers final : public train::Source {
 public:
  Newcomers(const DecoderConfig& config, train::Source* source) : source_(source) {
    const train::MetaDevice meta;
    const auto file_tensors = file_tensors_of(config);
    for (const auto& item : DecoderImpl(config).named_parameters()) {
      for (const auto& stored : file_tensors(item.key(), item.value().sizes())) of_folder_.insert(stored.name);
    }
    if (config.reward_head) of_folder_.erase("score.weight");
  }

  void check(const std::vector<train::WantedTensor>& wanted) override {
    for (const auto& tensor : wanted) {
      TORCH_CHECK(!tensor.required || !of_folder_.contains(tensor.name), "the folder has no ", tensor.name,
                  ", a parameter of the model that its config.json describes; take all its files from one place");
    }
    source_->check(wanted);
  }
  bool has(const std::string& name) const override { return source_->has(name); }
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    source_->read(name, sizes, begin, out);
  }

 private:
  std::set<std::string> of_folder_;
  train::Source* source_;
};

/// The files and what stands beside them, as one source.
class ModelFolder final : public train::Source {
 public:
  ModelFolder(const fs::path& folder, const DecoderConfig& config, train::Source* otherwise)
      : newcomers_(otherwise ? std::make_unique<Newcomers>(config, otherwise) : nullptr),
        files_(weights_of(folder),
               {.name = name_by(config, stored_shapes(folder).contains("model.embed_tokens.weight")),
                .otherwise = newcomers_.get()}),
        numbers_(files_, folder, config),
        parameters_(numbers_, file_tensors_of(config)) {}

  void check(const std::vector<train::WantedTensor>& wanted) override { parameters_.check(wanted); }
  bool has(const std::string& name) const override { return parameters_.has(name); }
  void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override {
    parameters_.read(name, sizes, begin, std::move(out));
  }

 private:
  /// Empty for what transformers leaves out: tables that old files store, and a head that the model does not have.
  static std::string name_in(const DecoderConfig& config, bool has_embedding, const std::string& stored) {
    if (stored.ends_with(".rotary_emb.inv_freq") || is_beyond(stored, config)) return {};
    if (stored == "lm_head.weight" && config.tied_head && !has_embedding) return "model.embed_tokens.weight";
    if (stored == "lm_head.weight" && (config.tied_head || config.reward_head)) return {};
    return stored;
  }
  static std::function<std::string(const std::string&)> name_by(const DecoderConfig& config, bool has_embedding) {
    return [config, has_embedding](const std::string& stored) { return name_in(config, has_embedding, stored); };
  }

  std::unique_ptr<Newcomers> newcomers_;
  train::SafetensorsSource files_;
  Mxfp4Source numbers_;
  FileTensorsSource parameters_;  ///< experts, which are stored one by one
};

void write_text(const fs::path& path, const std::string& text) {
  train::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

/// The base's config.json with what changed: dtype, and the architecture of a model that got a reward head.
std::string changed_config(const fs::path& base, const DecoderConfig& config, const SaveFolderOptions& options) {
  const auto path = base / "config.json";
  auto json = safetensors::parse_json(train::read_text(path, kMaxTextBytes), 16, path.string());
  if (options.dtype) {
    const auto name = *options.dtype == at::kBFloat16 ? "bfloat16"
                      : *options.dtype == at::kHalf   ? "float16"
                                                      : "float32";
    if (json.contains("torch_dtype")) json["torch_dtype"] = name;  // what programs before transformers 5 read
    json["dtype"] = name;
  }
  const auto* family = find_family(config.family);
  const bool says_tied = json.contains("tie_word_embeddings") || (family && family->tied_head);
  if (says_tied && !config.tied_head) json["tie_word_embeddings"] = false;
  json.erase("auto_map");             // names files of the base's folder, which this one does not have
  json.erase("quantization_config");  // what is saved are numbers
  if (config.reward_head && !parse_decoder_config(json.dump(), path.string()).reward_head) {
    std::string name = json.contains("architectures") && !json["architectures"].empty()
                           ? json["architectures"][0].get<std::string>()
                           : std::string();
    const auto end = name.rfind("ForCausalLM");
    TORCH_CHECK(end != std::string::npos, path.string(), ": architectures names no …ForCausalLM, so the name of its ",
                "reward model is not known; add it");
    json["architectures"] = {family && family->reward_class ? std::string(family->reward_class)
                                                            : name.substr(0, end) + "ForSequenceClassification"};
    json["id2label"] = {{"0", "LABEL_0"}};
    json["label2id"] = {{"LABEL_0", 0}};
    json.erase("num_labels");
  }
  return json.dump(2) + "\n";
}

/// Adds `token` to the end tokens of the folder's generation_config.json, which is made where there is none.
void add_end_token(const fs::path& folder, std::int64_t token, const DecoderConfig& config) {
  const auto path = folder / "generation_config.json";
  auto json = fs::exists(path) ? safetensors::parse_json(train::read_text(path, kMaxTextBytes), 16, path.string())
                               : Json::object();
  auto ends = json.contains("eos_token_id") ? json["eos_token_id"] : Json(config.end_tokens);
  if (!ends.is_array()) ends = ends.is_null() ? Json::array() : Json::array({ends});
  if (std::find(ends.begin(), ends.end(), Json(token)) != ends.end()) return;
  ends.push_back(token);
  json["eos_token_id"] = ends.size() == 1 ? ends[0] : ends;
  write_text(path, json.dump(2) + "\n");
}

/// The folder under construction: whatever a save that was cut short has left of it goes.
fs::path begin_folder(const fs::path& folder) {
  TORCH_CHECK(!fs::exists(folder), folder.string(), " exists; choose another folder");
  auto partial = folder;
  partial += ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  return partial;
}

}  // namespace

std::unique_ptr<train::Source> model_folder_source(const fs::path& folder, const DecoderConfig& config,
                                                   train::Source* otherwise) {
  check_weights(folder, config);
  return std::make_unique<ModelFolder>(folder, config, otherwise);
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const auto* name : kTokenizerFiles) {
    if (fs::exists(from / name)) write_text(to / name, train::read_text(from / name, kMaxTextBytes));
  }
  const auto* templates = "additional_chat_templates";
  if (!fs::is_directory(from / templates)) return;
  fs::create_directories(to / templates);
  for (const auto& file : fs::directory_iterator(from / templates)) {
    if (file.path().extension() != ".jinja" || !file.is_regular_file()) continue;
    write_text(to / templates / file.path().filename(), train::read_text(file.path(), kMaxTextBytes));
  }
}

void save_model_folder(const fs::path& folder, const fs::path& base, const DecoderImpl& model,
                       train::Parallel& parallel, const SaveFolderOptions& options) {
  auto& world = parallel.groups().world;
  const auto on_rank_0 = [&](const auto& work) {
    train::detail::all_saved(world, "saving " + folder.string(), [&]() -> std::string {
      if (world.rank() == 0) work();
      return "";
    });
  };
  auto partial = folder;
  partial += ".partial";
  TORCH_CHECK(options.max_file_bytes > 0, "max_file_bytes is 0; expected bytes of a file, such as 5000000000");
  on_rank_0([&] { begin_folder(folder); });
  auto exported = options.changes;
  exported.max_file_bytes = options.max_file_bytes;
  exported.dtype = options.dtype;
  exported.file_tensors = file_tensors_of(model.config());
  exported.keeps_dtype = [](const std::string& name) { return name.ends_with(".e_score_correction_bias"); };
  train::export_safetensors(partial, model, parallel, exported);
  on_rank_0([&] {
    copy_tokenizer(base, partial);
    if (options.end_token) add_end_token(partial, *options.end_token, model.config());
    write_text(partial / "config.json", changed_config(base, model.config(), options));
    fs::rename(partial, folder);
    train::sync_folder(folder.has_parent_path() ? folder.parent_path() : ".");
  });
}

}  // namespace sealift::trainer
