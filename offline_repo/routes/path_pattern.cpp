// SPDX-License-Identifier: Apache-2.0
// One word of the pattern at a time against one segment, from the left; only IMAGE and an ID in front of "resolve" look
// ahead. See path_pattern.hpp.
#include "offline_repo/routes/path_pattern.hpp"

#include <algorithm>

namespace sealift::offline_repo {

namespace {

using Segments = std::vector<std::string>;

// Up to the next '/' or bracket. Most rows end here, once for each request, so no search is begun for it.
std::string_view first_word(std::string_view pattern) {
  std::size_t end = 0;
  while (end < pattern.size() && pattern[end] != '/' && pattern[end] != '[' && pattern[end] != ']') ++end;
  return pattern.substr(0, end);
}

class Fitting {
 public:
  explicit Fitting(Asked& asked) : asked_(asked), segments_(asked.target.segments) {}

  bool fits(std::string_view pattern, std::size_t at) {
    if (pattern.empty()) return at == segments_.size();
    const bool may_be_missing = pattern.front() == '[', ended = at == segments_.size();
    if (ended) return may_be_missing;
    pattern.remove_prefix(may_be_missing ? 2 : 1);
    const std::string_view word = first_word(pattern);
    pattern.remove_prefix(word.size() + (may_be_missing ? 1 : 0));
    if (word == "IMAGE") return fits_image(pattern, at);
    if (word == "ID") return fits_repository(pattern, at);
    if (word == "PATH") return name(word, at, segments_.size());
    return fits_segment(word, at) && fits(pattern, at + 1);
  }

 private:
  bool name(std::string_view word, std::size_t from, std::size_t to) {
    asked_.names[word] = joined(segments_, from, to);
    return true;
  }

  bool fits_segment(std::string_view word, std::size_t at) {
    const std::string& segment = segments_[at];
    if (word.empty() || word.front() < 'A' || word.front() > 'Z') return segment == word;
    if (word == "KIND" && segment != "models" && segment != "datasets") return false;
    if (word.starts_with("WHEEL") && !finds_wheel(segment, word.substr(5))) return false;
    return name(word, at, at + 1);
  }

  bool fits_image(std::string_view rest, std::size_t at) {
    for (std::size_t end = at + 1; end < segments_.size(); ++end)
      if (fits(rest, end)) return name("IMAGE", at, end);
    return false;
  }

  bool fits_repository(std::string_view rest, std::size_t at) {
    const bool by_catalogue = asked_.names.contains("KIND");
    const bool dataset = by_catalogue ? asked_.names["KIND"] == "datasets" : at > 0;
    if (!by_catalogue && at == 0 && segments_[0] == "datasets") return false;
    for (const std::size_t parts : {2, 1}) {
      const std::size_t end = at + parts;
      if (end > segments_.size() || (!by_catalogue && !fits(rest, end))) continue;
      const bool known = finds_repository(at, end, dataset);
      if (known || !by_catalogue) return !by_catalogue || fits(rest, end);
    }
    return by_catalogue;
  }

  bool finds_repository(std::size_t from, std::size_t to, bool dataset) {
    name("ID", from, to);
    const auto found = asked_.catalogue.repositories.find(
        {.hub = bundle::HubKind::HuggingFace,
         .kind = dataset ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model,
         .id = asked_.names["ID"]});
    asked_.repository = found != asked_.catalogue.repositories.end() ? &found->second : nullptr;
    return asked_.repository != nullptr;
  }

  bool finds_wheel(std::string_view file_name, std::string_view suffix) {
    if (!file_name.ends_with(suffix)) return false;
    file_name.remove_suffix(suffix.size());
    asked_.wheel = asked_.catalogue.find_wheel(asked_.name("SHA256"), file_name);
    return asked_.wheel != nullptr;
  }

  Asked& asked_;
  const Segments& segments_;
};

}  // namespace

bool fits(std::string_view pattern, Asked& asked) {
  asked.names.clear();
  asked.repository = nullptr;
  asked.wheel = nullptr;
  return Fitting(asked).fits(pattern, 0);
}

}  // namespace sealift::offline_repo
