// SPDX-License-Identifier: Apache-2.0
// The trust state on disk: either of two copies is enough, no damage is mistaken for a state, nobody else may write.
#include "sealift/bundle/trust/trust_folder.hpp"

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

TrustState some_state(std::uint64_t version) {
  const PrivateKey key = PrivateKey::generate();
  TrustState state = pinned(one_key_root(key)).state;
  state.root = one_key_root(key).payload;
  state.seen[{.channel = "prod", .name = "env"}] = {.version = version, .manifest = sha256({}), .floor = 1};
  state.time_floor = kNow;
  return state;
}

}  // namespace

TEST_CASE("a trust state is read back as it was written, and nothing is where nothing was pinned") {
  const TempDir dir;
  const TrustState state = some_state(3);
  CHECK_FALSE(read_trust(dir / "nowhere"));
  CHECK_FALSE(read_trust(dir.path()));
  write_file(dir / "state.b", write_trust_copy(state, 7));
  const StoredTrust stored = read_trust(dir.path()).value();
  CHECK(stored.state == state);
  CHECK(stored.counter == 7);
  CHECK(stored.copy == 1);
}

TEST_CASE("the newer of two whole copies counts; one that is torn, cut, empty or gone costs nothing") {
  const TempDir dir;
  const TrustState before = some_state(1), after = some_state(2);
  const std::string good = write_trust_copy(after, 10);
  write_file(dir / "state.a", good);
  write_file(dir / "state.b", write_trust_copy(before, 9));
  CHECK(read_trust(dir.path())->state == after);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65}, std::size_t{66}, good.size() / 2, good.size() - 1}) {
    write_file(dir / "state.a", good.substr(0, size));
    CHECK(read_trust(dir.path())->state == before);
  }
  write_file(dir / "state.a", good.substr(0, 100) + std::string(good.size() - 100, '\0'));
  CHECK(read_trust(dir.path())->state == before);
  fs::remove(dir / "state.a");
  CHECK(read_trust(dir.path())->counter == 9);
}

TEST_CASE("when both copies are damaged that is said, with what to do, and nobody is trusted instead") {
  const TempDir dir;
  write_file(dir / "state.a", "");
  CHECK_REFUSED(read_trust(dir.path()), Format, "trust add");
  write_file(dir / "state.b", "torn");
  CHECK_REFUSED(read_trust(dir.path()), Format, "backup");
}

TEST_CASE("no flipped bit makes another state of a copy") {
  const TempDir dir;
  const std::string good = write_trust_copy(some_state(1), 9);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(parse_trust_copy(bad, 0, "s"));
  }
}

TEST_CASE("a trust folder or copy that others may write is refused") {
  const TempDir dir;
  const fs::path folder = dir / "trust";
  write_file(folder / "state.a", write_trust_copy(some_state(1), 1));
  for (const fs::perms bad : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder, bad, fs::perm_options::add);
    CHECK_REFUSED(read_trust(folder), Usage, "chmod go-w");
    fs::permissions(folder, bad, fs::perm_options::remove);
    fs::permissions(folder / "state.a", bad, fs::perm_options::add);
    CHECK_REFUSED(read_trust(folder), Usage, "state.a");
    fs::permissions(folder / "state.a", bad, fs::perm_options::remove);
  }
  CHECK(read_trust(folder));
}

TEST_CASE("a run goes by what is pinned; a fingerprint helps where nothing is, and cannot replace a root") {
  const TempDir dir;
  const TrustState state = some_state(1);
  const Digest other = sha256(as_bytes("other"));
  CHECK_REFUSED(trust_for_run({}, std::nullopt), Signature, "no root is pinned");
  CHECK_REFUSED(trust_for_run(dir.path(), std::nullopt), Signature, "trust add");
  CHECK(trust_for_run(dir.path(), other).pinned == other);
  write_file(dir / "state.a", write_trust_copy(state, 1));
  CHECK(trust_for_run(dir.path(), std::nullopt) == state);
  CHECK(trust_for_run(dir.path(), state.pinned) == state);
  CHECK_REFUSED(trust_for_run(dir.path(), other), Conflict, "another root is pinned");
}
