// SPDX-License-Identifier: Apache-2.0
// sealift-repo: arguments -> verified bundles -> catalog -> server. Data on stdout (the address), the rest on stderr.
// The only place that catches errors and turns their code into the exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "offline_repo/server.hpp"

namespace {

using namespace sealift;

struct ServeOptions {
  std::vector<std::string> bundles;
  std::vector<std::string> fingerprints;
  std::string listen = "127.0.0.1:8080";
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  bool quiet = false;
};

// One write a line, so that lines of several threads do not mix.
void log_line(std::string line) {
  line.push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void serve(const ServeOptions& options) {
  offline_repo::ServerOptions server_options{.listen = offline_repo::parse_listen(options.listen),
                                             .threads = options.threads,
                                             .on_fault = [](const std::string& line) { log_line("fault: " + line); }};
  if (!options.quiet) server_options.on_request = log_line;
  bundle::TrustedKeys trusted;
  for (const std::string& text : options.fingerprints) trusted.fingerprints.push_back(bundle::parse_fingerprint(text));
  std::vector<bundle::VerifiedBundle> bundles;
  for (const std::string& path : options.bundles) bundles.push_back(bundle::verify(bundle::open(path), trusted));
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
  command->add_option("--fingerprint", options.fingerprints, "The key that signed them; repeat for several keys")
      ->required()
      ->expected(1)
      ->take_all();
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
