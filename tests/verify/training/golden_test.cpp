// SPDX-License-Identifier: Apache-2.0
// The golden run is read strictly and judged by which side differs: a file, the site's ranks together, or the
// reference.
#include "verify/training/golden.hpp"

#include "tests/verify/verdict/english.hpp"
#include "verify/conduct/processor_kind.hpp"
#include "verify/training/by_rank.hpp"
#include "verify/training/golden_run.hpp"
#include "verify/training/python_golden.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

using namespace sealift::verify;
using nlohmann::json;

namespace {

const std::string kGoldenDigest(64, 'a');

Golden made_golden() {
  return {.name = "tiny",
          .job = {.name = "tiny", .settings = {{"model", "models/tiny"}, {"precision", "fp32"}, {"max_steps", "3"}}},
          .rows = 4,
          .inputs = {{"models/tiny/config.json", kGoldenDigest}},
          .losses = {4, 3.1, 2.0 / 3},
          .norms = {1, 1, 1},
          .weights = kGoldenDigest,
          .device = "NVIDIA H100",
          .arch = "x86_64",
          .torch = "2.11.0",
          .threads = 1,
          .tolerances = {{"fp32", 1e-3}, {"fp32@NVIDIA A100", 1e-2}}};
}

json ran_golden(std::vector<double> losses, const std::string& device = "NVIDIA H100") {
  return {{"ranks", 2},       {"norms", {1, 1, 1}}, {"weights", kGoldenDigest},
          {"device", device}, {"arch", "x86_64"},   {"result", {{"losses", losses}, {"torch_version", "2.11.0"}}}};
}

Check judged_golden(json alone, const json& world = {}) {
  json values{{"golden", to_json(made_golden())}, {"alone", std::move(alone)}, {"changed", json::array()}};
  if (!world.is_null()) values["world"] = world;
  Check check;
  judge_golden({{0, "node0", "cuda:0", {}, {}, values}}, check);
  return check;
}

const std::vector<double> kGoldenLosses = made_golden().losses;

}  // namespace

TEST_CASE("a golden run is written and read to the same bits") {
  const auto golden = golden_from(json::parse(to_json(made_golden()).dump()), "g.json");
  CHECK(golden.losses == made_golden().losses);
  CHECK(to_json(golden) == to_json(made_golden()));
  CHECK(tolerance_of(golden, "x86_64", "NVIDIA H100") == 1e-3);
  CHECK(tolerance_of(golden, "x86_64", "NVIDIA A100") == 1e-2);
  CHECK(golden.ranks == 1);
  auto of_two = made_golden();
  of_two.ranks = 2;
  of_two.method = "ddp";
  CHECK(golden_from(json::parse(to_json(of_two).dump()), "g.json").method == "ddp");
  CHECK(golden_from(json::parse(to_json(of_two).dump()), "g.json").ranks == 2);
}

TEST_CASE("a golden run is refused by the key that is wrong: nothing of it is believed") {
  const auto refused = [](const std::string& pointer, const json& value) {
    json golden = to_json(made_golden());
    golden[json::json_pointer(pointer)] = value;
    CHECK_THROWS_AS(golden_from(golden, "g.json"), std::invalid_argument);
  };
  refused("/steps", 4);
  refused("/losses/1", "nan");
  refused("/losses/1", 3.5);
  refused("/norms", json::array());
  refused("/settings/model", "../../etc");
  refused("/settings/model", "/etc/passwd");
  refused("/settings/trace", "x");
  refused("/settings/out", "/tmp/x");
  refused("/settings/--device", "cuda");
  refused("/verb", "export");
  refused("/inputs/..~1x", kGoldenDigest);
  refused("/inputs/models~1tiny~1config.json", "abc");
  refused("/weights", "A");
  refused("/tolerances/fp32", "2");
  refused("/version", 2);
  refused("/ranks", 2);  // without a method
  refused("/method", "ddp");
  refused("/by_rank", "LORA dropout");
  refused("/more", true);
  const auto refused_ranks = [](const json& ranks, const json& method) {
    json golden = to_json(made_golden());
    golden.update({{"ranks", ranks}, {"method", method}});
    CHECK_THROWS_AS(golden_from(golden, "g.json"), std::invalid_argument);
  };
  refused_ranks(1, "ddp");
  refused_ranks(3, "ddp");  // of four rows
  refused_ranks(65, "ddp");
  refused_ranks(2, "none");
}

TEST_CASE("the last bit counts on the same kind of device, of losses and of weights; elsewhere what is stated") {
  auto near = kGoldenLosses;
  near[2] += 1e-16;
  CHECK(judged_golden(ran_golden(kGoldenLosses)).outcome == Outcome::Pass);
  auto check = judged_golden(ran_golden(near));
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("part in step 3") != std::string::npos);
  CHECK(judged_golden(ran_golden(near, "NVIDIA H800")).outcome == Outcome::Pass);
  auto other = ran_golden(kGoldenLosses);
  other["weights"] = std::string(64, 'b');
  check = judged_golden(other);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("the final weights are not") != std::string::npos);
  other["device"] = "NVIDIA H800";
  CHECK(judged_golden(other).outcome == Outcome::Pass);
  CHECK(judged_golden(ran_golden({4, 3.2, 0.7}, "NVIDIA H800")).outcome == Outcome::Fail);
}

TEST_CASE("which side is wrong is said: the ranks together, the whole site, or the reference") {
  const std::vector<double> others{4, 3.3, 1};
  auto check = judged_golden(ran_golden(kGoldenLosses), ran_golden(others));
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("how this site's ranks train together") != std::string::npos);
  check = judged_golden(ran_golden(others), ran_golden(others));
  CHECK(check.reason.en.find("agree with each other: the golden run is of other") != std::string::npos);
  check = judged_golden(ran_golden(others), ran_golden({4, 3, 0.5}));
  CHECK(check.reason.en.find("the site is wrong") != std::string::npos);
  CHECK(judged_golden(ran_golden(kGoldenLosses), ran_golden({4.0001, 3.1, 2.0 / 3})).outcome == Outcome::Pass);
}

namespace {

/// A golden run of `ranks`, and how it was met: by one process, as recorded, and by all ranks of the site.
Check judged_of_ranks(std::int64_t ranks, const json& alone, const json& recorded, const json& world = {}) {
  auto golden = made_golden();
  golden.ranks = ranks;
  golden.method = "fsdp";
  json values{{"golden", to_json(golden)}, {"alone", alone}, {"changed", json::array()}};
  if (!recorded.is_null()) values["recorded"] = recorded;
  values["no_ranks"] = recorded.is_null();
  if (!world.is_null()) values["world"] = world;
  Check check;
  judge_golden({{0, "node0", "cuda:0", {}, {}, values}}, check);
  return check;
}

json on_gpus(json ran) {
  ran["result"]["device"] = {{"name", "NVIDIA H100"}};
  return ran;
}

}  // namespace

TEST_CASE("a golden run of several ranks is met to the bit by as many ranks, and by others within what is stated") {
  const auto exact = ran_golden(kGoldenLosses);
  const auto near = ran_golden({4, 3.1001, 2.0 / 3});  // one process adds up in another order
  auto check = judged_of_ranks(2, near, exact, near);
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en.starts_with("2 ranks here as recorded and the golden run agree over 3 steps (losses to 0)"));
  CHECK(judged_of_ranks(2, near, near).outcome == Outcome::Fail);
  CHECK(judged_of_ranks(2, ran_golden(kGoldenLosses, "NVIDIA H800"), near).outcome == Outcome::Pass);
  CHECK(judged_of_ranks(2, near, on_gpus(near)).outcome == Outcome::Fail);  // of two numbers any order is one
  CHECK(judged_of_ranks(4, near, near).outcome == Outcome::Fail);           // Gloo's order is its own
  CHECK(judged_of_ranks(4, near, on_gpus(near)).outcome == Outcome::Pass);  // NCCL's is that of the wires
  auto other = exact;
  other["weights"] = std::string(64, 'b');
  check = judged_of_ranks(2, near, other);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("the final weights are not") != std::string::npos);
}

TEST_CASE("of a golden run of several ranks it is said who is wrong: these ranks, one process, or the reference") {
  const auto right = ran_golden(kGoldenLosses), wrong = ran_golden({4, 3.3, 1}), other = ran_golden({4, 3, 0.5});
  auto check = judged_of_ranks(2, right, wrong);
  CHECK(english(check.at_fault) == std::vector<std::string>{"the ranks together, as recorded"});
  CHECK(check.reason.en.find("2 ranks here as recorded and the golden run part in step 2") != std::string::npos);
  CHECK(check.reason.en.find("how this site's ranks train together") != std::string::npos);
  check = judged_of_ranks(2, right, right, wrong);
  CHECK(english(check.at_fault) == std::vector<std::string>{"the ranks together, by the site's method"});
  check = judged_of_ranks(2, wrong, right);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("depends on its number of ranks") != std::string::npos);
  check = judged_of_ranks(2, wrong, wrong);
  CHECK(check.reason.en.find("agree with each other: the golden run is of other") != std::string::npos);
  check = judged_of_ranks(2, wrong, other);
  CHECK(check.reason.en.find("the site is wrong") != std::string::npos);
}

TEST_CASE("a host without enough GPUs for the recorded ranks says so, and is held to what is stated") {
  const auto near = ran_golden({4, 3.1001, 2.0 / 3});
  const auto check = judged_of_ranks(2, near, {}, near);
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en.find("not run as recorded, this host having fewer than 2 GPUs") != std::string::npos);
  CHECK(judged_of_ranks(2, near, {}, ran_golden({4, 3.3, 1})).outcome == Outcome::Fail);
}

TEST_CASE("ranks that do not divide the batch of the verification job do not run it, and that is no fault") {
  auto golden = made_golden();
  golden.job.verb = "run";
  golden.rows = 0;
  CHECK(job_on_ranks(golden, "/p", "x", 4).has_value());
  CHECK_FALSE(job_on_ranks(golden, "/p", "x", 3).has_value());
  golden.job.settings["global_batch"] = "12";
  CHECK(job_on_ranks(golden, "/p", "x", 3).has_value());
  golden.job.settings["micro_batches"] = "4";
  CHECK_FALSE(job_on_ranks(golden, "/p", "x", 2).has_value());
}

TEST_CASE("each crew trains on the recorded rows of a step, whoever divides them") {
  auto golden = made_golden();
  golden.job.verb = "sft";
  golden.job.settings["per_device_train_batch_size"] = "2";
  golden.job.settings["gradient_accumulation_steps"] = "3";
  golden.ranks = 2;
  golden.rows = 12;
  const auto batch_of = [&](std::int64_t ranks) {
    const auto job = job_on_ranks(golden, "/p", "x", ranks);
    if (!job) return std::string("none");
    CHECK(job->settings.at("model") == "/p/models/tiny");
    return job->settings.at("per_device_train_batch_size") + " x " + job->settings.at("gradient_accumulation_steps");
  };
  CHECK(batch_of(1) == "2 x 6");
  CHECK(batch_of(2) == "2 x 3");
  CHECK(batch_of(4) == "1 x 3");
  CHECK(batch_of(5) == "none");
  golden.job.settings["per_device_train_batch_size"] = "0";  // of a file that says nonsense
  CHECK(batch_of(1) == "1 x 12");
}

TEST_CASE(
    "a processor is of another kind where other kernels were chosen for it, and a golden run and same_bits say alike") {
  const auto with = [](const char* units) {
    return device_name({{"device", {{"type", "cpu"}, {"vector_units", units}}}});
  };
  CHECK(with("AVX2") != with("DEFAULT"));  // by ATEN_CPU_CAPABILITY
  CHECK(with("AVX2") == processor_kind("AVX2"));
  CHECK(device_name({{"device", {{"type", "cuda"}, {"name", "NVIDIA H100"}}}}) == "NVIDIA H100");
}

TEST_CASE("what acts rank by rank is known from the settings") {
  const auto setting = [](std::map<std::string, std::string> settings, const char* verb = "sft") {
    return setting_by_rank({.name = "x", .verb = verb, .settings = std::move(settings)}, "/nowhere");
  };
  CHECK(setting({}) == "lora_dropout");  // 0.05 where nothing is said
  CHECK(setting({{"lora_dropout", "0.1"}}) == "lora_dropout");
  CHECK(setting({{"lora_dropout", "0"}}).empty());
  CHECK(setting({{"tuner_type", "none"}}).empty());
  CHECK(setting({}, "run").empty());
  CHECK(setting({{"lora_dropout", "0"}, {"router_aux_loss_coef", "0.001"}}) == "router_aux_loss_coef");
  CHECK(setting({{"lora_dropout", "0"}, {"precision", "fp16"}}) == "precision");
  CHECK(setting({{"lora_dropout", "0"}, {"rlhf_type", "orpo"}}, "dpo") == "rlhf_type");
  CHECK(setting({{"lora_dropout", "0"}, {"rlhf_type", "simpo"}, {"cpo_alpha", "0"}}, "dpo").empty());
  const auto prefix = std::filesystem::temp_directory_path() / ("by-rank-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(prefix / "a");
  const TrainingJob of_adapters{.name = "x", .verb = "sft", .settings = {{"adapters", "a"}, {"lora_dropout", "0"}}};
  std::ofstream(prefix / "a/adapter_config.json") << R"({"lora_dropout": 0.1})";
  CHECK(setting_by_rank(of_adapters, prefix) == "lora_dropout");
  std::ofstream(prefix / "a/adapter_config.json") << R"({"lora_dropout": 0.0})";
  CHECK(setting_by_rank(of_adapters, prefix).empty());
  std::filesystem::remove_all(prefix);
}

TEST_CASE("what one process recorded and acts rank by rank blames no ranks: NOT RUN, and who is alone is held") {
  auto golden = made_golden();
  golden.by_rank = "lora_dropout";
  CHECK(golden_from(json::parse(to_json(golden).dump()), "g.json").by_rank == "lora_dropout");
  const auto judged = [&](const std::vector<double>& losses) {
    json values{{"golden", to_json(golden)},
                {"alone", ran_golden(losses)},
                {"changed", json::array()},
                {"by_rank", "lora_dropout"}};
    Check check;
    judge_golden({{0, "node0", "cuda:0", {}, {}, values}}, check);
    return check;
  };
  const auto check = judged(kGoldenLosses);
  CHECK(check.outcome == Outcome::NotRun);
  CHECK(check.at_fault.empty());
  CHECK(check.reason.en.find("lora_dropout is above 0, and each rank draws random numbers") != std::string::npos);
  CHECK(check.reason.en.find("record it with lora_dropout = 0") != std::string::npos);
  CHECK(judged({4, 3, 1}).outcome == Outcome::Fail);
}

TEST_CASE("a file with other bytes is named with its host before any number is judged") {
  json values{{"golden", to_json(made_golden())}, {"alone", ran_golden({1, 1, 1})}, {"changed", json::array()}};
  Check check;
  judge_golden(
      {{0, "node0", "cpu", {}, {}, values}, {1, "node1", "cpu", {}, {}, {{"changed", {"models/tiny/config.json"}}}}},
      check);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == std::vector<std::string>{"models/tiny/config.json on node1"});
}

TEST_CASE("all files of a model's folder belong to the golden run") {
  const auto prefix = std::filesystem::temp_directory_path() / ("golden-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(prefix / "models/tiny");
  std::ofstream(prefix / "models/tiny/config.json") << "abc";
  const auto inputs = inputs_of(made_golden().job, prefix);
  std::filesystem::remove_all(prefix);
  REQUIRE(inputs.size() == 1);
  CHECK(inputs.at("models/tiny/config.json") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(golden_checks({}).at(0).name == "training.golden");
  CHECK(golden_checks({"a", "b"}).at(1).name == "training.golden.b");
}

TEST_CASE("Python's side is named by its method, the step and both numbers, and a rank that failed by its host") {
  const json right{{"ranks", 2}, {"losses", kGoldenLosses}, {"norms", {1, 1, 1}}, {"versions", {{"torch", "2.11.0"}}}};
  const auto judged = [&](const json& ddp, const json& fsdp2) {
    Check check;
    judge_python_golden(
        {{0, "node0", "cpu", {}, {}, {{"golden", to_json(made_golden())}, {"ddp", ddp}, {"fsdp2", fsdp2}}}}, check);
    return check;
  };
  CHECK(judged(right, right).outcome == Outcome::Pass);
  auto wrong = right;
  wrong["losses"][1] = 3.2;
  const auto check = judged(right, wrong);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("Python's FSDP2 on 2 ranks and the golden run part in step 2: loss 3.2") !=
        std::string::npos);
  CHECK(check.reason.en.find("DDP on") == std::string::npos);
  for (const json& bad : {json("nan"), json("inf"), json()}) {
    wrong["losses"][1] = bad;
    CHECK(judged(wrong, right).outcome == Outcome::Fail);
  }
  Check failed;
  judge_python_golden({{1, "node1", "cpu", {}, {}, {{"code", 1}, {"failed", "Python: no module"}}}}, failed);
  CHECK(english(failed.at_fault) == std::vector<std::string>{"rank 1 on node1 (cpu)"});
}

TEST_CASE("swift sft is named by the step and both numbers, and one that computed nothing has not passed") {
  const auto judged = [](const json& values) {
    Check check;
    judge_python_golden({{0, "node0", "cpu", {}, {}, values}}, check);
    return check;
  };
  json ran{{"ranks", 1}, {"losses", kGoldenLosses}, {"norms", {1, 1, 1}}, {"versions", {{"ms-swift", "4.6.1"}}}};
  const auto golden = to_json(made_golden());
  auto check = judged({{"golden", golden}, {"swift", ran}});
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en.starts_with("swift sft on 1 ranks and the golden run agree over 3 steps"));
  CHECK(check.facts == std::vector<Fact>{{"ms-swift", "4.6.1"}});
  ran["losses"][2] = 0.7;
  check = judged({{"golden", golden}, {"swift", ran}});
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.starts_with(
      "swift sft on 1 ranks and the golden run part in step 3: loss 0.7, expected 0.6666666666666666"));
  ran["losses"] = json::array();
  CHECK(judged({{"golden", golden}, {"swift", ran}}).outcome == Outcome::Fail);
  CHECK(judged({{"golden", golden}}).outcome != Outcome::Pass);
  CHECK_THROWS(judged({{"golden", golden}, {"swift", nullptr}}));
}

TEST_CASE("an adapter that changes nothing, or that PEFT computes otherwise, fails") {
  const auto judged = [](double before, double after, double ours) {
    Check check;
    judge_adapter({{0, "node0", "cpu", {}, {}, {{"before", before}, {"after", after}, {"ours", ours}}}}, check);
    return check;
  };
  CHECK(judged(4, 3, 3.00001).outcome == Outcome::Pass);
  CHECK(judged(4, 3, 3.01).outcome == Outcome::Fail);
  CHECK(judged(4, 3, std::nan("")).outcome == Outcome::Fail);
  Check check;
  judge_adapter({{0, "node0", "cpu", {}, {}, {{"before", 4}, {"after", "nan"}, {"ours", 3}}}}, check);
  CHECK(check.outcome == Outcome::Fail);
  const auto same = judged(3, 3, 3);
  CHECK(same.outcome == Outcome::Fail);
  CHECK(same.reason.en == "the adapter changes nothing in PEFT");
}
