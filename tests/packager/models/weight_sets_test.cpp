// SPDX-License-Identifier: Apache-2.0
// Folders with more than one set of weights, or with weights that are not the config's: what is refused, what is said.
// The same folders against transformers: weight_folders_test.py.
#include "packager/models/weight_sets.hpp"

#include <doctest/doctest.h>

#include "packager/models/model_check.hpp"
#include "tests/support/tiny_model.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::ModelFiles;
using test::sharded_model;
using test::TempDir;
using test::tiny_model;
using test::tiny_safetensors;

namespace {

ModelReport look(const ModelFiles& files) {
  const TempDir dir;
  test::write_model(dir / "m", files);
  LockedModel model{.spec = {.folder = dir / "m", .into = "models/m"}, .commit = {}, .files = {}};
  for (const auto& [path, bytes] : files) model.files.push_back({.path = path, .size = bytes.size(), .sha256 = {}});
  return check_model(model, [](const auto& of, const auto& file) { return of.spec.folder / file.path; });
}

ModelFiles having(ModelFiles files, const std::string& path, const std::string& bytes) {
  files[path] = bytes;
  return files;
}
ModelFiles merged(ModelFiles files, const ModelFiles& others) {
  files.insert(others.begin(), others.end());
  return files;
}
ModelFiles decoder(const std::string& config, const std::vector<std::string>& names) {
  return having(having(tiny_model(), "config.json", config), "model.safetensors", tiny_safetensors(names));
}

struct Said {
  const char* word;
  ModelFiles files;
};

void check_each(const std::vector<Said>& cases, bool faults) {
  for (const Said& each : cases) {
    CAPTURE(each.word);
    const ModelReport report = look(each.files);
    const auto& said = faults ? report.faults : report.warnings;
    CHECK((faults ? report.warnings : report.faults).empty());
    REQUIRE(said.size() == 1);
    CHECK_MESSAGE(said.front().find(each.word) != std::string::npos, said.front());
  }
}

}  // namespace

TEST_CASE("where transformers loads a folder and others load another model, a line says so") {
  const std::string index = "model.safetensors.index.json", part = "model-00001-of-00002.safetensors";
  const ModelFiles both = merged(tiny_model(), sharded_model());
  ModelFiles old = tiny_model();
  old[index] = sharded_model().at(index);
  ModelFiles moved = sharded_model();
  moved[index] = R"({"weight_map": {"a": ")" + part + R"(", "b": ")" + part + R"(", "c": ")" + part + "\"}}";
  moved[index].insert(moved[index].rfind("}}"), R"(, "c2": "model-00002-of-00002.safetensors")");
  moved["model-00002-of-00002.safetensors"] = tiny_safetensors({"c", "c2"});
  check_each(
      {{"two sets of weights: transformers takes model.safetensors, vLLM the 2 files", both},
       {"vLLM finds no weights; leave the index out", old},
       {"in another of its files: c;", moved},
       {"names none of them", having(sharded_model(), "model-00001-of-00003.safetensors", tiny_safetensors({"z"}))},
       {"vLLM reads all of them", having(tiny_model(), part, tiny_safetensors({"z"}))},
       {"another lm_head.weight is stored",
        having(decoder(R"({"tie_word_embeddings": true})", {}), "model.safetensors",
               [] {
                 std::string bytes = tiny_safetensors({"lm_head.weight", "model.embed_tokens.weight"});
                 bytes.back() = 'x';
                 return bytes;
               }())},
       {"since the model's body was saved alone",
        decoder(R"({"tie_word_embeddings": false, "architectures": ["XForCausalLM"]})", {"embed_tokens.weight"})}},
      /*faults=*/false);
  CHECK(look(decoder(R"({"tie_word_embeddings": true, "vocab_size": 1})",
                     {"lm_head.weight", "model.embed_tokens.weight"}))
            .warnings.empty());
}

TEST_CASE("weights that no loader takes for the config's are refused by their cause") {
  check_each({{"begins with _orig_mod.", decoder("{}", {"_orig_mod.a", "_orig_mod.b"})},
              {"begins with module.", decoder("{}", {"module.a"})},
              {"begins with base_model.model.", decoder("{}", {"base_model.model.a"})},
              {"the embedding has 1 rows, and config.json says vocab_size 2",
               decoder(R"({"vocab_size": 2})", {"model.embed_tokens.weight"})}},
             /*faults=*/true);
  CHECK(look(decoder("{}", {"module.a", "b"})).faults.empty());
  ModelFiles own =
      decoder(R"({"vocab_size": 2, "auto_map": {"AutoModel": "modeling_x.X"}})", {"model.embed_tokens.weight"});
  own["modeling_x.py"] = "import json\n";
  CHECK(look(own).faults.empty());
}

TEST_CASE("an adapter's names are its own") {
  ModelFiles files = decoder("{}", {"base_model.model.a"});
  files["adapter_config.json"] = "{}";
  CHECK(look(files).faults.empty());
}
