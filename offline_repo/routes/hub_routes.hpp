// SPDX-License-Identifier: Apache-2.0
// What a model hub's client is answered, as huggingface_hub 0.20 to 2.x asks. Errors have the code in a header by which
// these clients tell a file that is not in the repository from a server that cannot be reached. Those below `hub_user`
// are for a repository that is here; without REV they answer for "main".
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

Response no_hub_repository();

// All repositories of a kind, or the ones that ?search= and ?author= name.
Response hub_list(const Asked& asked);
// Whose token the client has.
Response hub_user(const Asked& asked);
// Its commit and names of files; with ?blobs=true sizes and digests.
Response hub_info(const Asked& asked);
// One folder, or with ?recursive=true all below it.
Response hub_tree(const Asked& asked);
// What is there of the paths in the body of a POST.
Response hub_paths(const Asked& asked);
Response hub_refs(const Asked& asked);
Response hub_commits(const Asked& asked);
// The file at its commit; of a branch or tag 307 to it.
Response hub_file(const Asked& asked);

}  // namespace sealift::offline_repo
