// SPDX-License-Identifier: Apache-2.0
// Days of two answers of uv; see older_releases.hpp.
#include "packager/resolve/older_releases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bundle/host/scratch_folder.hpp"
#include "packager/host/uv.hpp"
#include "packager/resolve/input_variables.hpp"
#include "packager/resolve/uv_command.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxAnswer = std::uint64_t{64} << 20;
constexpr auto kMuch = std::chrono::days(365);

struct Release {
  std::string name, version, day;
};

// A release came out with the first of its files. Those without a day are left out.
std::vector<Release> releases_of(std::string_view pylock) {
  std::vector<Release> releases;
  const TomlValue document = parse_toml(pylock, "pylock.toml", bundle::ErrorCode::Format);
  TomlTable root(document, "pylock.toml", bundle::ErrorCode::Format);
  for (TomlTable& package : root.tables("packages")) {
    Release release{.name = bundle::normalized_project_name(package.string("name")),
                    .version = package.string_or("version", ""),
                    .day = {}};
    const auto see = [&](TomlTable& file) {
      const std::string day = file.day("upload-time");
      if (!day.empty() && (release.day.empty() || day < release.day)) release.day = day;
    };
    for (TomlTable& wheel : package.tables("wheels")) see(wheel);
    if (package.is_table("sdist")) {
      TomlTable sdist = package.table("sdist");
      see(sdist);
    }
    if (!release.day.empty() && !release.version.empty()) releases.push_back(std::move(release));
  }
  return releases;
}

// One name that uv cannot answer for does not hide the others.
void ask_newest(const std::vector<std::string>& names, const Job& job, const fs::path& uv, const UvPython& python,
                std::map<std::string, Release>& newest) {
  if (names.empty()) return;
  const bundle::ScratchFolder scratch("sealift-newest");
  const fs::path answer = scratch.path() / "pylock.newest.toml";
  const ProcessResult result =
      run_uv(newest_command(job, uv, python, scratch.path(), names, answer), input_variables(job));
  if (result.exit_code == 0) {
    for (Release& release : releases_of(bundle::read_text(answer, kMaxAnswer)))
      newest.insert_or_assign(release.name, std::move(release));
  } else if (names.size() > 1) {
    const auto middle = names.begin() + static_cast<std::ptrdiff_t>(names.size() / 2);
    ask_newest({names.begin(), middle}, job, uv, python, newest);
    ask_newest({middle, names.end()}, job, uv, python, newest);
  }
}

bool is_much_older(const Release& chosen, const Release& newest) {
  const auto time = [](const Release& release) { return bundle::parse_time(release.day + "T00:00:00Z"); };
  return time(chosen) && time(newest) && *time(newest) - *time(chosen) > kMuch;
}

}  // namespace

std::string OlderRelease::text() const {
  return fmt::format("{} {} is of {}; the newest release that fits, {}, is of {}", name, version, day, newest,
                     newest_day);
}

std::vector<OlderRelease> older_releases(std::string_view pylock, const Job& job, const fs::path& uv,
                                         const UvPython& python) {
  const std::vector<Release> chosen = releases_of(pylock);
  std::vector<std::string> names;
  for (const Release& release : chosen) names.push_back(release.name);
  std::map<std::string, Release> newest;
  ask_newest(names, job, uv, python, newest);
  std::vector<OlderRelease> older;
  for (const Release& release : chosen)
    if (const auto found = newest.find(release.name); found != newest.end() && is_much_older(release, found->second))
      older.push_back({.name = release.name,
                       .version = release.version,
                       .day = release.day,
                       .newest = found->second.version,
                       .newest_day = found->second.day});
  return older;
}

}  // namespace sealift::packager
