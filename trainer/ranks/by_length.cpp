// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/by_length.hpp"

#include <array>
#include <atomic>

namespace sealift::trainer {
namespace {

std::atomic<AttendsByLength>& answer_of(c10::DeviceType device) {
  static std::array<std::atomic<AttendsByLength>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> answers{};
  return answers.at(static_cast<std::size_t>(device));
}

}  // namespace

void register_attention_by_length(c10::DeviceType device, AttendsByLength attends) {
  answer_of(device) = attends;
}

bool attends_by_length(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  const auto attends = answer_of(queries.device().type()).load();
  return attends && attends(queries, keys, values);
}

}  // namespace sealift::trainer
