// SPDX-License-Identifier: Apache-2.0
// Small signed bundles for tests, written by the same writer that the packager uses.
#pragma once

#include <string>
#include <vector>

#include "sealift/bundle.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_root.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

struct TinyItem {
  std::string path;  // e.g. wheels/demo-1.0-py3-none-any.whl
  bundle::EntryKind kind = bundle::EntryKind::File;
  std::string bytes;
  std::string into;  // for a File its place, for a Tree its folder
  bool executable = false;
  bundle::Encoding encoding = bundle::Encoding::Identity;
  bool absent = false;                     // listed only, which makes the bundle a delta
  std::vector<std::string> left_out = {};  // of a Wheel: places of files that another item owns
  std::vector<std::string> shared = {};    // of a Wheel: folders in another one's package that it may have files in
  std::string patch = {};                  // of a Patch: what is stored; `bytes` is the wheel as published
  bundle::Digest built_on = {};            // of a Patch: the content of its base
  bundle::WheelBuild build = bundle::WheelBuild::None;
  bool placed = true;          // false: no installation has it
  bundle::Digest verity = {};  // of a Squashfs
};

inline TinyItem wheel_item(const TinyWheel& wheel) {
  return {.path = "wheels/" + wheel.file_name(), .kind = bundle::EntryKind::Wheel, .bytes = make_wheel(wheel)};
}

// A tar as TarReader accepts it; `listed`: with the digests of its files, as the packager writes it.
inline std::string make_tar(const std::vector<std::pair<bundle::TarMember, std::string>>& members,
                            bool listed = false) {
  std::string out;
  for (auto [member, bytes] : members) {
    member.size = bytes.size();
    if (listed && member.type == bundle::TarType::File)
      member.comment = bundle::digest_comment(bundle::sha256(bundle::as_bytes(bytes)));
    out += bundle::write_tar_header(member) + bytes + std::string(bundle::tar_padding(bytes.size()), '\0');
  }
  return out + bundle::tar_end();
}

inline bundle::TarMember tar_file(const std::string& path, bool executable = false) {
  return {.path = path, .executable = executable};
}
inline bundle::TarMember tar_link(const std::string& path, const std::string& target) {
  return {.path = path, .type = bundle::TarType::Link, .target = target};
}
inline bundle::TarMember tar_folder(const std::string& path) {
  return {.path = path, .type = bundle::TarType::Folder};
}

struct TinyBundle {
  std::string name = "tiny";
  std::string channel = "test";
  std::uint64_t version = 1;
  std::uint64_t rollback_floor = 0;
  std::string created = "2026-01-01T00:00:00Z";
  std::string arch = "x86_64";
  bundle::GlibcVersion glibc{2, 17};
  std::uint64_t chunk_size = 4096;
  std::uint64_t volume_size = 0;
  bundle::DigestAlgorithm digest = bundle::DigestAlgorithm::Sha256;  // of chunks
  std::string site_packages = "lib/python3.11/site-packages";
  std::string interpreter = "bin/python3";
  std::vector<std::string> imports;
  std::optional<bundle::CarriedRuntime> runtime = std::nullopt;
  std::vector<bundle::Digest> startup_files = {};  // sorted
  std::uint64_t installed_size = 0;                // claimed for every entry; 0: more than enough
  std::uint64_t installed_files = 1000;
  std::vector<TinyItem> items = {wheel_item({})};
  std::vector<bundle::Companion> companions = {};                          // the test lays the files beside the volumes
  unsigned recovery = 0;                                                   // percent
  bundle::Digest base = bundle::sha256(bundle::as_bytes("an inventory"));  // where an item is absent
};

struct MadeBundle {
  std::filesystem::path folder;
  bundle::Manifest manifest;
  bundle::Trust trusted;  // the root, as an operator who was told its fingerprint would pin it

  std::filesystem::path seal() const { return folder / (manifest.stem() + ".seal"); }
  std::filesystem::path chunks() const { return folder / (manifest.stem() + ".chunks"); }
  std::filesystem::path volume(std::size_t index) const { return folder / manifest.payload.volumes.at(index).name; }
  std::filesystem::path recovery(std::size_t index) const {
    return folder / manifest.payload.recovery.value().files.at(index).name;
  }
  std::filesystem::path recovery_list() const { return folder / (manifest.stem() + ".recovery"); }
  std::string fingerprint() const { return "sha256:" + trusted.state.pinned->hex(); }
};

// Gives the bundle another seal: its manifest as it is in `made`, these roots, these signatures.
inline void reseal(const MadeBundle& made, const std::vector<bundle::Envelope>& roots,
                   const std::vector<const bundle::PrivateKey*>& keys) {
  const bundle::Seal seal{.roots = roots,
                          .manifest = signed_document(write_manifest(made.manifest), keys, bundle::kBundlePayloadType)};
  write_file(made.seal(), write_seal(seal));
}

inline bundle::Entry draft_of(const TinyItem& item) {
  bundle::Entry entry{.path = bundle::SafePath::parse(item.path, ""),
                      .kind = item.kind,
                      .size = item.bytes.size(),
                      .sha256 = bundle::sha256(bundle::as_bytes(item.bytes)),
                      .encoding = item.encoding};
  entry.executable = item.executable;
  entry.build = item.build;
  if (item.kind == bundle::EntryKind::Squashfs) entry.verity = item.verity;
  if (item.encoding == bundle::Encoding::Patch) {
    entry.base = item.built_on;
    entry.stored_size = item.patch.size();
    entry.stored_sha256 = bundle::sha256(bundle::as_bytes(item.patch));
  }
  return entry;
}

// What the item is in the store of a site that has it from a bundle with chunks like these.
inline std::string store_name_of(const TinyItem& item, const TinyBundle& tiny) {
  const bundle::ByteView view = bundle::as_bytes(item.bytes);
  bundle::MemorySource source(bundle::Bytes(view.begin(), view.end()), item.path);
  const bundle::Payload payload{.chunk_size = tiny.chunk_size, .digest = tiny.digest};
  return bundle::store_item_name(bundle::stored_form(draft_of(item), source, payload).entry);
}

// The manifest as its text says it: what is carried has its content from the chunk list.
inline bundle::Manifest as_written(bundle::Manifest manifest) {
  for (bundle::Entry& entry : manifest.entries)
    if (!entry.absent) entry.content = {};
  return manifest;
}

// "VOLUME at offset N", as messages have it, of the chunk that holds this byte of a volume.
inline std::string place_of_chunk(const MadeBundle& made, std::size_t volume, std::uint64_t offset) {
  const bundle::ChunkLayout layout(made.manifest.payload);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < volume; ++i) before += made.manifest.payload.volumes[i].size;
  return made.volume(volume).string() + " at offset " +
         std::to_string(layout.begin_of(layout.at(before + offset)) - before);
}

// Writes the bundle into the new folder `folder`, signed by `key` under a root of this one key.
inline MadeBundle make_bundle(const std::filesystem::path& folder, TinyBundle tiny = {},
                              const bundle::PrivateKey& key = bundle::PrivateKey::generate()) {
  using namespace bundle;
  std::filesystem::create_directories(folder);
  std::sort(tiny.items.begin(), tiny.items.end(), [](const TinyItem& a, const TinyItem& b) { return a.path < b.path; });
  Manifest draft{.name = tiny.name, .channel = tiny.channel, .version = tiny.version, .created = tiny.created};
  draft.rollback_floor = tiny.rollback_floor;
  draft.target = {.arch = tiny.arch, .glibc = tiny.glibc};
  draft.glibc_floor = tiny.glibc;
  draft.payload.chunk_size = tiny.chunk_size;
  draft.payload.digest = tiny.digest;
  draft.environment.interpreter = SafePath::parse(tiny.interpreter, "");
  draft.environment.site_packages = SafePath::parse(tiny.site_packages, "");
  draft.environment.imports = tiny.imports;
  draft.environment.runtime = tiny.runtime;
  draft.environment.startup_files = tiny.startup_files;
  draft.companions = tiny.companions;
  for (const TinyItem& item : tiny.items) {
    if (item.placed) {
      draft.environment.placements.push_back({.entry = SafePath::parse(item.path, ""), .into = item.into});
      for (const std::string& place : item.left_out)
        draft.environment.placements.back().left_out.push_back(SafePath::parse_published(place, ""));
      for (const std::string& folder : item.shared)
        draft.environment.placements.back().shared.push_back(SafePath::parse_published(folder, ""));
    }
    if (item.absent || item.encoding == Encoding::Patch) draft.base = tiny.base;
  }
  BundleWriter writer(folder, draft, tiny.volume_size);
  writer.ask_recovery(tiny.recovery);
  for (const TinyItem& item : tiny.items) {
    const ByteView view = as_bytes(item.encoding == Encoding::Patch ? item.patch : item.bytes);
    MemorySource source(Bytes(view.begin(), view.end()), item.path);
    Entry entry = draft_of(item);
    entry.installed_size = tiny.installed_size != 0 ? tiny.installed_size : (1 << 20) + 16 * item.bytes.size();
    entry.installed_files = tiny.installed_files;
    if (item.kind == EntryKind::Squashfs) entry.installed_size = entry.installed_files = 0;
    if (item.absent)
      writer.add_absent(stored_form(std::move(entry), source, draft.payload).entry);
    else
      writer.add(std::move(entry), source);
  }
  const Envelope root = one_key_root(key);
  return {.folder = folder, .manifest = writer.finish({root}, std::span(&key, 1)), .trusted = pinned(root)};
}

}  // namespace sealift::test
