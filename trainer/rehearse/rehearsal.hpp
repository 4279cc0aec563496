// SPDX-License-Identifier: Apache-2.0
// What a rehearsal found, as a plain value, as JSON and as text.
// Made by `rehearse`, printed by its verb, read by people who plan a job.
// Bytes are those of one rank; a collective's are of its whole buffer.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::trainer {

struct Rehearsal {
  struct Unit {
    std::string path;  ///< empty: the root
    std::int64_t parameters = 0, flats = 0;
    std::int64_t whole_bytes = 0;  ///< gathered
    std::int64_t shard_bytes = 0;  ///< kept by this rank
  };
  struct Collective {
    std::string group, label;
    std::int64_t bytes = 0;

    bool operator==(const Collective&) const = default;
  };
  struct Sent {
    std::string op;
    std::int64_t calls = 0, bytes = 0;  ///< sent by this rank

    bool operator==(const Sent&) const = default;
  };
  /// The most that was allocated in each part of a step, and what stays.
  struct Peaks {
    std::int64_t built = 0, forward = 0, backward = 0, optimizer = 0, resting = 0;
    std::int64_t most() const;
  };
  struct Start {
    std::int64_t store_requests = 0, awaited_keys = 0, host_peers = 0, host_messages = 0, host_bytes = 0;
    std::int64_t communicators = 0;
  };
  struct Checkpoint {
    std::int64_t files = 0;               ///< one for each rank
    std::int64_t tensors = 0, bytes = 0;  ///< of this rank's
  };

  std::string family, mesh, device;
  std::int64_t ranks = 1, rank = 0, parameters = 0, trainable = 0;
  std::vector<Unit> units;
  std::vector<Collective> start, step;  ///< before the first step; in the second, which is like all later ones
  std::vector<Sent> start_sent, step_sent;
  Peaks peaks;
  Start messages;
  std::int64_t order_checks_first = 0, order_checks_later = 0;  ///< comparisons of labels, each of ranks - 1 messages
  Checkpoint checkpoint;
  std::vector<std::string> notes;

  nlohmann::ordered_json json() const;
  std::string text() const;
};

}  // namespace sealift::trainer
