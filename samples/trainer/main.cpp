// SPDX-License-Identifier: Apache-2.0
// sealift-train: trains a small model on data of known entropy, to show that an environment computes what it should.
// Arguments -> options -> one call -> print. Results on stdout, everything else on stderr.
// Exit codes: 0 good, 1 bad (a rank failed, a check did not hold), 2 cannot tell (arguments, files).
#include "check.hpp"
#include "job_policy.hpp"
#include "local_ranks.hpp"
#include "options.hpp"
#include "run.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>

C10_DECLARE_int(caffe2_log_level);

namespace {

using namespace sealift;

/// One write per line: ranks share a standard error.
void say(const std::string& line) {
  std::cerr << line + '\n';
}

void print(const nlohmann::ordered_json& result, bool json) {
  if (json) {
    std::cout << result.dump(1) << '\n';
    return;
  }
  std::cout << result["parallel_method"].get<std::string>() << " x" << result["world_size"] << ": loss "
            << result["final_loss"].get<double>() << " after " << result["steps"] << " steps, floor "
            << result["entropy_floor"].get<double>() << ", " << result["verdict"].get<std::string>() << '\n';
}

int print(const trainer::CheckReport& report, std::size_t runs, bool json) {
  const bool good = report.problems.empty();
  if (json) {
    std::cout << nlohmann::ordered_json{{"runs", runs},
                                        {"max_relative_difference", report.max_relative_difference},
                                        {"digits", report.digits},
                                        {"final_loss", report.final_loss},
                                        {"entropy_floor", report.floor},
                                        {"problems", report.problems},
                                        {"verdict", good ? "pass" : "fail"}}
                     .dump(1)
              << '\n';
  } else {
    std::cout << runs << " runs: losses agree to " << report.max_relative_difference << " relative (" << report.digits
              << " digits); final loss " << report.final_loss << " is " << report.final_loss / report.floor
              << " times the floor " << report.floor << "; " << (good ? "pass" : "fail") << '\n';
  }
  for (const auto& problem : report.problems) say("sealift-train: " + problem);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small GPT on a synthetic language whose entropy is known, in one process or many ranks.",
               "sealift-train");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("LibTorch ") + TORCH_VERSION);

  auto* run = app.add_subcommand("run", "train and write OUT/log.jsonl and OUT/result.json");
  trainer::Texts flags;
  std::string config_file;
  std::int64_t ranks = 0;
  bool json = false;
  run->add_option("--config", config_file, "TOML file of the settings below, names with underscores");
  run->add_option("--ranks", ranks, "start this many ranks on this host; without: as the launcher's variables say")
      ->check(CLI::Range(1, 1024));
  run->add_flag("--json", json, "print result.json");
  for (const auto& setting : trainer::settings()) {
    run->add_option_function<std::string>(
        setting.flag(), [&flags, name = setting.name](const std::string& text) { flags[name] = text; },
        setting.help + " [" + setting.variable() + "]");
  }

  auto* check =
      app.add_subcommand("check", "compare result.json files with the first, and their losses with the floor");
  std::vector<std::string> files;
  double tolerance = 1e-4;
  double floor_factor = trainer::kFloorFactor;
  check->add_option("results", files, "result.json files")->required();
  check->add_option("--tolerance", tolerance, "largest relative difference of a loss")->capture_default_str();
  check->add_option("--floor-factor", floor_factor, "largest final loss, as a multiple of the floor")
      ->capture_default_str();
  check->add_flag("--json", json, "print the report as JSON");

  auto* to_plain = app.add_subcommand("export", "write a checkpoint as safetensors files that other programs read");
  std::string checkpoint, target;
  double max_file_gb = 0;
  bool half = false;
  to_plain->add_option("checkpoint", checkpoint, "a step-N folder, or a folder of them: the last one")->required();
  to_plain->add_option("target", target, "a file, or with --max-file-gb a new folder")->required();
  to_plain->add_option("--max-file-gb", max_file_gb, "write a set of files of at most this many GB and its index")
      ->check(CLI::Range(1e-6, 1e6));
  to_plain->add_flag("--bf16", half, "convert floating tensors to bfloat16");

  // Outlives the try block: an error must be reported while this rank is still connected, or leaving could block on it.
  std::optional<train::Groups> world;
  std::string rank;  // "rank 3"; empty for a rank alone
  // The other ranks say it too, so that whoever reads any one of their logs knows whose fault it was.
  const auto fail = [&](const std::string& what) {
    const bool says_it = rank.empty() || what.starts_with(rank + " ");  // as what a collective throws does
    say("sealift-train: " + (says_it ? "" : rank + ": ") + what);
    if (world) world->report_failure(what);
  };
  // c10d warns about every address that no name service knows, and an isolated host may have none.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = 2;
  try {
    app.parse(argc, argv);
    if (*check) return print(trainer::check(trainer::read_results(files), tolerance, floor_factor), files.size(), json);

    if (*to_plain) {
      const auto last = train::is_whole(checkpoint) ? std::optional<std::filesystem::path>(checkpoint)
                                                    : train::latest_checkpoint(checkpoint);
      TORCH_CHECK(last, checkpoint, " is no whole checkpoint and has none in it");
      train::ExportOptions options{.max_file_bytes = static_cast<std::uint64_t>(max_file_gb * 1e9)};
      if (half) options.dtype = at::kBFloat16;
      train::export_checkpoint(*last, target, options);
      say("sealift-train: wrote " + target + " from " + last->string());
      return 0;
    }

    const auto options = trainer::read_options(flags, config_file);
    trainer::make_policy(options);  // what cannot be is refused once, not by each rank
    const auto launch = train::parse_launch();
    const bool launched = launch.world_size > 1;
    if (ranks > 1 && !launched) return trainer::run_local_ranks(trainer::on_this_host(ranks), argv);
    if (ranks > 0 && ranks != launch.local_world_size) {
      throw std::invalid_argument("--ranks " + std::to_string(ranks) + " inside a launch with " +
                                  std::to_string(launch.local_world_size) + " ranks on this host; leave --ranks away");
    }
    if (launch.is_node) return trainer::run_local_ranks(launch, argv);
    if (launched) rank = "rank " + std::to_string(launch.rank);
    if (launch.rank == 0) say("sealift-train: " + launch.source);
    const auto result = trainer::run(options, launch, world);
    if (launch.rank == 0) print(result, json);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::invalid_argument& error) {
    fail(error.what());
    std::_Exit(2);
  } catch (const c10::Error& error) {
    fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(error.what());
  }
  std::_Exit(1);
}
