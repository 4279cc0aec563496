// SPDX-License-Identifier: Apache-2.0
// One rank of ours: the work of training_peer.py through the training core, or through LibTorch alone (--method plain).
// Started by compare_training.py, which says on stdin how many steps to run and reads one line of JSON per round.
// Between rounds a rank blocks in that read, so the other side has the cores to itself.
#include <sealift/train.hpp>

#include "samples/trainer/model.hpp"

#include <cmath>
#include <iostream>

namespace {

using namespace sealift;
using Clock = std::chrono::steady_clock;

/// The one place that says which AdamW ours steps with.
using Optimizer = train::FusedAdamW;

/// The one place that says how ours is told of accumulation.
void before_micro_batch(train::Parallel& parallel, std::int64_t micro, std::int64_t micro_batches) {
  parallel.set_micro_batch(micro, micro_batches);
}

constexpr std::int64_t kPool = 4;  // steps of data, made before the clock starts

/// Numbers in [-1, 1) for the indices from `first`: integer arithmetic, so every implementation gets the same. [count]
at::Tensor noise(std::int64_t first, std::int64_t count) {
  constexpr std::int64_t kMask = (std::int64_t{1} << 31) - 1;
  auto x = (torch::arange(first, first + count) * 1103515245 + 12345).bitwise_and(kMask);
  x = x.bitwise_xor(x.bitwise_right_shift(15));
  x = (x * 747796405).bitwise_and(kMask);
  x = x.bitwise_xor(x.bitwise_right_shift(13));
  return (x.to(torch::kFloat64) / double(std::int64_t{1} << 30) - 1).to(torch::kFloat32);
}

void fill(torch::nn::Module& model) {
  at::NoGradGuard no_grad;
  std::int64_t first = 0;
  for (auto& item : model.named_parameters()) {
    auto& parameter = item.value();
    if (parameter.dim() == 2) {
      parameter.copy_(noise(first, parameter.numel()).view_as(parameter) / std::sqrt(double(parameter.size(1))));
    } else if (item.key().ends_with("bias")) {
      parameter.zero_();
    }
    first += parameter.numel();
  }
}

using Batch = std::pair<at::Tensor, at::Tensor>;

class MlpBlockImpl : public torch::nn::Module {
 public:
  explicit MlpBlockImpl(std::int64_t width)
      : up_(register_module("up", torch::nn::Linear(width, width))),
        down_(register_module("down", torch::nn::Linear(width, width))) {}

  at::Tensor forward(const at::Tensor& x) { return x + down_(torch::relu(up_(x))); }

 private:
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(MlpBlock);

struct MlpShape {
  std::int64_t blocks, width, rows;  // rows: of a micro-batch on one rank
};

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const MlpShape& shape) : shape_(shape) {
    for (std::int64_t i = 0; i < shape.blocks; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), train::Shardable<MlpBlock>(shape.width)));
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (auto& block : blocks_) x = block(x);
    return x;
  }

  Batch batch(std::int64_t number) const {
    const auto numel = shape_.rows * shape_.width;
    const auto part = [&](std::int64_t i) { return noise((2 * number + i) * numel, numel).view({shape_.rows, -1}); };
    return {part(0), part(1)};
  }

  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const {
    return torch::mse_loss(outputs, targets);
  }

 private:
  MlpShape shape_;
  std::vector<train::Shardable<MlpBlock>> blocks_;
};
TORCH_MODULE(Mlp);

/// The trainer's model with data and a loss.
class BenchGptImpl : public trainer::GptImpl {
 public:
  BenchGptImpl() : trainer::GptImpl({kVocabulary, kContext, /*layers=*/4, /*width=*/384, /*heads=*/6}) {}

  Batch batch(std::int64_t number) const {
    const auto count = kRows * (kContext + 1);
    const auto tokens =
        ((noise(number * count, count) + 1) * (kVocabulary / 2)).to(torch::kInt64).view({kRows, kContext + 1});
    return {tokens.narrow(1, 0, kContext).contiguous(), tokens.narrow(1, 1, kContext).reshape({-1})};
  }

  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const {
    return torch::cross_entropy_loss(outputs.view({-1, kVocabulary}), targets);
  }

 private:
  static constexpr std::int64_t kVocabulary = 1024, kContext = 64, kRows = 2;
};
TORCH_MODULE(BenchGpt);

struct Options {
  std::string model, method;
  std::int64_t micro_batches = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  TORCH_CHECK(argc % 2 == 1, "every option takes a value");
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--model") {
      options.model = argv[i + 1];
    } else if (name == "--method") {
      options.method = argv[i + 1];
    } else if (name == "--micro-batches") {
      options.micro_batches = std::stoll(argv[i + 1]);
    } else {
      TORCH_CHECK(false, "unknown option ", argv[i]);
    }
  }
  return options;
}

/// Waits for rounds and runs them; `parallel` is empty when LibTorch is used alone.
template <class Model>
void serve_rounds(Model& model, const std::vector<at::Tensor>& weights, std::optional<train::Parallel>& parallel,
                  train::Groups& groups, const train::World& world, std::int64_t micro_batches) {
  Optimizer optimizer(weights, torch::optim::AdamWOptions(1e-4));
  std::vector<Batch> pool;
  for (std::int64_t i = 0; i < kPool * micro_batches * world.size; ++i) pool.push_back(model->batch(i));

  const auto run_step = [&](std::int64_t step) {
    optimizer.zero_grad();
    double total = 0;
    for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
      if (parallel) before_micro_batch(*parallel, micro, micro_batches);
      const auto index = ((step % kPool) * world.size + world.rank) * micro_batches + micro;
      const auto& [inputs, targets] = pool[static_cast<std::size_t>(index)];
      auto loss = model->loss(model(inputs), targets) / double(micro_batches);
      loss.backward();
      total += loss.template item<double>();
    }
    optimizer.step();
    return total;
  };

  std::cout << R"({"ready": true, "torch": ")" << TORCH_VERSION << R"(", "units": )"
            << (parallel ? parallel->units().size() : 0) << "}" << std::endl;
  std::int64_t step = 0;
  for (std::int64_t steps; std::cin >> steps;) {
    std::vector<double> losses;
    *groups.traffic = {};
    groups.world.barrier();
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < steps; ++i) losses.push_back(run_step(step++));
    groups.world.barrier();
    const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();

    const auto& traffic = *groups.traffic;
    const auto kind = [](const train::Traffic& of) {
      return "{\"calls\": " + std::to_string(of.calls) + ", \"bytes\": " + std::to_string(of.bytes) + "}";
    };
    std::cout.precision(12);
    std::cout << R"({"seconds": )" << seconds << R"(, "traffic": {"all_gather": )" << kind(traffic.all_gather)
              << R"(, "reduce_scatter": )" << kind(traffic.reduce_scatter) << R"(, "all_reduce": )"
              << kind(traffic.all_reduce) << R"(}, "losses": [)";
    for (std::size_t i = 0; i < losses.size(); ++i) std::cout << (i ? ", " : "") << losses[i];
    std::cout << "]}" << std::endl;
  }
}

/// `Holder`: a model with `batch` and `loss`, made from `arguments`.
template <class Holder, class... Arguments>
void run(const Options& options, const Arguments&... arguments) {
  const auto world = train::connect(train::parse_launch());
  train::Shardable<Holder> model(arguments...);
  fill(*model);
  train::Groups groups;
  std::optional<train::Parallel> parallel;
  std::vector<at::Tensor> weights = model->parameters();
  if (options.method != "plain") {
    const train::Policy policy{.method = train::parse_parallel_method(options.method)};
    groups = train::make_groups(world, train::make_mesh(policy, world.size));
    parallel = train::parallelize(*model, groups, policy);
    weights = parallel->shards();
  }
  serve_rounds(model, weights, parallel, groups, world, options.micro_batches);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    const auto options = parse(argc, argv);
    if (options.model == "mlp") {
      run<Mlp>(options, MlpShape{.blocks = 8, .width = 1024, .rows = 32});
    } else if (options.model == "tiny") {
      run<Mlp>(options, MlpShape{.blocks = 64, .width = 8, .rows = 4});
    } else if (options.model == "gpt") {
      run<BenchGpt>(options);
    } else {
      TORCH_CHECK(false, "--model is '", options.model, "'; use mlp, gpt or tiny");
    }
  } catch (const std::exception& error) {
    std::cerr << "sealift-bench-training: " << error.what() << "\n";
    return 1;
  }
}
