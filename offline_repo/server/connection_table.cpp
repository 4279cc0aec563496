// SPDX-License-Identifier: Apache-2.0
// Searched from end to end: only when a place is wanted and there is none.
#include "offline_repo/server/connection_table.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace sealift::offline_repo {

void ConnectionTable::add(std::uint64_t number, const std::shared_ptr<Connection>& connection) {
  const auto client = clients_.try_emplace(connection->client(), 0).first;
  ++client->second;
  places_.emplace(number, Place{.connection = connection, .client = &*client});
  count();
}

void ConnectionTable::forget(std::uint64_t number) {
  const auto place = places_.find(number);
  if (--place->second.client->second == 0) clients_.erase(clients_.find(place->second.client->first));
  places_.erase(place);
  count();
}

void ConnectionTable::count() {
  metrics_.connections = places_.size();
  metrics_.connections_most = std::max<std::uint64_t>(metrics_.connections_most, places_.size());
}

std::size_t ConnectionTable::size_of(const std::string& client) const {
  const auto place = clients_.find(client);
  return place == clients_.end() ? 0 : place->second;
}

std::size_t ConnectionTable::alive_of(const std::string& client) const {
  return static_cast<std::size_t>(std::count_if(places_.begin(), places_.end(), [&](const auto& one) {
    return one.second.client->first == client && !one.second.connection.expired();
  }));
}

bool ConnectionTable::one_may_have_answered(const std::string& client) const {
  return std::any_of(places_.begin(), places_.end(), [&](const auto& one) {
    const std::shared_ptr<Connection> connection =
        one.second.client->first == client ? one.second.connection.lock() : nullptr;
    return connection && connection->may_have_answered();
  });
}

std::vector<std::shared_ptr<Connection>> ConnectionTable::alive() const {
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [number, place] : places_)
    if (std::shared_ptr<Connection> connection = place.connection.lock()) all.push_back(std::move(connection));
  return all;
}

std::shared_ptr<Connection> ConnectionTable::longest_waiting(const std::string& client) const {
  std::shared_ptr<Connection> found;
  std::pair<std::size_t, std::chrono::steady_clock::duration> highest;
  for (const auto& [number, place] : places_) {
    if (!client.empty() && place.client->first != client) continue;
    const std::shared_ptr<Connection> one = place.connection.lock();
    const auto since = one ? one->waiting_since() : std::nullopt;
    if (!since) continue;
    const std::pair rank(place.client->second, -since->time_since_epoch());
    if (!found || rank > highest) found = one, highest = rank;
  }
  return found;
}

}  // namespace sealift::offline_repo
