// SPDX-License-Identifier: Apache-2.0
// The command line as a value: which verb, with what. The only door to CLI11.
// One struct for all verbs, since they share their options' names and meanings.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sealift::installer {

enum class Verb {
  Probe,
  TrustAdd,
  TrustUpdate,
  TrustShow,
  Verify,
  Preflight,
  Apply,
  Status,
  Switch,
  Pin,
  Unpin,
  Gc,
  Doctor,
  Receipt,
  Inventory
};

struct Arguments {
  Verb verb = Verb::Status;
  std::string bundle;
  std::string prefix;
  std::string fingerprint;           // of the root to begin from; empty: the pinned one
  std::vector<std::string> volumes;  // further folders in which the bundle's volumes lie
  std::vector<std::string> roots;    // files of roots, or bundles
  unsigned generation = 0;
  unsigned keep = 2;   // generations that gc leaves, of the newest
  std::string repair;  // the bundle to repair from; empty: only look
  unsigned threads = 1;
  std::string self_check = "full";
  bool compile_bytecode = false;
  bool dry_run = false;
  bool allow_downgrade = false;
  bool json = false;
};

// Nothing to do but exit with this code: help or version was printed (0), or what is wrong (2).
std::optional<int> parse_arguments(int argc, char** argv, Arguments& arguments);

}  // namespace sealift::installer
