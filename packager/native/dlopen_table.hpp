// SPDX-License-Identifier: Apache-2.0
// What is known about libraries that are opened by name while a program runs (dlopen): no ELF table shows them, and a
// bundle without one looks complete until that code is reached. The table is kept by hand, in dlopen_table.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sealift::packager {

// `{V}` is what follows ".so" in the opener's own name: libcudnn.so.9 opens libcudnn_ops.so.9. `*` as in a shell.
struct DlopenRule {
  enum class Kind {
    Required,  // without it the opener fails when it is used
    Optional,  // the opener does without it, or the site brings it
  };

  std::string_view opener;  // its SONAME, or its file name when it has none
  std::string_view opened;
  Kind kind;
  std::string_view why;
};

std::span<const DlopenRule> dlopen_table();

// A library that is opened only where its own needs are met: what it misses is no fault of the bundle.
struct OptionalPlugin {
  std::string_view name;  // a pattern
  std::string_view why;
};

std::span<const OptionalPlugin> optional_plugins();

bool matches(std::string_view pattern, const std::string& name);
// `rule.opened` for this very opener.
std::string opened_by(const DlopenRule& rule, const std::string& opener);
// Does any rule speak of this name, as text in a program spells it (libnvrtc.so, libnvrtc.so.%d, libnvrtc.so.13)?
bool is_known_to_be_opened(const std::string& name);
bool is_optional_plugin(const std::string& name);

}  // namespace sealift::packager
