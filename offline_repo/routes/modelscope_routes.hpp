// SPDX-License-Identifier: Apache-2.0
// What ModelScope's clients are answered of its models and data sets; they tell errors by their status.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

Response modelscope_info(const Asked& asked);
Response modelscope_revisions(const Asked& asked);
// A folder, ?Root=, at ?Revision=, on pages where ?PageSize= asks for them.
Response modelscope_files(const Asked& asked);
// The file ?FilePath=.
Response modelscope_file(const Asked& asked);

}  // namespace sealift::offline_repo
