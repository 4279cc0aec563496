// SPDX-License-Identifier: Apache-2.0
// The table of `run`'s settings, and what a job cannot be.
// See options.hpp; settings.cpp reads the texts.
// A fault is refused here, once, and not by each rank.
#include "trainer/settings/options.hpp"

#include "trainer/settings/refuse.hpp"

namespace sealift::trainer {
const std::vector<Setting>& settings() {
  using enum Changes;
  using Part = std::vector<Setting>;
  static const auto table = joined<Setting>(
      {
          {Numbers, "steps", "optimizer steps", &Options::steps},
          {Numbers, "seed", "of the model and the data", &Options::seed},
          {Numbers, "global_batch", "sequences per step, over all ranks and micro-batches", &Options::global_batch},
          {Numbers, "learning_rate", "of AdamW", &Options::learning_rate},
          {Numbers, "weight_decay", "of matrices; biases and norms have none", &Options::weight_decay},
          {Numbers, "clip", "largest gradient norm; 0: no clipping", &Options::clip},
          {Numbers, "precision", "fp32; mixed: compute in bf16, reduce in fp32; pure: both in bf16",
           &Options::precision},
          {Numbers, "vocabulary", "of the synthetic language", &Options::vocabulary},
          {Numbers, "context", "tokens per sequence", &Options::context},
          {Numbers, "layers", "of the GPT", &Options::layers},
          {Numbers, "width", "of the GPT", &Options::width},
          {Numbers, "heads", "of the GPT; divide the width", &Options::heads},
      },
      {parallel_settings<Options>(),
       Part{{Way, "micro_batches", "per rank and step; gradients are reduced with the last", &Options::micro_batches},
            {Way, "recompute", "true: keep only each block's input, run the block again in backward",
             &Options::recompute}},
       host_settings<Options>(),
       Part{{Way, "out", "folder for log.jsonl and result.json", &Options::out},
            {Way, "checkpoint_folder", "where checkpoints are saved and resumed from; empty: none",
             &Options::checkpoint_folder},
            {Way, "checkpoint_every", "steps between checkpoints; 0: only after the last", &Options::checkpoint_every},
            {Way, "keep_checkpoints", "how many; 0: all", &Options::keep_checkpoints},
            {Way, "resume", "auto: go on from the last checkpoint if there is one; none: refuse to",
             &Options::resume}}});
  return table;
}

Options read_options(const Texts& flags, const std::string& config_file) {
  std::vector<Layer> files;
  if (!config_file.empty()) {
    files.push_back({config_file, read_toml(config_file, [](const auto& name) { return shape_of(settings(), name); })});
    refuse_unknown(settings(), files.back(), "run");
  }
  Options options;
  read_settings(options, settings(), flags, files);
  for (auto [name, value] : {std::pair{"steps", options.steps},
                             {"micro_batches", options.micro_batches},
                             {"context", options.context},
                             {"global_batch", options.global_batch},
                             {"heads", options.heads}}) {
    if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; expected at least 1");
  }
  if (options.resume != "auto" && options.resume != "none") {
    refuse("resume is '" + options.resume + "'; use auto or none");
  }
  check_job_options(options, options);
  return options;
}

void check_job_options(const ParallelOptions& parallel, const HostOptions& host) {
  for (auto [name, value] : {std::pair{"bucket_mb", parallel.bucket_mb}, {"timeout_seconds", host.timeout_seconds}}) {
    if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; expected at least 1");
  }
  if (host.device != "auto" && host.device != "cpu" && host.device != "cuda") {
    refuse("device is '" + host.device + "'; use auto, cpu or cuda");
  }
  for (const auto& item : parallel.offload) {
    if (item == "parameters" || item == "gradients" || item == "optimizer_state") continue;
    refuse("offload has '" + item + "'; use any of parameters, gradients, optimizer_state");
  }
}

Texts comparable(const Options& options) {
  return comparable_settings(options, settings());
}

}  // namespace sealift::trainer
