// SPDX-License-Identifier: Apache-2.0
// Chunks that are mended in memory, one by one, in whatever order somebody reads them: right, and within limits.
#include "bundle/payload/chunk_mender.hpp"

#include "tests/bundle/payload/bad_medium.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

TEST_CASE("chunks are mended one by one as they are wanted, and what is kept of them is bounded") {
  const BadMedium medium(30);
  for (std::uint64_t group = 0; group < medium.layout.groups(); ++group)
    for (std::uint64_t i = 0; i < medium.layout.parity(); ++i) medium.flip_piece(medium.layout.piece_at(group, i));
  const VerifiedBundle bundle = medium.verified();
  const std::vector<Digest>& digests = bundle.payload().digests();
  const Payload& payload = bundle.manifest().payload;
  for (const std::uint64_t kept : {std::uint64_t{64} << 20, std::uint64_t{5000}, std::uint64_t{0}}) {
    CAPTURE(kept);
    ChunkMender mender(payload, digests, {medium.made.folder}, {.kept = kept});
    for (std::uint64_t chunk = 0; chunk < medium.chunks.count(); ++chunk) {
      ChunkBuffer memory;
      if (!mender.read(chunk, memory)) REQUIRE(!mender.mend(chunk, memory));
      REQUIRE(sha256(memory.view()) == digests[static_cast<std::size_t>(chunk)]);
      mender.close();  // files are opened again
    }
  }
}

TEST_CASE("what costs more reading than is worth it is not mended while it is read, and says so") {
  const BadMedium medium(30);
  medium.flip_piece(medium.layout.piece_at(0, 0));
  medium.flip_piece(medium.layout.piece_at(0, 1));
  const VerifiedBundle bundle = medium.verified();
  const std::uint64_t group = medium.layout.pieces_of(0) * medium.layout.piece_size();
  const auto last_of = [&](std::uint64_t position) {
    return medium.layout.first_chunk(medium.layout.piece_at(0, position) + 1) - 1;
  };
  ChunkBuffer memory;
  ChunkMender none(bundle.manifest().payload, bundle.payload().digests(), {medium.made.folder}, {.read = group - 1});
  const std::optional<Error> fault = none.mend(last_of(0), memory);
  REQUIRE(fault);
  CHECK(std::string(fault->what()).find("more is damaged than is mended while it is read") != std::string::npos);
  // One look at the group gives both, as long as both are kept.
  ChunkMender once(bundle.manifest().payload, bundle.payload().digests(), {medium.made.folder}, {.read = group});
  CHECK(!once.mend(last_of(0), memory));
  CHECK(!once.mend(last_of(1), memory));
  ChunkMender forgetful(bundle.manifest().payload, bundle.payload().digests(), {medium.made.folder},
                        {.read = group, .kept = 0});
  CHECK(!forgetful.mend(last_of(0), memory));
  CHECK(forgetful.mend(last_of(1), memory));

  fs::remove(medium.made.volume(0));
  ChunkMender small(bundle.manifest().payload, bundle.payload().digests(), {medium.made.folder}, {.kept = 100});
  CHECK(!small.mends_what_is_cut_off());
}
