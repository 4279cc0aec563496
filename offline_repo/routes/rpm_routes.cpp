// SPDX-License-Identifier: Apache-2.0
// See rpm_routes.hpp. Names are looked up as they are.
#include "offline_repo/routes/rpm_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

Response rpm_file(const Asked& asked) {
  const RpmRepositories& all = asked.catalogue.rpms;
  const auto repository = asked.names.contains("PATH") ? all.find(asked.name("NAME")) : all.end();
  if (repository == all.end())
    return refusal(404, "no bundle of this name has rpm packages here; the repositories are at rpm/NAME/");
  const auto file = repository->second.files.find(asked.name("PATH"));
  if (file == repository->second.files.end()) return refusal(404, "the rpm packages of this bundle have no such file");
  return file_answer(asked.request, file->second, kPageCaching);
}

}  // namespace sealift::offline_repo
