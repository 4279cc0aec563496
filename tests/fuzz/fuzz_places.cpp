// SPDX-License-Identifier: Apache-2.0
// The table of places: the input is a scheme, a wheel's metadata folder and a path. What is let through lies in none of
// the places that belong to Python, the runtime or the system, whatever its upper and lower case.
#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/wheel_places.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

void hold_to_promises(const std::string& place) {
  for (const char* beginning : {"lib/python3.11/os", "lib/python311", "lib/runtime/", "include/python"})
    must(!place.starts_with(beginning), "what is Python's or the runtime's stays theirs");
  for (const char* name : {"pyvenv.cfg", "bin/python4", "bin/activate", "lib/libc.so.6", "bin/pyvenv.cfg"})
    must(place != name, "nobody takes the interpreter's place");
}

}  // namespace

FUZZ(text) {
  if (text.empty()) return;
  const auto scheme = static_cast<Scheme>(static_cast<unsigned char>(text[0]) % 4);
  const std::size_t cut = std::min(text.find('\0', 1), text.size());
  const std::string info(text.substr(1, cut - 1)), path(text.substr(std::min(cut + 1, text.size())));
  accepted([&] {
    SafePath::parse(info, "info"), SafePath::parse(path, "path");
    if (info.find('/') != info.npos) return;
    if (!fault_of_entry_place(path, "bin/python3.11")) hold_to_promises(case_folded(path));
    if (scheme == Scheme::Headers || fault_of_place(scheme, path, info)) return;
    const std::string place = case_folded(installed_path(scheme, path, info, "lib/python3.11/site-packages"));
    hold_to_promises(place);
    must(!place.starts_with("lib/python3.11/site-packages/sitecustomize."), "nothing is run when Python starts");
  });
}
