// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention_check.hpp"

#include "trainer/models/attention.hpp"
#include "trainer/models/attention_choice.hpp"

#include <cmath>
#include <set>

namespace sealift::trainer {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Of half precision against fp32, where values are about 1.
constexpr double kTolerance = 5e-2;

constexpr std::int64_t kTime = 64, kWindow = 16, kChunk = 24;

/// A kind of layer and of row that attention is tried with.
struct Trial {
  DecoderConfig config;  ///< of one layer
  at::Tensor segments;   ///< [1, time], as TokenBatch has them; undefined: one sequence

  Visibility visibility(c10::Device device) const {
    auto shape = row_shape_of(segments, {});
    if (!segments.defined()) return {segments, kTime, shape};
    shape.starts = shape.starts.to(device);
    const auto sequence = segments == segments.select(1, kTime - 1);
    const auto positions = at::arange(kTime) - kSecond * sequence.to(at::kLong);
    return {segments.to(device), kTime, shape, positions.to(device)};
  }

  static constexpr std::int64_t kSecond = kTime / 2 + 8;  ///< where a packed row's second sequence begins
};

/// Windows and chunks that hide some of the job's rows become such as hide some of a trial's.
Reach reach_of(const DecoderConfig& config, std::size_t layer, const RowsOfJob& rows) {
  const auto hides = [&](std::int64_t tokens) { return tokens > 0 && tokens < rows.longest; };
  const auto chunk = config.chunks.empty() ? 0 : config.chunks.at(layer);
  return {.window = hides(config.windows.at(layer)) ? kWindow : 0, .chunk = hides(chunk) ? kChunk : 0};
}

std::vector<Trial> trials_of(const DecoderConfig& config, const RowsOfJob& rows) {
  std::set<Reach> reaches;
  for (std::size_t i = 0; i < config.windows.size(); ++i) reaches.insert(reach_of(config, i, rows));
  std::vector<Trial> trials;
  for (const auto& reach : reaches) {
    auto layer = config;
    layer.windows = {reach.window};
    layer.chunks = {reach.chunk};
    trials.push_back({layer, {}});
    if (rows.packed) trials.push_back({layer, at::arange(kTime).ge(Trial::kSecond).to(at::kLong).unsqueeze(0)});
  }
  return trials;
}

/// Queries, keys, values [1, time, heads, width] of such a layer, then its sinks [heads], if it has any.
Tensors small_inputs(const DecoderConfig& config, at::ScalarType dtype) {
  const auto wave = [&](std::int64_t heads, std::int64_t width, double pace) {
    return at::arange(kTime * heads * width, at::kFloat).mul(pace).sin().view({1, kTime, heads, width});
  };
  const auto of_keys = config.latent ? config.heads : config.kv_heads;
  const auto root = std::sqrt(static_cast<double>(config.head_dim));
  Tensors inputs{wave(config.heads, config.head_dim, 0.1) / (config.attention_scale.value_or(1 / root) * root),
                 wave(of_keys, config.head_dim, 0.07),
                 wave(of_keys, config.latent ? config.latent->values : config.head_dim, 0.13)};
  if (config.sinks) inputs.push_back(at::arange(config.heads, at::kFloat).mul(0.3).sin());
  for (auto& each : inputs) each = each.to(dtype);
  return inputs;
}

Tensors leaves(const Tensors& inputs, const at::TensorOptions& options) {
  Tensors made;
  for (const auto& each : inputs) made.push_back(each.to(options).detach().requires_grad_());
  return made;
}

/// The output, and the gradients of its sum by weights, in fp32 on the CPU.
Tensors outcome(const Tensors& leaves, const Trial& trial) {
  const at::AutoGradMode with_gradients(true);
  Surroundings around;
  around.visibility = std::make_shared<const Visibility>(trial.visibility(leaves[0].device()));
  const auto output = Mixing(trial.config, 0)
                          .mix(leaves[0], leaves[1], leaves[2], around, leaves.size() > 3 ? leaves[3] : at::Tensor());
  const auto weights = at::arange(output.numel(), at::kFloat).mul(0.1).cos().view(output.sizes());
  auto all = torch::autograd::grad({(output * weights.to(output.options())).sum()}, leaves);
  all.push_back(output.detach());
  for (auto& each : all) each = each.to(at::kCPU, at::kFloat);
  return all;
}

/// Whether no element is off by more than the tolerance of the largest: keys' gradients are sums over heads and tokens.
bool is_near(const at::Tensor& got, const at::Tensor& expected) {
  const auto most = std::max(1.0, expected.abs().max().item<double>());
  return at::allclose(got, expected, kTolerance, kTolerance * most);
}

struct Verdict {
  std::string fault;  ///< empty: none
  AttentionWay way = AttentionWay::NotTold;
};

Verdict judge(const Tensors& there, const Trial& trial, const Tensors& expected) {
  const NotesApart apart;
  Verdict verdict;
  try {
    const auto got = outcome(there, trial);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!is_near(got[i], expected[i])) verdict.fault = "its numbers are not the CPU's";
    }
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    verdict.fault = text.substr(0, text.find('\n'));
  }
  if (const auto ran = ways_that_ran(); ran.size() == 1) verdict.way = ran.front();
  return verdict;
}

/// False where there is nothing to take in its place.
bool switch_off(AttentionWay way, c10::DeviceType device) {
  auto& context = at::globalContext();
  switch (way) {
    case AttentionWay::Cudnn:
      context.setSDPUseCuDNN(false);
      return true;
    case AttentionWay::Flash:
      context.setSDPUseFlash(false);
      return true;
    case AttentionWay::MemoryEfficient:
      context.setSDPUseMemEfficient(false);
      return true;
    case AttentionWay::OfDevice:
      context.setSDPUseOverrideable(false);
      return true;
    case AttentionWay::ByLengths:
      register_attention_by_length(device, nullptr);
      return true;
    default:
      return false;
  }
}

/// Tries one kind of layer and row until a way is right.
void try_rows(c10::Device device, at::ScalarType dtype, const Trial& trial, std::vector<std::string>& lines) {
  const auto inputs = small_inputs(trial.config, dtype);
  const auto expected = [&] {
    const NotesApart apart;
    return outcome(leaves(inputs, at::kFloat), trial);
  }();
  const auto there = leaves(inputs, at::TensorOptions(device));
  for (auto before = AttentionWay::NotTold;;) {
    const auto [fault, way] = judge(there, trial, expected);
    if (fault.empty()) return;
    TORCH_CHECK(way != before && switch_off(way, device.type()), "attention on ", device, " (", name_of(way),
                ") is not the CPU's: ", fault, "; use another device, or --device cpu");
    lines.push_back(c10::str("note: attention (", name_of(way), ") does not work here (", fault,
                             "): switched off, the next kernel runs in its place, slower and as right",
                             way == AttentionWay::Cudnn ? "; install LibTorch's cuDNN whole" : ""));
    before = way;
  }
}

}  // namespace

std::vector<std::string> check_attention(c10::Device device, at::ScalarType dtype, const DecoderConfig& config,
                                         const RowsOfJob& rows) {
  std::vector<std::string> lines;
  if (device.is_cpu()) return lines;
  for (const auto& trial : trials_of(config, rows)) try_rows(device, dtype, trial, lines);
  return lines;
}

void check_attention(const Place& place, const DecoderConfig& config, const RowsOfJob& rows) {
  const auto dtype = place.policy.precision.param_dtype.value_or(at::kFloat);
  for (const auto& line : check_attention(place.device.device, dtype, config, rows)) {
    std::cerr << (place.is_first() ? "" : c10::str("rank ", place.rank, ": ")) << line << '\n';
  }
}

}  // namespace sealift::trainer
