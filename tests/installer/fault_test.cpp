// SPDX-License-Identifier: Apache-2.0
// Every operation fails once with every error, or from then on: one clean refusal that says what to do, a prefix as
// whole as before, and a next run that ends as an undisturbed one does.
#include "tests/installer/crash_scenarios.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using Does = FaultyDisk::Does;

namespace {

[[maybe_unused]] const bool kFaultsInMemory = (use_memory_for_temporary_folders(), true);

struct Fault {
  const char* name;
  int error;
  bool lasts;
  bool (*concerns)(Does);
};

bool everything(Does) {
  return true;
}
bool what_allocates(Does what) {
  return what == Does::Allocates;
}
bool what_changes(Does what) {
  return what != Does::Syncs;
}

const Fault kFaults[] = {
    {"EIO once", EIO, false, everything},
    {"EIO from then on", EIO, true, everything},
    {"the disk is full", ENOSPC, true, what_allocates},
    {"the disk is full for a moment", ENOSPC, false, everything},
    {"the quota is used up", EDQUOT, true, what_allocates},
    {"remounted read-only", EROFS, true, what_changes},
    {"no descriptor is left", EMFILE, false, everything},
    {"the server forgot the folder", ESTALE, true, everything},
};

std::uint64_t operations_of(const Recording& recording, const Scenario& scenario) {
  write_image(recording.before, recording.root);
  FaultyDisk disk;
  scenario.act(recording.site, disk);
  return disk.operations();
}

// The refusal, or that there was none.
std::string fault_of_refusal(const Recording& recording, const Scenario& scenario, FaultyDisk& disk) {
  try {
    scenario.act(recording.site, disk);
    return disk.failed() ? "" : "the fault did not happen";
  } catch (const bundle::Error& error) {
    const bool known = error.code() == bundle::ErrorCode::Io || error.code() == bundle::ErrorCode::Space;
    return known && !error.facts().next.empty() && !error.facts().where.empty()
               ? ""
               : "unhelpful: " + std::string(error.what());
  } catch (const std::exception& error) {
    return std::string("not one of our refusals: ") + error.what();
  }
}

}  // namespace

TEST_CASE("a wheel that threads share is named when all of it is there, whatever fails in the hands of which thread") {
  Site site;
  site.threads = 6;
  const MadeBundle made = site.make(one_large_wheel());
  const fs::path root = site.prefix().folder();
  FaultyDisk undisturbed;
  site.apply(made, undisturbed);
  const DiskImage after = comparable(read_image(root));
  GoodParts good;
  good.learn(read_image(root));
  for (std::uint64_t k = 1; k <= undisturbed.operations(); ++k) {
    CAPTURE(k);
    write_image({}, root);
    FaultyDisk disk(EIO, [&](std::uint64_t number, Does) { return number == k; });
    try {
      site.apply(made, disk);  // cleaning up may fail without a word
    } catch (const bundle::Error& error) {
      CHECK(error.code() == bundle::ErrorCode::Io);
    }
    CHECK(disk.failed());
    REQUIRE(good.fault_of(read_image(root), {}, after) == "");
    TestDisk next;
    site.apply(made, next);
    REQUIRE(difference(comparable(read_image(root)), after) == "");
  }
}

TEST_CASE("an operation that fails ends in one refusal with a remedy, loses nothing, and the next run makes it whole") {
  std::size_t points = 0, runs = 0;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(std::string(scenario.name));
    if (!scenario.hard_links) continue;  // FaultyDisk has them
    const Recording recording(scenario);
    const std::uint64_t operations = operations_of(recording, scenario);
    const bool every_fault = operations < 100 || std::string(scenario.name).starts_with("second version");
    std::set<std::string> seen;
    for (std::uint64_t k = 1; k <= operations; ++k)
      for (std::size_t f = 0; f < std::size(kFaults); ++f) {
        const Fault& fault = kFaults[f];
        if (!every_fault && (k + f) % std::size(kFaults) > 1) continue;
        CAPTURE(k);
        CAPTURE(fault.name);
        bool concerned = false;
        FaultyDisk disk(fault.error, [&](std::uint64_t number, Does what) {
          if (!fault.concerns(what) || number < k || (concerned && !fault.lasts)) return false;
          return concerned = true;
        });
        write_image(recording.before, recording.root);
        const std::string refusal = fault_of_refusal(recording, scenario, disk);
        REQUIRE((refusal == "" || (!concerned && refusal == "the fault did not happen")));
        ++points;
        const DiskImage left = read_image(recording.root);
        REQUIRE(recording.good.fault_of(left, recording.before, recording.after) == "");
        if (!seen.insert(key_of(comparable(left))).second) continue;
        ++runs;
        REQUIRE(fault_of_next_run(recording, scenario, left) == "");
      }
  }
  MESSAGE(points << " faults, " << runs << " different disks");
  CHECK(points >= 2000);
}
