// SPDX-License-Identifier: Apache-2.0
// `sealift-install export` as a program: whom it believes.
#include "tests/installer/program.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift;
using namespace sealift::test;

TEST_CASE("export builds on no bundle that the delta's own root has withdrawn") {
  const Site site;
  const TinyWheel one = with_library(60'000), two = with_changed_library(60'000);
  const MadeBundle base = site.make({.version = 1, .items = {wheel_item(one)}}, "base");
  TinyItem patch = wheel_item(two);
  patch.encoding = bundle::Encoding::Patch;
  patch.patch = make_patch(two, one);
  patch.built_on = base.manifest.entries.front().content;
  const MadeBundle delta = site.make({.version = 2, .items = {patch}}, "delta");
  const std::vector<std::string> asked = {"export",   delta.folder,     "--fingerprint", delta.fingerprint(),
                                          "--wheels", site.dir / "out", "--base",        base.folder};
  CHECK(run(site.dir, asked).exit == 0);
  fs::remove_all(site.dir / "out");
  const bundle::Root root = make_root({&site.key}, {&site.key}),
                     next = next_root(root, [&](bundle::Root&withdrawing) {
                       const bundle::Seal seal = bundle::open(base.folder).seal;
                       withdrawing.revoked_bundles[seal.manifest.digest()] = {.date = "2026-02-01T00:00:00Z",
                                                                              .reason = "a wrong wheel"};
                     });
  MadeBundle resealed = delta;
  resealed.manifest = as_written(delta.manifest);
  reseal(resealed, {one_key_root(site.key), signed_root(next, {&site.key})}, {&site.key});
  const Outcome refused = run(site.dir, asked);
  CHECK(refused.exit == 16);
  CHECK(refused.err.find("withdrawn: a wrong wheel") != std::string::npos);
  CHECK(!fs::exists(site.dir / "out"));
}
