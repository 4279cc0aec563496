// SPDX-License-Identifier: Apache-2.0
// Without the sandbox a shell only changes the folder; see build_step.hpp.
#include "packager/builds/build_step.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "packager/host/process.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kErrorWords[] = {"error: ", "error   : ", "fatal   : ", "Fatal error"};

}  // namespace

ProcessResult run_step(const BuildTools& tools, const SandboxedRun& run) {
  if (tools.isolation == Isolation::Sandbox) return run_sandboxed(run);
  std::vector<std::string> words = {"sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", run.folder.string()};
  words.insert(words.end(), run.command.begin(), run.command.end());
  return run_in(words, run.environment, run.watch);
}

Watch watch_of(const BuildOrder& order, const BuildTools& tools, const std::string& step) {
  if (tools.progress == nullptr) return {};
  const std::string title = order.name + (order.version.empty() ? "" : " " + order.version) + ", " + step + ": ";
  return [title, progress = tools.progress, began = std::chrono::steady_clock::now()](std::string_view last_line) {
    const auto lasts = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
    if (lasts.count() < 3) return;
    progress->tell(title + std::to_string(lasts.count()) + " s" +
                   (last_line.empty() ? "" : ": " + std::string(last_line)));
  };
}

std::vector<fs::path> with_python(const BuildTools& tools, std::vector<fs::path> readable) {
  const fs::path prefix = tools.python.parent_path().parent_path();
  if (prefix == "/usr" || prefix == "/") return readable;
  readable.push_back(tools.python);
  for (const char* folder : {"lib", "lib64", "include"})
    if (fs::is_directory(prefix / folder)) readable.push_back(prefix / folder);
  return readable;
}

void refuse_build(const BuildOrder& order, bundle::ErrorCode code, std::string what, std::string got) {
  throw bundle::Error(code, {.what = std::move(what),
                             .where = order.name + (order.version.empty() ? "" : " " + order.version),
                             .got = std::move(got)});
}

std::string last_lines(const std::string& text, std::size_t lines) {
  std::size_t begin = text.size(), end = text.find_last_not_of(" \n\r\t");
  if (end == text.npos) return {};
  for (begin = end; begin > 0 && lines > 0; --begin)
    if (text[begin] == '\n' && --lines == 0) break;
  if (text[begin] == '\n') ++begin;
  const std::string out = text.substr(begin, end + 1 - begin);
  return out.size() > 4000 ? "…" + out.substr(out.size() - 4000) : out;
}

std::string end_of_log(const std::string& log) {
  constexpr std::size_t kErrors = 5, kLongest = 300;
  const std::string end = last_lines(log, 12);
  const std::size_t ahead = log.rfind(end);
  std::string errors;
  for (std::size_t begin = 0, found = 0; begin < ahead && ahead != log.npos && found < kErrors;) {
    const std::size_t stop = std::min(log.find('\n', begin), ahead);
    const std::string line = log.substr(begin, std::min(stop - begin, kLongest));
    begin = stop + 1;
    // gcc: "x.c:1:2: error: …"; ptxas: "line 9; fatal   : …", "error   : …"
    const bool says = std::any_of(std::begin(kErrorWords), std::end(kErrorWords),
                                  [&](std::string_view word) { return line.find(word) != line.npos; });
    if (!says) continue;
    errors += line + "\n";
    ++found;
  }
  return errors.empty() ? end : errors + "…\n" + end;
}

}  // namespace sealift::packager
