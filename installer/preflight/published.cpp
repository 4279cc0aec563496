// SPDX-License-Identifier: Apache-2.0
// Reads each entry once for its own digest, and each archive once more for those of its files.
#include "installer/preflight/published.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "bundle/image/verity_tree.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::installer {

namespace {

using bundle::Entry;
using bundle::EntryKind;

void check_wheel(const bundle::VerifiedBundle& bundle, const Entry& entry) {
  const std::string& path = entry.path.text();
  const std::unique_ptr<bundle::ByteSource> source = bundle.stored(entry);
  std::optional<bundle::PatchedWheel> patched;
  if (entry.encoding == bundle::Encoding::Patch) patched.emplace(*source, entry.size);
  const std::vector<bundle::Digest>& allowed = bundle.manifest().environment.startup_files;
  bundle::Wheel wheel(patched ? *patched : *source, path.substr(path.rfind('/') + 1), {allowed.begin(), allowed.end()});
  for (const bundle::WheelFile& file : wheel.files())
    if (!patched || !patched->base_of(file)) wheel.extract(file, [](bundle::ByteView) {});
}

void check_tree(const bundle::VerifiedBundle& bundle, const Entry& entry) {
  bundle::Hasher hasher;
  std::string path;
  std::optional<bundle::Digest> said;
  const auto end = [&] {
    const bundle::Digest digest = hasher.finish();
    if (said && digest != *said)
      throw bundle::Error(bundle::ErrorCode::Digest, {.what = "a file of a tree differs from its header",
                                                      .where = entry.path.text() + ", " + path,
                                                      .expected = "sha256 " + said->hex(),
                                                      .got = "sha256 " + digest.hex(),
                                                      .next = "do not use this bundle; tell who signed it"});
  };
  const auto begin = [&](const bundle::TarMember& member) {
    end();
    path = bundle::SafePath::printable(member.path);
    said = bundle::digest_of_comment(member.comment);
  };
  bundle::TarReader reader({.begin = begin, .data = [&](bundle::ByteView piece) { hasher.update(piece); }},
                           entry.path.text());
  bundle.stream(entry, [&](bundle::ByteView piece) { reader.feed(piece); });
  reader.finish();
  end();
}

void check_image(const bundle::VerifiedBundle& bundle, const Entry& entry) {
  bundle::VerityRoot hasher;
  bundle.stream(entry, [&](bundle::ByteView piece) { hasher.add(piece); });
  require_root(bundle, hasher.finish());
}

}  // namespace

void require_root(const bundle::VerifiedBundle& bundle, const bundle::Digest& root) {
  const Entry& image = *bundle.manifest().image();
  if (root == image.verity) return;
  throw bundle::Error(bundle::ErrorCode::Digest,
                      {.what = "the root hash that the manifest says is not that of the image",
                       .where = bundle.manifest().stem() + ":" + image.path.text(),
                       .expected = "the signed root hash " + (image.verity ? image.verity->hex() : "none"),
                       .got = root.hex(),
                       .next = "do not use this bundle; tell who signed it"});
}

std::vector<bundle::Error> check_published(const bundle::VerifiedBundle& bundle, unsigned threads,
                                           bundle::Progress& progress) {
  std::vector<const Entry*> entries;
  std::uint64_t bytes = 0;
  for (const Entry& entry : bundle.manifest().entries) {
    if (entry.absent) continue;
    entries.push_back(&entry);
    bytes += entry.size;
  }
  std::stable_sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return a->size > b->size; });
  progress.begin("comparing with what was published", bytes);
  std::mutex guard;
  std::map<bundle::SafePath, bundle::Error> failures;
  bundle::parallel_for(threads, entries.size(), [&](std::size_t index) {
    const Entry& entry = *entries[index];
    try {
      if (entry.encoding ==
          bundle::Encoding::Patch)  // its own bytes are nowhere; the files that it makes are hashed then
        progress.add(entry.size);
      else
        bundle.check_published(entry, [&](std::uint64_t count) { progress.add(count); });
      if (entry.kind == EntryKind::Wheel) check_wheel(bundle, entry);
      if (entry.kind == EntryKind::Tree) check_tree(bundle, entry);
      if (entry.kind == EntryKind::Squashfs) check_image(bundle, entry);
    } catch (const bundle::Error& error) {
      const std::lock_guard lock(guard);
      failures.emplace(entry.path, error);
    }
  });
  progress.end();
  std::vector<bundle::Error> in_order;
  for (const auto& [path, error] : failures) in_order.push_back(error);
  return in_order;
}

}  // namespace sealift::installer
