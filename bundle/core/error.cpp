// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/core/error.hpp"

#include <utility>

#include "bundle/core/foreign_text.hpp"

namespace sealift::bundle {
namespace {

// Further lines of a value stand below it: deeper than any label.
constexpr std::size_t kLeast = 4, kIndent = 12;

std::string render(const Facts& facts) {
  const auto value_text = [](const std::string& value) { return continued(value, kLeast, kIndent); };
  std::string text = value_text(facts.what);
  const auto line = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) text.append("\n  ").append(label).append(value_text(value));
  };
  line("where:    ", facts.where);
  line("expected: ", facts.expected);
  line("got:      ", facts.got);
  line("next:     ", facts.next);
  return text;
}

}  // namespace

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Usage:
      return "usage";
    case ErrorCode::Io:
      return "io";
    case ErrorCode::Format:
      return "format";
    case ErrorCode::Digest:
      return "digest";
    case ErrorCode::Signature:
      return "signature";
    case ErrorCode::Missing:
      return "missing";
    case ErrorCode::Platform:
      return "platform";
    case ErrorCode::Space:
      return "space";
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::CannotCheck:
      return "cannot-check";
    case ErrorCode::Network:
      return "network";
    case ErrorCode::SelfTest:
      return "self-test";
    case ErrorCode::Rollback:
      return "rollback";
    case ErrorCode::Equivocation:
      return "equivocation";
    case ErrorCode::Revoked:
      return "revoked";
  }
  return "unknown";
}

Error::Error(ErrorCode code, Facts facts) : code_(code), facts_(std::move(facts)), message_(render(facts_)) {}

Error Error::within(std::string_view context) const {
  Facts facts = facts_;
  facts.what = std::string(context) + ": " + facts.what;
  return {code_, std::move(facts)};
}

}  // namespace sealift::bundle
