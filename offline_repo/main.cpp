// SPDX-License-Identifier: Apache-2.0
// sealift-repo: arguments -> verified bundles -> catalog -> server. Data on stdout (the address), the rest on stderr.
// The only place that catches errors and turns their code into the exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "offline_repo/server/server.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace {

using namespace sealift;

struct ServeOptions {
  std::vector<std::string> bundles;
  std::string fingerprint;
  std::string trust;
  bool allow_downgrade = false;
  std::string listen = "127.0.0.1:8080";
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  bool quiet = false;
};

// One write a line, so that lines of several threads do not mix.
void log_line(std::string line) {
  line.push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// The trust folder is only read: what is served was accepted by sealift-install, or is judged for this run alone.
std::vector<bundle::VerifiedBundle> verified_bundles(const ServeOptions& options) {
  std::optional<bundle::Digest> fingerprint;
  if (!options.fingerprint.empty()) fingerprint = bundle::parse_fingerprint(options.fingerprint);
  const bundle::Trust trust{.state = bundle::trust_for_run(options.trust, fingerprint),
                            .allow_downgrade = options.allow_downgrade};
  std::vector<bundle::VerifiedBundle> bundles;
  for (const std::string& path : options.bundles) {
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

void serve(const ServeOptions& options) {
  offline_repo::ServerOptions server_options{.listen = offline_repo::parse_listen(options.listen),
                                             .threads = options.threads,
                                             .on_fault = [](const std::string& line) { log_line("fault: " + line); }};
  if (!options.quiet) server_options.on_request = log_line;
  std::vector<bundle::VerifiedBundle> bundles = verified_bundles(options);
  offline_repo::Catalog catalog = offline_repo::make_catalog(std::move(bundles));
  const std::string summary = std::to_string(catalog.bundles.size()) + " bundle(s), " +
                              std::to_string(catalog.projects.size()) + " projects, " +
                              std::to_string(catalog.wheel_count()) + " wheels";
  offline_repo::Server server(std::move(catalog), std::move(server_options));
  std::printf("listening on http://%s\n", server.address().text().c_str());
  std::fflush(stdout);
  if (!options.quiet) log_line("serving " + summary + "; read only; SIGTERM or Ctrl-C ends");
  server.run();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("sealift-repo: a package index for pip and uv, straight from verified bundles, read only");
  app.set_version_flag("--version", "sealift-repo " SEALIFT_VERSION);
  app.require_subcommand(1);
  ServeOptions options;
  CLI::App* command = app.add_subcommand("serve", "Serve the wheels of bundles until SIGTERM or Ctrl-C");
  command->add_option("BUNDLE", options.bundles, "Folders of bundles, or their seals")->required();
  command->add_option("--trust", options.trust, "A trust folder, such as PREFIX/trust; only read");
  command->add_option("--fingerprint", options.fingerprint, "The root to begin from, without a trust folder");
  command->add_flag("--allow-downgrade", options.allow_downgrade, "Serve older versions than were accepted, too");
  command->add_option("--listen", options.listen, "Numeric ADDRESS:PORT; port 0: any free one")->capture_default_str();
  command->add_option("--threads", options.threads, "Threads that read and check")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command->add_flag("--quiet", options.quiet, "No line for each request");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(bundle::ErrorCode::Usage);
  }
  try {
    serve(options);
    return 0;
  } catch (const bundle::Error& error) {
    log_line("error[" + std::string(bundle::name_of(error.code())) + "]: " + error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    log_line(std::string("error[io]: ") + error.what());
    return static_cast<int>(bundle::ErrorCode::Io);
  }
}
