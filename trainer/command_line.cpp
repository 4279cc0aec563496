// SPDX-License-Identifier: Apache-2.0
// A command line's way to an exit code.
// See command_line.hpp.
// Words are looked at again only after CLI11 has refused them, so that it alone says what is right.
#include "trainer/command_line.hpp"

#include "trainer/failure.hpp"

#include <sealift/nearest.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace sealift::trainer {
namespace {

std::set<std::string> verbs_of(const CLI::App& app) {
  std::set<std::string> names;
  for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; })) names.insert(verb->get_name());
  return names;
}

std::set<std::string> options_of(const CLI::App& verb) {
  std::set<std::string> names;
  for (const auto* option : verb.get_options()) {
    for (const auto& name : option->get_lnames()) names.insert("--" + name);
  }
  return names;
}

std::string no_such(const std::string& what, const std::string& said, const std::string& near,
                    const std::string& before) {
  const auto shown = said.substr(0, 60);
  return "there is no " + what + " " + shown +
         (near.empty() ? "; see: " + before + " --help" : "; did you mean: " + before + " " + near);
}

/// `code`, or that what was printed did not arrive: of a result that nobody can read, success would be a lie.
int printed(int code) {
  std::cout.flush();
  if (std::cout && std::ferror(stdout) == 0) return code;
  say("what was printed cannot be written to standard output: is its disk full, or its file at a limit (ulimit -f)?");
  return code == 0 ? kCannotTell : code;
}

}  // namespace

std::string misspelt(const CLI::App& program, const std::vector<std::string>& words) {
  const auto verbs = verbs_of(program);
  const auto& name = program.get_name();
  const CLI::App* verb = nullptr;
  for (const auto& word : words) {
    if (word == "--") break;
    if (!verb && !word.starts_with('-')) {
      if (!verbs.contains(word)) return no_such("verb", word, nearest(word, verbs), name);
      verb = program.get_subcommand(word);
      continue;
    }
    if (!word.starts_with("--")) continue;
    const auto option = word.substr(0, word.find('='));
    const auto known = options_of(verb ? *verb : program);
    const auto before = verb ? name + " " + verb->get_name() : name;
    if (!known.contains(option)) return no_such("option", option, nearest(option, known), before);
  }
  return "";
}

int run_program(CLI::App& app, int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    app.parse(argc, argv);
    return printed(0);
  } catch (const CLI::RuntimeError& error) {
    return printed(error.get_exit_code());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return printed(app.exit(error));  // --help, --version
    const auto why = misspelt(app, {argv + 1, argv + argc});
    if (why.empty()) return app.exit(error), kCannotTell;
    say(why);
    return kCannotTell;
  } catch (const std::exception& error) {
    say(text_of(error));
    std::_Exit(exit_code_of(error));
  }
}

}  // namespace sealift::trainer
