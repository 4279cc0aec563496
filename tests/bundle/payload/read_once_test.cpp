// SPDX-License-Identifier: Apache-2.0
// Reading what is wanted once: past the system's cache and ahead of time, but for what is in memory already; the same
// bytes and the same refusals either way.
#include <fcntl.h>
#include <sys/mman.h>

#include "bundle/payload/payload_range.hpp"
#include "bundle/payload/read_ahead.hpp"
#include "bundle/payload/volume_input.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
using sealift::test::noise;
using sealift::test::TempDir;

namespace {

constexpr std::size_t kPage = ChunkBuffer::kAlignment;
constexpr std::uint64_t kChunk = 16 * kPage;

std::size_t pages_in_memory(const std::filesystem::path& path) {
  const InputFile file(path);
  void* const pages = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  REQUIRE(pages != MAP_FAILED);
  std::vector<unsigned char> resident((file.size() + kPage - 1) / kPage);
  REQUIRE(::mincore(pages, file.size(), resident.data()) == 0);
  ::munmap(pages, file.size());
  return static_cast<std::size_t>(std::count_if(resident.begin(), resident.end(), [](auto page) { return page & 1; }));
}

// A payload that ends in the middle of a page, in three volumes, of which nothing is in memory.
struct OnDisk {
  explicit OnDisk(std::size_t size = 20 * kChunk + 1000) : bytes(noise(size)) {
    PayloadWriter writer(dir.path(), "x-1", kChunk, 8 * kChunk);
    writer.append(as_bytes(bytes));
    payload = writer.finish();
    const std::string list = sealift::test::read_file(dir / "x-1.chunks");
    for (std::size_t i = 0; i < list.size(); i += 32)
      chunks.push_back(*Digest::from_bytes(as_bytes(list).subspan(i, 32)));
    for (const Volume& volume : payload.volumes) forget(volume.name);
  }

  void forget(const std::string& name) const {
    const InputFile file(dir / name);
    ::fsync(file.descriptor());
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  std::size_t in_memory() const {
    std::size_t pages = 0;
    for (const Volume& volume : payload.volumes) pages += pages_in_memory(dir / volume.name);
    return pages;
  }
  std::shared_ptr<PayloadReader> reader(bool read_once) const {
    return std::make_shared<PayloadReader>(VolumeSources{.folders = {dir.path()}, .read_once = read_once}, payload,
                                           chunks);
  }
  // Whether this file system lets anybody pass its cache, and forgets what it is told to.
  bool can() const {
    const VolumeInput file(dir / payload.volumes[0].name, true);
    if (file.passes_the_cache(0, kChunk)) return true;
    sealift::test::left_out("this file system has everything in memory, or no O_DIRECT");
    return false;
  }

  TempDir dir;
  std::string bytes;
  Payload payload;
  std::vector<Digest> chunks;
};

std::string read_back(const std::shared_ptr<PayloadReader>& reader, std::uint64_t offset, std::uint64_t size) {
  PayloadRange range(reader, offset, size, "range");
  std::string text;
  while (text.size() < size) text += as_text(range.view(text.size(), static_cast<std::size_t>(size - text.size())));
  return text;
}

}  // namespace

TEST_CASE("what is wanted once does not come into the system's cache, and is the same bytes") {
  const OnDisk there;
  if (!there.can()) return;
  CHECK(there.in_memory() == 0);
  CHECK((read_back(there.reader(true), 0, there.bytes.size()) == there.bytes));
  CHECK((read_back(there.reader(true), 5 * kChunk + 7, 6 * kChunk) == there.bytes.substr(5 * kChunk + 7, 6 * kChunk)));
  CHECK(there.in_memory() <= 1);  // the end of the last page is read as usual
  CHECK((read_back(there.reader(false), 0, there.bytes.size()) == there.bytes));
  CHECK(there.in_memory() > 20 * kChunk / kPage);
}

TEST_CASE("chunks in memory are taken from there") {
  const OnDisk there;
  if (!there.can()) return;
  const std::string& name = there.payload.volumes[1].name;
  const VolumeInput file(there.dir / name, true);
  CHECK(file.passes_the_cache(0, kChunk));
  CHECK(!file.passes_the_cache(1, kChunk));  // not the beginning of a page
  CHECK(!VolumeInput(there.dir / name).passes_the_cache(0, kChunk));
  (void)sealift::test::read_file(there.dir / name);
  CHECK(!file.passes_the_cache(0, kChunk));
  there.forget(name);
  CHECK(file.passes_the_cache(0, kChunk));
  CHECK((read_back(there.reader(true), 0, there.bytes.size()) == there.bytes));
}

TEST_CASE("a changed byte is refused where it stands, though it was read ahead and past the cache") {
  const OnDisk there;
  {
    std::fstream volume(there.dir / "x-1.vol002", std::ios::in | std::ios::out | std::ios::binary);
    volume.seekp(3 * kChunk + 5).put(static_cast<char>(there.bytes[11 * kChunk + 5] ^ 1));
  }
  there.forget("x-1.vol002");
  const auto reader = there.reader(true);
  CHECK_REFUSED(read_back(reader, 8 * kChunk, 8 * kChunk), Digest,
                "x-1.vol002 at offset " + std::to_string(3 * kChunk));
  CHECK((read_back(reader, 12 * kChunk, kChunk) == there.bytes.substr(12 * kChunk, kChunk)));
}

TEST_CASE("a volume that is cut short while it is read is an error, wherever its bytes were to come from") {
  for (const bool read_once : {false, true}) {
    CAPTURE(read_once);
    const OnDisk there;
    const auto reader = there.reader(read_once);
    std::filesystem::resize_file(there.dir / "x-1.vol001", 2 * kChunk + 3 * kPage);
    there.forget("x-1.vol001");
    CHECK((read_back(reader, 0, 2 * kChunk) == there.bytes.substr(0, 2 * kChunk)));
    CHECK_REFUSED(read_back(reader, 0, 4 * kChunk), Io, "x-1.vol001");
  }
}

TEST_CASE("as many chunks as were asked for are read ahead, and one that nobody takes makes room for another") {
  const OnDisk there;
  if (!there.can()) return;
  const auto file = std::make_shared<const VolumeInput>(there.dir / "x-1.vol001", true);
  const auto bytes_of = [&](ReadAhead& ahead, std::uint64_t index) -> std::string {
    ChunkBuffer memory;
    const std::optional<ReadAhead::Chunk> chunk = ahead.take(index, memory);
    if (!chunk) return "nothing";
    CHECK(chunk->filled == kChunk);
    return std::string(as_text(chunk->bytes.view()));
  };
  ReadAhead ahead(2);
  const auto want = [&](std::uint64_t index) { ahead.want(index, file, index * kChunk, kChunk); };
  CHECK(bytes_of(ahead, 0) == "nothing");
  want(0);
  want(1);
  CHECK((bytes_of(ahead, 1) == there.bytes.substr(kChunk, kChunk)));  // then 0 is there too
  want(2);
  want(3);
  CHECK(bytes_of(ahead, 3) == "nothing");  // 0 may still be taken
  for (std::uint64_t i = 0; i < ReadAhead::kPatience; ++i) want(2);
  want(3);
  CHECK((bytes_of(ahead, 3) == there.bytes.substr(3 * kChunk, kChunk)));
  CHECK(bytes_of(ahead, 0) == "nothing");
  CHECK((bytes_of(ahead, 2) == there.bytes.substr(2 * kChunk, kChunk)));
  CHECK(bytes_of(ahead, 2) == "nothing");
}
