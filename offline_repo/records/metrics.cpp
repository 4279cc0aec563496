// SPDX-License-Identifier: Apache-2.0
// Written out by hand: the format is three kinds of line.
#include "offline_repo/records/metrics.hpp"

#include <algorithm>

#include "offline_repo/holdings/gaps.hpp"

namespace sealift::offline_repo {

namespace {

void declare(std::string& out, const std::string& name, const char* type, const char* help) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void add_number(std::string& out, const std::string& name, const char* type, const char* help, std::uint64_t number) {
  declare(out, name, type, help);
  out += name + " " + std::to_string(number) + "\n";
}

std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    c == '\n' ? out += "\\n" : out += c;
  }
  return out;
}

void add_bundles(std::string& out, const Held& held) {
  declare(out, "sealift_bundle_info", "gauge", "The bundles that are served: in the indexes, or kept.");
  for (const HeldBundle& one : held)
    if (one.contents) {
      const bundle::VerifiedBundle& in = *one.contents->in;
      out += "sealift_bundle_info{name=\"" + label(in.manifest().name) + "\",version=\"" +
             std::to_string(in.manifest().version) + "\",identity=\"" + in.identity().hex() + "\",channel=\"" +
             label(in.manifest().channel) + "\",state=\"" + std::string(name_of(one.state)) + "\"} 1\n";
    }
  declare(out, "sealift_bundle_left_out", "gauge", "Bundles that are not served, each with the reason.");
  for (const HeldBundle& one : held)
    if (one.state == HeldState::LeftOut)
      out += "sealift_bundle_left_out{place=\"" + label(one.place.string()) + "\",reason=\"" + label(one.why()) +
             "\"} 1\n";
}

void add_gaps(std::string& out, const std::vector<Gap>& gaps, bool names) {
  add_number(out, "sealift_gaps", "gauge", "Streams without a current version, and deltas without their base.",
             gaps.size());
  if (!names) return;
  declare(out, "sealift_gap", "gauge", "Each of them, and the command that mends it.");
  for (const Gap& gap : gaps)
    out += "sealift_gap{channel=\"" + label(gap.stream.channel) + "\",name=\"" + label(gap.stream.name) + "\",what=\"" +
           label(gap.what.english) + "\",next=\"" + label(gap.next.english) + "\"} 1\n";
}

}  // namespace

void Metrics::count(RouteKind route, unsigned status, std::uint64_t bytes) {
  const auto place = std::find(kStatuses.begin(), kStatuses.end() - 1, status) - kStatuses.begin();
  ++requests_[static_cast<std::size_t>(route)][static_cast<std::size_t>(place)];
  sent_ += bytes;
}

void Metrics::fail(const std::shared_ptr<const bundle::VerifiedBundle>& in, const std::string& reason) {
  const std::lock_guard lock(guard_);
  std::erase_if(reasons_, [](const auto& one) { return one.first.expired(); });
  reasons_.try_emplace(in, reason);
}

void Metrics::forget_failures() {
  const std::lock_guard lock(guard_);
  reasons_.clear();
}

std::optional<std::string> Metrics::reason(const Held& held) const {
  const std::lock_guard lock(guard_);
  bool served = false;
  for (const HeldBundle& one : held) {
    if (!one.contents) continue;
    served = true;
    if (const auto found = reasons_.find(one.contents->in); found != reasons_.end()) return found->second;
  }
  return served ? std::nullopt : std::optional<std::string>("no bundle is served");
}

std::string Metrics::text(const CacheCounts& cache, const Held& held, std::size_t left_out, const ScrubCounts* scrub,
                          bool names) const {
  std::string out;
  declare(out, "sealift_requests_total", "counter", "Requests that were answered.");
  for (std::size_t route = 0; route < kRouteNames.size(); ++route)
    for (std::size_t status = 0; status < kStatuses.size(); ++status)
      if (const std::uint64_t count = requests_[route][status]; count > 0)
        out += "sealift_requests_total{route=\"" + std::string(kRouteNames[route]) + "\",status=\"" +
               (kStatuses[status] == 0 ? "other" : std::to_string(kStatuses[status])) + "\"} " + std::to_string(count) +
               "\n";
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_).count();
  add_number(out, "sealift_sent_bytes_total", "counter", "Bytes of bodies that left.", sent_);
  add_number(out, "sealift_chunks_checked_total", "counter", "Chunks that were read and hashed.", cache.checked);
  add_number(out, "sealift_chunks_failed_total", "counter", "Chunks that could not be read or were wrong.",
             cache.failed);
  add_number(out, "sealift_cache_bytes", "gauge", "Memory of checked chunks.", cache.bytes);
  add_number(out, "sealift_cache_most_bytes", "gauge", "The most it has been.", cache.most);
  add_number(out, "sealift_connections", "gauge", "Connections that are open.", connections);
  add_number(out, "sealift_connections_most", "gauge", "The most there were at a time.", connections_most);
  add_number(out, "sealift_connections_refused_total", "counter", "Connections that were turned away.",
             connections_refused);
  add_number(out, "sealift_connections_made_room_total", "counter",
             "Connections that waited for their client and were ended for others.", connections_made_room);
  add_number(out, "sealift_audit_failures_total", "counter", "Times that the audit log could not be written.",
             audit_failures);
  if (const std::int64_t ends = certificate_ends; ends > 0)
    add_number(out, "sealift_tls_certificate_ends_seconds", "gauge", "When the certificate for TLS ends, since 1970.",
               static_cast<std::uint64_t>(ends));
  add_number(out, "sealift_up_seconds", "gauge", "Seconds since the start.", static_cast<std::uint64_t>(seconds));
  add_number(out, "sealift_healthy", "gauge", "1 unless /healthz answers 503.", reason(held) ? 0 : 1);
  add_number(out, "sealift_views_left_out", "gauge",
             "What views leave out, since bundles disagree, lack a part or rot.", left_out);
  if (scrub != nullptr) {
    add_number(out, "sealift_scrub_bytes_total", "counter", "Bytes that the scrub has found right.", scrub->bytes);
    add_number(out, "sealift_scrub_failures_total", "counter", "Chunks that it could not read, or found wrong.",
               scrub->failures);
    add_number(out, "sealift_scrub_rounds_total", "counter", "Times that it has been through everything.",
               scrub->rounds);
  }
  add_gaps(out, gaps_of(held), names);
  if (names) add_bundles(out, held);
  return out;
}

}  // namespace sealift::offline_repo
