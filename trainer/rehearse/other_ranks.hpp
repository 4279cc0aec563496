// SPDX-License-Identifier: Apache-2.0
// Ranks that do not exist: a store at which all of them have met, and engines whose collectives are done at once.
// `rehearse` gives them to `make_groups`; the engine above them is the training one.
// Every other rank says what this one says: so sizes agree, and what this rank sends is what each sends.
#pragma once

#include <sealift/train.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sealift::trainer {

/// What stands for the other ranks may break as they do.
struct Limits {
  std::int64_t communicators = 0;      ///< that a rank's device can have; 0: any number
  double store_requests_a_second = 0;  ///< that the store's process can answer, of all ranks together; 0: any number
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< of a rendezvous
};

/// What one rank asks of others before the first step and at comparisons of labels.
struct Messages {
  std::int64_t store_requests = 0;  ///< a wait or check for many keys is one
  std::int64_t awaited_keys = 0;    ///< keys of other ranks that were waited for
  std::int64_t host_messages = 0;   ///< sent over Gloo's connections
  std::int64_t host_bytes = 0;
  std::int64_t host_peers = 0;  ///< connections of Gloo's to other ranks
  std::int64_t communicators = 0;

  bool operator==(const Messages&) const = default;
};

/// A collective as this rank issued it.
struct Issued {
  std::string group;       ///< "world", "shard0"
  std::string label;       ///< the engine's own: all_gather of unit 'model.layers.3' (1024 Float)
  std::int64_t bytes = 0;  ///< of the whole buffer

  bool operator==(const Issued&) const = default;
};

/// The collectives that a rank issued, in order, with what the engine noted about them.
class IssuedLog {
 public:
  /// From now on asks `watch` what an engine's call belongs to.
  void follow(std::shared_ptr<train::RankWatch> watch) { watch_ = std::move(watch); }

  /// An engine was called, with a whole buffer of `bytes`.
  void add(std::int64_t bytes);

  std::vector<Issued> take() { return std::exchange(all_, {}); }

  /// The last one, for a message.
  std::string last() const { return all_.empty() ? "the model's construction" : "or after " + all_.back().label; }

 private:
  std::shared_ptr<train::RankWatch> watch_;
  std::map<std::string, std::uint64_t> seen_;  ///< collectives by group
  std::vector<Issued> all_;
};

/// The other ranks of a world of `size`, as rank `rank` meets them. Lives longer than the groups made with it.
class OtherRanks {
 public:
  OtherRanks(std::int64_t rank, std::int64_t size, Limits limits = {});

  /// The world, whose tensors live on `device`.
  train::World world(at::Device device) const;

  /// Engines for it; order checks are made as in a real run.
  train::GroupOptions group_options();

  IssuedLog& log() { return *log_; }
  const Messages& messages() const { return *messages_; }

 private:
  std::int64_t rank_, size_;
  Limits limits_;
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  std::shared_ptr<IssuedLog> log_ = std::make_shared<IssuedLog>();
};

}  // namespace sealift::trainer
