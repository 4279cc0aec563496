// SPDX-License-Identifier: Apache-2.0
// What a model hub's client is answered. Errors have the code in a header by which these clients tell a file that is
// not in the repository from a server that cannot be reached.
#pragma once

#include "offline_repo/protocols/hub_target.hpp"
#include "offline_repo/protocols/modelscope.hpp"
#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

// Throws nothing. `query` is the target's, not decoded; the response points into the repository.
Response hub_answer(const Request& request, const HubTarget& target, const std::string& query);
// The same for ModelScope's clients, which tell errors by their status.
Response modelscope_answer(const Request& request, const ModelScopeTarget& target, const std::string& query);

}  // namespace sealift::offline_repo
