// SPDX-License-Identifier: Apache-2.0
// Source: packaging.python.org, "Dependency specifiers". Of a marker only its extras are read: every other condition is
// taken as true. Only projects of the bundle are connected, and the resolver chose those by the target's markers, so
// this adds at worst a dependency that only another platform has.
#include "packager/documents/requires_dist.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::trimmed;

namespace {

constexpr std::string_view kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

// The name at the start of `text`; what follows it stays in `text`.
std::string take_name(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of(std::string(kNameCharacters) + ".-"), text.size());
  const std::string name = bundle::normalized_project_name(std::string(text.substr(0, end)));
  text = trimmed(text.substr(end));
  return name;
}

// `extra == "NAME"` with the word at `at`, or `"NAME" == extra`; empty for any other comparison.
std::string compared_with(std::string_view marker, std::size_t at) {
  const auto quoted = [](std::string_view text) {  // "NAME" at its start
    const std::size_t end = text.size() < 2 || (text[0] != '"' && text[0] != '\'') ? text.npos : text.find(text[0], 1);
    return end == text.npos ? std::string() : bundle::normalized_project_name(std::string(text.substr(1, end - 1)));
  };
  const std::string_view after = trimmed(marker.substr(at + 5));
  if (after.starts_with("==")) return quoted(trimmed(after.substr(2)));
  std::string_view before = trimmed(marker.substr(0, at));
  if (!before.ends_with("==")) return {};
  before = trimmed(before.substr(0, before.size() - 2));
  if (before.size() < 2 || (before.back() != '"' && before.back() != '\'')) return {};
  const std::size_t begin = before.rfind(before.back(), before.size() - 2);
  return begin == before.npos ? std::string() : quoted(before.substr(begin));
}

// An extra in a comparison other than == gets an empty name, which nobody asks for.
std::set<std::string> extras_of_marker(std::string_view marker) {
  std::set<std::string> extras;
  for (std::size_t at = marker.find("extra"); at != marker.npos; at = marker.find("extra", at + 1)) {
    const bool begins = at == 0 || kNameCharacters.find(marker[at - 1]) == kNameCharacters.npos;
    const bool ends = at + 5 == marker.size() || kNameCharacters.find(marker[at + 5]) == kNameCharacters.npos;
    const bool in_text = at > 0 && (marker[at - 1] == '"' || marker[at - 1] == '\'');  // an extra that is called so
    if (begins && ends && !in_text) extras.insert(compared_with(marker, at));
  }
  return extras;
}

}  // namespace

WheelRequirement read_requirement(std::string_view text) {
  const std::size_t marker = std::min(text.find(';'), text.size());
  WheelRequirement requirement{.project = {}, .extras = {}, .if_any = extras_of_marker(text.substr(marker))};
  std::string_view rest = trimmed(text.substr(0, marker));
  requirement.project = take_name(rest);
  if (!rest.starts_with('[')) return requirement;
  std::string_view list = rest.substr(1, rest.find(']') == rest.npos ? 0 : rest.find(']') - 1);
  while (!list.empty()) {
    list = trimmed(list);
    if (const std::string extra = take_name(list); !extra.empty()) requirement.extras.insert(extra);
    list.remove_prefix(std::min(list.size(), std::min(list.find(','), list.size()) + 1));
  }
  return requirement;
}

// Each requirement is handled once for each of its own extras, however often these are asked for.
std::map<std::string, std::set<std::string>> needed_projects(const Requirements& requirements) {
  using Condition = std::pair<std::string, std::string>;  // project, its extra; "" without one
  std::map<Condition, std::vector<const WheelRequirement*>> under;
  std::set<Condition> asked;
  std::vector<Condition> next;
  const auto ask = [&](const std::string& project, const std::string& extra) {
    if (const auto [there, fresh] = asked.emplace(project, extra); fresh) next.push_back(*there);
  };
  for (const auto& [project, list] : requirements) {
    ask(project, "");
    for (const WheelRequirement& requirement : list) {
      if (requirement.if_any.empty()) under[{project, ""}].push_back(&requirement);
      for (const std::string& extra : requirement.if_any)
        if (!extra.empty()) under[{project, extra}].push_back(&requirement);
    }
  }
  std::map<std::string, std::set<std::string>> needed;
  while (!next.empty()) {
    const Condition condition = next.back();
    next.pop_back();
    const auto found = under.find(condition);
    if (found == under.end()) continue;
    for (const WheelRequirement* requirement : found->second) {
      if (!requirements.contains(requirement->project)) continue;
      if (requirement->project != condition.first) needed[condition.first].insert(requirement->project);
      for (const std::string& extra : requirement->extras) ask(requirement->project, extra);
    }
  }
  return needed;
}

}  // namespace sealift::packager
