// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks: the bundle's identity, the installed versions, and every file by doctor.
// See checks.hpp.
// doctor is run as the program that it is: what it finds is what an administrator would see.
#include "verify/installation/checks.hpp"

#include "verify/conduct/child_watch.hpp"
#include "verify/conduct/culprits.hpp"
#include "verify/conduct/identity.hpp"
#include "verify/installation/versions.hpp"

#include <algorithm>
#include <fstream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
constexpr std::size_t kShownFindings = 100;

Json expectation_of(const Site& site) {
  return site.expected.value("installation", Json::object());
}

/// The prefix that the generation lies in: PREFIX/generations/0003 -> PREFIX.
fs::path prefix_of(const Site& site) {
  std::error_code ignored;
  const auto generation = fs::weakly_canonical(site.prefix, ignored);
  if (generation.parent_path().filename() == "generations") return generation.parent_path().parent_path();
  throw NotRun({site.prefix.string() + " is no generation of a prefix that sealift-install made",
                site.prefix.string() + " 不是 sealift-install 所建前缀中的世代"});
}

Json read_json(const fs::path& file) {
  std::ifstream in(file);
  const auto json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) throw std::runtime_error(file.string() + " is not JSON");
  return json;
}

Json record_of(const Site& site) {
  const auto file = site.prefix / "generation.json";
  if (!fs::exists(file)) {
    throw NotRun(
        {"there is no " + file.string() + ": not an installed bundle", "没有 " + file.string() + "：不是已安装的包"});
  }
  return read_json(file);
}

Json measure_identity(const Site& site) {
  record_of(site);
  const auto bundle = *bundle_of(site.prefix);
  return {{"name", bundle.name},
          {"version", bundle.version},
          {"identity", bundle.manifest_sha256},
          {"signers", bundle.signers}};
}

void judge_identity(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto expected = expectation_of(site);
  const auto hosts = with_values(all);
  Culprits culprits;
  for (const auto* host : hosts) {
    for (const auto& [key, called] : {std::pair<const char*, Phrase>{"name", {"name", "包名"}},
                                      {"version", {"version", "包版本"}},
                                      {"identity", {"identity", "包标识"}}}) {
      const auto got = host->values.at(key).get<std::string>();
      const auto& given = expected.contains(key) ? expected.at(key) : hosts[0]->values.at(key);  // or the first host's
      const auto wanted = given.is_string() ? given.get<std::string>() : given.dump();
      check.facts.push_back({{host->host + " " + called.en, host->host + " " + called.zh}, got});
      if (got != wanted) {
        culprits.add(host->host, {called.en + " of the bundle is " + got + ", expected " + wanted,
                                  called.zh + "为 " + got + "，应为 " + wanted});
      }
    }
    for (const auto& signer : host->values.at("signers"))
      check.facts.push_back({{"signer", "签名者"}, signer.get<std::string>()});
  }
  const auto& first = hosts.at(0)->values;
  const auto text = first.at("name").get<std::string>() + " " + first.at("version").get<std::string>() + ", " +
                    first.at("identity").get<std::string>();
  const bool compared = hosts.size() > 1 || expected.contains("identity");
  culprits.settle(
      check,
      {text + (compared
                   ? ""
                   : "; there is nothing to compare with: no identity in site.toml ([installation]), no second host"),
       text + (compared ? "" : "；site.toml 没有写明期望值（[installation] identity），也没有第二台主机可比较")});
}

Json measure_versions(const Site& site) {
  const auto record = record_of(site);
  const auto folder = site.prefix / record.value("site_packages", std::string());
  if (record.value("site_packages", std::string()).empty() || !fs::is_directory(folder)) {
    throw NotRun({"the generation has no Python packages", "该世代没有 Python 软件包"});
  }
  Json values{{"installed", installed_versions(folder)}, {"generation.json", versions_of_record(record)}};
  if (const auto sbom = expectation_of(site).value("sbom", std::string()); !sbom.empty()) {
    values["SBOM"] = versions_of_sbom(read_json(sbom));
  }
  return values;
}

void compare_versions(const Versions& installed, const Versions& wanted, const std::string& source,
                      const std::string& host, Culprits& culprits) {
  for (const auto& [name, version] : wanted) {
    const auto found = installed.find(name);
    if (found != installed.end() && found->second == version) continue;
    const auto got = found == installed.end() ? Phrase{"nothing is installed", "未安装"}
                                              : Phrase{found->second + " is installed", "已安装 " + found->second};
    culprits.add(on_host(name, host),
                 {got.en + ", " + source + " says " + version, got.zh + "，" + source + " 为 " + version});
  }
  for (const auto& [name, version] : installed) {
    if (wanted.contains(name)) continue;
    culprits.add(on_host(name, host), {version + " is installed, and " + source + " does not name it",
                                       "已安装 " + version + "，" + source + " 中没有"});
  }
}

void judge_versions(const std::vector<Measured>& all, const Site&, Check& check) {
  Culprits culprits;
  std::size_t count = 0;
  bool has_sbom = false;
  for (const auto* host : with_values(all)) {
    const auto installed = host->values.at("installed").get<Versions>();
    count = std::max(count, installed.size());
    for (const auto* source : {"generation.json", "SBOM"}) {
      if (!host->values.contains(source)) continue;
      has_sbom = has_sbom || std::string(source) == "SBOM";
      compare_versions(installed, host->values.at(source).get<Versions>(), source, host->host, culprits);
    }
  }
  const auto text = std::to_string(count);
  if (count == 0 && culprits.count() == 0) {
    check.reason = {"the generation has no Python packages", "该世代没有 Python 软件包"};
    return;
  }
  culprits.settle(check,
                  {text + " distributions have the versions of the bundle" + (has_sbom ? " and of the SBOM" : ""),
                   text + " 个 Python 软件包与包的记录" + (has_sbom ? "及 SBOM" : "") + "一致"});
}

/// Where the installer may lie; a name alone is looked for in PATH.
std::string installer_of(const Site& site, const fs::path& prefix) {
  if (const auto given = expectation_of(site).value("installer", std::string()); !given.empty()) return given;
  for (const auto& place : {site.prefix / "bin" / "sealift-install", prefix / "sealift-install"}) {
    if (fs::exists(place)) return place.string();
  }
  return "sealift-install";
}

Phrase why_not(const ChildResult& result, const Json& said) {
  if (result.timed_out) return {"doctor was not done after 50 minutes", "doctor 在 50 分钟内未完成"};
  const auto error = said.is_object() ? said.value("error", Json::object()) : Json::object();
  const auto what = error.value("what", "exit code " + std::to_string(result.code));
  return {"doctor cannot tell: " + what + " " + error.value("where", ""),
          "doctor 无法判断：" + what + " " + error.value("where", "")};
}

Json measure_doctor(const Site& site) {
  const auto prefix = prefix_of(site);
  const auto installer = installer_of(site, prefix);
  ChildResult result;
  try {
    result = run_for(site, {installer, "doctor", "--prefix", prefix.string(), "--json"}, {}, std::chrono::minutes(50));
  } catch (const std::runtime_error&) {
    throw NotRun(
        {"no sealift-install in the generation, the prefix or PATH; name it in site.toml: [installation] installer",
         "世代、前缀和 PATH 中都没有 sealift-install；请在 site.toml 的 [installation] installer 中指定"});
  }
  const auto said = Json::parse(result.out, nullptr, false);
  const bool has_verdict = said.is_object() && said.contains("healthy") && said.contains("findings");
  if (result.timed_out || !has_verdict) throw NotRun(why_not(result, said));
  auto findings = Json::array();
  for (const auto& finding : said.at("findings")) {
    if (findings.size() < kShownFindings) findings.push_back(finding);
  }
  return {{"healthy", said.at("healthy")},       {"code", result.code},  {"files", said.value("files", 0)},
          {"count", said.at("findings").size()}, {"findings", findings}, {"prefix", prefix.string()}};
}

void judge_doctor(const std::vector<Measured>& all, const Site&, Check& check) {
  Culprits culprits;
  std::int64_t files = 0;
  for (const auto* host : with_values(all)) {
    const auto& values = host->values;
    files += values.at("files").get<std::int64_t>();
    for (const auto& finding : values.at("findings")) {
      const auto& paths = finding.at("paths");
      const auto path = paths.empty() ? values.at("prefix").get<std::string>() : paths[0].get<std::string>();
      const auto kind = finding.at("kind").get<std::string>();
      culprits.add(on_host(path, host->host),
                   {kind + ": expected " + finding.value("expected", "") + ", got " + finding.value("got", ""),
                    kind + "：应为 " + finding.value("expected", "") + "，实为 " + finding.value("got", "")});
    }
    check.facts.push_back({{host->host + " findings", host->host + " 发现的问题数"},
                           std::to_string(values.at("count").get<std::int64_t>())});
    if (values.at("findings").empty() && (!values.at("healthy").get<bool>() || values.at("code") != 0)) {
      const auto code = std::to_string(values.at("code").get<int>());
      culprits.add(host->host, {"doctor ended with " + code, "doctor 退出码为 " + code});
    }
  }
  const auto text = std::to_string(files);
  culprits.settle(check, {text + " files are what was signed", text + " 个文件与签名的内容一致"});
}

}  // namespace

std::vector<CheckKind> installation_checks() {
  const auto kind = [](const char* name, Level from, Phrase title, auto measure, auto judge) {
    return CheckKind{.name = name,
                     .part = Part::Installation,
                     .from = from,
                     .title = std::move(title),
                     .who = Who::OneOfHost,
                     .measure = measure,
                     .judge = judge};
  };
  return {
      kind("installation.identity", Level::Quick, {"every host runs the expected bundle", "每台主机运行的是期望的包"},
           measure_identity, judge_identity),
      kind("installation.versions", Level::Quick,
           {"installed versions are those of the bundle", "已安装的版本与包一致"}, measure_versions, judge_versions),
      kind("installation.doctor", Level::Full,
           {"every installed file is what was signed", "每个已安装的文件与签名的内容一致"}, measure_doctor,
           judge_doctor)};
}

}  // namespace sealift::verify
