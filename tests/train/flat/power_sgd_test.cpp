// SPDX-License-Identifier: Apache-2.0
// power_sgd.hpp and power_sgd_transport.hpp: what low rank keeps exactly, what error feedback makes up for, what is
// sent, and that neither new buckets, a restart, nor a spoiled step changes what comes after.
// compression_oracle_test.py holds the numbers to PyTorch's hook. Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

constexpr std::int64_t kRanks = 2, kRows = 40, kColumns = 32;

/// A buffer of two matrices and a vector, with gaps.
const std::vector<BufferPart> kParts{
    {"first", 0, {kRows, kColumns}}, {"bias", 1280, {kColumns}}, {"second", 1312, {kRows, kColumns}}};
constexpr std::int64_t kNumel = 1312 + kRows * kColumns;

PowerSgdOptions at_once(std::int64_t rank) {
  return {.matrix_approximation_rank = rank, .start_iteration = 0};
}

/// Gradients of a step on a rank, divided by the ranks; those of a matrix have rank `order`.
at::Tensor gradients(std::int64_t rank, std::int64_t step, std::int64_t order) {
  auto buffer = torch::zeros({kNumel});
  double phase = static_cast<double>(rank * 5 + step);
  for (const auto& part : kParts) {
    if (part.sizes.size() == 1) {
      buffer.narrow(0, part.offset, kColumns).copy_(torch::cos(torch::arange(kColumns) + phase));
      continue;
    }
    auto matrix = buffer.narrow(0, part.offset, kRows * kColumns).view({kRows, kColumns});
    for (std::int64_t i = 0; i < order; ++i) {
      phase += 1.3;
      matrix += torch::outer(torch::sin(torch::arange(kRows) * phase), torch::cos(torch::arange(kColumns) * phase + i));
    }
  }
  return buffer / static_cast<double>(kRanks);
}

at::Tensor sum_of(std::int64_t step, std::int64_t order) {
  return gradients(0, step, order) + gradients(1, step, order);
}

at::Tensor part_of(const at::Tensor& buffer, std::size_t index) {
  std::int64_t numel = 1;
  for (const auto size : kParts[index].sizes) numel *= size;
  return buffer.narrow(0, kParts[index].offset, numel);
}

/// One rank's PowerSGD over one buffer.
struct Summing {
  Summing(const Groups& groups, const PowerSgdOptions& options, std::vector<BufferPart> parts = kParts)
      : group(groups.replicate), shared(std::make_shared<PowerSgd>(options)), transport(shared, std::move(parts)) {}

  at::Tensor sum(at::Tensor buffer) {
    transport.all_reduce(buffer, group, "buffer", 0).wait();
    shared->count_iteration();
    return buffer;
  }

  Collectives group;
  std::shared_ptr<PowerSgd> shared;
  PowerSgdTransport transport;
};

/// Runs `body(groups, rank)` on kRanks ranks.
template <class Body>
void on_group(const Body& body) {
  on_ranks(kRanks, [&](const World& world) { body(make_groups(world, {kRanks, 1}), world.rank); });
}

std::map<std::string, at::Tensor> copy_of(const std::map<std::string, at::Tensor>& state) {
  std::map<std::string, at::Tensor> copy;
  for (const auto& [name, value] : state) copy[name] = value.clone();
  return copy;
}

Policy power_sgd(std::int64_t rank, std::int64_t start) {
  Policy policy = ddp();
  policy.compression = {.gradients = GradientCompression::PowerSgd,
                        .power_sgd = {.matrix_approximation_rank = rank, .start_iteration = start}};
  return policy;
}

}  // namespace

TEST_CASE("a sum whose rank is no higher than the factors' is exact, and vectors always are, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    for (const std::int64_t order : {1, 2}) {  // Gram-Schmidt, and QR for more than two columns
      Summing summing(groups, at_once(order * kRanks));
      const auto got = summing.sum(gradients(rank, 0, order)), expected = sum_of(0, order);
      CHECK(got.allclose(expected, 1e-4, 1e-4));
      CHECK(part_of(got, 1).equal(part_of(expected, 1)));
    }
  });
}

TEST_CASE("what a step does not send is sent later: sums and errors together are the gradients, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    const auto missing = [&](bool feedback) {
      auto options = at_once(1);
      options.use_error_feedback = feedback;
      Summing summing(groups, options);
      auto got = torch::zeros({kNumel}), expected = got.clone();
      for (std::int64_t step = 0; step < 40; ++step) {  // the same gradients in every step
        got += summing.sum(gradients(rank, 0, 6));
        expected += sum_of(0, 6);
      }
      CHECK(part_of(got, 1).allclose(part_of(expected, 1)));
      for (const std::size_t index : {0, 2}) {
        if (!feedback) break;
        auto error = summing.shared->memories().at(kParts[index].name).error.clone().flatten();
        summing.group.all_reduce(error).wait();
        CHECK((part_of(got, index) + error).allclose(part_of(expected, index), 1e-3, 1e-3));
      }
      return ((got - expected).norm() / expected.norm()).item<double>();
    };
    CHECK(missing(true) < missing(false) / 2);
  });
}

TEST_CASE("a buffer is two all-reduces, of what is small with the first factors and of the second ones, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    Summing summing(groups, {.matrix_approximation_rank = 2, .start_iteration = 1});
    *groups.traffic = {};
    summing.sum(gradients(rank, 0, 3));
    CHECK(groups.traffic->all_reduce == Traffic{1, kNumel * 4});
    *groups.traffic = {};
    summing.sum(gradients(rank, 1, 3));
    CHECK(groups.traffic->all_reduce == Traffic{2, (kColumns + 2 * 2 * kRows) * 4 + 2 * 2 * kColumns * 4});
  });
}

TEST_CASE("a matrix without gradient stays zero, and is sent again as soon as it has one, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    // Only rank 0 has gradients, so that sums have rank 1: less than most factors. With one column a step starts from
    // the row of the step before, almost orthogonal to its own, which loses digits.
    const auto mine = [&](std::int64_t step) { return gradients(0, step, 1) * (rank == 0 ? 1 : 0); };
    for (const std::int64_t columns : {1, 2, 3}) {
      Summing summing(groups, at_once(columns));
      for (std::int64_t step = 0; step < 3; ++step) {
        auto buffer = mine(step);
        part_of(buffer, 0).zero_();
        const auto got = summing.sum(buffer);
        CHECK(part_of(got, 0).abs().sum().item<double>() == 0);
        CHECK(part_of(got, 2).allclose(part_of(gradients(0, step, 1), 2), 0, columns == 1 ? 0.05 : 1e-3));
      }
      CHECK(summing.sum(mine(3)).allclose(gradients(0, 3, 1), 0, columns == 1 ? 0.05 : 1e-3));
    }
  });
}

TEST_CASE("a step that overflowed on one rank shows on all, and spoils no later one, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    for (const double spoil : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
      for (const std::int64_t columns : {2, 3}) {
        Summing summing(groups, at_once(columns));
        summing.sum(gradients(rank, 0, 4));
        auto bad = gradients(rank, 1, 4);
        if (rank == 1) part_of(bad, 0)[7] = spoil;
        const auto got = summing.sum(bad);
        CHECK_FALSE(part_of(got, 0).isfinite().all().item<bool>());
        CHECK(part_of(got, 2).isfinite().all().item<bool>());
        for (const auto& [name, value] : summing.shared->state()) CHECK(value.isfinite().all().item<bool>());
        CHECK(summing.shared->state().at("error/first").abs().sum().item<double>() == 0);
        CHECK(summing.sum(gradients(rank, 2, 1)).isfinite().all().item<bool>());
        CHECK(part_of(summing.sum(gradients(rank, 3, 1)), 0).allclose(part_of(sum_of(3, 1), 0), 1e-3, 1e-3));
      }
    }
  });
}

TEST_CASE("a job goes on from its saved state to the bit, in buckets that are cut otherwise too, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    for (const bool warm : {true, false}) {
      auto options = at_once(2);
      options.warm_start = warm;
      Summing whole(groups, options);
      for (std::int64_t step = 0; step < 4; ++step) whole.sum(gradients(rank, step, 5));
      const auto saved = copy_of(whole.shared->state());
      CHECK(saved.at("iteration").item<std::int64_t>() == 4);
      std::vector<at::Tensor> expected;
      for (std::int64_t step = 4; step < 7; ++step) expected.push_back(whole.sum(gradients(rank, step, 5)));

      Summing again(groups, options);
      again.shared->load(saved);
      whole.shared->load(saved);  // in place, while transports use it
      std::vector<BufferPart> other{kParts[2], kParts[0], kParts[1]};
      Summing cut(groups, options, other);
      cut.shared->load(saved);
      for (std::int64_t step = 4; step < 7; ++step) {
        const auto& truth = expected[static_cast<std::size_t>(step - 4)];
        CHECK(again.sum(gradients(rank, step, 5)).equal(truth));
        CHECK(whole.sum(gradients(rank, step, 5)).equal(truth));
        if (warm) CHECK(cut.sum(gradients(rank, step, 5)).allclose(truth, 1e-5, 1e-5));
      }
    }
  });
}

TEST_CASE(
    "a state of another rank, or of something else, is refused; one without errors begins them at zero, 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    Summing saving(groups, at_once(1));
    saving.sum(gradients(rank, 0, 5));
    auto saved = copy_of(saving.shared->state());
    Summing wider(groups, at_once(2));
    wider.sum(gradients(rank, 0, 5));
    CHECK_THROWS_WITH_AS(wider.shared->load(saved), doctest::Contains("matrix_approximation_rank"), c10::Error);
    CHECK_THROWS_WITH_AS(wider.shared->load({}), doctest::Contains("no 'iteration'"), c10::Error);
    auto damaged = saved;
    damaged["draws"] = at::scalar_tensor(-1, at::kLong);
    CHECK_THROWS_WITH_AS(saving.shared->load(damaged), doctest::Contains("-1 draws"), c10::Error);
    saved.erase("error/first");
    saving.shared->load(saved);
    CHECK(saving.shared->memories().at("first").error.abs().sum().item<double>() == 0);
    CHECK(saving.shared->memories().at("second").error.abs().sum().item<double>() > 0);
  });
}

TEST_CASE("matrices that are multiplied together give what they give one by one, over 2 ranks") {
  on_group([](const Groups& groups, std::int64_t rank) {
    auto options = at_once(2);
    Summing single(groups, options);
    single.sum(gradients(rank, 0, 5));
    options.batch_tensors_with_same_shape = true;
    Summing batched(groups, options);
    batched.shared->load(copy_of(single.shared->state()));
    for (std::int64_t step = 1; step < 4; ++step) {
      CHECK(batched.sum(gradients(rank, step, 5)).allclose(single.sum(gradients(rank, step, 5)), 1e-4, 1e-4));
    }
  });
}

TEST_CASE("training with PowerSGD converges, in many buckets, before and after they are made again, over 2 ranks") {
  const Loop loop{.steps = 60};
  const auto exact = train_on_ranks(2, ddp(), loop);
  for (const std::int64_t start : {0, 1, 2, 30}) {
    CAPTURE(start);
    auto policy = power_sgd(2, start);
    policy.first_bucket_bytes = policy.bucket_bytes = 1500;
    const auto got = train_on_ranks(2, policy, loop);  // also checks that ranks stay equal
    CHECK(got.losses.back() < 0.5 * got.losses.front());
    CHECK(got.losses != exact.losses);
    for (std::size_t i = 0; i < static_cast<std::size_t>(start); ++i) CHECK(got.losses[i] == exact.losses[i]);
    CHECK(got.traffic.all_reduce.bytes < exact.traffic.all_reduce.bytes);
  }
}

TEST_CASE(
    "PowerSGD counts reduced passes, sees the sum of micro-batches, and works where ddp computes in bf16, 2 ranks") {
  auto policy = power_sgd(2, 2);
  policy.precision.param_dtype = at::kBFloat16;
  const auto got = train_on_ranks(2, policy, {.steps = 60, .micro_batches = 3});
  CHECK(got.losses.back() < 0.5 * got.losses.front());
  on_ranks(2, [](const World& world) {
    const auto policy = power_sgd(1, 0);
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    for (std::int64_t micro = 0; micro < 6; ++micro) {
      parallel.set_micro_batch(micro % 3, 3);
      loss_of(net, micro).backward();
    }
    CHECK(parallel.reducer().power_sgd()->iteration() == 2);
  });
}
