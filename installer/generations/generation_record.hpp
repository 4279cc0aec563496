// SPDX-License-Identifier: Apache-2.0
// generation.json: what a generation consists of and how it came to be. Written once by `apply`, beside the files that
// it describes; status, receipt, doctor and gc tell from it what is there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "installer/layout/audit.hpp"
#include "installer/trial/self_check.hpp"
#include "sealift/bundle/payload/volumes.hpp"
#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::installer {

// What was installed, who signed it, when, and what was checked.
struct GenerationRecord {
  struct Part {
    std::string path;  // of the entry in the bundle
    std::string item;  // its name in the store
    std::string into;  // the placement's
    std::vector<bundle::SafePath> left_out = {};
    std::vector<bundle::SafePath> shared = {};
  };

  unsigned number = 0;
  std::string name;
  std::uint64_t version = 0;
  std::string channel;
  std::string created;      // the bundle, by its packager's clock
  bundle::Digest identity;  // of the manifest
  std::vector<bundle::Digest> signers;
  bundle::RootName root;    // by which the signers count
  std::string installed;    // by this machine's clock
  std::string interpreter;  // both below the generation; empty where an older version wrote the record
  std::string site_packages;
  std::vector<Part> entries;
  bool bytecode = false;                     // apply compiled the modules
  std::string host;                          // this machine's name; empty where an older version wrote the record
  std::vector<std::string> preflight;        // its warnings
  std::vector<bundle::MendedVolume> mended;  // volumes of the medium that were damaged
  Audit audit;
  SelfCheck self_check;
};

bundle::Json to_json(const std::vector<bundle::MendedVolume>& mended);
std::string write_generation_record(const GenerationRecord& record);
GenerationRecord read_generation_record(const std::filesystem::path& generation, unsigned number);

}  // namespace sealift::installer
