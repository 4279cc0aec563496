// SPDX-License-Identifier: Apache-2.0
// serve: bundles that are named or lie in a watched folder -> holdings -> server, which shows what is new as it comes.
// The address goes to stdout, requests, faults and what became of each bundle to stderr.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "offline_repo/chunks/cache_size.hpp"
#include "offline_repo/holdings/holdings.hpp"
#include "offline_repo/server/descriptors.hpp"
#include "offline_repo/server/server.hpp"
#include "offline_repo/server/service_manager.hpp"
#include "offline_repo/verbs/verbs.hpp"
#include "offline_repo/verbs/watch.hpp"

namespace sealift::offline_repo {

namespace {

constexpr unsigned kConnections = 16'384;
constexpr std::size_t kOtherDescriptors = 112;   // of the process itself, of admins and of those turned away
constexpr std::size_t kWatchDescriptors = 1024;  // for volumes of bundles that come later

struct ServeOptions {
  std::vector<std::filesystem::path> bundles;
  std::string fingerprint;
  std::filesystem::path trust;
  bool allow_downgrade = false;
  std::string listen = "127.0.0.1:8080";
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  unsigned connections = kConnections;
  unsigned per_client = 64;
  unsigned cache = cache_for(memory_here());
  bool quiet = false;
  std::string admin_listen;
  std::filesystem::path audit_log;
  bool audit_required = false;
  std::filesystem::path tokens;
  std::string contact;
  TlsFiles tls;
  std::filesystem::path watch;
  unsigned poll = 5;
  unsigned scrub = 0;
};

// The trust folder is only read: only sealift-install records what a site accepts.
HoldingsOptions holdings_options(const ServeOptions& options, const RottenChunks& rotten) {
  HoldingsOptions given{.named = options.bundles,
                        .folder = options.watch,
                        .trust = options.trust,
                        .fingerprint = std::nullopt,
                        .allow_downgrade = options.allow_downgrade,
                        .rotten = &rotten};
  if (!options.fingerprint.empty()) given.fingerprint = bundle::parse_fingerprint(options.fingerprint);
  return given;
}

// Where nothing that was named is good, there is no server, and the first reason says why.
void refuse_all_bad(const Held& held, const ServeOptions& options) {
  const auto good = [](const HeldBundle& one) { return one.contents != nullptr; };
  if (!options.watch.empty() || held.empty() || std::any_of(held.begin(), held.end(), good)) return;
  if (held.front().refused) throw bundle::Error(*held.front().refused);
  throw bundle::Error(bundle::ErrorCode::Io, {.what = held.front().why(), .where = held.front().place.string()});
}

// Who has neither a certificate nor a token gets in nowhere.
TlsFiles tls_files(const ServeOptions& options) {
  TlsFiles files = options.tls;
  files.needs_client = options.tokens.empty();
  return files;
}

// As asked for, as far as this process's limit of descriptors allows.
ServerOptions server_options(const ServeOptions& options, const Held& held) {
  ServerOptions asked{.listen = parse_listen(options.listen),
                      .threads = options.threads,
                      .cache_bytes = std::uint64_t{options.cache} << 20,
                      .max_connections = options.connections,
                      .max_per_client = options.per_client,
                      .on_fault = [](const std::string& line) { log_line("fault: " + line); }};
  if (!options.quiet) asked.on_request = log_line;
  if (!options.admin_listen.empty()) asked.admin_listen = parse_listen(options.admin_listen);
  if (!options.audit_log.empty()) asked.audit = std::make_shared<AuditLog>(options.audit_log);
  asked.audit_required = options.audit_required;
  asked.contact = options.contact;
  asked.on_stop = [] { notify_service_manager("STOPPING=1"); };
  if (!options.tokens.empty()) asked.tokens = [path = options.tokens] { return read_tokens(path); };
  if (!options.tls.certificate.empty())
    asked.tls = [files = tls_files(options)] { return std::make_shared<const TlsContext>(files); };
  const std::size_t limit = raise_descriptor_limit();
  std::size_t others = kOtherDescriptors;
  for (const HeldBundle& one : held)
    if (one.contents) others += one.contents->in->manifest().payload.volumes.size();
  if (!options.watch.empty()) others += std::min(kWatchDescriptors, limit / 8);
  ServerOptions given = within_descriptors(std::move(asked), limit, others);
  if (given.max_connections < options.connections && options.connections != kConnections)
    log_line("warning: " + std::to_string(given.max_connections) + " connections at most, for the limit of " +
             std::to_string(limit) + " open files (ulimit -Hn, LimitNOFILE=) allows no more");
  return given;
}

void check_tls(const ServeOptions& options) {
  const TlsFiles& tls = options.tls;
  if (tls.certificate.empty() != tls.key.empty() || (tls.certificate.empty() && !tls.clients.empty()))
    throw bundle::Error(
        bundle::ErrorCode::Usage,
        {.what = "TLS needs a certificate and its key",
         .expected = "--tls-certificate FILE --tls-key FILE, and with --tls-clients FILE both of them"});
  if (!tls.certificate.empty()) TlsContext{tls_files(options)};
}

// What is wrong with them is said before bundles are opened.
void check(const ServeOptions& options) {
  parse_listen(options.listen);
  if (!options.admin_listen.empty()) parse_listen(options.admin_listen);
  if (options.audit_required && options.audit_log.empty())
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "--audit-required needs --audit-log FILE"});
  if (!options.tokens.empty()) read_tokens(options.tokens);
  check_tls(options);
  if (options.bundles.empty() && options.watch.empty())
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "there is nothing to serve", .expected = "BUNDLE..., --watch FOLDER, or both"});
}

std::string summary_of(const Held& held) {
  std::vector<Contents> current;
  for (const HeldBundle& one : held)
    if (one.state == HeldState::Current) current.push_back(one.contents);
  std::set<std::string> projects;
  std::size_t wheels = 0;
  std::set<bundle::HubName> repositories;
  for (const Contents& contents : current) {
    wheels += contents->wheels.size();
    for (const bundle::HubRepository& repository : contents->repositories) repositories.insert(repository.name);
    for (const IndexedWheel& wheel : contents->wheels) projects.insert(wheel.project());
  }
  return std::to_string(current.size()) + " bundle(s), " + std::to_string(projects.size()) + " projects, " +
         std::to_string(wheels) + " wheels, " + std::to_string(repositories.size()) + " repositories of hubs";
}

int run(const ServeOptions& options) {
  check(options);
  RottenChunks rotten;
  Holdings holdings(holdings_options(options, rotten));
  const Held held = *holdings.look(true);
  refuse_all_bad(held, options);
  say_changes({}, held, !options.watch.empty());
  ServerOptions given = server_options(options, held);
  const auto counts = std::make_shared<ScrubCounts>();
  std::function<void()> ring = [] {};
  Scrub scrub(rotten, *counts, std::uint64_t{options.scrub} << 20, [&ring] { ring(); });
  Watch watch(holdings, held, scrub, std::chrono::seconds(options.poll));
  ring = [&watch] { watch.ring(false); };
  given.on_rotten = [&](const RottenChunks::InBundle& in, std::uint64_t chunk) {
    if (rotten.add(in, chunk)) watch.ring(false);
  };
  given.on_hangup = [&] {
    rotten.clear();
    watch.ring(true);
  };
  if (options.scrub > 0) given.scrub = counts;
  const std::string connections = std::to_string(given.max_connections), summary = summary_of(held);
  Server server(held, std::move(given));
  std::printf("listening on %s://%s\n", options.tls.certificate.empty() ? "http" : "https",
              server.address().text().c_str());
  if (const std::optional<ListenAddress> admin = server.admin_address())
    std::printf("health and metrics on http://%s\n", admin->text().c_str());
  std::fflush(stdout);
  if (!options.quiet)
    log_line("serving " + summary + " to " + connections + " connections; read only; SIGTERM or Ctrl-C ends");
  const std::jthread watching([&](const std::stop_token& stop) { watch.run(stop, server); });
  std::jthread scrubbing;
  if (options.scrub > 0) scrubbing = std::jthread([&](const std::stop_token& stop) { scrub.run(stop); });
  notify_service_manager("READY=1");
  server.run();
  return 0;
}

}  // namespace

void add_serve(bundle::Program& program) {
  const bundle::Verb verb = program.verb("serve", "Serve the wheels and models of bundles until SIGTERM or Ctrl-C");
  const auto options = std::make_shared<ServeOptions>();
  verb.option("BUNDLE", options->bundles, "Folders of bundles, or their seals");
  verb.option("--watch", options->watch, "A folder of bundles: new ones are verified and served, old ones are kept");
  verb.option("--poll", options->poll, "Seconds between two looks at it and at the trust folder; SIGHUP: at once")
      .show_default()
      .between(1, 86'400);
  verb.option("--trust", options->trust, "A trust folder, such as PREFIX/trust; only read");
  verb.option("--fingerprint", options->fingerprint, "The root to begin from, without a trust folder");
  verb.flag("--allow-downgrade", options->allow_downgrade, "Serve older versions than were accepted, too");
  verb.option("--listen", options->listen, "Numeric ADDRESS:PORT; port 0: any free one").show_default();
  verb.option("--threads", options->threads, "Threads that read and check").show_default().between(1, 256);
  verb.option("--max-connections", options->connections, "When all are taken, idle ones end first")
      .show_default()
      .between(1, 1'000'000);
  verb.option("--connections-per-client", options->per_client,
              "Of one address, once half of all are taken; behind a proxy: --max-connections")
      .show_default()
      .between(1, 1'000'000);
  verb.option("--cache", options->cache, "MiB of memory for checked chunks that all clients share")
      .show_default()
      .between(1, 1'000'000);
  verb.option("--admin-listen", options->admin_listen, "Numeric ADDRESS:PORT for /healthz and /metrics alone");
  verb.option("--audit-log", options->audit_log, "Append a JSON line for each answered request; SIGHUP reopens it");
  verb.flag("--audit-required", options->audit_required, "503 while the audit log cannot be written");
  verb.option("--tokens", options->tokens, "A file of tokens, one a line; SIGHUP reads it again");
  verb.option("--contact", options->contact, "Whom a client without a token should ask, such as a name and a room");
  verb.option("--tls-certificate", options->tls.certificate,
              "Serve https: the certificate and its intermediates (PEM); SIGHUP reads it again");
  verb.option("--tls-key", options->tls.key, "Its private key (PEM)");
  verb.option("--tls-clients", options->tls.clients,
              "Authorities of clients' certificates (PEM): each client has one or, with --tokens, a token");
  verb.option("--scrub", options->scrub, "MiB a second to read and check again of all that is served; 0: none")
      .show_default()
      .between(0, 100'000);
  verb.flag("--quiet", options->quiet, "No line for each request");
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::offline_repo
