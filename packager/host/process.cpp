// SPDX-License-Identifier: Apache-2.0
// Programs of the packing machine get a list of its variables; see process.hpp. bundle::run_child starts them.
#include "packager/host/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bundle/core/text_parts.hpp"
#include "packager/host/own_variables.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/host/child_process.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 20;

// Lower-case names of proxies have upper-case twins.
constexpr const char* kPassed[] = {"PATH",          "HOME",
                                   "USER",          "LOGNAME",
                                   "TMPDIR",        "LANG",
                                   "LC_ALL",        "LANGUAGE",
                                   "TERM",          "http_proxy",
                                   "https_proxy",   "all_proxy",
                                   "no_proxy",      "HTTP_PROXY",
                                   "HTTPS_PROXY",   "ALL_PROXY",
                                   "NO_PROXY",      "CURL_CA_BUNDLE",
                                   "SSL_CERT_FILE", "SSL_CERT_DIR",
                                   "NETRC",         "REQUESTS_CA_BUNDLE",
                                   "SSH_AUTH_SOCK", "XDG_CACHE_HOME",
                                   "XDG_DATA_HOME"};

fs::path require_program(const std::string& name) {
  const fs::path program = name.find('/') == std::string::npos ? find_program(name) : fs::path(name);
  errno = ENOENT;
  if (program.empty() || ::access(program.c_str(), X_OK) != 0)
    throw Error(ErrorCode::Missing,
                {.what = "a program cannot be started", .where = name, .got = std::strerror(errno)});
  return program;
}

ProcessResult run_to_end(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                         bool of_login, const Watch& watch, const std::vector<int>& kept,
                         const ProcessBounds& bounds = {}) {
  bundle::Child child{.arguments = argv,
                      .environment = {},
                      .contained = false,
                      .patience = std::nullopt,
                      .keep_output = kMostOutput,
                      .keep_errors = kMostOutput,
                      .of_login = of_login,
                      .kept = kept,
                      .largest_file = bounds.largest_file,
                      .most_memory = bounds.most_memory,
                      .watch = watch};
  for (const auto& [name, value] : environment) child.environment.push_back(name + "=" + value);
  child.arguments.front() = require_program(argv.front()).string();
  bundle::ChildEnd end = bundle::run_child(child);
  if (end.output.size() == kMostOutput)
    throw Error(ErrorCode::Io, {.what = "a program printed too much",
                                .where = argv.front(),
                                .expected = "less than " + std::to_string(kMostOutput) + " bytes"});
  return {.exit_code = end.signal != 0 ? 128 + end.signal : end.exit_code,
          .out = std::move(end.output),
          .err = std::move(end.errors)};
}

}  // namespace

std::map<std::string, std::string> passed_environment() {
  std::map<std::string, std::string> passed;
  for (const char* name : kPassed)
    if (const std::optional<std::string> value = own_variable(name)) passed[name] = *value;
  return passed;
}

ProcessResult run_process(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                          const ProcessBounds& bounds, const Watch& watch) {
  std::map<std::string, std::string> all = environment;
  all.merge(passed_environment());
  return run_to_end(argv, all, true, watch, {}, bounds);
}

ProcessResult run_in(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                     const Watch& watch, const std::vector<int>& kept) {
  return run_to_end(argv, environment, false, watch, kept);
}

std::string run_checked(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  ProcessResult result = run_process(argv, environment);
  if (result.exit_code == 0) return std::move(result.out);
  std::string command;
  for (const std::string& word : argv) command += (command.empty() ? "" : " ") + word;
  const std::string& said = result.err.empty() ? result.out : result.err;
  throw Error(ErrorCode::Io, {.what = "a program that is needed here failed",
                              .where = command.substr(0, 400),
                              .expected = "exit code 0",
                              .got = "exit code " + std::to_string(result.exit_code) + ": " +
                                     said.substr(said.size() > 2000 ? said.size() - 2000 : 0)});
}

fs::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::error_code unknown;  // then beside nothing
  const std::string own = fs::read_symlink("/proc/self/exe", unknown).parent_path().string();
  const std::string folders = std::string(path != nullptr ? path : "/usr/bin:/bin") + (own.empty() ? "" : ":" + own);
  for (const std::string_view folder : bundle::split(folders, ':')) {
    const fs::path candidate = fs::path(folder) / name;
    std::error_code unreadable;  // PATH may name folders that this user cannot read
    if (fs::is_regular_file(candidate, unreadable) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace sealift::packager
