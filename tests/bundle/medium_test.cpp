// SPDX-License-Identifier: Apache-2.0
// A medium that misbehaves, and one that is watched: this program is linked with --wrap, so every pread of it can be
// answered by a test, and every byte that is hashed is counted.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <random>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/bundle_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

struct Read {
  int file;
  std::span<char> out;
  off_t offset;
};

// Answers a read as pread would; nothing: the real one does. Called from any thread.
std::function<ssize_t(const Read&)> medium;
std::atomic<std::uint64_t> hashed{0};

struct MediumIs {
  explicit MediumIs(std::function<ssize_t(const Read&)> answer) { medium = std::move(answer); }
  ~MediumIs() { medium = nullptr; }
};

}  // namespace

extern "C" {
ssize_t __real_pread(int file, void* out, size_t count, off_t offset);
ssize_t __wrap_pread(int file, void* out, size_t count, off_t offset) {
  if (!medium) return __real_pread(file, out, count, offset);
  return medium({.file = file, .out = std::span(static_cast<char*>(out), count), .offset = offset});
}
int __real_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count);
int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count) {
  hashed += count;
  return __real_EVP_DigestUpdate(context, bytes, count);
}
}

namespace {

ssize_t really(const Read& read) {
  return __real_pread(read.file, read.out.data(), read.out.size(), read.offset);
}

ino_t file_of(const Read& read) {
  struct stat status {};
  REQUIRE(::fstat(read.file, &status) == 0);
  return status.st_ino;
}

ino_t file_of(const std::filesystem::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

std::string text_of(char seed) {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += std::to_string(i * 2654435761u) + seed;
  return text;
}

// Three volumes; one entry as it is, one compressed.
TinyBundle sample(char seed = 'a') {
  TinyBundle tiny{.chunk_size = 16384, .volume_size = 49152};
  tiny.items = {{.path = "data", .bytes = text_of(seed), .into = "data"},
                {.path = "packed", .bytes = text_of(seed), .into = "packed", .encoding = Encoding::Zstd}};
  return tiny;
}

std::string read_entry(const VerifiedBundle& bundle, const char* path) {
  std::string text;
  bundle.stream(*bundle.manifest().find(SafePath::parse(path, "")),
                [&text](ByteView piece) { text.append(as_text(piece)); });
  return text;
}

// Where a chunk lies: the number of its volume, and the offset in it.
std::pair<std::size_t, off_t> place_of(const MadeBundle& made, std::uint64_t index) {
  std::uint64_t begin = ChunkLayout(made.manifest.payload).begin_of(index);
  std::size_t volume = 0;
  for (; begin >= made.manifest.payload.volumes[volume].size; ++volume)
    begin -= made.manifest.payload.volumes[volume].size;
  return {volume, static_cast<off_t>(begin)};
}

struct Fixture {
  TempDir dir;
  MadeBundle made = make_bundle(dir / "b", sample());
  VerifiedBundle bundle = verify(open(made.folder), made.trusted, kNow);
};

}  // namespace

TEST_CASE("checking every chunk reads each byte of the medium once and hashes it once, however many threads") {
  const Fixture fixture;
  const std::vector<Volume>& volumes = fixture.made.manifest.payload.volumes;
  REQUIRE(volumes.size() > 2);
  for (const unsigned threads : {1u, 2u, 5u}) {
    CAPTURE(threads);
    std::mutex guard;
    std::map<ino_t, std::map<off_t, ssize_t>> reads;
    std::size_t calls = 0;
    const MediumIs watched([&](const Read& read) {
      const ssize_t count = really(read);
      const std::lock_guard lock(guard);
      reads[file_of(read)][read.offset] = count;
      ++calls;
      return count;
    });
    hashed = 0;
    std::atomic<std::uint64_t> reported{0};
    CHECK(check_every_chunk(fixture.bundle, threads, [&](std::uint64_t bytes) { reported += bytes; }).empty());
    CHECK(hashed == fixture.made.manifest.payload.size);
    CHECK(reported == fixture.made.manifest.payload.size);
    CHECK(reads.size() == volumes.size());
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      off_t end = 0;
      for (const auto& [offset, count] : reads[file_of(fixture.made.volume(i))]) {
        CHECK(offset == end);
        end += count;
        ++distinct;
      }
      CHECK(static_cast<std::uint64_t>(end) == volumes[i].size);
    }
    CHECK(distinct == calls);
  }
}

TEST_CASE("chunks of megabytes are read and hashed in pieces, and no byte twice") {
  const TempDir dir;
  TinyBundle tiny{.chunk_size = std::uint64_t{1} << 20};
  tiny.items = {{.path = "data", .bytes = std::string(3'000'000, 'x'), .into = "data"}};
  const MadeBundle made = make_bundle(dir / "b", tiny);
  const VerifiedBundle bundle = verify(open(made.folder), made.trusted, kNow);
  std::uint64_t got = 0;
  std::size_t largest = 0;
  const MediumIs watched([&](const Read& read) {
    largest = std::max(largest, read.out.size());
    const ssize_t count = really(read);
    got += static_cast<std::uint64_t>(count);
    return count;
  });
  CHECK(check_every_chunk(bundle, 1).empty());
  CHECK(got == made.manifest.payload.size);
  CHECK(largest == 256 * 1024);
}

TEST_CASE("reads of one byte and storms of EINTR change nothing") {
  const Fixture fixture;
  std::atomic<unsigned> calls{0};
  const MediumIs slow([&](const Read& read) -> ssize_t {
    if (calls++ % 3 != 0) {
      errno = EINTR;
      return -1;
    }
    return really({.file = read.file, .out = read.out.first(1), .offset = read.offset});
  });
  CHECK(check_every_chunk(fixture.bundle, 2).empty());
  CHECK(read_entry(fixture.bundle, "data") == text_of('a'));
  CHECK(read_entry(fixture.bundle, "packed") == text_of('a'));
  CHECK(check_every_chunk(verify(open(fixture.made.folder), fixture.made.trusted, kNow), 1).empty());
}

TEST_CASE(
    "a disc that cannot be read at a chunk is named with path and offset, and the other chunks are still judged") {
  const Fixture fixture;
  const std::uint64_t count = fixture.made.manifest.payload.chunk_count();
  REQUIRE(count > 9);
  for (const int trouble : {EIO, ENXIO, ESTALE}) {
    for (std::uint64_t bad = 0; bad < count; ++bad) {
      CAPTURE(bad);
      const auto [number, offset] = place_of(fixture.made, bad);
      const std::filesystem::path volume = fixture.made.volume(number);
      const MediumIs scratched([&, offset = offset, wanted = file_of(volume)](const Read& read) {
        if (read.offset != offset || file_of(read) != wanted) return really(read);
        errno = trouble;
        return ssize_t{-1};
      });
      const std::vector<Error> failures = check_every_chunk(fixture.bundle, 2);
      REQUIRE(failures.size() == 1);
      CHECK(failures[0].code() == ErrorCode::Io);
      CHECK(failures[0].facts().where == volume.string());
      CHECK(mentions(failures[0], "at offset " + std::to_string(offset) + "\n"));
      CHECK(failures[0].facts().got == std::strerror(trouble));
    }
  }
}

TEST_CASE("a disc that fails later in a chunk hands out nothing of it") {
  const Fixture fixture;
  const MediumIs scratched([&](const Read& read) {
    if (read.offset >= 20000) {
      errno = EIO;
      return ssize_t{-1};
    }
    return really({.file = read.file,
                   .out = read.out.first(std::min<std::size_t>(1000, read.out.size())),
                   .offset = read.offset});
  });
  std::string got;
  CHECK_REFUSED(
      fixture.bundle.stream(fixture.made.manifest.entries[0], [&](ByteView piece) { got.append(as_text(piece)); }), Io,
      "vol001");
  CHECK(got.size() < 16384);
  CHECK(text_of('a').starts_with(got));
}

TEST_CASE("a volume that loses its end while it is read is refused where it ends") {
  const Fixture fixture;
  constexpr off_t kEnd = 20000;
  const MediumIs ejected([&](const Read& read) { return read.offset < kEnd ? really(read) : ssize_t{0}; });
  const std::vector<Error> failures = check_every_chunk(fixture.bundle, 1);
  std::size_t beyond = 0;
  for (std::uint64_t i = 0; i < fixture.made.manifest.payload.chunk_count(); ++i) {
    const auto [number, offset] = place_of(fixture.made, i);
    if (offset < kEnd) continue;
    REQUIRE(beyond < failures.size());
    CHECK(failures[beyond].code() == ErrorCode::Io);
    CHECK(mentions(failures[beyond++], fixture.made.volume(number).string() + " at offset " + std::to_string(offset)));
  }
  CHECK(beyond == failures.size());
  CHECK(beyond > 2);
}

TEST_CASE("a medium that changes between two reads gives the signed bytes or a refusal, never a mixture") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle good = make_bundle(dir / "good", sample('a'), key),
                   evil = make_bundle(dir / "evil", sample('b'), key);
  const VerifiedBundle bundle = verify(open(good.folder), good.trusted, kNow);
  std::map<ino_t, InputFile> other;
  REQUIRE(good.manifest.payload.volumes.size() == evil.manifest.payload.volumes.size());
  for (std::size_t i = 0; i < good.manifest.payload.volumes.size(); ++i)
    other.emplace(file_of(good.volume(i)), InputFile(evil.volume(i)));
  // Every read gives 3000 bytes; from the n-th on they are those of another bundle, whose layout is the same.
  int refused = 0, passed = 0;
  for (int turn = 0; turn < 60; ++turn) {
    CAPTURE(turn);
    int reads = 0;
    const MediumIs changing([&](const Read& read) {
      const std::span<char> out = read.out.first(std::min<std::size_t>(3000, read.out.size()));
      const int file = reads++ < turn ? read.file : other.at(file_of(read)).descriptor();
      return really({.file = file, .out = out, .offset = read.offset});
    });
    for (const char* path : {"data", "packed"}) {
      try {
        const std::string text = read_entry(bundle, path);
        CHECK(text == text_of('a'));
        ++passed;
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::Digest);
        ++refused;
      }
    }
  }
  CHECK(refused > 40);
  CHECK(passed > 5);
}

TEST_CASE("a medium that changes while chunks are mended gives the signed bytes or a refusal, never a mixture") {
  const TempDir dir;
  TinyBundle tiny = sample();
  tiny.recovery = 60;
  const MadeBundle made = make_bundle(dir / "b", tiny);
  int refused = 0, passed = 0, mended = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    OpenBundle opened = open(made.folder);
    opened.mending = {.while_reading = true};
    const VerifiedBundle bundle = verify(opened, made.trusted, kNow);
    std::mt19937 random(seed);
    const MediumIs changing([&](const Read& read) {
      const ssize_t count = really(read);
      const std::uint32_t turn = random() % 100;
      if (turn < 2) return errno = EIO, ssize_t{-1};
      if (turn < 3 + seed / 3 && count > 0) read.out[random() % static_cast<std::size_t>(count)] ^= 1;
      return count;
    });
    for (const char* path : {"data", "packed"}) {
      try {
        const std::string text = read_entry(bundle, path);
        CHECK(text == text_of('a'));
        ++passed;
      } catch (const Error& error) {
        CHECK((error.code() == ErrorCode::Digest || error.code() == ErrorCode::Io));
        ++refused;
      }
    }
    mended += bundle.payload().mended().empty() ? 0 : 1;
  }
  MESSAGE(passed << " passed, " << refused << " refused, " << mended << " media mended");
  CHECK(passed > 20);
  CHECK(refused > 5);
  CHECK(mended > 20);
}

TEST_CASE("a medium that was good when it was verified and is not afterwards gains nothing") {
  const Fixture fixture;
  std::map<std::pair<ino_t, off_t>, int> seen;
  const MediumIs two_faced([&](const Read& read) {
    const ssize_t count = really(read);
    if (++seen[{file_of(read), read.offset}] > 1) read.out[static_cast<std::size_t>(count) / 2] ^= 1;
    return count;
  });
  CHECK(check_every_chunk(fixture.bundle, 1).empty());
  CHECK_REFUSED(read_entry(fixture.bundle, "data"), Digest, "chunk 1 differs");
  CHECK_REFUSED(read_entry(fixture.bundle, "packed"), Digest, "differs from what was signed");
}

TEST_CASE("a file whose chunks are known is read once and hashed once while it is written, and its faults are told") {
  const TempDir dir;
  std::filesystem::create_directory(dir / "out");
  const std::string bytes = noise(20'000'000);
  write_file(dir / "file", bytes);
  const ByteView view = as_bytes(bytes);
  MemorySource source(Bytes(view.begin(), view.end()), "file");
  Manifest draft{.name = "demo", .channel = "test", .version = 1, .created = "2026-01-01T00:00:00Z"};
  const StoredForm form = stored_form(
      {.path = SafePath::parse("file", ""), .size = bytes.size(), .sha256 = sha256(view)}, source, draft.payload);
  struct stat file {};
  REQUIRE(::stat((dir / "file").c_str(), &file) == 0);
  std::atomic<std::uint64_t> read{0};
  std::atomic<bool> broken{false};
  const MediumIs answer([&](const Read& wanted) -> ssize_t {
    if (file_of(wanted) != file.st_ino) return really(wanted);
    if (broken && wanted.offset >= 8 << 20) return errno = EIO, -1;
    const ssize_t count = really(wanted);
    read += static_cast<std::uint64_t>(count);
    return count;
  });
  BundleWriter writer(dir / "out", draft, 0);
  hashed = 0;
  writer.add(form.entry, dir / "file", form.chunks);
  CHECK(writer.other_than_known().empty());
  CHECK(read == bytes.size());
  CHECK(hashed >= bytes.size());
  CHECK(hashed < bytes.size() + 10'000);  // and what lies between entries
  broken = true;
  Entry again = form.entry;
  again.path = SafePath::parse("other", "");
  again.stored_sha256 = again.sha256 = sha256(as_bytes("other"));
  CHECK_REFUSED(
      [&] {
        writer.add(again, dir / "file", form.chunks);
        writer.other_than_known();
      }(),
      Io, "cannot be read at offset");
}
