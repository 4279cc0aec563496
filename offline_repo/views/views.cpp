// SPDX-License-Identifier: Apache-2.0
// Names of channels and bundles are plain names, so what a client sends is compared with them as it stands.
#include "offline_repo/views/views.hpp"

#include <utility>

#include "offline_repo/catalogue/disagreements.hpp"
#include "offline_repo/requests/request_target.hpp"

namespace sealift::offline_repo {

ViewMaker::ViewMaker(const ViewMaker* before) {
  if (before != nullptr) before_ = before->views_;
}

Views ViewMaker::views_of(const Held& held) {
  Views views;
  Set current;
  std::map<std::string, Set> channels, stems;
  for (const HeldBundle& one : held) {
    if (!one.contents) continue;
    const bundle::Manifest& manifest = one.contents->in->manifest();
    stems[manifest.stem()].push_back(one.contents);
    if (one.state != HeldState::Current) continue;
    current.push_back(one.contents);
    channels[manifest.channel].push_back(one.contents);
  }
  views.merged = view_of(current);
  for (const auto& [channel, bundles] : channels) views.channels.emplace(channel, view_of(bundles));
  for (const auto& [stem, bundles] : stems) views.bundles.emplace(stem, view_of(bundles));
  return views;
}

std::shared_ptr<const View> ViewMaker::view_of(const Set& bundles) {
  std::shared_ptr<const View>& view = views_[bundles];
  if (view) return view;
  if (const auto old = before_.find(bundles); old != before_.end()) return view = old->second;
  const std::vector<Disagreement> out = disagreements_of(bundles);
  Set agreed;
  std::vector<std::string> lines;
  auto next = out.begin();
  for (std::size_t i = 0; i < bundles.size(); ++i) {
    if (next == out.end() || next->bundle != i) {
      agreed.push_back(bundles[i]);
      continue;
    }
    lines.push_back(bundles[i]->in->manifest().stem() + " is left out: " + next->why);
    ++next;
  }
  Catalogue catalogue = catalogue_of(agreed);
  catalogue.left_out.insert(catalogue.left_out.begin(), lines.begin(), lines.end());
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
