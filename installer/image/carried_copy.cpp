// SPDX-License-Identifier: Apache-2.0
// An entry is whole chunks, so that the digests of its chunks, which were signed, are those of the file.
#include "installer/image/carried_copy.hpp"

#include <algorithm>

#include "bundle/image/image_reader.hpp"
#include "installer/image/image_chunks.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kTables = std::uint64_t{16} << 20;  // of chunks that are kept while tables are read

std::string name_of(const bundle::VerifiedBundle& bundle, const bundle::Entry& image) {
  return bundle.manifest().stem() + ":" + image.path.text();
}

ImageSums sums_of(const bundle::VerifiedBundle& bundle, const bundle::Entry& image) {
  const bundle::CheckedRange bytes(bundle.payload(), image.offset, image.stored_size, kTables);
  const bundle::ImageReader reader(bytes, name_of(bundle, image));
  ImageSums sums;
  for (std::size_t i = 1; i < reader.nodes().size(); ++i) {  // behind the root
    const bundle::ImageReader::Node& node = reader.nodes()[i];
    using Type = bundle::ImageReader::Type;
    sums.folders += node.type == Type::Folder;
    sums.links += node.type == Type::Link;
    if (node.type != Type::File) continue;
    ++sums.files;
    sums.bytes += node.size;
  }
  return sums;
}

void refuse_without_room(const bundle::Entry& image, const fs::path& path, const Disk& disk) {
  const std::uint64_t free = disk.free_space(path).bytes;
  if (free >= image.size) return;
  throw Error(ErrorCode::Space, {.what = "there is no room for the image",
                                 .where = path.parent_path().string(),
                                 .expected = bundle::human_size(image.size) + " free",
                                 .got = bundle::human_size(free),
                                 .next = "choose a folder on a larger disk after -o; or mount the bundle itself, which "
                                         "needs no room: sealift-install mount BUNDLE DIR"});
}

}  // namespace

ImageSums copy_carried(const bundle::VerifiedBundle& bundle, const bundle::Entry& image, const bundle::Descriptor& file,
                       const fs::path& path, Disk& disk, bundle::Progress& progress) {
  refuse_without_room(image, path, disk);
  const ImageSums sums = sums_of(bundle, image);
  progress.begin("copying the image", image.size);
  bundle.stream(image, [&](bundle::ByteView piece) {
    bundle::stop_if_interrupted();
    disk.write(file, path, piece);
    progress.add(piece.size());
  });
  return sums;
}

void require_carried(const bundle::VerifiedBundle& bundle, const bundle::Entry& image, const fs::path& file,
                     const std::vector<bundle::Digest>& chunks, unsigned threads) {
  const bundle::PayloadReader& reader = bundle.payload();
  const bundle::Payload& payload = reader.payload();
  const std::span<const bundle::Digest> carried = chunks_of(image, reader.layout(), reader.digests());
  const bool alike =
      payload.chunk_size == bundle::kDefaultChunkSize && payload.digest == bundle::DigestAlgorithm::Sha256;
  const std::vector<bundle::Digest> own =
      alike ? chunks : digest_chunks(file, threads, payload.chunk_size, payload.digest);
  const auto [here, there] = std::mismatch(own.begin(), own.end(), carried.begin(), carried.end());
  if (here == own.end() && there == carried.end()) return;
  const auto at = static_cast<std::uint64_t>(here - own.begin()) * payload.chunk_size;
  throw Error(ErrorCode::Digest,
              {.what = "the image made here differs from the carried one",
               .where = name_of(bundle, image),
               .expected = std::to_string(image.size) + " bytes, sha256 " + image.sha256.hex(),
               .got = std::to_string(fs::file_size(file)) + " bytes, which differ from offset " + std::to_string(at),
               .next = "make it with the sealift-install that came with the bundle: other versions may compress in "
                       "another way; if that one makes another image, too, tell who signed the bundle"});
}

}  // namespace sealift::installer
