// SPDX-License-Identifier: Apache-2.0
// A model's files -> faults and warnings; see model_check.hpp. [[data]] promises less: no pickles, and complete files.
#include "packager/models/model_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "bundle/core/shell_word.hpp"
#include "bundle/core/unicode.hpp"
#include "packager/models/model_formats.hpp"
#include "packager/models/python_json.hpp"
#include "packager/models/remote_code.hpp"
#include "packager/models/weights_of_config.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/safetensors.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxModelFiles = 50'000;  // each is an entry of the signed manifest, whose size is bounded
constexpr std::size_t kMaxTreeFiles = 900'000;  // an archive has at most a million members, and folders are some

class ModelCheck {
 public:
  ModelCheck(const LockedModel& model, const LocateFile& locate) : model_(model) {
    for (const LockedFile& file : model.files) {
      files_.emplace(file.path, locate(model, file));
      sizes_.emplace(file.path, file.size);
    }
  }

  ModelReport run() {
    check_names();
    check_pickles();
    check_pointers();
    if (model_.spec.data) return std::move(report_);
    const StoredFiles stored = read_stored(files_, report_.faults);
    check_sets(files_, stored, report_.faults, report_.warnings);
    check_weights_of_config(files_, stored, report_.faults, report_.warnings);
    check_config();
    check_tokenizer();
    check_remote_code(files_, report_.faults, report_.warnings);
    return std::move(report_);
  }

 private:
  void fault(std::string text) { report_.faults.push_back(std::move(text)); }
  void warn(std::string text) { report_.warnings.push_back(std::move(text)); }
  bool has(const std::string& path) const { return files_.contains(path); }
  bool any(const std::function<bool(const std::string&)>& is) const {
    return std::any_of(files_.begin(), files_.end(), [&](const auto& item) { return is(item.first); });
  }

  // The manifest would refuse these too, but only after everything was written.
  void check_names() {
    if (files_.empty()) fault("it has no files");
    std::map<std::string, std::string> folded;
    for (const auto& [path, file] : files_)
      if (const auto [twin, fresh] = folded.emplace(bundle::case_folded(path), path); !fresh)
        fault(fmt::format("{} and {} differ in upper and lower case only", twin->second, path));
    report_.faults_of_names = report_.faults.size();
    for (const auto& [name, path] : folded)
      for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
        if (folded.contains(name.substr(0, slash))) fault(path + " lies below another file");
  }

  void check_pickles() {
    std::vector<std::string> allowed;
    for (const auto& [path, file] : files_) {
      std::string reason = pickle_by_name(path);
      if (reason.empty() && !file.empty()) reason = pickle_by_content(path, file);
      if (reason.empty()) continue;
      if (model_.spec.allow_pickle)
        allowed.push_back(path);
      else
        fault(fmt::format("{}: {}; loading it can run any program", path, reason));
    }
    if (!allowed.empty()) warn("it has pickles, and loading them can run any program: " + some_of(allowed));
  }

  void check_pointers() {
    for (const auto& [path, file] : files_) {
      if (file.empty() || sizes_.at(path) > 1024) continue;
      bundle::FileSource source(file);
      const bundle::Bytes bytes = source.read(0, source.size());
      if (bundle::as_text(bytes).starts_with("version https://git-lfs"))
        fault(path + ": this is a Git LFS pointer; the file itself was not fetched (git lfs pull)");
    }
  }

  // What loaders read first: whatever Python's json does not take loads nowhere.
  void check_json(const std::string& path) {
    const auto found = files_.find(path);
    if (found == files_.end() || found->second.empty()) return;
    const std::string text = with_plain_numbers(bundle::read_text(found->second, kMaxConfig));
    if (text.starts_with("\xef\xbb\xbf"))
      return fault(path +
                   ": it begins with a byte order mark, which Python's json refuses; save it as UTF-8 without one");
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == text.npos || text[start] != '{' || !safetensors::Json::accept(text))
      fault(path + ": this is no JSON object, so loaders cannot read it");
  }

  void check_config() {
    for (const char* path : {"config.json", "adapter_config.json", "generation_config.json", "tokenizer_config.json"})
      check_json(path);
    static const std::vector<std::string> kConfigs = {"config.json", "adapter_config.json", "model_index.json",
                                                      "modules.json"};
    const bool one_file = any([](const std::string& path) { return path.ends_with(".gguf"); });
    if (!one_file && std::none_of(kConfigs.begin(), kConfigs.end(), [&](const auto& name) { return has(name); }))
      fault("config.json is missing, so no loader can tell which model this is; other files belong under [[data]]");
    static const std::vector<std::string> kWeights = {"*.safetensors", "*.gguf", "*.bin",     "*.pt",   "*.pth",
                                                      "*.onnx",        "*.h5",   "*.msgpack", "*.ckpt", "*.npz"};
    if (!any([&](const std::string& path) { return matches_any(path, kWeights); })) warn("it has no weights");
    const bool keras = any([](const std::string& path) { return path.ends_with(".h5") || path.ends_with(".keras"); });
    if (keras) warn("it has Keras files; a Lambda layer in one is code, and Sealift does not look for it");
  }

  // A vocabulary in one of the formats that tokenizers read. A folder without any may be a model for images.
  void check_tokenizer() {
    static const std::vector<std::string> kWhole = {
        "tokenizer.json", "tokenizer.model",   "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "tekken.json",
        "*.tiktoken",     "tokenization_*.py", "vocab.jsonl",  "tokenizer.model.*",       "*.model",   "*.spm"};
    // Of characters, for sound: no merges belong to them.
    const bool pair = has("vocab.json") && (has("merges.txt") || has("preprocessor_config.json"));
    const bool vocabulary = pair || any([](const std::string& path) { return matches_any(path, kWhole); });
    const bool parts = has("tokenizer_config.json") || has("special_tokens_map.json") || has("added_tokens.json") ||
                       has("vocab.json") || has("merges.txt");
    const bool inside = has("model_index.json") || has("adapter_config.json") ||
                        any([](const std::string& path) { return path.ends_with(".gguf"); });
    if (parts && !vocabulary && !needs_none())
      warn(
          "its tokenizer has none of the usual vocabularies (tokenizer.json, tokenizer.model, vocab.txt, vocab.json "
          "with "
          "merges.txt): that is complete for one that needs none, such as ByT5's or CANINE's; else fetch what is "
          "missing");
    else if (!parts && !vocabulary && !inside && !has("preprocessor_config.json"))
      warn("it has no tokenizer");
    else if (vocabulary && !has("tokenizer_config.json"))
      warn("tokenizer_config.json is missing; the tokenizer then depends on what transformers guesses");
  }

  // Whether the tokenizer's class has letters or bytes for its vocabulary. Source: transformers' classes whose
  // vocab_files_names is empty.
  bool needs_none() const {
    const auto found = files_.find("tokenizer_config.json");
    if (found == files_.end() || found->second.empty()) return false;
    const auto config = safetensors::Json::parse(bundle::read_text(found->second, kMaxConfig), nullptr, false);
    const auto name = config.is_object() ? config.find("tokenizer_class") : config.end();
    static const std::set<std::string> kNeedNone = {"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"};
    return name != config.end() && name->is_string() && kNeedNone.contains(name->get<std::string>());
  }

  const LockedModel& model_;
  ModelFilePlaces files_;
  std::map<std::string, std::uint64_t> sizes_;
  ModelReport report_;
};

}  // namespace

ModelReport check_model(const LockedModel& model, const LocateFile& locate) {
  return ModelCheck(model, locate).run();
}

void require_sound(const std::vector<LockedModel>& models, const LocateFile& locate, bundle::Progress& progress) {
  static constexpr const char* kMendModel =
      "complete or repair it; leave files out with exclude; allow_pickle = true takes pickles that you trust";
  std::string got, next;
  bool others = false;
  std::size_t files = 0;
  for (const LockedModel& model : models) {
    if (model.tree) continue;  // `lock` has looked into it, and pinned what it saw
    const bool archive = model.spec.layout == ModelLayout::Tree;
    if (!archive) files += model.files.size() * (model.spec.layout == ModelLayout::Both ? 2 : 1);
    if (archive && model.files.size() > kMaxTreeFiles)
      got += fmt::format("\n    {}: {} files, and one archive has room for {}", model.spec.title(), model.files.size(),
                         kMaxTreeFiles);
    const ModelReport report = check_model(model, locate);
    for (const std::string& warning : report.warnings) progress.warn(model.spec.title() + ": " + warning);
    for (const std::string& fault : report.faults) got += "\n    " + model.spec.title() + ": " + fault;
    const bool own_names = model.spec.data && model.spec.hub == Hub::Folder && report.faults_of_names > 0;
    if (own_names) next += (next.empty() ? "rename one of each two; or " : "; ") + tar_remedy(model.spec.folder);
    others = others || report.faults.size() > (own_names ? report.faults_of_names : 0);
  }
  if (files > kMaxModelFiles)
    got += fmt::format("\n    all together: {} files, and a bundle has room for {}; give a folder layout = \"tree\"",
                       files, kMaxModelFiles);
  if (got.empty()) return;
  if (others && !next.empty()) next = std::string(kMendModel) + "; " + next;
  throw Error(ErrorCode::Format, {.what = "a model cannot be packed as it is",
                                  .expected = "models that load on the other side, with nothing but data in them",
                                  .got = got,
                                  .next = next.empty() ? kMendModel : next});
}

std::string tar_remedy(const fs::path& folder) {
  const std::string packed = folder.string() + ".packed", name = folder.filename().string();
  return "carry all of it as one file, which keeps every name: mkdir " + bundle::shell_word(packed) + " && tar -C " +
         bundle::shell_word(folder.parent_path().string()) + " -cf " +
         bundle::shell_word(packed + "/" + name + ".tar") + " " + bundle::shell_word(name) +
         ", then source = " + toml_quoted(packed);
}

}  // namespace sealift::packager
