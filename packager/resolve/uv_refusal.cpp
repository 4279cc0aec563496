// SPDX-License-Identifier: Apache-2.0
// The first row whose words uv has said; see uv_refusal.hpp. What could not be asked comes first: uv says of a package
// whose index was not reached, too, that there is none.
#include "packager/resolve/uv_refusal.hpp"

#include <algorithm>
#include <array>

namespace sealift::packager {

namespace {

using bundle::ErrorCode;

constexpr const char* kUnreached = "uv could not ask for the packages";
constexpr const char* kUnparsed = "uv does not understand a requirement";
constexpr const char* kNowhere = "a required package is in none of the indexes";
constexpr const char* kNotThere = "a required file or folder is not there";
constexpr const char* kOtherPython = "a required package is not for this Python";
constexpr const char* kNoSet = "no set of packages meets all requirements";

constexpr const char* kMendNetwork =
    "check network, proxy, certificates and index ([python] default_index, UV_DEFAULT_INDEX), then run this again";
constexpr const char* kMendSyntax = "write it as NAME, NAME>=1.2,<2 or \"NAME[extra] ; marker\"";
constexpr const char* kMendName = "correct the name's spelling, or name the index that has it: [[python.index]]";
constexpr const char* kMendPath = "correct the path or address; paths are relative to the job file";
constexpr const char* kMendPython = "require a version of it for this Python, or change [python] version";
constexpr const char* kMendSet = "the text above says which exclude each other: loosen one of them, or a constraint";

struct Row {
  std::string_view words;
  UvRefusal refusal;
};

constexpr std::array kRows = {
    Row{"Failed to fetch", {ErrorCode::Network, kUnreached, kMendNetwork}},
    Row{"error sending request", {ErrorCode::Network, kUnreached, kMendNetwork}},
    Row{"network was disabled", {ErrorCode::Network, kUnreached, kMendNetwork}},
    Row{"network connectivity is disabled", {ErrorCode::Network, kUnreached, kMendNetwork}},
    Row{"Git operation failed", {ErrorCode::Network, kUnreached, kMendNetwork}},
    Row{"Couldn't parse requirement", {ErrorCode::Usage, kUnparsed, kMendSyntax}},
    Row{"Failed to parse", {ErrorCode::Usage, kUnparsed, kMendSyntax}},
    Row{"wheel filename", {ErrorCode::Usage, kUnparsed, kMendSyntax}},
    Row{"was not found in the package registry", {ErrorCode::Missing, kNowhere, kMendName}},
    Row{"was not found in the provided package locations", {ErrorCode::Missing, kNowhere, kMendName}},
    Row{"Distribution not found at", {ErrorCode::Missing, kNotThere, kMendPath}},
    Row{"does not satisfy Python", {ErrorCode::Platform, kOtherPython, kMendPython}},
    Row{"requested Python version", {ErrorCode::Platform, kOtherPython, kMendPython}},
    Row{"matching Python", {ErrorCode::Platform, kOtherPython, kMendPython}},
    Row{"matching platform",
        {ErrorCode::Platform, "a required package is not for this target",
         "require another version of it, or change [target]"}},
    Row{"requirements are unsatisfiable", {ErrorCode::Conflict, kNoSet, kMendSet}},
    Row{"which are incompatible", {ErrorCode::Conflict, kNoSet, kMendSet}},
    Row{"No solution found", {ErrorCode::Conflict, kNoSet, kMendSet}}};

}  // namespace

UvRefusal refusal_of(std::string_view said) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& one) { return said.find(one.words) != std::string_view::npos; });
  if (row != kRows.end()) return row->refusal;
  return {ErrorCode::Io, "uv could not resolve the requirements", "uv's own words above say why"};
}

}  // namespace sealift::packager
