// SPDX-License-Identifier: Apache-2.0
// Reads the bundle: every chunk once, then every wheel; see bundle_facts.hpp.
#include "packager/documents/bundle_facts.hpp"

#include "sealift/bundle/payload/chunk_buffer.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A volume holds whole chunks, so one pass checks every chunk and digests every file.
std::vector<bundle::Digest> digest_volumes(const bundle::VerifiedBundle& source, bundle::Progress& progress) {
  const bundle::PayloadReader& reader = source.payload();
  const bundle::Payload& payload = source.manifest().payload;
  progress.begin("reading " + source.manifest().stem(), payload.size);
  std::vector<bundle::Digest> digests;
  bundle::Hasher hasher;
  bundle::ChunkBuffer memory;
  std::uint64_t done = 0;
  for (std::uint64_t index = 0; index < reader.layout().count(); ++index) {
    reader.will_need(index + 1);
    memory = reader.chunk(index, std::move(memory));
    hasher.update(memory.view());
    progress.add(memory.size());
    done += memory.size();
    if (done < payload.volumes[digests.size()].size) continue;
    digests.push_back(hasher.finish());
    done = 0;
  }
  progress.end();
  return digests;
}

BundledWheel read_wheel(const bundle::VerifiedBundle& source, const bundle::Entry& entry, const fs::path& licences,
                        PlainNames& folders) {
  const std::string path = entry.path.text(), where = source.manifest().stem() + ":" + path;
  if (entry.absent) {
    BundledWheel found{.carried = false};
    if (const auto name = bundle::parse_wheel_name(path.substr(path.rfind('/') + 1))) {
      found.facts.project = shown(name->name);
      found.facts.version = shown(name->version);
    }
    return found;
  }
  if (entry.encoding == bundle::Encoding::Zstd)
    throw Error(ErrorCode::CannotCheck, {.what = "a wheel is stored compressed",
                                         .where = where,
                                         .expected = "a wheel stored as it was published",
                                         .next = "pack the bundle again with this version of sealift-pack"});
  const std::unique_ptr<bundle::ByteSource> stored = source.stored(entry);
  std::optional<bundle::PatchedWheel> patched;  // what documents read of a wheel it always carries
  try {
    if (entry.encoding == bundle::Encoding::Patch) patched.emplace(*stored, entry.size);
    bundle::ByteSource* const bytes = patched ? &*patched : stored.get();
    const std::vector<bundle::Digest>& allowed = source.manifest().environment.startup_files;
    bundle::Wheel reader(*bytes, path.substr(path.rfind('/') + 1), {allowed.begin(), allowed.end()});
    BundledWheel found{.carried = true, .facts = read_wheel_facts(reader.metadata()), .folder = {}, .licences = {}};
    if (found.facts.project.empty())
      found.facts.project = shown(reader.name().name);  // its header came after too many others
    if (found.facts.version.empty()) found.facts.version = shown(reader.name().version);
    const std::string folder = folders.take(reader.name().name + "-" + reader.name().version);
    found.licences = collect_licences(reader, found.facts, licences / folder);
    if (!found.licences.files.empty()) found.folder = folder;
    return found;
  } catch (const Error& error) {
    throw error.within("while reading " + where);
  }
}

// A lock is not signed. Its addresses are used only when this bundle was made from it: same name and version, and
// the same wheels by digest.
Lock read_own_lock(const fs::path& file, const bundle::Manifest& manifest) {
  Lock lock = read_lock(file);
  std::set<bundle::Digest> locked, carried;
  for (const LockedWheel& wheel : lock.wheels) locked.insert(wheel.sha256);
  for (const bundle::Entry& entry : manifest.entries)
    if (entry.kind == bundle::EntryKind::Wheel) carried.insert(entry.sha256);
  if (lock.stem() != manifest.stem() || lock.channel != manifest.channel || locked != carried)
    throw Error(ErrorCode::Conflict, {.what = "the bundle was not made from this lock",
                                      .where = file.string(),
                                      .expected = manifest.stem() + " of channel " + manifest.channel + " with " +
                                                  std::to_string(carried.size()) + " wheels",
                                      .got = lock.stem() + " of channel " + lock.channel + " with " +
                                             std::to_string(locked.size()) + " wheels, not all the same",
                                      .next = "name the lock that create was given, or leave --lock out"});
  return lock;
}

}  // namespace

BundleFacts read_bundle_facts(const bundle::VerifiedBundle& source, const bundle::Seal& seal, const fs::path& lock,
                              const fs::path& licences, bundle::Progress& progress) {
  // What was parsed has one spelling, so these are the file's bytes without reading it again.
  const std::string seal_text = write_seal(seal);
  BundleFacts facts{.source = source,
                    .seal = bundle::sha256(bundle::as_bytes(seal_text)),
                    .seal_size = seal_text.size(),
                    .volumes = {},
                    .wheels = {},
                    .debs = read_deb_facts(source),
                    .rpms = read_rpm_facts(source)};
  if (!lock.empty()) facts.lock = read_own_lock(lock, source.manifest());
  facts.volumes = digest_volumes(source, progress);
  PlainNames folders;
  folders.take("licences.tsv");  // the table's own name
  for (const bundle::Entry& entry : source.manifest().entries)
    if (entry.kind == bundle::EntryKind::Wheel)
      facts.wheels.emplace(entry.path.text(), read_wheel(source, entry, licences, folders));
  facts.models = read_bundled_models(source, facts.lock, licences, folders);
  return facts;
}

std::string serial_number(const bundle::Digest& identity) {
  std::string hex = identity.hex().substr(0, 32);
  hex[12] = '8';                                                       // the version
  hex[16] = "89ab"[hex[16] <= '9' ? hex[16] & 3 : (hex[16] + 1) & 3];  // the variant; two bits of the digest are kept
  for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
  return "urn:uuid:" + hex;
}

std::string_view sort_of(const bundle::Entry& entry) {
  const std::string& path = entry.path.text();
  const auto below = [&path](const char* folder) { return path.starts_with(folder); };
  if (entry.kind == bundle::EntryKind::Wheel) return "wheel";
  if (entry.kind == bundle::EntryKind::Squashfs) return "squashfs";
  if (path.starts_with(kInterpreterPrefix)) return "interpreter";
  if (below("files/models/") || below("files/hub/models--") || below("files/modelscope/models/")) return "model";
  if (below("files/hub/kernels--")) return "kernel";
  if (below("files/data/") || below("files/hub/datasets--") || below("files/modelscope/datasets/")) return "data";
  if (is_deb(path)) return "deb";
  if (is_rpm(path)) return "rpm";
  if (below("images/blobs/")) return "image";
  return below("programs/") ? "program" : "file";
}

}  // namespace sealift::packager
