// SPDX-License-Identifier: Apache-2.0
// The table and its lookup; see offline_breakers.hpp. Each row has a source: a thread in the package's own tracker, or
// a file of a wheel that was read ("wheel NAME VERSION: FILE"). Last read: November 2026.
#include "packager/python/offline_breakers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "packager/builds/cuda_toolkit.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

using bundle::Version;

namespace {

struct Row {
  const char* package;
  const char* first;  // of the affected versions; empty: all up to `last`
  const char* last;   // empty: all from `first` on
  const char* problem;
  const char* remedy;
  std::vector<const char*> settings;
  std::vector<const char*> unless;  // the problem does not arise when all these packages are there
  const char* with = "";            // it arises only beside this package,
  const char* with_first = "";      // from this version on
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      // ---- download or call home when used
      // wheel huggingface-hub 1.33.0: constants.py; TRANSFORMERS_OFFLINE is an alias there.
      {"huggingface-hub",
       "",
       "",
       "asks the hub for every model or dataset that is named by id, and sends telemetry",
       "name models and data by path; where a site has a hub of its own, HF_HUB_OFFLINE=0 and HF_ENDPOINT lead there",
       {"HF_HUB_OFFLINE=1", "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_UPDATE_CHECK=1"},
       {}},
      // huggingface/transformers#44843, fixed by #42880: model_info() while a tokenizer of more than 100,000 words is
      // loaded by id.
      {"transformers",
       "4.57.2",
       "4.57.3",
       "asks the hub whenever a tokenizer of more than 100,000 words is loaded by id, offline mode or not",
       "require another version (not 4.57.2 or 4.57.3), or load tokenizers by path",
       {},
       {}},
      // wheel datasets 4.8.4: config.py (HF_DATASETS_OFFLINE falls back to HF_HUB_OFFLINE since 4; older ones do not).
      {"datasets",
       "",
       "",
       "asks the hub for data that is named by id, and counts downloads",
       "name data by path",
       {"HF_DATASETS_OFFLINE=1", "HF_UPDATE_DOWNLOAD_COUNTS=0"},
       {}},
      // modelscope/modelscope#840 (checks hashes online although a path is given), #924.
      {"modelscope",
       "",
       "",
       "asks its hub for models that are named by id, and to check files that are already there",
       "name models by path",
       {"MODELSCOPE_CACHE=${CACHE}/modelscope"},
       {}},
      // wheel ms-swift 4.6.0: swift/trainers/arguments.py, check_model = True; its FAQ; modelscope/ms-swift#982, #1346.
      {"ms-swift",
       "",
       "",
       "asks the hub about local models before it trains, and tells it what is trained",
       "swift … --model /path --check_model false; --local_repo_path for models with code of their own; "
       "--dataset /path",
       {},
       {}},
      // wheel tiktoken 0.14.0: load.py, tiktoken_ext/openai_public.py; openai/tiktoken#232.
      {"tiktoken",
       "",
       "",
       "downloads an encoding's vocabulary when it is first used",
       "carry the files as [[data]] with into = \"data/tiktoken\"; a file's name is the SHA-1 of its address",
       {"TIKTOKEN_CACHE_DIR=${PREFIX}/data/tiktoken"},
       {}},
      // openai/harmony#101; wheel openai-harmony 0.0.8: openai_harmony.abi3.so has the name of the variable.
      {"openai-harmony",
       "",
       "",
       "downloads its vocabulary when it is first used",
       "carry the files as [[data]] with into = \"data/harmony\"",
       {"TIKTOKEN_ENCODINGS_BASE=${PREFIX}/data/harmony"},
       {}},
      // wheel nltk 3.10.4: data.py.
      {"nltk",
       "",
       "",
       "comes without its data, which nltk.download() fetches",
       "carry the data as [[data]] with into = \"data/nltk_data\"",
       {"NLTK_DATA=${PREFIX}/data/nltk_data"},
       {}},
      // wheel litellm 1.109.1: litellm_core_utils/get_model_cost_map.py.
      {"litellm",
       "",
       "",
       "downloads a table of prices when it is imported",
       "use the table that the wheel has",
       {"LITELLM_LOCAL_MODEL_COST_MAP=True"},
       {}},
      // wheel gradio 6.31.0: analytics.py.
      {"gradio",
       "",
       "",
       "sends telemetry and asks for its newest version",
       "switch it off",
       {"GRADIO_ANALYTICS_ENABLED=False"},
       {}},
      // wheel axolotl 0.19.0: telemetry/manager.py; seen on a host without a network.
      {"axolotl",
       "",
       "",
       "sends telemetry, and waits three minutes for it after a run",
       "switch it off",
       {"DO_NOT_TRACK=1"},
       {}},
      // wheel wandb 0.31.0: env.py.
      {"wandb",
       "",
       "",
       "logs in and sends runs to its service",
       "keep runs here; `wandb sync` sends them later",
       {"WANDB_MODE=offline"},
       {}},
      // wheel mlflow-skinny 3.17.2: mlflow/telemetry/utils.py.
      {"mlflow-skinny", "3", "", "sends telemetry", "switch it off", {"MLFLOW_DISABLE_TELEMETRY=true"}, {}},
      // wheel vllm 0.32.0: usage/usage_lib.py, envs.py; every ten minutes.
      {"vllm", "", "", "sends what it runs on, every ten minutes", "switch it off", {"VLLM_NO_USAGE_STATS=1"}, {}},
      // ray-project/ray: python/ray/_private/usage/usage_lib.py; any value but 0 and 1 is an error there.
      {"ray", "", "", "sends what its clusters do", "switch it off", {"RAY_USAGE_STATS_ENABLED=0"}, {}},
      // unslothai/unsloth: unsloth/models/_utils.py; a name server first, then a page, for up to 120 s.
      {"unsloth",
       "",
       "",
       "counts its users when it is imported, and waits up to two minutes where it cannot; for GGUF it fetches and "
       "builds llama.cpp",
       "switch it off; name a built llama.cpp by UNSLOTH_LLAMA_CPP_PATH where the job is started",
       {"UNSLOTH_DISABLE_STATISTICS=1"},
       {}},
      // huggingface/evaluate: src/evaluate/config.py; "AUTO" there is not on.
      {"evaluate",
       "",
       "",
       "asks the hub for each metric that is named by id, and metrics fetch data of their own",
       "carry a metric's folder as [[data]], and evaluate.load(\"/path/metric\")",
       {"HF_EVALUATE_OFFLINE=1"},
       {}},
      // explosion/spaCy: spacy/cli/download.py.
      {"spacy",
       "",
       "",
       "fetches its models by `spacy download`",
       "they are wheels: require them by their address, en_core_web_sm @ https://…/en_core_web_sm-VERSION.whl",
       {},
       {}},
      // rwightman's timm/models/_hub.py; torch/hub.py for torchvision's weights.
      {"timm",
       "",
       "",
       "fetches weights from the hub for pretrained=True",
       "carry them as [[model]], and pretrained_cfg_overlay=dict(file=\"/path\")",
       {},
       {}},
      {"torchvision",
       "",
       "",
       "fetches weights into TORCH_HOME for weights=…",
       "carry the .pth files as [[data]] with into = \"data/torch/hub/checkpoints\", and TORCH_HOME = "
       "\"${PREFIX}/data/torch\" in [environment]",
       {},
       {}},
      // EleutherAI's lm_eval/tasks: data sets by id, evaluate.load, nltk.download.
      {"lm-eval",
       "",
       "",
       "fetches each task's data set by id, and metrics and nltk data for some",
       "carry them as [[data]], and --include_path with tasks whose data_files are paths",
       {},
       {}},
      // opencompass/utils/datasets.py: archives on first use, in local mode too.
      {"opencompass",
       "",
       "",
       "fetches each data set as an archive when it is first used",
       "carry them as [[data]] with into = \"data/opencompass\"",
       {"COMPASS_DATA_CACHE=${PREFIX}/data/opencompass"},
       {}},
      // wheel swanlab 0.10.3: sdk/internal/settings/__init__.py, `mode` with the prefix SWANLAB_.
      {"swanlab",
       "",
       "",
       "logs in and sends runs to its service",
       "keep runs here; `swanlab sync` sends them later; where a site has a server of its own, [environment] "
       "SWANLAB_MODE = "
       "\"online\"",
       {"SWANLAB_MODE=offline"},
       {}},

      // ---- compile when they run
      // wheel triton 3.6.0: runtime/build.py (gcc or clang), backends/nvidia/driver.c (#include <Python.h>);
      // pytorch/pytorch#170235, theroyallab/tabbyAPI#456. ptxas comes with the wheel.
      {"triton",
       "",
       "",
       "compiles C when it first runs a kernel (torch.compile does): it needs cc and Python.h",
       "[toolchain] c = true carries a compiler (cxx = true for CPUs); or see that the targets have gcc or clang, or "
       "set "
       "CC; take an interpreter with headers; or run without torch.compile (TORCHDYNAMO_DISABLE=1)",
       {"TRITON_CACHE_DIR=${CACHE}/triton"},
       {"ziglang"}},
      {"triton",
       "",
       "",
       "compiles C when it first runs a kernel (torch.compile does): it needs Python.h, and the carried compiler as CC",
       "[toolchain] c = true sets CC; take an interpreter with headers",
       {"TRITON_CACHE_DIR=${CACHE}/triton"},
       {},
       "ziglang",
       ""},
      // deepspeedai/DeepSpeed#1534, #3772, #5653; seen with 0.19.8 on processors alone, DS_BUILD_OPS=0 or not.
      {"deepspeed",
       "",
       "",
       "compiles its operators when they are first used, and deepspeed_shm_comm as soon as a process group starts "
       "without a GPU: it needs g++ and ninja, and nvcc where there are GPUs",
       "have them built with the wheel: torch in extra_build_dependencies, and in extra_build_variables either "
       "DS_BUILD_SHM_COMM = \"1\" and DS_ACCELERATOR = \"cpu\", or DS_BUILD_OPS = \"1\" with the toolkit; or see that "
       "the targets have g++ (or carry Debian's packages of it), require ninja and carry the toolkit",
       {},
       {}},
      // wheel flashinfer-python 0.7.2.post1: jit/env.py, artifacts.py, jit/cubin_loader.py.
      {"flashinfer-python",
       "",
       "",
       "downloads kernels, and compiles others with nvcc and ninja, when they are first used",
       "require flashinfer-cubin and flashinfer-jit-cache of the same version",
       {},
       {"flashinfer-cubin", "flashinfer-jit-cache"}},

      // ---- need what a server lacks
      // auditwheel's list for manylinux_2_28 lets libGL be missing from the wheel; the headless wheel has no such need.
      {"opencv-python",
       "",
       "",
       "needs libGL.so.1, which servers without a desktop do not have",
       "require opencv-python-headless",
       {},
       {"opencv-python-headless"}},

      // ---- do not run with what is chosen beside them
      // wheel cpm-kernels 1.0.11: kernels/base.py; wheel setuptools 82.0.0 has no pkg_resources, 81.0.0 has.
      {"cpm-kernels",
       "",
       "1.0.11",
       "cannot be imported: it wants pkg_resources, which setuptools has no more from 82 on",
       "constraints = [\"setuptools<82\"], where old ChatGLM or CPM models are used; nothing else does",
       {},
       {},
       "setuptools",
       "82"},
      // sdist transformers-stream-generator 0.0.5: main.py; wheels transformers 4.57.6 (has it) and 5.0.0 (has not).
      {"transformers-stream-generator",
       "",
       "0.0.5",
       "cannot be imported: it wants DisjunctiveConstraint, which transformers has no more from 5 on",
       "constraints = [\"transformers<5\"], where the first Qwen's own code is used; nothing else does",
       {},
       {},
       "transformers",
       "5"},
      // wheels transformers 5.4.0 and 5.12.1 beside kernels 0.15.2 and 0.17.2, imported: integrations/hub_kernels.py
      // makes
      // layers that name no version; 5.0.0, 5.4.0 and 5.12.1 beside 0.14.1, and 5.13.1 beside 0.15.2, can be.
      {"transformers",
       "5",
       "5.12.99",
       "cannot be imported: its layers name no version of a kernel, which kernels refuses from 0.15 on",
       "constraints = [\"kernels<0.15\"], or transformers 5.13 or newer",
       {},
       {},
       "kernels",
       "0.15"},
  };
  return rows;
}

bool concerns(const Row& row, const std::string& version) {
  const std::string_view first = row.first, last = row.last;
  const Version release = Version::leading(version);  // what follows the numbers ("rc1", "+cu130") does not count
  return (first.empty() || release >= Version::leading(first)) && (last.empty() || release <= Version::leading(last));
}

}  // namespace

std::vector<OfflineFinding> offline_findings(const std::vector<LockedWheel>& wheels) {
  std::map<std::string, std::string> versions;
  for (const LockedWheel& wheel : wheels) versions[wheel.name] = wheel.version;
  std::vector<OfflineFinding> findings;
  for (const Row& row : table()) {
    const auto found = versions.find(row.package);
    if (found == versions.end() || !concerns(row, found->second)) continue;
    if (*row.with != '\0') {
      const auto beside = versions.find(row.with);
      if (beside == versions.end() || Version::leading(beside->second) < Version::leading(row.with_first)) continue;
    }
    if (!row.unless.empty() &&
        std::all_of(row.unless.begin(), row.unless.end(), [&](const char* other) { return versions.contains(other); }))
      continue;
    findings.push_back({.package = found->first + " " + found->second,
                        .problem = row.problem,
                        .remedy = row.remedy,
                        .settings = {row.settings.begin(), row.settings.end()}});
  }
  // A carried nvcc, which nothing compiles with before it is inside.
  if (const std::optional<NewerCompiler> found = newer_compiler(versions))
    findings.push_back({.package = "nvidia-nvvm " + found->nvvm,
                        .problem = "is the compiler of nvcc, and newer than its assembler, nvidia-cuda-nvcc " +
                                   found->nvcc + ", which refuses what it writes",
                        .remedy = "require " + found->requirement(),
                        .settings = {}});
  std::stable_sort(findings.begin(), findings.end(),
                   [](const OfflineFinding& a, const OfflineFinding& b) { return a.package < b.package; });
  return findings;
}

void add_needs(std::vector<OfflineFinding>& findings, const std::map<std::string, std::string>& needs) {
  for (OfflineFinding& finding : findings)
    if (const auto found = needs.find(finding.package.substr(0, finding.package.find(' '))); found != needs.end())
      finding.needed_by = found->second;
}

std::vector<std::string> offline_settings(const std::vector<OfflineFinding>& findings) {
  std::set<std::string> settings;
  for (const OfflineFinding& finding : findings) settings.insert(finding.settings.begin(), finding.settings.end());
  return {settings.begin(), settings.end()};
}

void show_findings(const std::vector<OfflineFinding>& findings, bundle::Progress& progress) {
  for (const OfflineFinding& finding : findings) {
    const std::string who = finding.needed_by.empty() ? "" : " (needed by " + finding.needed_by + ")";
    progress.warn(finding.package + who + " " + finding.problem + ". Remedy: " + finding.remedy);
  }
}

bundle::Json findings_json(const std::vector<OfflineFinding>& findings) {
  bundle::Json out = bundle::Json::array();
  for (const OfflineFinding& finding : findings) {
    out.push_back({{"package", finding.package},
                   {"problem", finding.problem},
                   {"remedy", finding.remedy},
                   {"settings", finding.settings}});
    if (!finding.needed_by.empty()) out.back()["needed_by"] = finding.needed_by;
  }
  return out;
}

}  // namespace sealift::packager
