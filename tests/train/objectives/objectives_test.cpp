// SPDX-License-Identifier: Apache-2.0
// Objectives: that sums over ranks and micro-batches are those of one batch, and what happens at their edges.
// That the formulas are the papers' is for objectives_peer_test.py, which holds them to TRL.
#include "trainer/models/label_log_probabilities.hpp"
#include "trainer/objectives/causal.hpp"
#include "trainer/objectives/kto.hpp"
#include "trainer/objectives/preference.hpp"
#include "trainer/objectives/reward.hpp"
#include "trainer/objectives/sequence_sums.hpp"

#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>

using namespace sealift::trainer;

namespace {

const std::vector<std::string> kMethods = {"dpo", "ipo", "hinge", "robust", "simpo", "cpo", "orpo"};

PreferenceOptions options_of(const std::string& method) {
  auto options = preference_options(method);
  if (method == "robust") options.label_smoothing = 0.2;
  return options;
}

/// Sums, lengths and a reference's sums of `pairs` pairs.
struct Drawn {
  explicit Drawn(std::int64_t pairs)
      : sums(-5 * torch::rand({2 * pairs})),
        lengths(torch::randint(1, 9, {2 * pairs}).to(torch::kFloat32)),
        reference(-5 * torch::rand({2 * pairs})) {}

  Objective loss(const PreferenceOptions& options, std::int64_t begin, std::int64_t end) const {
    const auto part = [&](const at::Tensor& all) { return all.slice(0, 2 * begin, 2 * end); };
    return preference_loss(pair_log_probs(part(sums), part(lengths), part(reference)), options);
  }

  at::Tensor sums, lengths, reference;
};

void check_near(const at::Tensor& got, const at::Tensor& expected, double tolerance = 1e-5) {
  CAPTURE(got);
  CAPTURE(expected);
  CHECK(torch::allclose(got, expected, tolerance, tolerance));
}

}  // namespace

TEST_CASE("sums by sequence count each answer's tokens wherever its sequence lies") {
  const auto values = torch::tensor({{1.0F, 2.0F, 3.0F, 4.0F}, {5.0F, 6.0F, 7.0F, 8.0F}});
  const auto sequence = torch::tensor({{2, 2, 0, 0}, {1, 1, 1, -1}}, torch::kInt64);
  const auto counts = torch::tensor({{1, 0, 1, 1}, {0, 1, 1, 1}}).to(torch::kBool);
  check_near(sequence_sums(values, sequence, counts, 4), torch::tensor({7.0F, 13.0F, 1.0F, 0.0F}), 0);
  check_near(sequence_lengths(sequence, counts, 4), torch::tensor({2.0F, 2.0F, 1.0F, 0.0F}), 0);
}

TEST_CASE("what does not count adds nothing, even where it is not finite") {
  const auto infinite = -std::numeric_limits<float>::infinity();
  auto values = torch::tensor({{-1.0F, infinite, -2.0F}}).requires_grad_();
  const auto sums =
      sequence_sums(values, torch::tensor({{0, 0, -1}}, torch::kInt64), torch::tensor({{1, 0, 1}}).to(torch::kBool), 1);
  check_near(sums, torch::tensor({-1.0F}), 0);
  sums.sum().backward();
  check_near(values.grad(), torch::tensor({{1.0F, 0.0F, 0.0F}}), 0);
}

TEST_CASE("a causal loss divided by the tokens of all micro-batches is that of one batch") {
  const auto log_probs = -torch::rand({6, 5});
  const auto whole = causal_loss(log_probs, 30);
  const auto first = causal_loss(log_probs.slice(0, 0, 1), 5), rest = causal_loss(log_probs.slice(0, 1), 25);
  check_near((first.sum + rest.sum) / (first.count + rest.count), whole.sum / whole.count);
  CHECK(whole.mean() == doctest::Approx(-log_probs.mean().item<double>()));
}

TEST_CASE("a preference loss and its metrics add up over micro-batches of any size") {
  torch::manual_seed(7);
  for (const auto& method : kMethods) {
    CAPTURE(method);
    auto options = options_of(method);
    options.nll_weight = 0;  // a mean over a micro-batch's tokens, as TRL has it
    const Drawn drawn(7);
    const auto whole = drawn.loss(options, 0, 7), first = drawn.loss(options, 0, 2), rest = drawn.loss(options, 2, 7);
    check_near(first.sum + rest.sum, whole.sum);
    CHECK(first.count + rest.count == whole.count);
    for (std::size_t at = 0; at + 1 < whole.metrics.size(); ++at)
      check_near(first.metrics[at].sum + rest.metrics[at].sum, whole.metrics[at].sum);
  }
}

TEST_CASE("every preference method wants the chosen answer more, and the rejected one not more") {
  for (const auto& method : kMethods) {
    CAPTURE(method);
    auto sums = torch::tensor({-2.0F, -2.5F}).requires_grad_();
    const auto lengths = torch::tensor({4.0F, 4.0F});
    preference_loss(pair_log_probs(sums, lengths, torch::tensor({-2.0F, -2.5F})), options_of(method)).sum.backward();
    CHECK(sums.grad()[0].item<double>() < 0);
    CHECK(sums.grad()[1].item<double>() > 0);
  }
}

TEST_CASE("odds of an answer that is certain, and of one that is impossible, have a finite loss and gradient") {
  for (const auto& pair :
       {torch::tensor({0.0F, -1e-9F}), torch::tensor({-200.0F, 0.0F}), torch::tensor({0.0F, -200.0F})}) {
    auto sums = pair.clone().requires_grad_();
    const auto loss = preference_loss(pair_log_probs(sums, torch::ones({2})), options_of("orpo"));
    loss.sum.backward();
    CHECK(torch::isfinite(loss.sum).item<bool>());
    CHECK(torch::isfinite(sums.grad()).all().item<bool>());
  }
}

TEST_CASE("an answer without tokens gives no NaN") {
  for (const auto& method : kMethods) {
    auto sums = torch::zeros({2}).requires_grad_();
    const auto loss = preference_loss(pair_log_probs(sums, torch::zeros({2}), torch::zeros({2})), options_of(method));
    loss.sum.backward();
    CHECK(torch::isfinite(loss.sum).item<bool>());
    CHECK(torch::isfinite(sums.grad()).all().item<bool>());
  }
}

TEST_CASE("switches that contradict each other are refused") {
  const Drawn drawn(2);
  const auto refused = [&](PreferenceOptions options, const char* why) {
    CHECK_THROWS_WITH_AS(drawn.loss(options, 0, 2), doctest::Contains(why), std::invalid_argument);
  };
  refused({.beta = 0}, "beta");
  refused({.label_smoothing = 0.5}, "label_smoothing");
  refused({.loss = PairLoss::Hinge, .label_smoothing = 0.1}, "label_smoothing");
  refused({.loss = PairLoss::Robust}, "robust needs");
  refused({.odds = true}, "odds");
  CHECK_THROWS_WITH_AS(preference_options("ppo"), doctest::Contains("known are dpo"), std::invalid_argument);
  CHECK_THROWS_WITH(preference_loss(pair_log_probs(drawn.sums, drawn.lengths), {}), doctest::Contains("got none"));
}

TEST_CASE("KTO's distance is one number of all ranks, is not below zero, and has no gradient") {
  torch::manual_seed(3);
  auto policy = (-5 * torch::rand({6})).requires_grad_();
  const auto reference = policy.detach() - torch::rand({6});
  const auto sums = kto_distance_sums(policy.slice(0, 0, 2), reference.slice(0, 0, 2)) +
                    kto_distance_sums(policy.slice(0, 2), reference.slice(0, 2));
  check_near(kto_distance_of(sums), (policy - reference).mean().detach());
  CHECK(kto_distance_of(kto_distance_sums(reference, policy)).item<double>() == 0);
  CHECK(kto_distance_of(torch::zeros({2})).item<double>() == 0);
  CHECK_FALSE(sums.requires_grad());
}

TEST_CASE("KTO's metrics are of each kind of answer, and a micro-batch may lack one") {
  const auto policy = torch::tensor({-1.0F, -2.0F, -4.0F}), reference = torch::tensor({-2.0F, -2.0F, -2.0F});
  const auto desirable = torch::tensor({1, 0, 0}).to(torch::kBool);
  const auto loss = kto_loss(policy, reference, desirable, torch::zeros({}), {.beta = 0.5});
  CHECK(loss.metrics[0].sum.item<double>() == doctest::Approx(0.5));
  CHECK(loss.metrics[0].count == 1);
  CHECK(loss.metrics[1].sum.item<double>() == doctest::Approx(-1.0));
  CHECK(loss.metrics[1].count == 2);
  CHECK(kto_loss(policy, reference, torch::ones({3}, torch::kBool), torch::zeros({}), {}).metrics[1].count == 0);
}

TEST_CASE("a margin asks for more of a reward, and scores that are far from zero cost what they are told to") {
  const auto scores = torch::tensor({1.0F, 0.0F});
  const auto plain = reward_loss(scores).sum.item<double>();
  CHECK(reward_loss(scores, torch::tensor({0.5F})).sum.item<double>() > plain);
  CHECK(reward_loss(scores, torch::zeros({1})).sum.item<double>() == doctest::Approx(plain));
  CHECK(reward_loss(scores, {}, {.center_coefficient = 0.1}).sum.item<double>() == doctest::Approx(plain + 0.1));
  CHECK_THROWS_WITH(reward_loss(scores, torch::zeros({2})), doctest::Contains("margins"));
}

TEST_CASE("label log-probabilities under autocast are those of the narrow dtype, and gradients come in the wide one") {
  const auto hidden = torch::randn({6, 5}), head = torch::randn({9, 5});
  const auto labels = torch::tensor(std::vector<std::int64_t>{1, 2, kNoLabel, 8, 0, 3});
  const auto run = [&](bool autocasts, at::ScalarType dtype) {
    const auto x = hidden.clone().requires_grad_(), w = head.clone().requires_grad_();
    at::autocast::set_autocast_enabled(at::kCPU, autocasts);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    const auto values = label_log_probabilities(x.to(dtype), w.to(dtype), labels);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    values.sum().backward();
    return std::vector<at::Tensor>{values.detach(), x.grad(), w.grad()};
  };
  const auto automatic = run(true, at::kFloat), narrow = run(false, at::kBFloat16), wide = run(false, at::kFloat);
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    CHECK(automatic[i].equal(narrow[i]));
    CHECK((automatic[i].scalar_type() == at::kFloat));
    CHECK(automatic[i].allclose(wide[i], 5e-2, 5e-2));
  }
  CHECK_FALSE(automatic[0].equal(wide[0]));
}
