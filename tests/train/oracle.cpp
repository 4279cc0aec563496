// SPDX-License-Identifier: Apache-2.0
// One rank of ours in the comparison with PyTorch's own DDP and fully_shard: trains every case, writes the results.
// Started by oracle_test.py, which has the same model, values and data in Python and compares.
// Unlike in the other tests ranks are processes, as the peer's are.
//   sealift-oracle CASES OUT    environment: torchrun's variables
#include <sealift/train.hpp>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <fstream>
#include <iostream>

namespace {

using namespace sealift::train;

constexpr std::int64_t kVocabulary = 13, kContext = 5, kWidth = 12, kHeads = 3, kHidden = 15, kLayers = 2;
constexpr std::int64_t kBatch = 12, kSteps = 6;

class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl()
      : frozen_(register_parameter("frozen", torch::ones({kWidth}), /*requires_grad=*/false)),
        norm_(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        qkv_(register_module("qkv", torch::nn::Linear(torch::nn::LinearOptions(kWidth, 3 * kWidth).bias(false)))),
        out_(register_module("out", torch::nn::Linear(kWidth, kWidth))),
        up_(register_module("up", torch::nn::Linear(kWidth, kHidden))),
        down_(register_module("down", torch::nn::Linear(kHidden, kWidth))),
        idle_(register_module("idle", torch::nn::Linear(3, 5))) {}

  /// [batch, time, width] -> the same
  at::Tensor forward(const at::Tensor& x) {
    const auto batch = x.size(0), time = x.size(1);
    const auto qkv = qkv_(norm_(x) * frozen_).view({batch, time, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    const auto mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, /*is_causal=*/true);
    const auto middle = x + out_(mixed.transpose(1, 2).reshape({batch, time, kWidth}));
    return middle + down_(torch::tanh(up_(middle)));
  }

 private:
  at::Tensor frozen_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear qkv_, out_, up_, down_;
  torch::nn::Linear idle_;  ///< never called
};
TORCH_MODULE(Layer);

class NetImpl : public torch::nn::Module {
 public:
  NetImpl() : tokens_(register_module("tokens", torch::nn::Embedding(kVocabulary, kWidth))) {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), Shardable<Layer>()));
    }
    register_module("spare", Shardable<Layer>());  // never called
    norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      phase += 0.37;
      parameter.copy_(torch::sin(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.91 + phase) * 0.3);
    }
  }

  /// Token numbers [batch, time] -> logits [batch, time, vocabulary]
  at::Tensor forward(const at::Tensor& tokens) {
    auto hidden = tokens_(tokens);
    for (auto& layer : layers_) hidden = layer(hidden);
    return torch::linear(norm_(hidden), tokens_->weight);
  }

 private:
  torch::nn::Embedding tokens_;
  std::vector<Shardable<Layer>> layers_;
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Net);

/// One case, a line of CASES.
struct Case {
  std::string name, method;
  std::int64_t shard_size = 0;
  bool reshard_after_forward = true;
  std::int64_t micro_batches = 1;
  double clip = 0;
  double learning_rate = 0;
};

/// The one place that tells ours of accumulation.
void before_micro_batch(Parallel& parallel, std::int64_t micro, std::int64_t micro_batches) {
  parallel.set_micro_batch(micro, micro_batches);
}

/// Sequences of a step's global batch: [kBatch, kContext + 1]
at::Tensor batch_of(std::int64_t step) {
  const auto rows = torch::arange(kBatch).unsqueeze(1), columns = torch::arange(kContext + 1).unsqueeze(0);
  return (rows * 5 + columns * (columns + 3) + step * 7 + rows * columns) % kVocabulary;
}

void write(const std::string& path, const at::Tensor& values) {
  const auto flat = values.contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(flat.const_data_ptr()), static_cast<std::streamsize>(flat.nbytes()));
  TORCH_CHECK(file.flush(), "cannot write ", path);
}

void train(const Case& test, World world, const std::string& out) {
  const Policy policy{.method = parse_parallel_method(test.method),
                      .shard_size = test.shard_size,
                      .reshard_after_forward = test.reshard_after_forward};
  // Every case makes its own groups, and groups of one store meet by name.
  world.store = c10::make_intrusive<c10d::PrefixStore>(test.name, world.store);
  Shardable<Net> net;
  auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, world.size)), policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(test.learning_rate));

  const auto rows = kBatch / world.size / test.micro_batches;
  auto losses = torch::zeros({kSteps}, torch::kFloat64), norms = losses.clone();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    for (std::int64_t micro = 0; micro < test.micro_batches; ++micro) {
      before_micro_batch(parallel, micro, test.micro_batches);
      const auto sequences = batch_of(step).narrow(0, (world.rank * test.micro_batches + micro) * rows, rows);
      const auto logits = net(sequences.narrow(1, 0, kContext));
      const auto targets = sequences.narrow(1, 1, kContext).reshape({-1});
      const auto loss = torch::cross_entropy_loss(logits.view({-1, kVocabulary}), targets) / test.micro_batches;
      loss.backward();
      losses[step] += loss.detach().to(torch::kFloat64) / world.size;
    }
    norms[step] = clip_grad_norm_(parallel, test.clip);
    optimizer.step();
  }
  parallel.groups().world.all_reduce(losses).wait();

  const auto whole = parallel.gather_parameters();
  // The last rank reports, the peer's first does, so that ranks that differ show.
  if (world.rank != world.size - 1) return;
  std::ofstream names(out + "/" + test.name + ".names");
  std::vector<at::Tensor> values;
  for (const auto& item : net->named_parameters()) {
    names << item.key() << " " << item.value().numel() << "\n";
    values.push_back(item.value().detach().flatten());
  }
  TORCH_CHECK(names.flush(), "cannot write to ", out);
  write(out + "/" + test.name + ".losses", losses);
  write(out + "/" + test.name + ".norms", norms);
  write(out + "/" + test.name + ".parameters", torch::cat(values));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    TORCH_CHECK(argc == 3, "usage: sealift-oracle CASES OUT");
    at::set_num_threads(1);
    const auto world = connect(parse_launch(), std::chrono::seconds(60));
    std::ifstream cases(argv[1]);
    for (Case test; cases >> test.name >> test.method >> test.shard_size >> test.reshard_after_forward >>
                    test.micro_batches >> test.clip >> test.learning_rate;) {
      train(test, world, argv[2]);
    }
    TORCH_CHECK(cases.eof(), "cannot read the cases in ", argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "sealift-oracle: " << error.what() << "\n";
    return 1;
  }
}
