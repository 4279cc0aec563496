// SPDX-License-Identifier: Apache-2.0
// `sealift-pack diff`: how two bundles or locks differ. Signatures must be valid, but who signed is not judged
// (`inspect
// --fingerprint` does that), and no payload is read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// What is compared of an entry. A wheel has its project's name, the interpreter the name "interpreter", all else its
// path.
struct DiffItem {
  std::string version;     // empty where there is none
  std::uint64_t size = 0;  // bytes as published; 0: a lock that does not know
  bundle::Digest sha256;

  bool operator==(const DiffItem&) const = default;
};

// What is compared of a bundle or lock. A fact that one side does not know is left out of its map and not compared.
struct DiffSide {
  std::string name;
  std::map<std::string, std::string> facts;  // "glibc" -> "2.28"
  std::map<std::string, DiffItem> items;
};

struct Diff {
  struct Fact {
    std::string name, before, after;
  };
  struct Item {
    std::string name;
    std::optional<DiffItem> before, after;  // one of them is there
  };
  std::string before, after;
  std::vector<Fact> facts;  // differing ones
  std::vector<Item> items;  // differing ones, by name
  std::uint64_t same = 0;   // items that do not
};

// A bundle's folder or seal, or a lock.
DiffSide read_diff_side(const std::filesystem::path& file);
Diff diff(const DiffSide& before, const DiffSide& after);

std::string diff_text(const Diff& diff);
bundle::Json diff_json(const Diff& diff);

}  // namespace sealift::packager
