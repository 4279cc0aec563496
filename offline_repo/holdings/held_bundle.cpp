// SPDX-License-Identifier: Apache-2.0
// Places identify bundles here, since what is left out has no other name that anybody vouches for.
#include "offline_repo/holdings/held_bundle.hpp"

#include <map>

namespace sealift::offline_repo {

namespace {

std::string line_of(const HeldBundle& held) {
  const std::string where = held.stem() + " in " + held.place.string();
  if (held.state == HeldState::Current) return where + " is served";
  if (held.state == HeldState::Kept) return where + " is kept, at b/" + held.stem() + "/ alone: " + held.why();
  return where + " is left out: " + held.why();
}

std::map<std::string, std::string> lines_of(const Held& held) {
  std::map<std::string, std::string> lines;
  for (const HeldBundle& one : held) lines[one.place.string()] = line_of(one);
  return lines;
}

}  // namespace

std::string_view name_of(HeldState state) {
  switch (state) {
    case HeldState::Current:
      return "current";
    case HeldState::Kept:
      return "kept";
    case HeldState::LeftOut:
      break;
  }
  return "left_out";
}

InBoth Reason::fact() const {
  switch (kind) {
    case Kind::None:
      return {};
    case Kind::Switched:
      return {"switched to version " + std::to_string(version) + ", which is not here or no good",
              "已切换到版本 " + std::to_string(version) + "，但它不在这里或不可用"};
    case Kind::NotChosen:
      return {text + " is served", "正在提供 " + text};
    case Kind::SameAs:
      return {"the same bundle is in " + text, "同一个包在 " + text + " 中"};
    case Kind::Older:
      return {text, "比本站已接受过的版本旧"};
    case Kind::Refused:
      break;
  }
  return {text, text};
}

InBoth HeldBundle::why_said() const {
  InBoth said = reason.fact();
  if (reason.kind != Reason::Kind::Older) return said;
  said.english += "; sealift-repo switch makes it current";
  said.chinese += "；sealift-repo switch 可将其设为当前版本";
  return said;
}

std::string HeldBundle::stem() const {
  return contents ? contents->in->manifest().stem() : place.filename().string();
}

bundle::Stream HeldBundle::stream() const {
  const bundle::Manifest& manifest = contents->in->manifest();
  return {.channel = manifest.channel, .name = manifest.name};
}

std::vector<std::string> changes(const Held& before, const Held& after) {
  const std::map<std::string, std::string> old = lines_of(before), fresh = lines_of(after);
  std::vector<std::string> lines;
  for (const auto& [place, line] : fresh)
    if (const auto found = old.find(place); found == old.end() || found->second != line) lines.push_back(line);
  for (const auto& [place, line] : old)
    if (!fresh.contains(place)) lines.push_back(place + " is gone");
  return lines;
}

}  // namespace sealift::offline_repo
