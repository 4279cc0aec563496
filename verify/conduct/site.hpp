// SPDX-License-Identifier: Apache-2.0
// Where and how this rank runs checks: its place in the world, its folders, what the site expects.
// Filled once by `run` and read by every check. No LibTorch in it: checks of communication and arithmetic keep their
// groups themselves.
// One value instead of a global, so that a test can make a site of its own.
#pragma once

#include "verify/verdict/check.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace sealift::verify {

struct ChildWatch;

struct Site {
  std::int64_t rank = 0, world_size = 1;
  std::int64_t local_rank = 0, local_world_size = 1;
  std::string host;            ///< a name that no other host of the run has
  std::string hostname;        ///< what the host calls itself, which others may do too
  std::string device = "cpu";  ///< "cuda:3", or "cpu"
  Level level = Level::Quick;
  std::vector<std::string> only;  ///< checks whose names begin so; none: all
  std::filesystem::path prefix;   ///< the generation that this program was installed into: bin/, lib/, share/
  std::filesystem::path work;     ///< scratch of this check on this rank; removed after it
  std::filesystem::path shared;   ///< OUT: a folder that rank 0 can write; results and pages
  nlohmann::json expected;        ///< site.toml as JSON: what the site says of itself, and tolerances; an object
  std::string master_addr = "127.0.0.1";
  std::int64_t free_port = 0;  ///< a port of master_addr that was free a moment ago: for the ranks of a child job
  std::vector<std::int64_t> free_ports;  ///< four such, the first is free_port: for checks with several child jobs
  std::uint64_t seed = 1;
  std::int64_t minutes = 0;           ///< that each device repeats its quick steps; 0: only twice
  bool own_network = false;           ///< of the run: all its packets are counted
  std::shared_ptr<ChildWatch> watch;  ///< over the programs that checks start; may be none
  /// On rank 0, of the checks before this one: `check`, `rank`, `host`, and what ChildWatch::take() gave.
  nlohmann::json watched = nlohmann::json::array();

  bool is_first_of_host() const { return local_rank == 0; }
};

}  // namespace sealift::verify
