// SPDX-License-Identifier: Apache-2.0
// lay out -> write beside, in a folder without a name of ours -> sync -> link to the name. The link never replaces what
// stands there; a run that is killed leaves the folder, which the next one removes.
#include "installer/image/make_image.hpp"

#include <fcntl.h>

#include <functional>
#include <optional>

#include "bundle/host/require_trusted.hpp"
#include "bundle/image/verity_tree.hpp"
#include "installer/apply/staging.hpp"
#include "installer/disk/nameless_folder.hpp"
#include "installer/doctor/expected_tree.hpp"
#include "installer/generations/generation.hpp"
#include "installer/generations/withdrawn.hpp"
#include "installer/image/carried_copy.hpp"
#include "installer/image/files_ahead.hpp"
#include "installer/image/image_chunks.hpp"
#include "installer/image/image_tree.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "installer/preflight/plan.hpp"
#include "installer/preflight/published.hpp"
#include "installer/store/unpack.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::string_view kScratch = ".sealift-image-";

void refuse_existing(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(file, ignored))) return;
  throw Error(ErrorCode::Conflict, {.what = "a file has this name already, and it is not replaced",
                                    .where = file.string(),
                                    .expected = "nothing",
                                    .next = "move it away, or choose another name after -o"});
}

fs::path hash_tree_of(const fs::path& image) {
  return image.string() + ".verity";
}

// The file's absolute path, whose folder is there and nobody else's.
fs::path checked_place(const ImageRequest& request) {
  const fs::path file = fs::absolute(request.file).lexically_normal();
  if (!file.has_filename())
    throw Error(ErrorCode::Usage, {.what = "the image needs the name of a file", .where = request.file.string()});
  bundle::require_trusted_path(file.parent_path(), bundle::Above::Site,
                               "another user may have the image lie elsewhere");
  refuse_existing(file);
  refuse_existing(chunk_list_of(file));
  if (request.verity) refuse_existing(hash_tree_of(file));
  return file;
}

void count(const bundle::ImageTree& tree, MadeImage& made) {
  for (const bundle::ImageNode& node : tree) {
    made.bytes += node.size;
    made.files += node.type == bundle::ImageNode::Type::File;
    made.folders += node.type == bundle::ImageNode::Type::Folder;
    made.links += node.type == bundle::ImageNode::Type::Link;
  }
}

// What an image is made of: all that both ways of making one have found.
struct Subject {
  const Layout& layout;
  std::string interpreter;  // "" where there is none
  std::string created;      // by which every name in the image is dated
};

// Whether both are names of one file: then this run has given it the second one.
bool is_same(const fs::path& here, const fs::path& there) {
  std::error_code ignored;
  return fs::equivalent(here, there, ignored);
}

// Gives a finished file its name, unless something has it by now.
void name(const fs::path& scratch, const char* from, const fs::path& to, Disk& disk) {
  const OpenFolder here = disk.open_folder(scratch), there = disk.open_folder(to.parent_path());
  const std::string last = to.filename();
  try {
    if (disk.link({here, from}, {there, last.c_str()})) return;
  } catch (const Error&) {
    refuse_existing(to);
    throw;
  }
  refuse_existing(to);
  disk.rename(scratch / from, to);  // this file system has no links
}

// The image's file in `scratch`, as long as it has no name of ours.
constexpr const char* kImage = "image";

// What a new file may become.
using Fill = std::function<void(const bundle::Descriptor& file, const fs::path& path)>;

void fill_new(const fs::path& path, Disk& disk, bundle::Progress& progress, const Fill& fill) {
  disk.close(disk.create(path, 0644), path);
  bundle::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) bundle::throw_errno("an image cannot be written", path);
  fill(file, path);
  ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // the disk writes while the image is hashed; a hint
  progress.end();
  disk.close(std::move(file), path);
}

void write_tree(const Subject& subject, const ImageRequest& request, const bundle::Descriptor& file,
                const fs::path& path, bundle::Progress& progress, MadeImage& made) {
  const bundle::ImageTree tree = image_tree_of(subject.layout);
  count(tree, made);
  const std::optional<bundle::Time> created = bundle::parse_time(subject.created);
  if (!created) throw Error(ErrorCode::Format, {.what = "a bundle has no time of its making", .got = subject.created});
  progress.begin("writing the image", made.bytes);
  const std::vector<std::size_t> order = image_order_of(subject.layout, tree, subject.interpreter);
  std::vector<const Place*> places;
  for (const std::size_t index : order) places.push_back(&subject.layout.at(tree[index].path));
  FilesAhead ahead(std::move(places));
  const bundle::ReadImageFile read = [&](const bundle::ImageNode&, const bundle::ByteSink& sink) {
    ahead.read([&](bundle::ByteView piece) {
      sink(piece);
      progress.add(piece.size());
    });
  };
  bundle::write_image(tree, order, read, {.time = *created, .threads = request.threads}, file, path);
}

// Compares the image in `scratch` with what `carrier`, if there is one, carries; writes its chunk list, and gives both
// their names.
void finish(const fs::path& scratch, const ImageRequest& request, const bundle::VerifiedBundle* carrier, Disk& disk,
            MadeImage& made) {
  const fs::path path = scratch / kImage;
  const bundle::Entry* const carried = carrier == nullptr ? nullptr : carrier->manifest().image();
  made.size = fs::file_size(path);
  const std::vector<bundle::Digest> chunks = digest_chunks(path, request.threads);
  if (carried != nullptr) require_carried(*carrier, *carried, path, chunks, request.threads);
  made.carried = carried != nullptr;
  const bundle::Bytes list = write_chunk_list(chunks);
  made.digest = bundle::sha256(list);
  disk.write_new(scratch / "list", bundle::as_text(list), 0644);
  if (request.verity) made.root = bundle::write_verity_tree(path, scratch / "tree", made.digest, request.threads);
  if (made.root && carried != nullptr) require_root(*carrier, *made.root);
  disk.sync_all(scratch);
  try {  // the image last, so that none is without what belongs to it
    name(scratch, "list", chunk_list_of(made.file), disk);
    if (request.verity) name(scratch, "tree", hash_tree_of(made.file), disk);
    name(scratch, kImage, made.file, disk);
  } catch (...) {
    for (const auto& [from, to] : {std::pair("list", chunk_list_of(made.file)), {"tree", hash_tree_of(made.file)}})
      if (is_same(scratch / from, to)) disk.remove_tree(to);
    throw;
  }
  disk.sync_folder(made.file.parent_path());
}

void refuse_without_room(const InstallPlan& plan, const fs::path& folder) {
  if (plan.free.bytes >= plan.needed_bytes && plan.free.inodes >= plan.needed_inodes) return;
  throw Error(ErrorCode::Space,
              {.what = "there is no room to unpack the bundle beside the image",
               .where = folder.string(),
               .expected = bundle::human_size(plan.needed_bytes) + " and " + std::to_string(plan.needed_inodes) +
                           " names free, and room for the image",
               .got = bundle::human_size(plan.free.bytes) + " and " + std::to_string(plan.free.inodes) + " names",
               .next = "choose a folder on a larger disk after -o; nothing was written"});
}

// Unpacks the bundle's entries into a prefix in `scratch` and lays them out.
Layout lay_out_bundle(const bundle::VerifiedBundle& bundle, const fs::path& scratch, const ImageRequest& request,
                      Disk& disk, bundle::Progress& progress) {
  const bundle::Manifest& manifest = bundle.manifest();
  const Prefix prefix(scratch);
  const InstallPlan plan = make_plan(bundle, prefix, disk, {.additions = Additions::Drop});
  refuse_without_room(plan, scratch.parent_path());
  const Staging staging(prefix, disk);
  Stamps stamps;
  std::uint64_t bytes = 0;
  for (const bundle::Entry* entry : plan.unpack) bytes += entry->installed_size;
  progress.begin("unpacking", bytes);
  unpack_all(bundle, plan.unpack, prefix, staging.folder(), disk, request.threads, progress, stamps);
  progress.end();
  disk.make_folder(prefix.store());
  publish(plan.unpack, prefix, disk);
  const Store store(prefix);
  std::vector<UnpackedEntry> entries;
  for (const bundle::Environment::Placement& placement : manifest.environment.placements) {
    const bundle::Entry* const entry = manifest.find(placement.entry);
    entries.push_back({.entry = entry,
                       .into = placement.into,
                       .item = store.item(*entry),
                       .record = stamps.record_of(store, *entry),
                       .left_out = placement.left_out,
                       .shared = placement.shared});
    entries.back().startup = startup_of(manifest.environment, entries.back());
  }
  return lay_out(manifest.environment, std::move(entries));
}

// A rebuild compares: with an image that is carried, of entries that are, too.
void refuse_rebuild(const bundle::VerifiedBundle& bundle) {
  const bundle::Manifest& manifest = bundle.manifest();
  if (manifest.image() == nullptr)
    throw Error(ErrorCode::Usage, {.what = "the bundle carries no image that a rebuilt one could be compared with",
                                   .where = bundle.folder().string(),
                                   .next = "leave --rebuild out: the image is made of what the bundle carries"});
  if (carries_image_alone(manifest))
    throw Error(ErrorCode::Missing, {.what = "the bundle carries its environment as an image alone",
                                     .where = bundle.folder().string(),
                                     .expected = "the wheels that the image was made of",
                                     .next = "leave --rebuild out: the image that is carried is copied"});
}

// An image travels, so that what the site's root has withdrawn gets into no new one.
void refuse_withdrawn(const Prefix& prefix, const GenerationRecord& record) {
  const bundle::TrustState trust = bundle::trust_for_run(prefix.trust(), std::nullopt);
  if (trust.root.empty()) return;
  const bundle::Root root = bundle::parse_root(trust.root, "the newest accepted root");
  for (const GenerationRecord::Bundle& each : bundles_of(record))
    if (std::string fault = withdrawn_fault(root, each); !fault.empty())
      throw Error(ErrorCode::Revoked,
                  {.what = "what is current was withdrawn, so no image of it is made",
                   .where = words_for(each),
                   .expected = "bundles and signers that the newest accepted root has not withdrawn",
                   .got = std::move(fault),
                   .next = "apply another version of it first; nothing was written"});
}

}  // namespace

MadeImage image_of_prefix(const Prefix& prefix, const ImageRequest& request, Disk& disk, bundle::Progress& progress) {
  require_prefix(prefix);
  const std::optional<unsigned> number = current_generation(prefix);
  if (!number)
    throw Error(ErrorCode::Missing, {.what = "nothing is current in this prefix",
                                     .where = prefix.folder().string(),
                                     .next = "sealift-install apply BUNDLE, or give the bundle itself"});
  require_generation(prefix, *number);
  const GenerationRecord record = read_generation_record(prefix.generation(*number), *number);
  refuse_withdrawn(prefix, record);
  MadeImage made{.name = record.name, .version = record.version, .identity = record.identity, .file = {}};
  made.file = checked_place(request);
  ItemRecords records;
  for (const GenerationRecord::Part& part : record.entries)
    if (!records.contains(part.item))
      records.emplace(part.item, read_item_record(prefix.store() / part.item / kRecordName));
  const ExpectedTree tree = generation_tree(prefix, record, records);
  const NamelessFolder scratch(disk, made.file.parent_path(), kScratch);
  const Subject subject{.layout = tree.layout, .interpreter = record.interpreter, .created = record.created};
  fill_new(scratch.path() / kImage, disk, progress, [&](const bundle::Descriptor& file, const fs::path& path) {
    write_tree(subject, request, file, path, progress, made);
  });
  finish(scratch.path(), request, nullptr, disk, made);
  return made;
}

MadeImage image_of_bundle(const bundle::VerifiedBundle& bundle, const ImageRequest& request, Disk& disk,
                          bundle::Progress& progress) {
  const bundle::Manifest& manifest = bundle.manifest();
  if (request.rebuild) refuse_rebuild(bundle);
  MadeImage made{.name = manifest.name,
                 .version = manifest.version,
                 .identity = bundle.identity(),
                 .warnings = bundle.warnings(),
                 .file = checked_place(request)};
  const NamelessFolder scratch(disk, made.file.parent_path(), kScratch);
  const bundle::Entry* const carried = manifest.image();
  Fill fill;
  Layout layout;
  if (carried != nullptr && !request.rebuild) {
    fill = [&](const bundle::Descriptor& file, const fs::path& path) {
      const ImageSums sums = copy_carried(bundle, *carried, file, path, disk, progress);
      made.bytes = sums.bytes, made.files = sums.files, made.folders = sums.folders, made.links = sums.links;
    };
  } else {
    layout = lay_out_bundle(bundle, scratch.path(), request, disk, progress);
    fill = [&](const bundle::Descriptor& file, const fs::path& path) {
      write_tree(
          {.layout = layout, .interpreter = manifest.environment.interpreter.text(), .created = manifest.created},
          request, file, path, progress, made);
    };
  }
  fill_new(scratch.path() / kImage, disk, progress, fill);
  finish(scratch.path(), request, &bundle, disk, made);
  made.mended = bundle.payload().mended();
  return made;
}

}  // namespace sealift::installer
