// SPDX-License-Identifier: Apache-2.0
// Entries, companions, seal; see write_bundle.hpp. An entry that turns out to be damaged leaves no trace in the payload
// (bundle::BundleWriter::add), so it is repaired and added again, and the work goes on.
#include "packager/pack/write_bundle.hpp"

#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/bundle_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A file that reports how much of it was read.
class WatchedSource final : public bundle::ByteSource {
 public:
  WatchedSource(const fs::path& path, Progress& progress) : source_(path), progress_(progress) {}

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
  Progress& progress_;
  std::uint64_t read_ = 0;
};

void add_entry(bundle::BundleWriter& writer, const PlannedEntry& entry, Progress& progress) {
  WatchedSource source(fs::canonical(entry.file), progress);
  try {
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

}  // namespace

bundle::Manifest write_bundle(const PackPlan& plan, const fs::path& folder, std::uint64_t volume_size,
                              const Signing& signing, const Repair& repair, Console& console) {
  Progress progress(console, "writing " + plan.draft.stem(), plan.payload_size());
  bundle::BundleWriter writer(folder, plan.draft, volume_size);
  for (const PlannedEntry& entry : plan.entries) {
    if (entry.draft.absent)
      writer.add_absent(entry.draft);
    else
      read_repaired(entry.content, repair, [&] { add_entry(writer, entry, progress); });
  }
  for (std::size_t i = 0; i < plan.companions.size(); ++i)
    copy_companion(plan.companions[i], plan.draft.companions[i], folder);
  bundle::Manifest manifest = writer.finish(signing.roots, signing.keys);
  progress.finish();
  bundle::stop_if_interrupted();
  return manifest;
}

}  // namespace sealift::packager
