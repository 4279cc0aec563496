// SPDX-License-Identifier: Apache-2.0
// A bundle is judged by verify() itself; a generation by what its record kept of its bundle, which is as far as one can
// tell without the medium.
#include "installer/upkeep/root_trial.hpp"

#include <algorithm>

#include "installer/upkeep/status.hpp"
#include "sealift/bundle/trust/root_chain.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

namespace {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::Root;
using Kind = RootVerdict::Kind;

std::string refusal_text(const Error& error) {
  const bundle::Facts& facts = error.facts();
  return facts.what + (facts.got.empty() ? "" : ": " + facts.got);
}

// Of the keys that counted for the role when the bundle was installed, as many must have it still.
std::string role_fault(const Root& root, const std::string& name, const std::vector<bundle::Digest>& signers) {
  const auto role = root.roles.find(name);
  if (role == root.roles.end()) return {};
  const auto count = static_cast<std::uint64_t>(std::count_if(signers.begin(), signers.end(), [&](const auto& key) {
    return std::find(role->second.keys.begin(), role->second.keys.end(), key) != role->second.keys.end();
  }));
  if (count >= role->second.threshold) return {};
  return std::to_string(count) + " of " + std::to_string(role->second.threshold) + " signatures of the role " + name +
         " are left";
}

std::string installed_fault(const Root& root, const GenerationRecord::Bundle& record) {
  if (const auto withdrawn = root.revoked_bundles.find(record.identity); withdrawn != root.revoked_bundles.end())
    return "this bundle was withdrawn: " + withdrawn->second.reason;
  const auto floor = root.floors.find({.channel = record.channel, .name = record.name});
  if (floor != root.floors.end() && record.version < floor->second)
    return "the root refuses versions below " + std::to_string(floor->second);
  for (const std::string_view role : {bundle::kReleaseRole, bundle::kSiteRole})
    if (std::string fault = role_fault(root, std::string(role), record.signers); !fault.empty()) return fault;
  return {};
}

class Trial {
 public:
  Trial(const bundle::TrustState& next, const std::vector<bundle::Envelope>& roots, bundle::Time now)
      : next_(next), roots_(roots), now_(now), root_(bundle::parse_root(next.root, "the new root")) {}

  void judge(const fs::path& place) {
    std::error_code ignored;
    if (fs::is_directory(place / "generations", ignored)) return judge_prefix(Prefix(place));
    if (is_bundle(place)) return judge_bundle(place);
    const std::size_t before = verdicts_.size();
    for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored))
      if (!entry.path().filename().string().starts_with('.') && is_bundle(entry.path())) judge_bundle(entry.path());
    if (verdicts_.size() == before)
      throw Error(ErrorCode::Missing, {.what = "there is nothing here that a root could refuse",
                                       .where = place.string(),
                                       .expected = "a prefix, a bundle, or a folder of bundles",
                                       .next = "name one of these with --against"});
  }
  std::vector<RootVerdict> take() { return std::move(verdicts_); }

 private:
  static bool is_bundle(const fs::path& place) {
    std::error_code ignored;
    if (place.extension() == bundle::kSealSuffix) return true;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored))
      if (entry.path().extension() == bundle::kSealSuffix) return true;
    return false;
  }

  void judge_prefix(const Prefix& prefix) {
    RootVerdict verdict{.kind = Kind::Prefix, .place = prefix.folder().string()};
    try {
      follow_roots(bundle::trust_for_run(prefix.trust(), std::nullopt), roots_, "the new root");
    } catch (const Error& error) {
      verdict.refusal = refusal_text(error);
    }
    verdicts_.push_back(std::move(verdict));
    for (const Status::Generation& generation : status_of(prefix).generations) {
      if (!generation.record) continue;
      for (const GenerationRecord::Bundle& one : bundles_of(*generation.record))
        verdicts_.push_back({.kind = Kind::Generation,
                             .place = prefix.folder().string(),
                             .name = one.name + "-" + std::to_string(one.version) + " (generation " +
                                     std::to_string(generation.number) + ")",
                             .refusal = installed_fault(root_, one)});
    }
  }
  void judge_bundle(const fs::path& place) {
    RootVerdict verdict{.kind = Kind::Bundle, .place = place.string(), .name = place.filename().string()};
    try {
      const bundle::VerifiedBundle verified =
          bundle::verify(bundle::open(place), {.state = next_, .allow_downgrade = true}, now_);
      verdict.name = verified.manifest().stem();
    } catch (const Error& error) {
      verdict.refusal = refusal_text(error);
    }
    verdicts_.push_back(std::move(verdict));
  }

  const bundle::TrustState& next_;
  const std::vector<bundle::Envelope>& roots_;
  const bundle::Time now_;
  const Root root_;
  std::vector<RootVerdict> verdicts_;
};

}  // namespace

std::vector<RootVerdict> try_root(const bundle::TrustState& next, const std::vector<bundle::Envelope>& roots,
                                  const std::vector<fs::path>& places, bundle::Time now) {
  Trial trial(next, roots, now);
  for (const fs::path& place : places) trial.judge(place);
  return trial.take();
}

}  // namespace sealift::installer
