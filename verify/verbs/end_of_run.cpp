// SPDX-License-Identifier: Apache-2.0
// The keeper of a run, and what is written when it ends early.
// See end_of_run.hpp.
// fork before anything else: nothing is open yet, and no thread runs.
#include "verify/verbs/end_of_run.hpp"

#include "trainer/failure.hpp"
#include "verify/conduct/exchange.hpp"
#include "verify/conduct/utc_now.hpp"
#include "verify/report/folder.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

/// Set for all below a keeper.
constexpr const char* kKept = "SEALIFT_VERIFY_KEPT";
/// How long a run has to end after it was told to.
constexpr unsigned kPatience = 20;

volatile sig_atomic_t told_by = 0;
volatile pid_t kept = 0;

void pass_on(int signal) {
  told_by = signal;
  if (kept > 0) kill(kept, SIGTERM);
  alarm(kPatience);
}

void end_it(int) {
  if (kept > 0) kill(kept, SIGKILL);
}

std::string name_of_signal(int signal) {
  return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

/// Of the whole run, for which its keeper speaks.
Ending ending_of_whole(int status, std::optional<std::int64_t> alone) {
  if (told_by == 0) return {.rank = alone, .how = ended_with(status)};
  const auto signal = name_of_signal(told_by);
  return {.rank = {}, .how = {"was told to end by " + signal, "收到" + signal + "而结束"}};
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
  return {"was ended by " + signal + (killed ? ", as the kernel does for want of memory" : ""),
          "被" + signal + "结束" + (killed ? "（内存不足时内核会这样做）" : "")};
}

Ending ending_of(const std::exception& error, std::int64_t rank) {
  if (const auto* silent = dynamic_cast<const RankSilent*>(&error)) {
    return {.rank = silent->rank,
            .how = {"is silent since " + silent->since + ": it has ended, was stopped, or its host is lost",
                    "自 " + silent->since + " 起没有消息：已结束、被暂停，或其主机已失联"}};
  }
  const auto text = trainer::text_of(error);
  return {.rank = rank, .how = {"ended: " + text, "结束：" + text}};
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

int keep_run(const std::function<int()>& body, std::optional<std::int64_t> rank, const fs::path& folder) {
  if (std::getenv(kKept)) return body();
  const pid_t keeper = getpid();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) handle(signal, pass_on);
  handle(SIGALRM, end_it);
  const pid_t child = fork();
  if (child < 0) return body();
  if (child == 0) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGALRM}) handle(signal, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper) raise(SIGTERM);
    setenv(kKept, "1", 1);
    return body();
  }
  kept = child;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kept = 0;
  alarm(0);
  report_end(ending_of_whole(status, rank), folder);
  std::_Exit(told_by != 0 ? 128 + told_by : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace sealift::verify
