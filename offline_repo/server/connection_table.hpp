// SPDX-License-Identifier: Apache-2.0
// The connections that have a place, counted by client. The acceptor's strand guards it.
// A number names a connection, since the next one may get its address before this one is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "offline_repo/records/metrics.hpp"
#include "offline_repo/server/connection.hpp"

namespace sealift::offline_repo {

class ConnectionTable {
 public:
  // `metrics`, which are told how many there are, must outlive this.
  explicit ConnectionTable(Metrics& metrics) : metrics_(metrics) {}

  void add(std::uint64_t number, const std::shared_ptr<Connection>& connection);
  void forget(std::uint64_t number);

  bool empty() const { return places_.empty(); }
  std::size_t size() const { return places_.size(); }
  std::size_t size_of(const std::string& client) const;  // `client` as client_of says
  // Without ended ones that are not forgotten yet.
  std::size_t alive_of(const std::string& client) const;
  bool one_may_have_answered(const std::string& client) const;
  std::vector<std::shared_ptr<Connection>> alive() const;
  // Of the client with the most connections, or of `client`; null when none waits.
  std::shared_ptr<Connection> longest_waiting(const std::string& client = "") const;

 private:
  struct Place {
    std::weak_ptr<Connection> connection;
    std::pair<const std::string, std::size_t>* client;  // of clients_
  };

  void count();

  Metrics& metrics_;
  std::map<std::string, std::size_t> clients_;  // how many connections each has
  std::map<std::uint64_t, Place> places_;
};

}  // namespace sealift::offline_repo
