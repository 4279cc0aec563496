// SPDX-License-Identifier: Apache-2.0
// serve: verified bundles -> catalogue -> server. The address goes to stdout, requests and faults to stderr.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "offline_repo/server/descriptors.hpp"
#include "offline_repo/server/server.hpp"
#include "offline_repo/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::offline_repo {

namespace {

constexpr unsigned kConnections = 16'384;
constexpr std::size_t kOtherDescriptors = 32;  // of the process itself

struct ServeOptions {
  std::vector<std::filesystem::path> bundles;
  std::string fingerprint;
  std::filesystem::path trust;
  bool allow_downgrade = false;
  std::string listen = "127.0.0.1:8080";
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  unsigned connections = kConnections;
  unsigned per_client = 64;
  unsigned cache = 512;
  bool quiet = false;
};

// One write per line, so that lines of several threads do not mix.
void log_line(std::string line) {
  line.push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// The trust folder is only read: only sealift-install records what a site accepts.
std::vector<bundle::VerifiedBundle> verified_bundles(const ServeOptions& options) {
  std::optional<bundle::Digest> fingerprint;
  if (!options.fingerprint.empty()) fingerprint = bundle::parse_fingerprint(options.fingerprint);
  const bundle::Trust trust{.state = bundle::trust_for_run(options.trust, fingerprint),
                            .allow_downgrade = options.allow_downgrade};
  std::vector<bundle::VerifiedBundle> bundles;
  for (const std::filesystem::path& path : options.bundles) {
    bundles.push_back(bundle::verify(bundle::open(path), trust, bundle::system_time()));
    const bundle::Manifest& manifest = bundles.back().manifest();
    for (const std::string& warning : bundles.back().warnings())
      log_line("warning: " + manifest.stem() + ": " + warning);
    if (manifest.base)
      log_line(
          "warning: " + manifest.stem() +
          ": it is a delta; what it does not carry is not served, unless a bundle that is served beside it has it");
  }
  return bundles;
}

// As asked for, as far as this process's limit of descriptors allows.
ServerOptions server_options(const ServeOptions& options, const std::vector<bundle::VerifiedBundle>& bundles) {
  ServerOptions asked{.listen = parse_listen(options.listen),
                      .threads = options.threads,
                      .cache_bytes = std::uint64_t{options.cache} << 20,
                      .max_connections = options.connections,
                      .max_per_client = options.per_client,
                      .on_fault = [](const std::string& line) { log_line("fault: " + line); }};
  if (!options.quiet) asked.on_request = log_line;
  const std::size_t limit = raise_descriptor_limit();
  std::size_t others = kOtherDescriptors;
  for (const bundle::VerifiedBundle& bundle : bundles) others += bundle.manifest().payload.volumes.size();
  ServerOptions given = within_descriptors(std::move(asked), limit, others);
  if (given.max_connections < options.connections && options.connections != kConnections)
    log_line("warning: " + std::to_string(given.max_connections) + " connections at most, for the limit of " +
             std::to_string(limit) + " open files (ulimit -Hn, LimitNOFILE=) allows no more");
  return given;
}

int run(const ServeOptions& options) {
  parse_listen(options.listen);  // before bundles are opened
  std::vector<bundle::VerifiedBundle> bundles = verified_bundles(options);
  ServerOptions given = server_options(options, bundles);
  const std::string connections = std::to_string(given.max_connections);
  Catalogue catalogue = make_catalogue(std::move(bundles));
  const std::string summary = std::to_string(catalogue.bundles.size()) + " bundle(s), " +
                              std::to_string(catalogue.projects.size()) + " projects, " +
                              std::to_string(catalogue.wheel_count()) + " wheels, " +
                              std::to_string(catalogue.repositories.size()) + " repositories of hubs";
  for (const std::string& line : catalogue.left_out) log_line("warning: " + line);
  Server server(std::move(catalogue), std::move(given));
  std::printf("listening on http://%s\n", server.address().text().c_str());
  std::fflush(stdout);
  if (!options.quiet)
    log_line("serving " + summary + " to " + connections + " connections; read only; SIGTERM or Ctrl-C ends");
  server.run();
  return 0;
}

}  // namespace

void add_serve(bundle::Program& program) {
  const bundle::Verb verb = program.verb("serve", "Serve the wheels and models of bundles until SIGTERM or Ctrl-C");
  const auto options = std::make_shared<ServeOptions>();
  verb.option("BUNDLE", options->bundles, "Folders of bundles, or their seals").required();
  verb.option("--trust", options->trust, "A trust folder, such as PREFIX/trust; only read");
  verb.option("--fingerprint", options->fingerprint, "The root to begin from, without a trust folder");
  verb.flag("--allow-downgrade", options->allow_downgrade, "Serve older versions than were accepted, too");
  verb.option("--listen", options->listen, "Numeric ADDRESS:PORT; port 0: any free one").show_default();
  verb.option("--threads", options->threads, "Threads that read and check").show_default().between(1, 256);
  verb.option("--max-connections", options->connections, "When all are taken, idle ones end first")
      .show_default()
      .between(1, 1'000'000);
  verb.option("--connections-per-client", options->per_client, "Of one address; behind a proxy: --max-connections")
      .show_default()
      .between(1, 1'000'000);
  verb.option("--cache", options->cache, "MiB of memory for checked chunks that all clients share")
      .show_default()
      .between(1, 1'000'000);
  verb.flag("--quiet", options->quiet, "No line for each request");
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::offline_repo
