// SPDX-License-Identifier: Apache-2.0
// Keeps, finds and ends a draft.
// See draft.hpp.
// The room that is kept free is a few reports: a disk that is full when a check ends still takes the verdict.
#include "verify/report/draft.hpp"

#include "sealift/bundle/core/error.hpp"
#include "verify/verdict/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kRoom = 4u << 20;
constexpr std::string_view kSaidBy = "said_by.";

fs::path file_of(const fs::path& folder) {
  return folder / "checks/under_way.json";
}
fs::path room_of(const fs::path& folder) {
  return folder / "checks/room";
}
fs::path word_of(std::int64_t rank, const fs::path& folder) {
  return folder / "checks" / (std::string(kSaidBy) + std::to_string(rank));
}

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw std::invalid_argument("cannot write " + file.string() + ": " + std::strerror(errno));
}

Json read(const fs::path& file) {
  std::ifstream in(file);
  return Json::parse(in, nullptr, false);
}

/// "rank 1 on gpu07, rank 2"; without ranks the run itself.
Phrase names_of(const std::vector<std::int64_t>& ranks, const Verdict& verdict) {
  if (ranks.empty()) return {"the run", "本次运行"};
  Phrase names;
  for (const auto rank : ranks) {
    const auto name = name_of_rank(verdict, rank);
    names.en += (names.en.empty() ? "" : ", ") + name.en;
    names.zh += (names.zh.empty() ? "" : "、") + name.zh;
  }
  return names;
}

Phrase not_run_after(const Phrase& who, const std::string& check) {
  return {"not run: the run ended in " + check + (who.en.empty() ? "" : " with " + who.en) +
              "; start it again with the same --out: what was recorded is not repeated",
          "未运行：本次运行在 " + check + " 中结束" + (who.zh.empty() ? "" : "（" + who.zh + "）") +
              "；请用相同的 --out 再次启动，已记录的结果不会重做"};
}

}  // namespace

void keep_draft(const Draft& draft, const fs::path& folder) {
  auto left = nlohmann::ordered_json::array();
  for (const auto& check : draft.left) left.push_back(to_json(check));
  fs::create_directories(folder / "checks");
  std::error_code none;
  if (!fs::exists(room_of(folder), none)) write(room_of(folder), std::string(kRoom, '\n'));
  const auto partial = file_of(folder).string() + ".partial";
  write(partial, dumped({{"verdict", to_json(draft.verdict)}, {"left", left}, {"since", draft.since}}));
  fs::rename(partial, file_of(folder));
}

std::optional<Draft> find_draft(const fs::path& folder) {
  const auto json = read(file_of(folder));
  if (!json.is_object()) return std::nullopt;
  try {
    Draft draft{.verdict = verdict_from(json.at("verdict")), .left = {}, .since = json.at("since")};
    for (const auto& check : json.at("left")) draft.left.push_back(check_from(check));
    return draft;
  } catch (const Json::exception&) {
  } catch (const bundle::Error&) {
  }
  return std::nullopt;
}

void remove_draft(const fs::path& folder) {
  std::error_code none;
  fs::remove(file_of(folder), none);
  fs::remove(room_of(folder), none);
  std::vector<fs::path> words;
  for (const auto& entry : fs::directory_iterator(folder / "checks", none)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(kSaidBy) || name.ends_with(".partial")) words.push_back(entry.path());
  }
  for (const auto& word : words) fs::remove(word, none);
}

void leave_word(const Ending& ending, std::int64_t of_rank, const fs::path& folder) {
  std::error_code none;
  if (!fs::exists(file_of(folder), none)) return;
  std::ofstream(word_of(of_rank, folder)) << dumped({{"ranks", ending.ranks}, {"how", to_json(ending.how)}});
}

std::optional<Ending> find_word(std::int64_t of_rank, const fs::path& folder) {
  const auto json = read(word_of(of_rank, folder));
  if (!json.is_object() || !json.contains("ranks") || !json.contains("how")) return std::nullopt;
  try {
    return Ending{.ranks = json.at("ranks").get<std::vector<std::int64_t>>(), .how = phrase_from(json.at("how"))};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Ending> find_first_word(const fs::path& folder) {
  std::error_code none;
  std::optional<std::pair<fs::file_time_type, std::int64_t>> first;
  for (const auto& entry : fs::directory_iterator(folder / "checks", none)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(kSaidBy)) continue;
    const std::pair said{entry.last_write_time(none), std::int64_t{std::atoll(name.c_str() + kSaidBy.size())}};
    if (!first || said < *first) first = said;
  }
  return first ? find_word(first->second, folder) : std::nullopt;
}

Ending with_word(Ending ending, const fs::path& folder) {
  for (const auto rank : ending.ranks) {
    const auto word = find_word(rank, folder);
    if (!word || word->how == ending.how) continue;
    ending.how.en += "; rank " + std::to_string(rank) + " " + word->how.en;
    ending.how.zh += "；进程 " + std::to_string(rank) + " " + word->how.zh;
    break;
  }
  return ending;
}

Phrase name_of_rank(const Verdict& verdict, std::int64_t rank) {
  const auto number = std::to_string(rank);
  for (const auto& node : verdict.nodes) {
    const auto found = std::find(node.ranks.begin(), node.ranks.end(), rank);
    if (found == node.ranks.end()) continue;
    const auto device = node.devices.at(static_cast<std::size_t>(found - node.ranks.begin()));
    const bool chosen = device != "auto";  // --device's word, until the rank knows
    return {"rank " + number + " on " + node.host + (chosen ? " (" + device + ")" : ""),
            node.host + " 上的进程 " + number + (chosen ? "（" + device + "）" : "")};
  }
  return {"rank " + number, "进程 " + number};
}

Verdict finished_by(Draft draft, const Ending& ending, const std::string& now) {
  auto verdict = std::move(draft.verdict);
  verdict.finished = now;
  const auto who = names_of(ending.ranks, verdict);
  const auto name = draft.left.empty() ? std::string() : draft.left.front().name;
  for (std::size_t i = 0; i < draft.left.size(); ++i) {
    auto check = std::move(draft.left[i]);
    if (i == 0) {
      check.outcome = Outcome::Fail;
      check.reason = {who.en + " " + ending.how.en + ", while this check ran since " + draft.since,
                      who.zh + "：" + ending.how.zh + "；当时本项检查自 " + draft.since + " 起正在运行"};
      for (const auto rank : ending.ranks) check.at_fault.push_back(name_of_rank(verdict, rank));
    } else if (check.reason.en.empty()) {
      check.outcome = Outcome::NotRun;
      check.reason = not_run_after(ending.ranks.empty() ? Phrase() : who, name);
    }
    verdict.checks.push_back(std::move(check));
  }
  return verdict;
}

}  // namespace sealift::verify
