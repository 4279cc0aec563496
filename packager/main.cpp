// SPDX-License-Identifier: Apache-2.0
// sealift-pack: arguments -> options -> one call -> print. Data goes to stdout, everything else to stderr.
// The only place of this program that catches.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "packager/create.hpp"
#include "packager/inspect.hpp"
#include "packager/keygen.hpp"
#include "packager/lock_job.hpp"
#include "sealift/bundle/trust.hpp"

namespace {

using namespace sealift;
using namespace sealift::packager;

constexpr int kUsage = static_cast<int>(bundle::ErrorCode::Usage);

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "print the result as one JSON object");
}

void add_keygen(CLI::App& app) {
  struct Options {
    std::filesystem::path folder;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("keygen", "make an Ed25519 key; print its fingerprint");
  verb->add_option("DIR", options->folder, "gets release.key, release.pub, release.fingerprint")->required();
  add_json(*verb, options->json);
  verb->callback([options] {
    const std::string fingerprint = "sha256:" + keygen(options->folder).hex();
    std::cout << (options->json ? bundle::write_json({{"fingerprint", fingerprint}}) : fingerprint) << "\n";
  });
}

void add_lock(CLI::App& app) {
  struct Options : LockOptions {
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("lock", "resolve a job file for its target and pin everything by digest");
  verb->add_option("JOB", options->job, "the job file (TOML)")->required();
  verb->add_option("-o,--output", options->out, "the lock file (default: NAME.lock.toml beside the job)");
  verb->add_option("--cache", options->cache, "folder for downloads (default: $SEALIFT_CACHE, ~/.cache/sealift)");
  verb->add_option("--uv", options->uv, "the uv program (default: $SEALIFT_UV, PATH)");
  verb->add_option("--patchelf", options->patchelf, "the patchelf program (default: PATH)");
  verb->add_option("--launcher", options->launcher, "the static sealift-start (default: beside this program)");
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    const LockResult result = lock_job(*options, console);
    std::uint64_t size = 0;
    for (const LockedWheel& wheel : result.lock.wheels) size += wheel.size;
    console.note(fmt::format("locked {} wheels ({}), {}, {} program(s); they need glibc {}", result.lock.wheels.size(),
                             human_size(size), result.lock.interpreter.description, result.lock.programs.size(),
                             result.lock.glibc_floor.text()));
    std::cout << (options->json ? bundle::write_json({{"lock", result.file.string()},
                                                      {"wheels", result.lock.wheels.size()},
                                                      {"size", size},
                                                      {"glibc_floor", result.lock.glibc_floor.text()}})
                                : result.file.string())
              << "\n";
  });
}

void add_create(CLI::App& app) {
  struct Options : CreateOptions {
    std::string volume = "0";
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("create", "fetch what a lock pins, check it, and write a signed bundle");
  verb->add_option("LOCK", options->lock, "the lock file")->required();
  verb->add_option("--key", options->key, "the private key that signs (release.key)")->required();
  verb->add_option("-o,--output", options->out, "the folder that gets NAME-VERSION/")->required();
  verb->add_option("--cache", options->cache, "folder for downloads (default: $SEALIFT_CACHE, ~/.cache/sealift)");
  verb->add_option("--volume-size", options->volume, "cut the payload to fit discs: 1G, 4700M, 25GB (default: one)");
  verb->add_option("--installer", options->installer, "the static sealift-install (default: beside this program)");
  verb->add_option("--jobs", options->fetch.jobs, "downloads at a time")->check(CLI::Range(1, 64));
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    options->volume_size = parse_size(options->volume);
    const CreateResult result = create(*options, console);
    console.note(fmt::format("{} entries, {} in {} volume(s), signed by sha256:{}", result.manifest.entries.size(),
                             human_size(result.manifest.payload.size), result.manifest.payload.volumes.size(),
                             result.signer.hex()));
    std::cout << (options->json ? bundle::write_json({{"bundle", result.folder.string()},
                                                      {"size", result.manifest.payload.size},
                                                      {"volumes", result.manifest.payload.volumes.size()},
                                                      {"signer", "sha256:" + result.signer.hex()}})
                                : result.folder.string())
              << "\n";
  });
}

void add_inspect(CLI::App& app) {
  struct Options {
    std::filesystem::path bundle;
    std::string fingerprint;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("inspect", "show what a bundle says it is, and who signed it");
  verb->add_option("BUNDLE", options->bundle, "the bundle's folder or seal")->required();
  verb->add_option("--fingerprint", options->fingerprint, "refuse unless this key signed it");
  add_json(*verb, options->json);
  verb->callback([options] {
    std::optional<bundle::Digest> fingerprint;
    if (!options->fingerprint.empty()) fingerprint = bundle::parse_fingerprint(options->fingerprint);
    const InspectReport report = inspect(options->bundle, fingerprint);
    std::cout << (options->json ? inspect_json(report) + "\n" : inspect_text(report));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Packs a Python environment with its interpreter into a signed bundle that can cross an air gap.",
               "sealift-pack");
  app.set_version_flag("--version", std::string("sealift-pack " SEALIFT_VERSION));
  app.require_subcommand(1);
  add_keygen(app);
  add_lock(app);
  add_create(app);
  add_inspect(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : kUsage;
  } catch (const bundle::Error& error) {
    std::cerr << "error[" << name_of(error.code()) << "]: " << error.what() << "\n";
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "error[io]: " << error.what() << "\n";
    return static_cast<int>(bundle::ErrorCode::Io);
  }
}
