// SPDX-License-Identifier: Apache-2.0
// What the crashes of crash_test.cpp have found, one case each, so that it stays found.
#include "installer/generations/generation.hpp"
#include "tests/installer/crash_scenarios.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

[[maybe_unused]] const bool kRecoveryInMemory = (use_memory_for_temporary_folders(), true);

// One run after the other on the same disk, each written down behind the one before.
struct Night {
  CrashSite site;
  fs::path root = site.prefix().folder();
  std::optional<CrashModel> model;

  void begin() { model.emplace(read_image(root)); }
  template <class Act>
  void run(const Act& act) {
    RecordingDisk disk(root, *model);
    act(disk);
  }
  // The process was killed right behind the first operation that made `holds` true.
  template <class Holds>
  void kill_once(const Holds& holds) {
    std::size_t k = 0;
    while (!holds(model->image(k, Loss::Nothing))) ++k;
    model = model->killed_after(k);
    write_image(model->image(k, Loss::Nothing), root);
  }
  DiskImage after_power_cut() const { return model->image(model->size(), Loss::All); }
};

bool leads_somewhere(const DiskImage& image) {
  const auto current = image.find("current");
  return current == image.end() || image.contains(current->second.node.data);
}

}  // namespace

TEST_CASE("a generation that was named but not yet current when its run was killed is not built a second time") {
  const CrashSite site;
  TestDisk disk;
  site.apply(site.first, disk);
  fs::remove(site.current());
  const Applied again = site.apply(site.first, disk);
  CHECK(again.action == InstallPlan::Action::SwitchTo);
  CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1});
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
}

TEST_CASE("current is never made durable before the name that it leads to, though a killed run gave that name") {
  Night night;
  first_installed(night.site);
  night.begin();
  night.run([&](Disk& disk) { apply_second(night.site, disk); });
  night.kill_once([](const DiskImage& image) { return image.contains("generations/0002"); });
  const std::size_t killed = night.model->size();
  night.run([&](Disk& disk) { apply_second(night.site, disk); });
  CHECK(night.after_power_cut().at("current").node.data == "generations/0002");
  for (std::size_t k = killed; k <= night.model->size(); ++k)
    for (unsigned seed = 0; seed < 20; ++seed) CHECK(leads_somewhere(night.model->image(k, Loss::Some, seed)));
}

TEST_CASE("a run that finds its bundle installed by a killed one makes that durable before it says so") {
  Night night;
  first_installed(night.site);
  night.begin();
  night.run([&](Disk& disk) { apply_second(night.site, disk); });
  night.kill_once([](const DiskImage& image) { return image.at("current").node.data == "generations/0002"; });
  CHECK(night.after_power_cut().at("current").node.data == "generations/0001");
  night.run(
      [&](Disk& disk) { CHECK(night.site.apply(night.site.second, disk).action == InstallPlan::Action::Nothing); });
  CHECK(night.after_power_cut().at("current").node.data == "generations/0002");
}

TEST_CASE("a trust state of which a killed run wrote one copy is written into both by the next, and is durable then") {
  Night night;
  first_installed(night.site);
  const DiskImage before = read_image(night.root);
  const auto update = [&](Disk& disk) { return update_root(night.site.prefix(), disk, {night.site.next_root}); };
  const auto copy = [](const DiskImage& image, const char* name) { return image.at(name).node.data; };
  night.begin();
  night.run([&](Disk& disk) { CHECK(update(disk).changed); });
  night.kill_once([&](const DiskImage& image) {
    return copy(image, "trust/state.a") != copy(before, "trust/state.a") ||
           copy(image, "trust/state.b") != copy(before, "trust/state.b");
  });
  const DiskImage killed = read_image(night.root);
  CHECK(copy(killed, "trust/state.a") != copy(killed, "trust/state.b"));
  night.run([&](Disk& disk) { CHECK_FALSE(update(disk).changed); });
  const DiskImage after = night.after_power_cut();
  CHECK(copy(after, "trust/state.a") == copy(after, "trust/state.b"));
  CHECK(copy(after, "trust/state.a") != copy(before, "trust/state.a"));
  CHECK(copy(after, "trust/state.b") != copy(before, "trust/state.b"));
}

TEST_CASE("items that wait in staging lose their names before they are removed, so none is taken for whole in part") {
  Night night;
  night.site.interrupted(night.site.other);
  const DiskImage before = read_image(night.root);
  GoodParts good;
  good.learn(before);
  night.begin();
  night.run([&](Disk& disk) { apply_first(night.site, disk); });
  good.learn(read_image(night.root));
  CHECK(!fs::exists(night.site.prefix().staging()));
  for (std::size_t k = 0; k <= night.model->size(); ++k)
    for (const Loss loss : {Loss::Nothing, Loss::Some}) {
      const DiskImage left = night.model->image(k, loss, static_cast<unsigned>(k));
      CHECK(good.fault_of(left, before, read_image(night.root)) == "");
    }
}

TEST_CASE("a killed run's leftovers are gone once the next has found the bundle installed") {
  Night night;
  night.site.interrupted(night.site.other);
  night.begin();
  night.run([&](Disk& disk) { apply_first(night.site, disk); });
  night.kill_once([](const DiskImage& image) { return image.contains("current"); });
  CHECK(fs::exists(night.site.prefix().staged_items()));
  night.run([&](Disk& disk) { apply_first(night.site, disk); });
  CHECK(!fs::exists(night.site.prefix().staging()));
}

TEST_CASE("a full disk, a full quota and a read-only file system each come with what to do about it") {
  const auto remedy_of = [](int error) {
    return refusal([&] { throw_disk_error("a file cannot be written", "/prefix/store/x", error); });
  };
  CHECK(remedy_of(ENOSPC).code() == bundle::ErrorCode::Space);
  CHECK(mentions(remedy_of(ENOSPC), "make room"));
  CHECK(remedy_of(EDQUOT).code() == bundle::ErrorCode::Space);
  CHECK(mentions(remedy_of(EDQUOT), "quota"));
  CHECK(remedy_of(EROFS).code() == bundle::ErrorCode::Io);
  CHECK(mentions(remedy_of(EROFS), "read-only"));
  CHECK(mentions(remedy_of(EROFS), "/prefix/store/x"));
}

namespace {

// Leaves out what makes things durable.
class ForgetfulDisk final : public RecordingDisk {
 public:
  ForgetfulDisk(fs::path root, CrashModel& model, bool bytes) : RecordingDisk(std::move(root), model), bytes_(bytes) {}
  void sync_all(const fs::path& path) override {
    if (!bytes_) RecordingDisk::sync_all(path);
  }
  void sync_folder(const fs::path& path) override {
    if (bytes_) RecordingDisk::sync_folder(path);
  }

 private:
  bool bytes_;
};

}  // namespace

TEST_CASE("the crash model finds out a disk that forgets to sync, be it bytes or names") {
  for (const bool bytes : {true, false}) {
    CAPTURE(bytes);
    Night night;
    first_installed(night.site);
    const DiskImage before = read_image(night.root);
    night.begin();
    ForgetfulDisk disk(night.root, *night.model, bytes);
    apply_second(night.site, disk);
    const DiskImage after = read_image(night.root);
    GoodParts good;
    good.learn(after);
    int found = 0;
    for (std::size_t k = 0; k <= night.model->size(); ++k)
      for (unsigned seed = 0; seed < 3; ++seed)
        found += good.fault_of(night.model->image(k, Loss::Some, seed), before, after) != "";
    found += good.fault_of_end(night.after_power_cut(), before, after) != "";
    CHECK(found > 0);
  }
}
