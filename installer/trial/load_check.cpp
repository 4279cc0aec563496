// SPDX-License-Identifier: Apache-2.0
// The interpreter writes "begin N" before each file and its answer after it, into a file, so the last line names the
// file at which it crashed. Extension modules are opened under a name that none of them has, so their init code does
// not run.
#include "installer/trial/load_check.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "installer/trial/bare_environment.hpp"
#include "installer/trial/self_check_scripts.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/native/host_libraries.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxCrashes = 8;
constexpr std::uint64_t kMaxAnswers = std::uint64_t{256} << 20;
constexpr std::size_t kMaxReason = 1000;
constexpr std::string_view kCannotOpen = ": cannot open shared object file";
constexpr std::string_view kUndefined = "undefined symbol: ";
constexpr std::string_view kVersion = ": version `", kNotFound = "' not found";

class Loading {
 public:
  Loading(const std::vector<ElfPlace>& files, const fs::path& generation, const fs::path& interpreter,
          const fs::path& scratch, std::chrono::seconds patience)
      : files_(files),
        generation_(generation),
        answers_(files.size()),
        list_(scratch / "files"),
        log_(scratch / "answers") {
    child_ = {.arguments = {interpreter.string(), "-I", "-B", "-c", kLoadScript, list_.string(), log_.string(), "", "",
                            generation.string()},
              .environment = bare_environment(interpreter, scratch),
              .patience = patience};
    std::ofstream list(list_, std::ios::binary);
    for (const ElfPlace& file : files)
      list << (file.program ? "program " : "library ") << (generation / file.path).string() << "\n";
    if (!list.flush()) bundle::throw_errno("the self-test's list cannot be written", list_, EIO);
  }

  // Why each file did not load; empty where it did.
  std::vector<std::string> run() {
    std::size_t crashes = 0;
    for (std::size_t from = 0; from < files_.size();) {
      const std::optional<std::size_t> crashed = run_from(from, files_.size() - from);
      if (!crashed) break;
      if (++crashes > kMaxCrashes || run_from(*crashed, 1))  // it may load alone: two libraries can conflict
        answers_[*crashed] = "the interpreter ended with " + end_.text(child_);
      if (crashes > kMaxCrashes) fail();
      from = *crashed + 1;
    }
    return answers_;
  }

 private:
  // The file at which the interpreter crashed, if it did.
  std::optional<std::size_t> run_from(std::size_t from, std::size_t count) {
    std::error_code ignored;
    fs::remove(log_, ignored);
    child_.arguments[7] = std::to_string(from);
    child_.arguments[8] = std::to_string(count);
    end_ = bundle::run_child(child_);
    std::istringstream lines(fs::exists(log_, ignored) ? bundle::read_text(log_, kMaxAnswers) : "");
    std::optional<std::size_t> open;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("begin ")) {
        open = std::stoul(line.substr(6));
        if (*open >= files_.size()) fail();
      } else if (open) {
        answers_[*open] = line == "good" ? "" : shown(line.substr(std::min<std::size_t>(line.size(), 4)));
        open.reset();
      }
    }
    if (!end_.good() && (!open || end_.late)) fail();
    return open;
  }

  // Without the generation's folder, which will be renamed, and not too long.
  std::string shown(std::string reason) const {
    const std::string folder = generation_.string() + "/";
    for (std::size_t at; (at = reason.find(folder)) != reason.npos;) reason.erase(at, folder.size());
    return reason.size() > kMaxReason ? reason.substr(0, kMaxReason) : reason;
  }

  [[noreturn]] void fail() const {
    throw bundle::Error(bundle::ErrorCode::SelfTest,
                        {.what = "the interpreter of what was built cannot try its native files; the generation in use "
                                 "was not touched",
                         .where = child_.arguments[0],
                         .expected = std::to_string(files_.size()) + " files to be loaded",
                         .got = end_.text(child_),
                         .next = "send this message to who packed the bundle"});
  }

  const std::vector<ElfPlace>& files_;
  const fs::path& generation_;
  std::vector<std::string> answers_;
  fs::path list_, log_;
  bundle::Child child_;
  bundle::ChildEnd end_;
};

bool is_extension_module(const std::string& path) {
  return path.find(".cpython-") != path.npos || path.ends_with(".abi3.so");
}

// The library that was not found, if that was the reason.
std::string missing_library(const std::string& reason) {
  const std::size_t end = reason.find(kCannotOpen);
  return end == reason.npos ? "" : reason.substr(0, end);
}

// "version `GLIBC_2.32' not found", no matter whose library it is.
bool lacks_version(const std::string& reason) {
  const std::size_t end = reason.find(kVersion);
  return end != reason.npos && reason.find(kNotFound, end) != reason.npos;
}

// Whether a library of the machine itself, which the bundle does not bring, lacks a version that is asked for
// ("/usr/lib/libfabric.so.1: version `FABRIC_1.8' not found"): as good as none. C's and C++'s own are no plug-in's
// host.
bool is_older_than_wanted(const std::string& reason, const std::set<std::string>& carried) {
  if (!reason.starts_with('/') || !lacks_version(reason)) return false;
  const std::string name = fs::path(reason.substr(0, reason.find(kVersion))).filename().string();
  return !carried.contains(name) && !bundle::belongs_to_target(name) && !bundle::is_interpreter_library(name);
}

}  // namespace

LoadReport load_check(const std::vector<ElfPlace>& files, const fs::path& generation, const fs::path& interpreter,
                      const fs::path& scratch, std::chrono::seconds patience, const std::vector<std::string>& of_host) {
  const std::vector<std::string> answers = Loading(files, generation, interpreter, scratch, patience).run();
  std::set<std::string> carried, waiting, waiting_for_host, left;
  for (const ElfPlace& file : files) carried.insert(file.soname);
  LoadReport report{.files = files.size()};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ElfPlace& file = files[i];
    const std::string& reason = answers[i];
    const std::string missing = missing_library(reason);
    const bool absent = (!missing.empty() && !carried.contains(missing)) || reason.find(kUndefined) != reason.npos ||
                        is_older_than_wanted(reason, carried);
    if (reason.empty()) {
      ++report.loaded;
    } else if (bundle::is_driver_library(missing) || waiting.contains(missing)) {
      waiting.insert(file.soname);
      report.driver.push_back({file.path, reason});
    } else if (waiting_for_host.contains(missing) ||
               (!carried.contains(missing) && bundle::is_host_library(of_host, missing))) {
      waiting_for_host.insert(file.soname);
      report.host.push_back({file.path, reason});
    } else {
      const std::string name = file.path.substr(file.path.rfind('/') + 1);
      const bool too_new = lacks_version(reason) && bundle::is_plugin_of_other_hosts(name);
      const bool plugin = !file.program && (bundle::is_optional_plugin(name)
                                                ? absent || too_new || left.contains(missing)
                                                : absent && !file.needed && !is_extension_module(file.path));
      if (plugin) left.insert(file.soname);
      (plugin ? report.plugins : report.broken).push_back({file.path, reason});
    }
  }
  // One that waits for a library of some other site is no news; one that lacks a function may be of another version
  // than what it stands beside, and is named first.
  std::stable_partition(report.plugins.begin(), report.plugins.end(), [](const LoadReport::Unloaded& file) {
    return file.reason.find(kUndefined) != std::string::npos;
  });
  return report;
}

}  // namespace sealift::installer
