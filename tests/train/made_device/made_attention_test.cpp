// SPDX-License-Identifier: Apache-2.0
// Which attention runs on a device that is not the CPU: ATen is asked, what ran is told, and what is wrong is switched
// off.
#include "tests/train/made_device/fused_kernels.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/models/attention.hpp"
#include "trainer/models/attention_check.hpp"
#include "trainer/models/attention_choice.hpp"

#include <doctest/doctest.h>

using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

using Names = std::vector<std::string>;

/// A row of two sequences with padding behind, and one that is whole; as TokenBatch has segments.
at::Tensor packed() {
  return torch::tensor({{0, 0, 0, 1, 1, 1, 1, -1}, {0, 0, 0, 0, 0, 0, 0, 0}}, at::kLong);
}

struct LayerOutcome {
  at::Tensor output, gradient;
  Names ran;
};

/// One attention layer of four heads over `segments` (undefined: dense rows), forward and backward, in fp32 on the CPU.
LayerOutcome run_layer(at::Device device, at::ScalarType dtype, const at::Tensor& segments, std::int64_t window = 0) {
  torch::manual_seed(7);
  Attention layer(DecoderConfig{.width = 16, .heads = 4, .kv_heads = 2, .head_dim = 4, .windows = {window}}, 0);
  {
    at::NoGradGuard no_grad;
    for (auto& each : layer->parameters()) each.normal_(0, 0.3);
  }
  auto input = torch::randn({2, 8, 16});
  layer->to(device, dtype);
  input = input.to(device, dtype).requires_grad_();
  const Rope rope({}, 4, 64);
  const auto shape = row_shape_of(segments.defined() ? segments.to(device) : segments, {});
  const Surroundings around{
      .rope = rope.tables(torch::arange(8).unsqueeze(0).to(device)),
      .visibility = std::make_shared<const Visibility>(segments.defined() ? segments.to(device) : segments, 8, shape)};
  forget_attention_that_ran();
  const auto output = layer(input, around);
  output.pow(2).sum().backward();
  return {output.to(at::kCPU, at::kFloat), input.grad().to(at::kCPU, at::kFloat), attention_that_ran()};
}

/// bf16 against fp32.
void check_close(const LayerOutcome& got, const LayerOutcome& expected) {
  const auto distance = [](const at::Tensor& one, const at::Tensor& other) {
    return ((one - other).norm() / other.norm()).item<double>();
  };
  CHECK(distance(got.output, expected.output) < 2e-2);
  CHECK(distance(got.gradient, expected.gradient) < 2e-2);
}

/// What asks for a plain causal attention and nothing else.
DecoderConfig plain_config() {
  return {.heads = 2, .kv_heads = 2, .head_dim = 64, .windows = {0}};
}

/// Layers with a window and layers without one.
DecoderConfig windowed_config() {
  auto config = plain_config();
  config.windows = {0, 4096};
  return config;
}

/// The made device says that it attends by lengths while this lives, in the dtypes of flash attention.
struct ByLengths {
  ByLengths() {
    register_attention_by_length(made::device(0).type(), [](const at::Tensor& queries, const auto&, const auto&) {
      return queries.scalar_type() == at::kBFloat16 || queries.scalar_type() == at::kHalf;
    });
  }
  ~ByLengths() { register_attention_by_length(made::device(0).type(), nullptr); }
};

}  // namespace

TEST_CASE("packed rows and windows run by lengths where the device says that it can, and else with a mask") {
  made::install();
  const auto there = made::device(0);
  for (const std::int64_t window : {0, 2}) {
    for (const auto& segments : {packed(), at::Tensor()}) {
      if (!segments.defined() && window == 0) continue;
      CAPTURE(window);
      const auto expected = run_layer(at::kCPU, at::kFloat, segments, window);
      const auto masked = run_layer(there, at::kBFloat16, segments, window);
      CHECK(masked.ran == Names{"math"});
      check_close(masked, expected);
      const ByLengths can;
      const auto by_lengths = run_layer(there, at::kBFloat16, segments, window);
      CHECK(by_lengths.ran == Names{"by lengths"});
      check_close(by_lengths, expected);
      CHECK(run_layer(there, at::kFloat, segments, window).ran == Names{"math"});
    }
  }
}

TEST_CASE("dense rows take what ATen says, and several ways are all told") {
  made::install();
  CHECK(run_layer(made::device(0), at::kBFloat16, {}).ran == Names{"own"});
  CHECK(run_layer(at::kCPU, at::kFloat, {}).ran == Names{"flash"});
  note_attention(AttentionWay::ByLengths);
  note_attention(AttentionWay::Cudnn);
  CHECK(attention_that_ran() == Names{"flash", "cudnn", "by lengths"});
  at::globalContext().setSDPUseFlash(false);
  CHECK(run_layer(at::kCPU, at::kFloat, {}).ran == Names{"math"});
  at::globalContext().setSDPUseFlash(true);
}

TEST_CASE("an attention that gives other numbers than the CPU is switched off with a line, and the next one is right") {
  made::install();
  const auto there = made::device(1);
  CHECK(check_attention(at::kCPU, at::kBFloat16, plain_config()).empty());
  CHECK(check_attention(there, at::kBFloat16, plain_config()).empty());
  CHECK(at::globalContext().userEnabledOverrideableSDP());

  made::break_attention(true);
  const auto lines = check_attention(there, at::kBFloat16, plain_config());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "note: attention (own) does not work here (its numbers are not the CPU's): switched off, the next "
        "kernel runs in its place, slower and as right");
  const auto after = run_layer(there, at::kBFloat16, {});
  CHECK(after.ran == Names{"math"});
  check_close(after, run_layer(at::kCPU, at::kFloat, {}));
  CHECK(check_attention(there, at::kBFloat16, plain_config()).empty());
  made::break_attention(false);
  at::globalContext().setSDPUseOverrideable(true);
}

TEST_CASE("an attention by lengths that fails or is wrong is switched off before a job of such rows trusts it") {
  made::install();
  const auto there = made::device(1);
  const auto check = [&](const RowsOfJob& rows, at::ScalarType dtype = at::kBFloat16) {
    return check_attention(there, dtype, windowed_config(), rows);
  };
  const RowsOfJob plain{.longest = 4096}, packed_rows{.packed = true}, windows{.longest = 4097},
      both{.packed = true, .longest = 4097};
  const auto line = [](const std::string& fault) {
    return Names{"note: attention (by lengths) does not work here (" + fault +
                 "): switched off, the next kernel runs in its place, slower and as right"};
  };
  for (const auto& rows : {packed_rows, windows, both}) CHECK(check(rows).empty());  // by a mask
  for (const auto& [how, fault] : {std::pair{made::Broken::Wrong, "its numbers are not the CPU's"},
                                   {made::Broken::Fails, "no kernel image is available for execution on the device"}}) {
    for (const auto& rows : {packed_rows, windows, both}) {
      const ByLengths can;
      forget_attention_that_ran();
      CHECK(check(both).empty());
      CHECK(attention_that_ran().empty());  // a trial is no part of the job
      made::break_attention_by_length(how);
      CHECK(check(plain).empty());             // asks for none
      CHECK(check(rows, at::kFloat).empty());  // nor does fp32, which it does not take
      CHECK(check(rows) == line(fault));
      CHECK(check(rows).empty());
      for (const std::int64_t window : {0, 2}) {
        const auto after = run_layer(there, at::kBFloat16, packed(), window);
        CHECK(after.ran == Names{"math"});
        check_close(after, run_layer(at::kCPU, at::kFloat, packed(), window));
      }
      made::break_attention_by_length(made::Broken::No);
    }
  }
  CHECK(at::globalContext().userEnabledOverrideableSDP());  // what plain rows take was right
}

TEST_CASE("a device on which no attention works is refused with what it said") {
  CHECK_THROWS_WITH(check_attention(at::kMeta, at::kBFloat16, plain_config()),
                    doctest::Contains("attention on meta ("));
}
