// SPDX-License-Identifier: Apache-2.0
// What happens to a bundle that is being written when one of its inputs turns out to be another.
#include "sealift/bundle/bundle_writer.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift::bundle;
using sealift::test::noise;
using sealift::test::read_file;
using sealift::test::TempDir;

namespace {

constexpr std::uint64_t kLeastChunk = kMinChunkSize;

struct Input {
  std::string path;
  std::string bytes;
  Encoding encoding = Encoding::Identity;
};

// Name -> bytes of the files of a bundle with these inputs. Of an input that is `damaged`, first other bytes are added,
// which are refused.
std::map<std::string, std::string> written(const std::vector<Input>& inputs, std::uint64_t volume_size,
                                           const PrivateKey& key, const std::string& damaged = {}) {
  const TempDir dir;
  Manifest draft{.name = "demo", .channel = "test", .version = 1, .created = "2026-01-01T00:00:00Z"};
  draft.target = {.arch = "x86_64", .glibc = {2, 28}};
  draft.payload.chunk_size = kLeastChunk;
  draft.environment.interpreter = SafePath::parse("bin/python3", "");
  draft.environment.site_packages = SafePath::parse("lib/python3.11/site-packages", "");
  BundleWriter writer(dir.path(), draft, volume_size);
  for (const Input& input : inputs) {
    const ByteView view = as_bytes(input.bytes);
    const Entry entry{.path = SafePath::parse(input.path, ""),
                      .kind = EntryKind::File,
                      .size = view.size(),
                      .sha256 = sha256(view),
                      .encoding = input.encoding};
    if (input.path == damaged)
      for (const std::size_t at : {std::size_t{0}, view.size() - 1}) {
        Bytes other(view.begin(), view.end());
        other[at] ^= std::byte{1};
        MemorySource source(std::move(other), "damaged");
        CHECK_REFUSED(writer.add(entry, source), Digest, "damaged");
      }
    MemorySource source(Bytes(view.begin(), view.end()), input.path);
    writer.add(entry, source);
  }
  writer.finish({sealift::test::one_key_root(key)}, std::span(&key, 1));
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(dir.path()))
    files[file.path().filename().string()] = read_file(file.path());
  return files;
}

}  // namespace

TEST_CASE("an input that was refused leaves no trace: added again from a good source, the bundle is the same") {
  const PrivateKey key = PrivateKey::generate();
  for (const std::uint64_t volume_size : {std::uint64_t{0}, kLeastChunk, 3 * kLeastChunk})
    for (const std::size_t first : {std::size_t{10}, std::size_t{kLeastChunk - 1024}, std::size_t{2 * kLeastChunk}})
      for (const std::size_t size : {std::size_t{10}, std::size_t{kLeastChunk - 512}, std::size_t{kLeastChunk},
                                     std::size_t{7 * kLeastChunk + 5}}) {
        const std::vector<Input> inputs = {{"a", noise(first)}, {"b", noise(size) + "b"}, {"c", "c"}};
        CHECK(written(inputs, volume_size, key) == written(inputs, volume_size, key, "b"));
      }
}

TEST_CASE("the same holds for the first and the last input, and for one that is compressed") {
  const PrivateKey key = PrivateKey::generate();
  const std::vector<Input> inputs = {
      {"a", noise(2 * kLeastChunk) + "a"}, {"b", noise(3 * kLeastChunk), Encoding::Zstd}, {"c", noise(kLeastChunk)}};
  const auto files = written(inputs, 2 * kLeastChunk, key);
  CHECK(files.size() > 4);
  for (const char* damaged : {"a", "b", "c"}) CHECK(files == written(inputs, 2 * kLeastChunk, key, damaged));
}
