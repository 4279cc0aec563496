// SPDX-License-Identifier: Apache-2.0
// What a bundle says of itself, trusted or not.
#include "packager/compare/inspect.hpp"

#include <doctest/doctest.h>

#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::pinned_root;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;

TEST_CASE("inspect shows a bundle without trusting it, and says so") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  const InspectReport report = inspect(result.folder, std::nullopt);
  CHECK_FALSE(report.trusted);
  bundle::Manifest written = result.manifest;
  for (bundle::Entry& entry : written.entries) entry.content = {};  // which the chunk list says, and nobody read here
  CHECK(report.manifest == written);
  CHECK(report.signers == result.signers);
  CHECK(report.roots.size() == 1);
  const std::string text = inspect_text(report);
  CHECK(text.find("UNVERIFIED") != std::string::npos);
  CHECK(text.find("wheels/demo-1.0-py3-none-any.whl") != std::string::npos);
  CHECK(inspect_json(report)["trusted"] == false);
}

TEST_CASE("inspect with a fingerprint accepts that root's bundle and no other") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  const InspectReport report = inspect(result.folder, pinned_root(workshop).state.pinned);
  CHECK(report.trusted);
  CHECK(inspect_text(report).find("UNVERIFIED") == std::string::npos);
  CHECK_REFUSED(inspect(result.folder, bundle::Digest{}), Signature, "not among the bundle's roots");
}

TEST_CASE("inspect refuses a seal that was changed, even without a fingerprint") {
  Workshop workshop;
  const CreateResult result = workshop.pack();
  bundle::Seal seal = bundle::parse_seal(read_file(result.folder / "demo-1.seal"), "seal");
  std::string& manifest = seal.manifest.payload;
  manifest.replace(manifest.find("\"test\""), 6, "\"best\"");
  write_file(result.folder / "demo-1.seal", bundle::write_seal(seal));
  CHECK_REFUSED(inspect(result.folder, std::nullopt), Signature, "does not hold");
}
