// SPDX-License-Identifier: Apache-2.0
// See refusals.hpp.
#include "packager/host/refusals.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostTold = 50;

std::string deeper(std::string text) {
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) text.insert(at + 1, "    ");
  return text;
}

std::string told(const bundle::Facts& facts) {
  std::string text = "\n    " + facts.where + (facts.where.empty() ? "" : ": ") + facts.what;
  if (facts.got.starts_with('\n'))  // several, told together already
    text += ':' + deeper(facts.got);
  else if (!facts.got.empty() && facts.what.find(facts.got) == facts.what.npos)
    text += " (" + facts.got + ")";
  if (!facts.expected.empty()) text += "\n            expected: " + facts.expected;
  if (!facts.next.empty()) text += "\n            " + facts.next;
  return text;
}

}  // namespace

void refuse_together(const std::vector<Error>& errors, const std::string& what, const std::string& next) {
  std::vector<const Error*> told_of;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Error& error : errors)
    if (seen.emplace(error.facts().where, error.facts().what).second) told_of.push_back(&error);
  if (told_of.empty()) return;
  if (told_of.size() == 1) throw Error(*told_of.front());
  std::string got;
  for (std::size_t i = 0; i < std::min(told_of.size(), kMostTold); ++i) got += told(told_of[i]->facts());
  if (told_of.size() > kMostTold) got += "\n    and " + std::to_string(told_of.size() - kMostTold) + " more";
  throw SeveralRefusals(told_of.front()->code(),
                        {.what = std::to_string(told_of.size()) + " " + what, .got = std::move(got), .next = next},
                        errors);
}

void Refusals::ask(const std::function<void()>& part) {
  try {
    part();
  } catch (const SeveralRefusals& several) {
    kept_.insert(kept_.end(), several.each.begin(), several.each.end());
    of_parts_.push_back(std::current_exception());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Io || error.code() == ErrorCode::Space) throw;
    kept_.push_back(error);
    of_parts_.push_back(std::current_exception());
  }
}

void Refusals::refuse(const std::string& what, const std::string& next) const {
  if (of_parts_.size() == 1) std::rethrow_exception(of_parts_.front());
  refuse_together(kept_, what, next);
}

}  // namespace sealift::packager
