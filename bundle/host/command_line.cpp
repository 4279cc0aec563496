// SPDX-License-Identifier: Apache-2.0
// The only door to CLI11; see command_line.hpp. Wrong arguments end with 2 like every usage error, whatever number
// CLI11 has for them.
#include "bundle/host/command_line.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <set>
#include <system_error>

#include "bundle/core/foreign_text.hpp"
#include "bundle/host/shown_streams.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/nearest.hpp"

namespace sealift::bundle {

namespace {

bool wants_json(const CLI::App& app) {
  const CLI::Option* json = app.get_option_no_throw("--json");
  if (json != nullptr && json->count() > 0) return true;
  for (const CLI::App* verb : app.get_subcommands())
    if (wants_json(*verb)) return true;
  return false;
}

// Arguments that do not parse may have kept the verb, and so its --json, from being parsed too.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
}

// The number of a stream that the caller closed would go to the next file that is opened, a payload's perhaps, and what
// is printed would be written into that.
void open_standard_streams() {
  for (int stream = 0; stream < 3; ++stream)
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != stream) return;
}

// Half of an inventory or a report looks like a whole one to a script that asks for the exit code alone.
void require_printed(int exit_code, void (*on_closed_pipe)(int)) {
  if (std::cout.flush() || exit_code != 0) return;
  // Nobody reads the rest, as behind `| head`: that ends us as it ends others, now that all is done.
  if (pollfd out{STDOUT_FILENO, POLLOUT, 0}; ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) {
    std::signal(SIGPIPE, on_closed_pipe);
    std::raise(SIGPIPE);
  }
  throw Error(ErrorCode::Io, {.what = "what was to be printed could not be written",
                              .where = "stdout",
                              .next = "make room where it goes, and ask again; all else was done"});
}

Error error_of(const std::string& what, const std::filesystem::path& where, int number) {
  try {
    throw_errno(what, where, number);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::Io, {.what = what}};
}

// What no part of a program has a message of its own for.
Error unforeseen(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {ErrorCode::Io,
            {.what = "there is not enough memory",
             .next = "end other programs, or raise this account's limit (ulimit -v), and run this again"}};
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return error_of("a file or folder cannot be made, changed or read", file->path1(), file->code().value());
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return {ErrorCode::Io,
            {.what = "the system gives this program no more threads or processes",
             .got = error.what(),
             .next = "raise this account's limits (ulimit -u and -v; of a container: pids), and run this again"}};
  if (system != nullptr && system->code() == std::errc::operation_not_permitted)
    return {ErrorCode::Io,
            {.what = "the system does not let this program make a thread",
             .got = error.what(),
             .next = "an older container runtime's filter (seccomp) refuses calls that it does not know, as clone3: "
                     "update the runtime (Docker: 20.10.10), or start the container with --security-opt "
                     "seccomp=unconfined"}};
  return {ErrorCode::Io, {.what = "something failed that this program does not expect", .got = error.what()}};
}

std::set<std::string> verbs_of(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.insert(verb->get_name());
    for (const std::string& other : verb->get_aliases()) names.insert(other);
  }
  return names;
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::set<std::string> options_of(const CLI::App& verb) {
  std::set<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.insert("--" + name);
  return names;
}

// The first word that looks like an option outside of `known`; empty where there is none.
std::string unknown_option(int argc, char** argv, const std::set<std::string>& known) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word.starts_with("--") && !known.contains(word)) return word;
  }
  return "";
}

// The next step after a misspelt word behind `said`; `near`: the nearest known word, empty where none is near.
std::string meant(const std::string& near, const std::string& said) {
  return near.empty() ? "see: " + said + " --help" : "did you mean: " + said + " " + near;
}

// The fault of the command line; for an unknown verb or option with its nearest known one.
Error usage_error(const CLI::App& program, int argc, char** argv, const std::string& what) {
  const CLI::App* app = &program;
  std::string said = program.get_name();
  for (int i = 1; i < argc; ++i) {
    const std::set<std::string> verbs = verbs_of(*app);
    const std::string word = argv[i];
    if (verbs.empty()) break;
    if (word.starts_with('-')) continue;
    if (verbs.contains(word)) {
      said += " " + word;
      app = app->get_subcommand(word);
      continue;
    }
    return {ErrorCode::Usage,
            {.what = "there is no such verb",
             .expected = joined(verbs),
             .got = word,
             .next = meant(nearest(word, verbs), said)}};
  }
  const std::set<std::string> options = options_of(*app);
  if (const std::string word = unknown_option(argc, argv, options); !word.empty() && !app->get_allow_extras())
    return {ErrorCode::Usage,
            {.what = "there is no such option", .got = word, .next = meant(nearest(word, options), said)}};
  return {ErrorCode::Usage, {.what = what, .next = "see --help, also behind a verb"}};
}

int fail(const Error& error, bool json) {
  print_error(error);
  // A message may quote invalid UTF-8.
  if (json)
    std::cout << terminal_text(Json{{"error", json_of(error)}}.dump(-1, ' ', false, Json::error_handler_t::replace))
              << "\n";
  return error.exit_code();
}

}  // namespace

Option Option::required(bool required) const {
  option_->required(required);
  return *this;
}

Option Option::repeated() const {
  option_->expected(1)->take_all();
  return *this;
}

Option Option::listed() const {
  option_->delimiter(',');
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

template <class Number>
Option Option::between(Number low, Number high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}
template Option Option::between(int, int) const;
template Option Option::between(unsigned, unsigned) const;
template Option Option::between(double, double) const;

Option Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::existing() const {
  option_->check(CLI::ExistingPath);
  return *this;
}

Option Option::bytes() const {
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return *this;
}

Option Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

Verb Verb::verb(const std::string& name, const std::string& what) const {
  app_->require_subcommand(1);
  return {*app_->add_subcommand(name, what), *exit_code_};
}

void Verb::alias(const std::string& name) const {
  app_->alias(name);
}

template <class Value>
Option Verb::option(const std::string& names, Value& value, const std::string& what) const {
  return Option(app_->add_option(names, value, what));
}
template Option Verb::option(const std::string&, std::string&, const std::string&) const;
template Option Verb::option(const std::string&, std::filesystem::path&, const std::string&) const;
template Option Verb::option(const std::string&, unsigned&, const std::string&) const;
template Option Verb::option(const std::string&, std::int64_t&, const std::string&) const;
template Option Verb::option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Verb::option(const std::string&, double&, const std::string&) const;
template Option Verb::option(const std::string&, std::optional<bool>&, const std::string&) const;
template Option Verb::option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Verb::option(const std::string&, std::vector<std::filesystem::path>&, const std::string&) const;

Option Verb::setting(const std::string& names, std::function<void(const std::string&)> take,
                     const std::string& what) const {
  return Option(app_->add_option_function<std::string>(names, std::move(take), what));
}

void Verb::flag(const std::string& names, bool& value, const std::string& what) const {
  app_->add_flag(names, value, what);
}

void Verb::json(bool& value) const {
  flag("--json", value, "print one JSON object on stdout");
}

void Verb::others(std::vector<std::string>& words, bool helps) const {
  if (!helps) app_->set_help_flag();
  app_->allow_extras();
  app_->parse_complete_callback([app = app_, &words] { words = app->remaining(); });
}

void Verb::footer(std::function<std::string()> text) const {
  app_->footer(std::move(text));
}

void Verb::action(std::function<int()> run) const {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
}

Program::Program(const std::string& name, const std::string& what, const std::string& version)
    : app_(std::make_unique<CLI::App>(what, name)) {
  app_->set_version_flag("--version", name + " " + version);
  app_->require_subcommand(1);
}

Program::~Program() = default;

Verb Program::verb(const std::string& name, const std::string& what) {
  return {*app_->add_subcommand(name, what), exit_code_};
}

std::optional<int> Program::parse(int argc, char** argv) {
  const ShownStreams shown;
  try {
    app_->parse(argc, argv);
    return exit_code_;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(*app_, argc, argv, error.what());
    app_->exit(error, std::cout, std::cerr);  // --help, --version
    return std::nullopt;
  }
}

int Program::run(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond a limit (ulimit -f) is then an error with its path
  // Work goes on when nobody reads any more what is said of it: `2>&1 | head`, a log's reader that died.
  const auto on_closed_pipe = std::signal(SIGPIPE, SIG_IGN);
  try {
    const std::optional<int> code = parse(argc, argv);
    require_printed(code.value_or(0), on_closed_pipe);
    return code.value_or(0);
  } catch (const Interrupted& stopped) {
    std::cerr << "stopped; " << terminal_text(stopped.next) << "\n";
    std::raise(stopped.signal);  // whose handler is the system's own again, so that the caller sees what ended us
    return 128 + stopped.signal;
  } catch (const Error& error) {
    return fail(error, wants_json(*app_) || (error.code() == ErrorCode::Usage && asks_for_json(argc, argv)));
  } catch (const std::exception& error) {
    return fail(unforeseen(error), wants_json(*app_));
  }
}

void print(bool json, const Json& object, std::string_view text) {
  if (json)
    std::cout << terminal_text(write_json(object)) << "\n" << std::flush;
  else
    std::cout << terminal_text(text) << std::flush;
}

void print_error(const Error& error) {
  std::cerr << "error[" << name_of(error.code()) << "]: " << terminal_text(error.what()) << "\n";
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::cerr << "warning: " << terminal_text(continued(warning, 2, 2)) << "\n";
}

Json json_of(const Error& error) {
  const Facts& facts = error.facts();
  Json json = {{"code", std::string(name_of(error.code()))}, {"exit", error.exit_code()}, {"what", facts.what}};
  if (!facts.where.empty()) json["where"] = facts.where;
  if (!facts.expected.empty()) json["expected"] = facts.expected;
  if (!facts.got.empty()) json["got"] = facts.got;
  if (!facts.next.empty()) json["next"] = facts.next;
  return json;
}

}  // namespace sealift::bundle
