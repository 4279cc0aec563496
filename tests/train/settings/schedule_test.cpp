// SPDX-License-Identifier: Apache-2.0
// Learning rates are those of transformers' get_scheduler, and what it does not know is refused by name.
// The factors were printed by transformers 5.23 for a LambdaLR over an optimizer, step by step and two steps beyond.
// fine_tune_test.py holds a drawn schedule to the installed transformers as well.
#include "trainer/settings/schedule.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace sealift::trainer;

namespace {

struct Case {
  std::string type, parameters;
  std::int64_t steps, warmup;
  std::vector<double> factors;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {"constant", R"()", 10, 3, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"constant_with_warmup", R"()", 10, 3, {0, 0.3333333333, 0.6666666667, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"linear",
       R"()",
       10,
       3,
       {0, 0.3333333333, 0.6666666667, 1, 0.8571428571, 0.7142857143, 0.5714285714, 0.4285714286, 0.2857142857,
        0.1428571429, 0, 0}},
      {"cosine",
       R"()",
       10,
       3,
       {0, 0.3333333333, 0.6666666667, 1, 0.950484434, 0.8117449009, 0.611260467, 0.388739533, 0.1882550991,
        0.04951556605, 0, 0.04951556605}},
      {"cosine",
       R"({"num_cycles": 1.5})",
       10,
       0,
       {1, 0.7938926261, 0.3454915028, 0.02447174185, 0.09549150281, 0.5, 0.9045084972, 0.9755282581, 0.6545084972,
        0.2061073739, 0, 0.2061073739}},
      {"cosine_with_restarts",
       R"({"num_cycles": 3})",
       12,
       2,
       {0, 0.5, 1, 0.7938926261, 0.3454915028, 0.02447174185, 0.9045084972, 0.5, 0.09549150281, 0.9755282581,
        0.6545084972, 0.2061073739, 0, 0}},
      {"polynomial",
       R"({"lr_end": 1e-05, "power": 2.0})",
       10,
       2,
       {0, 0.5, 1, 0.76796875, 0.566875, 0.39671875, 0.2575, 0.14921875, 0.071875, 0.02546875, 0.01, 0.01}},
      {"inverse_sqrt",
       R"()",
       10,
       4,
       {0, 0.25, 0.5, 0.75, 1, 0.894427191, 0.8164965809, 0.755928946, 0.7071067812, 0.6666666667, 0.632455532,
        0.6030226892}},
      {"inverse_sqrt",
       R"({"timescale": 7})",
       10,
       2,
       {0, 0.5, 1, 0.9354143467, 0.8819171037, 0.8366600265, 0.7977240352, 0.7637626158, 0.7337993857, 0.7071067812,
        0.6831300511, 0.6614378278}},
      {"cosine_with_min_lr",
       R"({"min_lr": 0.0001})",
       10,
       3,
       {0, 0.3333333333, 0.6666666667, 1, 0.9554359906, 0.8305704108, 0.6501344203, 0.4498655797, 0.2694295892,
        0.1445640094, 0.1, 0.1445640094}},
      {"cosine_with_min_lr",
       R"({"min_lr_rate": 0.25})",
       10,
       3,
       {0, 0.3333333333, 0.6666666667, 1, 0.9628633255, 0.8588086757, 0.7084453502, 0.5415546498, 0.3911913243,
        0.2871366745, 0.25, 0.2871366745}},
      {"cosine_warmup_with_min_lr",
       R"({"min_lr_rate": 0.25})",
       10,
       3,
       {0.3333333333, 0.6666666667, 1, 0.9628633255, 0.8588086757, 0.7084453502, 0.5415546498, 0.3911913243,
        0.2871366745, 0.25, 0.2871366745, 0.3911913243}},
      {"cosine_warmup_with_min_lr",
       R"({"min_lr": 0.0001, "warmup_lr_rate": 0.2})",
       10,
       4,
       {0.2, 0.4666666667, 0.7333333333, 1, 0.9397114317, 0.775, 0.55, 0.325, 0.1602885683, 0.1, 0.1602885683, 0.325}},
      {"warmup_stable_decay",
       R"({"num_decay_steps": 5})",
       12,
       3,
       {0, 0.3333333333, 0.6666666667, 1, 1, 1, 1, 1, 0.9045084972, 0.6545084972, 0.3454915028, 0.09549150281, 0, 0}},
      {"warmup_stable_decay",
       R"({"num_decay_steps": 4, "warmup_type": "cosine", "decay_type": "1-sqrt", "min_lr_ratio": 0.1})",
       12,
       4,
       {0.1, 0.2318019485, 0.55, 0.8681980515, 1, 1, 1, 1, 1, 0.55, 0.3636038969, 0.2205771366, 0.1, 0.1}},
      {"warmup_stable_decay",
       R"({"num_decay_steps": 5, "num_stable_steps": 2, "warmup_type": "1-sqrt", "decay_type": "linear", "min_lr_ratio": 0.2})",
       12,
       4,
       {0.2, 0.307179677, 0.4343145751, 0.6, 1, 1, 1, 0.84, 0.68, 0.52, 0.36, 0.2, 0.2, 0.2}},
  };
  return table;
}

}  // namespace

TEST_CASE("every schedule has the factors of transformers") {
  for (const auto& each : cases()) {
    CAPTURE(each.type);
    CAPTURE(each.parameters);
    const Schedule schedule({.type = each.type,
                             .parameters = each.parameters,
                             .learning_rate = 1e-3,
                             .steps = each.steps,
                             .warmup_steps = each.warmup});
    for (std::size_t step = 0; step < each.factors.size(); ++step) {
      CAPTURE(step);
      CHECK(schedule.factor(static_cast<std::int64_t>(step)) == doctest::Approx(each.factors[step]).epsilon(1e-8));
      CHECK(schedule.rate(static_cast<std::int64_t>(step)) == doctest::Approx(1e-3 * each.factors[step]).epsilon(1e-8));
    }
  }
}

TEST_CASE("a warm-up is a number of steps, or a part of them rounded up") {
  const auto warmup = [](std::int64_t steps, double ratio) {
    return Schedule({.steps = 30, .warmup_steps = steps, .warmup_ratio = ratio}).warmup_steps();
  };
  CHECK(warmup(0, 0) == 0);
  CHECK(warmup(0, 0.05) == 2);
  CHECK(warmup(7, 0.05) == 7);
  CHECK_THROWS_WITH(warmup(0, 1.5), doctest::Contains("warmup_ratio is 1.5"));
}

TEST_CASE("axolotl's warm-up is rounded down, is never one step, and unset is 3 % of the steps and at most 100") {
  const auto warmup = [](std::int64_t steps, double ratio) {
    return Schedule({.steps = steps, .warmup_ratio = ratio, .warmup_rule = "axolotl"}).warmup_steps();
  };
  CHECK(warmup(30, 0) == 0);
  CHECK(warmup(34, 0) == 2);
  CHECK(warmup(199, 0) == 5);
  CHECK(warmup(10000, 0) == 100);
  CHECK(warmup(39, 0.1) == 3);
}

TEST_CASE("a schedule that there is not, and a key that its type has not, are refused with those that there are") {
  const auto make = [](const std::string& type, const std::string& parameters) {
    return Schedule({.type = type, .parameters = parameters, .steps = 10});
  };
  CHECK_THROWS_WITH(make("reduce_lr_on_plateau", ""), doctest::Contains("use one of constant, constant_with_warmup"));
  CHECK_THROWS_WITH(make("cosine", R"({"min_lr": 1})"), doctest::Contains("'min_lr'; lr_scheduler_type cosine takes"));
  CHECK_THROWS_WITH(make("linear", R"({"a": 1})"), doctest::Contains("takes none"));
  CHECK_THROWS_WITH(make("cosine", "[1]"), doctest::Contains("expected a JSON object"));
  CHECK_THROWS_WITH(make("cosine", "{"), doctest::Contains("expected a JSON object"));
  CHECK_THROWS_WITH(make("cosine", R"({"num_cycles": -1})"), doctest::Contains("expected a number, not negative"));
  CHECK_THROWS_WITH(make("cosine_with_min_lr", ""), doctest::Contains("needs lr_scheduler_kwargs"));
  CHECK_THROWS_WITH(make("cosine_with_min_lr", R"({"min_lr": 0, "min_lr_rate": 0})"),
                    doctest::Contains("one of the two"));
  CHECK_THROWS_WITH(make("warmup_stable_decay", ""),
                    doctest::Contains("needs lr_scheduler_kwargs with num_decay_steps"));
  CHECK_THROWS_WITH(make("wsd", R"({"num_decay_steps": 2, "decay_type": "exp"})"),
                    doctest::Contains("use one of linear"));
}
