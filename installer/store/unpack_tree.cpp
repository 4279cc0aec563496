// SPDX-License-Identifier: Apache-2.0
// Streams the archive and keeps nothing of it. The reader refuses bad link targets and repeated paths. Each file has
// its header's digest, as a wheel's file has RECORD's.
#include "installer/store/unpack_tree.hpp"

#include "sealift/bundle/archive/tar.hpp"

namespace sealift::installer {

void unpack_tree(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer) {
  const std::string root = std::string(kTreeFolder);
  writer.add_folder(root);
  const auto begin = [&](const bundle::TarMember& member) {
    const std::string path = root + "/" + member.path;
    writer.end_file();
    if (member.type == bundle::TarType::Folder) writer.add_folder(path);
    if (member.type == bundle::TarType::File)
      writer.begin_file(path, member.executable, bundle::digest_of_comment(member.comment));
    if (member.type == bundle::TarType::Link) writer.add_link(path, member.target);
  };
  bundle::TarReader reader({.begin = begin, .data = [&](bundle::ByteView piece) { writer.append(piece); }},
                           entry.path.text());
  bundle.stream(entry, [&reader](bundle::ByteView piece) { reader.feed(piece); });
  reader.finish();
  writer.end_file();
}

}  // namespace sealift::installer
