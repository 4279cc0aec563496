// SPDX-License-Identifier: Apache-2.0
// Rows W10 to W18, N01 to N03 and D01: wheels that break a promise, or would run or replace what is not theirs.
#pragma once

#include "bundle/wheel/wheel_startup.hpp"
#include "tests/support/hostile/hostile_case.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

inline HostileCases hostile_wheels() {
  using bundle::ErrorCode;
  const std::string zeros = "sha256=" + std::string(43, 'A'), info = "demo-1.0.dist-info/";
  HostileCases cases;
  const auto add = [&](const char* row, const std::string& name, const TinyWheel& wheel, const char* word,
                       ErrorCode code = ErrorCode::Format, const std::string& file = {}) {
    cases.push_back({.row = row,
                     .name = name,
                     .bytes = make_wheel(wheel),
                     .code = code,
                     .word = word,
                     .file = file.empty() ? wheel.file_name() : file});
  };
  const auto files = [&](const char* row, const std::string& name, std::map<std::string, std::string> content,
                         const char* word, ErrorCode code = ErrorCode::Format) {
    add(row, name, {.files = std::move(content)}, word, code);
  };

  const std::map<std::string, std::string> plain = {{"demo/__init__.py", "ANSWER = 42\n"}};
  cases.push_back({.row = "W10",
                   .name = "no-record",
                   .bytes = make_zip({{.name = info + "WHEEL", .bytes = "Wheel-Version: 1.0\n"},
                                      {.name = info + "METADATA", .bytes = "Name: demo\nVersion: 1.0\n"}}),
                   .word = "no RECORD",
                   .file = "demo-1.0-py3-none-any.whl"});
  add("W10", "wrong-digest", {.record_digests = {{"demo/__init__.py", zeros}}}, "demo/__init__.py", ErrorCode::Digest);
  add("W10", "wrong-digest-in-digits", {.record_digests = {{"demo/__init__.py", "sha256=" + std::string(64, '0')}}},
      "demo/__init__.py", ErrorCode::Digest);
  add("W10", "open-quote", {.extra_record = "\"open,sha256=x\n"}, "open quote");
  add("W10", "too-many-fields", {.extra_record = "a,,,b\n"}, "not path,digest,size");
  add("W10", "wrong-size-of-a-start-up-file",
      {.files = {{"demo.pth", "demo\n"}}, .unrecorded = {"demo.pth"}, .extra_record = "demo.pth," + zeros + ",99\n"},
      "another size");
  TinyWheel liar{.files = {}};
  for (int i = 0; i < 101; ++i) {
    const std::string name = "demo/" + std::to_string(i) + ".txt";
    liar.files[name] = "text";
    liar.unrecorded.push_back(name);
    liar.extra_record += name + "," + zeros + ",99\n";
  }
  add("W10", "wrong-sizes-without-end", liar, "another size");
  std::string rows;
  for (int i = 0; i < 3000; ++i) rows += std::to_string(i) + ",,\n";
  add("W10", "three-thousand-rows-too-many", {.extra_record = rows}, "more files than the wheel");
  files("W11", "two-dist-infos", {{"x-1.dist-info/METADATA", "2"}}, "more than one .dist-info");
  add("W11", "another-project", {}, "of its own name", ErrorCode::Format, "other-1.0-py3-none-any.whl");
  add("W11", "another-version", {}, "of its own name and version", ErrorCode::Format, "demo-2.0-py3-none-any.whl");
  add("W11", "another-version-before-the-local-part", {}, "of its own name and version", ErrorCode::Format,
      "demo-1.0.1+cu1-py3-none-any.whl");
  const auto metadata = [&](const std::string& name, const std::string& text, const char* word) {
    files("W11", name, {{info + "METADATA", text}}, word);
  };
  metadata("metadata-of-another-project", "Name: torch\nVersion: 1.0\n", "another project");
  metadata("metadata-of-another-version", "Name: demo\nVersion: 1.0.1\n", "another project or version");
  metadata("metadata-without-a-name", "Version: 1.0\n\nName: demo\n", "another project or version");
  metadata("metadata-with-two-names", "name: torch\nName: demo\nVersion: 1.0\n", "twice");
  files("W11", "wheel-version-2", {{info + "WHEEL", "Wheel-Version: 2.0\n"}}, "does not know", ErrorCode::CannotCheck);
  files("W11", "wheel-without-version", {{info + "WHEEL", "X-Wheel-Version: 1.0\n"}}, "names no version");
  files("W11", "data-of-unknown-kind", {{"demo-1.0.data/bin/x", "x"}}, "unknown part of .data");
  files("W11", "two-files-for-one-place", {{"demo-1.0.data/purelib/x.py", "1"}, {"x.py", "2"}}, "one place");
  for (const char* script : {"python", "python3", "python3.11", "Python.exe", "PYTHON3", "pythonw"}) {
    add("W12", std::string("entry-point-") + script,
        {.entry_points = std::string("[console_scripts]\n") + script + " = demo:main\n"}, "interpreter",
        ErrorCode::Conflict);
    files("W12", std::string("script-") + script, {{std::string("demo-1.0.data/scripts/") + script, "#!python\n"}},
          "interpreter", ErrorCode::Conflict);
  }
  int number = 0;
  for (const char* point :
       {"a = b", "../a = b:c", "a = b;import os:c", "a = b:c()", "a/b = c:d", " = b:c", "a = :c", "a = b:", "a = b.:c"})
    add("W12", "entry-point-" + std::to_string(number++),
        {.entry_points = std::string("[console_scripts]\n") + point + "\n"}, "");
  files("W12", "script-outside", {{"demo-1.0.data/scripts/../../x", "x"}}, "not safe");
  files("W13", "pth-with-import", {{"evil.pth", "import os; os.system('x')\n"}}, "when Python starts");
  files("W13", "pth-with-import-and-tab", {{"evil.pth", "# a comment\n\nimport\tos\n"}}, "when Python starts");
  files("W13", "pth-after-a-carriage-return", {{"evil.pth", "folder\rimport evil"}}, "when Python starts");
  files("W13", "pth-with-byte-order-mark", {{"evil.pth", "\xef\xbb\xbfimport evil\n"}}, "byte order mark");
  files("W13", "pth-that-is-nearly-setuptools",
        {{"evil.pth", bundle::detail::distutils_line("local") + " import evil\n"}}, "when Python starts");
  files("W13", "pth-that-is-nearly-a-namespace",
        {{"evil.pth", bundle::detail::namespace_line("google", false) + ";import evil\n"}}, "when Python starts");
  files("W13", "pth-with-a-folder-outside", {{"evil.pth", "../../evil\n"}}, "not the wheel's");
  files("W13", "pth-with-an-absolute-folder", {{"evil.pth", "/tmp\n"}}, "not the wheel's");
  files("W13", "pth-in-capitals", {{"EVIL.PTH", "import evil\n"}}, "when Python starts");
  files("W13", "pth-by-way-of-purelib", {{"demo-1.0.data/purelib/evil.pth", "import evil\n"}}, "when Python starts");
  files("W13", "pth-by-way-of-data", {{"demo-1.0.data/data/lib/python3.11/site-packages/evil.pth", "import evil\n"}},
        "another way");
  for (const char* module : {"sitecustomize.py", "usercustomize.py", "sitecustomize/__init__.py",
                             "sitecustomize.cpython-311-x86_64-linux-gnu.so"})
    files("W13", std::string(module).substr(0, 13) + std::to_string(number++), {{module, "x"}}, "when Python starts");
  for (const auto& [name, end] : std::vector<std::pair<std::string, std::string>>{{"form-feed", "\f"},
                                                                                  {"vertical-tab", "\v"},
                                                                                  {"file-separator", "\x1c"},
                                                                                  {"record-separator", "\x1e"},
                                                                                  {"next-line", "\xc2\x85"},
                                                                                  {"line-separator", "\xe2\x80\xa8"},
                                                                                  {"paragraph", "\xe2\x80\xa9"}})
    for (const std::string before : {"# a comment", "folder"})
      files("W13", "pth-line-ended-by-" + name + (before == "folder" ? "" : "-in-a-comment"),
            {{"evil.pth", before + end + "import evil\n"}}, "end of a line");
  add("W13", "pth-with-the-digest-of-another-in-record",
      {.files = {{"demo.pth", "# a comment\n"}}, .record_digests = {{"demo.pth", zeros}}},
      "another digest of a start-up");
  files("W13", "pth-that-is-hidden", {{".evil.pth", "import evil\n"}}, "when Python starts");
  files("W13", "pth-with-a-folder-that-has-sitecustomize", {{"evil.pth", "extra\n"}, {"extra/sitecustomize.py", "x"}},
        "when Python starts");
  files("W13", "pth-with-a-folder-that-has-usercustomize",
        {{"evil.pth", "extra/more\n"}, {"extra/more/usercustomize/__init__.py", "x"}}, "when Python starts");
  files("W13", "pth-with-a-folder-that-has-metadata",
        {{"evil.pth", "extra\n"}, {"extra/torch-98.dist-info/METADATA", "x"}}, "metadata of another project");
  files("W13", "setuptools-line-with-a-foreign-hack",
        {{"distutils-precedence.pth", bundle::detail::distutils_line("local") + "\n"},
         {"_distutils_hack/__init__.py", "x"}},
        "belongs to setuptools", ErrorCode::Conflict);
  files("W13", "editable-finder",
        {{"__editable__.demo-1.0.pth", "import __editable___demo_finder; __editable___demo_finder.install()\n"},
         {"__editable___demo_finder.py", "x"}},
        "when Python starts");
  files("W13", "hack-alone", {{"_distutils_hack/__init__.py", "x"}}, "belongs to setuptools", ErrorCode::Conflict);
  add("W13", "setuptools-line-in-another-file",
      {.name = "setuptools", .files = {{"evil.pth", bundle::detail::distutils_line("local") + "\n"}}}, "another name");
  for (const char* module : {"readline.py", "rlcompleter.py", "apport_python_hook.py", "evil.start", "evil.site.toml",
                             "_sysconfigdata__linux_x86_64-linux-gnu.py", "__pycache__/sitecustomize.cpython-311.pyc"})
    files("W13", "startup-" + std::to_string(number++), {{module, "x"}}, "when Python starts");

  const auto data = [&](const char* path, const char* word, ErrorCode code = ErrorCode::Format) {
    files("W15", "data-" + std::to_string(number++), {{std::string("demo-1.0.data/data/") + path, "x"}}, word, code);
  };
  for (const char* path : {"lib/python3.11/os.py", "lib/python3.11/lib-dynload/_lzma.so", "lib/python311.zip",
                           "lib/python3.11/encodings/evil.py", "lib/python3.11/__pycache__/os.cpython-311.pyc",
                           "LIB/Python3.11/os.py", "lib/python3", "lib/python3.13t/site-packages/evil.pth"})
    data(path, "by another way");
  for (const char* path : {"pyvenv.cfg", "pip.conf", "uv.toml", "openssl.cnf", "evil", "python311._pth"})
    data(path, "root of the environment");
  for (const char* path : {"lib64/libevil.so", "libexec/python3.11", "sbin/evil", "usr/bin/evil", "torch/evil.py"})
    data(path, "where no wheel may");
  for (const char* path : {"etc/profile.d/evil.sh", "etc/ld.so.preload", "etc/ssl/openssl.cnf"})
    data(path, "configures the system");
  for (const char* path : {"lib/gconv/gconv-modules", "lib/locale/locale-archive", "lib/ossl-modules/legacy.so",
                           "lib/tcl8/init.tcl", "lib/engines-3/x.so", "lib/glibc-hwcaps/x86-64-v3/libz.so.1"})
    data(path, "of folders in lib it may have its own");
  data("lib/runtime/ld-linux-x86-64.so.2", "lib/runtime");
  data("include/python3.11/Python.h", "headers of Python");
  for (const char* path : {"lib/libm.so.6", "lib/ld-linux-x86-64.so.2", "lib/libpython3.so", "lib/libssl.so.3",
                           "lib/libcuda.so.1", "lib/LIBC.SO.6"})
    data(path, "belongs to the runtime", ErrorCode::Conflict);
  for (const char* name : {"python4", "python3-config", "python311._pth"}) {
    data((std::string("bin/") + name).c_str(), "interpreter", ErrorCode::Conflict);
    files("W15", std::string("script-") + name, {{std::string("demo-1.0.data/scripts/") + name, "x"}}, "interpreter",
          ErrorCode::Conflict);
  }
  for (const char* name : {"sh", "dirname", "realpath", "env", "SH"}) {
    data((std::string("bin/") + name).c_str(), "one of the system's", ErrorCode::Conflict);
    add("W15", std::string("entry-point-") + std::to_string(number++),
        {.entry_points = std::string("[console_scripts]\n") + name + " = demo:main\n"}, "one of the system's",
        ErrorCode::Conflict);
  }
  for (const char* name : {"pyvenv.cfg", "pybuilddir.txt"})
    files("W15", std::string("script-") + name, {{std::string("demo-1.0.data/scripts/") + name, "x"}},
          "where its standard library is");
  files("W15", "script-activate", {{"demo-1.0.data/scripts/activate", "x"}}, "into their shells");
  for (const char* path : {"nvidia/evil/lib/libm.so.6", "demo/libc.so.6", "nvidia/evil/lib/libz.so.1",
                           "nvidia/evil/lib/libcuda.so.1", "demo/ld-linux-x86-64.so.2"})
    files("W15", "library-" + std::to_string(number++), {{path, "x"}}, "belongs to the runtime", ErrorCode::Conflict);
  files("W15", "library-for-some-processors", {{"nvidia/evil/lib/glibc-hwcaps/x86-64-v3/libevil.so.1", "x"}},
        "for some processors");
  for (const char* module :
       {"nt.py", "msvcrt.py", "_wmi.abi3.so", "org/python/core.py", "java/lang/__init__.py", "_winapi/__init__.py",
        "_lzma.cpython-311-x86_64-linux-gnu.so", "_uuid.py", "demo-1.0.data/purelib/nt.py", "NT.py"})
    files("W18", "module-" + std::to_string(number++), {{module, "x"}}, "as a part of the library",
          ErrorCode::Conflict);
  for (const char* file :
       {"etc/ipython/ipython_config.py", "etc/ipython/ipython_config.json", "etc/jupyter/x_config.py"})
    files("W18", "settings-" + std::to_string(number++), {{std::string("demo-1.0.data/data/") + file, "x"}},
          "settings that are code");
  for (const char* name : {"completions/git", "completions/_ssh", "completions/sudo.bash", "bash_completion"})
    files("W18", "completion-" + std::to_string(number++),
          {{std::string("demo-1.0.data/data/share/bash-completion/") + name, "x"}}, "completes a command",
          ErrorCode::Conflict);
  for (const char* name : {"git", "systemctl", "sbatch", "Ssh-Add"})
    files("W18", "program-" + std::to_string(number++), {{std::string("demo-1.0.data/scripts/") + name, "#!python\n"}},
          "one of the system's", ErrorCode::Conflict);
  for (const char* folder : {"torch-98.DIST-INFO", "torch.egg-info", "torch-98.EGG-INFO", "torch-98-py3.11.egg",
                             "torch.egg-link", "Demo-1.0.Dist-Info"})
    files("W15", std::string("metadata-") + folder, {{std::string(folder) + "/METADATA", "x"}}, "another project");
  files("W15", "metadata-by-way-of-purelib", {{"demo-1.0.data/purelib/torch-98.dist-info/METADATA", "x"}},
        "another project");
  files("W15", "metadata-of-its-own-by-way-of-purelib", {{"demo-1.0.data/purelib/demo-1.0.dist-info/evil", "x"}},
        "adds to its metadata");
  // Names that mean something to Sealift: by .data/data of any wheel, and by a project that is called so.
  for (const char* path :
       {"share/sealift/environment", "share/sealift/catalogue.json", "share/sealift/golden/x.json",
        "share/sealift/presets/x.toml", "share/sealift/verify/arithmetic/x", "share/sealift/new/x", "share/sealift",
        "share/sealift-2/sealift-config.cmake", "share/cmake/sealift/x.cmake", "bin/sealift-train", "bin/sealift",
        "bin/sealift-future", "lib/libsealift_train_cuda.so", "include/sealift/train.hpp", "lib/cmake/sealift/x.cmake"})
    files("N01", "data-" + std::to_string(number++), {{std::string("demo-1.0.data/data/") + path, "x"}},
          "Sealift's own", ErrorCode::Conflict);
  for (const std::string project : {"apt", "rpm", "models", "data", "hub", "modelscope"})
    for (const char* file : {"/Release", "/pool/evil.deb", "/tiny/model.safetensors"})
      add("N01", "project-" + project + std::to_string(number++),
          {.name = project, .files = {{project + "-1.0.data/data/" + project + file, "x"}}}, "Sealift's own",
          ErrorCode::Conflict);
  for (const char* path : {"lib/sealift_x/cmake/sealift-config.cmake", "sealift_x/cmake/sealift-config.cmake"})
    add("N01", "project-beside-ours-" + std::to_string(number++),
        {.name = "sealift_x", .files = {{std::string("sealift_x-1.0.data/data/") + path, "x"}}}, "Sealift's own",
        ErrorCode::Conflict);
  add("N01", "our-own-project", {.name = "sealift", .files = {{"sealift-1.0.data/scripts/sealift-install", "x"}}},
      "Sealift's own", ErrorCode::Conflict);
  for (const char* path : {"SHARE/sealift/environment", "share/Sealift/environment", "share/SEALIFT/golden/x.json",
                           "share/\xef\xbd\x93"
                           "ealift/environment",
                           "\xc5\xbf"
                           "hare/sealift/environment",
                           "share/sea\xe2\x80\x8b"
                           "lift/environment",
                           "share/sealift\xef\xb8\x8f/environment", "share/sealift./x", "share/sealift /x",
                           "BIN/Sealift-Train", "bin/sealift\xe2\x80\x8b-train",
                           "bin/\xc5\xbf"
                           "ealift-verify"})
    files("N02", "spelled-" + std::to_string(number++), {{std::string("demo-1.0.data/data/") + path, "x"}},
          "Sealift's own", ErrorCode::Conflict);
  add("N02", "project-in-capitals", {.name = "Apt", .files = {{"Apt-1.0.data/data/APT/Packages", "x"}}},
      "Sealift's own", ErrorCode::Conflict);
  for (const char* name : {"sealift-train", "sealift-verify", "sealift-install", "Sealift-Train", "sealift"}) {
    files("N03", "script-" + std::to_string(number++), {{std::string("demo-1.0.data/scripts/") + name, "#!python\n"}},
          "Sealift's own", ErrorCode::Conflict);
    add("N03", "entry-point-" + std::to_string(number++),
        {.entry_points = std::string("[console_scripts]\n") + name + " = demo:main\n"}, "Sealift's own",
        ErrorCode::Conflict);
    add("N03", "window-" + std::to_string(number++),
        {.entry_points = std::string("[gui_scripts]\n") + name + " = demo:main\n"}, "Sealift's own",
        ErrorCode::Conflict);
  }
  // Folders that sealift-start and torch's own libraries have the loader search.
  for (const char* path : {"nvidia/cudnn/lib/libc10.so", "nvidia/evil/lib/libnccl.so.2", "NVIDIA/cudnn/lib/libc10.so",
                           "nvidia/cu13/lib/evil", "demo-1.0.data/platlib/nvidia/nccl/lib/libevil.so.1"})
    files("D01", "folder-" + std::to_string(number++), {{path, "x"}}, "belongs to NVIDIA's packages",
          ErrorCode::Conflict);
  add("W14", "sdist", {}, "file name", ErrorCode::Format, "demo-1.0.tar.gz");
  add("W14", "egg", {}, "file name", ErrorCode::Format, "demo-1.0-py3.11.egg");
  add("W14", "too-few-tags", {}, "file name", ErrorCode::Format, "demo-1.0-py3-none.whl");
  return cases;
}

}  // namespace sealift::test
