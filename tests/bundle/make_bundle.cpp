// SPDX-License-Identifier: Apache-2.0
// Writes a small real bundle (4 MiB chunks, several volumes) into a folder and prints its key's fingerprint: for tests
// that read bundles by other means than ours.
//   make_bundle FOLDER sha256|sm3
#include <cstdio>

#include "tests/support/tiny_bundle.hpp"

int main(int argc, char** argv) {
  using namespace sealift;
  const auto digest = bundle::digest_algorithm(argc == 3 ? argv[2] : "");
  if (!digest) return 2;
  std::string noise(9'000'000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i >> 7);
  test::TinyBundle tiny{
      .chunk_size = bundle::kDefaultChunkSize, .volume_size = std::uint64_t{5} << 20, .digest = *digest};
  tiny.items.push_back({.path = "programs/noise", .bytes = noise, .into = "share/noise"});
  tiny.items.push_back(
      {.path = "programs/packed", .bytes = noise, .into = "share/packed", .encoding = bundle::Encoding::Zstd});
  std::puts(test::make_bundle(argv[1], tiny).fingerprint().c_str());
}
