// SPDX-License-Identifier: Apache-2.0
// A note of the cache, CACHE/told/<lock>: the digest of each text on a line; see told_warnings.hpp.
#include "packager/files/told_warnings.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"

namespace sealift::packager {

namespace {

constexpr std::uint64_t kMostNoted = std::uint64_t{1} << 20;  // bytes, some 16,000 warnings

}  // namespace

ToldWarnings::ToldWarnings(const Cache& cache, const bundle::Digest& lock)
    : cache_(cache), note_(cache.root() / "told" / lock.hex()) {
  if (const std::optional<std::string> text = cache.read_note(note_, kMostNoted))
    for (const std::string_view line : bundle::split(*text, '\n'))
      if (!line.empty()) before_.emplace(line);
}

void ToldWarnings::begin_anew() {
  before_.clear();
}

void ToldWarnings::warn(const std::string& text, bundle::Progress& progress) {
  const std::string digest = bundle::sha256(bundle::as_bytes(text)).hex();
  if (now_.insert(digest).second && !before_.contains(digest)) progress.warn(text);
}

void ToldWarnings::close(bundle::Progress& progress) const {
  const auto again = std::count_if(now_.begin(), now_.end(), [&](const auto& one) { return before_.contains(one); });
  if (again > 0)
    progress.note(std::to_string(again) + " warning(s) as an earlier run gave them for this lock (remove " +
                  note_.string() + " to see them again)");
  std::set<std::string> all = before_;
  all.insert(now_.begin(), now_.end());
  std::string text;
  for (const std::string& digest : all) text += digest + "\n";
  if (all.size() != before_.size()) cache_.note(note_, text);
}

}  // namespace sealift::packager
