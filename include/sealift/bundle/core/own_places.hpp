// SPDX-License-Identifier: Apache-2.0
// Every name below a generation's root that Sealift itself reads, runs or tells people to use, in one list. Entries of
// the signed manifest place them, and no wheel does: who writes a package would else decide what our programs read, or
// what root's apt takes. Packager and installer both ask; a new key or folder that a program reads is added here, and
// tests/bundle/own_places_test.py fails for one that is not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

struct OwnPlace {
  std::string_view path;   // itself and all below it; with '*' at its end, all names that begin so
  std::string_view entry;  // of the entries that may place it: its path, or with '*' how it begins; "*" for any
  std::string_view use;    // who reads or runs it
};

// The first that covers a path counts.
inline constexpr OwnPlace kOwnPlaces[] = {
    {"generation.json", "", "the installer's own record"},
    {"share/sealift/environment", "environment/variables", "the variables of every program of the environment"},
    {"share/sealift/catalogue.json", "catalogue/hubs.json", "the catalogue of models"},
    {"share/sealift*", "programs/*", "presets, golden runs and what the verifier is held to"},
    {"libexec/sealift*", "programs/*", "programs of Sealift's, and the compiler"},
    {"bin/sealift*", "programs/*", "Sealift's programs, which the self-test and people run"},
    {"lib/libsealift*", "programs/*", "a library that sealift-train loads"},
    {"include/sealift", "sdk/sealift-*", "the training core's headers"},
    // find_package(sealift) takes folders of any name that begins so.
    {"lib/cmake/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"lib64/cmake/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"lib/x86_64-linux-gnu/cmake/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"lib/aarch64-linux-gnu/cmake/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"share/cmake/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"lib/sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"sealift*", "sdk/sealift-*", "the training core's package for CMake"},
    {"share/doc/sealift", "sdk/sealift-*", "the training core's licence"},
    {"apt", "files/apt/*", "the Debian packages, which root's apt installs"},
    {"rpm", "files/rpm/*", "the rpm packages, which root's dnf installs"},
    {"models", "*", "carried models"},
    {"data", "*", "carried data"},
    {"hub", "*", "the cache of models and data from a hub"},
    {"modelscope", "*", "the cache of models and data from ModelScope"},
};

// The place that covers `path`, below a generation's root; nullptr where none does. Spellings that some file system
// takes for one count as one: upper and lower case, what Unicode holds equal or ignores, dots and spaces at the end of
// a name.
const OwnPlace* own_place_of(std::string_view path);

// `path` with all of these spellings made one, for comparing only.
std::string place_spelling(std::string_view path);

// Why an entry other than a wheel, of this path in the bundle, must not place `path`; nothing when it may.
std::optional<std::string> fault_of_own_entry(std::string_view path, std::string_view entry);

}  // namespace sealift::bundle
