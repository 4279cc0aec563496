// SPDX-License-Identifier: Apache-2.0
// The trainer's parts: the language and its entropy, the settings, the comparison of results.
// What the verification job's verdict rests on, so each is shown to be able to say no.
// The program itself is run by trainer_test.sh.
#include "check.hpp"
#include "markov.hpp"
#include "options.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sealift::trainer;

namespace {

nlohmann::json result(std::vector<double> losses, const std::string& method = "none") {
  return {{"parallel_method", method},
          {"world_size", 1},
          {"losses", losses},
          {"entropy_floor", 1.0},
          {"configuration", {{"seed", "1"}}}};
}

/// A file that is gone with the test.
struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& text)
      : path(std::filesystem::temp_directory_path() / ("sealift_trainer_test_" + std::to_string(getpid()) + ".toml")) {
    std::ofstream(path) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("every state's transitions sum to 1 and the stationary distribution stays under them") {
  const MarkovSource source(61, 1);
  double total = 0;
  for (std::size_t next = 0; next < 61; ++next) {
    double arriving = 0, row = 0;
    for (std::size_t state = 0; state < 61; ++state) {
      arriving += source.stationary()[state] * source.probability(state, next);
      row += source.probability(next, state);
    }
    CHECK(arriving == doctest::Approx(source.stationary()[next]).epsilon(1e-9));
    CHECK(row == doctest::Approx(1).epsilon(1e-12));
    total += source.stationary()[next];
  }
  CHECK(total == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("the entropy by the formula is what long samples show") {
  for (const std::uint64_t seed : {1, 2}) {
    const MarkovSource source(61, seed);
    double surprise = 0;
    std::int64_t count = 0;
    for (std::uint64_t sample = 0; sample < 40; ++sample) {
      const auto tokens = source.tokens(0, sample, 5000);
      for (std::size_t i = 1; i < tokens.size(); ++i, ++count) {
        surprise -=
            std::log(source.probability(static_cast<std::size_t>(tokens[i - 1]), static_cast<std::size_t>(tokens[i])));
      }
    }
    CHECK(surprise / static_cast<double>(count) == doctest::Approx(source.entropy()).epsilon(0.005));
    CHECK(source.entropy() < 0.4 * std::log(61.0));  // far below uniform: there is something to learn
  }
}

TEST_CASE("samples depend on seed, step and number, and on nothing else") {
  const MarkovSource source(61, 7);
  const auto tokens = source.tokens(3, 5, 33);
  CHECK(MarkovSource(61, 7).tokens(3, 5, 33) == tokens);
  CHECK(source.tokens(4, 5, 33) != tokens);
  CHECK(source.tokens(3, 6, 33) != tokens);
  CHECK(MarkovSource(61, 8).tokens(3, 5, 33) != tokens);
  CHECK_THROWS(MarkovSource(1, 1));
}

TEST_CASE("a flag counts over the environment, that over the file, that over the default") {
  const TemporaryFile file("steps = 5\nseed = 6\nglobal_batch = 8\nlearning_rate = 0.5\nparallel_method = \"ddp\"\n");
  setenv("SEALIFT_TRAIN_SEED", "16", 1);
  setenv("SEALIFT_TRAIN_STEPS", "15", 1);
  const auto options = read_options({{"steps", "25"}}, file.path);
  unsetenv("SEALIFT_TRAIN_SEED");
  unsetenv("SEALIFT_TRAIN_STEPS");
  CHECK(options.steps == 25);
  CHECK(options.seed == 16);
  CHECK(options.global_batch == 8);
  CHECK(options.learning_rate == 0.5);
  CHECK(options.parallel_method == "ddp");
  CHECK(options.layers == Options{}.layers);
}

TEST_CASE("a setting has one name in three spellings") {
  for (const auto& setting : settings()) {
    if (setting.name != "parallel_method") continue;
    CHECK(setting.flag() == "--parallel-method");
    CHECK(setting.variable() == "SEALIFT_TRAIN_PARALLEL_METHOD");
  }
}

TEST_CASE("settings that do not exist or cannot be are refused by name and place") {
  const auto read = [](const std::string& text) {
    const TemporaryFile file(text);
    return read_options({}, file.path);
  };
  CHECK_THROWS_WITH(read("paralel_method = 'ddp'"), doctest::Contains("unknown key 'paralel_method'"));
  CHECK_THROWS_WITH(read("steps = 1.5"), doctest::Contains("steps is '1.5'"));
  CHECK_THROWS_WITH(read("steps = -1"), doctest::Contains("steps is '-1'"));
  CHECK_THROWS_WITH(read("steps = 0"), doctest::Contains("steps is 0; expected at least 1"));
  CHECK_THROWS_WITH(read("steps = [1]"), doctest::Contains("steps is neither text nor a number"));
  CHECK_THROWS_WITH(read("steps ="), doctest::Contains("line 1"));
  CHECK_THROWS_WITH(read_options({}, "/no/such/file.toml"), doctest::Contains("/no/such/file.toml"));
  CHECK_THROWS_WITH(read_options({{"seed", "x"}}, ""), doctest::Contains("seed is 'x' (--seed)"));
}

TEST_CASE("runs that agree and reached the floor pass, and the report says to how many digits") {
  const auto report = check({result({4.0, 1.1}), result({4.0, 1.1 * (1 + 1e-6)}, "ddp")}, 1e-4, 1.25);
  CHECK(report.problems.empty());
  CHECK(report.max_relative_difference == doctest::Approx(1e-6).epsilon(1e-3));
  CHECK(report.digits == doctest::Approx(6).epsilon(1e-3));
  CHECK(check({result({1.1})}, 1e-4, 1.25).problems.empty());
}

TEST_CASE("a loss that differs, is not finite, stays above the floor or falls below it fails") {
  const auto problems = [](const nlohmann::json& other) {
    return check({result({4.0, 1.1}), other}, 1e-4, 1.25).problems;
  };
  REQUIRE(problems(result({4.001, 1.1}, "fsdp")).size() == 1);
  CHECK(problems(result({4.001, 1.1}, "fsdp"))[0].find("fsdp x1 differs from none x1 in step 1") == 0);
  auto broken = result({4.0, 1.1});
  broken["losses"][0] = nullptr;
  CHECK(problems(broken).size() == 1);
  CHECK(check({result({4.0, 1.3})}, 1e-4, 1.25).problems.size() == 1);
  CHECK(check({result({4.0, 0.5})}, 1e-4, 1.25).problems.size() == 1);
}

TEST_CASE("results of different jobs, and files that are no results, cannot be checked") {
  auto other = result({4.0, 1.1});
  other["configuration"]["seed"] = "2";
  CHECK_THROWS_WITH(check({result({4.0, 1.1}), other}, 1e-4, 1.25), doctest::Contains("another job"));
  CHECK_THROWS_WITH(check({result({4.0, 1.1}), result({4.0})}, 1e-4, 1.25), doctest::Contains("another job"));
  CHECK_THROWS(check({}, 1e-4, 1.25));
  CHECK_THROWS_WITH(read_results({"/no/such/result.json"}), doctest::Contains("/no/such/result.json"));
  const TemporaryFile file("{\"losses\": []}");
  CHECK_THROWS_WITH(read_results({file.path}), doctest::Contains("is not a result"));
}

TEST_CASE("what only says how a job runs does not keep two runs from being compared") {
  Options one, two;
  two.parallel_method = "fsdp";
  two.threads = 1;
  two.out = "elsewhere";
  CHECK(comparable(one) == comparable(two));
  two.seed = 2;
  CHECK(comparable(one) != comparable(two));
}
