// SPDX-License-Identifier: Apache-2.0
// The power goes, or the process is killed, before and behind every operation of everything that changes a prefix; with
// and without what was not synced, by parts and with torn writes. Each time: whatever has a name is whole, nothing that
// was there is lost, `current` leads to a good generation, and the next run ends as an undisturbed one does.
// Each scenario is run once and written down; what a crash leaves is then worked out on paper (crash_model.hpp), put on
// a disk and given to the next run.
#include "tests/installer/crash_scenarios.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

[[maybe_unused]] const bool kCrashInMemory = (use_memory_for_temporary_folders(), true);

}  // namespace

TEST_CASE("a crash at any operation loses nothing, shows nothing half done, and the next run makes it whole") {
  std::size_t points = 0, runs = 0;
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(std::string(scenario.name));
    const Recording recording(scenario);
    const CrashModel& model = *recording.model;
    REQUIRE(difference(comparable(model.image(model.size(), Loss::Nothing)), comparable(recording.after)) == "");
    std::set<std::string> seen;  // many crashes leave the same
    const auto check = [&](const DiskImage& left) {
      ++points;
      const std::string fault = recording.good.fault_of(left, recording.before, recording.after);
      REQUIRE(fault == "");
      if (!seen.insert(key_of(left)).second) return;
      ++runs;
      REQUIRE(fault_of_next_run(recording, scenario, left) == "");
    };
    for (std::size_t k = 0; k <= model.size(); ++k) {
      CAPTURE(k);
      for (const auto& [loss, seeds] :
           {std::pair(Loss::Nothing, 1u), {Loss::Bytes, 1}, {Loss::All, 1}, {Loss::Some, 3}})
        for (unsigned seed = 0; seed < seeds; ++seed) {
          CAPTURE(static_cast<int>(loss));
          CAPTURE(seed);
          check(model.image(k, loss, seed * 1000 + static_cast<unsigned>(k)));
        }
      if (k < model.size() && model.writes(k)) check(model.image(k, Loss::Nothing, 0, true));
    }
    const DiskImage end = model.image(model.size(), Loss::All);
    CHECK(recording.good.fault_of_end(end, recording.before, recording.after) == "");
  }
  MESSAGE(points << " crash points, " << runs << " different disks");
  CHECK(points >= 4000);
}

TEST_CASE("what a run says is done survives a power cut, also when the run before it was killed at any operation") {
  for (const Scenario& scenario : kScenarios) {
    CAPTURE(std::string(scenario.name));
    const Recording recording(scenario);
    for (std::size_t k = 0; k <= recording.model->size(); ++k) {
      CAPTURE(k);
      CrashModel model = recording.model->killed_after(k);
      write_image(model.image(k, Loss::Nothing), recording.root);
      RecordingDisk disk(recording.root, model, recording.hard_links);
      scenario.act(recording.site, disk);
      const auto check = [&](std::size_t count, Loss loss) {
        REQUIRE(recording.good.fault_of(model.image(count, loss, static_cast<unsigned>(k)), recording.before,
                                        recording.after) == "");
      };
      for (std::size_t at = 0; at < 8; ++at) {
        const std::size_t count = k + (model.size() - k) * at / 8;
        CAPTURE(count);
        check(count, Loss::All);
        check(count, Loss::Some);
      }
      for (const Loss loss : {Loss::All, Loss::Some, Loss::Bytes})
        REQUIRE(recording.good.fault_of_end(model.image(model.size(), loss), recording.before, recording.after) == "");
    }
  }
}
