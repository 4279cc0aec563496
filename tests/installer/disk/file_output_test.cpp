// SPDX-License-Identifier: Apache-2.0
// Files of many sizes through the ring of buffers, and a disk that refuses any of its writes.
#include "installer/disk/file_output.hpp"

#include "tests/installer/disks.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

void put(FileOutput& output, Disk& disk, const fs::path& path, std::string_view bytes, std::size_t piece) {
  output.begin(disk.create(path, 0444), path);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    output.append(bundle::as_bytes(bytes.substr(0, piece)));
  output.finish();
}

}  // namespace

TEST_CASE("a file has exactly the bytes that were appended, however many buffers they fill and in whatever pieces") {
  const TempDir dir;
  Disk disk;
  FileOutput output(disk);
  unsigned number = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMebibyte - 1, kMebibyte, kMebibyte + 1, 4 * kMebibyte,
                                 9 * kMebibyte + 4096, 9 * kMebibyte + 17})
    for (const std::size_t piece : {std::size_t{5000}, kMebibyte, 3 * kMebibyte}) {
      const fs::path path = dir / std::to_string(number++);
      const std::string bytes = some_bytes(size);
      put(output, disk, path, bytes, piece);
      CHECK(read_file(path) == bytes);
    }
}

TEST_CASE("aligned pieces written after one that is not land behind it") {
  const TempDir dir;
  Disk disk;
  const fs::path path = dir / "file";
  const std::string bytes = some_bytes(kMebibyte);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, bytes.size()), &std::free);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  const bundle::ByteView aligned(static_cast<const std::byte*>(memory.get()), bytes.size());
  bundle::Descriptor file = disk.create(path, 0644);
  disk.write(file, path, bundle::as_bytes("odd"));
  disk.write(file, path, aligned);
  disk.write(file, path, bundle::as_bytes("end"));
  disk.close(std::move(file), path);
  CHECK(read_file(path) == "odd" + bytes + "end");
}

TEST_CASE("a write that fails behind our back is told with its path, and nothing waits for it for ever") {
  const std::string bytes = some_bytes(7 * kMebibyte + 5);
  std::uint64_t operations = 0;
  {
    const TempDir dir;
    FaultyDisk disk;
    FileOutput output(disk);
    put(output, disk, dir / "file", bytes, 100'000);
    operations = disk.operations();
    CHECK(operations == 10);  // made, 7 buffers and what is left, closed
  }
  for (std::uint64_t fails = 2; fails <= operations; ++fails) {
    CAPTURE(fails);
    const TempDir dir;
    FaultyDisk disk(ENOSPC, [fails](std::uint64_t number, FaultyDisk::Does) { return number == fails; });
    FileOutput output(disk);
    CHECK_REFUSED(put(output, disk, dir / "file", bytes, 100'000), Space, "file");
    CHECK(disk.operations() <= fails);  // nothing is written behind a gap
  }
}

TEST_CASE("a file given up in its middle leaves no thread behind") {
  const TempDir dir;
  Disk disk;
  {
    FileOutput output(disk);
    output.begin(disk.create(dir / "file", 0444), dir / "file");
    output.append(bundle::as_bytes(some_bytes(5 * kMebibyte)));
  }
  disk.remove_tree(dir / "file");
  CHECK(!fs::exists(dir / "file"));
}
