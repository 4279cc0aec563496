// SPDX-License-Identifier: Apache-2.0
// PREFIX/generations: complete environments, each with its record, and `current`, the link that says which is in use.
// A generation gets its number by a rename once it is complete, and is never edited afterwards.
#pragma once

#include <optional>

#include "installer/disk/disk.hpp"
#include "installer/layout/audit.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/trial/self_check.hpp"
#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::installer {

// generation.json: what was installed, by whose word, when, and what was checked.
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
  bundle::RootName root;    // by whose roles they count
  std::string installed;    // by this machine's clock
  std::string interpreter;  // both below the generation; empty where an older version wrote the record
  std::string site_packages;
  std::vector<Part> entries;
  bool bytecode = false;               // __pycache__ was made by apply
  std::string host;                    // this machine's name; empty where an older version wrote the record
  std::vector<std::string> preflight;  // what it warned of
  Audit audit;
  SelfCheck self_check;
};

std::string write_generation_record(const GenerationRecord& record);
GenerationRecord read_generation_record(const std::filesystem::path& generation, unsigned number);

// Numbers for which `folder` has a name like 0003, ascending; none when it is not there.
std::vector<unsigned> numbers_in(const std::filesystem::path& folder);
// Numbers of the generations that are there, ascending.
std::vector<unsigned> generation_numbers(const Prefix& prefix);
// What `current` points at; nothing when there is no such link.
std::optional<unsigned> current_generation(const Prefix& prefix);

// Makes `root` the generation `number`: durable before it has the name.
void publish_generation(const Prefix& prefix, unsigned number, const std::filesystem::path& root, Disk& disk);
// One rename, of a link to what is durable; `staging` is a folder for the link that is renamed.
void point_current_at(const Prefix& prefix, unsigned number, const std::filesystem::path& staging, Disk& disk);

}  // namespace sealift::installer
