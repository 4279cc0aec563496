// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/nf4.hpp"

#include "trainer/kernels/nf4_body.hpp"
#include "trainer/kernels/operands.hpp"

#include <sealift/train/flat/nf4_decoder.hpp>

#include <limits>

namespace sealift::trainer::kernels {
namespace {

template <class Value, bool kPacked>
constexpr Kernel nf4_of(const char* name) {
  return {name, kNf4Threads, run_on_host<Nf4Args, nf4<Value, kPacked, HostBlock>>};
}

constexpr OfTypes kNf4{nf4_of<float, false>("sealift_nf4_fp32"), nf4_of<Bf16, false>("sealift_nf4_bf16"),
                       nf4_of<Fp16, false>("sealift_nf4_fp16")};
constexpr OfTypes kNf4Packed{nf4_of<float, true>("sealift_nf4_fp32_by_8"), nf4_of<Bf16, true>("sealift_nf4_bf16_by_8"),
                             nf4_of<Fp16, true>("sealift_nf4_fp16_by_8")};

bool takes_nf4(const train::EncodedNf4& part, const at::Tensor& out) {
  constexpr auto kMost = std::int64_t{std::numeric_limits<std::int32_t>::max()} * kNf4Threads;
  const auto n = out.numel();
  if (!is_taken(out.scalar_type()) || n == 0 || n > kMost || !out.is_contiguous()) return false;
  const auto is = [&](const at::Tensor& tensor, at::ScalarType type, std::int64_t least) {
    return tensor.scalar_type() == type && tensor.is_contiguous() && tensor.numel() >= least &&
           tensor.device() == out.device();
  };
  const auto blocks = (n + 63) / 64;
  return is(part.codes, at::kByte, (n + 1) / 2) && is(part.scale_codes, at::kByte, blocks) &&
         is(part.code, at::kFloat, 16) && is(part.map, at::kFloat, 256) &&
         is(part.statistics, at::kFloat, 1 + (part.first_block + blocks + 255) / 256);
}

bool nf4_by(Launcher& launcher, const train::EncodedNf4& part, const at::Tensor& out) {
  if (!takes_nf4(part, out)) return false;
  const Nf4Args args{.codes = part.codes.const_data_ptr<std::uint8_t>(),
                     .scales = part.scale_codes.const_data_ptr<std::uint8_t>(),
                     .code = part.code.const_data_ptr<float>(),
                     .map = part.map.const_data_ptr<float>(),
                     .statistics = part.statistics.const_data_ptr<float>(),
                     .to = out.mutable_data_ptr(),
                     .values = out.numel(),
                     .first_block = part.first_block};
  const bool packed = begins_at(part.codes, kNf4Values / 2) && begins_at(out, kNf4Values * out.element_size());
  constexpr std::int64_t kOfBlock = kNf4Threads * kNf4Values;
  launcher.launch((packed ? kNf4Packed : kNf4).of(out.scalar_type()),
                  static_cast<unsigned>((out.numel() + kOfBlock - 1) / kOfBlock), &args, sizeof args, out.device());
  return true;
}

}  // namespace

void offer_nf4(c10::DeviceType type, bool offered) {
  if (!offered) return train::register_nf4_decoder(type, nullptr);
  train::register_nf4_decoder(type, [](const train::EncodedNf4& part, const at::Tensor& out) {
    const auto launcher = launcher_of(out.device());
    if (!launcher || !nf4_by(*launcher, part, out)) return false;
    note_kernel("nf4");
    return true;
  });
}

std::vector<Kernel> nf4_kernels() {
  std::vector<Kernel> all;
  for (const auto& each : {kNf4, kNf4Packed}) all.insert(all.end(), {each.fp32, each.bf16, each.fp16});
  return all;
}

std::string nf4_fault(Launcher& launcher, c10::Device device) {
  HostLauncher host;
  const auto bytes = [](std::int64_t count, std::int64_t pace) {
    return (at::arange(count) * pace).remainder(256).to(at::kByte);
  };
  const auto rising = [](std::int64_t count) { return at::arange(count, at::kFloat).sub(3).div(7); };
  const train::EncodedNf4 here{.codes = bytes(1001, 37),
                               .scale_codes = bytes(32, 11),
                               .code = rising(16),
                               .map = rising(256),
                               .statistics = rising(3),
                               .first_block = 250};
  const train::EncodedNf4 there{.codes = here.codes.to(device),
                                .scale_codes = here.scale_codes.to(device),
                                .code = here.code.to(device),
                                .map = here.map.to(device),
                                .statistics = here.statistics.to(device),
                                .first_block = here.first_block};
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int from : {0, 1}) {  // where packs of eight begin, and between
      const auto right = at::zeros({2001}, type), given = at::zeros({2002}, at::TensorOptions(device).dtype(type));
      TORCH_CHECK(nf4_by(host, here, right) && nf4_by(launcher, there, given.narrow(0, from, 2001)),
                  "nf4 does not take its trial");
      if (!given.narrow(0, from, 2001).cpu().equal(right)) {
        return c10::str("nf4 in ", type, " gives other numbers than the host's");
      }
    }
  }
  return {};
}

}  // namespace sealift::trainer::kernels
