// SPDX-License-Identifier: Apache-2.0
// Bundles and tokens make an Access together, so both are changed under one lock; the certificate stands alone.
#include "offline_repo/server/shown_site.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "sealift/bundle/core/time.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::chrono::hours kSoon{14 * 24};  // a certificate that ends by then is warned of

}  // namespace

ShownSite::ShownSite(ServerState& state, Held bundles) : state_(state) {
  read_tokens();
  read_tls();
  show(std::move(bundles));
}

void ShownSite::show(Held bundles) {
  const std::lock_guard lock(changing_);
  show_to_all(std::move(bundles));
}

void ShownSite::reload() {
  try {
    read_tokens();
  } catch (const std::exception& failure) {
    state_.options.on_fault(std::string("the tokens stay as they were: ") + failure.what());
  }
  try {
    read_tls();
  } catch (const std::exception& failure) {
    state_.options.on_fault(std::string("the certificate for TLS stays as it was: ") + failure.what());
  }
}

void ShownSite::read_tokens() {
  if (!state_.options.tokens) return;
  std::vector<Token> read = state_.options.tokens();
  const std::lock_guard lock(changing_);
  tokens_ = std::move(read);
  if (const std::shared_ptr<const Access> now = state_.access_now()) show_to_all(now->held());
}

void ShownSite::read_tls() {
  if (!state_.options.tls) return;
  std::shared_ptr<const TlsContext> read = state_.options.tls();
  state_.metrics.certificate_ends = read->ends();
  const auto left = std::chrono::seconds(read->ends()) - std::chrono::system_clock::now().time_since_epoch();
  if (left < kSoon)
    state_.options.on_fault("the certificate for TLS " + std::string(left.count() < 0 ? "ended " : "ends ") +
                            bundle::write_time(bundle::Time(std::chrono::seconds(read->ends()))));
  const std::lock_guard lock(state_.access_guard);
  state_.tls = std::move(read);
}

// Under the lock `changing_`.
void ShownSite::show_to_all(Held bundles) {
  const std::shared_ptr<const Access> before = state_.access_now();
  const auto fresh = std::make_shared<const Access>(std::move(bundles), tokens_, before.get());
  for (const std::string& name : fresh->blind())
    state_.options.on_fault("the token " + name + " sees no bundle that is served");
  const std::vector<std::string> said = before ? before->left_out() : std::vector<std::string>();
  for (const std::string& line : fresh->left_out())
    if (std::find(said.begin(), said.end(), line) == said.end()) state_.options.on_fault(line);
  const std::lock_guard lock(state_.access_guard);
  state_.access = fresh;
}

}  // namespace sealift::offline_repo
