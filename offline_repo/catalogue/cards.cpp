// SPDX-License-Identifier: Apache-2.0
// A card is a stranger's text: it is bounded here, and escaped where it is shown. Its front matter is YAML, of which
// one plain line is all that is looked for.
#include "offline_repo/catalogue/cards.hpp"

#include <algorithm>
#include <utility>

#include "bundle/core/text_parts.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::string_view kFence = "---";

// The first line of `text`, which it is taken from.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The front matter, and what follows it; without one nothing and all of it.
std::pair<std::string_view, std::string_view> parts_of(std::string_view card) {
  std::string_view rest = card;
  if (take_line(rest) != kFence) return {{}, card};
  const std::string_view begin = rest;
  while (!rest.empty()) {
    const std::size_t length = static_cast<std::size_t>(rest.data() - begin.data());
    if (take_line(rest) == kFence) return {begin.substr(0, length), rest};
  }
  return {{}, card};
}

}  // namespace

Cards read_cards(const bundle::VerifiedBundle& in, const bundle::HubCatalogue& listed) {
  Cards cards;
  std::uint64_t all = 0;
  for (const bundle::HubRepository& repository : listed)
    for (const bundle::HubRepositoryFile& file : repository.files) {
      if (file.path.text() != kCardFile) continue;
      const bundle::Entry& entry = *in.manifest().find(file.entry);  // parse_hub_catalogue has found it
      if (entry.absent || entry.size > kMaxCard || entry.encoding != bundle::Encoding::Identity) continue;
      if (cards.contains(entry.sha256) || all + entry.size > kMaxCards) continue;
      all += entry.size;
      std::string text;
      try {
        in.stream(entry, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
      } catch (const bundle::Error&) {
        continue;
      }
      cards.emplace(entry.sha256, std::make_shared<const std::string>(std::move(text)));
    }
  return cards;
}

std::string card_value(std::string_view card, std::string_view key) {
  std::string_view matter = parts_of(card).first;
  while (!matter.empty()) {
    const std::string_view line = take_line(matter);
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ':') continue;
    std::string_view value = bundle::trimmed(line.substr(key.size() + 1), " \t");
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    return std::string(value.substr(0, 120));
  }
  return {};
}

std::string_view card_text(std::string_view card) {
  return parts_of(card).second;
}

}  // namespace sealift::offline_repo
