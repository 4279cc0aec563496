// SPDX-License-Identifier: Apache-2.0
// The table is read from its top, so what stands for anything stands last in its group. Below /c/CHANNEL and
// /b/NAME-VERSION there is all of it but the first three rows once more (views/views.hpp takes the prefix away).
#include "offline_repo/routes/route_table.hpp"

#include "offline_repo/routes/answers.hpp"
#include "offline_repo/routes/apt_routes.hpp"
#include "offline_repo/routes/entry_routes.hpp"
#include "offline_repo/routes/front_routes.hpp"
#include "offline_repo/routes/hub_routes.hpp"
#include "offline_repo/routes/index_routes.hpp"
#include "offline_repo/routes/modelscope_routes.hpp"
#include "offline_repo/routes/oci_routes.hpp"
#include "offline_repo/routes/path_pattern.hpp"
#include "offline_repo/routes/people_routes.hpp"
#include "offline_repo/routes/rpm_routes.hpp"

namespace sealift::offline_repo {

namespace {

using enum Who;

// clang-format off
constexpr Route kRoutes[] = {
    {"GET",  "/healthz",                               Anybody, RouteKind::Health,     nullptr},
    {"GET",  "/metrics",                               Anybody, RouteKind::Metrics,    nullptr},
    {"GET",  "/status",                                Admin,   RouteKind::Health,     nullptr},
    // Clients of registries
    {"GET",  "/v2[/]",                                 Client,  RouteKind::Registry,   registry_base},
    {"GET",  "/v2/_catalog",                           Client,  RouteKind::Registry,   registry_catalog},
    {"GET",  "/v2/IMAGE/tags/list",                    Client,  RouteKind::Registry,   registry_tags},
    {"GET",  "/v2/IMAGE/manifests/REFERENCE",          Client,  RouteKind::Registry,   registry_manifest},
    {"GET",  "/v2/IMAGE/blobs/DIGEST",                 Client,  RouteKind::Blob,       registry_blob},
    {"GET",  "/v2/IMAGE/referrers/DIGEST",             Client,  RouteKind::Registry,   registry_referrers},
    {"GET",  "/v2/PATH",                               Client,  RouteKind::Registry,   no_registry_route},
    // Clients of the hub; of a repository that nobody carries all of them say so, to a POST too
    {"GET",  "/api/whoami-v2",                         Client,  RouteKind::Hub,        hub_user},
    {"GET",  "/api/KIND[/]",                           Client,  RouteKind::Hub,        hub_list},
    {"GET",  "/api/KIND/ID[/]",                        Client,  RouteKind::Hub,        hub_info},
    {"GET",  "/api/KIND/ID/revision[/REV][/PATH]",     Client,  RouteKind::Hub,        hub_info},
    {"GET",  "/api/KIND/ID/tree[/REV][/PATH]",         Client,  RouteKind::Hub,        hub_tree},
    {"POST", "/api/KIND/ID/paths-info[/REV][/PATH]",   Client,  RouteKind::Hub,        hub_paths},
    {"GET",  "/api/KIND/ID/refs[/REV][/PATH]",         Client,  RouteKind::Hub,        hub_refs},
    {"GET",  "/api/KIND/ID/commits[/REV][/PATH]",      Client,  RouteKind::Hub,        hub_commits},
    {"GET",  "/datasets/ID/resolve/REV/PATH",          Client,  RouteKind::HubFile,    hub_file},
    {"GET",  "/ID/resolve/REV/PATH",                   Client,  RouteKind::HubFile,    hub_file},
    // Clients of ModelScope
    {"GET",  "/api/v1/KIND/ORG/NAME[/]",               Client,  RouteKind::ModelScope, modelscope_info},
    {"GET",  "/api/v1/KIND/ORG/NAME/revisions",        Client,  RouteKind::ModelScope, modelscope_revisions},
    {"GET",  "/api/v1/models/ORG/NAME/repo/files",     Client,  RouteKind::ModelScope, modelscope_files},
    {"GET",  "/api/v1/datasets/ORG/NAME/repo/tree",    Client,  RouteKind::ModelScope, modelscope_files},
    {"GET",  "/api/v1/KIND/ORG/NAME/repo",             Client,  RouteKind::ModelScope, modelscope_file},
    // pip and uv
    {"GET",  "/simple",                                Client,  RouteKind::Index,      slash_behind_simple},
    {"GET",  "/simple/",                               Client,  RouteKind::Index,      project_list},
    {"GET",  "/simple/NAME[/]",                        Client,  RouteKind::Index,      project_page},
    {"GET",  "/simple/PATH",                           Client,  RouteKind::Index,      nothing_there},
    {"GET",  "/wheels",                                Client,  RouteKind::Index,      slash_behind_wheels},
    {"GET",  "/wheels/",                               Client,  RouteKind::Index,      wheel_list},
    {"GET",  "/wheels/requirements.txt",               Client,  RouteKind::Index,      requirements_list},
    {"GET",  "/wheels/PATH",                           Client,  RouteKind::Index,      nothing_there},
    {"GET",  "/files/SHA256/WHEEL",                    Client,  RouteKind::Wheel,      wheel_file},
    {"GET",  "/files/SHA256/WHEEL.metadata",           Client,  RouteKind::Metadata,   wheel_metadata},
    // Files, apt, dnf, people
    {"GET",  "/pypi/NAME/json",                        Client,  RouteKind::Index,      project_api},
    {"GET",  "/pypi/NAME/VERSION/json",                Client,  RouteKind::Index,      project_api},
    {"GET",  "/entries[/NAME][/PATH]",                 Client,  RouteKind::Entry,      entry_answer},
    {"GET",  "/apt[/NAME][/PATH]",                     Client,  RouteKind::Apt,        apt_file},
    {"GET",  "/rpm[/NAME][/PATH]",                     Client,  RouteKind::Rpm,        rpm_file},
    {"GET",  "/",                                      Client,  RouteKind::Front,      front_page},
    {"GET",  "/PATH",                                  Client,  RouteKind::Front,      page_of_name},
};
// clang-format on

}  // namespace

std::span<const Route> all_routes() {
  return kRoutes;
}

const Route* find_route(Asked& asked) {
  for (const Route& route : kRoutes)
    if (route.answer != nullptr && fits(route.path, asked)) return &route;
  return nullptr;
}

const Route* find_site_route(const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return nullptr;
  for (const Route& route : kRoutes)
    if (route.answer == nullptr && route.path == request.target) return &route;
  return nullptr;
}

}  // namespace sealift::offline_repo
