// SPDX-License-Identifier: Apache-2.0
// uv does not say which index named a file, so a file counts as a local index's when it lies in the folder that holds
// that index: pages of file:///mirror/simple name files below /mirror. See local_files.hpp.
#include "packager/resolve/local_files.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "packager/host/url.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

struct Local {
  std::vector<fs::path> folders;
  bool anywhere = false;  // a relative one, whose requirements file is not known here
};

void add(Local& local, std::string_view place) {
  const std::optional<Url> url = parse_url(place);
  if (url && url->scheme != "file") return;
  const fs::path path = url ? fs::path(percent_decoded(url->path)) : fs::path(place);
  if (path.is_relative()) local.anywhere = true;
  fs::path folder = fs::weakly_canonical(path);
  if (!folder.has_filename()) folder = folder.parent_path();
  local.folders.push_back(folder.parent_path().has_relative_path() ? folder.parent_path() : folder);
}

Local local_of(const LockedIndexes& indexes) {
  Local local;
  const auto add_index = [&](const std::string& index) {  // "NAME=URL" or "URL"
    const std::string_view url = parse_url(index) ? index : std::string_view(index).substr(index.find('=') + 1);
    if (!url.empty()) add(local, url);
  };
  add_index(indexes.default_index);
  for (const std::string& index : indexes.others) add_index(index);
  for (const std::string& option : indexes.in_files) {
    const std::size_t space = option.find_first_of(" =");
    if (space != option.npos) add(local, bundle::trimmed(std::string_view(option).substr(space + 1)));
  }
  return local;
}

bool is_below(const fs::path& file, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

}  // namespace

void require_own_files(const PythonChoice& choice, const LockedIndexes& indexes) {
  if (choice.local.empty()) return;
  const Local local = local_of(indexes);
  if (local.anywhere) return;
  for (const std::string& address : choice.local) {
    const fs::path file = fs::weakly_canonical(percent_decoded(parse_url(address).value_or(Url{}).path));
    if (std::any_of(local.folders.begin(), local.folders.end(),
                    [&](const fs::path& folder) { return is_below(file, folder); }))
      continue;
    throw bundle::Error(
        bundle::ErrorCode::Format,
        {.what = "an index on another machine names a file of this one",
         .where = "pylock.toml",
         .expected = "addresses of servers, or of files beside an index that the job names here",
         .got = without_credentials(address),
         .next = "do not use this index; if the file is meant, write \"NAME @ file://…\" in requirements"});
  }
}

}  // namespace sealift::packager
