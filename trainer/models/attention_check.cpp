// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention_check.hpp"

#include "trainer/models/attention.hpp"
#include "trainer/models/attention_choice.hpp"

namespace sealift::trainer {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Of half precision against fp32, where values are about 1.
constexpr double kTolerance = 5e-2;

constexpr std::int64_t kTime = 64, kWindow = 16;

/// Queries, keys, values [1, time, heads, head_dim]: sizes that all kernels take.
Tensors small_inputs(at::ScalarType dtype) {
  Tensors inputs;
  for (const double pace : {0.1, 0.07, 0.13}) {
    inputs.push_back(at::arange(kTime * 2 * 64, at::kFloat).mul(pace).sin().view({1, kTime, 2, 64}).to(dtype));
  }
  return inputs;
}

/// A kind of row that attention is tried with.
struct Trial {
  at::Tensor segments;  ///< [1, time], as TokenBatch has them; undefined: one sequence
  std::int64_t window = 0;

  Visibility visibility(c10::Device device) const {
    auto shape = row_shape_of(segments, {});
    if (!segments.defined()) return {segments, kTime, shape};
    shape.starts = shape.starts.to(device);
    return {segments.to(device), kTime, shape};
  }
};

std::vector<Trial> trials_of(const RowsOfJob& rows) {
  const auto two = at::arange(kTime).ge(kTime / 2 + 8).to(at::kLong).unsqueeze(0);
  std::vector<Trial> trials{{}};
  if (rows.packed) trials.push_back({.segments = two});
  if (rows.windows) trials.push_back({.segments = rows.packed ? two : at::Tensor(), .window = kWindow});
  return trials;
}

Tensors leaves(const Tensors& inputs, const at::TensorOptions& options) {
  Tensors made;
  for (const auto& each : inputs) made.push_back(each.to(options).detach().requires_grad_());
  return made;
}

/// The output, and the gradients of its sum by `weights`, in fp32 on the CPU.
Tensors outcome(const Tensors& leaves, const Trial& trial, const at::Tensor& weights) {
  const at::AutoGradMode with_gradients(true);
  const auto output = attend_visible(leaves[0], leaves[1], leaves[2], trial.visibility(leaves[0].device()),
                                     {.window = trial.window}, {});
  auto all = torch::autograd::grad({(output * weights.to(output.options())).sum()}, leaves);
  all.push_back(output.detach());
  for (auto& each : all) each = each.to(at::kCPU, at::kFloat);
  return all;
}

struct Verdict {
  std::string fault;  ///< empty: none
  AttentionWay way = AttentionWay::NotTold;
};

Verdict judge(const Tensors& there, const Trial& trial, const Tensors& expected, const at::Tensor& weights) {
  const NotesApart apart;
  Verdict verdict;
  try {
    const auto got = outcome(there, trial, weights);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!at::allclose(got[i], expected[i], kTolerance, kTolerance)) verdict.fault = "its numbers are not the CPU's";
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

/// Tries one kind of row until a way is right.
void try_rows(c10::Device device, at::ScalarType dtype, const Trial& trial, std::vector<std::string>& lines) {
  const auto inputs = small_inputs(dtype);
  const auto weights = inputs[0].to(at::kFloat).cos();
  const auto expected = [&] {
    const NotesApart apart;
    return outcome(leaves(inputs, at::kFloat), trial, weights);
  }();
  const auto there = leaves(inputs, at::TensorOptions(device));
  for (auto before = AttentionWay::NotTold;;) {
    const auto [fault, way] = judge(there, trial, expected, weights);
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

std::vector<std::string> check_attention(c10::Device device, at::ScalarType dtype, const RowsOfJob& rows) {
  std::vector<std::string> lines;
  if (device.is_cpu()) return lines;
  for (const auto& trial : trials_of(rows)) try_rows(device, dtype, trial, lines);
  return lines;
}

void check_attention(const Place& place, const RowsOfJob& rows) {
  const auto dtype = place.policy.precision.param_dtype.value_or(at::kFloat);
  for (const auto& line : check_attention(place.device.device, dtype, rows)) {
    std::cerr << (place.is_first() ? "" : c10::str("rank ", place.rank, ": ")) << line << '\n';
  }
}

}  // namespace sealift::trainer
