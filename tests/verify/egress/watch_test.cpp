// SPDX-License-Identifier: Apache-2.0
// Programs that phone home in every way that one knows are each named with where they wanted to go; clean ones are not.
#include "verify/egress/watch.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/conduct/conduct.hpp"
#include "verify/egress/checks.hpp"
#include "verify/egress/counted_network.hpp"
#include "verify/egress/python_stack.hpp"
#include "verify/egress/run_watch.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

using namespace sealift::verify;
namespace fs = std::filesystem;

namespace {

struct WatchFolder {
  fs::path path = fs::temp_directory_path() / ("watch-test-" + std::to_string(getpid()));
  WatchFolder() { fs::create_directories(path); }
  ~WatchFolder() { fs::remove_all(path); }
};

WatchedResult watch(const std::vector<std::string>& argv, const std::vector<std::string>& allowed = {},
                    std::chrono::seconds limit = std::chrono::seconds(20)) {
  const WatchFolder place;
  return run_watched(argv, {}, limit, place.path, Allowed(allowed, own_addresses(), "thishost"));
}

std::set<std::string> destinations_of(const WatchedResult& result) {
  std::set<std::string> all;
  for (const auto& one : result.attempts) all.insert(one.destination + (one.name.empty() ? "" : " " + one.name));
  return all;
}

using Texts = std::set<std::string>;

}  // namespace

TEST_CASE("each way to phone home is named with its destination, its call and its program") {
  const auto result = watch({PHONE_HOME, "connect", "ipv6", "dns", "resolver", "sendmsg", "write", "thread",
                             "grandchild", "connect", "clean"});
  CHECK(result.child.good());
  CHECK(result.child.out == "");
  CHECK(destinations_of(result) == Texts{"192.0.2.1:443", "[2001:db8::7]:443", "192.0.2.53:53 hub.example",
                                         "192.0.2.53:53 telemetry.example", "198.51.100.9:8125", "198.51.100.10:4000",
                                         "192.0.2.1:4444", "192.0.2.1:5555"});
  for (const auto& one : result.attempts) {
    CHECK(one.program == "phone_home");
    CHECK(one.command_line.starts_with(PHONE_HOME));
    if (one.destination == "192.0.2.1:443") CHECK(one.times == 2);
    if (one.destination == "198.51.100.9:8125") CHECK(one.call == "sendmsg");
    if (one.name == "telemetry.example") CHECK(one.call == "sendmmsg");
  }
}

TEST_CASE("a look-up that a resolver on this machine would carry out is an attempt to leave") {
  CHECK(destinations_of(watch({PHONE_HOME, "stub"})) == Texts{"127.0.0.53:53 hub.example"});
  CHECK(watch({PHONE_HOME, "stub"}, {"hub.example"}).attempts.empty());
}

TEST_CASE("a daemon that outlives its program is watched on") {
  CHECK(destinations_of(watch({PHONE_HOME, "daemon"})) == Texts{"192.0.2.1:6666"});
}

TEST_CASE("a process that is left behind is a finding, though it acts only when nobody watches") {
  const auto result = watch({PHONE_HOME, "late_daemon"});
  CHECK(result.attempts.empty());
  REQUIRE(result.left.size() == 1);
  CHECK(result.left[0].find("late_daemon") != std::string::npos);
  CHECK(watch({PHONE_HOME, "daemon"}).left.empty());
}

TEST_CASE("io_uring is refused as if the kernel did not know it, and counted") {
  const auto result = watch({PHONE_HOME, "ring"});
  CHECK(result.child.out == "");
  CHECK(result.io_uring == 1);
}

TEST_CASE("the Python stack shows where an installed prefix takes PYTHONPATH from its Python") {
  const WatchFolder place;
  std::ofstream(place.path / "telemetry.py") << "import socket\n"
                                                "def report():\n"
                                                "    try: socket.create_connection(('203.0.113.5', 443), 1)\n"
                                                "    except OSError: pass\n";
  const auto script = std::string(kNoteStacks) + "import sys; sys.path.insert(0, '" + place.path.string() +
                      "'); import telemetry; telemetry.report()";
  const auto result = watch({"python3", "-I", "-c", script});
  REQUIRE(result.attempts.size() == 1);
  CHECK(result.attempts[0].python.find("telemetry.py:3 in report") != std::string::npos);
}

TEST_CASE("what the site lists may be reached, and nothing else") {
  CHECK(destinations_of(watch({PHONE_HOME, "connect", "ipv6"}, {"2001:db8::/32", "192.0.2.1:4444"})) ==
        Texts{"192.0.2.1:443"});
}

TEST_CASE("clean programs never alarm") {
  for (int i = 0; i < 20; ++i) {
    const auto result = watch({PHONE_HOME, "clean"});
    CHECK(result.child.good());
    CHECK(result.child.out == "");
    CHECK(result.attempts.empty());
    CHECK(result.calls > 0);
  }
}

TEST_CASE("a watched program ends at its time limit, and a missing one is an error") {
  const auto began = std::chrono::steady_clock::now();
  CHECK(watch({PHONE_HOME, "sleep"}, {}, std::chrono::seconds(1)).child.timed_out);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  CHECK_THROWS_AS(watch({"/no/such/program"}), std::runtime_error);
}

TEST_CASE("a Python program is named with its stack, through names, sockets and a child") {
  const WatchFolder place;
  std::ofstream(place.path / "telemetry.py") << "import socket\n"
                                                "def report():\n"
                                                "    try: socket.create_connection(('203.0.113.5', 443), 1)\n"
                                                "    except OSError as error: print(error.errno)\n";
  std::ofstream(place.path / "clean.py") << "import json, subprocess, sys\n";
  const auto script =
      "import sys; sys.path.insert(0, '" + place.path.string() + "'); import clean, telemetry; telemetry.report()";
  const auto result = watch({"python3", "-c", script});
  CHECK(result.child.out == "101\n");  // ENETUNREACH
  REQUIRE(result.attempts.size() == 1);
  CHECK(result.attempts[0].destination == "203.0.113.5:443");
  CHECK(result.attempts[0].python.find("telemetry.py:3 in report") != std::string::npos);
}

TEST_CASE("imports are watched one by one: the library that phones home fails the check and is named") {
  const WatchFolder place;
  fs::create_directories(place.path / "prefix/bin");
  fs::create_symlink("/usr/bin/python3", place.path / "prefix/bin/python3");
  fs::create_directories(place.path / "work");
  std::ofstream(place.path / "work/quiet_library.py") << "import json\n";
  std::ofstream(place.path / "work/loud_library.py") << "import socket\nsocket.getaddrinfo('hub.example', 443)\n";
  Site site;
  site.prefix = place.path / "prefix";
  site.work = place.path / "work";  // `python -c` imports from the folder that it stands in
  site.host = site.hostname = "thishost";
  const auto run = [&](const std::vector<std::string>& names) {
    site.expected = {{"egress", {{"imports", names}}}};
    const auto kind = egress_checks().at(0);
    Check check;
    kind.judge({{.rank = 0, .host = "a", .device = "cpu", .not_run = {}, .error = {}, .values = kind.measure(site)}},
               site, check);
    return check;
  };
  const auto quiet = run({"quiet_library"});
  CHECK(quiet.outcome == Outcome::Pass);
  CHECK(quiet.reason.en == "nothing tried to leave: quiet_library");
  const auto missing = run({"no_such_library"});
  CHECK(missing.outcome == Outcome::Fail);
  CHECK(missing.figures.empty());  // no zero of what was not run
  CHECK(english(missing.at_fault) == std::vector<std::string>{"no_such_library on a"});
  const auto loud = run({"quiet_library", "loud_library"});
  CHECK(loud.outcome == Outcome::Fail);
  CAPTURE(loud.reason.en);
  REQUIRE(!loud.at_fault.empty());
  CHECK(loud.at_fault[0].en.find("(loud_library on a) asked DNS for hub.example") != std::string::npos);
  site.prefix = place.path / "nothing";
  CHECK_THROWS_AS(run({"quiet_library"}), NotRun);
}

namespace {

/// A run of `kinds` and egress.run on one rank that is watched; the outcome of the latter.
Check conducted(std::vector<CheckKind> kinds, const fs::path& folder, const std::string& identity = "bundle") {
  Site site;
  site.host = site.hostname = "n1";
  site.work = folder / "work";
  site.shared = folder / "out";
  site.expected = nlohmann::json::object();
  site.watch = std::make_shared<RunWatch>(allowed_in_run(site, own_addresses(), {"n1"}));
  fs::create_directories(site.work);
  kinds.push_back(egress_checks().back());
  return conduct(kinds, site, alone(), identity, [](const std::string&) {}).checks.back();
}

Attempt made_attempt(const std::string& program, const std::string& destination) {
  return {
      .program = program, .command_line = "", .call = "connect", .destination = destination, .name = "", .python = ""};
}

/// A check that starts phone_home with `ways`, and counts its runs.
CheckKind calling(const std::string& name, const std::vector<std::string>& ways, int* runs = nullptr) {
  return {.name = name,
          .part = Part::Training,
          .from = Level::Quick,
          .title = {},
          .who = Who::EveryRank,
          .measure = [ways, runs](const Site& site) -> nlohmann::json {
            if (runs) ++*runs;
            std::vector<std::string> argv{PHONE_HOME};
            argv.insert(argv.end(), ways.begin(), ways.end());
            return run_for(site, argv, {}, std::chrono::seconds(20)).code;
          },
          .judge = [](const auto& all, const Site&,
                      Check& check) { check.outcome = all[0].values == 0 ? Outcome::Pass : Outcome::Fail; }};
}

}  // namespace

TEST_CASE("whatever a check starts is watched, and named with the check, also by a run that goes on") {
  const WatchFolder place;
  const auto clean =
      conducted({calling("training.a", {"clean"}), calling("training.b", {"clean", "clean"})}, place.path);
  CAPTURE(clean.reason.en);
  CHECK(clean.outcome == Outcome::Pass);
  CHECK(clean.reason.en == "nothing tried to leave: 2 programs that 2 checks started");
  int runs = 0;
  const std::vector<CheckKind> loud{calling("training.c", {"clean"}), calling("training.d", {"dns", "write"}, &runs)};
  for (int round = 0; round < 2; ++round) {
    const auto found = conducted(loud, place.path);
    CAPTURE(found.reason.en);
    CHECK(found.outcome == Outcome::Fail);
    REQUIRE(found.at_fault.size() == 2);
    CHECK(found.at_fault[0].en.find("(training.d on n1) asked DNS for hub.example at 192.0.2.53:53") !=
          std::string::npos);
    CHECK(found.at_fault[1].en.find("connect to 198.51.100.10:4000") != std::string::npos);
    CHECK(found.figures.at(0).value == 2);
  }
  CHECK(runs == 1);  // the second run took it from the first, with what was seen
}

TEST_CASE("a run that starts no program, or one that cannot be watched, has not passed") {
  const WatchFolder place;
  const auto none = conducted({}, place.path);
  CHECK(none.outcome == Outcome::NotRun);
  CHECK(none.reason.en == "the checks of this run started no program");
  const auto kind = egress_checks().back();
  const auto judged = [&](std::int64_t unwatched, const nlohmann::json& attempts) {
    const nlohmann::json seen{{"programs", 3},
                              {"unwatched", unwatched},
                              {"why", "the filter is refused"},
                              {"calls", 5},
                              {"attempts", attempts},
                              {"check", "training.a"},
                              {"rank", 0},
                              {"host", "n1"}};
    Check check;
    kind.judge({{.rank = 0,
                 .host = "n1",
                 .device = "cpu",
                 .not_run = {},
                 .error = {},
                 .values = {{"watched", nlohmann::json::array({seen})}}}},
               Site{.expected = nlohmann::json::object()}, check);
    return check;
  };
  CHECK(judged(0, nlohmann::json::array()).outcome == Outcome::Pass);
  const auto refused = judged(1, nlohmann::json::array());
  CHECK(refused.outcome == Outcome::NotRun);
  CHECK(refused.reason.en.starts_with("1 of 3 programs could not be watched"));
  // What was seen counts, even if not all could be.
  CHECK(judged(1, attempts_json({made_attempt("p", "192.0.2.1:1")})).outcome == Outcome::Fail);
}

TEST_CASE("the hosts of a run may be asked for with and without a domain, and others not") {
  const Allowed allowed({}, {"10.1.0.1", "10.1.0.2"}, "n1", {"n1", "Gpu02", ""});
  CHECK(allowed.may_ask("gpu02"));
  CHECK(allowed.may_ask("gpu02.bank.example"));
  CHECK(allowed.may_ask("2.0.1.10.in-addr.arpa"));
  CHECK_FALSE(allowed.may_ask("gpu020"));
  CHECK_FALSE(allowed.may_ask("hub.example"));
}

namespace {

/// What `say` returns in a process of its own: a namespace that is entered cannot be left. Where it could not be
/// entered, this program ends with 77, which ctest shows as skipped: these cases are run by `verify.own_network` alone.
std::string said_in_namespace(const std::function<std::string()>& say) {
  int answer[2];
  REQUIRE(pipe(answer) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string text;
    try {
      text = say();
    } catch (const std::exception& error) {  // or the rest of the cases would be run here too
      text = error.what();
    }
    const auto written = write(answer[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(answer[1]);
  std::string text(4096, '\0');
  const auto size = read(answer[0], text.data(), text.size());
  close(answer[0]);
  waitpid(child, nullptr, 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (text.starts_with("refused: ")) {
    std::fprintf(stderr, "skipped: this machine gives no namespace: %s\n", text.c_str() + 9);
    std::_Exit(77);
  }
  return text;
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

}  // namespace

TEST_CASE("own network: what tries to leave is counted by its packets, and what stays is not" * doctest::skip()) {
  const Allowed allowed({"198.51.100.0/24"}, own_addresses(), "thishost");
  const auto text = said_in_namespace([&] {
    if (const auto why = enter_counted_network(); !why.empty()) return "refused: " + why;
    PacketCount count;
    const WatchFolder place;
    run_child({PHONE_HOME, "clean", "connect", "connect", "ipv6", "dns", "stub", "resolver", "sendmsg", "thread"}, {},
              std::chrono::seconds(20), place.path);
    std::string seen;
    for (const auto& one : count.attempts(allowed)) {
      seen += one.call + " " + one.destination + " " + one.name + " " + std::to_string(one.times) + "\n";
    }
    count.attempts(allowed);
    return seen;
  });
  CAPTURE(text);
  auto lines = lines_of(text);
  // What goes to 198.51.100.9 is allowed. The connected socket's second question may be stopped by the first's refusal.
  lines.erase("sendto 192.0.2.53:53 other.example 1");
  CHECK(lines == std::set<std::string>{"connect 192.0.2.1:443  2", "connect [2001:db8::7]:443  1",
                                       "sendto 192.0.2.53:53 hub.example 1", "sendto 127.0.0.53:53 hub.example 1",
                                       "sendto 192.0.2.53:53 telemetry.example 1", "connect 192.0.2.1:4444  1"});
}

TEST_CASE("own network: a name server that no route leads to is judged by what it would be asked" * doctest::skip()) {
  const WatchFolder place;
  const auto attempts_of = [&](const std::string& way) {
    return said_in_namespace([&] {
      if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return std::string("refused: ") + std::strerror(errno);
      const auto check = conducted({calling("training." + way, {way})}, place.path / way);
      return check.outcome == Outcome::Pass ? "none" : check.at_fault.at(0).en;
    });
  };
  CHECK(attempts_of("own_name") == "none");  // a rank asks so for the name of its own address
  CHECK(attempts_of("resolver").find("asked DNS for telemetry.example at 192.0.2.53:53") != std::string::npos);
  CHECK(attempts_of("connect").find("connect to 192.0.2.1:443") != std::string::npos);
  CHECK(attempts_of("write").find("connect to 198.51.100.10:4000") != std::string::npos);
}

TEST_CASE("a run in a network of its own passes by its packets, whatever could not be watched, and fails by them") {
  std::vector<Attempt> packets;
  const auto kind = egress_checks([&] { return packets; }).back();
  Site site;
  site.host = site.hostname = "n1";
  site.expected = nlohmann::json::object();
  site.watched = nlohmann::json::array({{{"programs", 3},
                                         {"unwatched", 3},
                                         {"why", "the filter is refused"},
                                         {"calls", 0},
                                         {"attempts", nlohmann::json::array()},
                                         {"check", "training.a"},
                                         {"rank", 0},
                                         {"host", "n1"}}});
  const auto judged = [&] {
    Check check;
    kind.judge({{.rank = 0, .host = "n1", .device = "cpu", .not_run = {}, .error = {}, .values = kind.measure(site)}},
               site, check);
    return check;
  };
  CHECK(judged().outcome == Outcome::Pass);
  CHECK(judged().reason.en.ends_with("and the ranks themselves, in a network of their own"));
  packets.push_back(made_attempt("a program of this run", "192.0.2.1:443"));
  const auto found = judged();
  CHECK(found.outcome == Outcome::Fail);
  CHECK(found.at_fault.at(0).en == "a program of this run (the run on n1) called connect to 192.0.2.1:443");
}
