// SPDX-License-Identifier: Apache-2.0
// Token -> views -> view -> routes; see client_answer.hpp.
#include "offline_repo/server/client_answer.hpp"

#include <utility>

#include "offline_repo/routes/apt_routes.hpp"
#include "offline_repo/routes/oci_routes.hpp"
#include "offline_repo/routes/routes.hpp"
#include "offline_repo/server/status_pages.hpp"

namespace sealift::offline_repo {

namespace {

// Clients of hubs send their token before they are asked. Basic is the only challenge: what pulls images takes a Bearer
// challenge for the address of another server that gives out tokens.
Response unauthorized(const Request& request, const std::string& contact) {
  const std::string why = "a token of this repository is needed: as a password, or as a Bearer token" +
                          (contact.empty() ? "" : "; who gives one: " + contact);
  Response response = is_registry_target(request.target) ? registry_error(401, "UNAUTHORIZED", why) : refusal(401, why);
  response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"sealift-repo\", charset=\"UTF-8\"");
  return response;
}

// Relative, so that it holds below any prefix; `name` is a view's.
Response slash_added(const std::string& name) {
  Response response = refusal(301, "the page is at " + name + "/");
  response.headers.emplace_back("Location", name + "/");
  return response;
}

bool starts_with_hex(std::string_view text, std::size_t digits) {
  return text.size() >= digits && text.substr(0, digits).find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_rpm_package(std::string_view target) {
  constexpr std::string_view kFolder = "/repodata/";
  if (!target.starts_with("/rpm/")) return false;
  const std::size_t folder = target.find(kFolder);
  return target.ends_with(".rpm") ||
         (folder != target.npos && starts_with_hex(target.substr(folder + kFolder.size()), 64));
}

// Of a hub: /org/name/resolve/COMMIT/PATH, /api/models/org/name/tree/COMMIT and the others.
bool names_a_commit(std::string_view target) {
  for (const std::string_view word : {"/resolve/", "/revision/", "/tree/", "/paths-info/", "/commits/"})
    if (const std::size_t at = target.find(word); at != target.npos) {
      const std::string_view rest = target.substr(at + word.size());
      if (starts_with_hex(rest, 40) && (rest.size() == 40 || rest[40] == '/' || rest[40] == '?')) return true;
    }
  return false;
}

// Whether the address is of bytes, whatever bundle they are in. That a commit which is here lacks a file is its answer.
bool is_by_digest(std::string_view target, const Response& missing) {
  if (names_a_commit(target)) return missing.header("X-Error-Code") != "EntryNotFound";
  return target.starts_with("/files/") || is_apt_package(target) || is_rpm_package(target) ||
         (is_registry_target(target) && target.find("/sha256:") != target.npos);
}

}  // namespace

std::string ClientAnswer::see(std::string_view authorization, std::string_view certificate) {
  views_.reset();
  std::optional<Access::Client> client = state_.access_now()->client(authorization, certificate);
  if (!client) return {};
  views_ = std::move(client->views);
  return std::move(client->user);
}

void ClientAnswer::find(Request& request) {
  view_.reset();
  view_name_.clear();
  if (!views_) return;
  Viewed viewed = find_view(*views_, request.target);
  view_ = std::move(viewed.view);
  view_name_ = std::move(viewed.name);
  request.target = std::move(viewed.target);
  request.root = std::move(viewed.root);
  request.registry = std::move(viewed.registry);
}

std::uint64_t ClientAnswer::wanted_body(const Request& request) const {
  return view_ ? offline_repo::wanted_body(view_->catalogue, view_->pages, request) : 0;
}

// Where nobody could say later who took it, nothing is given.
Response ClientAnswer::respond(const Request& request) {
  if (view_name_.empty() && (admin_ || !state_.options.admin_listen))
    if (std::optional<Response> status = status_answer(state_, request, admin_)) return *std::move(status);
  if (admin_) return refusal(404, "here are /healthz, /metrics and /status");
  if (!view_) return unauthorized(request, state_.options.contact);
  if (state_.options.audit_required && !state_.options.audit->writable())
    return refusal(503, "the audit log cannot be written, and nothing is served without it");
  if (request.target.empty()) return slash_added(view_name_);
  Response response = offline_repo::respond(view_->catalogue, view_->pages, request);
  if (response.status == 404 && is_by_digest(request.target, response)) return by_digest(request, std::move(response));
  return response;
}

// A client that read the index before a switch still finds what it was told of: a file's address is its digest, or has
// its commit, or its digest is in a signed index, so any bundle that this client may see can give it.
Response ClientAnswer::by_digest(const Request& request, Response missing) {
  for (const auto& [stem, view] : views_->bundles) {
    Response response = offline_repo::respond(view->catalogue, view->pages, request);
    if (response.status == 404) continue;
    view_ = view;
    return response;
  }
  return missing;
}

void ClientAnswer::forget() {
  view_.reset();
  views_.reset();
}

}  // namespace sealift::offline_repo
