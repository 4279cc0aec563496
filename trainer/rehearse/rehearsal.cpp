// SPDX-License-Identifier: Apache-2.0
// See rehearsal.hpp. JSON has everything; the text folds what repeats: a deep model's layers are alike.
// Numbers of bytes are exact in JSON and rounded for people.
#include "trainer/rehearse/rehearsal.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace sealift::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::string for_people(std::int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(bytes < (std::int64_t{1} << 30) ? 1 : 2);
  if (bytes < (1 << 20)) {
    out << std::setprecision(0) << bytes << " bytes";
  } else if (bytes < (std::int64_t{1} << 30)) {
    out << static_cast<double>(bytes) / (1 << 20) << " MiB";
  } else {
    out << static_cast<double>(bytes) / (1 << 30) << " GiB";
  }
  return out.str();
}

/// A path or label with its layer's number replaced, so that layers that are alike compare equal.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = text[i] == '.' && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]));
    result += text[i];
    if (!begins) continue;
    result += 'N';
    while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
  }
  return result;
}

/// A label without the number by which ranks compare which parameters have gradients.
std::string without_detail(const std::string& label) {
  const auto detail = label.rfind(", detail ");
  return detail == std::string::npos ? label : label.substr(0, detail) + ")";
}

/// Notes that differ in a layer's number only are one.
void write_notes(std::ostream& out, const std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, std::size_t>> folded;
  for (const auto& note : notes) {
    const auto text = without_numbers(note);
    const auto same =
        std::find_if(folded.begin(), folded.end(), [&](const auto& other) { return other.first == text; });
    same == folded.end() ? static_cast<void>(folded.emplace_back(text, 1)) : static_cast<void>(++same->second);
  }
  for (const auto& [text, times] : folded) {
    out << "note: " << text << (times > 1 ? " (" + std::to_string(times) + " such)" : "") << '\n';
  }
}

void write_units(std::ostream& out, const std::vector<Rehearsal::Unit>& units) {
  for (std::size_t i = 0; i < units.size();) {
    const auto& unit = units[i];
    const auto alike = [&](const Rehearsal::Unit& other) {
      return without_numbers(other.path) == without_numbers(unit.path) && other.parameters == unit.parameters &&
             other.whole_bytes == unit.whole_bytes && other.shard_bytes == unit.shard_bytes;
    };
    const auto end = static_cast<std::size_t>(
        std::find_if_not(units.begin() + static_cast<std::ptrdiff_t>(i), units.end(), alike) - units.begin());
    out << "  " << (unit.path.empty() ? "the root" : end - i > 1 ? without_numbers(unit.path) : unit.path);
    if (end - i > 1) out << " x " << end - i;
    out << ": " << unit.parameters << " parameters, ";
    if (unit.flats == 0) {
      out << "whole on every rank\n";
    } else {
      out << for_people(unit.whole_bytes) << " gathered, " << for_people(unit.shard_bytes) << " kept by a rank\n";
    }
    i = end;
  }
}

/// Runs of collectives that are alike but for the layer, in pairs too: backward gathers one and reduces another.
void write_collectives(std::ostream& out, const std::vector<Rehearsal::Collective>& all) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return all[a].group == all[b].group && all[a].bytes == all[b].bytes &&
           without_numbers(all[a].label) == without_numbers(all[b].label);
  };
  for (std::size_t i = 0; i < all.size();) {
    std::size_t period = 1, times = 1;
    for (std::size_t length = 1; length <= 4; ++length) {
      std::size_t count = 1;
      const auto repeats = [&](std::size_t from) {
        for (std::size_t k = 0; k < length; ++k) {
          if (from + k >= all.size() || !same(i + k, from + k)) return false;
        }
        return true;
      };
      while (repeats(i + count * length)) ++count;
      if (count > 1 && count * length > period * times) period = length, times = count;
    }
    for (std::size_t k = 0; k < period; ++k) {
      const auto& [group, label, bytes] = all[i + k];
      const auto count = times > 1 ? std::to_string(times) + " x " : std::string();
      out << "  " << count << (times > 1 ? without_numbers(without_detail(label)) : without_detail(label)) << ", "
          << for_people(bytes) << ", in group " << group << '\n';
    }
    i += period * times;
  }
}

Json collectives_json(const std::vector<Rehearsal::Collective>& all) {
  auto list = Json::array();
  for (const auto& [group, label, bytes] : all) list.push_back({{"group", group}, {"label", label}, {"bytes", bytes}});
  return list;
}

Json sent_json(const std::vector<Rehearsal::Sent>& all) {
  auto json = Json::object();
  for (const auto& [op, calls, bytes] : all) json[op] = {{"calls", calls}, {"bytes", bytes}};
  return json;
}

}  // namespace

std::int64_t Rehearsal::Peaks::most() const {
  return std::max({built, forward, backward, optimizer});
}

Json Rehearsal::json() const {
  auto list = Json::array();
  for (const auto& unit : units) {
    list.push_back({{"path", unit.path},
                    {"parameters", unit.parameters},
                    {"flats", unit.flats},
                    {"whole_bytes", unit.whole_bytes},
                    {"shard_bytes", unit.shard_bytes}});
  }
  return {{"family", family},
          {"parameters", parameters},
          {"trainable_parameters", trainable},
          {"ranks", ranks},
          {"rank", rank},
          {"mesh", mesh},
          {"imitates", device},
          {"units", list},
          {"peak_bytes",
           {{"built", peaks.built},
            {"forward", peaks.forward},
            {"backward", peaks.backward},
            {"optimizer", peaks.optimizer},
            {"resting", peaks.resting}}},
          {"start",
           {{"store_requests", messages.store_requests},
            {"awaited_keys", messages.awaited_keys},
            {"host_peers", messages.host_peers},
            {"host_messages", messages.host_messages},
            {"host_bytes", messages.host_bytes},
            {"communicators", messages.communicators},
            {"sent", sent_json(start_sent)},
            {"collectives", collectives_json(start)}}},
          {"order_checks", {{"first_step", order_checks_first}, {"later_steps", order_checks_later}}},
          {"step", {{"sent", sent_json(step_sent)}, {"collectives", collectives_json(step)}}},
          {"checkpoint",
           {{"files", checkpoint.files}, {"tensors", checkpoint.tensors}, {"bytes_of_rank", checkpoint.bytes}}},
          {"notes", notes}};
}

std::string Rehearsal::text() const {
  std::ostringstream out;
  out << family << ", " << parameters << " parameters, " << trainable << " trained, as rank " << rank << " of " << ranks
      << " (" << mesh << ")\n\nunits:\n";
  write_units(out, units);
  out << "\nat the start:\n  " << messages.store_requests << " requests to the store, which wait for "
      << messages.awaited_keys << " keys; " << messages.host_peers << " connections and " << messages.host_messages
      << " messages between hosts; " << messages.communicators << " communicators\n";
  write_collectives(out, start);
  out << "\na step:\n";
  write_collectives(out, step);
  for (const auto& [op, calls, bytes] : step_sent) {
    out << "  sends " << for_people(bytes) << " in " << calls << " calls of " << op << '\n';
  }
  out << "  ranks compare " << order_checks_first << " labels in the first step, " << order_checks_later
      << " in later ones\n";
  out << "\nmemory of the rank's device, most in each part:\n  built " << for_people(peaks.built) << ", forward "
      << for_people(peaks.forward) << ", backward " << for_people(peaks.backward) << ", optimizer "
      << for_people(peaks.optimizer) << "; between steps " << for_people(peaks.resting) << '\n';
  out << "\na checkpoint: " << checkpoint.files << " files, this rank's of " << checkpoint.tensors << " tensors and "
      << for_people(checkpoint.bytes) << '\n';
  write_notes(out, notes);
  return out.str();
}

}  // namespace sealift::trainer
