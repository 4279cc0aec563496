// SPDX-License-Identifier: Apache-2.0
// Many of the real program at once on one prefix, and the real program killed at random moments.
// Who gets the lock is the kernel's affair: what is asserted holds whatever the order. SEALIFT_ROUNDS=100 for more.
#include <deque>

#include "tests/installer/crash_scenarios.hpp"
#include "tests/installer/program.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

[[maybe_unused]] const bool kInMemory = (use_memory_for_temporary_folders(), true);

int rounds(int usual) {
  const char* text = ::getenv("SEALIFT_ROUNDS");
  return text == nullptr ? usual : std::atoi(text);
}

TinyBundle for_this_machine(TinyBundle tiny) {
  tiny.arch = probe().target.arch;
  return tiny;
}

std::vector<std::string> apply_of(const Site& site, const MadeBundle& made) {
  return {"apply",     made.folder, "--fingerprint", made.fingerprint(), "--prefix", site.prefix().folder(),
          "--threads", "2"};
}

// All of them at once; how each ended.
std::vector<Outcome> together(const std::vector<std::vector<std::string>>& commands) {
  std::deque<TempDir> dirs(commands.size());
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < commands.size(); ++i) children.push_back(start(dirs[i], commands[i]));
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < commands.size(); ++i) outcomes.push_back(finish(dirs[i], children[i]));
  return outcomes;
}

bool says(const Outcome& outcome, const std::string& text) {
  return outcome.err.find(text) != std::string::npos;
}

// Good, or refused because somebody else is at work.
bool is_clear(const Outcome& outcome) {
  return outcome.exit == 0 || (outcome.exit == 10 && says(outcome, "somebody else is changing this prefix"));
}

// That, or there is nothing (yet, or any more) of what it was to work on, and it says what.
bool is_clear(const std::string& verb, const Outcome& outcome) {
  if (is_clear(outcome)) return true;
  if (verb == "apply") return false;
  if (outcome.exit == 7 && (says(outcome, "there is no prefix here") || says(outcome, "this folder is no prefix")))
    return true;
  if (verb == "switch") return outcome.exit == 7 && says(outcome, "there is no such generation");
  if (verb == "doctor") return outcome.exit == 10 && says(outcome, "while it was being checked");
  return false;
}

std::vector<std::string> verb_of(const Site& site, std::vector<std::string> words) {
  words.insert(words.end(), {"--prefix", site.prefix().folder()});
  return words;
}

}  // namespace

TEST_CASE(
    "of 32 that install one bundle into one prefix at once one does it, and the others find it done or say why not") {
  const Site site;
  const MadeBundle made = site.make(for_this_machine(forty_files()));
  CHECK(run(site.dir, apply_of(site, made)).exit == 0);
  const DiskImage after = comparable(read_image(site.prefix().folder()));
  for (int round = 0; round < rounds(3); ++round) {
    fs::remove_all(site.prefix().folder());
    int installed = 0;
    for (const Outcome& outcome : together(std::vector(32, apply_of(site, made)))) {
      INFO(outcome.err);
      CHECK(is_clear(outcome));
      installed += outcome.out.starts_with("installed");
    }
    CHECK(installed == 1);
    CHECK(comparable(read_image(site.prefix().folder())) == after);
  }
}

TEST_CASE("installing, switching and looking at once leaves two whole generations and one of them current") {
  const Site site;
  const MadeBundle first = site.make(for_this_machine(forty_files()));
  const MadeBundle second = site.make(for_this_machine(forty_files_next()), "second");
  CHECK(run(site.dir, apply_of(site, first)).exit == 0);
  const DiskImage before = read_image(site.prefix().folder());
  CHECK(run(site.dir, apply_of(site, second)).exit == 0);
  const DiskImage after = read_image(site.prefix().folder());
  GoodParts good;
  good.learn(after);
  const std::vector<std::string> back = {"switch", "1", "--prefix", site.prefix().folder()};
  const std::vector<std::string> look = {"status", "--prefix", site.prefix().folder()};
  for (int round = 0; round < rounds(3); ++round) {
    write_image(before, site.prefix().folder());
    std::vector<std::vector<std::string>> commands;
    for (int i = 0; i < 8; ++i) commands.insert(commands.end(), {apply_of(site, second), back, look, back});
    for (const Outcome& outcome : together(commands)) {
      INFO(outcome.err);
      CHECK(is_clear(outcome));
    }
    const DiskImage left = read_image(site.prefix().folder());
    CHECK(good.fault_of(left, before, after) == "");
    CHECK(!fs::exists(site.prefix().staging()));
    CHECK(run(site.dir, apply_of(site, second)).exit == 0);
    CHECK(difference(comparable(read_image(site.prefix().folder())), comparable(after)) == "");
  }
}

TEST_CASE("32 installers of three bundles, gc, switch, status and doctor at once leave a prefix that is whole") {
  const Site site;
  const MadeBundle first = site.make(for_this_machine(forty_files()));
  const MadeBundle bundles[] = {first, site.make(for_this_machine(forty_files_next()), "second"),
                                site.make(for_this_machine(unrelated()), "other")};
  std::map<std::string, int> good;
  for (int round = 0; round < rounds(2); ++round) {
    fs::remove_all(site.prefix().folder());
    if (round % 2 == 0) CHECK(run(site.dir, apply_of(site, first)).exit == 0);  // and every other time all are first
    std::vector<std::vector<std::string>> commands;
    for (int i = 0; i < 32; ++i) {
      commands.push_back(apply_of(site, bundles[i % 3]));
      commands.back().insert(commands.back().end(), {"--allow-downgrade", "--allow-other-name"});
      if (i % 4 == 0) commands.push_back(verb_of(site, {"gc", "--keep", "1"}));
      if (i % 4 == 1) commands.push_back(verb_of(site, {"switch", std::to_string(1 + i % 3)}));
      if (i % 8 == 2) commands.push_back(verb_of(site, {"status"}));
      if (i % 8 == 3) commands.push_back(verb_of(site, {"doctor"}));
    }
    for (int wave = 0; wave < 3; ++wave) {  // who is refused runs again, as the message says
      std::vector<std::vector<std::string>> refused;
      const std::vector<Outcome> outcomes = together(commands);
      for (std::size_t i = 0; i < commands.size(); ++i) {
        INFO(commands[i][0] << " ends with " << outcomes[i].exit << ": " << outcomes[i].err << outcomes[i].out);
        CHECK(is_clear(commands[i][0], outcomes[i]));
        good[commands[i][0]] += outcomes[i].exit == 0;
        if (outcomes[i].exit != 0) refused.push_back(commands[i]);
      }
      commands = std::move(refused);
    }
    const Status status = status_of(site.prefix());
    REQUIRE(status.current);
    CHECK(fs::is_directory(site.current()));
    for (const Status::Generation& generation : status.generations) CHECK(generation.fault == "");
    CHECK(!fs::exists(site.prefix().staging()));
    const Outcome healthy = run(site.dir, verb_of(site, {"doctor"}));
    INFO(healthy.out << healthy.err);
    CHECK(healthy.exit == 0);
    CHECK(run(site.dir, verb_of(site, {"gc", "--keep", "1"})).exit == 0);
    CHECK(run(site.dir, verb_of(site, {"doctor"})).exit == 0);
  }
  for (const auto& [verb, count] : good) MESSAGE(verb << ": " << count << " ended well, the others said why not");
}

TEST_CASE("the real program, killed at random moments, leaves nothing half done and goes on where it was") {
  const Site site;
  const MadeBundle made = site.make(for_this_machine(forty_files()));
  std::string signal = "KILL";
  int kills = 20;
  SUBCASE("by SIGKILL") {}
  SUBCASE("by SIGTERM, of which it dies with a line") {
    signal = "TERM";
    kills = 8;
  }
  SUBCASE("by SIGINT, likewise") {
    signal = "INT";
    kills = 8;
  }
  const std::string command = "python3 " SEALIFT_KILL_TEST " " SEALIFT_INSTALL " '" + made.folder.string() + "' " +
                              made.fingerprint() + " " + std::to_string(rounds(kills)) + " --signal " + signal +
                              " --work '" + (site.dir / "work").string() + "'";
  CHECK(std::system(command.c_str()) == 0);
}
