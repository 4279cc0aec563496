// SPDX-License-Identifier: Apache-2.0
// survey -> refuse what cannot be mended -> each damaged volume, chunk by chunk, in a folder without a name -> sync ->
// rename. A rebuilt chunk waits in a file of its own: its group gives all of its lost chunks at once, of any volume.
#include "installer/mend/mend.hpp"

#include <set>

#include "bundle/host/require_trusted.hpp"
#include "installer/disk/anchored.hpp"
#include "installer/disk/file_output.hpp"
#include "installer/disk/nameless_folder.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::installer {

namespace {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

void write_new_file(Disk& disk, const fs::path& path, bundle::ByteView bytes, mode_t mode = 0644) {
  bundle::Descriptor file = disk.create(path, mode);
  disk.write(file, path, bytes);
  disk.close(std::move(file), path);
}

// Volumes from chunks, wherever each comes from.
class VolumeMending {
 public:
  VolumeMending(const bundle::VerifiedBundle& bundle, bundle::DamagedPayload& payload, Disk& disk, fs::path folder,
                bundle::Progress& progress)
      : bundle_(bundle), payload_(payload), disk_(disk), folder_(std::move(folder)), progress_(progress) {
    disk_.make_folder(rebuilt_folder());
  }

  void write(const std::string& name, std::uint64_t begin, std::uint64_t size) {
    const bundle::ChunkLayout& layout = bundle_.payload().layout();
    FileOutput output(disk_);
    output.begin(disk_.create(folder_ / name, 0644), folder_ / name);
    bundle::ChunkBuffer memory;
    for (std::uint64_t chunk = layout.from(begin), end = layout.from(begin + size); chunk < end; ++chunk) {
      if (!payload_.read(chunk, memory)) take_rebuilt(chunk, memory);
      output.append(memory.view());
      progress_.add(memory.size());
    }
    output.finish();
  }

  void remove_rebuilt() { disk_.remove_tree(rebuilt_folder()); }

 private:
  fs::path rebuilt_folder() const { return folder_ / ".rebuilt"; }
  fs::path rebuilt_file(std::uint64_t chunk) const { return rebuilt_folder() / std::to_string(chunk); }

  void take_rebuilt(std::uint64_t chunk, bundle::ChunkBuffer& memory) {
    if (!rebuilt_.contains(chunk))
      payload_.rebuild(chunk, [&](std::uint64_t one, bundle::ByteView bytes) {
        if (rebuilt_.insert(one).second) write_new_file(disk_, rebuilt_file(one), bytes);
      });
    const std::size_t size = bundle_.payload().layout().size_of(chunk);
    bundle::InputFile(rebuilt_file(chunk)).read_exactly(0, memory.resize(size));
    // It was on this disk meanwhile.
    if (const bundle::Digest& expected = bundle_.payload().digests()[static_cast<std::size_t>(chunk)];
        digest_of(memory.view(), bundle_.manifest().payload.digest) != expected)
      throw Error(ErrorCode::Digest, {.what = "a rebuilt chunk changed on the disk that it was written to",
                                      .where = rebuilt_file(chunk).string(),
                                      .next = "use another disk"});
  }

  const bundle::VerifiedBundle& bundle_;
  bundle::DamagedPayload& payload_;
  Disk& disk_;
  const fs::path folder_;
  bundle::Progress& progress_;
  std::set<std::uint64_t> rebuilt_;
};

void refuse_unmendable(const bundle::Damage& damage, const bundle::Manifest& manifest) {
  if (damage.mendable()) return;
  std::string bad;
  for (const std::string& name : damage.bad_volumes) bad += (bad.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::Digest,
              {.what = "more is lost than can be mended",
               .where = manifest.stem(),
               .expected = damage.has_recovery
                               ? "in each group at most as many lost pieces as it has right recovery chunks"
                               : "recovery data (`sealift-pack create --recovery 5%`), or another copy of what is bad",
               .got = damage.verdict(),
               .next = "copy again from their source, as far as it goes, or name folders with other copies by "
                       "--volumes: " +
                       bad});
}

void require_room(const fs::path& into, std::uint64_t bytes, const Disk& disk) {
  const std::uint64_t free = disk.free_space(into).bytes;
  if (free >= bytes) return;
  throw Error(ErrorCode::Space, {.what = "there is not enough room for the mended volumes",
                                 .where = into.string(),
                                 .expected = bundle::human_size(bytes),
                                 .got = bundle::human_size(free),
                                 .next = "make room, or name a folder on another disk"});
}

void refuse_standing(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) return;
  throw Error(ErrorCode::Conflict, {.what = "a folder of this name is there already, and it is not replaced",
                                    .where = folder.string(),
                                    .next = "move it away, or name another folder with --into"});
}

void copy_small_file(const fs::path& from, Disk& disk, const fs::path& to, mode_t mode) {
  bundle::FileSource source(from);
  FileOutput output(disk);
  output.begin(disk.create(to, mode), to);
  for (std::uint64_t offset = 0; offset < source.size();) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    output.append(piece);
    offset += piece.size();
  }
  output.finish();
}

// Seal, lists and programs, as far as they are there: what was mended is a bundle's folder of its own. Users of seal
// and lists verify them; a program is started before anything is, so it is checked once more as it lies there.
void copy_small_files(const bundle::VerifiedBundle& bundle, const fs::path& seal, Disk& disk, const fs::path& folder) {
  const bundle::Manifest& manifest = bundle.manifest();
  std::vector<fs::path> files{seal, bundle.folder() / (manifest.stem() + std::string(bundle::kChunksSuffix)),
                              bundle.folder() / (manifest.stem() + std::string(bundle::kRecoverySuffix))};
  for (const bundle::Companion& companion : manifest.companions) files.push_back(bundle.folder() / companion.name);
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(file, ignored))) continue;
    const bool program = &file - files.data() >= 3;
    copy_small_file(file, disk, folder / file.filename(), program ? 0755 : 0644);
  }
  bundle::check_companions(folder, manifest);
}

}  // namespace

Mended mend(bundle::OpenBundle opened, const fs::path& into, const bundle::Trust& trust, bundle::Time now,
            unsigned threads, Disk& disk, bundle::Progress& progress) {
  bundle::require_trusted_path(into, bundle::Above::Site, "another user may have what is mended lie elsewhere");
  // A volume that is missing or cut short is what this is for.
  opened.ask = [](const bundle::Volume&, const Error&) { return std::nullopt; };
  const bundle::VerifiedBundle bundle = bundle::verify(opened, trust, now);
  const bundle::Manifest& manifest = bundle.manifest();
  std::vector<fs::path> folders{opened.folder};
  folders.insert(folders.end(), opened.more_folders.begin(), opened.more_folders.end());

  // What is lost, and whether it can be had again.
  bundle::DamagedPayload payload(bundle, std::move(folders));
  progress.begin("looking", payload.bytes_to_survey());
  Mended mended{.name = manifest.name,
                .version = manifest.version,
                .identity = bundle.identity(),
                .warnings = bundle.warnings(),
                .damage = payload.survey(threads, [&](std::uint64_t bytes) { progress.add(bytes); }),
                .folder = {},
                .volumes = {}};
  progress.end();
  if (mended.damage.bad_volumes.empty()) return mended;
  refuse_unmendable(mended.damage, manifest);
  const fs::path folder = into / manifest.stem();
  refuse_standing(folder);
  const std::set<std::string> bad(mended.damage.bad_volumes.begin(), mended.damage.bad_volumes.end());
  for (const bundle::Volume& volume : manifest.payload.volumes)
    if (bad.contains(volume.name)) mended.bytes += volume.size;
  require_room(into, mended.bytes + mended.damage.bad_bytes, disk);

  // The volumes, and their name at the end.
  disk.make_folders(into);
  const Anchored anchored(disk, into);
  NamelessFolder scratch(disk, into, ".sealift-mend-");
  progress.begin("mending " + manifest.stem(), mended.bytes);
  VolumeMending mending(bundle, payload, disk, scratch.path(), progress);
  std::uint64_t begin = 0;
  for (const bundle::Volume& volume : manifest.payload.volumes) {
    if (bad.contains(volume.name)) {
      mending.write(volume.name, begin, volume.size);
      mended.volumes.push_back(volume.name);
    }
    begin += volume.size;
  }
  mending.remove_rebuilt();
  copy_small_files(bundle, opened.seal_path, disk, scratch.path());
  scratch.become(folder);
  progress.end();
  mended.folder = folder;
  return mended;
}

}  // namespace sealift::installer
