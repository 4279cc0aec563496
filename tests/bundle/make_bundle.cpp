// SPDX-License-Identifier: Apache-2.0
// Writes a small real bundle (4 MiB chunks, several volumes) into a folder and prints its root's fingerprint: for tests
// that read bundles by other means than ours.   make_bundle FOLDER [ALGORITHM [sha256|sm3]]
#include <cstdio>

#include "tests/support/tiny_bundle.hpp"

int main(int argc, char** argv) {
  using namespace sealift;
  if (argc < 2) return 2;
  const bundle::AlgorithmFacts* facts = bundle::find_algorithm(argc > 2 ? argv[2] : "ed25519");
  const auto digest = bundle::digest_algorithm(argc > 3 ? argv[3] : "sha256");
  if (facts == nullptr || !digest) return 2;
  std::string noise(9'000'000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i >> 7);
  test::TinyBundle tiny{
      .chunk_size = bundle::kDefaultChunkSize, .volume_size = std::uint64_t{5} << 20, .digest = *digest};
  tiny.items.push_back({.path = "programs/noise", .bytes = noise, .into = "share/noise"});
  tiny.items.push_back(
      {.path = "programs/packed", .bytes = noise, .into = "share/packed", .encoding = bundle::Encoding::Zstd});
  std::puts(test::make_bundle(argv[1], tiny, bundle::PrivateKey::generate(facts->algorithm)).fingerprint().c_str());
}
