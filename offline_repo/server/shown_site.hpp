// SPDX-License-Identifier: Apache-2.0
// What the server shows now: puts bundles, tokens and the certificate into ServerState, each as a whole, whenever one
// of them is another one. Answers under way keep what they began with.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

// Safe from several threads.
class ShownSite {
 public:
  // Throws what reading tokens and certificate throws. `state` must outlive this.
  ShownSite(ServerState& state, Held bundles);

  void show(Held bundles);
  // Reads tokens and certificate again. What cannot be read stays as it was, and on_fault says so.
  void reload();

 private:
  void read_tokens();
  void read_tls();
  void show_to_all(Held bundles);

  ServerState& state_;
  std::mutex changing_;  // of what is shown
  std::optional<std::vector<Token>> tokens_;
};

}  // namespace sealift::offline_repo
