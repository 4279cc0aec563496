// SPDX-License-Identifier: Apache-2.0
// Everything is judged again when anything has changed: verifying reads no payload, and a new root or a revocation in
// one place concerns bundles in all others.
#include "offline_repo/holdings/holdings.hpp"

#include <algorithm>
#include <utility>

#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::offline_repo {

namespace {

namespace fs = std::filesystem;
using bundle::ErrorCode;
using bundle::Stream;
using bundle::TrustState;

std::uint64_t root_version(const TrustState& state) {
  return state.root.empty() ? 0 : bundle::parse_root(state.root, "the newest accepted root").version;
}

// A newer root on disk says everything anew, since it may let a site forget what it saw. Otherwise what was accepted
// since the start counts as much as what the disk says.
TrustState joined(TrustState disk, const TrustState& memory) {
  const std::uint64_t here = root_version(disk), there = root_version(memory);
  if (disk.pinned != memory.pinned || here > there) return disk;
  if (there > here) disk.root = memory.root;
  for (const auto& [stream, seen] : memory.seen) {
    bundle::SeenVersion& on_disk = disk.seen[stream];
    const std::uint64_t floor = std::max(on_disk.floor, seen.floor);
    if (seen.version > on_disk.version) on_disk = seen;
    on_disk.floor = floor;
  }
  disk.time_floor = std::max(disk.time_floor, memory.time_floor);
  return disk;
}

// For logs, metrics and pages: what an error says on several lines.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') line += ';';
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control && (c != ' ' || !line.ends_with(' '))) line += c;
    if (c == '\n') line += ' ';
  }
  return line;
}

std::uint64_t version_of(const HeldBundle& held) {
  return held.contents->in->manifest().version;
}

// `all` are one stream's good bundles, the highest version first.
HeldBundle* chosen_of(const std::vector<HeldBundle*>& all, const Stream& stream, const Switches& switches) {
  if (const auto wanted = switches.find(stream); wanted != switches.end()) {
    for (HeldBundle* one : all)
      if (version_of(*one) == wanted->second) return one;
    for (HeldBundle* one : all) one->reason = {.kind = Reason::Kind::Switched, .version = wanted->second};
    return nullptr;
  }
  for (HeldBundle* one : all)
    if (one->reason.kind == Reason::Kind::None) return one;
  return nullptr;
}

void choose_of_stream(const std::vector<HeldBundle*>& all, const Stream& stream, const Switches& switches) {
  HeldBundle* chosen = chosen_of(all, stream, switches);
  bool needed = false;  // by a delta
  for (HeldBundle* one : all) {
    if (one == chosen || (needed && version_of(*one) < version_of(*chosen))) {
      needed = one->contents->in->manifest().base.has_value();
      one->state = HeldState::Current;
      one->reason = {};
    } else if (chosen != nullptr && one->reason.kind == Reason::Kind::None) {
      one->reason = {.kind = Reason::Kind::NotChosen, .text = chosen->stem()};
    }
  }
}

}  // namespace

void choose_current(Held& held, const Switches& switches) {
  std::map<Stream, std::vector<HeldBundle*>> streams;
  for (HeldBundle& one : held)
    if (one.contents && one.watched) streams[one.stream()].push_back(&one);
  for (auto& [stream, all] : streams) {
    std::stable_sort(all.begin(), all.end(),
                     [](const HeldBundle* a, const HeldBundle* b) { return version_of(*a) > version_of(*b); });
    choose_of_stream(all, stream, switches);
  }
}

std::optional<Held> Holdings::look(bool at_once) {
  const Sight seen = see();
  const Sight wanted = at_once || !seen_ ? seen : settled(seen);
  seen_ = seen;
  if (judged_ == wanted) return std::nullopt;
  state_ = joined(wanted.trust, state_);
  Held held;
  std::string root;
  do {  // again when a bundle has brought a newer root: those before it were judged by the old one
    root = state_.root;
    held = judge_all(wanted);
  } while (state_.root != root);
  choose_current(held, wanted.switches);
  judged_ = wanted;
  return held;
}

Holdings::Sight Holdings::see() const {
  Sight sight{.trust = bundle::trust_named(options_.trust, options_.fingerprint), .switches = {}, .places = {}};
  if (options_.rotten != nullptr) sight.rotten = options_.rotten->changes();
  for (const fs::path& place : options_.named) sight.places[place] = sight_of(place);
  if (options_.folder.empty()) return sight;
  sight.switches = read_switches(options_.folder);
  for (const fs::path& place : bundles_in(options_.folder)) sight.places[place] = sight_of(place);
  return sight;
}

// What changes right now is taken as it was when it was last judged.
Holdings::Sight Holdings::settled(const Sight& seen) const {
  Sight sight = seen;
  for (const auto& [place, text] : seen.places) {
    const auto last = seen_->places.find(place);
    if (last != seen_->places.end() && last->second == text) continue;
    sight.places.erase(place);
    if (!judged_) continue;
    if (const auto judged = judged_->places.find(place); judged != judged_->places.end()) sight.places.insert(*judged);
  }
  return sight;
}

Held Holdings::judge_all(const Sight& sight) {
  Held held;
  for (const fs::path& place : options_.named) held.push_back(judge(place, sight, false));
  for (const auto& [place, text] : sight.places)
    if (std::find(options_.named.begin(), options_.named.end(), place) == options_.named.end())
      held.push_back(judge(place, sight, true));
  std::erase_if(known_, [&](const auto& known) { return !sight.places.contains(known.first); });
  for (std::size_t i = 0; i < held.size(); ++i)
    for (std::size_t j = 0; j < i && held[i].contents; ++j)
      if (held[j].contents && held[j].contents->in->identity() == held[i].contents->in->identity()) {
        held[i].contents = nullptr;
        held[i].state = HeldState::LeftOut;
        held[i].reason = {.kind = Reason::Kind::SameAs, .text = held[j].place.string()};
      }
  return held;
}

// A watched bundle that is older than one that was accepted is kept, for an operator to switch to. Floors hold for it
// as for any other. One that was named is judged by what the site has recorded, and not by what lies beside it.
HeldBundle Holdings::judge(const fs::path& place, const Sight& sight, bool watched) {
  HeldBundle held{.place = place, .watched = watched};
  bundle::Trust trust{.state = watched ? state_ : sight.trust, .allow_downgrade = options_.allow_downgrade};
  if (root_version(state_) > root_version(trust.state)) trust.state.root = state_.root;
  try {
    const bundle::OpenBundle opened = bundle::open(place);
    const auto verified = [&] {
      try {
        return bundle::verify(opened, trust, bundle::system_time());
      } catch (const bundle::Error& error) {
        if (!watched || trust.allow_downgrade || error.code() != ErrorCode::Rollback) throw;
        trust.allow_downgrade = true;
        bundle::VerifiedBundle older = bundle::verify(opened, trust, bundle::system_time());
        held.reason = {.kind = Reason::Kind::Older, .text = on_one_line(error.facts().what)};
        return older;
      }
    };
    bundle::VerifiedBundle bundle = verified();
    const TrustState after = bundle.trust();
    held.contents = contents_of(place, sight.places.at(place), std::move(bundle));
    held.state = watched ? HeldState::Kept : HeldState::Current;
    if (watched)
      state_ = after;
    else if (root_version(after) > root_version(state_))
      state_.root = after.root;
  } catch (const bundle::Error& error) {
    held = {.place = place,
            .contents = nullptr,
            .reason = {.kind = Reason::Kind::Refused, .text = on_one_line(error.what())},
            .watched = watched,
            .refused = error};
  } catch (const std::exception& error) {
    held = {.place = place,
            .contents = nullptr,
            .reason = {.kind = Reason::Kind::Refused, .text = on_one_line(error.what())},
            .watched = watched};
  }
  return held;
}

// Of files that did not change nothing is read again, and what is being sent goes on being the same.
Contents Holdings::contents_of(const fs::path& place, const std::string& sight, bundle::VerifiedBundle verified) {
  const auto known = known_.find(place);
  if (known != known_.end() && known->second.sight == sight && known->second.identity == verified.identity()) {
    known->second.contents->check->note_verified();
    return shown(known->second);
  }
  const bundle::Digest identity = verified.identity();
  std::vector<Contents> before;
  for (const auto& [other, one] : known_) before.push_back(one.contents);
  Contents contents = read_contents(std::make_shared<const bundle::VerifiedBundle>(std::move(verified)), before);
  return shown(known_[place] = {.sight = sight, .identity = identity, .contents = contents});
}

Contents Holdings::shown(Known& known) {
  std::set<std::uint64_t> rotten =
      options_.rotten != nullptr ? options_.rotten->of(known.contents->in) : std::set<std::uint64_t>();
  if (known.shown && rotten == known.rotten) return known.shown;
  known.shown = without(known.contents, rotten);
  known.rotten = std::move(rotten);
  return known.shown;
}

}  // namespace sealift::offline_repo
