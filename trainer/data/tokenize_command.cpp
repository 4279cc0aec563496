// SPDX-License-Identifier: Apache-2.0
// Makes one argument of the carried scripts.
// See tokenize_command.hpp. Python imports them from a table, in whatever order they import each other.
// JSON text is a Python literal too, which is all the quoting that is needed.
#include "trainer/data/tokenize_command.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace sealift::trainer {
namespace {

struct Script {
  const char* name;
  const char* text;
};

constexpr Script kScripts[] = {
#include "trainer/data/tokenize_scripts.inc"
};

// With -c the working directory comes first on the path, and a json.py that lies there would be run.
constexpr const char* kStart = R"py(
import sys
sys.path = [folder for folder in sys.path if folder]
import importlib.abc, importlib.util
class Carried(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name in SCRIPTS else None
    def exec_module(self, module):
        exec(compile(SCRIPTS[module.__name__], module.__name__ + ".py", "exec"), module.__dict__)
sys.meta_path.insert(0, Carried())
exec(compile(SCRIPTS["__main__"], "tokenize", "exec"))
)py";

}  // namespace

std::string python_for(const std::string& chosen, const std::filesystem::path& program) {
  if (!chosen.empty()) return chosen;
  const auto beside = program.parent_path() / "python3";
  return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

std::vector<std::string> tokenize_command(const std::string& python, const std::vector<std::string>& arguments) {
  nlohmann::json scripts;
  for (const auto& script : kScripts) scripts[script.name] = script.text;
  std::vector<std::string> command = {python, "-c", "SCRIPTS = " + scripts.dump() + kStart};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace sealift::trainer
