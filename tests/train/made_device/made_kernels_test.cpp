// SPDX-License-Identifier: Apache-2.0
// A decoder on a made device with the trainer's own kernels, and without: the same numbers.
#include "tests/train/made_device/made_device.hpp"
#include "tests/train/made_device/own_kernels.hpp"
#include "trainer/kernels/launcher.hpp"
#include "trainer/models/decoder.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

/// Log-probabilities of a batch and the gradients of all parameters, on the CPU.
std::vector<at::Tensor> decoder_outcome(at::ScalarType type, bool qk_norm) {
  made::install();
  torch::manual_seed(9);
  const DecoderConfig config{.family = "qwen3",
                             .vocabulary = 50,
                             .width = 32,
                             .mlp_width = 48,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 8,
                             .max_positions = 64,
                             .windows = {0, 0},
                             .qk_norm = qk_norm,
                             .initializer_range = 0.3};
  Decoder model(config, DecoderOptions{.dtype = type});
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.copy_(at::randn(parameter.sizes()) * 0.3);
  }
  model->to(made::device(0));
  const auto ids = torch::arange(24).remainder(50).view({2, 12});
  const auto batch = to_device({.ids = ids, .labels = (ids + 1) % 50}, made::device(0));
  const auto logs = std::get<0>(model(batch));
  logs.sum().backward();
  std::vector<at::Tensor> all{logs.detach().cpu()};
  for (const auto& parameter : model->parameters()) all.push_back(parameter.grad().cpu());
  return all;
}

}  // namespace

TEST_CASE("own kernels change a decoder's outputs and gradients by roundings at most") {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const bool qk_norm : {false, true}) {  // with norms queries and keys lie apart
      const auto expected = decoder_outcome(type, qk_norm);
      const made::OwnKernels own;
      kernels::forget_kernels_that_ran();
      const auto got = decoder_outcome(type, qk_norm);
      CHECK(kernels::kernels_that_ran() == std::set<std::string>{"head", "rope", "swiglu"});
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(type);
        CAPTURE(i);
        CHECK(got[i].isfinite().all().item<bool>());
        const double bound = type == at::kFloat ? 1e-5 : type == at::kHalf ? 1e-2 : 5e-2;
        CHECK((got[i] - expected[i]).abs().max().item<double>() <= bound * expected[i].abs().max().item<double>());
      }
    }
  }
}
