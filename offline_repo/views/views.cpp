// SPDX-License-Identifier: Apache-2.0
// Names of channels and bundles are plain names, so what a client sends is compared with them as it stands.
#include "offline_repo/views/views.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "offline_repo/catalogue/disagreements.hpp"
#include "offline_repo/catalogue/not_served.hpp"
#include "offline_repo/requests/request_target.hpp"

namespace sealift::offline_repo {

namespace {

std::set<std::string> stems_of(const Held& held) {
  std::set<std::string> stems;
  for (const HeldBundle& one : held)
    if (one.contents) stems.insert(one.stem());
  return stems;
}

}  // namespace

ViewMaker::ViewMaker(const ViewMaker* before) {
  if (before != nullptr) before_ = before->views_;
}

Views ViewMaker::views_of(const Held& held, const std::vector<Gap>& gaps) {
  Views views;
  const std::set<std::string> seen = stems_of(held);
  std::set<bundle::Stream> explained;  // whose current version, or the lack of one, this client may know of
  for (const HeldBundle& one : held)
    if (one.state == HeldState::Current) explained.insert(one.stream());
  std::vector<const Gap*> shown;
  for (const Gap& gap : gaps)
    if (std::all_of(gap.about.begin(), gap.about.end(), [&](const std::string& stem) { return seen.contains(stem); }))
      shown.push_back(&gap), explained.insert(gap.stream);
  Part current;
  std::map<std::string, Part> channels, stems;
  for (const HeldBundle& one : held) {
    if (!one.contents) continue;
    const bundle::Manifest& manifest = one.contents->in->manifest();
    Part& alone = stems[manifest.stem()];
    alone.bundles.push_back(one.contents);
    if (one.state == HeldState::Current) {
      for (Part* part : {&current, &channels[manifest.channel]}) part->bundles.push_back(one.contents);
      continue;
    }
    const KeptVersion kept{.stem = manifest.stem(),
                           .channel = manifest.channel,
                           .why = explained.contains(one.stream()) ? one.why_said() : InBoth()};
    for (Part* part : {&current, &channels[manifest.channel], &alone}) part->around.kept.push_back(kept);
  }
  for (const Gap* gap : shown)
    for (Part* part : {&current, &channels[gap->stream.channel]}) part->around.gaps.push_back(gap->said());
  views.merged = view_of(current);
  for (const auto& [channel, part] : channels) views.channels.emplace(channel, view_of(part));
  for (const auto& [stem, part] : stems) views.bundles.emplace(stem, view_of(part));
  return views;
}

std::shared_ptr<const View> ViewMaker::view_of(const Part& part) {
  std::shared_ptr<const View>& view = views_[part];
  if (view) return view;
  if (const auto old = before_.find(part); old != before_.end()) return view = old->second;
  const std::vector<Contents>& bundles = part.bundles;
  const std::vector<Disagreement> out = disagreements_of(bundles);
  std::vector<Contents> agreed;
  std::vector<InBoth> lines;
  auto next = out.begin();
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    if (next == out.end() || next->bundle != i) {
      agreed.push_back(bundles[i]);
      continue;
    }
    lines.push_back(bundle_left_out(bundles[i]->in->manifest().stem(), next->why));
    ++next;
  }
  Catalogue catalogue = catalogue_of(agreed);
  catalogue.left_out.insert(catalogue.left_out.begin(), lines.begin(), lines.end());
  catalogue.around = part.around;
  return view = std::make_shared<const View>(std::move(catalogue));
}

Viewed find_view(const Views& views, std::string_view target) {
  const std::optional<ViewTarget> asked = parse_view_target(target);
  const Views::Named& all = asked && asked->kind == 'b' ? views.bundles : views.channels;
  const auto found = asked ? all.find(asked->name) : all.end();
  if (found == all.end()) return {.view = views.merged, .name = {}, .root = {}, .target = std::string(target)};
  const std::string address = std::string("/") + asked->kind + "/" + std::string(asked->name);
  Viewed viewed{.view = found->second,
                .name = std::string(asked->name),
                .root = address,
                .target = std::string(asked->rest),
                .registry = asked->registry ? "/v2" + address : address + "/v2"};
  if (asked->registry) viewed.target = "/v2" + viewed.target;
  return viewed;
}

}  // namespace sealift::offline_repo
