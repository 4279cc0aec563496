// SPDX-License-Identifier: Apache-2.0
// The first `=` ends the path. A reason that breaks lines could forge those of a receipt.
#include "bundle/host/waiver.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace {

[[noreturn]] void refuse_waiver(const std::string& text, std::string what, std::string got) {
  throw Error(ErrorCode::Usage, {.what = std::move(what),
                                 .where = "--waive " + SafePath::printable(text),
                                 .expected = "PATH=REASON: a native file below the generation, and one line that says "
                                             "why this environment does without it",
                                 .got = std::move(got),
                                 .next = "take the path from the self-test's message"});
}

Waiver parse_waiver(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) refuse_waiver(text, "a waiver has no reason", "no `=`");
  Waiver waiver{.path = text.substr(0, equals), .reason = text.substr(equals + 1)};
  try {
    waiver.path = SafePath::parse(waiver.path, "--waive").text();
  } catch (const Error& error) {
    refuse_waiver(text, "a waiver names no path of a generation", error.facts().what);
  }
  if (waiver.reason.find_first_not_of(' ') == waiver.reason.npos)
    refuse_waiver(text, "a waiver has no reason", "nothing after `=`");
  if (waiver.reason.size() > kMaxWaiverReason)
    refuse_waiver(text, "a waiver's reason is too long",
                  std::to_string(waiver.reason.size()) + " bytes of at most " + std::to_string(kMaxWaiverReason));
  if (!is_utf8(waiver.reason) || detail::has_control_character(waiver.reason))
    refuse_waiver(text, "a waiver's reason is not one line of text", "a control character, or no UTF-8");
  return waiver;
}

}  // namespace

std::vector<Waiver> parse_waivers(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxWaivers)
    refuse_waiver("…", "there are too many waivers",
                  std::to_string(texts.size()) + " of at most " + std::to_string(kMaxWaivers));
  std::vector<Waiver> waivers;
  for (const std::string& text : texts) {
    Waiver waiver = parse_waiver(text);
    const auto same = [&](const Waiver& other) { return other.path == waiver.path; };
    if (std::any_of(waivers.begin(), waivers.end(), same)) refuse_waiver(text, "a file is waived twice", waiver.path);
    waivers.push_back(std::move(waiver));
  }
  return waivers;
}

}  // namespace sealift::bundle
