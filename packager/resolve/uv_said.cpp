// SPDX-License-Identifier: Apache-2.0
// Searches for the words of uv 0.13; see uv_said.hpp.
#include "packager/resolve/uv_said.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "packager/resolve/uv_python.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

// What stands between `start` and the next '`', each time.
std::vector<std::string> quoted_after(const std::string& message, std::string_view start) {
  std::vector<std::string> found;
  for (std::size_t at = message.find(start); at != message.npos; at = message.find(start, at)) {
    at += start.size();
    found.push_back(message.substr(at, message.find('`', at) - at));
  }
  return found;
}

// "Failed to build `…`", "Failed to download and build `…`".
std::vector<std::string> failed_builds(const std::string& message) {
  std::vector<std::string> found;
  for (std::size_t at = message.find("Failed to "); at != message.npos; at = message.find("Failed to ", at + 1)) {
    const std::string line = message.substr(at, message.find('\n', at) - at);
    for (std::string& one : quoted_after(line, "build `")) found.push_back(std::move(one));
  }
  return found;
}

// "`oss2` (v2.19.1) was included because `a[x]` (v1) depends on `b>=1` (v2) which depends on `oss2`": the names from
// the nearest to the farthest, with their versions.
std::string chain_in(const std::string& message, const std::string& name) {
  const std::string start = "hint: `" + name + "` ";
  const std::size_t at = message.find(start);
  if (at == message.npos) return {};
  const std::string line = message.substr(at, message.find('\n', at) - at);
  const std::size_t because = line.find(" because ");
  if (because == line.npos) return {};
  std::string chain;
  for (std::size_t open = line.find("` (v", because); open != line.npos; open = line.find("` (v", open + 1)) {
    const std::size_t begin = line.rfind('`', open - 1) + 1, close = line.find(')', open);
    if (close == line.npos) break;
    std::string one = line.substr(begin, open - begin);
    one = one.substr(0, one.find_first_of(" =<>!~[;")) + " " + line.substr(open + 4, close - open - 4);
    chain = one + (chain.empty() ? "" : ", for " + chain);
  }
  return chain;
}

}  // namespace

std::optional<SourceQuestion> question_in(const std::string& message) {
  // What its server has compressed once more uv cannot unpack; we can.
  const bool is_encoded = message.find("Failed to extract archive") != message.npos;
  if (message.find(kRunsNothing) == message.npos && !is_encoded) return std::nullopt;
  for (const std::string& one : failed_builds(message)) {
    const std::size_t equals = one.find("==");
    if (equals == one.npos || one.find(" @ ") != one.npos) continue;
    const std::string name = one.substr(0, one.find_first_of("=["));
    return SourceQuestion{.name = bundle::normalized_project_name(name),
                          .version = one.substr(equals + 2),
                          .needed_by = chain_in(message, name)};
  }
  return std::nullopt;
}

std::optional<std::string> unread_wheel_in(const std::string& message) {
  static constexpr std::string_view kFailed = "Failed to fetch: ", kMetadata = ".metadata";
  const std::size_t at = message.find(kFailed);
  // Object stores say 403 of what is not there; of the file itself that may be a closed door.
  const bool is_missing = message.find("404 Not Found") != message.npos ||
                          (message.find("403 Forbidden") != message.npos && message.find(kMetadata) != message.npos);
  if (at == message.npos || !is_missing) return std::nullopt;
  const std::size_t begin = at + kFailed.size();
  std::string url = message.substr(begin, message.find_first_of(" \n", begin) - begin);
  if (url.size() > 2 && url.front() == '`') url = url.substr(1, url.size() - 2);
  if (url.ends_with(kMetadata)) url.resize(url.size() - kMetadata.size());
  if (!url.ends_with(".whl")) return std::nullopt;
  return url;
}

std::set<std::string> named_without_wheel(const std::string& message) {
  std::set<std::string> names;
  for (const std::string& one : quoted_after(message, "Wheels are required for `"))
    names.insert(one.substr(0, one.find_first_of(" =<>")));
  return names;
}

std::set<std::string> named_unbuildable(const std::string& message) {
  std::set<std::string> names;
  for (const std::string& one : failed_builds(message))
    if (const std::size_t at = one.find(" @ "); at != one.npos || one.find_first_of("=:/") == one.npos)
      names.insert(one.substr(0, one.find_first_of(" =<>@[")));
  return names;
}

std::string needed_by(const std::string& message, const std::string& name) {
  const std::string words = " depends on " + name;
  for (std::size_t at = message.find(words); at != message.npos; at = message.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if (end < message.size() && (std::isalnum(static_cast<unsigned char>(message[end])) || message[end] == '-'))
      continue;  // another package, whose name only begins so
    const std::size_t begin = message.find_last_of(" \n", at - 1) + 1;
    return " (needed by " + message.substr(begin, at - begin) + ")";
  }
  return {};
}

std::vector<std::string> warnings_in(const std::string& message) {
  static constexpr std::string_view kStart = "warning: ", kSkipped = "WARN `";
  static constexpr std::string_view kOtherPython = "The requested Python version";  // that it runs no other, we know
  std::vector<std::string> warnings;
  const auto add = [&](std::string warning) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(std::move(warning));
  };
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    const std::string line = message.substr(begin, end - begin);
    if (line.starts_with(kStart) && !line.substr(kStart.size()).starts_with(kOtherPython))
      add(line.substr(kStart.size()));
    if (const std::size_t close = line.find('`', kSkipped.size());
        line.starts_with(kSkipped) && close != line.npos && line.substr(0, close).find("==") != line.npos)
      add(line.substr(kSkipped.size(), close - kSkipped.size()) + " was skipped, since it" + line.substr(close + 1));
    begin = end + 1;
  }
  return warnings;
}

}  // namespace sealift::packager
