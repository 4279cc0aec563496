// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/archive/archive_tree.hpp"

#include <algorithm>
#include <deque>

namespace sealift::bundle {
namespace {

constexpr const char* kTooLong = "its names are too long together";

// Puts the parts of `path` before `parts` and returns how many there are.
std::size_t push_front(std::deque<std::string_view>& parts, std::string_view path) {
  std::size_t at = 0;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at++), part);
    begin = end + 1;
  }
  return at;
}

}  // namespace

const std::pair<const std::string, std::string>* link_that_leads_out(const std::map<std::string, std::string>& links) {
  constexpr int kMaxHops = 40;     // as many as Linux follows
  std::size_t steps = 20'000'000;  // for all links together
  const auto leads_out = [&](const std::string& link) {
    std::string here;  // the folder that was reached; empty: the root
    std::deque<std::string_view> left;
    push_front(left, link);
    for (int hops = 0; !left.empty();) {
      if (steps-- == 0) return true;
      const std::string_view part = left.front();
      left.pop_front();
      const std::size_t size = here.size();
      if (part == "..") {
        if (here.empty()) return true;
        here.resize(here.rfind('/') == here.npos ? 0 : here.rfind('/'));
        continue;
      }
      here.append(here.empty() ? "" : "/").append(part);
      const auto found = links.find(here);
      if (found == links.end()) continue;
      if (++hops > kMaxHops) return true;
      here.resize(size);
      steps -= std::min(steps, push_front(left, found->second));
    }
    return false;
  };
  for (const auto& link : links)
    if (leads_out(link.first)) return &link;
  return nullptr;
}

const char* ArchiveTree::add_file(const SafePath& path) {
  return add(path.text(), What::Leaf);
}

const char* ArchiveTree::add_link(const SafePath& path, std::string_view target) {
  if (!link_stays_inside(path, target)) return "a symbolic link leaves the tree";
  if (const char* fault = add(path.text(), What::Leaf)) return fault;
  links_.emplace(path.text(), target);
  return (names_ += target.size()) > kMaxNames ? kTooLong : nullptr;
}

const char* ArchiveTree::add_folder(const SafePath& path) {
  return add(path.text(), What::Folder);
}

const char* ArchiveTree::add(const std::string& path, What what) {
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    const auto [parent, fresh] = members_.emplace(path.substr(0, slash), What::ImpliedFolder);
    if (parent->second == What::Leaf) return "a member's parent is not a folder";
    if (fresh && (names_ += slash) > kMaxNames) return kTooLong;
  }
  const auto [there, fresh] = members_.emplace(path, what);
  if (!fresh && (what != What::Folder || there->second != What::ImpliedFolder)) return "a name stands twice";
  there->second = what;
  if (members_.size() > kMaxMembers) return "it has more than 1000000 members";
  return (names_ += path.size()) > kMaxNames ? kTooLong : nullptr;
}

}  // namespace sealift::bundle
