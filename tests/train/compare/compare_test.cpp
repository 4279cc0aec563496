// SPDX-License-Identifier: Apache-2.0
// What runs cost, side by side: which numbers are read, whether losses agree, what is advised, what a page shows.
#include "trainer/compare/page.hpp"
#include "trainer/compare/race.hpp"
#include "trainer/compare/shown.hpp"

#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

using namespace sealift::trainer;
using namespace sealift::trainer::compare;
using nlohmann::json;
using plan::Language;

namespace {

json result(const std::string& method, double tokens, double peak, double waiting, const std::string& device = "cuda") {
  return {{"parallel_method", method},
          {"world_size", 4},
          {"reshard_after_forward", true},
          {"losses", {2.0, 1.5, 1.25}},
          {"device", {{"type", device}, {"name", "A card"}}},
          {"configuration", {{"seed", "42"}, {"precision", "fp32"}}},
          {"planned", {{"memory_bytes", peak / 2}, {"step_seconds", 0.5}}},
          {"monitor",
           {{"tokens_per_second_per_device", tokens},
            {"communication", {{"exposed_share", {{"median", waiting}}}}},
            {"seconds_per_step", {{"step", {{"median", 0.25}}}}},
            {"start_up_seconds", {{"total", {{"max", 3.5}}}}},
            {"peak_device_memory_bytes", {{"max", peak}}},
            {"peak_host_memory_bytes", {{"max", peak + 1}}},
            {"checkpoint_seconds", {{{"step", 4}, {"seconds", 1.5}}, {{"step", 8}, {"seconds", 2.5}}}}}}};
}

RunCost cost(const std::string& name, const json& of) {
  auto cost = cost_of_result(of, "result.json");
  cost.name = name;
  return cost;
}

constexpr double kGiB = 1 << 30;

std::string refusal(const json& bad) {
  try {
    cost_of_result(bad, "FILE");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the cost of a run is read from its result.json") {
  const auto run = cost("a", result("fsdp", 1000, 4 * kGiB, 0.1));
  CHECK(run.method == "fsdp");
  CHECK(run.ranks == 4);
  CHECK(run.on_card);
  CHECK(run.device == "A card");
  CHECK(run.precision == "fp32");
  CHECK(run.peak_bytes == 4 * kGiB);
  CHECK(run.planned_bytes == 2 * kGiB);
  CHECK(run.start_up == 3.5);
  CHECK(run.tokens == 1000);
  CHECK(run.step == 0.25);
  CHECK(run.planned_step == 0.5);
  CHECK(run.waiting == 0.1);
  CHECK(run.checkpoint == 2.5);  // the slowest
  CHECK(run.losses.size() == 3);
  CHECK(cost("b", result("fsdp", 1, 8, 0, "cpu")).peak_bytes == 9);  // of the process
  auto kept = result("fsdp", 1, 1, 0);
  kept["reshard_after_forward"] = false;
  CHECK(cost("c", kept).method == "shard_grad_op");
}

TEST_CASE("what is missing, or no number, is not known") {
  auto bare = result("ddp", 1, 1, 0);
  for (const auto* key : {"device", "configuration", "planned", "monitor"}) bare.erase(key);
  const auto run = cost("a", bare);
  CHECK_FALSE(run.on_card);
  for (const auto& column : columns()) CHECK(column.cell(run) == "-");
  auto odd = result("ddp", 1, 1, 0);
  odd["monitor"]["tokens_per_second_per_device"] = "nan";
  odd["monitor"]["peak_device_memory_bytes"]["max"] = -5;
  odd["monitor"]["communication"] = 7;
  odd["monitor"]["checkpoint_seconds"] = "many";
  CHECK_FALSE(cost("b", odd).tokens);
  CHECK_FALSE(cost("b", odd).peak_bytes);
  CHECK_FALSE(cost("b", odd).waiting);
  CHECK_FALSE(cost("b", odd).checkpoint);
}

TEST_CASE("what is no result is refused by the file's name") {
  for (const auto& bad : {json(), json(7), json::array(), json::object(), json{{"parallel_method", "ddp"}},
                          json{{"parallel_method", 4}, {"losses", json::array()}}}) {
    CHECK(refusal(bad).starts_with("FILE: it has no parallel_method or no losses; give result.json files"));
  }
  for (const auto& ranks : {json(0), json(-1), json(1e30), json("4"), json()}) {
    auto bad = result("ddp", 1, 1, 0);
    bad["world_size"] = ranks;
    CHECK(refusal(bad).starts_with("FILE: its number of ranks is not from 1 to 1000000"));
  }
}

TEST_CASE("losses agree, differ, or are of another job") {
  using Kind = Agreement::Kind;
  auto near = result("fsdp", 1, 1, 0), far = near, wide = near, other = near, not_finite = near;
  near["losses"][2] = 1.25 * (1 + 5e-5);
  far["losses"][1] = 1.5 * (1 + 2e-3);
  wide["losses"][1] = 1.5 * (1 + 2e-3);
  wide["configuration"]["precision"] = "bf16";
  other["configuration"]["seed"] = "43";
  not_finite["losses"][0] = "nan";
  const auto found = compare_runs({cost("first", result("ddp", 1, 1, 0)), cost("near", near), cost("far", far),
                                   cost("other", other), cost("nan", not_finite), RunCost{.fault = "died"}},
                                  1e-4);
  CHECK(found.agreements[0].kind == Kind::First);
  CHECK(found.agreements[1].kind == Kind::Agrees);
  CHECK(found.agreements[1].difference == doctest::Approx(5e-5));
  CHECK(found.agreements[2].kind == Kind::Differs);
  CHECK(found.agreements[3].kind == Kind::AnotherJob);
  CHECK(found.agreements[3].other_keys == std::vector<std::string>{"seed"});
  CHECK(found.agreements[4].kind == Kind::Differs);
  CHECK(std::isinf(found.agreements[4].difference));
  CHECK(found.agreements[5].kind == Kind::Unknown);
  CHECK(found.any_differs());
  // In 16 bits methods round in other places.
  CHECK(compare_runs({cost("a", wide), cost("b", wide)}, 1e-4).agreements[1].kind == Kind::Agrees);
  auto rounded = wide;
  rounded["losses"][1] = 1.5;
  CHECK(compare_runs({cost("a", wide), cost("b", rounded)}, 1e-4).agreements[1].kind == Kind::Agrees);
}

TEST_CASE("the advice goes by rate and memory of runs that agree") {
  const auto ddp = cost("ddp x4", result("ddp", 1200, 8 * kGiB, 0.05));
  const auto fsdp = cost("fsdp x4", result("fsdp", 1000, 2 * kGiB, 0.2));
  const auto advise = [](std::vector<RunCost> runs, Language language = Language::English) {
    return advice_of(compare_runs(std::move(runs), 1e-4), language);
  };
  CHECK(advise({ddp, fsdp}) ==
        "Take ddp x4 where its 8.00 GiB fit: it makes 20 % more tokens/s a device than fsdp x4. fsdp x4 takes 6.00 GiB "
        "less memory and is for what does not fit otherwise. The reason: fsdp x4 waits for other ranks in 20 % of a "
        "step, ddp x4 in 5 %.");
  CHECK(advise({ddp, fsdp}, Language::Chinese).find("选 ddp x4") != std::string::npos);
  auto as_fast = fsdp;
  as_fast.tokens = 1190;
  CHECK(advise({ddp, as_fast}).starts_with("Take fsdp x4: it is as fast as ddp x4 within 5 % and takes 6.00 GiB less"));
  auto faster = fsdp;
  faster.tokens = 1300;
  CHECK(advise({ddp, faster}) ==
        "Take fsdp x4: it is the fastest (1300 tokens/s a device) and takes the least memory (2.00 GiB).");
  auto as_large = fsdp;
  as_large.peak_bytes = 7.9 * kGiB;
  CHECK(advise({ddp, as_large}).starts_with("Take ddp x4: it is the fastest (1200 tokens/s a device), and the others"));
  auto wrong = fsdp;
  wrong.losses[2] = 9;
  CHECK(advise({ddp, wrong}).starts_with("ddp x4") == false);
  CHECK(advise({ddp, wrong}).find("fsdp x4 and ddp x4 computed different losses") == 0);
  CHECK(advise({ddp, wrong}).find("nothing to choose") != std::string::npos);
  CHECK(advise({ddp}).find("nothing to choose") != std::string::npos);
  CHECK(advise({}).find("nothing to choose") != std::string::npos);
}

TEST_CASE("processors advise nothing about cards, nor are they compared with one") {
  const auto ddp = cost("ddp x4", result("ddp", 1200, 8 * kGiB, 0.05, "cpu"));
  const auto fsdp = cost("fsdp x4", result("fsdp", 1000, 2 * kGiB, 0.2, "cpu"));
  const auto card = cost("fsdp x4 (card)", result("fsdp", 9000, kGiB, 0.2));
  CHECK(advice_of(compare_runs({ddp, fsdp}, 1e-4), Language::English)
            .starts_with("These are figures of processors and advise nothing about cards. Take ddp x4"));
  CHECK(advice_of(compare_runs({ddp, card}, 1e-4), Language::English).find("nothing to choose") != std::string::npos);
}

TEST_CASE("a page shows what files say as text, and needs nothing from elsewhere") {
  auto hostile = result("<script>alert(1)</script>", 1000, kGiB, 0.1);
  hostile["device"]["name"] = "\"><img src=x>\x1b[2J";
  hostile["configuration"] = {{"<b>seed</b>", "1"}};
  const auto comparison =
      compare_runs({cost("ddp x4", result("ddp", 500, kGiB, 0.05)), cost("<i>x</i>", hostile)}, 1e-4);
  for (const auto language : {Language::English, Language::Chinese}) {
    const auto page = page_of(comparison, "<title>", language);
    for (const auto* bad : {"<script", "<img", "<i>", "<b>", "<title><", "http:", "https:", "\x1b"})
      CHECK_MESSAGE(page.find(bad) == std::string::npos, bad);
    CHECK(page.find("&lt;i&gt;x&lt;/i&gt;") != std::string::npos);
    // The longest bar is the fastest run's, and the other half as long.
    CHECK(page.find("aria-label=\"1000\"><rect x=\"0\" y=\"3\" width=\"220\"") != std::string::npos);
    CHECK(page.find("aria-label=\"500\"><rect x=\"0\" y=\"3\" width=\"110\"") != std::string::npos);
    // A share's is of the whole: 10 % is a tenth of a bar, though no run waits longer.
    CHECK(page.find("aria-label=\"10 %\"><rect x=\"0\" y=\"3\" width=\"22\"") != std::string::npos);
  }
}

TEST_CASE("files and folders are read, and rows of one name told apart") {
  const sealift::test::TempDir folder;
  const auto path = folder.path();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
    return (path / name).string();
  };
  write("a/result.json", result("ddp", 1, 1, 0).dump());
  write("b/result.json", result("ddp", 1, 1, 0).dump());
  const auto peers =
      write("peers.jsonl", R"({"name":"full_fsdp1_eager","ranks":2,"precision":"fp32","ms_per_step":50.0,)"
                           R"("tokens_per_second":400,"peak_mib":512,"first_loss":2.0,"last_loss":1.0,"device":"cpu"})"
                           "\n\n"
                           R"({"name":"full_ddp_compiled","ranks":2,"failed":"no compiler"})"
                           "\n");
  const auto runs = read_costs({(path / "a").string(), (path / "b/result.json").string(), peers});
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].name == "ddp x4 (a)");
  CHECK(runs[1].name == "ddp x4 (b)");
  CHECK(runs[2].name == "PyTorch full_fsdp1_eager x2");
  CHECK(runs[2].tokens == 200);  // a device
  CHECK(runs[2].step == 0.05);
  CHECK(runs[2].peak_bytes == 512.0 * (1 << 20));
  CHECK(runs[2].losses == std::vector<double>{2.0});
  CHECK(runs[3].name == "PyTorch full_ddp_compiled x2");
  CHECK(runs[3].fault == "no compiler");
  CHECK(compare_runs({runs[0], runs[2]}, 1e-4).agreements[1].kind == Agreement::Kind::Agrees);

  CHECK_THROWS_WITH(read_costs({write("deep/result.json", std::string(1000, '[') + std::string(1000, ']'))}),
                    doctest::Contains("deep/result.json"));
  CHECK_THROWS_WITH(read_costs({write("no/result.json", "{\"a\":")}), doctest::Contains("no/result.json"));
  CHECK_THROWS_WITH(read_costs({write("empty.jsonl", "\n")}), doctest::Contains("it has no line"));
  const auto cut =
      read_costs({write("cut.jsonl", "{\"name\":\"ddp\",\"peak_mib\":1e305,\"tokens_per_second\":0,\"failed\":\"" +
                                         std::string(99, 'x') + "中\"}\n")});
  const auto shown = compare_runs(cut, 1e-4);  // a text that is cut within a character, a number beyond all
  CHECK_NOTHROW(json_of(shown).dump(1, ' ', false, json::error_handler_t::replace));
  CHECK(page_of(shown, "cut", Language::English).find("width=\"220\"") != std::string::npos);
  std::string many;
  for (int i = 0; i < 65; ++i) many += "{\"name\":\"ddp\"}\n";
  CHECK_THROWS_WITH(read_costs({write("many.jsonl", many)}), doctest::Contains("more than 64 lines"));
  CHECK_THROWS(read_costs({(path / "missing").string()}));
}

TEST_CASE("a race refuses methods before it starts anything") {
  const auto refused = [](std::vector<std::string> methods) {
    return race({.program = "/no/program", .methods = std::move(methods), .out = "/no/folder"}, [](const auto&) {});
  };
  CHECK_THROWS_WITH(refused({"ddp", "zero3"}),
                    "--methods: zero3 is no method; expected some of none, ddp, fsdp, shard_grad_op, hsdp");
  CHECK_THROWS_WITH(refused({"ddp", "ddp"}), "--methods names ddp twice");
}
