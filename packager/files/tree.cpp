// SPDX-License-Identifier: Apache-2.0
// Tree -> tar; see tree.hpp.
#include "packager/files/tree.hpp"

#include <set>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::TarMember;
using bundle::TarType;

namespace {

class TarFile {
 public:
  explicit TarFile(const fs::path& path) : file_(path) {}

  void add(const TarMember& member) { put(bundle::as_bytes(bundle::write_tar_header(member))); }
  // Reads the source twice: its digest stands in front of its bytes.
  void add_file(const std::string& path, bool executable, bundle::ByteSource& source) {
    bundle::Hasher hasher;
    for_each_piece(source, [&](bundle::ByteView piece) { hasher.update(piece); });
    add({.path = path,
         .size = source.size(),
         .executable = executable,
         .comment = bundle::digest_comment(hasher.finish())});
    for_each_piece(source, [&](bundle::ByteView piece) { put(piece); });
    put(bundle::as_bytes(std::string(bundle::tar_padding(source.size()), '\0')));
  }
  TreeTar finish() {
    put(bundle::as_bytes(bundle::tar_end()));
    file_.sync();
    return {.sha256 = hasher_.finish(), .size = file_.size()};
  }

 private:
  static void for_each_piece(bundle::ByteSource& source, const bundle::ByteSink& take) {
    for (std::uint64_t offset = 0; offset < source.size();) {
      const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
      take(piece);
      offset += piece.size();
    }
  }
  void put(bundle::ByteView bytes) {
    hasher_.update(bytes);
    file_.write(bytes);
  }

  bundle::OutputFile file_;
  bundle::Hasher hasher_;
};

}  // namespace

TreeTar write_tree_tar(const Tree& tree, const fs::path& path) {
  std::map<std::string, const TreeItem*> members;  // nullptr: a folder
  for (const auto& [name, item] : tree) {
    const bundle::SafePath safe = bundle::SafePath::parse(name, path.string());
    if (item.link && !bundle::link_stays_inside(safe, item.text))
      throw Error(ErrorCode::Format, {.what = "a link leaves the tree that is packed",
                                      .where = name,
                                      .expected = "links to what lies in the same tree",
                                      .got = item.text,
                                      .next = "put what it leads to in its place (cp -rL), or remove the link"});
    for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
      members.emplace(name.substr(0, slash), nullptr);
    members[name] = item.folder ? nullptr : &item;
  }
  TarFile tar(path);
  for (const auto& [name, item] : members) {
    if (item == nullptr) {
      tar.add({.path = name, .type = TarType::Folder});
    } else if (item->link) {
      tar.add({.path = name, .type = TarType::Link, .target = item->text});
    } else if (item->source.empty()) {
      const bundle::ByteView text = bundle::as_bytes(item->text);
      bundle::MemorySource source(bundle::Bytes(text.begin(), text.end()), name);
      tar.add_file(name, item->executable, source);
    } else {
      bundle::FileSource source(fs::canonical(item->source));
      tar.add_file(name, item->executable, source);
    }
  }
  return tar.finish();
}

}  // namespace sealift::packager
