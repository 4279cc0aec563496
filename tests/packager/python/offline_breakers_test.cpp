// SPDX-License-Identifier: Apache-2.0
// What is said about packages that do not like being offline.
#include "packager/python/offline_breakers.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "packager/python/run_time_caches.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;

namespace {

std::vector<OfflineFinding> findings(const std::vector<std::pair<std::string, std::string>>& packages) {
  std::vector<LockedWheel> wheels;
  for (const auto& [name, version] : packages)
    wheels.push_back({.name = name, .version = version, .file_name = {}, .url = {}, .sha256 = {}});
  return offline_findings(wheels);
}

}  // namespace

TEST_CASE("a known bad version is found, and its neighbours are not") {
  for (const char* bad : {"4.57.2", "4.57.3"}) REQUIRE(findings({{"transformers", bad}}).size() == 1);
  for (const char* good : {"4.57.1", "4.57.4", "4.56", "5.0.0"}) CHECK(findings({{"transformers", good}}).empty());
  const OfflineFinding found = findings({{"transformers", "4.57.3"}})[0];
  CHECK(found.package == "transformers 4.57.3");
  CHECK(found.remedy.find("another version") != std::string::npos);
}

TEST_CASE("a package's offline remedy silences its finding, once all of it is there") {
  CHECK(findings({{"flashinfer-python", "1"}}).size() == 1);
  CHECK(findings({{"flashinfer-python", "1"}, {"flashinfer-cubin", "1"}}).size() == 1);
  CHECK(findings({{"flashinfer-python", "1"}, {"flashinfer-cubin", "1"}, {"flashinfer-jit-cache", "1"}}).empty());
  CHECK(findings({{"opencv-python-headless", "4"}}).empty());
  const auto triton = findings({{"triton", "3.6.0"}, {"ziglang", "0.15.2"}});  // still Python.h, and where it writes
  REQUIRE(triton.size() == 1);
  CHECK(triton[0].problem.find("the carried compiler") != std::string::npos);
  CHECK(offline_settings(triton) == std::vector<std::string>{"TRITON_CACHE_DIR=${CACHE}/triton"});
}

TEST_CASE("DeepSpeed is said to compile, on processors alone too, and with what") {
  const auto found = findings({{"deepspeed", "0.19.8"}});
  REQUIRE(found.size() == 1);
  for (const char* part : {"deepspeed_shm_comm", "without a GPU", "g++ and ninja"})
    CHECK_MESSAGE(found[0].problem.find(part) != std::string::npos, part);
  for (const char* part : {"DS_BUILD_SHM_COMM", "require ninja"})
    CHECK_MESSAGE(found[0].remedy.find(part) != std::string::npos, part);
}

TEST_CASE("a carried nvcc whose compiler is newer than its assembler is warned of, with the release that fits") {
  const auto found = findings({{"nvidia-cuda-nvcc", "13.0.88"}, {"nvidia-nvvm", "13.5.37"}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].package == "nvidia-nvvm 13.5.37");
  CHECK(found[0].remedy == "require nvidia-nvvm==13.0.*");
  CHECK(findings({{"nvidia-cuda-nvcc", "13.0.88"}, {"nvidia-nvvm", "13.0.9"}}).empty());
  CHECK(findings({{"nvidia-nvvm", "13.5.37"}}).empty());
}

TEST_CASE("findings come in the order of names, are warned of, and their settings are one list") {
  const auto found = findings({{"wandb", "0.31"}, {"huggingface-hub", "1.0"}, {"numpy", "2"}, {"triton", "3.6.0"}});
  REQUIRE(found.size() == 3);
  CHECK(found[0].package == "huggingface-hub 1.0");
  CHECK(found[2].package == "wandb 0.31");
  const std::vector<std::string> settings = offline_settings(found);
  CHECK(std::find(settings.begin(), settings.end(), "HF_HUB_OFFLINE=1") != settings.end());
  const test::TempDir dir;
  std::FILE* stream = std::fopen((dir / "said").c_str(), "w");
  bundle::Progress progress(stream);
  show_findings(found, progress);
  std::fclose(stream);
  const std::string said = test::read_file(dir / "said");
  CHECK(said.find("warning: triton 3.6.0 compiles C") != said.npos);
  CHECK(said.find("numpy") == said.npos);
  const bundle::Json json = findings_json(found);
  REQUIRE(json.size() == 3);
  CHECK(json[1]["package"] == "triton 3.6.0");
}

TEST_CASE("a finding says who needs the package, where that is known") {
  auto found = findings({{"nltk", "3.10"}, {"wandb", "0.31"}});
  add_needs(found, {{"nltk", "rouge, for ms-swift, for the job"}, {"other", "the job"}});
  REQUIRE(found.size() == 2);
  CHECK(found[0].needed_by == "rouge, for ms-swift, for the job");
  CHECK(found[1].needed_by.empty());
  const bundle::Json json = findings_json(found);
  CHECK(json[0]["needed_by"] == "rouge, for ms-swift, for the job");
  CHECK_FALSE(json[1].contains("needed_by"));
  const test::TempDir dir;
  std::FILE* stream = std::fopen((dir / "said").c_str(), "w");
  bundle::Progress progress(stream);
  show_findings(found, progress);
  std::fclose(stream);
  const std::string said = test::read_file(dir / "said");
  CHECK(said.find("warning: nltk 3.10 (needed by rouge, for ms-swift, for the job) comes without") != said.npos);
  CHECK(said.find("warning: wandb 0.31 logs in") != said.npos);
}

TEST_CASE("packages that do not run together are found, from the first bad version on") {
  CHECK(findings({{"cpm-kernels", "1.0.11"}}).empty());
  CHECK(findings({{"cpm-kernels", "1.0.11"}, {"setuptools", "81.0.0"}}).empty());
  REQUIRE(findings({{"cpm-kernels", "1.0.11"}, {"setuptools", "82.0.0"}}).size() == 1);
  CHECK(findings({{"cpm-kernels", "1.0.12"}, {"setuptools", "84.2.1"}}).empty());
  const auto found = findings({{"transformers-stream-generator", "0.0.5"}, {"transformers", "5.19.0"}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].remedy.find("transformers<5") != std::string::npos);
  for (const char* bad : {"5.0.0", "5.12.1"}) {
    CHECK(findings({{"transformers", bad}, {"kernels", "0.15.2"}}).size() == 1);
    CHECK(findings({{"transformers", bad}, {"kernels", "0.14.1"}}).empty());
  }
  CHECK(findings({{"transformers", "5.13.0"}, {"kernels", "0.15.2"}}).empty());
}

TEST_CASE("every setting of the table can be carried as a variable of the environment") {
  std::vector<std::pair<std::string, std::string>> all;
  for (const char* name :
       {"huggingface-hub", "datasets", "modelscope", "ms-swift",      "tiktoken",    "openai-harmony", "nltk",
        "litellm",         "gradio",   "wandb",      "mlflow-skinny", "triton",      "vllm",           "ray",
        "unsloth",         "evaluate", "spacy",      "timm",          "torchvision", "lm-eval",        "opencompass",
        "swanlab",         "axolotl"})
    all.emplace_back(name, "4.0");
  const std::vector<std::string> settings = offline_settings(findings(all));
  CHECK(settings.size() >= 17);
  CHECK(std::find(settings.begin(), settings.end(), "DO_NOT_TRACK=1") != settings.end());
  for (const std::string& setting : settings) {
    CAPTURE(setting);
    const std::size_t equals = setting.find('=');
    REQUIRE(equals != setting.npos);
    CHECK(bundle::fault_of_carried_variable(setting.substr(0, equals), setting.substr(equals + 1)) == nullptr);
  }
}

TEST_CASE("caches that packages write have a place below the user's own, keyed by version where they are not") {
  std::vector<LockedWheel> wheels;
  for (const char* name : {"torch", "matplotlib", "numba", "tilelang", "deep_gemm", "unsloth", "cupy_cuda13x", "numpy"})
    wheels.push_back({.name = name, .version = "2.11.0+cu128", .file_name = {}, .url = {}, .sha256 = {}});
  const bundle::Variables variables = cache_variables(wheels, "3.11");
  CHECK(variables.size() == 8);
  CHECK(variables.at("TORCHINDUCTOR_CACHE_DIR") == "${CACHE}/torchinductor");
  CHECK(variables.at("TORCH_EXTENSIONS_DIR") == "${CACHE}/torch_extensions/2.11.0+cu128-py3.11");
  for (const auto& [name, value] : variables) {
    CAPTURE(name);
    CHECK(bundle::fault_of_carried_variable(name, value) == nullptr);
  }
  CHECK(cache_variables({}, "3.11").empty());
}
