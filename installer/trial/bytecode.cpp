// SPDX-License-Identifier: Apache-2.0
// Compiled files are checked against nothing when they are loaded (unchecked-hash, PEP 552): a generation is never
// edited, and times of files would not survive a copy. The paths in them are relative, so the same sources give the
// same bytes; Python puts the real path in when it loads one.
#include "installer/trial/bytecode.hpp"

#include <fstream>
#include <future>

#include "installer/trial/bare_environment.hpp"
#include "installer/trial/self_check_scripts.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/child_process.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// Those below the folder that holds site-packages, such as lib/python3.11: the standard library too.
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
  std::vector<std::pair<bundle::Child, std::future<bundle::ChildEnd>>> children;
  for (unsigned part = 0; part < threads; ++part) {
    bundle::Child child{.arguments = {environment.interpreter.below(generation).string(), "-I", "-B", "-c",
                                      kCompileScript, generation.string(), list.string(), answer_of(part).string(),
                                      std::to_string(part), std::to_string(threads)},
                        .environment = bare_environment(environment.interpreter.below(generation), scratch),
                        .patience = patience};
    std::future<bundle::ChildEnd> end = std::async(std::launch::async, [child] { return bundle::run_child(child); });
    children.emplace_back(std::move(child), std::move(end));
  }
  BytecodeCount count;
  for (unsigned part = 0; part < threads; ++part) {
    auto& [child, running] = children[part];
    const bundle::ChildEnd end = running.get();
    std::uint64_t compiled = 0, passed_over = 0;
    if (end.good()) std::ifstream(answer_of(part)) >> compiled >> passed_over;
    if (!end.good())
      throw bundle::Error(
          bundle::ErrorCode::SelfTest,
          {.what = "the modules cannot be compiled; the generation in use was not touched",
           .where = environment.interpreter.text(),
           .got = end.text(child),
           .next = "run apply without --compile-bytecode, and send this message to who packed the bundle"});
    count.compiled += compiled;
    count.passed_over += passed_over;
  }
  return count;
}

}  // namespace sealift::installer
