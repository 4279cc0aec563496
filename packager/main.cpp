// SPDX-License-Identifier: Apache-2.0
// sealift-pack: arguments -> options -> one call -> print. Data goes to stdout, everything else to stderr.
// The only place of this program that catches.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "packager/create.hpp"
#include "packager/compare/diff.hpp"
#include "packager/compare/inspect.hpp"
#include "packager/keys/key_file.hpp"
#include "packager/keys/keygen.hpp"
#include "packager/lock_job.hpp"
#include "packager/python/offline_breakers.hpp"
#include "packager/documents/documents.hpp"
#include "packager/pack/recut.hpp"
#include "packager/pack/rehearse.hpp"
#include "packager/keys/root_job.hpp"
#include "packager/keys/sign.hpp"
#include "packager/pack/volume_size.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/trust/trust_state.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace {

using namespace sealift;
using namespace sealift::packager;

constexpr int kUsage = static_cast<int>(bundle::ErrorCode::Usage);

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "print the result as one JSON object");
}

void add_passphrase(CLI::App& verb, std::filesystem::path& file) {
  verb.add_option("--passphrase-file", file, "its first line opens the key (default: $SEALIFT_PASSPHRASE)");
}

std::string fingerprint(const bundle::Digest& digest) {
  return "sha256:" + digest.hex();
}

bundle::Json json_of(const std::optional<bundle::Digest>& digest) {
  return digest ? bundle::Json(fingerprint(*digest)) : bundle::Json();
}

void add_keygen(CLI::App& app) {
  struct Options : KeygenOptions {
    std::string algorithm_name = "ed25519";
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("keygen", "make a key and a root that trusts it; print the root's fingerprint");
  verb->add_option("DIR", options->folder, "gets release.key, release.pub, root.1.json, root.fingerprint")->required();
  verb->add_option("--name", options->name,
                   "only NAME.key and NAME.pub, for a root of several keys; print the key's id");
  verb->add_option("--algorithm", options->algorithm_name, bundle::known_algorithms())->capture_default_str();
  add_passphrase(*verb, options->passphrase_file);
  add_json(*verb, options->json);
  verb->callback([options] {
    const bundle::AlgorithmFacts* facts = bundle::find_algorithm(options->algorithm_name);
    if (facts == nullptr)
      throw bundle::Error(bundle::ErrorCode::Usage, {.what = "this is not an algorithm that sealift knows",
                                                     .expected = bundle::known_algorithms(),
                                                     .got = options->algorithm_name});
    options->algorithm = facts->algorithm;
    options->passphrase = read_passphrase(options->passphrase_file);
    const std::string made = fingerprint(keygen(*options));
    const char* what = options->name.empty() ? "fingerprint" : "keyid";
    std::cout << (options->json ? bundle::write_json({{what, made}}) : made) << "\n";
  });
}

void add_root(CLI::App& app) {
  struct Options : RootJobOptions {
    bool json = false;
  };
  CLI::App* root = app.add_subcommand("root", "the file that says who may sign what");
  root->require_subcommand(1);
  const auto options = std::make_shared<Options>();
  CLI::App* verb = root->add_subcommand("create", "make an unsigned root from a TOML file");
  verb->add_option("ROOT", options->job, "keys, roles, thresholds, revocations (TOML)")->required();
  verb->add_option("--previous", options->previous, "the root before this one; its revocations are kept");
  verb->add_option("-o,--output", options->out, "the root file (default: root.N.json beside ROOT)");
  add_json(*verb, options->json);
  verb->callback([options] {
    const RootJobResult made = create_root(*options);
    for (const auto& [name, role] : made.root.roles)
      std::cerr << name << ": " << role.threshold << " of " << role.keys.size() << " keys"
                << (role.keys.size() > 1 && role.threshold == role.keys.size() ? "; losing one key stops this role"
                                                                               : "")
                << "\n";
    std::cout << (options->json ? bundle::write_json({{"root", made.file.string()},
                                                      {"version", made.root.version},
                                                      {"fingerprint", fingerprint(made.fingerprint)}})
                                : fingerprint(made.fingerprint))
              << "\n";
  });
}

void add_sign(CLI::App& app) {
  struct Options : SignOptions {
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("sign", "add a signature to a root or a bundle; no volume is touched");
  verb->add_option("FILE", options->file, "a root file, a bundle's folder or its seal")->required();
  verb->add_option("--key", options->keys, "a private key that signs; may be repeated")->expected(1)->take_all();
  verb->add_option("--root", options->roots, "roots that replace those in a bundle's seal, oldest first")
      ->expected(1)
      ->take_all();
  verb->add_option("--export", options->export_to, "write the exact bytes that a key elsewhere (HSM, UKey) must sign");
  verb->add_option("--import", options->import_from, "take in that key's signature, once it was checked");
  verb->add_option("--public-key", options->public_key, "whose signature is imported (PEM)");
  add_passphrase(*verb, options->passphrase_file);
  add_json(*verb, options->json);
  verb->callback([options] {
    options->passphrase = read_passphrase(options->passphrase_file);
    const SignResult signed_file = sign(*options);
    bundle::Json signers = bundle::Json::array(), roles = bundle::Json::array();
    for (const bundle::Digest& id : signed_file.signers) signers.push_back(fingerprint(id));
    for (const RoleStatus& role : signed_file.roles)
      roles.push_back({{"role", role.role}, {"signatures", role.signatures}, {"threshold", role.threshold}});
    std::cout << (options->json ? bundle::write_json({{"file", signed_file.file.string()},
                                                      {"sha256", fingerprint(signed_file.digest)},
                                                      {"signers", std::move(signers)},
                                                      {"roles", std::move(roles)}})
                                : text_of(signed_file.roles))
              << "\n";
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
    for (const LockedModel& model : result.lock.models)
      console.note(fmt::format("locked {} {}: {} files ({})", model.spec.data ? "data" : "the model",
                               model.spec.title(), model.files.size(), human_size(model.size())));
    if (const LockedApt& apt = result.lock.apt; !apt.debs.empty())
      console.note(fmt::format("locked {} Debian packages of {}", apt.debs.size(), apt.suite));
    show_findings(result.findings, console);
    std::cout << (options->json ? bundle::write_json({{"lock", result.file.string()},
                                                      {"wheels", result.lock.wheels.size()},
                                                      {"size", size},
                                                      {"glibc_floor", result.lock.glibc_floor.text()},
                                                      {"offline", findings_json(result.findings)}})
                                : result.file.string())
              << "\n";
  });
}

// What `create` ends with. A bundle that needs more signatures cannot be installed yet, and where there is no sandbox
// nothing can be said: both are told, and neither is a pass.
bundle::Json rehearse_new(const CreateResult& made, const std::filesystem::path& system,
                          const std::vector<std::filesystem::path>& onto, Console& console) {
  const auto not_yet = [&](const std::string& why) {
    console.warn("not rehearsed: " + why + "; `sealift-pack rehearse` does it later");
    return bundle::Json{{"done", false}, {"why", why}};
  };
  for (const RoleStatus& role : made.roles)
    if (role.signatures < role.threshold) return not_yet("signatures are missing");
  try {
    const Rehearsal done = rehearse({.bundle = made.folder,
                                     .fingerprint = bundle::open(made.folder).seal.roots.front().digest(),
                                     .system = system,
                                     .onto = onto,
                                     .work_area = {}},
                                    console);
    console.note("rehearsed: " + done.installed + " in " + done.system);
    return {{"done", true}, {"system", done.system}};
  } catch (const bundle::Error& error) {
    if (error.code() != bundle::ErrorCode::CannotCheck) throw;
    return not_yet(error.facts().what + " (" + error.facts().got + ")");
  }
}

void add_create(CLI::App& app) {
  struct Options : CreateOptions {
    std::filesystem::path system;
    std::vector<std::filesystem::path> onto;
    bool no_rehearsal = false;
    std::string volume = "0";
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("create", "fetch what a lock pins, check it, and write a signed bundle");
  verb->add_option("LOCK", options->lock, "the lock file")->required();
  verb->add_option("--root", options->roots, "the roots that travel along, oldest first; may be repeated")
      ->required()
      ->expected(1)
      ->take_all();
  verb->add_option("--key", options->keys, "a private key that signs (release.key); may be repeated")
      ->required()
      ->expected(1)
      ->take_all();
  add_passphrase(*verb, options->passphrase_file);
  verb->add_option("-o,--output", options->out, "the folder that gets NAME-VERSION/")->required();
  verb->add_option("--cache", options->cache, "folder for downloads (default: $SEALIFT_CACHE, ~/.cache/sealift)");
  verb->add_option("--volume-size", options->volume,
                   "cut the payload to fit discs: 1G, 4700M, dvd, dvd-dl, bd, cd, fat32 (default: one)");
  verb->add_option("--installer", options->installer, "the static sealift-install (default: beside this program)");
  verb->add_option("--base", options->base, "a target's `sealift-install inventory`: leave out what it has (a delta)");
  verb->add_option("--onto", options->onto, "a bundle to rehearse a delta on; may be repeated, oldest first")
      ->expected(1)
      ->take_all();
  verb->add_option("--jobs", options->fetch.jobs, "downloads at a time")->check(CLI::Range(1, 64));
  verb->add_flag("--no-rehearsal", options->no_rehearsal, "do not install the bundle without a network at the end");
  verb->add_option("--system", options->system, "the root folder of a system of the target's kind, to rehearse in");
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    options->volume_size = parse_volume_size(options->volume);
    options->passphrase = read_passphrase(options->passphrase_file);
    const CreateResult result = create(*options, console);
    console.note(fmt::format("{} entries, {} in {} volume(s); signatures: {}", result.manifest.entries.size(),
                             human_size(result.manifest.payload.size), result.manifest.payload.volumes.size(),
                             text_of(result.roles)));
    show_findings(result.findings, console);
    const bundle::Json rehearsal = options->no_rehearsal
                                       ? bundle::Json{{"done", false}, {"why", "--no-rehearsal"}}
                                       : rehearse_new(result, options->system, options->onto, console);
    bundle::Json signers = bundle::Json::array();
    for (const bundle::Digest& id : result.signers) signers.push_back(fingerprint(id));
    std::cout << (options->json ? bundle::write_json({{"bundle", result.folder.string()},
                                                      {"size", result.manifest.payload.size},
                                                      {"volumes", result.manifest.payload.volumes.size()},
                                                      {"base", json_of(result.manifest.base)},
                                                      {"offline", findings_json(result.findings)},
                                                      {"signers", std::move(signers)},
                                                      {"native", native_json(result.native)},
                                                      {"rehearsal", rehearsal}})
                                : result.folder.string())
              << "\n";
  });
}

void add_rehearse(CLI::App& app) {
  struct Options : RehearseOptions {
    std::string root;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("rehearse", "install a bundle without a network, here, and throw the result away");
  verb->add_option("BUNDLE", options->bundle, "the bundle's folder or seal")->required();
  verb->add_option("--fingerprint", options->root, "of a root: the bundle is verified by it first")->required();
  verb->add_option("--system", options->system, "the root folder of a system of the target's kind (default: this one)");
  verb->add_option("--onto", options->onto, "a bundle that a delta builds on; may be repeated, oldest first")
      ->expected(1)
      ->take_all();
  verb->add_option("--work-area", options->work_area,
                   "has room for all that is installed (default: beside the bundle)");
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    options->fingerprint = bundle::parse_fingerprint(options->root);
    const Rehearsal done = rehearse(*options, console);
    std::cout << (options->json ? bundle::write_json({{"installed", done.installed}, {"system", done.system}})
                                : "rehearsed: " + done.installed + " in " + done.system)
              << "\n";
  });
}

void add_recut(CLI::App& app) {
  struct Options : RecutOptions {
    std::string volume = "0";
    std::string root;
    std::filesystem::path passphrase_file;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("recut", "cut a bundle into other volumes and sign the new cut");
  verb->add_option("BUNDLE", options->bundle, "the bundle's folder or seal")->required();
  verb->add_option("--volume-size", options->volume, "1G, 4700M, dvd, dvd-dl, bd, cd, fat32 (default: one)");
  verb->add_option("--fingerprint", options->root, "of a root: the bundle is verified by it before it is signed again")
      ->required();
  verb->add_option("--key", options->keys, "a private key that signs; may be repeated")
      ->required()
      ->expected(1)
      ->take_all();
  add_passphrase(*verb, options->passphrase_file);
  verb->add_option("-o,--output", options->out, "the folder that gets NAME-VERSION/")->required();
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    options->volume_size = parse_volume_size(options->volume);
    options->fingerprint = bundle::parse_fingerprint(options->root);
    options->passphrase = read_passphrase(options->passphrase_file);
    const RecutResult result = recut(*options, console);
    const std::size_t volumes = result.manifest.payload.volumes.size();
    console.note(fmt::format("{} volume(s); signatures: {}", volumes, text_of(result.roles)));
    std::cout << (options->json ? bundle::write_json({{"bundle", result.folder.string()}, {"volumes", volumes}})
                                : result.folder.string())
              << "\n";
  });
}

void add_diff(CLI::App& app) {
  struct Options {
    std::filesystem::path before, after;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("diff", "show what one bundle or lock has that another has not");
  verb->add_option("BEFORE", options->before, "a bundle's folder or seal, or a lock")->required();
  verb->add_option("AFTER", options->after, "the same")->required();
  add_json(*verb, options->json);
  verb->callback([options] {
    const Diff found = diff(read_diff_side(options->before), read_diff_side(options->after));
    std::cout << (options->json ? diff_json(found) + "\n" : diff_text(found));
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
  verb->add_option("--fingerprint", options->fingerprint,
                   "of a root: refuse unless the bundle's roots begin there and its thresholds are met");
  add_json(*verb, options->json);
  verb->callback([options] {
    std::optional<bundle::Digest> root;
    if (!options->fingerprint.empty()) root = bundle::parse_fingerprint(options->fingerprint);
    const InspectReport report = inspect(options->bundle, root);
    std::cout << (options->json ? inspect_json(report) + "\n" : inspect_text(report));
  });
}

void add_papers(CLI::App& app) {
  struct Options : PapersOptions {
    std::string root;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("papers", "write SBOM, provenance, licences and review pages for a bundle");
  verb->add_option("BUNDLE", options->bundle, "the bundle's folder or seal")->required();
  verb->add_option("--fingerprint", options->root, "of a root: the bundle is verified by it first")->required();
  verb->add_option("--lock", options->lock, "the lock that it was made from: adds addresses and builds");
  verb->add_option("-o,--output", options->out, "the new folder that gets the papers")->required();
  add_json(*verb, options->json);
  verb->callback([options] {
    Console console;
    options->fingerprint = bundle::parse_fingerprint(options->root);
    bundle::Json files = bundle::Json::array();
    std::string lines;
    for (const std::filesystem::path& file : write_papers(*options, console)) {
      files.push_back(file.string());
      lines += file.string() + "\n";
    }
    std::cout << (options->json ? bundle::write_json({{"papers", std::move(files)}}) + "\n" : lines);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Packs a Python environment with its interpreter into a signed bundle that can cross an air gap.",
               "sealift-pack");
  app.set_version_flag("--version", std::string("sealift-pack " SEALIFT_VERSION));
  app.require_subcommand(1);
  add_keygen(app);
  add_root(app);
  add_lock(app);
  add_create(app);
  add_sign(app);
  add_rehearse(app);
  add_recut(app);
  add_inspect(app);
  add_diff(app);
  add_papers(app);
  bundle::catch_interrupts();
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const bundle::Interrupted& stopped) {
    std::cerr << "stopped; the same command goes on from here\n";
    std::raise(stopped.signal);  // whose handler is the system's own again, so that the caller sees what ended us
    return 128 + stopped.signal;
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
