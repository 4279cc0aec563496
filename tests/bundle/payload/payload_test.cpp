// SPDX-License-Identifier: Apache-2.0
// Bytes in, volumes out, bytes back: cut at chunks, checked in the memory that is used, placed in the right volume.
#include "sealift/bundle/payload/payload_reader.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "bundle/payload/payload_range.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
using sealift::test::noise;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

struct Written {
  Payload payload;
  std::vector<Digest> chunks;
};

Written write_payload(const TempDir& dir, const std::string& bytes, std::uint64_t volume_size) {
  PayloadWriter writer(dir.path(), "x-1", 4096, volume_size);
  for (std::size_t i = 0; i < bytes.size(); i += 1000) writer.append(as_bytes(std::string_view(bytes).substr(i, 1000)));
  Written written{.payload = writer.finish(), .chunks = {}};
  const std::string list = read_file(dir / "x-1.chunks");
  CHECK(sha256(as_bytes(list)) == written.payload.chunk_list_digest);
  for (std::size_t i = 0; i < list.size(); i += 32)
    written.chunks.push_back(*Digest::from_bytes(as_bytes(list).subspan(i, 32)));
  return written;
}

std::string read_back(ByteSource& source) {
  const Bytes bytes = source.read(0, source.size());
  return std::string(as_text(bytes));
}

}  // namespace

TEST_CASE("volumes are cut at chunk boundaries and add up to the payload") {
  const TempDir dir;
  const std::string bytes = noise(30000);
  const Written written = write_payload(dir, bytes, 10000);  // two whole chunks a volume
  REQUIRE(written.payload.volumes.size() == 4);
  CHECK(written.payload.volumes[0].size == 8192);
  CHECK(written.payload.volumes[3].size == 30000 - 3 * 8192);
  CHECK(written.payload.volumes[3].name == "x-1.vol004");
  CHECK(written.chunks.size() == 8);
  std::string joined;
  for (const Volume& volume : written.payload.volumes) joined += read_file(dir / volume.name);
  CHECK(joined == bytes);
}

TEST_CASE("a volume that cannot be written to its end is an error, whoever was writing it") {
  const TempDir dir;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 50000, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_REFUSED(write_payload(dir, noise(400000), 0), Io, "cannot be written");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
}

TEST_CASE("a payload of whole volumes leaves no empty one behind") {
  const TempDir dir;
  CHECK(write_payload(dir, noise(8192), 4096).payload.volumes.size() == 2);
}

TEST_CASE("a volume smaller than a chunk is refused") {
  const TempDir dir;
  CHECK_REFUSED(PayloadWriter(dir.path(), "x-1", 4096, 4095), Usage, "4095");
}

TEST_CASE("nothing that exists is overwritten") {
  const TempDir dir;
  write_file(dir / "x-1.vol001", "precious");
  PayloadWriter writer(dir.path(), "x-1", 4096, 0);
  writer.append(as_bytes("abc"));
  CHECK_REFUSED(writer.finish(), Io, "x-1.vol001");
  CHECK(read_file(dir / "x-1.vol001") == "precious");
}

TEST_CASE("any range of the payload reads back, across chunks and volumes") {
  const TempDir dir;
  const std::string bytes = noise(30000);
  const Written written = write_payload(dir, bytes, 8192);
  const auto reader = std::make_shared<PayloadReader>(dir.path(), written.payload, written.chunks);
  for (const auto& part : {std::pair<std::size_t, std::size_t>{0, 30000},
                           {1, 29999},
                           {4095, 2},
                           {8191, 2},
                           {16384, 1},
                           {29999, 1},
                           {30000, 0},
                           {100, 20000}}) {
    const auto [offset, size] = part;
    CAPTURE(part.first);
    PayloadRange range(reader, offset, size, "range");
    CHECK(read_back(range) == bytes.substr(offset, size));
  }
  PayloadRange range(reader, 10, 100, "the range");
  CHECK_REFUSED(range.read(90, 11), Format, "the range at offset 90");
  CHECK_REFUSED(range.read(~std::uint64_t{0}, 2), Format, "the range");
}

TEST_CASE("a changed byte is found in the chunk that holds it, and named by volume and offset") {
  const TempDir dir;
  const Written written = write_payload(dir, noise(30000), 8192);
  std::string volume = read_file(dir / "x-1.vol002");
  volume[5000] ^= 4;
  write_file(dir / "x-1.vol002", volume);
  const PayloadReader reader(dir.path(), written.payload, written.chunks);
  for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
    if (chunk != 3) {
      CHECK_NOTHROW(reader.chunk(chunk));
      continue;
    }
    CHECK_REFUSED(reader.chunk(chunk), Digest, "x-1.vol002 at offset 4096");
    CHECK_REFUSED(reader.chunk(chunk), Digest, "copy x-1.vol002 again");
  }
}

TEST_CASE("a refused chunk is not remembered as good") {
  const TempDir dir;
  const std::string bytes = noise(9000);
  const Written written = write_payload(dir, bytes, 0);
  const auto reader = std::make_shared<PayloadReader>(dir.path(), written.payload, written.chunks);
  PayloadRange range(reader, 0, bytes.size(), "range");
  std::string bad = bytes;
  bad[4100] ^= 1;
  {  // changed in place, as a medium would that answers differently the second time
    std::fstream volume(dir / "x-1.vol001", std::ios::in | std::ios::out | std::ios::binary);
    volume.seekp(4100).put(bad[4100]);
  }
  CHECK_REFUSED(range.read(4096, 10), Digest, "chunk 1");
  CHECK_REFUSED(range.read(4096, 10), Digest, "chunk 1");
  CHECK(range.read(0, 10).size() == 10);
}

TEST_CASE("a chunk that several ranges expect is read once, by the first, and forgotten when the last has left it") {
  const TempDir dir;
  const std::string bytes = noise(40960);
  const Written written = write_payload(dir, bytes, 0);
  const auto reader = std::make_shared<PayloadReader>(dir.path(), written.payload, written.chunks);
  const auto part = [&](std::uint64_t begin, std::uint64_t size) {
    return std::make_unique<PayloadRange>(reader, 0, bytes.size(), "part", 0,
                                          PayloadPart{.begin = begin, .size = size, .forwards = true});
  };
  const auto read = [&](ByteSource& source, std::uint64_t offset) {
    return std::string(as_text(source.read(offset, 100))) == bytes.substr(offset, 100);
  };
  reader->expect(0, 10'000);       // chunks 0 to 2
  reader->expect(10'000, 10'000);  // 2 to 4
  reader->expect(30'000, 5);       // 7
  auto first = part(0, 10'000), second = part(10'000, 10'000), third = part(30'000, 5);
  CHECK(read(*second, 10'000));
  CHECK(read(*second, 16'400));
  {  // from now on the medium gives nothing good any more
    std::ofstream volume(dir / "x-1.vol001", std::ios::in | std::ios::out | std::ios::binary);
    volume << std::string(bytes.size(), 'x');
  }
  CHECK(read(*first, 9'000));
  CHECK_REFUSED(read(*first, 100), Digest, "chunk 0");
  CHECK_REFUSED(read(*second, 13'000), Digest, "chunk 3");  // its own alone: not kept, once it was left
  first.reset();
  CHECK_REFUSED(read(*second, 10'000), Digest, "chunk 2");
  CHECK(reader->has_checked(2));
  CHECK(!reader->has_checked(0));
  CHECK_REFUSED(read(*third, 30'000), Digest, "chunk 7");
}

TEST_CASE("what a range holds when it ends goes to those who expect it") {
  const TempDir dir;
  const std::string bytes = noise(40960);
  const Written written = write_payload(dir, bytes, 0);
  const auto reader = std::make_shared<PayloadReader>(dir.path(), written.payload, written.chunks);
  reader->expect(0, bytes.size());
  reader->expect(bytes.size() - 1, 1);
  auto whole = std::make_unique<PayloadRange>(reader, 0, bytes.size(), "whole", 3 * 4096);
  for (const std::uint64_t chunk : {4u, 8u, 9u}) CHECK(whole->read(chunk * 4096, 10).size() == 10);
  reader->expect(20'000, 20'000);
  whole.reset();
  std::filesystem::resize_file(dir / "x-1.vol001", 0);
  PayloadRange part(reader, 0, bytes.size(), "part", 0, {.begin = 20'000, .size = 20'000, .forwards = true});
  for (const std::size_t offset : {20'000u, 36'000u, 39'000u})
    CHECK(std::string(as_text(part.read(offset, 10))) == bytes.substr(offset, 10));
  CHECK_REFUSED(part.read(25'000, 10), Io, "x-1.vol001");
}

TEST_CASE("a cut or overlong volume and one that is no plain file are refused on opening") {
  const TempDir dir;
  const Written written = write_payload(dir, noise(9000), 0);
  const auto open = [&] { PayloadReader(dir.path(), written.payload, written.chunks); };
  const std::string good = read_file(dir / "x-1.vol001");
  write_file(dir / "x-1.vol001", good.substr(1));
  CHECK_REFUSED(open(), Digest, "cut short");
  write_file(dir / "x-1.vol001", good + "x");
  CHECK_REFUSED(open(), Digest, "too long");
  std::filesystem::remove(dir / "x-1.vol001");
  CHECK_REFUSED(open(), Missing, "x-1.vol001");
  write_file(dir / "elsewhere", good);
  std::filesystem::create_symlink(dir / "elsewhere", dir / "x-1.vol001");
  CHECK_REFUSED(open(), Format, "symbolic link");
  std::filesystem::remove(dir / "x-1.vol001");
  std::filesystem::create_directory(dir / "x-1.vol001");
  CHECK_REFUSED(open(), Format, "folder");
  std::filesystem::remove(dir / "x-1.vol001");
  REQUIRE(::mkfifo((dir / "x-1.vol001").c_str(), 0600) == 0);
  CHECK_REFUSED(open(), Format, "pipe");
}
