// SPDX-License-Identifier: Apache-2.0
// Found, or compressed into a scratch folder and adopted by the cache; see stored_file.hpp.
#include "packager/pack/stored_file.hpp"

#include <optional>

#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

std::optional<StoredFile> find_compressed(const PlannedEntry& planned, const bundle::Payload& payload,
                                          const Cache& cache, const KnownChunks& known) {
  const std::optional<KnownChunks::Compressed> form = known.compressed(planned.draft.sha256);
  if (!form || !cache.contains(form->sha256) || fs::file_size(cache.path(form->sha256)) != form->size)
    return std::nullopt;
  std::optional<KnownChunks::Chunks> chunks = known.read(form->sha256, form->size, payload);
  if (!chunks) return std::nullopt;
  StoredFile stored{.entry = planned.draft, .file = cache.path(form->sha256), .chunks = {}};
  stored.entry.stored_sha256 = form->sha256;
  stored.entry.stored_size = form->size;
  stored.chunks = *std::move(chunks);
  return stored;
}

}  // namespace

StoredFile compressed_form(const PlannedEntry& planned, const bundle::Payload& payload, const Cache& cache,
                           const KnownChunks& known) {
  std::optional<StoredFile> found = find_compressed(planned, payload, cache, known);
  return found ? *std::move(found) : compress_again(planned, payload, cache, known);
}

StoredFile compress_again(const PlannedEntry& planned, const bundle::Payload& payload, const Cache& cache,
                          const KnownChunks& known) {
  const bundle::ScratchFolder scratch("compressed", cache.scratch());
  bundle::FileSource source(fs::canonical(planned.file));
  bundle::OutputFile out(scratch / "form");
  bundle::StoredForm form = bundle::stored_form(planned.draft, source, payload, [&](bundle::ByteView piece) {
    bundle::stop_if_interrupted();
    out.write(piece);
  });
  out.sync();
  cache.adopt(scratch / "form", form.entry.stored_sha256);
  known.write(form.entry.stored_sha256, form.entry.stored_size, payload, form.chunks);
  known.write_compressed(form.entry.sha256, {form.entry.stored_sha256, form.entry.stored_size});
  const fs::path file = cache.path(form.entry.stored_sha256);
  return {.entry = std::move(form.entry), .file = file, .chunks = std::move(form.chunks)};
}

}  // namespace sealift::packager
