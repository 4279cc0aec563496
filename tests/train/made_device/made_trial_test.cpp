// SPDX-License-Identifier: Apache-2.0
// What is tried of attention before the first step: what the job's layers will ask of the device, in kind; seen by the
// calls that reach it.
#include "tests/train/made_device/fused_kernels.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/models/attention_check.hpp"

#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <string>

using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

using Calls = std::set<std::string>;

std::mutex calls_mutex;
Calls calls;

/// Notes a made device's attention: "6 x 24 of 2, 65 tokens, causal", or "capped".
std::unique_ptr<at::ObserverContext> note_call(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor() || !inputs[0].toTensor().is_privateuseone()) return nullptr;
  const std::string name = function.name();
  const std::lock_guard lock(calls_mutex);
  if (name == "aten::tanh_") calls.insert("capped");
  if (name != "aten::scaled_dot_product_attention") return nullptr;
  const auto queries = inputs[0].toTensor(), keys = inputs[1].toTensor();
  calls.insert(c10::str(queries.size(1), " x ", queries.size(3), " of ", keys.size(1), ", ", queries.size(2),
                        " tokens, ",
                        inputs[5].toBool()   ? "causal"
                        : inputs[3].isNone() ? "all"
                                             : "mask"));
  return nullptr;
}

/// What a trial of `config` over `rows` asks of a made device, in bf16.
Calls tried(const DecoderConfig& config, const RowsOfJob& rows) {
  made::install();
  calls.clear();
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&note_call).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  CHECK(check_attention(made::device(1), at::kBFloat16, config, rows).empty());
  at::removeCallback(handle);
  return calls;
}

DecoderConfig grouped() {
  return {.layers = 2, .heads = 6, .kv_heads = 2, .head_dim = 16, .max_positions = 64, .windows = {0, 0}};
}

}  // namespace

TEST_CASE("attention is tried with the job's own heads, over plain rows and over packed ones where the job has them") {
  const std::string plain = "6 x 16 of 2, 64 tokens, causal", masked = "6 x 16 of 2, 64 tokens, mask";
  CHECK(tried(grouped(), {.longest = 64}) == Calls{plain});
  CHECK(tried(grouped(), {.packed = true, .longest = 64}) == Calls{plain, masked});
  auto latent = grouped();
  latent.heads = 4;
  latent.head_dim = 24;
  latent.latent = LatentConfig{.keys = 8, .plain = 16, .turned = 8, .values = 12};
  CHECK(tried(latent, {.longest = 64}) == Calls{"4 x 24 of 4, 64 tokens, causal"});
}

TEST_CASE("windows, chunks, sinks and caps of the job's layers are tried where its rows meet them") {
  const std::string plain = "6 x 16 of 2, 64 tokens, causal", masked = "6 x 16 of 2, 64 tokens, mask";
  auto windowed = grouped();
  windowed.windows = {0, 4096};
  CHECK(tried(windowed, {.longest = 4096}) == Calls{plain});
  CHECK(tried(windowed, {.longest = 4097}) == Calls{plain, masked});
  auto chunked = grouped();  // Llama 4's
  chunked.chunks = {8192, 8192};
  CHECK(tried(chunked, {.longest = 8192}) == Calls{plain});
  CHECK(tried(chunked, {.longest = 8193}) == Calls{masked});
  CHECK(tried(chunked, {.packed = true, .longest = 8193}) == Calls{masked});
  auto sunk = windowed;  // gpt-oss's
  sunk.sinks = true;
  CHECK(tried(sunk, {.longest = 4097}) == Calls{"6 x 24 of 2, 65 tokens, causal", "6 x 24 of 2, 65 tokens, mask"});
  auto capped = windowed;  // Gemma 2's
  capped.score_cap = 50;
  capped.attention_scale = 1;
  CHECK(tried(capped, {.packed = true, .longest = 4097}) == Calls{"capped"});
}

TEST_CASE("an attention that is wrong for the job's width of heads alone is switched off") {
  made::install();
  made::break_attention_of(80);
  auto config = grouped();
  const auto lines = [&] { return check_attention(made::device(1), at::kBFloat16, config).size(); };
  CHECK(lines() == 0);
  config.head_dim = 80;
  CHECK(lines() == 1);
  CHECK(lines() == 0);
  made::break_attention_of(0);
  at::globalContext().setSDPUseOverrideable(true);
}

TEST_CASE("rows of a job are as long as it allows, and packed where it packs") {
  FineTuneOptions options;
  const auto config = grouped();
  CHECK(attended_rows(options, config).longest == 64);
  CHECK(!attended_rows(options, config).packed);
  options.max_length = 16;
  options.packing = true;
  CHECK(attended_rows(options, config).longest == 16);
  CHECK(attended_rows(options, config).packed);
}
