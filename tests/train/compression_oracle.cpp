// SPDX-License-Identifier: Apache-2.0
// One rank of ours in the comparison with PyTorch's communication hooks: trains every case, writes its parameters.
// Started by compression_oracle_test.py, which has the same model, values and data in Python and compares.
// Every parameter is used, so that both sides make their buckets again after the first step and number them alike.
//   sealift-compression-oracle CASES OUT    environment: torchrun's variables
#include <sealift/train.hpp>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <fstream>
#include <iostream>

namespace {

using namespace sealift::train;

constexpr std::int64_t kIn = 20, kWidth = 48, kOut = 7, kRows = 12, kSteps = 10;

class NetImpl : public torch::nn::Module {
 public:
  NetImpl() {
    const std::int64_t sizes[] = {kIn, kWidth, kWidth, kWidth, kOut};
    for (std::size_t i = 0; i + 1 < std::size(sizes); ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(sizes[i], sizes[i + 1])));
    }
    at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      phase += 0.37;
      parameter.copy_(torch::sin(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.91 + phase) * 0.3);
    }
  }

  /// [rows, kIn] -> [rows, kOut]
  at::Tensor forward(at::Tensor x) {
    for (std::size_t i = 0; i < layers_.size(); ++i) x = layers_[i](i == 0 ? x : torch::tanh(x));
    return x;
  }

 private:
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(Net);

/// One case, a line of CASES; after `compression` PowerSGD's options.
struct Case {
  std::string name, compression;
  std::int64_t bucket_bytes = 0;
  PowerSgdOptions power_sgd;
};

std::istream& operator>>(std::istream& in, Case& test) {
  auto& o = test.power_sgd;
  return in >> test.name >> test.compression >> test.bucket_bytes >> o.matrix_approximation_rank >> o.start_iteration >>
         o.min_compression_rate >> o.use_error_feedback >> o.warm_start >> o.orthogonalization_epsilon >>
         o.random_seed >> o.batch_tensors_with_same_shape;
}

void train(const Case& test, World world, const std::string& out) {
  Policy policy{.method = ParallelMethod::Ddp,
                .compression = {.power_sgd = test.power_sgd},
                .first_bucket_bytes = test.bucket_bytes,
                .bucket_bytes = test.bucket_bytes};
  auto& gradients = policy.compression.gradients;
  if (test.compression == "fp16") gradients = GradientCompression::Fp16;
  if (test.compression == "bf16") gradients = GradientCompression::Bf16;
  if (test.compression == "powersgd") gradients = GradientCompression::PowerSgd;
  // Every case makes its own groups, and groups of one store meet by name.
  world.store = c10::make_intrusive<c10d::PrefixStore>(test.name, world.store);
  Shardable<Net> net;
  auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, world.size)), policy);
  torch::optim::SGD optimizer(parallel.shards(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto first = (step * world.size + world.rank) * kRows;
    const auto x = torch::sin(torch::arange(first * kIn, (first + kRows) * kIn).view({kRows, kIn}) * 0.7);
    const auto y = torch::cos(torch::arange(first * kOut, (first + kRows) * kOut).view({kRows, kOut}) * 0.3);
    torch::mse_loss(net(x), y).backward();
    optimizer.step();
  }
  // The last rank reports, the peer's first does, so that ranks that differ show.
  if (world.rank != world.size - 1) return;
  std::vector<at::Tensor> values;
  for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().flatten());
  const auto all = torch::cat(values);
  std::ofstream file(out + "/" + test.name, std::ios::binary);
  file.write(static_cast<const char*>(all.const_data_ptr()), static_cast<std::streamsize>(all.nbytes()));
  TORCH_CHECK(file.flush(), "cannot write to ", out);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    TORCH_CHECK(argc == 3, "usage: sealift-compression-oracle CASES OUT");
    at::set_num_threads(1);
    const auto world = connect(parse_launch(), std::chrono::seconds(60));
    std::ifstream cases(argv[1]);
    for (Case test; cases >> test;) train(test, world, argv[2]);
    TORCH_CHECK(cases.eof(), "cannot read the cases in ", argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "sealift-compression-oracle: " << error.what() << "\n";
    return 1;
  }
}
