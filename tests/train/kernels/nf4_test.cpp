// SPDX-License-Identifier: Apache-2.0
// NF4 by a kernel against NF4 by tensors' operations: to the bit, for any part of a parameter, at any address, in
// whatever order threads run; and a flat that a codec keeps.
#include "trainer/kernels/nf4.hpp"

#include "tests/support/ranks.hpp"
#include "tests/train/kernels/counted.hpp"
#include "tests/train/kernels/on_host.hpp"
#include "trainer/kernels/nf4_body.hpp"

#include <doctest/doctest.h>
#include <sealift/train.hpp>

using namespace sealift;
using namespace sealift::trainer;
using test::Draw, test::OnHost, test::same;

namespace {

/// The CPU decodes by the kernel while it lives.
class Offered {
 public:
  Offered() { kernels::offer_nf4(at::kCPU); }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;
  ~Offered() { kernels::offer_nf4(at::kCPU, false); }
};

at::Tensor bytes_of(Draw& draw, std::int64_t count) {
  const auto from = draw.often() ? 0 : draw.below(8);
  return at::randint(256, {from + count}, at::kByte).narrow(0, from, count);
}

train::EncodedNf4 draw_part(Draw& draw, std::int64_t n) {
  const auto blocks = train::nf4::blocks_of(n), first = draw.below(2) == 0 ? 0 : draw.below(600);
  return {.codes = bytes_of(draw, (n + 1) / 2),
          .scale_codes = bytes_of(draw, blocks),
          .code = torch::tensor(at::ArrayRef<float>(train::nf4::kCode)),
          .map = train::nf4::dynamic_map(),
          .statistics = draw.values({1 + train::nf4::groups_of(first + blocks)}, at::kFloat),
          .first_block = first};
}

/// As Nf4Codec does it by tensors.
at::Tensor by_tensors(const train::EncodedNf4& part, std::int64_t n, at::ScalarType type) {
  const auto blocks = train::nf4::blocks_of(n);
  auto scales = part.map.index_select(0, part.scale_codes.to(at::kInt));
  const auto group = (at::arange(blocks) + part.first_block).div(256, "floor");
  scales.mul_(part.statistics.index_select(0, group + 1)).add_(part.statistics[0]);
  auto out = at::empty({n}, type);
  train::nf4::dequantize_by_tensors(part.codes, scales, out, part.code);
  return out;
}

}  // namespace

TEST_CASE("NF4 by the kernel gives the bits of tensors' operations, in every order of threads") {
  torch::manual_seed(3);
  Draw draw;
  const Offered offered;
  for (int round = 0; round < 120; ++round) {
    const auto n = draw.below(3) == 0 ? 1 + draw.below(200) : 1 + draw.below(40'000);
    const auto part = draw_part(draw, n);
    const auto type = draw.type();
    const auto expected = by_tensors(part, n, type);
    for (const auto order : test::kOrders) {
      const OnHost host(order);
      const auto from = draw.often() ? 0 : draw.below(8);
      const auto memory = at::full({from + n + 9}, 7, at::TensorOptions(type));
      const auto out = memory.narrow(0, from, n).fill_(std::numeric_limits<double>::quiet_NaN());
      CAPTURE(round);
      CAPTURE(n);
      CAPTURE(type);
      REQUIRE(train::decode_nf4(part, out));
      REQUIRE(kernels::kernels_that_ran().contains("nf4"));
      REQUIRE(same(out, expected));
      REQUIRE(memory.narrow(0, 0, from).eq(7).all().item<bool>());
      REQUIRE(memory.narrow(0, from + n, 9).eq(7).all().item<bool>());
    }
  }
}

namespace {

/// Runs fp32's kernels with numbers that count.
class CountingNf4 final : public kernels::Launcher {
 public:
  void launch(const kernels::Kernel& kernel, unsigned blocks, const void* args, std::size_t, c10::Device) override {
    using kernels::Counted, kernels::HostBlock, kernels::Nf4Args;
    const kernels::HostGrid grid{.blocks = blocks, .threads = kernel.threads, .order = kernels::Order::Drawn};
    const std::string name = kernel.name;
    REQUIRE(name.starts_with("sealift_nf4_fp32"));
    name.ends_with("by_8") ? kernels::run_on_host<Nf4Args, kernels::nf4<Counted, true, HostBlock>>(grid, args)
                           : kernels::run_on_host<Nf4Args, kernels::nf4<Counted, false, HostBlock>>(grid, args);
  }
};

}  // namespace

TEST_CASE("NF4 by the kernel writes every value once") {
  const Offered offered;
  kernels::register_launcher(at::kCPU, std::make_shared<CountingNf4>());
  Draw draw;
  for (const std::int64_t n : {1, 7, 8, 63, 64, 65, 2047, 2048, 2049, 9001}) {
    CAPTURE(n);
    const auto out = at::empty({n});
    kernels::Counted::writes().clear();
    CHECK(train::decode_nf4(draw_part(draw, n), out));
    CHECK(kernels::written(out.const_data_ptr(), static_cast<std::size_t>(n)) == std::pair{1, 1});
  }
  kernels::register_launcher(at::kCPU, nullptr);
}

TEST_CASE("NF4 goes the way of tensors with what the kernel does not take, and where there is none") {
  Draw draw;
  const auto part = draw_part(draw, 100);
  const auto out = at::empty({100});
  CHECK_FALSE(train::decode_nf4(part, out));  // nobody offers it
  const Offered offered;
  CHECK_FALSE(train::decode_nf4(part, out));  // there is no launcher
  const OnHost host(kernels::Order::Given);
  CHECK(train::decode_nf4(part, out));
  CHECK_FALSE(train::decode_nf4(part, out.to(at::kDouble)));
  CHECK_FALSE(train::decode_nf4(part, at::empty({200}).slice(0, 0, 200, 2)));
  CHECK_FALSE(train::decode_nf4(part, at::empty({0})));
  auto short_one = part;
  short_one.scale_codes = part.scale_codes.narrow(0, 0, 1);
  CHECK_FALSE(train::decode_nf4(short_one, out));
  short_one = part;
  short_one.statistics = part.statistics.narrow(0, 0, 1);
  CHECK_FALSE(train::decode_nf4(short_one, out));
  short_one = part;
  short_one.codes = part.codes.narrow(0, 0, 49);
  CHECK_FALSE(train::decode_nf4(short_one, out));
}

TEST_CASE("a flat that ranks keep in NF4 is decoded by the kernel to the same bits") {
  const auto layout = train::make_flat_layout({{20, 75}, {3}, {1000, 41}, {64}}, 2, train::Nf4Codec::kBlock);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    train::Nf4Codec codecs[2];
    at::Tensor messages;
    test::on_ranks(2, [&](const train::World& world) {
      const train::Policy policy{.method = train::ParallelMethod::Fsdp};
      auto groups = train::make_groups(world, train::make_mesh(policy, world.size));
      const auto read = [](std::size_t i, std::int64_t begin, at::Tensor to) {
        to.copy_(at::sin(at::arange(begin, begin + to.numel(), at::kDouble) * (0.7 + static_cast<double>(i))));
      };
      auto& codec = codecs[world.rank];
      const auto own = codec.store(layout, read, at::TensorOptions(type), groups, "");
      const auto all = at::empty({2 * own.numel()}, at::kByte);
      groups.shard.all_gather(all, own, "").wait();
      if (world.rank == 0) messages = all;
    });
    const auto plain = at::zeros({layout.padded_numel()}, type), ours = at::zeros({layout.padded_numel()}, type);
    codecs[0].decode(plain, messages, 2);
    const Offered offered;
    const OnHost host(kernels::Order::Drawn);
    codecs[1].decode(ours, messages, 2);
    CHECK(kernels::kernels_that_ran() == std::set<std::string>{"nf4"});
    CHECK(plain.abs().max().item<float>() > 0.9F);
    CHECK(ours.equal(plain));
  }
}
