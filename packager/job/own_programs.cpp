// SPDX-License-Identifier: Apache-2.0
// Name -> files; see own_programs.hpp.
#include "packager/job/own_programs.hpp"

#include <algorithm>

#include "packager/host/own_program.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

struct OwnProgram {
  std::string_view name;
  const char* component;  // of `cmake --install`
  bool trains = false;    // so its CUDA half is loaded where there is a driver
  bool has_presets = false;
};

constexpr OwnProgram kPrograms[] = {{"sealift-train", "trainer", true, true},
                                    {"sealift-verify", "trainer", true},
                                    {"sealift-launch", "tools"},
                                    {"sealift-repo", "tools"},
                                    {"sealift-install", "tools"}};
constexpr const char* kCudaHalf = "lib/libsealift_train_cuda.so";
constexpr const char* kPresets = "share/sealift/presets";

std::vector<JobProgram> presets_of(const fs::path& root) {
  std::vector<JobProgram> presets;
  std::error_code ignored;  // then there are none
  for (const fs::directory_entry& file : fs::directory_iterator(root / kPresets, ignored))
    if (file.path().extension() == ".toml" && file.is_regular_file())
      presets.push_back({.source = file.path(),
                         .into = std::string(kPresets) + "/" + file.path().filename().string(),
                         .executable = false});
  std::sort(presets.begin(), presets.end(), [](const auto& a, const auto& b) { return a.into < b.into; });
  return presets;
}

}  // namespace

std::vector<JobProgram> read_own_program(TomlTable& table, const fs::path& folder) {
  const std::string name = table.string("name");
  const OwnProgram* const own =
      std::find_if(std::begin(kPrograms), std::end(kPrograms), [&](const OwnProgram& one) { return one.name == name; });
  if (own == std::end(kPrograms))
    table.refuse("name", "Sealift has no program of this name",
                 "sealift-train, sealift-verify, sealift-launch, sealift-repo or sealift-install", name,
                 "give another program by source and into");
  for (const char* key : {"source", "into", "executable"})
    table.attempt([&] {
      table.ignore(key);
      if (table.has(key)) table.refuse(key, "a program by name has its own place", "name, and from if it is needed");
    });
  fs::path root;
  table.attempt([&] {
    root = table.has("from") ? fs::absolute(folder / table.string("from")).lexically_normal() : own_installation();
  });
  table.done();
  // Where something in bin starts it, as in the trainer's wheel and in a prefix, the program itself is in libexec;
  // where bin has a link to it, as in an archive, a .deb and a .rpm, in lib/sealift/bin.
  fs::path place = "bin";
  for (const char* behind : {"libexec", "lib/sealift/bin"})
    if (fs::is_regular_file(root / behind / name)) place = behind;
  const JobProgram program{.source = root / place / name, .into = "bin/" + name};
  if (!fs::is_regular_file(program.source))
    table.refuse(
        table.has("from") ? "from" : "name", "the program is not installed there", "a file", program.source.string(),
        std::string("cmake --install BUILD --component ") + own->component + " --prefix DIR, then from = \"DIR\"");
  std::vector<JobProgram> programs = {program};
  if (own->trains && fs::is_regular_file(root / kCudaHalf))
    programs.push_back({.source = root / kCudaHalf, .into = kCudaHalf, .executable = false});
  if (own->has_presets)
    for (JobProgram& preset : presets_of(root)) programs.push_back(std::move(preset));
  return programs;
}

}  // namespace sealift::packager
