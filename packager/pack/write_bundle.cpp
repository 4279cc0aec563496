// SPDX-License-Identifier: Apache-2.0
// Entries, companions, seal; see write_bundle.hpp. An entry that turns out to be damaged leaves no trace in the payload
// (bundle::BundleWriter::add), so it is repaired and added again, and the work goes on.
#include "packager/pack/write_bundle.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A file that reports how much of it was read.
class WatchedSource final : public bundle::ByteSource {
 public:
  WatchedSource(const fs::path& path, bundle::Progress& progress) : source_(path), progress_(progress) {}

  std::uint64_t size() const override { return source_.size(); }
  std::string name() const override { return source_.name(); }
  bundle::ByteView view(std::uint64_t offset, std::size_t wanted) override {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source_.view(offset, wanted);
    progress_.add(piece.size());
    read_ += piece.size();
    return piece;
  }
  void take_back() { progress_.take_back(std::exchange(read_, 0)); }

 private:
  bundle::FileSource source_;
  bundle::Progress& progress_;
  std::uint64_t read_ = 0;
};

using Chunks = std::vector<bundle::Digest>;

// Adds an entry whose chunks are known, or nothing.
void add_entry(bundle::BundleWriter& writer, const PlannedEntry& entry, const std::optional<Chunks>& known,
               bundle::Progress& progress) {
  WatchedSource source(fs::canonical(entry.file), progress);
  try {
    if (known)
      writer.add(entry.draft, source, *known);
    else
      writer.add(entry.draft, source);
  } catch (const Error&) {
    source.take_back();
    throw;
  }
}

void copy_companion(const fs::path& file, const bundle::Companion& companion, const fs::path& folder) {
  const fs::path copy = folder / companion.name;
  fs::copy_file(file, copy);
  fs::permissions(copy, fs::perms(0755));
  if (::fsync(bundle::InputFile(copy).descriptor()) != 0) bundle::throw_errno("a file cannot be synced", copy);
  if (digest_of_file(copy) != companion.sha256)
    throw Error(ErrorCode::Digest, {.what = companion.name + " changed while it was copied",
                                    .where = file.string(),
                                    .next = "run the same command again"});
}

bool plan_has(const PackPlan& plan, const fs::path& name) {
  return std::any_of(plan.draft.companions.begin(), plan.draft.companions.end(),
                     [&](const bundle::Companion& companion) { return companion.name == name; });
}

// Writes a bundle once, into an empty folder.
class Writing {
 public:
  Writing(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size, bundle::Progress& progress)
      : plan_(plan), folder_(folder), writer_(folder, plan.draft, volume_size), progress_(progress) {}

  // `known`: nullptr where nothing is taken as known.
  void add(const PlannedEntry& entry, const Repair& repair, const KnownChunks* known) {
    if (entry.draft.absent) return writer_.add_absent(entry.draft);
    std::optional<Chunks> chunks;
    if (known != nullptr && entry.draft.encoding == bundle::Encoding::Identity)
      chunks = known->read(entry.draft.sha256, plan_.draft.payload);
    took_known_ = took_known_ || chunks;
    read_repaired(entry.content, repair, [&] { add_entry(writer_, entry, chunks, progress_); });
    if (!chunks) hashed_.push_back(&entry);
  }

  bundle::Manifest finish(const Signing& signing, const KnownChunks& known) {
    for (std::size_t i = 0; i < plan_.companions.size(); ++i)
      copy_companion(plan_.companions[i], plan_.draft.companions[i], folder_);
    bundle::Manifest manifest = writer_.finish(signing.roots, signing.keys);
    for (const PlannedEntry* entry : hashed_)
      if (entry->draft.encoding == bundle::Encoding::Identity)
        known.write(entry->draft.sha256, manifest.payload, writer_.chunks(*manifest.find(entry->draft.path)));
    return manifest;
  }

  bool took_known() const { return took_known_; }

 private:
  const PackPlan& plan_;
  const fs::path& folder_;
  bundle::BundleWriter writer_;
  bundle::Progress& progress_;
  std::vector<const PlannedEntry*> hashed_;  // by SHA-256 too
  bool took_known_ = false;
};

}  // namespace

bundle::Manifest write_bundle(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size,
                              const Signing& signing, const Repair& repair, const KnownChunks& known,
                              bundle::Progress& progress) {
  for (const KnownChunks* taken : {&known, static_cast<const KnownChunks*>(nullptr)}) {
    progress.begin("writing " + plan.draft.stem(), plan.payload_size());
    Writing writing(plan, folder, volume_size, progress);
    try {
      for (const PlannedEntry& entry : plan.entries) writing.add(entry, repair, taken);
      bundle::Manifest manifest = writing.finish(signing, known);
      progress.end();
      bundle::stop_if_interrupted();
      return manifest;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Digest || !writing.took_known()) throw;
    }
    // Something is not what it was: with SHA-256 it is known what, and repaired where it is read.
    progress.warn("what was written is not what was locked; it is written again, and every file compared");
    for (const fs::directory_entry& file : fs::directory_iterator(folder))
      if (file.path().filename().string().starts_with(plan.draft.stem()) || plan_has(plan, file.path().filename()))
        fs::remove(file.path());
  }
  throw Error(ErrorCode::Digest, {.what = "inputs change while they are packed", .where = folder.string()});
}

}  // namespace sealift::packager
