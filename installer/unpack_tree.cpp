// SPDX-License-Identifier: Apache-2.0
// Streams the archive; nothing is kept but the links. A link's own text may look harmless and still lead out through
// another link (up -> .., out -> up/..), hence the walk over all of them at the end.
#include "installer/unpack_tree.hpp"

#include <deque>

#include "sealift/bundle/tar.hpp"

namespace sealift::installer {

using Links = std::map<std::string, std::string>;  // path -> target

namespace {

constexpr int kMaxHops = 40;  // as many as Linux follows

void push_front(std::deque<std::string>& parts, const std::string& path) {
  std::size_t at = 0;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at++), part);
    begin = end + 1;
  }
}

// Resolves `link` as the kernel would, with the tree's root as the border.
bool leads_out(const std::string& link, const Links& links) {
  std::vector<std::string> here;
  std::deque<std::string> left;
  push_front(left, link);
  for (int hops = 0; !left.empty();) {
    const std::string part = left.front();
    left.pop_front();
    if (part == "..") {
      if (here.empty()) return true;
      here.pop_back();
      continue;
    }
    here.push_back(part);
    std::string path;
    for (const std::string& name : here) path += (path.empty() ? "" : "/") + name;
    const auto found = links.find(path);
    if (found == links.end()) continue;
    if (++hops > kMaxHops) return true;  // a circle leads nowhere; refused as well
    here.pop_back();
    push_front(left, found->second);
  }
  return false;
}

}  // namespace

void unpack_tree(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer) {
  const std::string root = std::string(kTreeFolder);
  writer.add_folder(root);
  Links links;
  const auto begin = [&](const bundle::TarMember& member) {
    const std::string path = root + "/" + member.path;
    writer.end_file();
    if (member.type == bundle::TarType::Folder) writer.add_folder(path);
    if (member.type == bundle::TarType::File) writer.begin_file(path, member.executable);
    if (member.type == bundle::TarType::Link) {
      writer.add_link(path, member.target);
      links.emplace(member.path, member.target);
    }
  };
  bundle::TarReader reader({.begin = begin, .data = [&](bundle::ByteView piece) { writer.append(piece); }},
                           entry.path.text());
  bundle.stream(entry, [&reader](bundle::ByteView piece) { reader.feed(piece); });
  reader.finish();
  writer.end_file();
  for (const auto& [path, target] : links)
    if (leads_out(path, links))
      throw bundle::Error(bundle::ErrorCode::Format,
                          {.what = "a symbolic link of an archive leads out of it, or in a circle",
                           .where = entry.path.text() + ", " + bundle::SafePath::printable(path),
                           .expected = "a target inside the archive",
                           .got = bundle::SafePath::printable(target),
                           .next = "this entry was not made by sealift-pack; do not use it"});
}

}  // namespace sealift::installer
