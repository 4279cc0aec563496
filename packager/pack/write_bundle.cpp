// SPDX-License-Identifier: Apache-2.0
// Entries, companions, seal; see write_bundle.hpp. Most entries are files whose chunks are known: several threads read
// and write them while the next ones are added. What turns out to be damaged is repaired, and its place filled again.
#include "packager/pack/write_bundle.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "packager/files/new_bundle_folder.hpp"
#include "packager/pack/stored_file.hpp"
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

void copy_companion(const fs::path& file, const bundle::Companion& companion, const fs::path& folder) {
  const fs::path copy = folder / companion.name;
  copy_program(file, copy);
  if (digest_of_file(copy) != companion.sha256)
    throw Error(ErrorCode::Digest, {.what = companion.name + " changed while it was copied",
                                    .where = file.string(),
                                    .next = "run the same command again"});
}

// Writes a bundle into an empty folder.
class Writing {
 public:
  Writing(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size, const Stock& stock,
          bundle::Progress& progress)
      : plan_(plan), folder_(folder), stock_(stock), progress_(progress), writer_(folder, plan.draft, volume_size) {
    writer_.ask_recovery(plan.recovery_percent, counted());
  }

  void add(const PlannedEntry& entry) {
    if (entry.draft.absent) return writer_.add_absent(entry.draft);
    read_repaired(entry.content, repair_, [&] {
      if (entry.draft.encoding == bundle::Encoding::Patch) return add_hashed(entry, entry.stored);
      if (entry.draft.encoding == bundle::Encoding::Zstd) return add_compressed(entry);
      if (std::optional<KnownChunks::Chunks> chunks = known_chunks(entry))
        return writer_.add(entry.draft, fs::canonical(entry.file), *std::move(chunks), counted());
      add_hashed(entry, entry.file);
      hashed_.push_back(&entry);
    });
  }

  // Once all are added. An entry that is not what was locked says so only now; its place is filled again from what
  // `repair` brings. Where the file is right, what was known of it was wrong, and is computed anew.
  void mend() {
    const std::vector<bundle::SafePath> others = writer_.other_than_known();
    for (const PlannedEntry& entry : plan_.entries)
      if (std::find(others.begin(), others.end(), entry.draft.path) != others.end()) mend(entry);
  }

  bool mended() const { return mended_; }

  bundle::Manifest finish(const Signing& signing) {
    for (std::size_t i = 0; i < plan_.companions.size(); ++i)
      copy_companion(plan_.companions[i], plan_.draft.companions[i], folder_);
    if (plan_.recovery_percent != 0) {
      progress_.end();
      progress_.begin("recovery data of " + plan_.draft.stem(), plan_.payload_size());
    }
    bundle::Manifest manifest = writer_.finish(signing.roots, signing.keys);
    for (const PlannedEntry* entry : hashed_)
      stock_.known.write(entry->draft.sha256, entry->draft.size, manifest.payload,
                         writer_.chunks(*manifest.find(entry->draft.path)));
    return manifest;
  }

 private:
  // Safe from several threads.
  bundle::PayloadWriter::OnRead counted() {
    return [this](std::uint64_t bytes) {
      bundle::stop_if_interrupted();
      progress_.add(bytes);
    };
  }

  std::optional<KnownChunks::Chunks> known_chunks(const PlannedEntry& entry) const {
    return stock_.known.read(entry.draft.sha256, entry.draft.size, plan_.draft.payload);
  }

  void add_compressed(const PlannedEntry& entry) {
    StoredFile stored = compressed_form(entry, plan_.draft.payload, stock_.cache, stock_.known);
    progress_.skip(stored.entry.size - std::min(stored.entry.size, stored.entry.stored_size));
    writer_.add(std::move(stored.entry), stored.file, std::move(stored.chunks), counted());
  }

  // By SHA-256 too, after which the chunks of what is stored are known.
  void add_hashed(const PlannedEntry& entry, const fs::path& stored) {
    WatchedSource source(fs::canonical(stored), progress_);
    try {
      writer_.add(entry.draft, source);
    } catch (const Error&) {
      source.take_back();
      throw;
    }
  }

  void mend(const PlannedEntry& entry) {
    repair_(entry.content);
    if (entry.draft.encoding == bundle::Encoding::Zstd) {
      bundle::FileSource source(compress_again(entry, plan_.draft.payload, stock_.cache, stock_.known).file);
      return writer_.add_again(entry.draft.path, source);
    }
    progress_.take_back(entry.draft.size);
    WatchedSource source(fs::canonical(entry.file), progress_);
    writer_.add_again(entry.draft.path, source);
    hashed_.push_back(&entry);
  }

  const PackPlan& plan_;
  const fs::path& folder_;
  const Stock& stock_;
  bundle::Progress& progress_;
  const Repair repair_ = [this](const Content& content) {
    const bool brought = stock_.repair && stock_.repair(content);
    mended_ = mended_ || brought;
    return brought;
  };
  bool mended_ = false;
  std::vector<const PlannedEntry*> hashed_;  // by SHA-256 too
  bundle::BundleWriter writer_;              // last, so that its threads end before what they use
};

}  // namespace

WrittenBundle write_bundle(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size,
                           const Signing& signing, const Stock& stock, bundle::Progress& progress) {
  progress.begin("writing " + plan.draft.stem(), plan.payload_size());
  Writing writing(plan, folder, volume_size, stock, progress);
  for (const PlannedEntry& entry : plan.entries) writing.add(entry);
  writing.mend();
  bundle::Manifest manifest = writing.finish(signing);
  progress.end();
  bundle::stop_if_interrupted();
  return {.manifest = std::move(manifest), .mended = writing.mended()};
}

}  // namespace sealift::packager
