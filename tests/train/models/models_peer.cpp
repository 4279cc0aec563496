// SPDX-License-Identifier: Apache-2.0
// Our side of the comparison with transformers: runs model folders on given batches, writes what they compute.
// Started by models_peer_test.py, which makes the folders and batches and holds the results to transformers'.
// Ranks are threads. All cases in one process, since a start costs more than a tiny model.
//   sealift-models-peer CASES    each line: forward|train|save|generate|shapes|families FOLDER METHOD RANKS OPTIONS OUT
#include "tests/support/ranks.hpp"
#include "trainer/models/families.hpp"
#include "trainer/models/generate.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/models/moe.hpp"

#include <fstream>
#include <iostream>

namespace {

using namespace sealift;
using namespace sealift::trainer;
namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

/// One line of CASES.
struct Case {
  std::string verb, folder, method;
  std::int64_t ranks = 1;
  std::string options, out;

  bool has(const std::string& option) const { return options.find(option) != std::string::npos; }
};

Tensors read_all(const fs::path& path) {
  Tensors result;
  const train::InputFile file(path);
  const auto header = train::read_header(file);
  for (const auto& entry : header.tensors) {
    const std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
    auto tensor = torch::empty(shape, train::scalar_type(entry.dtype, entry.name));
    file.read(header.data_begin + entry.begin, tensor.mutable_data_ptr(), entry.bytes());
    result[entry.name] = tensor;
  }
  return result;
}

void write_all(const fs::path& path, const Tensors& tensors) {
  train::write_tensor_file(path, {tensors.begin(), tensors.end()}, {});
}

/// A model of the folder, spread over the ranks of the world.
struct Loaded {
  train::Shardable<Decoder> model{nullptr};
  train::Parallel parallel;
};

Loaded load(const Case& test, const train::World& world) {
  const auto config = read_decoder_config(test.folder);
  train::Shardable<Decoder> model(nullptr);
  {
    const train::MetaDevice meta;
    model = train::Shardable<Decoder>(config, DecoderOptions{.recompute = test.has("recompute"),
                                                             .logits_at_a_time = test.has("slices") ? 1 : 1 << 24});
  }
  const train::Policy policy{.method = train::parse_parallel_method(test.method),
                             .shard_size = test.method == "hsdp" ? world.size / 2 : 0};
  const auto source = model_folder_source(test.folder, config);
  const std::int64_t expert_ranks = test.has("ep2") ? 2 : test.has("ep4") ? 4 : 1;
  const auto groups = train::make_groups(world, policy, kExpertAxis, expert_ranks);
  auto parallel = train::parallelize(*model, groups, policy, source.get());
  return {model, std::move(parallel)};
}

/// Rows [first, first + count) of a batch file; the model is given labels only if they are asked for.
TokenBatch batch_of(const Tensors& tensors, std::int64_t first, std::int64_t count, bool labels) {
  const auto rows = [&](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second.narrow(0, first, count);
  };
  return {rows("ids"), rows("positions"), rows("segments"), labels ? rows("labels") : at::Tensor()};
}

/// Mean negative log-probability over the labels; from a reward head the sum of scores.
at::Tensor loss_of(const Loaded& loaded, const at::Tensor& values, const TokenBatch& batch) {
  if (loaded.model->config().reward_head) return values.sum();
  return -values.sum() / (batch.labels != kNoLabel).sum();
}

void forward(const Case& test, const train::World& world) {
  auto loaded = load(test, world);
  const auto inputs = read_all(fs::path(test.folder) / "batch.safetensors");
  const auto rows = inputs.at("ids").size(0);
  Tensors result;
  {
    at::NoGradGuard no_grad;
    result["logits"] = std::get<0>(loaded.model(batch_of(inputs, 0, rows, false)));
  }
  const auto batch = batch_of(inputs, 0, rows, true);
  const auto [values, routed] = loaded.model(batch);
  auto loss = loss_of(loaded, values, batch);
  if (routed.defined()) {
    result["router_loss"] = routed.detach();
    loss = loss + loaded.model->config().experts->loss_coefficient * routed;
  }
  loss.backward();
  result["values"] = values.detach();
  result["loss"] = loss.detach();
  for (const auto& item : loaded.model->named_parameters()) {
    result["grad." + item.key()] =
        item.value().grad().defined() ? item.value().grad() : torch::zeros_like(item.value());
  }
  write_all(test.out, result);
}

/// Ten steps of AdamW; each rank has its rows of the same batch.
void train_steps(const Case& test, const train::World& world) {
  auto loaded = load(test, world);
  torch::optim::AdamW optimizer(loaded.parallel.shards(), torch::optim::AdamWOptions(3e-3));
  const auto inputs = read_all(fs::path(test.folder) / "batch.safetensors");
  const auto rows = inputs.at("ids").size(0) / world.size;
  const auto tokens = (inputs.at("labels") != kNoLabel).sum();
  auto losses = torch::zeros({10}, at::kDouble);
  for (std::int64_t step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const auto batch = batch_of(inputs, world.rank * rows, rows, true);
    const auto [values, routed] = loaded.model(batch);
    auto loss = -values.sum() * world.size / tokens;  // gradients are averaged over ranks
    if (routed.defined()) loss = loss + loaded.model->config().experts->loss_coefficient * routed;
    loss.backward();
    losses[step] = loss.detach().to(at::kDouble) / world.size;
    optimizer.step();
  }
  loaded.parallel.groups().world.all_reduce(losses).wait();
  if (world.rank == world.size - 1) write_all(test.out, {{"losses", losses}});
}

void save(const Case& test, const train::World& world) {
  auto loaded = load(test, world);
  SaveFolderOptions options{.max_file_bytes = 20'000};
  if (test.has("bf16")) options.dtype = at::kBFloat16;
  save_model_folder(test.out, test.folder, *loaded.model, loaded.parallel, options);
}

void generate_tokens(const Case& test, const train::World& world) {
  auto loaded = load(test, world);
  const auto prompt = read_all(fs::path(test.folder) / "batch.safetensors").at("ids")[0].narrow(0, 0, 5);
  const std::vector<std::int64_t> ids(prompt.const_data_ptr<std::int64_t>(), prompt.const_data_ptr<std::int64_t>() + 5);
  const auto tokens = [&] {
    if (test.has("gathered_by_layer")) return generate(loaded.model, ids, {.max_tokens = 12});
    const auto whole = loaded.parallel.gather_parameters();
    return generate(loaded.model, ids, {.max_tokens = 12});
  }();
  if (world.rank == world.size - 1) write_all(test.out, {{"tokens", torch::tensor(tokens)}});
}

/// Names and sizes of what a model of the config holds; there are no values.
void write_shapes(const Case& test) {
  const auto config = read_decoder_config(test.folder);
  const train::MetaDevice meta;
  const DecoderImpl model(config);
  std::ofstream file(test.out);
  const auto write = [&](const auto& tensors) {
    for (const auto& item : tensors) {
      file << item.key();
      for (const auto size : item.value().sizes()) file << ' ' << size;
      file << '\n';
    }
  };
  write(model.named_parameters());
  write(model.named_buffers());
}

void write_families(const Case& test) {
  std::ofstream file(test.out);
  for (const auto& family : families()) file << family.name << '\n';
}

void run(const Case& test) {
  if (test.verb == "families") return write_families(test);
  if (test.verb == "shapes") return write_shapes(test);
  const auto body = [&](const train::World& world) {
    if (test.verb == "forward") return forward(test, world);
    if (test.verb == "train") return train_steps(test, world);
    if (test.verb == "save") return save(test, world);
    if (test.verb == "generate") return generate_tokens(test, world);
    TORCH_CHECK(false, "unknown verb ", test.verb);
  };
  test::on_ranks(test.ranks, body);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  TORCH_CHECK(argc == 2, "usage: sealift-models-peer CASES");
  std::ifstream cases(argv[1]);
  int failures = 0;
  for (Case test; cases >> test.verb >> test.folder >> test.method >> test.ranks >> test.options >> test.out;) {
    try {
      run(test);
    } catch (const c10::Error& error) {
      std::cerr << test.verb << " " << test.folder << ": " << error.what_without_backtrace() << "\n";
      ++failures;
    } catch (const std::exception& error) {
      std::cerr << test.verb << " " << test.folder << ": " << error.what() << "\n";
      ++failures;
    }
  }
  return failures == 0 && cases.eof() ? 0 : 1;
}
