// SPDX-License-Identifier: Apache-2.0
// Ours in the comparison with bitsandbytes and PEFT: quantizes a file of matrices, or trains an adapter of a model
// folder under one strategy, with threads as ranks. Started by tuning_peer_test.py, which has the same data.
//   sealift-tuning-oracle nf4 IN OUT             safetensors in and out: codes, scales' codes and decoded values
//   sealift-tuning-oracle train MODEL ADAPTER OUT METHOD RANKS SHARD MICRO RECOMPUTE REPLICATE STORE
//                                                OUT: losses, adapter/ and merged/
#include "tests/support/ranks.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/tuning/peft_format.hpp"
#include "trainer/tuning/qlora.hpp"

#include <fstream>
#include <iomanip>
#include <iostream>

namespace {

using namespace sealift::train;
using namespace sealift::trainer;

constexpr std::int64_t kRows = 24, kTime = 8, kSteps = 10;

void quantize(const std::string& in, const std::string& out) {
  StoredPieces pieces;
  const auto file = pieces.open(in);
  auto groups = make_groups({}, make_mesh({.method = ParallelMethod::Fsdp}, 1));
  TensorList result;
  for (const auto& entry : pieces.header(file).tensors) pieces.add(entry.name, file, entry, 0);
  for (const auto& entry : pieces.header(file).tensors) {
    const auto& known = pieces.tensors().at(entry.name);
    const auto values = torch::empty({static_cast<std::int64_t>(entry.shape[0] * entry.shape[1])}, known.dtype);
    pieces.request_into(values, entry.name, 0);
    pieces.read();
    const auto n = values.numel();
    const auto layout = make_flat_layout({{n}}, 1, Nf4Codec::kBlock);
    Nf4Codec codec;
    const auto read = [&](std::size_t, std::int64_t begin, at::Tensor to) {
      to.copy_(values.narrow(0, begin, to.numel()));
    };
    const auto message = codec.store(layout, read, values.options(), groups, "");
    result.emplace_back(entry.name + ".codes", message.narrow(0, 0, (n + 1) / 2).clone());
    result.emplace_back(
        entry.name + ".scales",
        message.narrow(0, layout.shard_numel / 2, (n + Nf4Codec::kBlock - 1) / Nf4Codec::kBlock).clone());
    const auto whole = torch::empty({layout.padded_numel()}, known.dtype);
    codec.decode(whole, message, 1);
    result.emplace_back(entry.name + ".values", whole.narrow(0, 0, n).clone());
  }
  write_tensor_file(out, result, {});
}

struct Job {
  std::filesystem::path model, adapter, out;
  Policy policy;
  std::int64_t ranks = 1, micro_batches = 1;
  bool recompute = false, stored = false;
};

Job parse(char** argv) {
  Job job{.model = argv[2], .adapter = argv[3], .out = argv[4], .policy = {.method = parse_parallel_method(argv[5])}};
  job.ranks = std::stoll(argv[6]);
  if (job.policy.method == ParallelMethod::Hsdp) job.policy.shard_size = std::stoll(argv[7]);
  job.micro_batches = std::stoll(argv[8]);
  job.recompute = std::string(argv[9]) == "1";
  job.policy.wrap = by_block({.replicate_trained = std::string(argv[10]) == "1"});
  job.stored = std::string(argv[11]) == "1";
  return job;
}

/// Rows [first, first + rows) of step `step`, and what comes after each token.
TokenBatch batch_of(std::int64_t step, std::int64_t first, std::int64_t rows, std::int64_t vocabulary) {
  const auto row = torch::arange(first, first + rows).view({-1, 1}), time = torch::arange(kTime).view({1, -1});
  const auto ids = (row * 7 + time * (row + 3) + step * 11) % vocabulary;
  auto labels = torch::full_like(ids, kNoLabel);
  labels.narrow(1, 0, kTime - 1).copy_(ids.narrow(1, 1, kTime - 1));
  return {.ids = ids, .labels = labels};
}

void train(const Job& job, const World& world) {
  const auto config = read_decoder_config(job.model);
  std::optional<MetaDevice> meta(std::in_place);
  Shardable<Decoder> model(config, DecoderOptions{.recompute = job.recompute});
  meta.reset();
  add_lora(*model, read_adapter_config(job.adapter));
  auto policy = job.policy;
  if (job.stored) policy.store = store_projections(*model);
  const auto base = model_folder_source(job.model, config);
  const auto source = adapter_source(job.adapter, *base);
  auto parallel = parallelize(*model, make_groups(world, make_mesh(policy, world.size)), policy, source.get());
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(5e-3));
  auto losses = torch::zeros({kSteps + 1}, at::kDouble);
  const auto rows = kRows / world.size / job.micro_batches;
  for (std::int64_t step = 0; step <= kSteps; ++step) {
    optimizer.zero_grad();
    for (std::int64_t micro = 0; micro < job.micro_batches; ++micro) {
      parallel.set_micro_batch(micro, job.micro_batches);
      const auto first = (world.rank * job.micro_batches + micro) * rows;
      const auto batch = batch_of(step, first, rows, config.vocabulary);
      const auto loss = -std::get<0>(model(batch)).sum() / (rows * (kTime - 1) * job.micro_batches);
      losses[step] += loss.detach().to(at::kDouble) / world.size;
      loss.backward();
    }
    if (step < kSteps) optimizer.step();
  }
  parallel.groups().world.all_reduce(losses).wait();
  save_adapter(job.out / "adapter", *model, parallel, job.model);
  save_model_folder(job.out / "merged", job.model, *model, parallel,
                    {.changes = merge_adapters(*model, parallel, base.get())});
  if (world.rank != 0) return;
  std::ofstream file(job.out / "losses");
  for (std::int64_t step = 0; step <= kSteps; ++step)
    file << std::setprecision(17) << losses[step].item<double>() << "\n";
  TORCH_CHECK(file.flush(), "cannot write to ", job.out.string());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    at::set_num_threads(1);
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "nf4" && argc == 4) {
      quantize(argv[2], argv[3]);
      return 0;
    }
    TORCH_CHECK(what == "train" && argc == 12, "usage: see the head of tuning_oracle.cpp");
    const auto job = parse(argv);
    if (job.ranks == 1) {
      train(job, {});
    } else {
      sealift::test::on_ranks(
          job.ranks, [&](const World& world) { train(job, world); }, std::chrono::seconds(60));
    }
  } catch (const std::exception& error) {
    std::cerr << "sealift-tuning-oracle: " << error.what() << "\n";
    return 1;
  }
}
