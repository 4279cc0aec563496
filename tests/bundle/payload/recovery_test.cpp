// SPDX-License-Identifier: Apache-2.0
// Recovery data: the pieces and groups of a payload, the code against its formula, and what comes back of a damaged
// payload, in every group and to the last piece that can be lost.
#include "sealift/bundle/manifest/recovery_layout.hpp"

#include <random>
#include <set>

#include "bundle/payload/reed_solomon.hpp"
#include "tests/bundle/payload/bad_medium.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// Multiplication over GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, bit by bit.
unsigned gf_times(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a = a & 0x80 ? (a << 1) ^ 0x11d : a << 1;
  }
  return product;
}

unsigned gf_inverse(unsigned a) {
  for (unsigned b = 1; b < 256; ++b)
    if (gf_times(a, b) == 1) return b;
  return 0;
}

// Numbers below `count`, `wanted` different ones, sorted.
std::vector<std::uint64_t> some_of(std::uint64_t count, std::uint64_t wanted, std::mt19937& random) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = i;
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<std::size_t>(wanted));
  std::sort(all.begin(), all.end());
  return all;
}

Payload payload_like(std::uint64_t size, std::uint64_t chunk_size, std::vector<std::uint64_t> cuts = {}) {
  return {.size = size,
          .chunk_size = chunk_size,
          .chunk_list_digest = {},
          .volumes = {{"x-1.vol001", size}},
          .cuts = std::move(cuts)};
}

}  // namespace

TEST_CASE("recovery chunks are the sums of the format's formula, and short pieces count as if zeros followed") {
  const std::uint64_t pieces = 7, parity = 4, size = 301;
  PieceSums sums = PieceSums::recovery_chunks(pieces, parity, size);
  std::vector<Bytes> inputs;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    inputs.push_back(piece_bytes(i, i == 3 ? 100 : size));
    const std::size_t half = inputs.back().size() / 2;  // in two parts
    sums.add(i, 0, ByteView(inputs.back()).first(half));
    sums.add(i, half, ByteView(inputs.back()).subspan(half));
    inputs.back().resize(size);
  }
  for (std::uint64_t row = 0; row < parity; ++row)
    for (std::size_t at = 0; at < size; ++at) {
      unsigned expected = 0;
      for (std::uint64_t column = 0; column < pieces; ++column)
        expected ^= gf_times(gf_inverse(static_cast<unsigned>((pieces + row) ^ column)),
                             static_cast<unsigned>(inputs[static_cast<std::size_t>(column)][at]));
      REQUIRE(static_cast<unsigned>(sums.result(row)[at]) == expected);
    }
}

TEST_CASE("any lost pieces of a group come back from any others and recovery chunks, as many as there are pieces") {
  std::mt19937 random(7);
  for (const auto& group : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1, 1}, {1, 254}, {2, 3}, {10, 2}, {64, 32}, {127, 128}, {242, 13}, {254, 1}}) {
    const auto [pieces, parity] = group;
    CAPTURE(group.first);
    const std::size_t size = 65;
    std::vector<Bytes> all;
    PieceSums sums = PieceSums::recovery_chunks(pieces, parity, size);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      all.push_back(piece_bytes(static_cast<std::uint32_t>(i), size));
      sums.add(i, 0, all.back());
    }
    for (std::uint64_t i = 0; i < parity; ++i) all.emplace_back(sums.result(i).begin(), sums.result(i).end());
    for (int round = 0; round < 3; ++round) {
      const std::vector<std::uint64_t> there = some_of(pieces + parity, pieces, random);
      std::vector<std::uint64_t> lost;
      for (std::uint64_t i = 0; i < pieces; ++i)
        if (!std::binary_search(there.begin(), there.end(), i)) lost.push_back(i);
      PieceSums back = PieceSums::lost_pieces(pieces, parity, there, lost, size);
      for (std::size_t i = 0; i < there.size(); ++i) back.add(i, 0, all[static_cast<std::size_t>(there[i])]);
      for (std::size_t i = 0; i < lost.size(); ++i)
        REQUIRE(std::ranges::equal(back.result(i), all[static_cast<std::size_t>(lost[i])]));
    }
  }
}

TEST_CASE("pieces are whole chunks, at most one chunk size together, and each chunk is in one of them") {
  std::vector<std::uint64_t> cuts;
  std::mt19937 random(3);
  for (std::uint64_t at = 0; at < 900'000; at += 1 + random() % 20'000) cuts.push_back(at);
  const Payload payload = payload_like(1'000'000, 8192, cuts);
  const ChunkLayout chunks(payload);
  const RecoveryLayout layout(payload, {.groups = 5, .parity = 1, .list_digest = {}, .files = {}});
  CHECK(layout.first_chunk(0) == 0);
  CHECK(layout.first_chunk(layout.pieces()) == chunks.count());
  std::uint64_t largest = 0, in_groups = 0;
  for (std::uint64_t piece = 0; piece < layout.pieces(); ++piece) {
    const std::uint64_t first = layout.first_chunk(piece), end = layout.first_chunk(piece + 1);
    REQUIRE(first < end);
    const std::uint64_t size = chunks.begin_of(end) - chunks.begin_of(first);
    REQUIRE(size <= 8192);
    if (end < chunks.count())
      REQUIRE(chunks.begin_of(end + 1) - chunks.begin_of(first) > 8192);  // one more is too many
    largest = std::max(largest, size);
    REQUIRE(layout.piece_of(first) == piece);
    REQUIRE(layout.piece_of(end - 1) == piece);
    REQUIRE(layout.piece_at(layout.group_of(piece), piece / 5) == piece);
  }
  CHECK(layout.piece_size() == largest);
  for (std::uint64_t group = 0; group < 5; ++group) in_groups += layout.pieces_of(group);
  CHECK(in_groups == layout.pieces());
}

TEST_CASE("a share of a payload becomes the fewest groups that the code and a reader's memory hold") {
  for (const std::uint64_t pieces : {1u, 2u, 19u, 20u, 242u, 243u, 25'000u})
    for (const unsigned percent : {1u, 5u, 33u, 100u})
      for (const std::uint64_t chunk : {kMinChunkSize, kDefaultChunkSize, kMaxChunkSize}) {
        CAPTURE(pieces);
        CAPTURE(percent);
        CAPTURE(chunk);
        const Payload payload = payload_like(pieces * chunk, chunk);
        const Recovery recovery = recovery_of_percent(payload, percent);
        REQUIRE(fault_of(payload, recovery) == "");
        REQUIRE(recovery.groups * recovery.parity * 100 >= pieces * percent);
        REQUIRE(recovery.parity * chunk <= kMendMemory);
      }
  CHECK(recovery_of_percent(payload_like(242 * 4096, 4096), 5).groups == 1);
  CHECK(recovery_of_percent(payload_like(242 * 4096, 4096), 5).parity == 13);
  CHECK(recovery_of_percent(payload_like(243 * 4096, 4096), 5).groups == 2);
}

TEST_CASE("as many pieces of every group as it has recovery chunks are lost and come back, byte for byte") {
  for (const unsigned seed : {1u, 2u, 3u}) {
    const BadMedium medium(15);
    REQUIRE(medium.layout.parity() >= 2);
    std::mt19937 random(seed);
    for (std::uint64_t group = 0; group < medium.layout.groups(); ++group) {
      const std::uint64_t pieces = medium.layout.pieces_of(group), parity = medium.layout.parity();
      for (const std::uint64_t lost : some_of(pieces + parity, parity, random))
        if (lost < pieces)
          medium.flip_piece(medium.layout.piece_at(group, lost));
        else
          medium.flip_recovery(medium.layout.recovery_chunk(group, lost - pieces));
    }
    Damage damage;
    CHECK(medium.mended(damage) == medium.payload());
    CHECK(damage.mendable());
    CHECK(damage.bad_chunks != 0);
    CHECK(damage.verdict().find("recovery data mends them") != std::string::npos);
    CHECK(damage.faults.size() == medium.layout.groups() * medium.layout.parity());
  }
}

TEST_CASE("one more lost piece than recovery chunks is refused, with how many are missing") {
  const BadMedium medium(15);
  const std::uint64_t parity = medium.layout.parity();
  for (std::uint64_t i = 0; i <= parity; ++i) medium.flip_piece(medium.layout.piece_at(0, i));
  Damage damage;
  CHECK_REFUSED(medium.mended(damage), Digest, "more is lost than recovery data mends");
  CHECK(!damage.mendable());
  CHECK(damage.lost_groups == 1);
  CHECK(damage.missing_pieces == 1);
  CHECK(damage.verdict().find("lack 1 chunks more") != std::string::npos);
  CHECK_REFUSED(medium.mended(damage), Digest, "1 piece(s) of this group less are enough");
}

TEST_CASE("a missing volume, a cut one and missing recovery files count as lost, and what is there helps") {
  const BadMedium medium(100);
  REQUIRE(mends_any_volume(medium.made.manifest.payload));
  fs::remove(medium.made.volume(1));
  fs::resize_file(medium.made.volume(0), fs::file_size(medium.made.volume(0)) - 5000);
  Damage damage;
  CHECK(medium.mended(damage) == medium.payload());
  CHECK(damage.bad_volumes.size() == 2);
  CHECK(damage.faults.size() == 2);  // a file is one fault, not one for each chunk
  const std::uint64_t before = damage.recovery_there;
  fs::remove(medium.made.recovery(0));
  fs::resize_file(medium.made.volume(0), medium.made.manifest.payload.volumes[0].size);  // its end is a hole
  medium.mended(damage);
  CHECK(damage.recovery_there < before);
  fs::remove(medium.made.recovery_list());
  CHECK_REFUSED(medium.mended(damage), Digest, "more is lost");
  CHECK(damage.recovery_there == 0);
}

TEST_CASE("recovery data that was left out is no fault, and a bundle without any has each group lost") {
  const BadMedium medium(15);
  for (std::size_t i = 0; i < medium.made.manifest.payload.recovery->files.size(); ++i)
    fs::remove(medium.made.recovery(i));
  fs::remove(medium.made.recovery_list());
  Damage damage;
  CHECK(medium.mended(damage) == medium.payload());
  CHECK(damage.faults.empty());
  CHECK(damage.verdict() == "");

  const TempDir dir;
  const MadeBundle plain = make_bundle(dir / "b", with_recovery(0));
  CHECK(!plain.manifest.payload.recovery);
  CHECK(plain.manifest.installer_level == 1);
  medium.flip(plain.volume(0), 0);
  const VerifiedBundle verified = verify(open(plain.folder), plain.trusted, kNow);
  DamagedPayload payload(verified, {plain.folder});
  const Damage without = payload.survey(1);
  CHECK(!without.mendable());
  CHECK(without.verdict().find("no recovery data") != std::string::npos);
}

TEST_CASE("recovery data does not change the payload, and is the same bytes each time, in whatever files") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle without = make_bundle(dir / "a", with_recovery(0), key),
                   one = make_bundle(dir / "b", with_recovery(30), key);
  TinyBundle coarse = with_recovery(30);
  coarse.volume_size = 0;
  const MadeBundle two = make_bundle(dir / "c", coarse, key);
  CHECK(read_file(without.chunks()) == read_file(one.chunks()));
  CHECK(read_file(without.volume(0)) == read_file(one.volume(0)));
  CHECK(read_file(one.recovery_list()) == read_file(two.recovery_list()));
  CHECK(two.manifest.payload.recovery->files.size() == 1);
  REQUIRE(one.manifest.payload.recovery->files.size() > 1);
  std::string all;
  for (std::size_t i = 0; i < one.manifest.payload.recovery->files.size(); ++i) all += read_file(one.recovery(i));
  CHECK(all == read_file(two.recovery(0)));
  CHECK(one.manifest.installer_level == 5);
}
