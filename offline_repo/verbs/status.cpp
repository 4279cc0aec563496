// SPDX-License-Identifier: Apache-2.0
// status: what a running server holds, and why it leaves something out. Asks its admin listener; exit status 1 when the
// server is not healthy.
#include "bundle/core/json.hpp"
#include "offline_repo/records/audit_log.hpp"
#include "offline_repo/server/admin_client.hpp"
#include "offline_repo/verbs/verbs.hpp"

namespace sealift::offline_repo {

namespace {

struct StatusOptions {
  std::string admin;
  bool json = false;
};

std::string text_of(const bundle::Json& value, const char* key) {
  return value.contains(key) ? escaped_bytes(value.at(key).get<std::string>()) : "-";
}

std::string table_of(const bundle::Json& status) {
  std::string out = status.at("healthy").get<bool>() ? "good\n" : "not good: " + text_of(status, "reason") + "\n";
  if (status.contains("gaps"))  // an older server does not say
    for (const bundle::Json& gap : status.at("gaps")) out += "gap: " + text_of(gap, "line") + "\n";
  for (const bundle::Json& one : status.at("bundles")) {
    out += text_of(one, "state") + "\t" + text_of(one, "channel") + "\t" + text_of(one, "bundle") + "\t" +
           text_of(one, "place");
    if (const std::string why = text_of(one, "why"); !why.empty()) out += "\t" + why;
    if (one.contains("rotten")) out += "\trotten: " + std::to_string(one.at("rotten").size()) + " entries";
    out += "\n";
  }
  for (const bundle::Json& line : status.at("left_out"))
    out += "left out of " + escaped_bytes(line.get<std::string>()) + "\n";
  return out;
}

int run_status(const StatusOptions& options) {
  const std::string answer = ask_admin(parse_listen(options.admin), "/status", std::chrono::seconds(30));
  const bundle::Json status = bundle::parse_json(answer, options.admin);
  bundle::print(options.json, status, options.json ? std::string() : table_of(status));
  return status.at("healthy").get<bool>() ? 0 : 1;
}

}  // namespace

void add_status(bundle::Program& program) {
  const bundle::Verb verb = program.verb("status", "What a running server holds, and why it leaves something out");
  const auto options = std::make_shared<StatusOptions>();
  verb.option("ADDRESS", options->admin, "ADDRESS:PORT of the server's --admin-listen").required();
  verb.json(options->json);
  verb.action([options] { return run_status(*options); });
}

}  // namespace sealift::offline_repo
