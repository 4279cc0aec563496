// SPDX-License-Identifier: Apache-2.0
// See run_cost.hpp.
#include "trainer/compare/run_cost.hpp"

#include "trainer/json_numbers.hpp"

#include "sealift/bundle/core/file.hpp"
#include "sealift/safetensors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace sealift::trainer::compare {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostBytes = 64 << 20;  // a million steps' losses
constexpr std::size_t kMostRuns = 64;

[[noreturn]] void refuse(const std::string& file, const std::string& fault) {
  throw std::invalid_argument(file + ": " + fault +
                              "; give result.json files of sealift-train, or lines of bench/peers.py (.jsonl)");
}

json parse(const std::string& text, const std::string& file) {
  try {
    return safetensors::parse_json(text, 16, file);
  } catch (const std::exception& error) {
    throw std::invalid_argument(error.what());
  }
}

/// The value at `keys`; null where there is none.
const json& at(const json& from, std::initializer_list<const char*> keys) {
  static const json kNone;
  const auto* value = &from;
  for (const auto* key : keys) {
    if (!value->is_object() || !value->contains(key)) return kNone;
    value = &value->at(key);
  }
  return *value;
}

/// Known, finite and not negative.
std::optional<double> number(const json& value) {
  const auto found = number_in(value);
  return found && std::isfinite(*found) && *found >= 0 ? found : std::nullopt;
}

std::string text(const json& value) {
  return value.is_string() ? value.get<std::string>().substr(0, 100) : std::string();
}

/// A count of ranks that can be.
std::int64_t ranks_of(const json& value, const std::string& file) {
  const auto ranks = value.is_number_integer() ? value.get<std::int64_t>() : 0;
  if (ranks < 1 || ranks > 1000000) refuse(file, "its number of ranks is not from 1 to 1000000");
  return ranks;
}

std::vector<double> losses_of(const json& value) {
  std::vector<double> losses;
  for (const auto& each : value) losses.push_back(number_or_nan(each));
  return losses;
}

std::optional<Texts> job_of(const json& value) {
  if (!value.is_object()) return {};
  Texts job;
  for (const auto& [key, each] : value.items()) job[key] = each.is_string() ? each.get<std::string>() : each.dump();
  return job;
}

std::optional<double> slowest(const json& saves) {
  std::optional<double> most;
  for (const auto& each : saves) {
    const auto seconds = number(at(each, {"seconds"}));
    if (seconds && (!most || *seconds > *most)) most = seconds;
  }
  return most;
}

/// A line of bench/peers.py.
RunCost cost_of_peer(const json& line, const std::string& file) {
  const auto name = text(at(line, {"name"}));
  if (name.empty()) refuse(file, "a line has no name");
  RunCost cost{.name = {}, .method = "PyTorch " + name, .device = {}, .precision = text(at(line, {"precision"}))};
  if (line.contains("ranks")) cost.ranks = ranks_of(line.at("ranks"), file);
  cost.device = text(at(line, {"device"}));
  cost.on_card = cost.device != "cpu" && !cost.device.empty();
  if (const auto peak = number(at(line, {"peak_mib"}))) cost.peak_bytes = std::min(*peak, 1e12) * (1 << 20);
  if (const auto tokens = number(at(line, {"tokens_per_second"})))
    cost.tokens = *tokens / static_cast<double>(cost.ranks);
  if (const auto step = number(at(line, {"ms_per_step"}))) cost.step = *step / 1e3;
  if (const auto loss = number(at(line, {"first_loss"}))) cost.losses = {*loss};
  cost.fault = text(at(line, {"failed"}));
  return cost;
}

std::vector<RunCost> costs_of_lines(const std::string& lines, const std::string& file) {
  std::vector<RunCost> costs;
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = std::min(lines.find('\n', begin), lines.size());
    const auto line = lines.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (costs.size() == kMostRuns) refuse(file, "it has more than " + std::to_string(kMostRuns) + " lines");
    costs.push_back(cost_of_peer(parse(line, file), file));
  }
  if (costs.empty()) refuse(file, "it has no line");
  return costs;
}

std::vector<RunCost> costs_of(const std::filesystem::path& given) {
  const auto path = std::filesystem::is_directory(given) ? given / "result.json" : given;
  const auto content = bundle::read_text(path, kMostBytes);
  if (path.extension() == ".jsonl") return costs_of_lines(content, path.string());
  return {cost_of_result(parse(content, path.string()), path.string())};
}

/// Rows of one name get what tells them apart: the folder that each lies in, else a number.
void tell_apart(std::vector<RunCost>& costs, const std::vector<std::string>& folders) {
  std::map<std::string, int> count, seen;
  for (const auto& cost : costs) ++count[cost.name];
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (count[costs[i].name] > 1 && !folders[i].empty()) costs[i].name += " (" + folders[i] + ")";
  }
  for (auto& cost : costs) {
    if (const auto number = ++seen[cost.name]; number > 1) cost.name += " #" + std::to_string(number);
  }
}

}  // namespace

RunCost cost_of_result(const json& result, const std::string& name) {
  const auto method = text(at(result, {"parallel_method"}));
  if (method.empty() || !at(result, {"losses"}).is_array()) refuse(name, "it has no parallel_method or no losses");
  RunCost cost{.name = {}, .method = method, .device = {}, .precision = {}};
  cost.ranks = ranks_of(at(result, {"world_size"}), name);
  if (method == "fsdp" && at(result, {"reshard_after_forward"}) == false) cost.method = "shard_grad_op";
  const auto& device = at(result, {"device"});
  cost.on_card = !text(at(device, {"type"})).empty() && at(device, {"type"}) != "cpu";
  cost.device = cost.on_card ? text(at(device, {"name"})) : "cpu";
  const auto& monitor = at(result, {"monitor"});
  const auto* peak = cost.on_card ? "peak_device_memory_bytes" : "peak_host_memory_bytes";
  cost.peak_bytes = number(at(monitor, {peak, "max"}));
  cost.planned_bytes = number(at(result, {"planned", "memory_bytes"}));
  cost.planned_step = number(at(result, {"planned", "step_seconds"}));
  cost.start_up = number(at(monitor, {"start_up_seconds", "total", "max"}));
  cost.tokens = number(at(monitor, {"tokens_per_second_per_device"}));
  cost.step = number(at(monitor, {"seconds_per_step", "step", "median"}));
  cost.waiting = number(at(monitor, {"communication", "exposed_share", "median"}));
  cost.checkpoint = slowest(at(monitor, {"checkpoint_seconds"}));
  cost.losses = losses_of(result.at("losses"));
  cost.job = job_of(at(result, {"configuration"}));
  if (cost.job && cost.job->contains("precision")) cost.precision = cost.job->at("precision");
  return cost;
}

std::vector<RunCost> read_costs(const std::vector<std::string>& paths) {
  std::vector<RunCost> costs;
  std::vector<std::string> folders;
  for (const auto& path : paths) {
    const std::filesystem::path file(path);
    const auto folder = std::filesystem::is_directory(file) ? file : file.parent_path();
    for (auto& cost : costs_of(file)) {
      cost.name = cost.method + " x" + std::to_string(cost.ranks);
      costs.push_back(std::move(cost));
      folders.push_back(folder.filename().string());
    }
  }
  if (costs.size() > kMostRuns) throw std::invalid_argument("more than " + std::to_string(kMostRuns) + " runs");
  tell_apart(costs, folders);
  return costs;
}

}  // namespace sealift::trainer::compare
