// SPDX-License-Identifier: Apache-2.0
// The `check` is that of the profile's text, so that JSON and TOML of one machine can be matched.
#include "installer/print/machine_report.hpp"

#include "sealift/bundle/manifest/target_profile.hpp"

namespace sealift::installer {

bundle::Json json_of(const Machine& machine) {
  const bundle::Target& target = machine.target;
  const auto known = [](const std::string& text) { return text.empty() ? bundle::Json() : bundle::Json(text); };
  const bool libc = target.glibc != bundle::GlibcVersion{};
  return {{"arch", target.arch},
          {"glibc", libc ? bundle::Json(target.glibc.text()) : bundle::Json()},
          {"libc", known(machine.libc.string())},
          {"glibcxx", known(target.glibcxx)},
          {"cxxabi", known(target.cxxabi)},
          {"distribution", known(target.distribution)},
          {"kernel", known(target.kernel)},
          {"cpu", known(target.cpu)},
          {"flags", target.flags},
          {"gpus", target.gpus},
          {"driver", known(target.driver)},
          {"python", target.python},
          {"crypto", target.crypto},
          {"free_gib", target.free_gib ? bundle::Json(*target.free_gib) : bundle::Json()},
          {"check", bundle::profile_check(target)}};
}

std::string text_of(const Machine& machine) {
  std::string text = "# Save as a file; a job: [target] profile = \"FILE.toml\"\n";
  if (machine.libc.empty()) text += "# glibc: no libc.so.6 of this architecture was found\n";
  return text + bundle::write_profile(machine.target);
}

}  // namespace sealift::installer
