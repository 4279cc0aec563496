// SPDX-License-Identifier: Apache-2.0
// What is found in a model: a sound one has no fault, and each fault is found where it is the only one.
#include "packager/models/model_check.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_model.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::ModelFiles;
using test::sharded_model;
using test::TempDir;
using test::tiny_model;
using test::tiny_safetensors;

namespace {

struct Desk {
  TempDir dir;
  bool data = false;
  bool allow_pickle = false;
  bool only_names = false;  // as when nothing is here yet

  LockedModel model(const ModelFiles& files) const {
    std::filesystem::remove_all(dir / "m");
    test::write_model(dir / "m", files);
    LockedModel model{.spec = {.data = data, .folder = dir / "m", .into = "models/m", .allow_pickle = allow_pickle},
                      .commit = {},
                      .files = {}};
    for (const auto& [path, bytes] : files) model.files.push_back({.path = path, .size = bytes.size(), .sha256 = {}});
    return model;
  }
  std::filesystem::path locate(const LockedModel& model, const LockedFile& file) const {
    return only_names ? std::filesystem::path() : model.spec.folder / file.path;
  }
  ModelReport look(const ModelFiles& files) const {
    return check_model(model(files), [&](const auto& model, const auto& file) { return locate(model, file); });
  }
};

std::string all(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += text + "\n";
  return out;
}

ModelFiles with(ModelFiles files, const std::string& path, const std::string& bytes) {
  files[path] = bytes;
  return files;
}
ModelFiles without(ModelFiles files, const std::string& path) {
  REQUIRE(files.erase(path) == 1);
  return files;
}

}  // namespace

TEST_CASE("a model that is whole has neither faults nor warnings") {
  for (const ModelFiles& files : {tiny_model(), sharded_model()}) {
    const ModelReport report = Desk().look(files);
    CHECK_MESSAGE(report.faults.empty(), all(report.faults));
    CHECK_MESSAGE(report.warnings.empty(), all(report.warnings));
  }
}

TEST_CASE("each fault of a model is found, and nothing else with it") {
  struct Fault {
    const char* word;
    ModelFiles files;
  };
  const std::string shard = "model-00002-of-00002.safetensors", index = "model.safetensors.index.json";
  const std::string weights = tiny_safetensors({"a", "b"});
  std::string overlap = weights;
  overlap.replace(overlap.find("[4,8]"), 5, "[0,4]");
  const std::string map = sharded_model().at(index);
  const auto mapped = [&](const std::string& from, const std::string& to) {
    std::string text = map;
    return with(sharded_model(), index, text.replace(text.find(from), from.size(), to));
  };
  const std::vector<Fault> faults = {
      {"config.json is missing", without(tiny_model(), "config.json")},
      {"it was cut", with(tiny_model(), "model.safetensors", weights.substr(0, weights.size() - 1))},
      {"two tensors overlap", with(tiny_model(), "model.safetensors", overlap)},
      {"a web page", with(tiny_model(), "model.safetensors", "<!DOCTYPE html><p>log in</p>")},
      {"parts are missing: 2\n",
       with(without(sharded_model(), shard), index, R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})")},
      {"index.json is missing", without(sharded_model(), index)},
      {"names files that are not there: other.safetensors",
       with(mapped(shard, "other.safetensors"), shard, tiny_safetensors({"x"}))},
      {"that are not there: c", with(sharded_model(), shard, tiny_safetensors({"x"}))},
      {"the tensor a is in", with(sharded_model(), shard, tiny_safetensors({"a", "c"}))},
      {"it has no weight_map", with(sharded_model(), index, "{}")},
      {"a value of weight_map", mapped("\"" + shard + "\"", "2")},
      {"the JSON is not acceptable", with(sharded_model(), index, "{")},
      {"generation_config.json: this is no JSON", with(tiny_model(), "generation_config.json", "{\"a\": }")},
      {"config.json: this is no JSON object", with(tiny_model(), "config.json", "[1]")},
      {"config.json: it begins with a byte order mark", with(tiny_model(), "config.json", "\xef\xbb\xbf{}")},
      {"config.json: this is no JSON object", with(tiny_model(), "config.json", "{\"a\": 1")},
      {"training_args.bin: torch.save", with(tiny_model(), "training_args.bin", "x")},
      {"weights.bin: it begins like a pickle", with(tiny_model(), "weights.bin", "\x80\x04\x95 more")},
      {"a Git LFS pointer", with(tiny_model(), "tokenizer.json", "version https://git-lfs.invalid/spec/v1\n")},
      {"differ in upper and lower case", with(tiny_model(), "CONFIG.json", "{}")},
      {"needs modeling_x.py, which is missing",
       with(tiny_model(), "config.json", R"({"auto_map": {"AutoModel": "modeling_x.Model"}})")},
      {"code of another repository",
       with(tiny_model(), "config.json", R"({"auto_map": {"AutoModel": "org/other--modeling_x.Model"}})")},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.word);
    const ModelReport report = Desk().look(fault.files);
    const std::string said = all(report.faults);
    CHECK_MESSAGE(report.faults.size() == 1, said);
    CHECK_MESSAGE(said.find(fault.word) != std::string::npos, said);
  }
}

TEST_CASE("faults that names tell are told before anything was fetched") {
  const Desk desk{.only_names = true};
  CHECK(desk.look(sharded_model()).faults.empty());
  CHECK(all(desk.look(without(sharded_model(), "model-00001-of-00002.safetensors")).faults) ==
        "model-*-of-00002.safetensors: parts are missing: 1\n");
  CHECK(desk.look(with(tiny_model(), "a.pt", "x")).faults.size() == 1);
}

TEST_CASE("pickles that were asked for are carried with a warning") {
  const Desk desk{.allow_pickle = true};
  const ModelReport report = desk.look(with(tiny_model(), "a.pt", "x"));
  CHECK(report.faults.empty());
  CHECK(all(report.warnings).find("can run any program: a.pt") != std::string::npos);
}

TEST_CASE("data is held to less than a model, but not to pickles") {
  const Desk desk{.data = true};
  CHECK(desk.look({{"train.jsonl", "{}"}}).faults.empty());
  CHECK(desk.look({{"train.pkl", "x"}}).faults.size() == 1);
  CHECK(desk.look({}).faults.size() == 1);
}

TEST_CASE("code that a model brings is named, with all that it imports from beside itself") {
  const Desk desk;
  ModelFiles files = tiny_model();
  files["config.json"] = R"({"auto_map": {"AutoConfig": "configuration_x.Config", "AutoModel": "modeling_x.Model"}})";
  files["tokenizer_config.json"] = R"({"auto_map": {"AutoTokenizer": ["tokenization_x.Tokenizer", null]}})";
  files["configuration_x.py"] = "import json\n";
  files["tokenization_x.py"] = "# from .nothing import x\n";
  files["modeling_x.py"] = "from .configuration_x import Config\n  from .layers.deep import (\nfrom . import x\n";
  files["layers/deep.py"] = "from .twin import y\nfrom os import path\n";
  files["layers/twin.py"] = "from .deep import x  # a circle\n";
  ModelReport report = desk.look(files);
  CHECK_MESSAGE(report.faults.empty(), all(report.faults));
  CHECK(all(report.warnings) ==
        "it has code, which trust_remote_code=True runs: configuration_x.py, layers/deep.py, layers/twin.py, "
        "modeling_x.py, tokenization_x.py\n");
  CHECK(all(desk.look(without(files, "layers/twin.py")).faults) ==
        "layers/deep.py needs layers/twin.py, which is missing\n");
}

TEST_CASE("a config that only Python reads is no fault, but it is said that nobody looked into it") {
  const ModelReport report = Desk().look(with(tiny_model(), "config.json", R"({"limit": [0.0, Infinity]})"));
  CHECK(report.faults.empty());
  CHECK(all(report.warnings).find("cannot be told") != std::string::npos);
}

TEST_CASE("what is unusual but may be wanted is a warning") {
  const auto warned = [](const ModelFiles& files, const char* word) {
    const ModelReport report = Desk().look(files);
    CHECK_MESSAGE(report.faults.empty(), all(report.faults));
    CHECK_MESSAGE(all(report.warnings).find(word) != std::string::npos, all(report.warnings));
  };
  warned(without(tiny_model(), "tokenizer_config.json"), "tokenizer_config.json is missing");
  warned(without(without(tiny_model(), "tokenizer_config.json"), "tokenizer.json"), "it has no tokenizer");
  warned(without(tiny_model(), "tokenizer.json"), "none of the usual vocabularies");
  warned(with(without(tiny_model(), "tokenizer.json"), "vocab.json", "{}"), "none of the usual vocabularies");
  warned(without(tiny_model(), "model.safetensors"), "it has no weights");
  warned(with(tiny_model(), "other.h5", "x"), "Lambda layer");
}

TEST_CASE("a tokenizer whose vocabulary has an unusual name is complete") {
  const ModelFiles bare = without(tiny_model(), "tokenizer.json");
  for (const ModelFiles& files :
       {with(with(bare, "vocab.json", "{}"), "preprocessor_config.json", "{}"),            // wav2vec2
        with(with(with(bare, "vocab.json", "{}"), "source.spm", "x"), "target.spm", "x"),  // Marian
        with(bare, "spm.model", "x"),                                                      // DeBERTa-v2
        with(bare, "tokenizer.model.v3", "x"),                                             // Mistral v3
        with(bare, "ice_text.model", "x"),                                                 // ChatGLM-1
        with(bare, "tokenizer_config.json", R"({"tokenizer_class": "ByT5Tokenizer"})"),
        with(bare, "tokenizer_config.json", R"({"tokenizer_class": "CanineTokenizer"})"),
        with(bare, "tokenizer_config.json", R"({"tokenizer_class": "PerceiverTokenizer"})")}) {
    const ModelReport report = Desk().look(files);
    CHECK_MESSAGE(report.faults.empty(), all(report.faults));
    CHECK_MESSAGE(report.warnings.empty(), all(report.warnings));
  }
}

TEST_CASE("the faults of all models are one refusal") {
  const Desk desk, other;
  const std::vector<LockedModel> models = {desk.model(with(tiny_model(), "a.pt", "x")),
                                           other.model(without(tiny_model(), "config.json"))};
  bundle::Progress progress(nullptr);
  const auto locate = [&](const LockedModel& model, const LockedFile& file) { return model.spec.folder / file.path; };
  CHECK_REFUSED(require_sound(models, locate, progress), Format, "a.pt: files that end in .pt are pickles");
  CHECK_REFUSED(require_sound(models, locate, progress), Format, "config.json is missing");
}

TEST_CASE("more files than a manifest can list are refused before anything is written") {
  LockedModel model{.spec = {.data = true, .hub = Hub::HfHub, .repo = "org/many"}, .commit = {}, .files = {}};
  bundle::Progress progress(nullptr);
  const auto nowhere = [](const LockedModel&, const LockedFile&) { return std::filesystem::path(); };
  for (int i = 0; i < 50'000; ++i) model.files.push_back({.path = std::to_string(i), .size = 1, .sha256 = {}});
  require_sound({model}, nowhere, progress);
  model.spec.layout = ModelLayout::Both;
  CHECK_REFUSED(require_sound({model}, nowhere, progress), Format, "100000 files");
}
