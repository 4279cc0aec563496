// SPDX-License-Identifier: Apache-2.0
// A delta names the inventory that it was made for, since it can be installed nowhere else.
#include "installer/print/verification_report.hpp"

#include "bundle/host/command_line.hpp"
#include "installer/print/signers.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const bundle::Damage& damage) {
  return {{"bad_chunks", damage.bad_chunks},
          {"bad_bytes", damage.bad_bytes},
          {"bad_volumes", damage.bad_volumes},
          {"groups", damage.groups},
          {"parity", damage.parity},
          {"recovery_chunks", damage.recovery_chunks},
          {"recovery_there", damage.recovery_there},
          {"mendable", damage.mendable()},
          {"missing_pieces", damage.missing_pieces}};
}

bundle::Json json_of(const Verification& verification) {
  bundle::Json failures = bundle::Json::array();
  for (const bundle::Error& failure : verification.failures) failures.push_back(bundle::json_of(failure));
  return {{"verified", verification.failures.empty()},
          {"name", verification.name},
          {"version", verification.version},
          {"channel", verification.channel},
          {"created", verification.created},
          {"target", {{"arch", verification.target.arch}, {"glibc", verification.target.glibc.text()}}},
          {"identity", verification.identity.hex()},
          {"signers", fingerprints(verification.signers)},
          {"root", json_of(verification.root)},
          {"warnings", verification.warnings},
          {"entries", verification.entries},
          {"absent", verification.absent},
          {"base", verification.base ? bundle::Json(bundle::fingerprint_text(*verification.base)) : bundle::Json()},
          {"built", {{"sandboxed", verification.sandboxed}, {"unsandboxed", verification.unsandboxed}}},
          {"shared", verification.shared},
          {"volumes", verification.volumes},
          {"chunks", verification.chunks},
          {"bytes", verification.bytes},
          {"recovery", verification.damage ? json_of(*verification.damage) : bundle::Json()},
          {"deep", verification.deep},
          {"failures", std::move(failures)}};
}

namespace {

// Only of a bundle that has some.
std::string builds_of(const Verification& verification) {
  if (verification.sandboxed.empty() && verification.unsandboxed.empty()) return {};
  return "  built     in a sandbox: " + bundle::few_of(verification.sandboxed) +
         "\n            outside of one: " + bundle::few_of(verification.unsandboxed) + "\n";
}

}  // namespace

std::string text_of(const Verification& verification) {
  return "verified " + verification.name + " version " + std::to_string(verification.version) + "\n  identity  " +
         bundle::fingerprint_text(verification.identity) + "\n  signed by " + text_of(verification.signers) +
         "\n  root      " + text_of(verification.root) + "\n  created   " + verification.created + ", channel " +
         verification.channel + ", for " + verification.target.arch + " with glibc " +
         verification.target.glibc.text() + " or newer\n  contents  " + std::to_string(verification.entries) +
         " entries, " +
         (verification.absent != 0 ? std::to_string(verification.absent) + " of them not carried, " : "") +
         std::to_string(verification.bytes) + " bytes in " + std::to_string(verification.chunks) + " chunks and " +
         std::to_string(verification.volumes) + " volume(s), every byte read" +
         (verification.deep ? ",\n            every entry and file as it was published\n" : "\n") +
         builds_of(verification) +
         (verification.shared.empty()
              ? ""
              : "  shared    files in a package of another one: " + bundle::few_of(verification.shared) + "\n") +
         (verification.damage
              ? "  recovery  " + std::to_string(verification.damage->recovery_there) + " of " +
                    std::to_string(verification.damage->recovery_chunks) + " recovery chunks are here and right\n"
              : "") +
         (verification.base ? "  delta to  the inventory " + bundle::fingerprint_text(*verification.base) + "\n" : "");
}

}  // namespace sealift::installer
