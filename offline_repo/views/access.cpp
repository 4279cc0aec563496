// SPDX-License-Identifier: Apache-2.0
// Tokens that see the same bundles share their views, so a thousand tokens cost no more than their different sets.
#include "offline_repo/views/access.hpp"

#include <set>
#include <utility>

namespace sealift::offline_repo {

namespace {

Held seen_by(const Token& token, const Held& held) {
  Held seen;
  for (const HeldBundle& one : held)
    if (one.contents && token.sees(one.contents->in->manifest())) seen.push_back(one);
  return seen;
}

}  // namespace

Access::Access(Held held, std::optional<std::vector<Token>> tokens, const Access* before)
    : held_(std::move(held)),
      maker_(before != nullptr ? &before->maker_ : nullptr),
      tokens_(std::move(tokens)),
      everything_(std::make_shared<const Views>(maker_.views_of(held_, gaps_of(held_)))) {
  const std::vector<Gap> gaps = gaps_of(held_);
  if (tokens_)
    for (const Token& token : *tokens_) {
      const Held seen = seen_by(token, held_);
      if (seen.empty()) blind_.push_back(token.name);
      seen_.emplace(token.name, std::make_shared<const Views>(maker_.views_of(seen, gaps)));
    }
  maker_.settle();
}

std::optional<Access::Client> Access::client(std::string_view authorization, std::string_view certificate) const {
  if (!tokens_) return Client{.user = std::string(certificate), .views = everything_};
  const std::optional<std::string> text = token_in(authorization);
  const Token* token = text ? find_token(*tokens_, *text) : find_certificate(*tokens_, certificate);
  if (token == nullptr) return std::nullopt;
  return Client{.user = token->name, .views = seen_.at(token->name)};
}

std::vector<std::string> Access::left_out() const {
  std::set<std::string> lines;
  const auto add = [&](const std::string& where, const View& view) {
    for (const InBoth& line : view.catalogue.left_out) lines.insert(where + ": " + line.english);
  };
  add("/", *everything_->merged);
  for (const auto& [channel, view] : everything_->channels) add("/c/" + channel + "/", *view);
  return {lines.begin(), lines.end()};
}

}  // namespace sealift::offline_repo
