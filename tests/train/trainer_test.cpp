// SPDX-License-Identifier: Apache-2.0
// The trainer's parts: the language and its entropy, the settings, the comparison of results.
// The verdict of the verification job rests on them, so each is shown to be able to fail.
// The program itself is run by trainer_test.sh.
#include "trainer/ranks/job_policy.hpp"
#include "trainer/settings/options.hpp"
#include "trainer/verification/check.hpp"
#include "trainer/verification/markov.hpp"
#include "trainer/verification/model.hpp"
#include "trainer/verification/traffic.hpp"

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

/// A file that is removed after the test.
struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& text)
      : path(std::filesystem::temp_directory_path() / ("sealift_trainer_test_" + std::to_string(getpid()) + ".toml")) {
    std::ofstream(path) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

/// The units that `policy` makes of a GPT of five blocks.
std::vector<std::string> units_of_five_blocks(const sealift::train::Policy& policy) {
  sealift::train::Shardable<Gpt> model(
      GptShape{.vocabulary = 5, .context = 4, .layers = 5, .width = 4, .heads = 2, .recompute = false});
  std::vector<std::string> paths;
  for (const auto& plan : sealift::train::plan_units(*model, policy)) paths.push_back(plan.path);
  return paths;
}

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
  CHECK_THROWS_WITH(read("recompute = 1"), doctest::Contains("recompute is '1'"));
  CHECK_THROWS_WITH(read("recompute = 'yes'"), doctest::Contains("expected true or false"));
  CHECK_THROWS_WITH(read("offload = 'gradients'"), doctest::Contains("offload is no list"));
  CHECK_THROWS_WITH(read("offload = [1]"), doctest::Contains("offload is no list of texts"));
  CHECK_THROWS_WITH(read("offload = ['activations']"), doctest::Contains("offload has 'activations'"));
  CHECK_THROWS_WITH(read("bucket_mb = 0"), doctest::Contains("bucket_mb is 0"));
  CHECK_THROWS_WITH(read("steps ="), doctest::Contains("line 1"));
  // In Debian's toml++ 3.3, an 'é' outside of a text led to undefined behaviour.
  CHECK_THROWS_WITH(read("steps = 5\n\u00e9 = 1"), doctest::Contains("line 2"));
  CHECK_THROWS_WITH(read("steps = 2026-01-01 1\n"), doctest::Contains("could not determine value type"));
  CHECK_THROWS_WITH(read_options({}, "/no/such/file.toml"), doctest::Contains("/no/such/file.toml"));
  CHECK_THROWS_WITH(read_options({{"seed", "x"}}, ""), doctest::Contains("seed is 'x' (--seed)"));
}

TEST_CASE("a job file's words reach the policy, from TOML and from flags alike") {
  const TemporaryFile file(
      "sharding_strategy = '_HYBRID_SHARD_ZERO2'\nshard_size = 2\nwrapping_strategy = 'by_block_group'\n"
      "blocks_per_unit = 3\nprecision = 'mixed'\nkeep_gathered = false\noffload = ['gradients', 'optimizer_state']\n");
  const auto policy = make_policy(read_options({{"bucket_mb", "4"}}, file.path));
  CHECK(policy.method == sealift::train::ParallelMethod::Hsdp);
  CHECK_FALSE(policy.reshard_after_forward);
  CHECK(units_of_five_blocks(policy) == std::vector<std::string>{"", "block0", "block3"});
  CHECK(policy.precision.param_dtype == at::kBFloat16);
  CHECK(policy.precision.reduce_dtype == at::kFloat);
  CHECK(policy.precision.output_dtype == at::kFloat);
  CHECK(policy.keep_gathered == sealift::train::KeepGathered::Never);
  CHECK(policy.offload == sealift::train::Offload{.gradients = true, .optimizer_state = true});
  CHECK(policy.bucket_bytes == 4 << 20);
  CHECK(make_policy(read_options({{"parallel_method", "ddp"}, {"offload", "parameters,gradients"}}, "")).offload ==
        sealift::train::Offload{.parameters = true, .gradients = true});
}

TEST_CASE("what the trainer does not set is as the core has it") {
  const auto policy = make_policy({});
  const sealift::train::Policy core;
  CHECK(policy.method == core.method);
  CHECK(units_of_five_blocks(policy) == units_of_five_blocks(core));
  CHECK(policy.reshard_after_forward == core.reshard_after_forward);
  CHECK(policy.keep_gathered == core.keep_gathered);
  CHECK(policy.reduce_every_micro_batch == core.reduce_every_micro_batch);
  CHECK(policy.forward_prefetch == core.forward_prefetch);
  CHECK(policy.backward_prefetch == core.backward_prefetch);
  CHECK(policy.precision == core.precision);
  CHECK(policy.offload == core.offload);
  CHECK(policy.bucket_bytes == core.bucket_bytes);
  CHECK(policy.find_unused_parameters == core.find_unused_parameters);
}

TEST_CASE("settings that contradict each other are refused, settings that agree are not") {
  const auto policy = [](const Texts& flags) { return make_policy(read_options(flags, "")); };
  CHECK(policy({{"parallel_method", "fsdp"}, {"sharding_strategy", "SHARD_GRAD_OP"}}).reshard_after_forward == false);
  CHECK_THROWS_WITH(policy({{"parallel_method", "ddp"}, {"sharding_strategy", "FULL_SHARD"}}),
                    doctest::Contains("sharding_strategy FULL_SHARD means fsdp but parallel_method is ddp"));
  CHECK_THROWS_WITH(policy({{"reshard_after_forward", "true"}, {"sharding_strategy", "SHARD_GRAD_OP"}}),
                    doctest::Contains("contradict each other"));
  CHECK_THROWS_WITH(policy({{"sharding_strategy", "ZERO_3"}}), doctest::Contains("use one of FULL_SHARD"));
  CHECK_THROWS_WITH(policy({{"wrapping_strategy", "by_bloc"}}), doctest::Contains("use one of by_block"));
  CHECK_THROWS_WITH(policy({{"blocks_per_unit", "2"}}), doctest::Contains("use by_block_group or one_in_k"));
  CHECK_THROWS_WITH(policy({{"wrapping_strategy", "one_in_two"}, {"blocks_per_unit", "3"}}),
                    doctest::Contains("3 blocks per unit are not what wrapping strategy one_in_two means"));
  CHECK_THROWS_WITH(policy({{"precision", "half"}}), doctest::Contains("use one of fp32, mixed, pure"));
  CHECK_THROWS_WITH(policy({{"precision", "mixed"}}), doctest::Contains("parallel_method none has no units"));
}

TEST_CASE("the bytes by formula are those of the published ones") {
  using namespace sealift::train;
  // 1000 elements of which the root has 200, 4 ranks, 8 micro-batches; f = 3/4.
  const auto bytes = [](const Policy& policy, std::int64_t micro_batches) {
    const auto report = sealift::trainer::traffic_by_formula(policy, make_mesh(policy, 4), 1000, 200, micro_batches,
                                                             policy.keep_gathered != KeepGathered::Never);
    return std::vector{report.all_gather.bytes, report.reduce_scatter.bytes, report.all_reduce.bytes};
  };
  using Bytes = std::vector<std::int64_t>;
  CHECK(bytes({.method = ParallelMethod::Ddp}, 8) == Bytes{0, 0, 6000});
  CHECK(bytes({.method = ParallelMethod::Ddp, .reduce_every_micro_batch = true}, 8) == Bytes{0, 0, 6000});
  CHECK(bytes({.method = ParallelMethod::Ddp, .reduce_every_micro_batch = true, .defer_all_reduce = false}, 8) ==
        Bytes{0, 0, 8 * 6000});
  CHECK(bytes({.method = ParallelMethod::Fsdp}, 8) == Bytes{3000, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Fsdp}, 1) == Bytes{3000 + 2400, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Fsdp, .reshard_after_forward = false}, 1) == Bytes{3000, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Fsdp, .keep_gathered = KeepGathered::Never}, 8) == Bytes{8 * 5400, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Fsdp, .reshard_group = 2}, 1) == Bytes{3000 + 1600, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Fsdp, .precision = parse_precision("mixed")}, 8) == Bytes{1500, 3000, 0});
  CHECK(bytes({.method = ParallelMethod::Hsdp, .shard_size = 2, .reduce_every_micro_batch = true}, 8) ==
        Bytes{2000, 8 * 2000, 2000});
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
  two.sharding_strategy = "FULL_SHARD";
  two.recompute = true;
  two.offload = {"gradients"};
  CHECK(comparable(one) == comparable(two));
  two.seed = 2;
  CHECK(comparable(one) != comparable(two));
  two = one;
  two.precision = "mixed";
  CHECK(comparable(one) != comparable(two));
}
