// SPDX-License-Identifier: Apache-2.0
// PREFIX/generations: complete environments, each with its generation record, and `current`, the link to the one in
// use. A generation gets its number by a rename once it is complete, and is never edited afterwards.
#pragma once

#include <optional>

#include "installer/disk/disk.hpp"
#include "installer/layout/audit.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/trial/self_check.hpp"
#include "sealift/bundle/payload/volumes.hpp"
#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::installer {

// The generation record, generation.json: what was installed, who signed it, when, and what was checked.
struct GenerationRecord {
  struct Part {
    std::string path;  // of the entry in the bundle
    std::string item;  // its name in the store
    std::string into;  // the placement's
    std::vector<bundle::SafePath> left_out = {};
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

// The numbers of names like 0003 in `folder`, ascending; none when there is no such folder.
std::vector<unsigned> numbers_in(const std::filesystem::path& folder);
// The numbers of all generations, ascending.
std::vector<unsigned> generation_numbers(const Prefix& prefix);
// The generation that `current` points at; nothing when there is no such link. Throws Conflict for another kind of
// file.
std::optional<unsigned> current_generation(const Prefix& prefix);

// Makes the folder `built` the generation `number`; durable before it has the name.
void publish_generation(const Prefix& prefix, unsigned number, const std::filesystem::path& built, Disk& disk);
// One rename of a new link over `current`; the generation must be durable. `staging` is a folder for the new link.
void point_current_at(const Prefix& prefix, unsigned number, const std::filesystem::path& staging, Disk& disk);

}  // namespace sealift::installer
