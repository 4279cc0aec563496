// SPDX-License-Identifier: Apache-2.0
// The table of what a wheel may place, by scheme and folder. Everything else is refused: what Python, the dynamic
// linker or a shell reads by itself is found by no review of a program. The packager asks before anything crosses the
// gap and the installer before it lays out a generation, so that neither relies on the other.
// Sources: Lib/site.py and Modules/getpath.py of CPython 3.8 to 3.14; ld.so(8); POSIX.1-2017, "Utilities".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/wheel/scheme.hpp"

namespace sealift::bundle {

struct PlaceFault {
  ErrorCode code = ErrorCode::Format;  // Conflict: the place is somebody else's
  std::string why;
  std::string next;  // what a person can do
};

// Why a wheel whose metadata folder is `dist_info` must not place `path`, which is below the folder of `scheme`;
// nothing when it may. Contents are not looked at: see wheel_startup.hpp. Upper and lower case count as one.
std::optional<PlaceFault> fault_of_place(Scheme scheme, std::string_view path, std::string_view dist_info);

// Whether a wheel's file below site-packages is what Python keeps of a compiled module: __pycache__/NAME.pyc. It is
// never placed, since that it is of its source is the wheel's own word.
bool is_cached_bytecode(std::string_view path);

// Why an entry other than a wheel must not place `path`, below the root of a generation whose interpreter is
// `interpreter`: a file or link of the job, such as a program, a library or a model's file. A job may name what a wheel
// may not, such as a program of the system; what belongs to Python, the carried C library or the driver stays theirs.
std::optional<PlaceFault> fault_of_entry_place(std::string_view path, std::string_view interpreter);

// The same as an Error, for `wheel`.
void check_place(Scheme scheme, std::string_view path, std::string_view dist_info, const std::string& wheel);

}  // namespace sealift::bundle
