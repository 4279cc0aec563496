// SPDX-License-Identifier: Apache-2.0
// Files are opened below the item's folder and through no link; see patch_base.hpp.
#include "installer/store/patch_base.hpp"

#include <fcntl.h>

#include "installer/disk/open_beneath.hpp"
#include "sealift/bundle/core/mapped_file.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

PatchBase::PatchBase(const Store& store, const bundle::Entry& entry)
    : for_(entry.path.text()),
      item_(store.base(entry)),
      folder_(::open(item_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  if (!folder_)
    throw Error(ErrorCode::Missing, {.what = "the store lacks the wheel that a patch builds on",
                                     .where = for_,
                                     .expected = item_.string(),
                                     .next = "apply a bundle that carries this wheel whole"});
  const ItemRecord record = read_item_record(item_ / kRecordName);
  if (record.content != entry.base || record.kind != bundle::EntryKind::Wheel)
    throw Error(ErrorCode::Format, {.what = "a store item's content differs from its name",
                                    .where = item_.string(),
                                    .expected = "the wheel of content " + entry.base.hex(),
                                    .got = "content " + record.content.hex(),
                                    .next = "apply a bundle that carries " + for_ + " whole"});
  for (const StoredFile& file : record.files) files_.emplace(file.sha256, file);
}

void PatchBase::rebuild(bundle::PatchedWheel& wheel, const bundle::WheelFile& file, const bundle::Digest& from,
                        const bundle::ByteSink& sink) const {
  const auto found = files_.find(from);
  if (found == files_.end())
    throw Error(ErrorCode::Missing, {.what = "the wheel that a patch builds on has no such file",
                                     .where = for_ + ", " + bundle::SafePath::printable(file.path),
                                     .expected = "a file with sha256 " + from.hex() + " in " + item_.string(),
                                     .next = "apply a bundle that carries this wheel whole"});
  const StoredFile& base = found->second;
  const std::filesystem::path path = item_ / base.path;
  const bundle::Descriptor open = open_beneath(folder_.get(), base.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!open) bundle::throw_errno("a file of the store that a patch builds on cannot be opened", path);
  const bundle::MappedFile mapped(open, base.size, path);
  try {
    wheel.rebuild(file, mapped.bytes(), sink);
  } catch (const Error& error) {
    const bool wrong = error.code() == ErrorCode::Digest || error.code() == ErrorCode::Format;
    const bundle::Digest digest = wrong ? bundle::sha256(mapped.bytes()) : from;
    if (digest == from) throw;
    throw Error(ErrorCode::Digest, {.what = "a file of the store that a patch builds on has changed",
                                    .where = path.string(),
                                    .expected = "sha256 " + from.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "repair it with the bundle that brought it (`sealift-install doctor "
                                            "--repair BUNDLE`), or apply one that carries " +
                                            for_ + " whole"});
  }
}

}  // namespace sealift::installer
