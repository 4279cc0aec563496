// SPDX-License-Identifier: Apache-2.0
// meta_device.hpp: what is built without memory, what keeps its values, and what a tensor keeps when it gets memory.
// First values themselves are in source_test.cpp.
#include "tests/train/fixture.hpp"

#include <thread>

using namespace sealift::test;

namespace {

template <class Holder>
bool all_on(const Holder& module, at::DeviceType device) {
  const auto parameters = module->parameters();
  return std::all_of(parameters.begin(), parameters.end(),
                     [&](const at::Tensor& tensor) { return tensor.device().type() == device; });
}

}  // namespace

TEST_CASE("under MetaDevice LibTorch's own modules have shapes, dtypes and requires_grad, and no memory") {
  const MetaDevice meta;
  CHECK(all_on(torch::nn::Linear(3, 4), at::kMeta));
  CHECK(all_on(torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 6).padding_idx(0)), at::kMeta));
  CHECK(all_on(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})), at::kMeta));
  CHECK(all_on(torch::nn::Conv2d(3, 4, 3), at::kMeta));
  CHECK(all_on(torch::nn::MultiheadAttention(8, 2), at::kMeta));
  CHECK(all_on(torch::nn::LSTM(3, 4), at::kMeta));
  CHECK(all_on(torch::nn::TransformerEncoderLayer(8, 2), at::kMeta));
  const torch::nn::Linear wide(1 << 20, 1 << 20);  // 4 TiB
  CHECK(wide->weight.sizes() == at::IntArrayRef({1 << 20, 1 << 20}));
  CHECK(wide->weight.requires_grad());
  CHECK(wide->weight.storage().data() == nullptr);
}

TEST_CASE("under MetaDevice tables, masks and statistics keep their values") {
  const MetaDevice meta;
  const auto frequencies = torch::pow(10000.0, torch::arange(0, 8, 2, torch::kFloat) / -8.0);
  CHECK(frequencies.allclose(torch::tensor({1.0f, 0.1f, 0.01f, 0.001f})));
  CHECK(torch::ones({3, 3}).tril().sum().item<float>() == 6);
  CHECK(torch::linspace(0, 1, 3)[1].item<float>() == 0.5f);
  CHECK(torch::full({2}, 7).sum().item<std::int64_t>() == 14);
  const torch::nn::BatchNorm1d norm(4);
  CHECK(all_on(norm, at::kMeta));
  CHECK(norm->running_var.equal(torch::ones({4})));
  CHECK(norm->num_batches_tracked.item<std::int64_t>() == 0);
}

TEST_CASE("MetaDevice leaves factories alone that name a device, other threads, and everything after it") {
  {
    const MetaDevice meta;
    CHECK(MetaDevice::lives());
    CHECK(torch::empty({2}).is_meta());
    CHECK(torch::rand({2}, torch::kHalf).is_meta());
    CHECK(torch::randn({2}, torch::device(torch::kCPU)).is_cpu());
    CHECK(torch::empty_like(torch::zeros({2})).is_cpu());
    bool elsewhere = true;
    std::thread([&] { elsewhere = MetaDevice::lives() || torch::empty({2}).is_meta(); }).join();
    CHECK(!elsewhere);
    const MetaDevice again;  // they may be nested
  }
  CHECK(!MetaDevice::lives());
  CHECK(torch::empty({2}).is_cpu());
}

TEST_CASE("a tensor that leaves the meta device is the same to modules, ties and autograd") {
  std::optional<MetaDevice> meta(std::in_place);
  torch::nn::Linear linear(3, 2);
  const auto tied = linear->weight;
  meta.reset();
  const auto accumulator = torch::autograd::impl::grad_accumulator(linear->weight);  // one of the meta device
  sealift::train::detail::replace_data(linear->weight, torch::ones({2, 3}));
  sealift::train::detail::replace_data(linear->bias, torch::zeros({2}));
  CHECK(tied.is_cpu());
  CHECK(tied.is_leaf());
  CHECK(tied.requires_grad());
  CHECK(linear->parameters().front().is_same(tied));
  linear(torch::full({1, 3}, 2.0)).sum().backward();
  CHECK(tied.grad().equal(torch::full({2, 3}, 2.0)));
  CHECK(linear->bias.grad().equal(torch::ones({2})));
}
