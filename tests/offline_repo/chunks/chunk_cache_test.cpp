// SPDX-License-Identifier: Apache-2.0
// The cache of checked chunks over a real bundle: read once, bounded, sealed, never wrong; and in the server, where
// many clients share it.
#include "offline_repo/chunks/chunk_cache.hpp"

#include "offline_repo/chunks/cache_size.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <barrier>

#include "tests/offline_repo/live.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kChunk = std::uint64_t{64} << 10;

TinyBundle with_big_wheel(std::size_t size, std::uint64_t chunk_size = kChunk) {
  return {.chunk_size = chunk_size, .items = {wheel_item(big_wheel(size))}};
}

// A payload of full chunks for the most part.
struct Opened {
  explicit Opened(std::size_t size = 2'000'000)
      : made(make_bundle(dir / "bundle", with_big_wheel(size))),
        bundle(std::make_unique<VerifiedBundle>(verify(sealift::bundle::open(made.folder), made.trusted, kNow))) {}

  const PayloadReader& payload() const { return bundle->payload(); }
  std::uint64_t count() const { return payload().layout().count(); }

  TempDir dir;
  MadeBundle made;
  std::unique_ptr<VerifiedBundle> bundle;
};

// For a cache that nobody else uses.
void never(const ChunkCache::Chunk&, const std::exception_ptr&) {
  FAIL("nobody reads this chunk");
}

std::string bytes_of(const CheckedChunk& chunk, std::uint64_t offset, std::uint64_t count) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Descriptor in(ends[0]), out(ends[1]);
  std::string bytes(count, '\0');
  REQUIRE(chunk.send(in.get(), offset, count) == static_cast<ssize_t>(count));
  REQUIRE(::recv(out.get(), bytes.data(), count, MSG_WAITALL) == static_cast<ssize_t>(count));
  return bytes;
}

// Flips a byte of a volume, or flips it back.
void flip(const fs::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const int byte = file.seekg(static_cast<std::streamoff>(offset)).get();
  file.seekp(static_cast<std::streamoff>(offset)).put(static_cast<char>(byte ^ 1)).flush();
}

}  // namespace

TEST_CASE("a kept chunk lies in a file that nobody can change, or in plain memory, and is sent the same from both") {
  const std::string large = noise(200'000), small = noise(100);
  const CheckedChunk in_file(as_bytes(large)), in_memory(as_bytes(small));
  CHECK(bytes_of(in_file, 150'000, 5000) == large.substr(150'000, 5000));
  CHECK(bytes_of(in_memory, 3, 50) == small.substr(3, 50));
  CHECK_FALSE(in_memory.in_file());
  REQUIRE(in_file.in_file());
  CHECK(::fcntl(in_file.descriptor(), F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(::pwrite(in_file.descriptor(), "x", 1, 0) == -1);
  CHECK(::ftruncate(in_file.descriptor(), 0) == -1);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);  // as on a kernel that has no such files
  const CheckedChunk without(as_bytes(large));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK_FALSE(without.in_file());
  CHECK(bytes_of(without, 150'000, 5000) == large.substr(150'000, 5000));
}

TEST_CASE("threads that want the same chunks at once get each of them from one reading") {
  const Opened opened;
  ChunkCache cache(1 << 30, 1000);
  std::atomic<unsigned> got{0};
  std::barrier together(8);
  const auto reader = [&] {
    for (std::uint64_t index = 0; index < opened.count(); ++index) {
      together.arrive_and_wait();
      const ChunkCache::Chunk chunk =
          cache.take(opened.payload(), index, false,
                     [&](const ChunkCache::Chunk& later, const std::exception_ptr&) { got += later ? 1 : 0; });
      got += chunk ? 1 : 0;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(reader);
  }
  CHECK(got == 8 * opened.count());
  CHECK(cache.counts().checked == opened.count());
}

TEST_CASE("memory and files are bounded, what was used longest ago goes first, and what is held stays") {
  const Opened opened;
  REQUIRE(opened.count() > 20);
  for (const auto& [bytes, files] : {std::pair<std::uint64_t, std::size_t>{5 * kChunk, 1000}, {1 << 30, 5}}) {
    ChunkCache cache(bytes, files);
    const auto take = [&](std::uint64_t index) { return cache.take(opened.payload(), index, false, never); };
    const std::uint64_t first = 1;  // chunk 0 is before the wheel, or its short beginning
    const ChunkCache::Chunk held = take(first);
    for (std::uint64_t index = first; index < opened.count(); ++index) take(index), take(first + 1);
    CHECK(cache.counts().most <= (files == 5 ? 6 : 5) * kChunk);  // what is small lies in no file
    const std::uint64_t before = cache.counts().checked;
    CHECK(before == opened.count() - first);  // the most wanted one was read once
    CHECK(take(first) == held);
    CHECK(cache.counts().checked == before);
    take(first + 5);
    CHECK(cache.counts().checked == before + 1);
  }
}

TEST_CASE(
    "a long file neither empties the cache nor is hashed whole at each download, and an old one goes in the end") {
  const Opened opened(8'500'000);
  constexpr std::uint64_t kSmall = 20, kLong = 60;  // chunks: a file that fits beside others, and one that fits nowhere
  REQUIRE(opened.count() > kSmall + 40 + kLong + 1);
  for (const std::size_t files : {std::size_t{1000}, std::size_t{41}}) {  // bounded by memory, and by files
    CAPTURE(files);
    ChunkCache cache(files == 41 ? 1 << 22 : 40 * kChunk, files);
    const auto download = [&](std::uint64_t first, std::uint64_t count) {  // returns how many bytes were hashed
      const std::uint64_t before = cache.counts().checked;
      for (std::uint64_t i = 0; i < count; ++i)
        cache.take(opened.payload(), first + i, true, never, count * kChunk), cache.find(opened.payload(), first + i);
      return (cache.counts().checked - before) * kChunk;
    };
    const std::uint64_t small = 1, one = small + kSmall;
    CHECK(download(small, kSmall) == kSmall * kChunk);
    CHECK(download(one, kLong) == kLong * kChunk);
    CHECK(download(small, kSmall) == 0);  // the long one took nothing that is wanted
    const std::uint64_t again = download(one, kLong);
    CHECK(again <= (kLong - 9) * kChunk);  // about a quarter of the cache holds the same part of it
    CHECK(download(one, kLong) <= (kLong - 9) * kChunk);
    CHECK(download(small, kSmall) == 0);
    const std::uint64_t other = opened.count() - kLong;  // a part of it is another file's
    for (int i = 0; i < 4; ++i) download(other, kLong);
    CHECK(download(other, kLong) <= (kLong - 9) * kChunk);  // nobody wants the first one any more
    CHECK(download(small, kSmall) == 0);
    CHECK(cache.counts().most <= (files == 41 ? 1 << 22 : 41 * kChunk));
  }
}

TEST_CASE("clients that download one long file at once, some chunks apart, have each chunk hashed once") {
  const Opened opened(8'500'000);
  constexpr std::uint64_t kLong = 120, kApart = 5;
  REQUIRE(opened.count() > kLong);
  ChunkCache cache(80 * kChunk, 1000);
  const auto take = [&](std::uint64_t index) { cache.take(opened.payload(), index, true, never, kLong * kChunk); };
  for (std::uint64_t i = 0; i < kLong + 2 * kApart; ++i)
    for (const std::uint64_t behind : {2 * kApart, kApart, std::uint64_t{0}})  // the first of them reads last
      if (i >= behind && i - behind < kLong) take(i - behind);
  CHECK(cache.counts().checked == kLong);
}

TEST_CASE("a damaged chunk is told to all who wait, is not kept, and is read again for the next one") {
  const Opened opened;
  const std::uint64_t index = 3, offset = opened.payload().layout().begin_of(index) + 7;
  flip(opened.made.volume(0), offset);
  ChunkCache cache(1 << 30, 1000);
  CHECK_REFUSED(cache.take(opened.payload(), index, true, never), Digest, "differs from what was signed");
  CHECK(cache.counts().bytes == 0);
  flip(opened.made.volume(0), offset);
  CHECK(cache.take(opened.payload(), index, true, never) != nullptr);
  CHECK(cache.counts().checked == 2);
}

TEST_CASE("fifty clients of one wheel have each of its chunks hashed once, and each gets the wheel") {
  const TinyWheel wheel = big_wheel(3'000'000);
  const std::string truth = make_wheel(wheel);
  Live live({.chunk_size = kChunk, .items = {wheel_item(wheel)}});
  const Entry& entry = *live.wheel("big").entry;
  const ChunkLayout& layout = live.wheel("big").in->payload().layout();
  std::atomic<unsigned> right{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 50; ++i)
      clients.emplace_back([&] { right += fetch(live.port, live.target("big")).body == truth ? 1 : 0; });
  }
  CHECK(right == 50);
  const std::uint64_t chunks = layout.at(entry.offset + entry.stored_size - 1) - layout.at(entry.offset) + 1;
  CHECK(chunks > 40);
  CHECK(live.server->cache().checked == chunks);
}

TEST_CASE("a range touches the chunks that it needs, and a HEAD none") {
  Live live(with_big_wheel(3'000'000));
  const auto range = [&](std::uint64_t first, std::uint64_t last) {
    return fetch(live.port, live.target("big"),
                 "Range: bytes=" + std::to_string(first) + "-" + std::to_string(last) + "\r\n");
  };
  CHECK(fetch(live.port, live.target("big"), "", "HEAD").status == 200);
  CHECK(live.server->cache().checked == 0);
  for (int i = 0; i < 20; ++i) CHECK(range(1'000'000, 1'000'009).body.size() == 10);
  CHECK(live.server->cache().checked == 1);
  CHECK(range(2 * kChunk - 1, 2 * kChunk).body.size() == 2);  // the wheel begins a chunk
  CHECK(live.server->cache().checked == 3);
}

TEST_CASE("two hundred and fifty readers that take nothing hold no more than the cache may") {
  ServerOptions options;
  options.cache_bytes = 8 * kChunk;
  options.max_per_client = 300;
  const TinyWheel wheel = big_wheel(8'000'000);
  const std::string truth = make_wheel(wheel);
  Live live({.chunk_size = kChunk, .items = {wheel_item(wheel)}}, options);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (std::uint64_t i = 0; i < 250; ++i) {
    slow.push_back(std::make_unique<RawClient>(live.port));
    slow.back()->send(request_text(live.target("big"), "Range: bytes=" + std::to_string(i % 100 * kChunk) + "-\r\n"));
  }
  for (const auto& client : slow) client->await_answer();
  CHECK(live.server->cache().most <= (8 + 2) * kChunk);  // and what its two threads are just sending
  CHECK(fetch(live.port, "/simple/").status == 200);
  for (const std::uint64_t i : {7u, 120u}) CHECK((slow[i]->receive().body == truth.substr(i % 100 * kChunk)));
  CHECK(live.server->cache().most <= (8 + 2) * kChunk);
  for (const auto& client : slow) client->reset();
}

TEST_CASE("of a damaged chunk no client gets a byte, however many want it at once") {
  const TinyWheel wheel = big_wheel(1'000'000);
  const std::string truth = make_wheel(wheel);
  Live live({.chunk_size = kChunk, .items = {wheel_item(wheel)}});
  flip(live.made.volume(0), live.wheel("big").entry->offset + 5 * kChunk + 9);
  std::atomic<unsigned> cut{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 20; ++i)
      clients.emplace_back([&] {
        const RawResponse response = fetch(live.port, live.target("big"));
        cut += response.status == 200 && response.body == truth.substr(0, 5 * kChunk) ? 1 : 0;
      });
  }
  CHECK(cut == 20);
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("the cache's default is an eighth of the memory that this process may take, within bounds") {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  for (const auto& [bytes, mebibytes] : {std::pair{2 * kGibibyte, 512u},
                                         {24 * kGibibyte, 3072u},
                                         {kGibibyte / 2, 256u},
                                         {1024 * kGibibyte, 8192u},
                                         {std::uint64_t{0}, 1u}}) {
    CAPTURE(bytes);
    CHECK(cache_for(bytes) == mebibytes);
  }
  const TempDir root;
  const std::string here = root.path().string() + "/";
  CHECK(memory_here(here) == 4 * kGibibyte);  // where nobody says
  write_file(root / "proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  CHECK(memory_here(here) == 16 * kGibibyte);
  write_file(root / "proc/self/cgroup", "0::/site/repo.service\n");
  write_file(root / "sys/fs/cgroup/site/repo.service/memory.max", "max\n");
  CHECK(memory_here(here) == 16 * kGibibyte);
  write_file(root / "sys/fs/cgroup/site/memory.max", "1073741824\n");
  CHECK(memory_here(here) == kGibibyte);
  write_file(root / "proc/self/cgroup", "0::/../../etc\n");
  CHECK(memory_here(here) == 16 * kGibibyte);
  CHECK(memory_here() > 0);
}
