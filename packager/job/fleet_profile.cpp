// SPDX-License-Identifier: Apache-2.0
// Key by key over all machines; see fleet_profile.hpp.
#include "packager/job/fleet_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "packager/tables/target_profile.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::Target;
using bundle::Version;

namespace {

class CommonGround {
 public:
  explicit CommonGround(const std::vector<FleetMachine>& machines) : machines_(machines) {}

  FleetProfile run() {
    Target& target = fleet_.target;
    target.arch = machines_.front().target.arch;
    require_one_architecture();
    lowest(
        "glibc", [](const Target& one) { return one.glibc == bundle::GlibcVersion{} ? "" : one.glibc.text(); },
        [&](const Target& one) { target.glibc = one.glibc; });
    lowest_text("glibcxx", &Target::glibcxx);
    lowest_text("cxxabi", &Target::cxxabi);
    lowest_text("kernel", &Target::kernel);
    lowest_text("cpu", &Target::cpu);
    lowest_text("driver", &Target::driver);
    lowest(
        "free_gib", [](const Target& one) { return one.free_gib ? std::to_string(*one.free_gib) : ""; },
        [&](const Target& one) { target.free_gib = one.free_gib; });
    of_all(&Target::flags);
    of_all(&Target::python);
    of_all(&Target::crypto);
    gpus();
    same_distribution();
    return std::move(fleet_);
  }

 private:
  void require_one_architecture() const {
    for (const FleetMachine& machine : machines_)
      if (machine.target.arch != fleet_.target.arch)
        throw Error(ErrorCode::Platform,
                    {.what = "the machines of the fleet are of two architectures, and a bundle is for one",
                     .where = machine.name,
                     .expected = fleet_.target.arch + ", as " + machines_.front().name + " is",
                     .got = machine.target.arch,
                     .next = "keep the probes of each architecture in a folder of their own, with a job for each"});
  }

  // "x86-64-v3" counts by its last digit, all else as a version.
  static Version rank(const std::string& text) {
    return Version::leading(text.starts_with("x86-64-v") ? text.substr(8) : text);
  }

  // `take` gets the first machine of those with the lowest value.
  template <class Value, class Take>
  void lowest(const std::string& key, const Value& value, const Take& take) {
    const FleetMachine *least = nullptr, *most = nullptr;
    std::string silent;
    for (const FleetMachine& machine : machines_) {
      if (value(machine.target).empty()) {
        if (key != "driver" || !machine.target.gpus.empty()) silent += (silent.empty() ? "" : ", ") + machine.name;
        continue;
      }
      if (least == nullptr || rank(value(machine.target)) < rank(value(least->target))) least = &machine;
      if (most == nullptr || rank(value(most->target)) < rank(value(machine.target))) most = &machine;
    }
    if (least == nullptr) return;
    take(least->target);
    if (rank(value(least->target)) < rank(value(most->target)))
      fleet_.floors.push_back(fmt::format("{} {} is that of {}; others have up to {}", key, value(least->target),
                                          least->name, value(most->target)));
    if (!silent.empty()) fleet_.floors.push_back(fmt::format("{} is not known of {}", key, silent));
  }
  void lowest_text(const char* key, std::string Target::*member) {
    lowest(
        key, [=](const Target& one) { return one.*member; },
        [&](const Target& one) { fleet_.target.*member = one.*member; });
  }

  void of_all(std::vector<std::string> Target::*list) {
    std::vector<std::string> common = machines_.front().target.*list;
    for (const FleetMachine& machine : machines_)
      std::erase_if(common, [&](const std::string& item) {
        const std::vector<std::string>& theirs = machine.target.*list;
        return std::find(theirs.begin(), theirs.end(), item) == theirs.end();
      });
    fleet_.target.*list = std::move(common);
  }

  // Each kind once, without its number: "8 x NVIDIA H200" on one node and 4 on the next are one kind.
  void gpus() {
    std::set<std::string> kinds;
    for (const FleetMachine& machine : machines_)
      for (const std::string& gpu : machine.target.gpus) {
        const std::size_t at = gpu.find(" x ");
        if (kinds.insert(gpu.substr(at == gpu.npos ? 0 : at + 3)).second) fleet_.target.gpus.push_back(gpu);
      }
  }

  void same_distribution() {
    const auto same = [&](const FleetMachine& machine) {
      return machine.target.distribution == machines_.front().target.distribution;
    };
    if (std::all_of(machines_.begin(), machines_.end(), same))
      fleet_.target.distribution = machines_.front().target.distribution;
  }

  const std::vector<FleetMachine>& machines_;
  FleetProfile fleet_;
};

}  // namespace

FleetProfile common_ground(const std::vector<FleetMachine>& machines) {
  return CommonGround(machines).run();
}

FleetProfile read_fleet(const fs::path& folder) {
  std::vector<FleetMachine> machines;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".toml")
      machines.push_back(
          {.name = bundle::SafePath::printable(entry.path().stem().string()), .target = read_profile(entry.path())});
  if (machines.empty())
    throw Error(ErrorCode::Missing, {.what = "the folder of target profiles holds none",
                                     .where = folder.string(),
                                     .expected = "a file NAME.toml of each machine",
                                     .next = "on each machine, `sealift-install probe` prints one"});
  std::sort(machines.begin(), machines.end(),
            [](const FleetMachine& a, const FleetMachine& b) { return a.name < b.name; });
  return common_ground(machines);
}

}  // namespace sealift::packager
