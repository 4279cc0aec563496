// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/rope.hpp"

#include "trainer/kernels/rope_body.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace sealift::trainer::kernels {
namespace {

constexpr unsigned kThreads = 128, kWidth = 4;

template <class Value, unsigned kAtOnce>
constexpr Kernel kernel_of(const char* name) {
  return {name, kThreads, run_on_host<RopeArgs, rope<Value, kAtOnce, HostBlock>>};
}

constexpr Kernel kFp32 = kernel_of<float, 1>("sealift_rope_fp32");
constexpr Kernel kBf16 = kernel_of<Bf16, 1>("sealift_rope_bf16");
constexpr Kernel kFp16 = kernel_of<Fp16, 1>("sealift_rope_fp16");
constexpr Kernel kFp32By4 = kernel_of<float, kWidth>("sealift_rope_fp32_by_4");
constexpr Kernel kBf16By4 = kernel_of<Bf16, kWidth>("sealift_rope_bf16_by_4");
constexpr Kernel kFp16By4 = kernel_of<Fp16, kWidth>("sealift_rope_fp16_by_4");

const Kernel& rope_kernel(at::ScalarType type, bool by_4) {
  if (type == at::kFloat) return by_4 ? kFp32By4 : kFp32;
  if (type == at::kBFloat16) return by_4 ? kBf16By4 : kBf16;
  return by_4 ? kFp16By4 : kFp16;
}

bool takes_heads(const at::Tensor& heads) {
  const auto type = heads.scalar_type();
  return heads.dim() == 4 && heads.stride(3) == 1 && heads.numel() > 0 &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

bool takes_table(const at::Tensor& table, const at::Tensor& heads) {
  return table.scalar_type() == at::kFloat && table.is_contiguous() && table.dim() == 4 && table.size(2) == 1 &&
         (table.size(0) == 1 || table.size(0) == heads.size(0)) && table.size(1) == heads.size(1) &&
         table.size(3) * 2 == heads.size(3) && table.device() == heads.device();
}

/// Whether packs of four begin where their size divides the address, in each token and head.
bool in_fours(const at::Tensor& heads) {
  const auto bytes = static_cast<std::uintptr_t>(heads.element_size()) * kWidth;
  if (reinterpret_cast<std::uintptr_t>(heads.const_data_ptr()) % bytes != 0) return false;
  for (int i = 0; i < 3; ++i) {
    if (heads.size(i) > 1 && heads.stride(i) % kWidth != 0) return false;
  }
  return heads.size(3) / 2 % kWidth == 0;
}

bool table_in_fours(const at::Tensor& table) {
  return reinterpret_cast<std::uintptr_t>(table.const_data_ptr()) % (sizeof(float) * kWidth) == 0;
}

RopeHeads heads_of(const at::Tensor& from, const at::Tensor& to) {
  return {.from = from.const_data_ptr(),
          .to = to.mutable_data_ptr(),
          .from_batch = from.stride(0),
          .from_time = from.stride(1),
          .from_head = from.stride(2),
          .to_batch = to.stride(0),
          .to_time = to.stride(1),
          .to_head = to.stride(2),
          .heads = static_cast<unsigned>(from.size(2))};
}

}  // namespace

bool takes_rope(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& cos, const at::Tensor& sin) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  return takes_heads(queries) && takes_heads(keys) && queries.scalar_type() == keys.scalar_type() &&
         queries.device() == keys.device() && queries.size(0) == keys.size(0) && queries.size(1) == keys.size(1) &&
         queries.size(3) == keys.size(3) && takes_table(cos, queries) && takes_table(sin, queries) &&
         queries.size(0) * queries.size(1) <= kMost && (queries.size(2) + keys.size(2)) * queries.size(3) <= kMost;
}

void rope(Launcher& launcher, const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& cos,
          const at::Tensor& sin, int direction, const at::Tensor& to_queries, const at::Tensor& to_keys) {
  const auto half = cos.size(3), time = cos.size(1);
  const RopeArgs args{.queries = heads_of(queries, to_queries),
                      .keys = heads_of(keys, to_keys),
                      .cos = cos.const_data_ptr<float>(),
                      .sin = sin.const_data_ptr<float>(),
                      .table_batch = cos.size(0) == 1 ? 0 : time * half,
                      .time = static_cast<unsigned>(time),
                      .half = static_cast<unsigned>(half),
                      .direction = static_cast<float>(direction)};
  const bool by_4 = in_fours(queries) && in_fours(keys) && in_fours(to_queries) && in_fours(to_keys) &&
                    table_in_fours(cos) && table_in_fours(sin);
  launcher.launch(rope_kernel(queries.scalar_type(), by_4), static_cast<unsigned>(queries.size(0) * time), &args,
                  sizeof args, queries.device());
  note_kernel("rope");
}

std::string rope_fault(Launcher& launcher, c10::Device device) {
  HostLauncher host;
  const auto angles = at::arange(3 * 8, at::kFloat).view({1, 3, 1, 8});
  const std::array tables{angles.cos(), angles.sin()}, there{tables[0].to(device), tables[1].to(device)};
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int from : {0, 1}) {  // where packs of four begin, and between
      const auto whole = at::arange(2 * 3 * 3 * 17, at::kFloat).sin().to(type).view({2, 3, 3, 17});
      const auto heads = whole.narrow(3, from, 16).contiguous().view({2, 3, 3, 16});
      const auto memory = at::empty({heads.numel() + 1}, heads.options().device(device));
      const auto on_device = memory.narrow(0, from, heads.numel()).view(heads.sizes());
      on_device.copy_(heads);
      const auto right = at::empty_like(heads), given = at::empty_like(on_device);
      const auto part = [](const at::Tensor& all, bool keys) { return all.narrow(2, keys ? 2 : 0, keys ? 1 : 2); };
      rope(host, part(heads, false), part(heads, true), tables[0], tables[1], 1, part(right, false), part(right, true));
      rope(launcher, part(on_device, false), part(on_device, true), there[0], there[1], 1, part(given, false),
           part(given, true));
      if (!given.cpu().equal(right)) return c10::str("rope in ", type, " gives other numbers than the host's");
    }
  }
  return {};
}

std::vector<Kernel> rope_kernels() {
  return {kFp32, kBf16, kFp16, kFp32By4, kBf16By4, kFp16By4};
}

}  // namespace sealift::trainer::kernels
