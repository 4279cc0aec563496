// SPDX-License-Identifier: Apache-2.0
// Python loads the compiled files without checking them against their sources (unchecked-hash, PEP 552): a generation
// is never edited, and file times would not survive a copy. The paths in them are relative, so the same sources give
// the same bytes; Python fills in the real path when it loads one.
#include "installer/trial/bytecode.hpp"

#include <fstream>
#include <mutex>

#include "installer/trial/bare_environment.hpp"
#include "installer/trial/self_check_scripts.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/host/child_process.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// All modules below the parent of site-packages, such as lib/python3.11, so with the standard library.
void write_list(const bundle::Environment& environment, const Layout& layout, const fs::path& list) {
  const std::string folder = fs::path(environment.site_packages.text()).parent_path().generic_string() + "/";
  std::ofstream out(list, std::ios::binary);
  for (const auto& [path, place] : layout)
    if (place.type == Place::Type::File && path.starts_with(folder) && path.ends_with(".py")) out << path << "\n";
  if (!out.flush()) bundle::throw_errno("a list of modules cannot be written", list, EIO);
}

}  // namespace

BytecodeCount compile_bytecode(const bundle::Environment& environment, const Layout& layout, const fs::path& generation,
                               const fs::path& scratch, unsigned threads, std::chrono::seconds patience) {
  const fs::path list = scratch / "modules";
  write_list(environment, layout, list);
  const auto answer_of = [&](unsigned part) { return scratch / ("compiled-" + std::to_string(part)); };
  BytecodeCount count;
  std::mutex guard;
  bundle::parallel_for(threads, threads, [&](std::size_t index) {
    const auto part = static_cast<unsigned>(index);
    const bundle::Child child{.arguments = {environment.interpreter.below(generation).string(), "-I", "-B", "-c",
                                            kCompileScript, generation.string(), list.string(),
                                            answer_of(part).string(), std::to_string(part), std::to_string(threads)},
                              .environment = bare_environment(environment.interpreter.below(generation), scratch),
                              .patience = patience};
    const bundle::ChildEnd end = bundle::run_child(child);
    if (!end.good())
      throw bundle::Error(
          bundle::ErrorCode::SelfTest,
          {.what = "the modules cannot be compiled; the generation in use was not touched",
           .where = environment.interpreter.text(),
           .got = end.text(child),
           .next = "run apply without --compile-bytecode, and send this message to who packed the bundle"});
    std::uint64_t compiled = 0, passed_over = 0;
    std::ifstream(answer_of(part)) >> compiled >> passed_over;
    const std::lock_guard lock(guard);
    count.compiled += compiled;
    count.passed_over += passed_over;
  });
  return count;
}

}  // namespace sealift::installer
