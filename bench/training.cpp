// SPDX-License-Identifier: Apache-2.0
// One rank of ours: the work of training_peer.py through the training core, or through LibTorch alone (--method plain).
// Started by compare_training.py, which says on stdin how many steps to run and reads one line of JSON per round.
// Between rounds a rank blocks in that read, so the other side has the cores to itself.
#include <sealift/train.hpp>
#include <sealift/train/comm/gloo_turns.hpp>

#include "bench/llama.hpp"
#include "trainer/kept_memory.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/ranks/device.hpp"
#include "trainer/tuning/peft_format.hpp"
#include "trainer/verification/model.hpp"

#include <ATen/DeviceAccelerator.h>

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

/// Numbers in [-1, 1) for the indices from `first`: integer arithmetic, so every implementation and device gets the
/// same. [count]
at::Tensor noise(std::int64_t first, std::int64_t count, at::Device device = at::kCPU) {
  constexpr std::int64_t kMask = (std::int64_t{1} << 31) - 1;
  auto x = (torch::arange(first, first + count, at::TensorOptions(device).dtype(torch::kInt64)) * 1103515245 + 12345)
               .bitwise_and(kMask);
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
      parameter.copy_(noise(first, parameter.numel(), parameter.device()).view_as(parameter) /
                      std::sqrt(double(parameter.size(1))));
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

/// A frozen matrix with two trainable ones of low rank beside it.
class LoraLinearImpl : public torch::nn::Module {
 public:
  explicit LoraLinearImpl(std::int64_t width)
      : down_(register_parameter("lora_a", torch::empty({kRank, width}))),
        up_(register_parameter("lora_b", torch::empty({width, kRank}))),
        base_(register_module("base", bench::linear(width, width))) {
    base_->weight.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return base_(x) + torch::linear(torch::linear(x, down_), up_); }

 private:
  static constexpr std::int64_t kRank = 8;
  at::Tensor down_, up_;
  torch::nn::Linear base_;
};
TORCH_MODULE(LoraLinear);

/// The block of an adapter's training: recomputed in backward, all but the adapters frozen.
class LoraBlockImpl : public torch::nn::Module {
 public:
  explicit LoraBlockImpl(std::int64_t width)
      : up_(register_module("up", LoraLinear(width))), down_(register_module("down", LoraLinear(width))) {}

  at::Tensor forward(const at::Tensor& x) { return x + down_(torch::relu(up_(x))); }

 private:
  LoraLinear up_, down_;
};
TORCH_MODULE(LoraBlock);

struct MlpShape {
  std::int64_t blocks, width, rows;  // rows: of a micro-batch on one rank
};

template <class Block>
class StackImpl : public torch::nn::Module {
 public:
  explicit StackImpl(const MlpShape& shape) : shape_(shape) {
    for (std::int64_t i = 0; i < shape.blocks; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), train::Shardable<Block>(shape.width)));
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
  std::vector<train::Shardable<Block>> blocks_;
};
using MlpImpl = StackImpl<MlpBlock>;
TORCH_MODULE(Mlp);
using LoraImpl = StackImpl<train::Recomputed<LoraBlock>>;
TORCH_MODULE(Lora);

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

/// The Llama with data and a loss.
class BenchLlamaImpl : public bench::LlamaImpl {
 public:
  using bench::LlamaImpl::LlamaImpl;

  Batch batch(std::int64_t number) const {
    const auto rows = shape().rows, length = shape().context + 1;
    const auto count = rows * length;
    const auto tokens =
        ((noise(number * count, count) + 1) * (double(shape().vocabulary) / 2)).to(torch::kInt64).view({rows, length});
    return {tokens.narrow(1, 0, length - 1).contiguous(), tokens.narrow(1, 1, length - 1).reshape({-1})};
  }

  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const {
    return torch::cross_entropy_loss(outputs.view({-1, shape().vocabulary}).to(torch::kFloat32), targets);
  }
};
TORCH_MODULE(BenchLlama);

/// A decoder of a folder in Hugging Face's layout, with data and a loss. Inputs are tokens above their labels:
/// [2, rows, time].
class BenchDecoderImpl : public trainer::DecoderImpl {
 public:
  using trainer::DecoderImpl::DecoderImpl;

  at::Tensor forward(const at::Tensor& inputs) {
    const trainer::TokenBatch batch{.ids = inputs[0], .positions = {}, .segments = {}, .labels = inputs[1]};
    return std::get<0>(trainer::DecoderImpl::forward(batch));
  }

  Batch batch(std::int64_t number) const {
    constexpr std::int64_t kRows = 2, kLength = 129;
    const auto count = kRows * kLength;
    const auto half = static_cast<double>(config().vocabulary) / 2;
    const auto tokens = ((noise(number * count, count) + 1) * half).to(torch::kInt64).view({kRows, kLength});
    return {torch::stack({tokens.narrow(1, 0, kLength - 1), tokens.narrow(1, 1, kLength - 1)}), torch::empty({0})};
  }

  at::Tensor loss(const at::Tensor& log_probs, const at::Tensor& /*targets*/) const { return -log_probs.mean(); }
};
TORCH_MODULE(BenchDecoder);

struct Options {
  std::string model, method, device = "cpu", precision = "fp32";
  std::string folder;  ///< of a decoder and, in adapter/, its adapter
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
    } else if (name == "--device") {
      options.device = argv[i + 1];
    } else if (name == "--folder") {
      options.folder = argv[i + 1];
    } else if (name == "--precision") {
      options.precision = argv[i + 1];
    } else if (name == "--micro-batches") {
      options.micro_batches = std::stoll(argv[i + 1]);
    } else {
      TORCH_CHECK(false, "unknown option ", argv[i]);
    }
  }
  return options;
}

/// Most bytes of tensors at once, and bytes that stay between steps; of a GPU, since a CPU's are the process's.
struct DeviceMemory {
  double peak = 0, kept = 0;
};

DeviceMemory memory_of(at::Device device) {
  if (device.is_cpu()) return {};
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto bytes = at::accelerator::getDeviceStats(device.index()).allocated_bytes[kAll];
  return {double(bytes.peak), double(bytes.current)};
}

/// The clock must not stop before the device does.
void synchronize(at::Device device) {
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

/// Waits for rounds and runs them; `parallel` is empty when LibTorch is used alone.
template <class Model>
void serve_rounds(Model& model, const std::vector<at::Tensor>& weights, std::optional<train::Parallel>& parallel,
                  train::Groups& groups, const train::World& world, std::int64_t micro_batches,
                  double learning_rate = 1e-4) {
  Optimizer optimizer(weights, torch::optim::AdamWOptions(learning_rate));
  std::vector<Batch> pool;
  for (std::int64_t i = 0; i < kPool * micro_batches * world.size; ++i) {
    auto [inputs, targets] = model->batch(i);
    pool.emplace_back(inputs.to(world.device), targets.to(world.device));
  }

  const auto run_step = [&](std::int64_t step) {
    optimizer.zero_grad();
    auto total = torch::zeros({}, at::TensorOptions(world.device).dtype(torch::kFloat64));
    for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
      if (parallel) before_micro_batch(*parallel, micro, micro_batches);
      const auto index = ((step % kPool) * world.size + world.rank) * micro_batches + micro;
      const auto& [inputs, targets] = pool[static_cast<std::size_t>(index)];
      auto loss = model->loss(model(inputs), targets) / double(micro_batches);
      loss.backward();
      total += loss.detach();
    }
    optimizer.step();
    return total.template item<double>();
  };

  std::size_t flats = 0;
  if (parallel) {
    for (const auto& unit : parallel->units()) flats += unit->flats().size();
  }
  std::cout << R"({"ready": true, "torch": ")" << TORCH_VERSION << R"(", "units": )"
            << (parallel ? parallel->units().size() : 0) << R"(, "flats": )" << flats << "}" << std::endl;
  std::int64_t step = 0;
  for (std::int64_t steps; std::cin >> steps;) {
    std::vector<double> losses;
    *groups.traffic = {};
    groups.world.barrier();
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < steps; ++i) losses.push_back(run_step(step++));
    synchronize(world.device);
    groups.world.barrier();
    const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();

    const auto& traffic = *groups.traffic;
    const auto kind = [](const train::Traffic& of) {
      return "{\"calls\": " + std::to_string(of.calls) + ", \"bytes\": " + std::to_string(of.bytes) + "}";
    };
    const auto memory = memory_of(world.device);
    std::cout.precision(12);
    std::cout << R"({"seconds": )" << seconds << R"(, "device_peak": )" << memory.peak << R"(, "device_kept": )"
              << memory.kept << R"(, "traffic": {"all_gather": )" << kind(traffic.all_gather)
              << R"(, "reduce_scatter": )" << kind(traffic.reduce_scatter) << R"(, "all_reduce": )"
              << kind(traffic.all_reduce) << R"(}, "losses": [)";
    for (std::size_t i = 0; i < losses.size(); ++i) std::cout << (i ? ", " : "") << losses[i];
    std::cout << "]}" << std::endl;
  }
}

/// `Holder`: a model with `batch` and `loss`, made from `arguments`.
template <class Holder, class... Arguments>
void run(const Options& options, const Arguments&... arguments) {
  const auto launch = train::parse_launch();
  const auto device = trainer::set_up_device(options.device, launch);
  if (launch.rank == 0 && options.device != "cpu") std::cerr << "    " << device.line << '\n';
  auto world = train::connect(launch);
  world.device = device.device;
  train::Shardable<Holder> model(arguments...);
  model->to(world.device);
  fill(*model);
  const bool plain = options.method == "plain";
  TORCH_CHECK(plain || options.precision != "pure", "--precision pure is for --method plain");
  if (options.precision == "pure") model->to(torch::kBFloat16);
  train::Groups groups;
  std::optional<train::Parallel> parallel;
  std::vector<at::Tensor> weights = model->parameters();
  if (!plain) {
    const train::Policy policy{.method = train::parse_parallel_method(options.method),
                               .shard_size = options.method == "hsdp" ? 2 : 0,
                               .precision = train::parse_precision(options.precision)};
    groups = train::make_groups(world, train::make_mesh(policy, world.size));
    parallel = train::parallelize(*model, groups, policy);
    weights = parallel->shards();
  }
  serve_rounds(model, weights, parallel, groups, world, options.micro_batches);
}

/// The decoder in `options.folder`, whole or with the adapter that lies there; built without memory.
void run_decoder(const Options& options, bool adapts) {
  const auto launch = train::parse_launch();
  const auto device = trainer::set_up_device(options.device, launch);
  auto world = train::connect(launch);
  world.device = device.device;
  const std::filesystem::path folder(options.folder);
  const auto config = trainer::read_decoder_config(folder);
  train::Shardable<BenchDecoder> model = [&] {
    const train::MetaDevice meta;
    return train::Shardable<BenchDecoder>(config, trainer::DecoderOptions{});
  }();
  const auto base = trainer::model_folder_source(folder, config);
  std::unique_ptr<train::Source> adapted;
  if (adapts) {
    trainer::add_lora(*model, trainer::read_adapter_config(folder / "adapter"));
    adapted = trainer::adapter_source(folder / "adapter", *base);
  }
  const train::Policy policy{.method = train::parse_parallel_method(options.method)};
  auto groups = train::make_groups(world, train::make_mesh(policy, world.size));
  std::optional<train::Parallel> parallel =
      train::parallelize(*model, groups, policy, adapts ? adapted.get() : base.get());
  serve_rounds(model, parallel->shards(), parallel, groups, world, options.micro_batches, adapts ? 2e-3 : 1e-4);
}

}  // namespace

int main(int argc, char** argv) {
  trainer::keep_freed_memory();
  try {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    const auto options = parse(argc, argv);
    if (options.model == "mlp") {
      run<Mlp>(options, MlpShape{.blocks = 8, .width = 1024, .rows = 32});
    } else if (options.model == "lora") {
      run<Lora>(options, MlpShape{.blocks = 8, .width = 1024, .rows = 32});
    } else if (options.model == "tiny") {
      run<Mlp>(options, MlpShape{.blocks = 64, .width = 8, .rows = 4});
    } else if (options.model == "gpt") {
      run<BenchGpt>(options);
    } else if (options.model == "qwen" || options.model == "qwen_lora") {
      run_decoder(options, options.model == "qwen_lora");
    } else if (options.model == "llama") {
      run<BenchLlama>(options, bench::kLlama1B);
    } else if (options.model == "llama_tiny") {
      run<BenchLlama>(options, bench::kLlamaTiny);
    } else {
      TORCH_CHECK(false, "--model is '", options.model, "'; use mlp, lora, gpt, tiny, llama or llama_tiny");
    }
  } catch (const std::exception& error) {
    std::cerr << "sealift-bench-training: " << error.what() << "\n";
    return 1;
  }
}
