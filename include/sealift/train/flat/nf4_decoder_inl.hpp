// SPDX-License-Identifier: Apache-2.0
// The bodies of nf4_decoder.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/nf4_decoder.hpp>

namespace sealift::train {

namespace detail {

/// What this program has registered.
struct Nf4Decoders {
  std::mutex mutex;
  std::map<at::DeviceType, DecodeNf4> of_types;

  static Nf4Decoders& of_program();
};

SEALIFT_BODY Nf4Decoders& Nf4Decoders::of_program() {
  static Nf4Decoders decoders;
  return decoders;
}

}  // namespace detail

SEALIFT_BODY void register_nf4_decoder(at::DeviceType type, DecodeNf4 decode) {
  auto& decoders = detail::Nf4Decoders::of_program();
  const std::lock_guard lock(decoders.mutex);
  decoders.of_types[type] = std::move(decode);
}

SEALIFT_BODY bool decode_nf4(const EncodedNf4& part, const at::Tensor& out) {
  auto& decoders = detail::Nf4Decoders::of_program();
  DecodeNf4 decode;
  {
    const std::lock_guard lock(decoders.mutex);
    const auto found = decoders.of_types.find(out.device().type());
    if (found != decoders.of_types.end()) decode = found->second;
  }
  return decode && decode(part, out);
}

}  // namespace sealift::train
