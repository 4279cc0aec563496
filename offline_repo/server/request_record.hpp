// SPDX-License-Identifier: Apache-2.0
// What is recorded of each request once its answer has ended: counts for the metrics, a line of the audit log, a line
// for people.
#pragma once

#include <chrono>
#include <string>

#include "offline_repo/server/request_message.hpp"
#include "offline_repo/server/response_body.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

class RequestRecord {
 public:
  // `state` must outlive this. `peer`: the client's address. `audited`: false where nothing of a bundle is given.
  RequestRecord(ServerState& state, std::string peer, bool audited);

  void begin();  // the head is there
  // What the logs say of it; texts are kept only where there is a log.
  void note(const RequestMessage& message);
  void note_user(std::string user) { answered_.user = std::move(user); }
  // `body` is the response's, as far as it was sent; `trouble` is empty when everything was.
  // The connection ends before there is an answer; a line for people says why.
  void end_without_answer(const std::string& why) const;
  void end(const Response& response, const ResponseBody& body, const std::string& trouble);

 private:
  void audit(const Response& response, const ResponseBody& body, bool complete);
  void log(const Response& response, const ResponseBody& body, const std::string& trouble) const;

  ServerState& state_;
  const std::string peer_;
  const bool audited_;
  std::string line_;          // of the request, for the log; empty: it had a fault
  AnsweredRequest answered_;  // for the audit log, where there is one
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace sealift::offline_repo
