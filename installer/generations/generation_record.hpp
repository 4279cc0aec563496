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
  // A bundle that the generation consists of: the one that made it, or one without an interpreter that was added.
  struct Bundle {
    std::string name;
    std::uint64_t version = 0;
    std::string channel;
    std::string created;      // by its packager's clock
    bundle::Digest identity;  // of the manifest
    std::vector<bundle::Digest> signers;
    bundle::RootName root;  // by which the signers count

    bool operator==(const Bundle&) const = default;
  };
  struct Part {
    std::string path;  // of the entry in the bundle
    std::string item;  // its name in the store
    std::string into;  // the placement's
    std::vector<bundle::SafePath> left_out = {};
    std::vector<bundle::SafePath> shared = {};
    std::string added = {};  // the stream of the added bundle that brought it; empty: the bundle itself
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
  std::vector<Bundle> added;                 // one of a stream, sorted by its text
  bool bytecode = false;                     // apply compiled the modules
  std::string host;                          // this machine's name; empty where an older version wrote the record
  std::vector<std::string> preflight;        // its warnings
  std::vector<bundle::MendedVolume> mended;  // volumes of the medium that were damaged
  Audit audit;
  SelfCheck self_check;
};

// The bundle that made the generation, then the added ones.
std::vector<GenerationRecord::Bundle> bundles_of(const GenerationRecord& record);
std::string stream_of(const GenerationRecord::Bundle& bundle);  // "CHANNEL/NAME", as bundle::Stream writes it
std::string words_for(const GenerationRecord::Bundle& bundle);  // "NAME version N"

bundle::Json to_json(const std::vector<bundle::MendedVolume>& mended);
bundle::Json to_json(const std::vector<GenerationRecord::Bundle>& added);
std::string write_generation_record(const GenerationRecord& record);
GenerationRecord read_generation_record(const std::filesystem::path& generation, unsigned number);

}  // namespace sealift::installer
