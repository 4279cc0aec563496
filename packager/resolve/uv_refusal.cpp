// SPDX-License-Identifier: Apache-2.0
// The first row whose words uv has said; see uv_refusal.hpp. What could not be asked comes first: uv says of a package
// whose index was not reached, too, that there is none.
#include "packager/resolve/uv_refusal.hpp"

#include <algorithm>
#include <array>

#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

namespace {

using bundle::ErrorCode;

constexpr const char* kUnreached = "uv could not ask for the packages";
constexpr const char* kClosed = "a server of packages wants a login, or does not accept the one it was given";
constexpr const char* kForbidden = "an index answers 403: it does not have a package, or it wants a login";
constexpr const char* kUnparsed = "uv does not understand a requirement";
constexpr const char* kNowhere = "a required package is in none of the indexes";
constexpr const char* kNotThere = "a required file or folder is not there";
constexpr const char* kOtherPython = "a required package is not for this Python";
constexpr const char* kNoSet = "no set of packages meets all requirements";

constexpr const char* kNoMemory = "uv needed more memory than it gets, 4 GiB, or than this machine has";

constexpr const char* kMendMemory =
    "look at the page of each package in the indexes that the job names: one may have no end; uv takes about 1 GB for "
    "the largest sets that are known";
constexpr const char* kMendNetwork =
    "check network, proxy, certificates and index ([python] default_index, UV_DEFAULT_INDEX), then run this again";
constexpr const char* kMendLogin = "give a login for it by a netrc file, or by the variables of a named index";
constexpr const char* kMendSyntax = "write it as NAME, NAME>=1.2,<2 or \"NAME[extra] ; marker\"";
constexpr const char* kMendName =
    "correct the name's spelling, or name the index that has it in [python]: indexes = [{ url = \"https://…/simple\" "
    "}]";
constexpr const char* kMendPath = "correct the path or address; paths are relative to the job file";
constexpr const char* kMendPython = "require a version of it for this Python, or change [python] version";
constexpr const char* kMendSet = "the text above says which exclude each other: loosen one of them, or a constraint";

struct Row {
  std::string_view words;
  ErrorCode code;
  const char* what;
  const char* next;
};

// Object stores say 403 of each name that is not there. uv asks no other index then: one that wants a login may have
// the name, and a publisher on the next one would be packed in its place.
constexpr const char* kMendForbidden =
    "if the package is not there (object stores answer so), let the next index answer, in the job file:\n            "
    "[python]\n            index_strategy = \"unsafe-first-match\"\n            if it is there, ";

constexpr std::string_view kNoLogin = "401 Unauthorized", kRefusedLogin = "403 Forbidden",
                           kRefusedIndex = "returned a 403 Forbidden error";

constexpr std::array kRows = {
    Row{"memory allocation of", ErrorCode::Io, kNoMemory, kMendMemory},
    Row{"429 Too Many Requests", ErrorCode::Network, "a server of packages limits how often it is asked (429)",
        "wait until it answers again, then run this again, with UV_CONCURRENT_DOWNLOADS=1 to ask more slowly; a mirror "
        "nearby has no such limit"},
    Row{kRefusedIndex, ErrorCode::Network, kForbidden, kMendForbidden},
    Row{kNoLogin, ErrorCode::Network, kClosed, kMendLogin},
    Row{kRefusedLogin, ErrorCode::Network, kClosed, kMendLogin},
    Row{"Failed to fetch", ErrorCode::Network, kUnreached, kMendNetwork},
    Row{"error sending request", ErrorCode::Network, kUnreached, kMendNetwork},
    Row{"network was disabled", ErrorCode::Network, kUnreached, kMendNetwork},
    Row{"network connectivity is disabled", ErrorCode::Network, kUnreached, kMendNetwork},
    Row{"Git operation failed", ErrorCode::Network, kUnreached, kMendNetwork},
    Row{"Couldn't parse requirement", ErrorCode::Usage, kUnparsed, kMendSyntax},
    Row{"Failed to parse", ErrorCode::Usage, kUnparsed, kMendSyntax},
    Row{"wheel filename", ErrorCode::Usage, kUnparsed, kMendSyntax},
    Row{"was not found in the package registry", ErrorCode::Missing, kNowhere, kMendName},
    Row{"was not found in the provided package locations", ErrorCode::Missing, kNowhere, kMendName},
    Row{"Distribution not found at", ErrorCode::Missing, kNotThere, kMendPath},
    Row{"does not satisfy Python", ErrorCode::Platform, kOtherPython, kMendPython},
    Row{"requested Python version", ErrorCode::Platform, kOtherPython, kMendPython},
    Row{"matching Python", ErrorCode::Platform, kOtherPython, kMendPython},
    Row{"matching platform", ErrorCode::Platform, "a required package is not for this target",
        "require another version of it, or change [target]"},
    Row{"requirements are unsatisfiable", ErrorCode::Conflict, kNoSet, kMendSet},
    Row{"which are incompatible", ErrorCode::Conflict, kNoSet, kMendSet},
    Row{"No solution found", ErrorCode::Conflict, kNoSet, kMendSet}};

// "cu126" of "there is no version of torch==2.11.0+cu126": uv has an index for each of these, and asks it if told to.
std::string backend_in(std::string_view said) {
  for (std::size_t at = said.find("no version of "); at != said.npos; at = said.find("no version of ", at + 1)) {
    const std::string_view line = said.substr(at, said.find('\n', at) - at);
    const std::size_t plus = line.find('+');
    if (plus == line.npos) continue;
    const std::string_view rest = line.substr(plus + 1);
    const std::string_view name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"));
    const bool cuda = name.size() >= 4 && name.size() <= 6 && name.starts_with("cu") &&
                      name.find_first_not_of("0123456789", 2) == name.npos;
    if (cuda || name == "cpu") return std::string(name);
  }
  return {};
}

// "other @ https://…" of "was included as a URL dependency. … Consider adding `other @ https://…` to your …": uv takes
// an address from the job, and not from a package of an index.
std::string address_in(std::string_view said) {
  static constexpr std::string_view kCause = "was included as a URL dependency", kRemedy = "Consider adding `";
  const std::size_t cause = said.find(kCause), at = said.find(kRemedy, std::min(cause, said.size()));
  if (cause == said.npos || at == said.npos) return {};
  const std::string_view rest = said.substr(at + kRemedy.size());
  return std::string(rest.substr(0, rest.find('`')));
}

}  // namespace

UvRefusal refusal_of(std::string_view said) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& one) { return said.find(one.words) != std::string_view::npos; });
  if (const std::string backend = backend_in(said); !backend.empty() && (row == kRows.end() || row->what == kNoSet))
    return {ErrorCode::Missing, "the indexes do not have this build of a package",
            "builds for one CUDA have an index of their own, in the job file:\n            [python]\n            "
            "torch_backend = \"" +
                backend + "\"\n            and torch_index beside it, where a mirror has those indexes"};
  if (const std::string address = address_in(said); !address.empty())
    return {ErrorCode::Usage, "a package requires another one by its address, which the job does not name",
            "if it may come from there, say so in the job file:\n            [python]\n            constraints = [" +
                toml_quoted(address) + "]"};
  if (row != kRows.end()) return {row->code, row->what, row->next, row->what == kForbidden};
  return {ErrorCode::Io, "uv could not resolve the requirements", "uv's own words above say why"};
}

std::string closed_server(std::string_view said) {
  for (const std::string_view words : {kNoLogin, kRefusedLogin}) {
    const std::size_t at = said.find(words);
    if (at == said.npos) continue;
    const std::size_t line = said.rfind('\n', at) + 1, end = std::min(said.find('\n', at), said.size());
    const std::string_view sentence = said.substr(line, end - line);
    const std::size_t address = sentence.find("(http");
    if (address == sentence.npos) continue;
    return std::string(sentence.substr(address + 1, sentence.find(')', address) - address - 1));
  }
  return {};
}

}  // namespace sealift::packager
