// SPDX-License-Identifier: Apache-2.0
// See build_failures.hpp. No other release is taken for one that cannot be built: that is for the job to say.
#include "packager/builds/build_failures.hpp"

#include <fmt/format.h>

#include "packager/builds/build_remedy.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n                ") : std::string(1, c);
  return out;
}

}  // namespace

void BuildFailures::collect(const SourcePackage& source, const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::CannotCheck) throw;
    failures_.emplace_back(&source, error);
  }
}

void BuildFailures::throw_any(const BuildTools& tools, const WhoNeeds& who_needs) const {
  if (failures_.empty()) return;
  const std::map<std::string, std::string> needs = who_needs();
  std::string got, next, other;
  for (const auto& [source, error] : failures_) {
    const auto via = needs.find(source->name);
    got += (got.empty() ? "" : "\n            ") + source->title() +
           (via == needs.end() ? "" : " (needed by " + via->second + ")") + ": " + error.facts().what;
    if (!error.facts().got.empty()) got += "\n                " + indented(error.facts().got);
    if (const std::string remedy = build_remedy(source->name, error.facts().got); !remedy.empty())
      next += (next.empty() ? "" : "\n            ") + source->name + ": " + remedy;
    if (source->kind == SourceKind::Archive && !source->version.empty())
      other += (other.empty() ? "" : ", ") + ("\"" + source->name + "!=" + source->version + "\"");
  }
  if (next.empty())
    next =
        "install what they miss (a compiler, headers), give their builds more with [python] extra_build_dependencies, "
        "narrow their tools with build_constraints, or require versions that have wheels";
  if (!other.empty()) next += "\n            for other releases, if those will do: constraints = [" + other + "]";
  throw Error(ErrorCode::Platform,
              {.what = fmt::format("{} of {} package(s) without a wheel cannot be built", failures_.size(), sources_),
               .expected = "a wheel from each source, for CPython " + tools.python_version,
               .got = got,
               .next = next});
}

}  // namespace sealift::packager
