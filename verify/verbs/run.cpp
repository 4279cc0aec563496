// SPDX-License-Identifier: Apache-2.0
// `sealift-verify run`: arguments in; every rank runs the checks, rank 0 writes the report.
// The story of the program: connect -> list the checks -> conduct -> verdict -> pages.
// Starting ranks is the trainer's on_ranks; what the checks are is in the rooms beside this one.
#include "bundle/core/text_parts.hpp"
#include "bundle/host/require_trusted.hpp"
#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/core/error.hpp"
#include "trainer/failure.hpp"
#include "trainer/ranks/device.hpp"
#include "trainer/ranks/enough_limits.hpp"
#include "trainer/ranks/on_ranks.hpp"
#include "trainer/ranks/place.hpp"
#include "verify/communication/nccl_log.hpp"
#include "verify/conduct/exchange.hpp"
#include "verify/conduct/host_names.hpp"
#include "verify/conduct/identity.hpp"
#include "verify/conduct/site_file.hpp"
#include "verify/conduct/utc_now.hpp"
#include "verify/egress/checks.hpp"
#include "verify/egress/counted_network.hpp"
#include "verify/egress/run_watch.hpp"
#include "verify/report/folder.hpp"
#include "verify/training/golden.hpp"
#include "verify/verbs/all_checks.hpp"
#include "verify/verbs/end_of_run.hpp"
#include "verify/verbs/start_of_run.hpp"
#include "verify/verbs/verbs.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/statement.hpp"

#include <signal.h>
#include <unistd.h>

#include <set>
#include <thread>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  std::string site_file, level = "quick", out = "sealift-verify-out", device = "auto", prefix;
  std::vector<std::string> only;
  std::int64_t ranks = 0, patience = 3600, minutes = 0;
  std::uint64_t seed = 1;
  bool own_network = false;
};

/// How long ranks have to start, or --patience if that is less.
constexpr std::chrono::seconds kMostToStart = std::chrono::minutes(5);

/// Set in a network of the run's own: the addresses that the host had, with commas.
constexpr const char* kOwnNetwork = "SEALIFT_VERIFY_OWN_NETWORK";

void say(const std::string& line) {
  std::cerr << line + '\n';
}

/// A day at most: a longer burn is --level burn with burn_seconds.
void need_minutes(std::int64_t minutes) {
  if (minutes < 0 || minutes > 1440)
    throw std::invalid_argument("--minutes " + std::to_string(minutes) + ": expected 0 to 1440");
}

Level level_of(const std::string& name) {
  for (const auto level : {Level::Quick, Level::Full, Level::Burn}) {
    if (name_of(level) == name) return level;
  }
  throw std::invalid_argument("--level " + name + ": expected quick, full or burn");
}

Site site_of(const RunArguments& arguments, const train::Launch& launch, const std::string& device) {
  const auto hostname = see_host().hostname;
  Site site{.rank = launch.rank,
            .world_size = launch.world_size,
            .local_rank = launch.local_rank,
            .local_world_size = launch.local_world_size,
            .host = hostname,
            .hostname = hostname,
            .device = device,
            .level = level_of(arguments.level),
            .only = arguments.only,
            .prefix = arguments.prefix.empty() ? fs::read_symlink("/proc/self/exe").parent_path().parent_path()
                                               : fs::absolute(arguments.prefix),
            .shared = fs::absolute(arguments.out),
            .expected = nlohmann::json::object(),
            .master_addr = launch.master_addr.empty() ? "127.0.0.1" : launch.master_addr,
            .seed = arguments.seed,
            .minutes = arguments.minutes,
            .own_network = std::getenv(kOwnNetwork) != nullptr};
  if (!arguments.site_file.empty()) site.expected = read_site_file(arguments.site_file);
  return site;
}

/// Before any rank is started: without room for scratch or for the report, a run could tell nothing at its end.
void need_folders(const RunArguments& arguments) {
  std::error_code fault;
  const auto scratch = fs::temp_directory_path(fault);
  if (!fault && access(scratch.c_str(), W_OK | X_OK) != 0) fault = {errno, std::generic_category()};
  if (fault) {
    const char* named = std::getenv("TMPDIR");
    throw std::invalid_argument("no folder for scratch in " + std::string(named ? named : "/tmp") + ": " +
                                fault.message() + "; set TMPDIR to a folder where there is room");
  }
  if (train::parse_launch().rank != 0) return;  // rank 0 writes the report
  try {  // what a stopped run has recorded there is believed, and links there would be followed
    bundle::require_trusted_path(arguments.out, bundle::Above::Site, "another user may change this report");
  } catch (const bundle::Error& error) {
    throw std::invalid_argument("--out " + arguments.out + ": " + error.what());
  }
  fs::create_directories(arguments.out, fault);
  if (!fault && access(arguments.out.c_str(), W_OK | X_OK) != 0) fault = {errno, std::generic_category()};
  if (fault) {
    throw std::invalid_argument("--out " + arguments.out + ": no report can be written there: " + fault.message() +
                                "; name a folder that you may write to");
  }
}

/// "cuda:3 NVIDIA H100 80GB HBM3", or "cpu".
std::string name_of(const trainer::RankDevice& device) {
  return device.device.str() + (device.device.is_cuda() ? " " + device.description.value("name", "") : "");
}

std::vector<std::string> addresses_of_host() {
  const char* before = std::getenv(kOwnNetwork);
  if (!before) return own_addresses();
  std::vector<std::string> addresses;
  for (const auto address : bundle::split(before, ',')) {
    if (!address.empty()) addresses.emplace_back(address);
  }
  return addresses;
}

/// Before the ranks are started: where calls cannot be watched, or the site asks for it, all of them share a network
/// that counts. It needs all ranks here.
void enter_own_network(const RunArguments& arguments) {
  if (std::getenv(kOwnNetwork)) return;  // a rank of one that did
  const bool can_watch =
      observe({"true"}, {}, std::chrono::seconds(20), fs::temp_directory_path(), Allowed({}, {}, ""), {}).fault.empty();
  if (can_watch && !arguments.own_network) return;
  const auto launch = train::parse_launch();
  std::string addresses, fault;
  for (const auto& address : own_addresses()) addresses += (addresses.empty() ? "" : ",") + address;
  if (launch.world_size > 1)
    fault = "a launcher started the ranks; start those of one host with --ranks";
  else
    fault = enter_counted_network();
  if (fault.empty())
    setenv(kOwnNetwork, addresses.c_str(), 1);
  else if (arguments.own_network)
    throw std::invalid_argument("--own-network: " + fault);
  else
    say("calls of programs cannot be watched here, and there can be no network that counts: " + fault);
}

/// Rank 0's options count on all ranks: with others they would run different checks, or allow what it does not.
void take_options_of_first(const Exchange& exchange, Site& site) {
  const auto said = exchange.broadcast(nlohmann::json{
      {"level", static_cast<int>(site.level)},
      {"seed", site.seed},
      {"only", site.only},
      {"own_network", site.own_network},
      {"expected", site.expected}}.dump());
  const auto first = nlohmann::json::parse(said);
  site.level = static_cast<Level>(first.at("level").get<int>());
  site.seed = first.at("seed");
  site.only = first.at("only").get<std::vector<std::string>>();
  site.own_network = first.at("own_network");
  site.expected = first.at("expected");
}

/// Hosts that share a hostname get names of their own: all that follows counts and names hosts by them.
void name_hosts(const Exchange& exchange, Site& site) {
  const auto mine = see_host();
  std::vector<HostSeen> seen;
  const nlohmann::json said{mine.hostname, mine.identity};
  for (const auto& text : exchange.gather(said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
    const auto json = nlohmann::json::parse(text);
    seen.push_back({json.at(0), json.at(1)});
  }
  const auto names = nlohmann::json::parse(exchange.broadcast(nlohmann::json(names_of_hosts(seen)).dump()));
  site.host = names.at(static_cast<std::size_t>(site.rank));
}

/// By rank, on rank 0: its host and device, and what they run.
nlohmann::json machines_of(const Exchange& exchange, const Site& site, const std::string& device) {
  auto machines = nlohmann::json::array();
  const nlohmann::json mine{{"host", site.host}, {"device", device}, {"system", system_of_host()}};
  for (const auto& text : exchange.gather(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    machines.push_back(nlohmann::json::parse(text));
  return machines;
}

std::vector<Node> nodes_of(const nlohmann::json& machines) {
  std::vector<Node> nodes;
  for (std::size_t rank = 0; rank < machines.size(); ++rank) {
    const auto& json = machines[rank];
    const auto host = json.at("host").get<std::string>();
    auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& other) { return other.host == host; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), Node{.host = host, .ranks = {}, .devices = {}});
    node->ranks.push_back(static_cast<std::int64_t>(rank));
    node->devices.push_back(json.at("device"));
  }
  return nodes;
}

/// What programs of this run may reach: what the site lists, and its hosts, since what ranks say to each other leaves
/// nothing.
Allowed allowed_of(const Exchange& exchange, const Site& site) {
  const auto said = nlohmann::json{{"addresses", addresses_of_host()}, {"host", site.hostname}}.dump();
  std::set<std::string> addresses, hosts;
  for (const auto& text : exchange.gather(said)) {
    const auto json = nlohmann::json::parse(text);
    for (const auto& address : json.at("addresses")) addresses.insert(address.get<std::string>());
    hosts.insert(json.at("host").get<std::string>());
  }
  const auto all = nlohmann::json::parse(exchange.broadcast(nlohmann::json::array({addresses, hosts}).dump()));
  return allowed_in_run(site, all.at(0), all.at(1));
}

/// What `story` returns. Where it throws, rank 0 makes the report, after `before`, and another rank leaves its word to
/// that one; the run is FAIL then, whatever it ended by.
template <class Story, class Before>
auto or_report(std::int64_t rank, const fs::path& out, const Story& story, const Before& before) {
  try {
    return story();
  } catch (const std::exception& error) {
    const auto ending = ending_of(error, rank);
    if (rank == 0) {
      before();
      report_end(with_word(ending, out), out);
    } else {
      leave_word(ending, rank, out);
    }
    throw std::runtime_error(trainer::text_of(error));
  }
}

/// The launcher's report of ranks that ended: what the first of them says of it counts for more than its code.
void report_failed_rank(const trainer::RanksEnd& end, const fs::path& folder) {
  if (!end.started_ranks || end.code == 0) return;
  if (!end.failed || end.code == trainer::kToldToEnd) {
    if (!is_kept()) report_end(told_to_end(SIGTERM), folder);  // else its keeper knows by which signal
    return;
  }
  Ending ending{.ranks = {end.failed->rank}, .how = ended_with(end.failed->status)};
  if (const auto word = find_word(end.failed->rank, folder)) ending = *word;
  report_end(ending, folder);
}

/// What one rank does; rank 0 returns report.json. `met`: the ranks, from when they are connected until
/// it is known which hosts they are on.
nlohmann::ordered_json verify(const RunArguments& arguments, const train::Launch& launch,
                              std::optional<train::Groups>& groups, std::optional<train::World>& met) {
  auto device = trainer::set_up_device(arguments.device, launch);
  trainer::compute_reproducibly(device);
  const bundle::ScratchFolder work(kScratch);  // nobody else's, gone at the end
  if (device.device.is_cuda()) ask_for_nccl_log(work.path());
  trainer::require_files(trainer::files_needed(launch.world_size));
  trainer::require_threads(trainer::threads_needed(1, 1));
  const std::chrono::seconds patience(arguments.patience);
  auto ranks = train::connect(launch, std::min<std::chrono::seconds>(patience, kMostToStart), trainer::say_as(launch));
  ranks.device = device.device;
  met = ranks;
  auto site = site_of(arguments, launch, device.device.str());
  say_place(ranks, {.host = site.hostname, .ranks = {}, .devices = {name_of(device)}});
  at::set_num_threads(static_cast<int>(train::host::threads_of(ranks.processors)));
  trainer::check_devices(device, launch, ranks);
  groups.emplace(train::make_groups(ranks, train::Mesh(1, ranks.size)));
  if (site.rank == 0) note_places(ranks, site.shared);
  site.work = work.path();
  const auto note_lost = [out = site.shared](const auto& lost, int signal) {
    leave_word(lost_before(lost, signal), lost.front(), out);
  };
  const auto exchange = ranks.size == 1
                            ? alone()
                            : over_store(ranks, patience, note_lost, [&work] { bundle::remove_scratch(work.path()); });
  take_options_of_first(exchange, site);
  name_hosts(exchange, site);
  Verdict verdict{.site = site.expected.value("name", site.hostname),
                  .level = site.level,
                  .started = utc_now(),
                  .program = std::string("LibTorch ") + TORCH_VERSION,
                  .bundle = bundle_of(site.prefix)};
  // Rank 0's list, so that all ranks run the same checks; one that lacks a file says so in its check.
  const std::vector<std::string> golden =
      nlohmann::json::parse(exchange.broadcast(nlohmann::json(golden_names(site.prefix)).dump()));
  const auto machines = machines_of(exchange, site, name_of(device));
  verdict.nodes = nodes_of(machines);
  met.reset();  // hosts have names of their own from here on
  const auto allowed = allowed_of(exchange, site);
  site.watch = std::make_shared<RunWatch>(allowed);
  const auto count = site.own_network && site.rank == 0 ? std::make_shared<PacketCount>() : nullptr;
  std::function<std::vector<Attempt>()> packets;
  if (count) packets = [count, allowed] { return count->attempts(allowed); };
  if (site.rank == 0) remove_report(site.shared);
  const auto kinds = all_checks(*groups, device.device, golden, packets);
  const auto progress = [&](const std::vector<Check>& done, const std::vector<Check>& left) {
    Draft draft{.verdict = verdict, .left = left, .since = utc_now()};
    draft.verdict.checks = done;
    keep_draft(draft, site.shared);
  };
  auto conducted =
      conduct(kinds, site, exchange, identity_of(site, verdict.bundle, verdict.program, machines), say, progress);
  verdict.checks = std::move(conducted.checks);
  if (!conducted.began.empty()) verdict.started = conducted.began;  // which may have been an earlier run's
  verdict.finished = utc_now();
  if (site.rank != 0) return {};
  remove_draft(site.shared);
  write_report(verdict, site.shared);
  return to_json(verdict);
}

nlohmann::ordered_json verify_or_report(const RunArguments& arguments, const train::Launch& launch,
                                        std::optional<train::Groups>& groups) {
  const auto out = fs::absolute(arguments.out);
  std::optional<train::World> met;
  return or_report(
      launch.rank, out, [&] { return verify(arguments, launch, groups, met); },
      [&] {
        if (met) note_places(*met, out);
      });
}

/// As on_ranks. What this process cannot do as a launcher is said in the report; arguments are no matter of a report.
trainer::RanksEnd verify_on_ranks(const RunArguments& arguments, char** argv) {
  try {
    enter_own_network(arguments);
    return trainer::on_ranks(
        [&](const auto& launch, auto& world) { return verify_or_report(arguments, launch, world); }, arguments.ranks,
        argv);
  } catch (const std::exception& error) {
    const auto out = fs::absolute(arguments.out);
    if (train::parse_launch().rank != 0) throw;
    if (trainer::exit_code_of(error) == trainer::kCannotTell) {
      remove_draft(out);
    } else {
      report_end({.ranks = {}, .how = ended_by(error)}, out);
    }
    throw;
  }
}

int run_ranks(const RunArguments& arguments, char** argv) {
  const auto end = verify_on_ranks(arguments, argv);
  if (!end.result) {
    report_failed_rank(end, fs::absolute(arguments.out));
    return end.code;
  }
  const auto outcome = end.result->at("verdict").get<std::string>();
  std::cout << statement(verdict_from(nlohmann::json(*end.result)), Language::English) << "\n"
            << "report: " << fs::absolute(arguments.out / fs::path("report.html")).string() << '\n';
  if (outcome == "FAIL") return trainer::kBad;
  return outcome == "PASS" ? 0 : trainer::kCannotTell;
}

/// What can be wrong with the arguments is said before any rank starts, by each for itself. Then rank 0, or who starts
/// it, begins the draft.
void begin(const RunArguments& arguments) {
  need_folders(arguments);
  const auto launch = train::parse_launch();
  const auto site = site_of(arguments, launch, arguments.device);
  train::Groups none;  // the checks are listed and not made
  const auto kinds = all_checks(none, at::kCPU, golden_names(site.prefix));
  need_checks(kinds, site.only, site.rank);
  if (!is_kept()) bundle::ScratchFolder::remove_abandoned_temporary(kScratch);  // of runs that were killed
  if (site.rank != 0 || is_kept()) return;
  hold_signals();
  remove_draft(site.shared);  // of a run of which nobody was left
  keep_draft(first_draft(site, std::max(arguments.ranks, launch.local_world_size), kinds), site.shared);
}

}  // namespace

void add_run(bundle::Program& program, char** argv) {
  const auto arguments = std::make_shared<RunArguments>();
  const auto verb = program.verb("run", "run the checks and write OUT/report.html, report.txt and report.json");
  verb.option("--site", arguments->site_file, "TOML file: what the site expects of itself");
  verb.option("--level", arguments->level, "quick (about 1 minute), full (10) or burn (60)");
  verb.option("--out", arguments->out, "folder of the report; a stopped run with the same folder goes on");
  verb.option("--device", arguments->device, "auto, cpu or cuda");
  verb.option("--prefix", arguments->prefix, "the generation to verify; without: this program's");
  verb.option("--only", arguments->only, "checks whose names begin so; can be repeated");
  verb.option("--seed", arguments->seed, "of the data and weights that checks make; the same on every rank");
  verb.flag("--own-network", arguments->own_network,
            "run in a network of its own and count what tries to leave it; without: where calls cannot be watched");
  verb.option("--minutes", arguments->minutes,
              "minutes for which each device repeats its quick steps, to find rarer faults (0: twice)");
  verb.option("--patience", arguments->patience, "seconds that one rank may take longer than the first");
  trainer::add_ranks(verb, arguments->ranks);
  verb.action([arguments, argv] {
    level_of(arguments->level);
    need_minutes(arguments->minutes);
    begin(*arguments);
    const auto run = [&] { return run_ranks(*arguments, argv); };
    if (train::parse_launch().rank != 0) return run();
    const bool is_rank = arguments->ranks <= 1 && !train::parse_launch().is_node;
    return keep_run(run, is_rank ? std::optional<std::int64_t>(0) : std::nullopt, fs::absolute(arguments->out));
  });
}

}  // namespace sealift::verify
