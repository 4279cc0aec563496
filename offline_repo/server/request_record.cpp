// SPDX-License-Identifier: Apache-2.0
// A line for people leaves out what the audit log has in full, and says what went wrong.
#include "offline_repo/server/request_record.hpp"

#include <utility>

#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::offline_repo {

RequestRecord::RequestRecord(ServerState& state, std::string peer, bool audited)
    : state_(state), peer_(std::move(peer)), audited_(audited) {}

void RequestRecord::begin() {
  if (!state_.options.audit) return;
  asked_ = std::chrono::steady_clock::now();
  answered_ = {.time = std::chrono::system_clock::now(), .client = peer_};
}

void RequestRecord::note(const RequestMessage& message) {
  const Request& request = message.request;
  if (state_.options.on_request) line_ = request.method + " " + bundle::SafePath::printable(request.target);
  if (!state_.options.audit) return;
  answered_.method = request.method;
  answered_.target = request.target;
  answered_.range = request.range;
  answered_.agent = message.agent;
}

void RequestRecord::end(const Response& response, const ResponseBody& body, const std::string& trouble) {
  state_.metrics.count(response.route, response.status, body.sent());
  if (state_.options.audit && audited_) audit(response, body, trouble.empty());
  if (state_.options.on_request) log(response, body, trouble);
  line_.clear();
}

void RequestRecord::end_without_answer(const std::string& why) const {
  if (state_.options.on_request)
    state_.options.on_request(bundle::write_time(bundle::system_time()) + " " + peer_ + " - - 0, " + why);
}

void RequestRecord::log(const Response& response, const ResponseBody& body, const std::string& trouble) const {
  std::string line = bundle::write_time(bundle::system_time()) + " " + peer_ + " " + (line_.empty() ? "-" : line_) +
                     " " + std::to_string(response.status) + " " + std::to_string(body.sent());
  if (!trouble.empty()) line += " of " + std::to_string(body.size()) + ", " + trouble;
  state_.options.on_request(line);
}

void RequestRecord::audit(const Response& response, const ResponseBody& body, bool complete) {
  answered_.status = response.status;
  answered_.bytes = body.sent();
  answered_.complete = complete;
  answered_.milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - asked_).count();
  if (const auto* part = std::get_if<WheelPart>(&response.body)) {
    answered_.bundle = part->wheel->in->manifest().stem();
    answered_.entry = part->wheel->entry->path.text();
    answered_.sha256 = part->wheel->sha256.hex();
  }
  if (state_.options.audit->write(audit_line(answered_))) return;
  if (state_.metrics.audit_failures++ == 0)
    state_.options.on_fault("the audit log cannot be written; its lines wait, 4096 of them at most");
}

}  // namespace sealift::offline_repo
