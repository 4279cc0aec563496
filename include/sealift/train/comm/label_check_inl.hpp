// SPDX-License-Identifier: Apache-2.0
// The bodies of label_check.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/label_check.hpp>

#include <algorithm>
#include <cstring>

namespace sealift::train {

namespace detail {

SEALIFT_BODY void compare_labels(const std::shared_ptr<Channel>& channel, const Label& label) {
  constexpr std::int64_t kSize = 256;
  auto cards = at::zeros({channel->size(), kSize}, at::kByte);
  const auto hash = label.hash();
  const auto text = label.text().substr(0, kSize - sizeof hash - 1);
  auto* mine = cards[channel->rank()].data_ptr<std::uint8_t>();
  std::memcpy(mine, &hash, sizeof hash);
  std::memcpy(mine + sizeof hash, text.c_str(), text.size());

  auto& issued = channel->watch->issued();
  InFlight flight{.channel = channel, .label = label, .group = channel->check_group};
  flight.number = issued.issue(flight.group, label);
  flight.tag = channel->check_tag(flight.number);
  flight.exchange([&](auto) { return cards[channel->rank()]; }, [&](auto peer) { return cards[peer]; });
  flight.wait();

  std::vector<std::pair<std::string, std::vector<std::int64_t>>> groups;  // ranks by label, by first rank
  bool agree = true;
  for (std::int64_t peer = 0; peer < channel->size(); ++peer) {
    const auto* card = cards[peer].data_ptr<std::uint8_t>();
    agree = agree && std::memcmp(card, &hash, sizeof hash) == 0;
    const std::string what = reinterpret_cast<const char*>(card) + sizeof hash;
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& other) { return other.first == what; });
    if (same == groups.end()) same = groups.insert(same, {what, {}});
    same->second.push_back(channel->members[static_cast<std::size_t>(peer)]);
  }
  if (agree) return;
  std::string differ = "ranks disagree in step " + std::to_string(issued.step()) + ": ";
  for (const auto& [what, ranks] : groups) differ += name_ranks(ranks) + " came to " + what + ", ";
  channel->watch->disagree(label, differ + "in group " + channel->name +
                                      "; every rank must run the same units in the same order, with the same sizes and "
                                      "gradients");
}

}  // namespace detail

}  // namespace sealift::train
