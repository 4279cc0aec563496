// SPDX-License-Identifier: Apache-2.0
// Says each time that the other volumes were not looked at, so that nobody files this as the bundle's verdict.
#include "installer/print/volume_report.hpp"

#include "bundle/host/command_line.hpp"
#include "installer/print/signers.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

namespace {

bundle::Json json_of_range(const BadRange& range) {
  return {{"offset", range.offset},
          {"size", range.size},
          {"first_chunk", range.first_chunk},
          {"chunks", range.chunks},
          {"entries", range.entries}};
}

}  // namespace

bundle::Json json_of(const VolumeCheck& check) {
  bundle::Json bad = bundle::Json::array(), failures = bundle::Json::array();
  for (const BadRange& range : check.bad) bad.push_back(json_of_range(range));
  for (const bundle::Error& failure : check.failures()) failures.push_back(bundle::json_of(failure));
  return {{"verified", failures.empty()},
          {"name", check.name},
          {"version", check.version},
          {"channel", check.channel},
          {"identity", check.identity.hex()},
          {"root", json_of(check.root)},
          {"warnings", check.warnings},
          {"volume", check.volume},
          {"recovery", check.recovery},
          {"number", check.number},
          {"volumes", check.volumes},
          {"chunks", check.chunks},
          {"bytes", check.bytes},
          {"bad", std::move(bad)},
          {"failures", std::move(failures)}};
}

std::string text_of(const VolumeCheck& check) {
  return "verified " + check.volume + (check.recovery ? ", recovery file " : ", volume ") +
         std::to_string(check.number) + " of " + std::to_string(check.volumes) + " of " + check.name + " version " +
         std::to_string(check.version) + "\n  identity  " + bundle::fingerprint_text(check.identity) +
         "\n  root      " + text_of(check.root) + "\n  contents  " + std::to_string(check.bytes) + " bytes in " +
         std::to_string(check.chunks) + " chunks, every byte read; the other volumes were not looked at\n";
}

}  // namespace sealift::installer
