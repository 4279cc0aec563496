// SPDX-License-Identifier: Apache-2.0
// See need_chains.hpp. One breadth-first walk from what the job names gives each package the parent nearest to the job.
#include "packager/resolve/need_chains.hpp"

namespace sealift::packager {

std::map<std::string, std::string> need_chains(const DirectNeeds& needs) {
  std::map<std::string, std::vector<std::string>> needed;  // the inverse
  for (const auto& [package, who] : needs)
    for (const std::string& by : who) needed[by].push_back(package);
  std::map<std::string, std::string> nearest;  // package -> its parent
  std::vector<std::string> reached;
  for (const auto& [by, packages] : needed)
    if (!needs.contains(by)) reached.push_back(by);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto packages = needed.find(reached[i]);
    if (packages == needed.end()) continue;
    const std::string parent = reached[i];
    for (const std::string& package : packages->second)
      if (nearest.emplace(package, parent).second) reached.push_back(package);
  }
  std::map<std::string, std::string> chains;
  for (const auto& [package, who] : needs) {
    std::string text, others, first = who.empty() ? "" : who.front();
    if (const auto parent = nearest.find(package); parent != nearest.end()) first = parent->second;
    text = first;
    for (auto step = nearest.find(first); step != nearest.end(); step = nearest.find(step->second))
      text += ", for " + step->second;
    for (const std::string& by : who)
      if (by != first) others += (others.empty() ? "; also by " : ", ") + by;
    if (!text.empty()) chains[package] = text + others;
  }
  return chains;
}

}  // namespace sealift::packager
