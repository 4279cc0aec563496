// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention_choice.hpp"

#include <ATen/SDPBackend.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>

namespace sealift::trainer {
namespace {

constexpr std::array kNames{"math", "flash", "mem-efficient", "cudnn", "own", "by lengths", "capped", "not told"};

std::array<std::atomic<bool>, kNames.size()> ran{};

bool answers(const at::Tensor& tensor) {
  static const auto choice = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_fused_sdp_choice", "");
  const auto backend = tensor.key_set().highestBackendKey();
  return choice.hasKernelForDispatchKey(c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Dense, backend));
}

AttentionWay way_of(at::SDPBackend backend) {
  switch (backend) {
    case at::SDPBackend::math:
      return AttentionWay::Math;
    case at::SDPBackend::flash_attention:
      return AttentionWay::Flash;
    case at::SDPBackend::efficient_attention:
      return AttentionWay::MemoryEfficient;
    case at::SDPBackend::cudnn_attention:
      return AttentionWay::Cudnn;
    case at::SDPBackend::overrideable:
      return AttentionWay::OfDevice;
    default:
      return AttentionWay::NotTold;
  }
}

}  // namespace

const char* name_of(AttentionWay way) {
  return kNames[static_cast<std::size_t>(way)];
}

AttentionWay choose_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                              const std::optional<at::Tensor>& mask, bool is_causal, std::optional<double> scale) {
  if (!answers(queries)) return AttentionWay::NotTold;
  return way_of(static_cast<at::SDPBackend>(at::_fused_sdp_choice(queries, keys, values, mask, /*dropout_p=*/0.0,
                                                                  is_causal, scale,
                                                                  /*enable_gqa=*/queries.size(1) != keys.size(1))));
}

at::Tensor attend_rows(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       const std::optional<at::Tensor>& mask, bool is_causal, std::optional<double> scale) {
  if (!queries.is_meta()) note_attention(choose_attention(queries, keys, values, mask, is_causal, scale));
  return at::scaled_dot_product_attention(queries, keys, values, mask, /*dropout_p=*/0.0, is_causal, scale,
                                          /*enable_gqa=*/queries.size(1) != keys.size(1));
}

void note_attention(AttentionWay way) {
  ran[static_cast<std::size_t>(way)] = true;
}

std::vector<AttentionWay> ways_that_ran() {
  std::vector<AttentionWay> ways;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    if (ran[i]) ways.push_back(static_cast<AttentionWay>(i));
  }
  return ways;
}

std::vector<std::string> attention_that_ran() {
  std::vector<std::string> names;
  for (const auto way : ways_that_ran()) names.emplace_back(name_of(way));
  return names;
}

void forget_attention_that_ran() {
  for (auto& each : ran) each = false;
}

NotesApart::NotesApart() : before_(ways_that_ran()) {
  forget_attention_that_ran();
}

NotesApart::~NotesApart() {
  forget_attention_that_ran();
  for (const auto way : before_) note_attention(way);
}

}  // namespace sealift::trainer
