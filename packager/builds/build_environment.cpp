// SPDX-License-Identifier: Apache-2.0
// uv pip compile, uv venv, uv pip sync; see build_environment.hpp.
#include "packager/builds/build_environment.hpp"

#include "packager/builds/build_step.hpp"
#include "packager/builds/cuda_toolkit.hpp"
#include "packager/host/uv.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "packager/resolve/uv_refusal.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::ErrorCode;

ProcessResult BuildEnvironment::run_uv(std::vector<std::string> words) const {
  words.insert(words.begin(), tools_.uv.string());
  return packager::run_uv(words, {}, watch_of(order_, tools_, "what its build requires"));
}

void BuildEnvironment::uv(const std::vector<std::string>& words, const char* what) const {
  const ProcessResult result = run_uv(words);
  if (result.exit_code != 0) refuse_build(order_, refusal_of(result.err).code, what, last_lines(result.err, 10));
}

// Anew for each set of packages: uv asks the interpreter of an environment about itself, and in one that holds
// packages their startup files would answer, outside of the sandbox.
void BuildEnvironment::make_environment() const {
  fs::remove_all(folder());
  uv({"venv", "--quiet", "--no-project", "--python", tools_.python.string(), folder().string()},
     "an environment for the build cannot be made");
}

std::vector<std::string> BuildEnvironment::pinned(const std::vector<std::string>& wanted) const {
  if (wanted.empty()) return {};
  const auto write = [&](const char* name, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    fs::remove(place_ / name);
    bundle::write_text(place_ / name, text);
    return (place_ / name).string();
  };
  std::vector<std::string> words = {"pip", "compile", write("wanted.txt", wanted)};
  if (!tools_.build_constraints.empty())
    words.insert(words.end(), {"--constraints", write("constraints.txt", tools_.build_constraints)});
  words.insert(words.end(), tools_.index_words.begin(), tools_.index_words.end());
  fs::remove(place_ / "pinned.txt");
  words.insert(words.end(), {"--generate-hashes", "--no-annotate", "--no-header", "--quiet", "--no-build", "--python",
                             tools_.python.string(), "-o", (place_ / "pinned.txt").string()});
  uv(words, "what the build requires cannot be resolved to wheels");
  std::vector<std::string> lines = requirement_lines(bundle::read_text(place_ / "pinned.txt", 16 << 20));
  std::erase_if(lines, [](const std::string& line) { return line.starts_with('-'); });  // index options
  require_one_release(lines);
  return lines;
}

// Before gigabytes are fetched for a compilation that its assembler ends.
void BuildEnvironment::require_one_release(const std::vector<std::string>& pins) const {
  std::map<std::string, std::string> versions;
  for (const std::string& line : pins)
    if (const std::size_t equals = line.find("=="); equals != line.npos)
      versions[line.substr(0, equals)] = line.substr(equals + 2, line.find_first_of(" ;", equals) - equals - 2);
  if (const std::optional<NewerCompiler> found = newer_compiler(versions))
    refuse_build(order_, ErrorCode::Platform, "what the build requires does not work together",
                 "nvidia-nvvm " + found->nvvm + " is newer than nvidia-cuda-nvcc " + found->nvcc + ": require " +
                     found->requirement());
}

void BuildEnvironment::install(const std::vector<std::string>& pins) {
  installed_ = pins;
  make_environment();
  if (pins.empty()) return;
  fetch(pins);
  if (const fs::path toolkit = cuda_toolkit(site_packages()); !toolkit.empty()) link_libraries(toolkit);
}

void BuildEnvironment::fetch(const std::vector<std::string>& pins) const {
  std::string text;
  for (const std::string& line : pins) text += line + "\n";
  fs::remove(place_ / "requirements.txt");
  bundle::write_text(place_ / "requirements.txt", text);
  std::vector<std::string> words = {"pip",        "sync",        "--quiet", "--require-hashes",
                                    "--no-build", "--link-mode", "copy"};  // a link would be uv's own cached file
  words.insert(words.end(), tools_.index_words.begin(), tools_.index_words.end());
  words.insert(words.end(), {"--python", (folder() / "bin/python").string(), (place_ / "requirements.txt").string()});
  // What an earlier build used is probably still in uv's own cache, and there may be no network any more.
  std::vector<std::string> offline = words;
  offline.push_back("--offline");
  if (order_.again && run_uv(offline).exit_code == 0) return;
  if (order_.again) make_environment();
  uv(words, "what the build requires cannot be installed");
}

fs::path BuildEnvironment::site_packages() const {
  return folder() / "lib" / ("python" + tools_.python_version.substr(0, tools_.python_version.rfind('.'))) /
         "site-packages";
}

}  // namespace sealift::packager
