// SPDX-License-Identifier: Apache-2.0
// A decoder whose units are called one by one, with a digest after each.
// See steps.hpp.
// Weights and tokens are made from whole numbers, so they are the same bits on every host; digests stay on the device
// until the end, so that looking does not slow what is looked at.
#include "verify/arithmetic/steps.hpp"

#include "trainer/loop/computed_with.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/ranks/cuda_driver.hpp"
#include "verify/conduct/processor_kind.hpp"

#include <sealift/train.hpp>

#include <ATen/Version.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace sealift::verify {
namespace {

/// The constant of splitmix64 (Steele et al., OOPSLA 2014): odd, bits as if by chance.
constexpr std::int64_t kOdd = static_cast<std::int64_t>(0x9E3779B97F4A7C15ULL);

/// The elements of a contiguous tensor as whole numbers of their size.
at::Tensor bits_of(const at::Tensor& tensor) {
  return tensor.variable_data().flatten().view(tensor.element_size() == 4 ? at::kInt : at::kShort);
}

/// int64, a scalar on the tensor's device.
at::Tensor digest_of(const at::Tensor& tensor) {
  at::NoGradGuard no_grad;
  const auto bits = bits_of(tensor.contiguous()).to(at::kLong);
  const auto weights = at::arange(1, bits.numel() + 1, bits.options()).mul_(kOdd).bitwise_or_(1);
  return bits.add(kOdd).mul_(weights).sum();
}

void flip(const at::Tensor& tensor, const FlippedBit& fault) {
  TORCH_CHECK(tensor.is_contiguous(), "a bit of a tensor with strides ", tensor.strides(), " cannot be flipped");
  at::NoGradGuard no_grad;
  const auto bits = bits_of(tensor);
  const auto width = static_cast<int>(8 * tensor.element_size());
  const auto bit = fault.bit % width;
  // The highest bit of a signed number stands for its lowest value.
  const auto one = std::int64_t{1} << bit;
  bits[fault.element % bits.numel()].bitwise_xor_(bit == width - 1 ? -one : one);
}

at::ScalarType dtype_of(const std::string& name) {
  return name == "bf16" ? at::kBFloat16 : at::kFloat;
}

trainer::DecoderConfig config_of(const ArithmeticJob& job) {
  trainer::DecoderConfig config;
  config.family = "qwen2";
  config.vocabulary = job.vocabulary;
  config.width = job.width;
  config.mlp_width = job.mlp_width;
  config.layers = job.layers;
  config.heads = job.heads;
  config.kv_heads = job.heads % 2 == 0 ? job.heads / 2 : job.heads;
  config.head_dim = job.width / job.heads;
  config.max_positions = job.time;
  config.windows.assign(static_cast<std::size_t>(job.layers), 0);
  return config;
}

/// Whole numbers from 0 to `below`, as if by chance, from their places and `salt`.
at::Tensor scattered(at::IntArrayRef sizes, std::int64_t below, std::uint64_t salt) {
  auto numbers = at::arange(c10::multiply_integers(sizes), at::kLong);
  numbers.add_(static_cast<std::int64_t>(salt * 0xBF58476D1CE4E5B9ULL)).mul_(kOdd);
  numbers.bitwise_xor_(numbers.bitwise_right_shift(29)).mul_(kOdd);
  return numbers.bitwise_right_shift_(33).bitwise_and_(0x3fffffff).remainder_(below).view(sizes);
}

/// One unit of the decoder: what it is called and what is trained in it.
struct Piece {
  std::string name;
  std::vector<at::Tensor> weights;
  std::function<at::Tensor(const at::Tensor&)> run;
};

/// Digests in the order in which `places_of` lists them.
class Trace {
 public:
  Trace(const ArithmeticJob& job, const std::optional<FlippedBit>& fault)
      : places_(places_of(job)), digests_(places_.size()), fault_(fault) {}

  /// The next dtype and step are these: the places to fill are looked for from there on.
  void begin(const std::string& dtype, std::int64_t step) {
    first_ = 0;
    while (places_[first_].dtype != dtype || places_[first_].step != step) ++first_;
  }

  /// Digests `tensors` as those of `unit`; flips the fault's bit first if it belongs there.
  void see(Phase phase, const std::string& unit, const std::vector<at::Tensor>& tensors) {
    auto place = first_;
    while (places_.at(place).phase != phase || places_[place].unit != unit) ++place;
    if (fault_ && fault_->where == places_[place]) flip(tensors.front(), *fault_);
    at::Tensor sum;
    for (const auto& tensor : tensors) sum = sum.defined() ? sum.mul(3).add_(digest_of(tensor)) : digest_of(tensor);
    digests_[place] = sum;
  }

  std::vector<std::string> texts() const {
    const auto numbers = at::stack(digests_).cpu();
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      char text[17];
      std::snprintf(text, sizeof text, "%016llx",
                    static_cast<unsigned long long>(numbers.const_data_ptr<std::int64_t>()[i]));
      texts.emplace_back(text);
    }
    return texts;
  }

 private:
  std::vector<Place> places_;
  std::vector<at::Tensor> digests_;
  std::optional<FlippedBit> fault_;
  std::size_t first_ = 0;
};

class Steps {
 public:
  Steps(const ArithmeticJob& job, const std::string& dtype, at::Device device)
      : job_(job),
        dtype_(dtype),
        device_(device),
        config_(config_of(job)),
        rope_(config_.rope, config_.head_dim, config_.max_positions) {
    make_pieces();
    std::vector<at::Tensor> all;
    for (const auto& piece : pieces_) all.insert(all.end(), piece.weights.begin(), piece.weights.end());
    optimizer_.emplace(std::move(all), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  }

  void run(Trace& trace) {
    const auto positions = at::arange(job_.time, at::TensorOptions().device(device_).dtype(at::kLong)).unsqueeze(0);
    around_ = {.rope = rope_.tables(positions),
               .visibility = std::make_shared<const trainer::Visibility>(at::Tensor(), job_.time, trainer::RowShape{}),
               .counted = {}};
    for (std::int64_t step = 0; step < job_.steps; ++step) {
      trace.begin(dtype_, step);
      for (const auto& piece : pieces_) trace.see(Phase::Weights, piece.name, piece.weights);
      optimizer_->zero_grad();
      one_step(trace, step);
      optimizer_->step();
      for (const auto& piece : pieces_) trace.see(Phase::Update, piece.name, piece.weights);
    }
  }

 private:
  void one_step(Trace& trace, std::int64_t step) {
    const auto salt = job_.seed * 1000 + static_cast<std::uint64_t>(step);
    ids_ = scattered({job_.batch, job_.time}, job_.vocabulary, salt).to(device_);
    const auto labels = (ids_ * 5 + 3).remainder_(job_.vocabulary);
    at::Tensor hidden;
    for (const auto& piece : pieces_) {
      hidden = piece.run(hidden);
      trace.see(Phase::Forward, piece.name, {hidden});
      hidden.register_hook(
          [&trace, name = piece.name](const at::Tensor& gradient) { trace.see(Phase::Backward, name, {gradient}); });
    }
    const auto loss = torch::nn::functional::cross_entropy(hidden.flatten(0, 1).to(at::kFloat), labels.flatten());
    trace.see(Phase::Forward, "loss", {loss});
    loss.backward();
    for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
      std::vector<at::Tensor> of_weights;
      for (const auto& weight : piece->weights) of_weights.push_back(weight.grad());
      trace.see(Phase::Gradient, piece->name, of_weights);
    }
  }

  /// Puts `module` on the device with first values, and its parameters into a unit of this name.
  template <class Module>
  Module ready(Module module, const std::string& name) {
    at::NoGradGuard no_grad;
    for (auto& item : module->named_parameters()) {
      auto& parameter = item.value();
      if (parameter.dim() < 2) {
        parameter.fill_(1);
        continue;
      }
      const auto numbers = scattered(parameter.sizes(), 1 << 16, job_.seed + 77 * ++made_);
      parameter.copy_((numbers.to(at::kFloat) - 32768) * (0.03f / 32768));
    }
    module->to(device_, dtype_of(dtype_));
    pieces_.push_back({name, module->parameters(), {}});
    return module;
  }

  void make_pieces() {
    const auto table = ready(trainer::Table(job_.vocabulary, job_.width), "embed_tokens");
    pieces_.back().run = [this, table](const at::Tensor&) { return at::embedding(table->weight, ids_); };
    for (std::int64_t layer = 0; layer < job_.layers; ++layer) make_layer(layer);
    const auto norm = ready(trainer::RmsNorm(job_.width, config_.norm_eps), "norm");
    pieces_.back().run = [norm = norm.ptr()](const at::Tensor& input) { return norm->forward(input); };
    const auto head = ready(trainer::Table(job_.vocabulary, job_.width), "lm_head");
    pieces_.back().run = [head](const at::Tensor& input) { return torch::linear(input, head->weight); };
  }

  void make_layer(std::int64_t layer) {
    const auto prefix = "layers." + std::to_string(layer) + ".";
    const auto norm = [&](const char* name) {
      const auto module = ready(trainer::RmsNorm(job_.width, config_.norm_eps), prefix + name);
      pieces_.back().run = [this, module = module.ptr()](const at::Tensor& input) {
        residual_ = input;
        return module->forward(input);
      };
    };
    norm("input_layernorm");
    const auto attention = ready(trainer::Attention(config_, layer), prefix + "self_attn");
    pieces_.back().run = [this, attention = attention.ptr()](const at::Tensor& input) {
      return residual_ + attention->forward(input, around_);
    };
    norm("post_attention_layernorm");
    const auto mlp = ready(std::make_shared<trainer::MlpImpl>(config_, job_.mlp_width), prefix + "mlp");
    pieces_.back().run = [this, mlp](const at::Tensor& input) {
      return residual_ + std::get<0>(mlp->forward(input, {}));
    };
  }

  ArithmeticJob job_;
  std::string dtype_;
  at::Device device_;
  trainer::DecoderConfig config_;
  trainer::Rope rope_;
  std::vector<Piece> pieces_;
  std::optional<train::FusedAdamW> optimizer_;
  trainer::Surroundings around_;
  at::Tensor ids_, residual_;
  std::uint64_t made_ = 0;
};

/// One thread while it lives: sums of many threads depend on their number.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

}  // namespace

std::vector<std::string> digests_of_steps(const ArithmeticJob& job, at::Device device,
                                          const std::optional<FlippedBit>& fault) {
  std::optional<OneThread> alone;
  if (device.is_cpu()) alone.emplace();
  Trace trace(job, fault);
  for (const auto& dtype : job.dtypes) Steps(job, dtype, device).run(trace);
  return trace.texts();
}

std::optional<std::size_t> first_difference(const std::vector<std::string>& one,
                                            const std::vector<std::string>& other) {
  const auto [left, right] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  if (left == one.end() && right == other.end()) return std::nullopt;
  return static_cast<std::size_t>(left - one.begin());
}

Repeated repeat_steps(const ArithmeticJob& job, at::Device device, std::chrono::duration<double> duration,
                      const std::optional<HeatFault>& fault) {
  const auto began = std::chrono::steady_clock::now();
  Repeated repeated;
  do {
    ++repeated.runs;
    const bool hit = fault && fault->round == repeated.runs;
    auto digests = digests_of_steps(job, device, hit ? std::optional(fault->bit) : std::nullopt);
    if (repeated.runs == 1)
      repeated.digests = std::move(digests);
    else
      repeated.again = first_difference(repeated.digests, digests);
  } while (!repeated.again && (repeated.runs < 2 || std::chrono::steady_clock::now() - began < duration));
  return repeated;
}

ArithmeticJob quick_arithmetic_job(at::Device device, std::uint64_t seed) {
  ArithmeticJob job{.seed = seed};
  if (device.is_cpu()) return job;
  job.layers = 4;
  job.width = 1024;
  job.heads = 16;
  job.mlp_width = 2816;
  job.vocabulary = 8191;
  job.batch = 4;
  job.time = 512;
  return job;
}

ArithmeticJob heavy_arithmetic_job(at::Device device, std::uint64_t seed) {
  auto job = quick_arithmetic_job(device, seed);
  if (device.is_cpu()) {
    job.width = 256;
    job.mlp_width = 688;
    job.time = 128;
  } else {
    job.width = 4096;
    job.heads = 32;
    job.mlp_width = 11008;
    job.time = 2048;
    job.dtypes = {"bf16"};
  }
  return job;
}

std::string kind_of_device(at::Device device) {
  if (device.is_cpu()) return processor_kind(trainer::vector_units());
  const auto driver = trainer::find_cuda_driver();
  const auto& gpu = driver.devices.at(static_cast<std::size_t>(device.index()));
  return gpu.name + ", capability " + gpu.capability;
}

nlohmann::json burn_device(const ArithmeticJob& job, at::Device device, std::chrono::duration<double> duration,
                           std::int64_t hands, const std::optional<HeatFault>& fault) {
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began); };
  const auto first = digests_of_steps(job, device);
  std::atomic<std::int64_t> rounds = 1;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  nlohmann::json found;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      do {
        const auto round = rounds++;
        const bool hit = fault && fault->round == round;
        const auto place =
            first_difference(first, digests_of_steps(job, device, hit ? std::optional(fault->bit) : std::nullopt));
        if (!place) continue;
        const std::lock_guard lock(mutex);
        if (found.is_null()) found = {{"round", round}, {"place", *place}};
        stop = true;
      } while (!stop && seconds() < duration);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      stop = true;
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t hand = 1; hand < hands; ++hand) others.emplace_back(work);
  work();
  for (auto& other : others) other.join();
  if (error) std::rethrow_exception(error);
  return {{"kind", kind_of_device(device)},
          {"job", to_json(job)},
          {"rounds", rounds.load()},
          {"seconds", seconds().count()},
          {"fault", found}};
}

}  // namespace sealift::verify
