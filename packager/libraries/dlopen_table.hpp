// SPDX-License-Identifier: Apache-2.0
// Libraries that are known to be opened by name while a program runs (dlopen). No ELF table lists them, so a bundle
// without one looks complete until that code is reached. The table is kept by hand, in dlopen_table.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sealift::packager {

// `{V}` stands for what follows ".so" in the opener's own name: libcudnn.so.9 opens libcudnn_ops.so.9. `*` matches as
// in a shell.
struct DlopenRule {
  enum class Kind {
    Required,  // the opener fails without it, once it is used
    Optional,  // the opener works without it, or the site provides it
  };

  std::string_view opener;  // its SONAME, or its file name when it has none
  std::string_view opened;
  Kind kind;
  std::string_view why;
};

std::span<const DlopenRule> dlopen_table();

bool matches(std::string_view pattern, const std::string& name);
// `rule.opened` with the version of this opener.
std::string opened_by(const DlopenRule& rule, const std::string& opener);
// Whether any rule covers this name, as text in a program spells it (libnvrtc.so, libnvrtc.so.%d, libnvrtc.so.13).
bool is_known_to_be_opened(const std::string& name);

}  // namespace sealift::packager
