// SPDX-License-Identifier: Apache-2.0
// The paths of the table of routes, as pages for users write them: "/simple/NAME/". What has a path is decided here and
// nowhere else; hostile text, compared segment by segment.
#pragma once

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// Whether `asked.target` is a path of this pattern; fills what it names. In a pattern
//   simple      stands for itself
//   NAME, REV…  any word in capitals: one segment, but
//   KIND        "models" or "datasets"
//   IMAGE       one segment or more
//   PATH        all that is left, one segment or more; at the end alone
//   ID          a repository of the hub: two segments, or one. Behind KIND the catalogue tells which, since a name may
//   be
//               a route's word; and of a repository that nobody carries any path fits, since nobody knows its end
//   WHEEL       a wheel with the digest SHA256; WHEEL.metadata: the same with ".metadata" behind it
//   [/X]        may be missing, with all behind it
bool fits(std::string_view pattern, Asked& asked);

}  // namespace sealift::offline_repo
