// SPDX-License-Identifier: Apache-2.0
// The chunk is read past the cache, since what is cached says nothing about a disc.
#include "offline_repo/server/status_pages.hpp"

#include "bundle/core/json.hpp"
#include "offline_repo/holdings/gaps.hpp"
#include "offline_repo/routes/route_table.hpp"

namespace sealift::offline_repo {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenLooks{5};

Response plain(RouteKind route, unsigned status, std::string type, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", std::move(type)}, {"Cache-Control", "no-store"}},
          .body = std::move(text),
          .route = route};
}

// Reads the first chunk of the bundle's volume `index`.
void look_at(ServerState& state, const std::shared_ptr<const bundle::VerifiedBundle>& in, std::uint64_t index) {
  const std::vector<bundle::Volume>& volumes = in->manifest().payload.volumes;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < index; ++i) begin += volumes[i].size;
  if (volumes[index].size == 0) return;
  try {
    in->payload().chunk(in->payload().layout().at(begin));
  } catch (const bundle::Error& error) {
    state.metrics.fail(in, error.what());
  }
}

// Each volume's first chunk has a turn.
void look(ServerState& state) {
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep last = state.last_look;
  if (last != 0 && now - last < Clock::duration(kBetweenLooks).count()) return;
  if (!state.last_look.compare_exchange_strong(last, now)) return;
  const std::shared_ptr<const Access> access = state.access_now();
  std::uint64_t turn = state.looks++, volumes = 0;
  for (const HeldBundle& one : access->held())
    if (one.contents) volumes += one.contents->in->manifest().payload.volumes.size();
  if (volumes == 0) return;
  turn %= volumes;
  for (const HeldBundle& one : access->held()) {
    if (!one.contents) continue;
    const std::size_t count = one.contents->in->manifest().payload.volumes.size();
    if (turn < count) return look_at(state, one.contents->in, turn);
    turn -= count;
  }
}

// Names and reasons are for clients who may see the bundles.
std::string health_text(const Access& access, const std::optional<std::string>& reason, bool names) {
  const std::vector<Gap> gaps = gaps_of(access.held());
  const std::string served = gaps.empty() ? "good" : "good, with gaps";
  if (!names) return (reason ? "not good" : served) + "\n";
  std::string text = reason.value_or(served) + "\n";
  for (const Gap& gap : gaps) text += "gap: " + gap.line() + "\n";
  for (const HeldBundle& one : access.held())
    if (one.state == HeldState::LeftOut) text += "left out: " + one.stem() + ": " + one.why() + "\n";
  for (const std::string& line : access.left_out()) text += "left out: " + line + "\n";
  return text;
}

std::string status_json(const Access& access, const std::optional<std::string>& reason) {
  bundle::Json bundles = bundle::Json::array();
  for (const HeldBundle& one : access.held()) {
    bundle::Json item = {
        {"place", one.place.string()}, {"bundle", one.stem()}, {"state", name_of(one.state)}, {"why", one.why()}};
    if (one.contents) {
      item["channel"] = one.contents->in->manifest().channel;
      if (!one.contents->rotten.empty()) item["rotten"] = one.contents->rotten;
      const LastCheck::Times checked = one.contents->check->times();
      item["checked"] = checked.verified;
      if (!checked.read.empty()) item["read"] = checked.read;
      item["identity"] = one.contents->in->identity().hex();
    }
    bundles.push_back(std::move(item));
  }
  bundle::Json left_out = bundle::Json::array();
  for (const std::string& line : access.left_out()) left_out.push_back(line);
  bundle::Json gaps = bundle::Json::array();
  for (const Gap& gap : gaps_of(access.held()))
    gaps.push_back({{"channel", gap.stream.channel},
                    {"name", gap.stream.name},
                    {"what", gap.what.english},
                    {"kept", gap.kept},
                    {"next", gap.next.english},
                    {"line", gap.line()}});
  const bundle::Json all = {{"healthy", !reason},
                            {"reason", reason.value_or("")},
                            {"gaps", std::move(gaps)},
                            {"bundles", std::move(bundles)},
                            {"left_out", std::move(left_out)}};
  return all.dump(-1, ' ', true, bundle::Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::optional<Response> status_answer(ServerState& state, const Request& request, bool admin) {
  const Route* route = find_site_route(request);
  if (route == nullptr || (route->who == Who::Admin && !admin)) return std::nullopt;
  const bool metrics = route->counted == RouteKind::Metrics, status = route->who == Who::Admin;
  if (!metrics && !status) look(state);
  const bool names = admin || !state.options.tokens;
  const std::shared_ptr<const Access> access = state.access_now();
  if (metrics)
    return plain(RouteKind::Metrics, 200, "text/plain; version=0.0.4; charset=utf-8",
                 state.metrics.text(state.cache.counts(), access->held(), access->left_out().size(),
                                    state.options.scrub.get(), names));
  const std::optional<std::string> reason = state.metrics.reason(access->held());
  if (status) return plain(RouteKind::Health, 200, "application/json", status_json(*access, reason));
  return plain(RouteKind::Health, reason ? 503 : 200, "text/plain; charset=utf-8", health_text(*access, reason, names));
}

}  // namespace sealift::offline_repo
