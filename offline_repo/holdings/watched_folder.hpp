// SPDX-License-Identifier: Apache-2.0
// The folder that a site puts its bundles into, each in a folder of its own or as a link to one, and the small file
// that says which versions an operator switched to. `sealift-repo add`, `remove` and `switch` change it, `serve` reads
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/trust/root.hpp"

namespace sealift::offline_repo {

// In the watched folder: a line "CHANNEL/NAME VERSION" for each bundle whose newest version is not the one to serve.
inline constexpr char kSwitches[] = "switched";

using Switches = std::map<bundle::Stream, std::uint64_t>;

// The folders in it, and links to folders, sorted; names that begin with '.' are nobody's bundle. Throws Usage when
// everybody may write there.
std::vector<std::filesystem::path> bundles_in(const std::filesystem::path& folder);

// Names, sizes, numbers and times of the files of a bundle's folder: a text that is another one once they changed.
// Empty when there is no such folder.
std::string sight_of(const std::filesystem::path& folder_or_seal);

// Throws Format naming the line.
Switches parse_switches(std::string_view text, const std::string& where);
// None where the file is not there.
Switches read_switches(const std::filesystem::path& folder);

// Links the bundle into the folder, under its seal's name; returns the link. Nothing is verified: the server does that.
std::filesystem::path add_bundle(const std::filesystem::path& folder, const std::filesystem::path& bundle);
// A delta that lies in the folder, and leaves out files that no other bundle there carries any more.
struct DeltaAlone {
  std::string stem;        // NAME-VERSION
  std::size_t files = 0;   // that went with the bundle
  std::string first = {};  // one of them: its path
};
// What taking a bundle away leaves of its stream, as the seals say; nobody has verified them here.
struct Removed {
  bundle::Stream stream;
  std::vector<std::string> left;          // NAME-VERSION of the others, the highest version first
  std::optional<std::uint64_t> switched;  // the version that an operator switched to
  bool was_current = false;               // it was the one switched to, or the highest where nobody switched
  std::vector<DeltaAlone> deltas = {};    // of any stream
  std::filesystem::path bundle = {};      // where the link led to
};
// Takes away the link to the bundle NAME-VERSION. Throws Conflict where it is no link but the bundle itself.
Removed remove_bundle(const std::filesystem::path& folder, const std::string& stem);
// From now on `stem` is served of its stream, or where `newest` the newest one. Throws Missing when it is not there.
void switch_bundle(const std::filesystem::path& folder, const std::string& stem, bool newest);

}  // namespace sealift::offline_repo
