// SPDX-License-Identifier: Apache-2.0
// The keeper of a run, and what is written when it ends early.
// See end_of_run.hpp.
// fork before anything else: nothing is open yet, and no thread runs.
#include "verify/verbs/end_of_run.hpp"

#include "bundle/host/scratch_folder.hpp"
#include "trainer/failure.hpp"
#include "verify/conduct/ending_signals.hpp"
#include "verify/conduct/exchange.hpp"
#include "verify/conduct/utc_now.hpp"
#include "verify/report/folder.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

/// Set for all below a keeper.
constexpr const char* kKept = "SEALIFT_VERIFY_KEPT";
/// How long a run has to end after it was told to.
constexpr unsigned kPatience = 20;

volatile sig_atomic_t told_by = 0;
volatile pid_t kept = 0;
volatile sig_atomic_t starts_ranks = 0;  // the one that is kept

void pass_on(int signal) {
  told_by = signal;
  if (kept > 0) kill(kept, starts_ranks != 0 ? SIGTERM : signal);
  alarm(kPatience);
}

void mask_endings(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kEndingSignals) sigaddset(&signals, signal);
  sigprocmask(how, &signals, nullptr);
}

void end_it(int) {
  if (kept > 0) kill(kept, SIGKILL);
}

/// "signal 9 (SIGKILL)"; the name only of those by which programs end.
Phrase name_of_signal(int signal) {
  static const std::map<int, std::string> kNames{
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},
      {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}};
  const auto number = std::to_string(signal);
  const auto name = kNames.find(signal);
  if (name == kNames.end()) return {"signal " + number, "信号 " + number};
  return {"signal " + number + " (" + name->second + ")", "信号 " + number + "（" + name->second + "）"};
}

/// "rank 1 of 2 did not come within 300 s; ...", "ranks 1, 2 and 3 more of 8 did not come to make_groups within 300000
/// ms; ...", as the engine says it: an ending of those ranks.
std::optional<Ending> who_did_not_come(const std::string& text) {
  static const std::regex kForm(
      R"(ranks? ([0-9, ]+?)( and .+)? of \d+ did not come (?:to \w+ )?within (\d+) (s|ms)\b.*)");
  std::smatch found;
  if (!std::regex_match(text, found, kForm)) return std::nullopt;
  Ending ending;
  std::istringstream numbers(found[1]);
  for (std::string number; std::getline(numbers, number, ',');) ending.ranks.push_back(std::stoll(number));
  const auto seconds = std::to_string(std::stoll(found[3]) / (found[4] == "ms" ? 1000 : 1));
  const auto more = found[2].matched ? found[2].str() : std::string();
  ending.how = {more + "did not come within " + seconds + " s: look at the log there, and whether the program, " +
                    "MASTER_ADDR and MASTER_PORT are the same",
                "在 " + seconds + " 秒内没有到达；请查看该处的日志，并确认程序、MASTER_ADDR 与 MASTER_PORT 一致"};
  return ending;
}

/// Of the whole run, for which its keeper speaks.
Ending ending_of_whole(int status, std::optional<std::int64_t> alone, const fs::path& folder) {
  // A launcher that was told past its keeper ends with that code.
  const bool told = WIFEXITED(status) && WEXITSTATUS(status) == trainer::kToldToEnd;
  if (const int signal = told_by != 0 ? told_by : told ? SIGTERM : 0; signal != 0) {
    const auto first = find_first_word(folder);  // a launcher that sees one rank end tells the others to
    return first ? *first : told_to_end(signal);
  }
  Ending ending{.ranks = {}, .how = ended_with(status)};
  if (alone) ending.ranks = {*alone};
  return ending;
}

/// A folder of its own for temporary files; empty where that has no room either.
fs::path write_elsewhere(const Verdict& verdict, const std::string& why) {
  std::error_code none;
  const auto place = fs::temp_directory_path(none) / ("sealift-verify-report-" + std::to_string(getpid()));
  try {
    if (!fs::create_directory(place, none)) return {};
    write_report(verdict, place);
  } catch (const std::exception&) {
    return {};
  }
  trainer::say(why + "; the report is in " + place.string());
  return place;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

Phrase ended_with(int status) {
  if (!WIFSIGNALED(status)) {
    const auto code = std::to_string(WEXITSTATUS(status));
    return {"ended with code " + code, "以退出码 " + code + " 结束"};
  }
  const auto signal = name_of_signal(WTERMSIG(status));
  const bool killed = WTERMSIG(status) == SIGKILL;
  return {"was ended by " + signal.en + (killed ? ", as the kernel does for want of memory" : ""),
          "被" + signal.zh + "结束" + (killed ? "（内存不足时内核会这样做）" : "")};
}

Phrase ended_by(const std::exception& error) {
  const auto text = trainer::text_of(error);
  return {"ended: " + text, "结束：" + text};
}

Ending told_to_end(int signal) {
  const auto name = name_of_signal(signal);
  return {.ranks = {},
          .how = {"was told to end from outside, by " + name.en + " (a person, a scheduler, its time limit)",
                  "收到外部发来的" + name.zh + "而结束（人工、调度系统或其时限）"}};
}

Ending lost_before(const std::vector<std::int64_t>& ranks, int signal) {
  const auto name = name_of_signal(signal);
  return {.ranks = ranks,
          .how = {"ended without a word before the run was told to end from outside, by " + name.en +
                      ": it was killed, as the kernel does for want of memory, or its host is lost",
                  "在本次运行收到外部发来的" + name.zh +
                      "之前已结束且没有留下消息：被强制结束（内存不足时内核会这样做），或其主机已失联"}};
}

bool is_kept() {
  return std::getenv(kKept) != nullptr;
}

Ending ending_of(const std::exception& error, std::int64_t rank) {
  if (const auto* silent = dynamic_cast<const RankSilent*>(&error)) {
    return {.ranks = {silent->rank},
            .how = {"is silent since " + silent->since + ": it has ended, was stopped, or its host is lost",
                    "自 " + silent->since + " 起没有消息：已结束、被暂停，或其主机已失联"}};
  }
  if (auto missing = who_did_not_come(trainer::text_of(error))) return *missing;
  return {.ranks = {rank}, .how = ended_by(error)};
}

bool report_end(const Ending& ending, const fs::path& folder) {
  auto draft = find_draft(folder);
  if (!draft) return false;
  const auto verdict = finished_by(std::move(*draft), ending, utc_now());
  remove_draft(folder);  // and with it the room that was kept for this
  auto place = folder;
  try {
    write_report(verdict, folder);
  } catch (const std::exception& error) {
    place = write_elsewhere(verdict, error.what());
    if (place.empty()) return false;
  }
  std::cout << "FAIL: " + (fs::absolute(place) / "report.html").string() + '\n' << std::flush;
  return true;
}

void hold_signals() {
  mask_endings(SIG_BLOCK);
}

int keep_run(const std::function<int()>& body, std::optional<std::int64_t> rank, const fs::path& folder) {
  if (is_kept()) return body();
  const pid_t keeper = getpid();
  starts_ranks = rank ? 0 : 1;
  handle_endings(pass_on);
  handle(SIGALRM, end_it);
  const pid_t child = fork();
  if (child <= 0) {
    handle_endings(SIG_DFL);
    handle(SIGALRM, SIG_DFL);
  }
  if (child < 0) {  // without a keeper signals end the run
    mask_endings(SIG_UNBLOCK);
    return body();
  }
  if (child == 0) {
    mask_endings(SIG_UNBLOCK);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper) raise(SIGTERM);
    setenv(kKept, "1", 1);
    return body();
  }
  kept = child;
  mask_endings(SIG_UNBLOCK);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kept = 0;
  alarm(0);
  report_end(ending_of_whole(status, rank, folder), folder);
  bundle::ScratchFolder::remove_abandoned_temporary(kScratch);  // another run's is locked
  std::_Exit(told_by != 0 ? 128 + told_by : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace sealift::verify
