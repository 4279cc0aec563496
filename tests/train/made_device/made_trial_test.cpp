// SPDX-License-Identifier: Apache-2.0
// What is tried of attention before the first step: what the job's layers will ask of the device, in kind; seen by the
// calls that reach it.
#include "tests/support/temp_dir.hpp"
#include "tests/train/data/made_token_file.hpp"
#include "tests/train/made_device/fused_kernels.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/models/attention_check.hpp"

#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <fstream>
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

TEST_CASE("rows of a job are as long as its data make them, with padding, pairs, evaluations and KTO's others") {
  const sealift::test::TempDir folder;
  auto open = [&, number = 0](const sealift::test::MadeTokenFile& made) mutable {
    const auto path = folder.path() / std::to_string(number++);
    std::ofstream(path, std::ios::binary) << made.bytes();
    return TokenFile::open(path);
  };
  const std::vector<std::uint32_t> five{1, 2, 3, 4, 5}, four{1, 2, 3, 4};
  const std::vector<std::vector<bool>> counts{{false, true, true, true, true}, {false, true, true, true}};
  const auto chats = open(sealift::test::made_chats());  // the longest has 9 tokens
  const auto short_chats = open({.sequences = {five, four}, .counts = counts});
  const auto pairs = open({.kind = 2, .sequences = {five, four}, .counts = counts, .values = {0}});
  FineTuneOptions options;
  auto config = grouped();
  config.max_positions = 4096;
  const auto longest = [&](const TokenFile& file, const TokenFile* evaluation = nullptr) {
    return attended_rows(file, evaluation, options, config).longest;
  };
  CHECK(longest(chats) == 16);
  CHECK(longest(short_chats) == 8);
  CHECK(longest(short_chats, &chats) == 16);
  CHECK(longest(pairs) == 16);
  CHECK(attended_rows(pairs, nullptr, options, config).packed);
  CHECK_FALSE(attended_rows(chats, nullptr, options, config).packed);
  options.task = Task::Kto;
  CHECK(longest(chats) == 32);
  options.max_length = 20;
  CHECK(longest(chats) == 24);
  options = {};
  options.packing = true;
  CHECK(attended_rows(chats, nullptr, options, config).packed);
  CHECK(longest(chats) == 2048);  // not the model's 4096
  config.max_positions = 64;
  CHECK(longest(chats) == 64);
  options.max_length = 12;
  CHECK(longest(chats) == 12);
}
