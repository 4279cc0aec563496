// SPDX-License-Identifier: Apache-2.0
// One check after the other, on all ranks at once.
// See conduct.hpp.
// A rank that throws still takes part in the exchange, so one broken rank is a named FAIL and not a hang.
#include "verify/conduct/conduct.hpp"

#include "sealift/bundle/core/error.hpp"
#include "trainer/json_numbers.hpp"
#include "verify/conduct/child_watch.hpp"
#include "verify/conduct/culprits.hpp"
#include "verify/conduct/utc_now.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/numbers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool measures(Who who, const Site& site) {
  if (who == Who::FirstRank) return site.rank == 0;
  return who == Who::EveryRank || site.is_first_of_host();
}

/// A fresh folder for one check on this rank, removed at the end.
class Scratch {
 public:
  Scratch(const fs::path& folder, const std::string& name, std::int64_t rank)
      : path_(folder / (name + "-" + std::to_string(rank) + "-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Json measure(const CheckKind& kind, const Site& site) {
  Json said{{"rank", site.rank}, {"host", site.host}, {"device", site.device}};
  if (!measures(kind.who, site)) return said;
  try {
    const Scratch scratch(site.work, kind.name, site.rank);
    auto here = site;
    here.work = scratch.path();
    said["values"] = kind.measure(here);
  } catch (const NotRun& why) {
    said["not_run"] = to_json(why.reason);
  } catch (const std::exception& error) {
    said["error"] = error.what();
  }
  if (!site.watch) return said;
  if (auto watched = site.watch->take(); !watched.is_null()) said["watched"] = std::move(watched);
  return said;
}

std::vector<Measured> read_measurements(const std::vector<std::string>& texts) {
  std::vector<Measured> all;
  for (const auto& text : texts) {
    const auto json = Json::parse(text);
    Measured measured{json.at("rank"), json.at("host"), json.at("device"), {}, {}, {}};
    if (const auto why = json.find("not_run"); why != json.end()) measured.not_run = phrase_from(*why);
    if (const auto why = json.find("error"); why != json.end()) measured.error = why->get<std::string>();
    if (const auto values = json.find("values"); values != json.end()) measured.values = *values;
    if (measured.not_run || measured.error || json.contains("values")) all.push_back(std::move(measured));
  }
  return all;
}

/// What the ranks' programs did in one check.
Json watched_in(const std::vector<std::string>& texts, const std::string& check) {
  auto all = Json::array();
  for (const auto& text : texts) {
    auto json = Json::parse(text);
    if (!json.contains("watched")) continue;
    auto one = std::move(json["watched"]);
    one["check"] = check, one["rank"] = json["rank"], one["host"] = json["host"];
    all.push_back(std::move(one));
  }
  return all;
}

Check blank(const CheckKind& kind) {
  Check check;
  check.name = kind.name;
  check.part = kind.part;
  check.title = kind.title;
  return check;
}

/// Every rank's reason, or the common one.
Check without_values(Check check, const std::vector<Measured>& all) {
  check.reason = {"no rank measured it: of no host is there a rank that its launcher calls the first (LOCAL_RANK=0)",
                  "没有进程进行测量：启动器没有把任何进程标为其主机的第一个（LOCAL_RANK=0）"};
  for (const auto& measured : all) {
    if (measured.not_run) check.reason = *measured.not_run;
  }
  return check;
}

Check with_errors(Check check, const std::vector<Measured>& all) {
  Culprits culprits;
  for (const auto& measured : all) {
    if (measured.error) culprits.add(name_of(measured), *measured.error);
  }
  culprits.accuse(check);
  return check;
}

/// Some ranks could not measure: what was judged stands, and the check says for whom it does not.
void name_those_left_out(Check& check, const std::vector<Measured>& all) {
  Phrase who;
  const Measured* first = nullptr;
  for (const auto& measured : all) {
    if (!measured.not_run) continue;
    const auto name = name_of(measured);
    who.en += (first ? ", " : "") + name.en;
    who.zh += (first ? "、" : "") + name.zh;
    if (!first) first = &measured;
  }
  if (!first) return;
  if (check.outcome == Outcome::Pass) check.outcome = Outcome::NotRun;
  append(check.reason,
         {"not run on " + who.en + ": " + first->not_run->en, "未运行：" + who.zh + "：" + first->not_run->zh});
}

Check judge(const CheckKind& kind, const std::vector<Measured>& all, const Site& site) {
  auto check = blank(kind);
  std::size_t errors = 0, values = 0;
  for (const auto& measured : all) {
    errors += measured.error ? 1 : 0;
    values += measured.error || measured.not_run ? 0 : 1;
  }
  if (errors > 0) return with_errors(std::move(check), all);
  if (values == 0) return without_values(std::move(check), all);
  try {
    kind.judge(all, site, check);
  } catch (const std::exception& error) {
    check.outcome = Outcome::Fail;
    check.reason = {"what was measured could not be judged: " + std::string(error.what()),
                    "无法评判测量结果：" + std::string(error.what())};
  }
  name_those_left_out(check, all);
  return check;
}

struct Record {
  std::string began;  ///< UTC
  Check check;
  Json watched;  ///< as Site::watched
};

/// Results under OUT/checks: what a stopped run has done.
class Records {
 public:
  Records(const fs::path& shared, std::string identity) : folder_(shared / "checks"), identity_(std::move(identity)) {
    fs::create_directories(folder_);
  }

  /// What passed or failed under the same identity.
  std::optional<Record> find(const std::string& name) const {
    std::ifstream in(file(name));
    const auto json = Json::parse(in, nullptr, false);
    if (!json.is_object() || json.value("identity", "") != identity_ || !json.contains("check")) return std::nullopt;
    try {
      auto check = check_from(json.at("check"));
      auto watched = json.value("watched", Json::array());
      auto began = json.at("began").get<std::string>();
      if (check.name == name && check.outcome != Outcome::NotRun && watched.is_array()) {
        return Record{std::move(began), std::move(check), std::move(watched)};
      }
    } catch (const Json::exception&) {
      // For a version that did not say when.
    } catch (const bundle::Error&) {
      // A record of another version: the check is run again.
    }
    return std::nullopt;
  }

  void keep(const Record& record) const {
    const auto& [began, check, watched] = record;
    const auto partial = folder_ / (check.name + ".partial");
    {
      std::ofstream out(partial);
      const nlohmann::ordered_json json{
          {"identity", identity_}, {"began", began}, {"check", to_json(check)}, {"watched", watched}};
      out << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
      out.flush();
      if (!out) throw std::invalid_argument("cannot write " + partial.string() + ": " + std::strerror(errno));
    }
    fs::rename(partial, file(check.name));
  }

 private:
  fs::path file(const std::string& name) const { return folder_ / (name + ".json"); }
  fs::path folder_;
  std::string identity_;
};

std::string line_of(const Check& check) {
  auto outcome = name_of(check.outcome), seconds = seconds_text(check.seconds);
  outcome.resize(7, ' ');
  seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, ' ');
  return outcome + seconds + "  " + check.name + (check.reason.en.empty() ? "" : ": " + check.reason.en);
}

std::string free_ports(const Exchange& exchange) {
  auto ports = Json::array();
  for (int i = 0; i < 4; ++i) ports.push_back(exchange.free_port());
  return ports.dump();
}

bool is_left_out(const CheckKind& kind, const std::vector<std::string>& only) {
  return !only.empty() &&
         std::none_of(only.begin(), only.end(), [&](const std::string& name) { return kind.name.starts_with(name); });
}

Check left_out(const CheckKind& kind) {
  auto check = blank(kind);
  check.reason = left_out_by_only();
  return check;
}

Check below_level(const CheckKind& kind) {
  auto check = blank(kind);
  check.reason = part_of_level(kind.from);
  return check;
}

}  // namespace

Exchange alone() {
  return {.gather = [](const std::string& mine) { return std::vector<std::string>{mine}; },
          .broadcast = [](const std::string& text) { return text; },
          .free_port = [] { return std::int64_t{0}; }};
}

std::vector<Check> checks_left(const std::vector<CheckKind>& kinds, std::size_t first, const Site& site) {
  std::vector<Check> left;
  for (std::size_t i = first; i < kinds.size(); ++i) {
    const auto& kind = kinds[i];
    left.push_back(is_left_out(kind, site.only) ? left_out(kind)
                   : kind.from > site.level     ? below_level(kind)
                                                : blank(kind));
  }
  return left;
}

Conducted conduct(const std::vector<CheckKind>& kinds, Site site, const Exchange& exchange, const std::string& identity,
                  const std::function<void(const std::string&)>& say, const Progress& progress) {
  const bool first = site.rank == 0;
  std::optional<Records> records;
  if (first) records.emplace(site.shared, identity);
  Conducted conducted;
  auto& checks = conducted.checks;
  // Texts of one form and zone: the earliest is the first of them.
  const auto note = [&](const std::string& began) {
    if (conducted.began.empty() || began < conducted.began) conducted.began = began;
  };
  for (const auto& kind : kinds) {
    if (is_left_out(kind, site.only)) {
      if (first) checks.push_back(left_out(kind));
      continue;
    }
    if (kind.from > site.level) {
      if (first) checks.push_back(below_level(kind));
      continue;
    }
    auto done = first && !kind.of_whole_run ? records->find(kind.name) : std::nullopt;
    if (first && progress && !done) {
      progress(checks, checks_left(kinds, static_cast<std::size_t>(&kind - kinds.data()), site));
    }
    // "done", or the ports that child jobs of this check may use.
    const auto word = exchange.broadcast(first ? done ? "done" : free_ports(exchange) : "");
    if (word == "done") {
      if (first) {
        say(line_of(done->check) + " (recorded)");
        note(done->began);
        site.watched.insert(site.watched.end(), done->watched.begin(), done->watched.end());
        checks.push_back(std::move(done->check));
      }
      continue;
    }
    site.free_ports = Json::parse(word).get<std::vector<std::int64_t>>();
    site.free_port = site.free_ports.front();
    const auto began = std::chrono::steady_clock::now();
    const auto when = utc_now();
    const auto measured = trainer::with_all_numbers(measure(kind, site));
    const auto texts = exchange.gather(measured.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (!first) continue;
    auto check = judge(kind, read_measurements(texts), site);
    check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const auto watched = watched_in(texts, kind.name);
    site.watched.insert(site.watched.end(), watched.begin(), watched.end());
    note(when);
    records->keep({when, check, watched});
    say(line_of(check));
    checks.push_back(std::move(check));
  }
  return conducted;
}

}  // namespace sealift::verify
