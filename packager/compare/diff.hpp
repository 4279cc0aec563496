// SPDX-License-Identifier: Apache-2.0
// `sealift-pack diff`: what one bundle or lock has that another has not. Looks only: signatures must hold, but whose
// they are is not asked (`inspect --fingerprint` does), and no payload is read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// What is compared of an entry. A wheel goes by its project's name, the interpreter by that word, the rest by its path.
struct DiffItem {
  std::string version;     // empty where there is none
  std::uint64_t size = 0;  // bytes as published; 0: a lock that does not know
  bundle::Digest sha256;

  bool operator==(const DiffItem&) const = default;
};

// A bundle or lock as far as it is compared. Facts that one side cannot tell are left out of its map, and not compared.
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
  std::vector<Fact> facts;  // those that differ
  std::vector<Item> items;  // those that differ, by name
  std::uint64_t same = 0;   // items that do not
};

// A bundle's folder or seal, or a lock.
DiffSide read_diff_side(const std::filesystem::path& file);
Diff diff(const DiffSide& before, const DiffSide& after);

std::string diff_text(const Diff& diff);
bundle::Json diff_json(const Diff& diff);

}  // namespace sealift::packager
