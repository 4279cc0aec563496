// SPDX-License-Identifier: Apache-2.0
// See modelscope_routes.hpp.
#include "offline_repo/routes/modelscope_routes.hpp"

#include "offline_repo/protocols/modelscope.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

Response modelscope_error(const std::string& why) {
  return {.status = 404, .headers = {{"Content-Type", kJsonType}}, .body = modelscope_error_json(why)};
}

// Clients write the root as "" or "/", and folders with or without slashes at their ends.
std::string without_slashes(const std::string& path) {
  const std::size_t first = path.find_first_not_of('/');
  return first == path.npos ? "" : path.substr(first, path.find_last_not_of('/') - first + 1);
}

// What `answer` makes of the repository ORG/NAME.
template <class Answer>
Response of_modelscope(const Asked& asked, const Answer& answer) {
  const bool data = asked.target.segments[2] == "datasets";  // /api/v1/datasets/…
  const HubRepositories& all = asked.catalogue.repositories;
  const auto found = all.find({.hub = bundle::HubKind::ModelScope,
                               .kind = data ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model,
                               .id = asked.name("ORG") + "/" + asked.name("NAME")});
  return found != all.end() ? answer(found->second) : modelscope_error("no bundle here carries this repository");
}

// The same with the commit that ?Revision= asks for.
template <class Answer>
Response of_revision(const Asked& asked, const Answer& answer) {
  return of_modelscope(asked, [&](const ServedRepository& repository) {
    const HubCommit* commit = repository.find(form_value(asked.target.query, "Revision", repository.default_branch()));
    return commit != nullptr ? answer(*commit)
                             : modelscope_error("no bundle here carries this revision of the repository");
  });
}

}  // namespace

Response modelscope_info(const Asked& asked) {
  return of_modelscope(asked, [&](const ServedRepository& repository) {
    return document_answer(asked.request, modelscope_info_json(repository), kJsonType);
  });
}

Response modelscope_revisions(const Asked& asked) {
  return of_modelscope(asked, [&](const ServedRepository& repository) {
    return document_answer(asked.request, modelscope_revisions_json(repository), kJsonType);
  });
}

Response modelscope_files(const Asked& asked) {
  return of_revision(asked, [&](const HubCommit& commit) {
    const std::string& query = asked.target.query;
    const std::string root = without_slashes(form_value(query, "Root"));
    const std::optional<ModelScopePage> page =
        modelscope_page(form_value(query, "PageNumber"), form_value(query, "PageSize"));
    if (!page) return refusal(400, "PageNumber and PageSize are whole numbers from 1 to 999999999");
    std::optional<std::string> json = modelscope_files_json(commit, root, form_flag(query, "Recursive"), *page);
    return json ? document_answer(asked.request, *std::move(json), kJsonType)
                : modelscope_error("the bundles carry no such folder");
  });
}

Response modelscope_file(const Asked& asked) {
  return of_revision(asked, [&](const HubCommit& commit) {
    const auto found = commit.files.find(form_value(asked.target.query, "FilePath"));
    return found != commit.files.end() ? file_answer(asked.request, found->second, kPageCaching)
                                       : modelscope_error("the bundles carry no such file of this repository");
  });
}

}  // namespace sealift::offline_repo
