// SPDX-License-Identifier: Apache-2.0
// The table: everything that changes a prefix, on the prefixes on which it is done, for the tests that cut it short or
// have it fail at each of its operations.
#pragma once

#include "tests/installer/crash_site.hpp"

namespace sealift::test {

struct Scenario {
  const char* name;
  void (*before)(const CrashSite&);
  void (*act)(const CrashSite&, installer::Disk&);
  bool hard_links = true;
};

inline void nothing(const CrashSite&) {}
inline void first_installed(const CrashSite& site) {
  TestDisk disk;
  site.apply(site.first, disk);
}
inline void both_installed(const CrashSite& site) {
  TestDisk disk;
  site.apply(site.first, disk);
  site.apply(site.second, disk);
}
inline void apply_first(const CrashSite& site, installer::Disk& disk) {
  site.apply(site.first, disk);
}
inline void apply_second(const CrashSite& site, installer::Disk& disk) {
  site.apply(site.second, disk);
}

inline const Scenario kScenarios[] = {
    {"fresh prefix", nothing, apply_first},
    {"fresh prefix without hard links", nothing, apply_first, false},
    {"second version over the first", first_installed, apply_second},
    {"after a disc that could not be read", [](const CrashSite& site) { site.interrupted(site.first); }, apply_first},
    {"while another bundle's items wait", [](const CrashSite& site) { site.interrupted(site.other); }, apply_second},
    {"the older bundle again", both_installed,
     [](const CrashSite& site, installer::Disk& disk) { site.apply(site.first, disk, false, true); }},
    {"switch", both_installed,
     [](const CrashSite& site, installer::Disk& disk) { installer::switch_to(site.prefix(), 1, disk); }},
    {"trust add", nothing,
     [](const CrashSite& site, installer::Disk& disk) {
       installer::pin_root(site.prefix(), disk, {site.first.folder}, *site.first.trusted.state.pinned);
     }},
    {"trust update", first_installed,
     [](const CrashSite& site, installer::Disk& disk) {
       installer::update_root(site.prefix(), disk, {site.next_root});
     }},
};

// The scenario as it goes undisturbed, written down.
struct Recording {
  CrashSite site;
  fs::path root = site.prefix().folder();
  bool hard_links;
  DiskImage before, after;
  std::optional<CrashModel> model;
  GoodParts good;

  explicit Recording(const Scenario& scenario) : hard_links(scenario.hard_links) {
    scenario.before(site);
    before = read_image(root);
    model.emplace(before);
    RecordingDisk disk(root, *model, hard_links);
    scenario.act(site, disk);
    after = read_image(root);
    good.learn(before);
    good.learn(after);
  }
};

// The next run's disk, with the same kind of links.
class NextDisk final : public TestDisk {
 public:
  explicit NextDisk(bool hard_links) : hard_links_(hard_links) {}
  bool link(const installer::FileName& from, const installer::FileName& to) override {
    return hard_links_ && TestDisk::link(from, to);
  }

 private:
  bool hard_links_;
};

inline std::string difference(const DiskImage& got, const DiskImage& expected) {
  for (const auto& [path, there] : expected)
    if (const auto found = got.find(path); found == got.end()) return path + " is missing";
  for (const auto& [path, there] : got) {
    const auto found = expected.find(path);
    if (found == expected.end()) return path + " is too much";
    if (found->second != there) return path + " differs";
  }
  return {};
}

inline std::string fault_of_next_run(const Recording& recording, const Scenario& scenario, const DiskImage& left) {
  write_image(left, recording.root);
  NextDisk disk(recording.hard_links);
  try {
    scenario.act(recording.site, disk);
  } catch (const std::exception& error) {
    return std::string("the next run fails: ") + error.what();
  }
  return difference(comparable(read_image(recording.root)), comparable(recording.after));
}

// Equal for equal images.
inline std::string key_of(const DiskImage& image) {
  std::string text;
  for (const auto& [path, there] : image)
    text += path + '\0' + there.twin + '\0' + std::to_string(there.node.mode) + '\0' + there.node.data + '\0';
  return bundle::sha256(bundle::as_bytes(text)).hex();
}

}  // namespace sealift::test
