// SPDX-License-Identifier: Apache-2.0
// Folds lists of ranks, hosts, devices and culprits.
// See folds.hpp.
// Numbers are read only where they fit 18 digits, and keep their leading zeros.
#include "verify/wording/folds.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace sealift::verify {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A name around its last number: "gpu07.site" is "gpu", 7 of two digits, ".site".
struct Numbered {
  std::string before, after;
  std::size_t width = 0;
  std::int64_t number = 0;
};

std::optional<Numbered> numbered(const std::string& name) {
  const auto last = name.find_last_of("0123456789");
  if (last == name.npos) return std::nullopt;
  auto first = last;
  while (first > 0 && is_digit(name[first - 1])) --first;
  const auto digits = name.substr(first, last - first + 1);
  if (digits.size() > 18) return std::nullopt;
  return Numbered{name.substr(0, first), name.substr(last + 1), digits.size(), std::stoll(digits)};
}

std::string padded(std::int64_t number, std::size_t width) {
  auto digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

/// "0-7,9" of sorted numbers without repeats.
std::string ranges(const std::vector<std::int64_t>& sorted, std::size_t width, const std::string& comma) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] - 1 == sorted[end - 1]) ++end;
    text += (i ? comma : "") + padded(sorted[i], width);
    if (end - i > 1) text += (end - i == 2 ? comma : "-") + padded(sorted[end - 1], width);
    i = end;
  }
  return text;
}

void sort_once(std::vector<std::int64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

/// "device cuda:3: NVIDIA H100" and "cuda:3 NVIDIA H100" are "NVIDIA H100".
std::string without_index(std::string device) {
  for (const std::string& word : {std::string("device "), std::string("cuda:")}) {
    if (device.starts_with(word))
      device.erase(0, word.size());
    else if (word == "cuda:")
      return device;
  }
  const auto end = device.find_first_not_of("0123456789");
  if (end == device.npos) return "cuda";
  return device.substr(device.find_first_not_of(": ", end) == device.npos ? end : device.find_first_not_of(": ", end));
}

struct Culprit {
  std::int64_t rank = 0;
  std::string host;
};

/// Reads "rank N on HOST (DEVICE)".
std::optional<Culprit> culprit(const std::string& text) {
  const std::string rank = "rank ", on = " on ";
  const auto middle = text.find(on);
  const auto end = text.rfind(" (");
  if (!text.starts_with(rank) || middle == text.npos || end == text.npos || !text.ends_with(")")) return std::nullopt;
  const auto digits = text.substr(rank.size(), middle - rank.size());
  if (digits.empty() || digits.size() > 18 || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  if (end < middle + on.size()) return std::nullopt;
  return Culprit{std::stoll(digits), text.substr(middle + on.size(), end - middle - on.size())};
}

std::vector<Phrase> by_host(const std::vector<Phrase>& at_fault) {
  std::vector<Phrase> items;
  std::vector<std::string> hosts;
  std::map<std::string, std::vector<std::int64_t>> ranks;
  for (const auto& one : at_fault) {
    const auto found = culprit(one.en);
    if (!found) {
      items.push_back(one);
      continue;
    }
    if (ranks[found->host].empty()) hosts.push_back(found->host);
    ranks[found->host].push_back(found->rank);
  }
  for (const auto& host : hosts) {
    const auto& of_host = ranks[host];
    const auto numbers = folded_numbers(of_host);
    items.push_back(
        {(of_host.size() == 1 ? "rank " : "ranks ") + numbers + " on " + host, host + " 上的进程 " + numbers});
  }
  return items;
}

}  // namespace

std::string folded_numbers(std::vector<std::int64_t> numbers) {
  sort_once(numbers);
  return ranges(numbers, 0, ", ");
}

std::string folded_names(const std::vector<std::string>& names) {
  using Key = std::tuple<std::string, std::string, std::size_t>;
  std::map<Key, std::vector<std::int64_t>> groups;
  std::vector<std::pair<std::string, std::optional<Key>>> order;
  for (const auto& name : names) {
    const auto parts = numbered(name);
    if (!parts) {
      order.emplace_back(name, std::nullopt);
      continue;
    }
    const bool has_zeros = parts->width > 1 && name[parts->before.size()] == '0';
    // Numbers without leading zeros differ in width ("n9", "n10") and are still one series.
    const auto series = [&](std::size_t width) { return Key{parts->before, parts->after, width}; };
    const auto key = has_zeros || groups.count(series(parts->width)) ? series(parts->width) : series(0);
    if (groups[key].empty()) order.emplace_back(name, key);
    groups[key].push_back(parts->number);
  }
  std::string text;
  for (auto& [name, key] : order) {
    text += text.empty() ? "" : ", ";
    auto numbers = key ? groups[*key] : std::vector<std::int64_t>();
    sort_once(numbers);
    if (numbers.size() < 2)
      text += name;
    else
      text += std::get<0>(*key) + "[" + ranges(numbers, std::get<2>(*key), ",") + "]" + std::get<1>(*key);
  }
  return text;
}

std::string folded_devices(const std::vector<std::string>& devices) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const auto& device : devices) {
    const auto kind = without_index(device);
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& other) { return other.first == kind; });
    if (found == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++found->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds) {
    text += (text.empty() ? "" : "; ") + (count > 1 ? std::to_string(count) + " x " : "") + kind;
  }
  return text;
}

FoldedList folded_culprits(const std::vector<Phrase>& at_fault, std::size_t most) {
  FoldedList list{.items = at_fault.size() > most ? by_host(at_fault) : at_fault};
  if (list.items.size() > most) {
    list.left_out = list.items.size() - most;
    list.items.resize(most);
  }
  return list;
}

std::vector<NodeGroup> folded_nodes(const std::vector<Node>& nodes) {
  std::vector<NodeGroup> groups;
  for (const auto& node : nodes) {
    const auto devices = folded_devices(node.devices);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.devices == devices; });
    if (group == groups.end())
      group = groups.insert(groups.end(), NodeGroup{.hosts = {}, .ranks = {}, .devices = devices});
    group->hosts.push_back(node.host);
    group->ranks.insert(group->ranks.end(), node.ranks.begin(), node.ranks.end());
  }
  return groups;
}

}  // namespace sealift::verify
