// SPDX-License-Identifier: Apache-2.0
// Files are compared by content, so it does not matter which bundle carries what a delta leaves out.
#include "offline_repo/holdings/gaps.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Manifest;

const Manifest& manifest_of(const HeldBundle& held) {
  return held.contents->in->manifest();
}

std::string folder_of(const HeldBundle& held) {
  return held.place.parent_path().string();
}

// `all`: the good bundles of a stream, the highest version first.
Gap without_current(const bundle::Stream& stream, const std::vector<const HeldBundle*>& all) {
  const HeldBundle& newest = *all.front();
  const bool switched = newest.reason.kind == Reason::Kind::Switched;
  const InBoth fact = newest.reason.fact();
  const std::string next =
      "sealift-repo switch " + std::string(switched ? "--newest " : "") + folder_of(newest) + " " + newest.stem();
  Gap gap{.stream = stream,
          .what = {"no version is current: " + fact.english, "没有当前版本：" + fact.chinese},
          .next = {next, next}};
  for (const HeldBundle* one : all) gap.kept.push_back(one->stem());
  gap.about = gap.kept;
  return gap;
}

std::set<bundle::Digest> carried_by_current(const Held& held) {
  std::set<bundle::Digest> carried;
  for (const HeldBundle& one : held)
    if (one.state == HeldState::Current)
      for (const bundle::Entry& entry : manifest_of(one).entries)
        if (!entry.absent) carried.insert(entry.content);
  return carried;
}

std::vector<Gap> deltas_alone(const Held& held) {
  std::vector<Gap> gaps;
  const std::set<bundle::Digest> carried = carried_by_current(held);
  for (const HeldBundle& one : held) {
    if (one.state != HeldState::Current || !manifest_of(one).base) continue;
    const Manifest& manifest = manifest_of(one);
    std::vector<std::string> missing;
    for (const bundle::Entry& entry : manifest.entries)
      if (entry.absent && !carried.contains(entry.content)) missing.push_back(entry.path.text());
    if (missing.empty()) continue;
    const std::string count = std::to_string(missing.size()), add = "sealift-repo add " + folder_of(one) + " BUNDLE";
    gaps.push_back({.stream = one.stream(),
                    .what = {one.stem() + " is a delta, and no current bundle carries " + count +
                                 " of the files that it leaves out, such as " + missing.front(),
                             one.stem() + " 是增量包，它略去的文件中有 " + count + " 个没有任何当前包携带，例如 " +
                                 missing.front()},
                    .about = {one.stem()},
                    .next = {"add the version that it was made for, or a bundle that carries them: " + add,
                             "加入它所依据的版本，或携带这些文件的包：" + add}});
  }
  return gaps;
}

}  // namespace

InBoth Gap::said() const {
  std::string names;
  for (const std::string& stem : kept) names += (names.empty() ? "" : " ") + stem;
  const bool any = !kept.empty();
  return {stream.text() + ": " + what.english + (any ? "; kept: " + names : "") + "; next: " + next.english,
          stream.text() + "：" + what.chinese + (any ? "；保留：" + names : "") + "；下一步：" + next.chinese};
}

std::vector<Gap> gaps_of(const Held& held) {
  std::map<bundle::Stream, std::vector<const HeldBundle*>> streams;
  for (const HeldBundle& one : held)
    if (one.contents && one.watched) streams[one.stream()].push_back(&one);
  std::vector<Gap> gaps;
  for (auto& [stream, all] : streams) {
    if (std::any_of(all.begin(), all.end(), [](const HeldBundle* one) { return one->state == HeldState::Current; }))
      continue;
    std::stable_sort(all.begin(), all.end(), [](const HeldBundle* a, const HeldBundle* b) {
      return manifest_of(*a).version > manifest_of(*b).version;
    });
    gaps.push_back(without_current(stream, all));
  }
  for (Gap& gap : deltas_alone(held)) gaps.push_back(std::move(gap));
  return gaps;
}

}  // namespace sealift::offline_repo
