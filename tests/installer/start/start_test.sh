#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sealift-start becomes the program of its own name in ../libexec, through links and PATH, and no library of the host's
# comes before a carried one of CUDA's. (Where /proc is missing: tests/end_to_end.) Where ../lib/runtime has a loader,
# through that one, and nothing shows it but the maps.
#   start_test.sh SEALIFT_START
set -euo pipefail
source "$(dirname "$0")/../../support/left_out.sh"
start=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/a b/bin" "$work/a b/libexec" "$work/links"
cp "$start" "$work/a b/bin/tool"
cat > "$work/a b/libexec/tool" <<'TOOL'
#!/bin/sh
echo "ran with $# arguments: $1|$2, origin ${LD_ORIGIN_PATH:-unset}"
exit 7
TOOL
chmod +x "$work/a b/libexec/tool"
ln -s "../a b/bin/tool" "$work/links/tool2"
expect() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot:      %s\n' "$1" "$2"; exit 1; }; }

expect "ran with 2 arguments: x y|z, origin unset" "$("$work/a b/bin/tool" 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$("$work/links/tool2" 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$(cd "$work/links" && ./tool2 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$(PATH="$work/a b/bin:$PATH" && tool 'x y' z ; true)"
expect 7 "$("$work/a b/bin/tool" > /dev/null; echo $?)"
mv "$work/a b/libexec" "$work/gone"
expect 127 "$("$work/a b/bin/tool" 2> "$work/said"; echo $?)"
grep -q "not where it belongs" "$work/said"
mv "$work/gone" "$work/a b/libexec"

# The environment's variables, but not over the user's own; what needs a folder that nobody has is left out.
mkdir -p "$work/a b/share/sealift"
cat > "$work/a b/share/sealift/environment" <<'LINES'
SITE_A=1
SITE_DATA=${PREFIX}/d x
SITE_MINE=theirs
SITE_ODD=$HOME `x` "y" \z
SITE_WRITTEN=${CACHE}/w
GCONV_PATH=/evil
OPENSSL_MODULES=/evil
http_proxy=evil
LINES
cat > "$work/a b/libexec/show" <<'SHOW'
#!/bin/sh
echo "$SITE_A|$SITE_DATA|$SITE_MINE|$SITE_ODD|${SITE_WRITTEN-none}$GCONV_PATH$OPENSSL_MODULES$http_proxy"
SHOW
chmod +x "$work/a b/libexec/show"
cp "$start" "$work/a b/bin/show"
odd='$HOME `x` "y" \z'
expect "1|$work/a b/d x|mine|$odd|/c/w" "$(SITE_MINE=mine XDG_CACHE_HOME=/c "$work/a b/bin/show")"
expect "1|$work/a b/d x|theirs|$odd|/h/.cache/w" "$(env -u XDG_CACHE_HOME HOME=/h "$work/a b/bin/show")"
expect "1|$work/a b/d x|theirs|$odd|none" "$(env -u XDG_CACHE_HOME -u HOME "$work/a b/bin/show")"
rm -r "$work/a b/share" "$work/a b/bin/show" "$work/a b/libexec/show"

# With a carried runtime: this machine's own, so that only its path tells it from the host's.
runtime="$work/a b/lib/runtime"
mkdir -p "$runtime" "$work/elsewhere"
for library in $(ldd /bin/cat /bin/bash /usr/bin/env /usr/bin/readlink | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
  cp -L "$library" "$runtime"
done
[ -e "$runtime/ld-linux-x86-64.so.2" ]
for program in /bin/cat /bin/bash /usr/bin/env /usr/bin/readlink; do
  cp -L "$program" "$work/a b/libexec/"
  cp "$start" "$work/a b/bin/${program##*/}"
done
libraries() { grep -o '/[^ ].*\.so.*' | sort -u; }
only_carried() {
  grep -q "/lib/runtime/libc\.so\.6" "$work/maps" || { echo "the carried libc is not there: $1"; exit 1; }
  ! grep -v "^$work/a b/bin/../lib\|^$work/a b/lib" "$work/maps" || { echo "a library of the host: $1"; exit 1; }
}
bin="$work/a b/bin"
"$bin/cat" /proc/self/maps | libraries > "$work/maps"; only_carried cat
(cd "$work/links" && ln -s "$bin/cat" dog && LD_LIBRARY_PATH=/usr/lib:/lib ./dog /proc/self/maps) | libraries > "$work/maps"
only_carried "with the host's folders in LD_LIBRARY_PATH"

# The process is the launcher's own: what it is called, and what starts itself again, is PREFIX/bin/NAME.
expect "$bin/readlink" "$("$bin/readlink" /proc/self/exe)"
expect "cat" "$("$bin/cat" /proc/self/comm)"
expect "other /proc/self/cmdline " "$(exec -a other "$bin/cat" /proc/self/cmdline | tr '\0' ' ')"
expect "ONE=1" "$(env -i ONE=1 "$bin/env" /proc/self/exe)"
expect "2|x y|z|zero" "$("$bin/bash" -c 'echo "$#|$1|$2|$0"' zero 'x y' z)"
expect 7 "$("$bin/bash" -c 'exit 7'; echo $?)"

# Nothing is said to what it starts: no variable, and the host's own libraries.
expect "ONE=1" "$(env -i ONE=1 "$bin/env")"
expect "LD_LIBRARY_PATH=$work/elsewhere" "$(env -i LD_LIBRARY_PATH="$work/elsewhere" "$bin/env")"
"$bin/env" /bin/cat /proc/self/maps | libraries > "$work/maps"
grep -q 'libc\.so\.6' "$work/maps"
! grep -F "$work" "$work/maps" || { echo "a program of the host runs with a carried library"; exit 1; }

# But what the environment says that its programs get.
mkdir -p "$work/a b/share/sealift" && echo 'SITE_ONE=theirs
SITE_TWO=2' > "$work/a b/share/sealift/environment"
expect "SITE_ONE=1
SITE_TWO=2" "$(env -i SITE_ONE=1 "$bin/env" | sort)"
rm -r "$work/a b/share/sealift"

# LD_LIBRARY_PATH is asked behind the environment, before the host.
cp "$runtime"/libtinfo.so.* "$work/elsewhere" && rm "$runtime"/libtinfo.so.*
LD_LIBRARY_PATH="$work/elsewhere" "$bin/bash" -c 'exec < /proc/$$/maps; while read -r line; do echo "$line"; done' | libraries > "$work/maps"
grep -q "^$work/elsewhere/libtinfo" "$work/maps"

# A text in place of the loader.
echo nonsense > "$runtime/ld-linux-x86-64.so.2"
expect 127 "$("$bin/cat" /dev/null 2> "$work/said"; echo $?)"
grep -q "cannot be started: Exec format error" "$work/said"

rm -r "$runtime"

# A carried library whose kin is beside it, as NVIDIA's are linked (DT_RUNPATH), and a host with another kin of that name.
command -v cc > /dev/null || { left_out "needs cc to make libraries with"; exit 0; }
root=$work/a\ b
own=$root/lib/python3.11/site-packages/nvidia
stray=$work/usr-local-cuda
mkdir -p "$own/cu13/lib" "$own/cudnn/lib" "$own/headers-only/include" "$stray"
library() { printf '%s\n' "$2" | cc -x c - -x none -shared -fPIC -Wl,-soname,"$(basename "$1")" -o "$1" "${@:3}"; }
library "$own/cudnn/lib/libkin.so.1" 'const char* kin(void) { return "carried"; }'
library "$own/cudnn/lib/libopened.so.1" 'const char* opened(void) { return "carried"; }'
library "$own/cu13/lib/libcore.so.1" 'const char* kin(void); const char* core(void) { return kin(); }' \
  "$own/cudnn/lib/libkin.so.1" -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/../../cudnn/lib'
library "$stray/libkin.so.1" 'const char* kin(void) { return "stray"; }'
library "$stray/libopened.so.1" 'const char* opened(void) { return "stray"; }'
library "$stray/libdriver.so.1" 'const char* driver(void) { return "the driver of the host"; }'
cat > "$work/app.c" <<'APP'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
const char* core(void);
static const char* from(const char* library, const char* function) {
  void* handle = dlopen(library, RTLD_NOW);
  return handle ? ((const char* (*)(void))dlsym(handle, function))() : "nothing";
}
int main(int argc, char** argv) {
  const char* path = getenv("LD_LIBRARY_PATH");
  const char* opened = from("libopened.so.1", "opened");
  printf("%s, %s, %s, %s\n", core(), opened, from("libdriver.so.1", "driver"), path ? path : "unset");
  fflush(stdout);
  return argc > 1 ? system(argv[1]) : 0;
}
APP
cc -o "$root/libexec/app" "$work/app.c" "$own/cu13/lib/libcore.so.1" -Wl,--disable-new-dtags \
  '-Wl,-rpath,$ORIGIN/../lib/python3.11/site-packages/nvidia/cu13/lib' -Wl,--allow-shlib-undefined -ldl
cp "$start" "$root/bin/app"
said() { sed 's/, [^,]*$//'; }
expect "stray, stray, the driver of the host" "$(LD_LIBRARY_PATH=$stray "$root/libexec/app" | said)"  # what is prevented
expect "carried, carried, the driver of the host" "$(LD_LIBRARY_PATH=$stray "$root/bin/app" | said)"
expect "carried, carried, nothing" "$(env -u LD_LIBRARY_PATH "$root/bin/app" | said)"
expect 1 "$(LD_LIBRARY_PATH=$stray "$root/bin/app" "'$root/bin/app'" | sort -u | wc -l)"  # a child starts as it did

# The variables are for the linker alone: the program and what it starts see those of the host.
expect "unset" "$(env -u LD_LIBRARY_PATH "$root/bin/app" | sed 's/.*, //')"
expect "$stray" "$(LD_LIBRARY_PATH=$stray "$root/bin/app" | sed 's/.*, //')"
expect "ONE=1
PWD=$PWD
TWO=2" "$(env -i ONE=1 TWO=2 "$root/bin/app" /usr/bin/env | grep -v -e carried -e '^_=' | sort)"
expect "LD_LIBRARY_PATH=$stray
ONE=1" "$(env -i ONE=1 LD_LIBRARY_PATH="$stray" "$root/bin/app" 'exec /usr/bin/env' | grep -v -e carried -e '^_=' -e '^PWD=' | sort)"
mkdir -p "$root/share/sealift" && echo 'SITE_TWO=2' > "$root/share/sealift/environment"
expect "SITE_TWO=2" "$(env -i LD_LIBRARY_PATH="$stray" "$root/bin/app" 'exec /usr/bin/env' | grep TWO)"
rm -r "$root/share/sealift"
cat > "$work/twice.c" <<'TWICE'
#include <unistd.h>
int main(int argc, char** argv) {
  char* both[] = {"LD_LIBRARY_PATH=/short", "LD_LIBRARY_PATH=/a/much/longer/one/that/is/not/what/getenv/finds", 0};
  return execve(argv[1], argv + 1, both);
}
TWICE
cc -o "$work/twice" "$work/twice.c"  # a variable that stands twice
expect "/short" "$("$work/twice" "$root/bin/app" | sed 's/.*, //')"
LD_LIBRARY_PATH=$stray "$root/bin/app" 'cat /proc/self/maps' | libraries > "$work/maps"
! grep -F "$own" "$work/maps" || { echo "a program of the host runs with a carried library"; exit 1; }
cat > "$work/early.c" <<'EARLY'
#include <stdlib.h>
__attribute__((constructor)) static void copy(void) { setenv("EARLY", "1", 1); }
EARLY
cc -shared -fPIC -o "$work/early.so" "$work/early.c"  # a constructor that makes the C library copy the environment
expect "EARLY=1
LD_LIBRARY_PATH=" "$(env -i LD_PRELOAD="$work/early.so" "$root/bin/app" '/usr/bin/env -u LD_PRELOAD /usr/bin/env' | grep -e EARLY -e LIBRARY | sort)"
expect "LD_LIBRARY_PATH=$stray" "$(env -i LD_LIBRARY_PATH="$stray" LD_PRELOAD="$work/early.so" "$root/bin/app" /usr/bin/env | grep LIBRARY)"

# The process is the launcher's own here too, with a fixed place as well as without, and with a large alignment.
cat > "$work/self.c" <<'SELF'
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
static char many[1 << 22];
static _Thread_local int local = 41;
static int prepared;
__attribute__((constructor)) static void prepare(void) { prepared = 1; }
__attribute__((destructor)) static void leave(void) { puts("left"); fflush(stdout); }
int main(int argc, char** argv) {
  char exe[4096] = "";
  for (unsigned i = 0; i < sizeof many; ++i) if (many[i] != 0) return 1;
  memset(many, 1, sizeof many);
  readlink("/proc/self/exe", exe, sizeof exe - 1);
  printf("%s|%s|%d|%d|%d\n", exe, argv[0], argc, local + prepared, getauxval(AT_BASE) != 0);
  return argc;
}
SELF
for flags in "-pie -fPIE" "-no-pie -fno-pie" "-pie -fPIE -Wl,-z,max-page-size=0x200000" "-no-pie -fno-pie -Wl,-z,norelro"; do
  cc $flags -o "$root/libexec/self" "$work/self.c" && cp "$start" "$root/bin/self"
  expect "$root/bin/self|other|3|42|1
left
3" "$( (exec -a other "$root/bin/self" 'x y' z); echo $?)"
  [ "$(head -1 <("$root/bin/self"))" != "$(head -1 <("$root/libexec/self"))" ]
done
cc -static -o "$root/libexec/self" "$work/self.c" 2> /dev/null && expect 1 "$("$root/bin/self" > /dev/null; echo $?)"
cc -z execstack -o "$root/libexec/self" "$work/self.c" 2> /dev/null && expect 1 "$("$root/bin/self" > /dev/null; echo $?)"

touch "$own/cudnn/lib/libm.so.6"  # only the runtime may bring it: that folder does not come before the host's any more
expect "stray, stray, the driver of the host" "$(LD_LIBRARY_PATH=$stray "$root/bin/app" | said)"
rm "$own/cudnn/lib/libm.so.6"
mv "$root" "$work/a:b"  # the variable cannot name this folder: left as it is
expect "ran with 0 arguments: |, origin unset" "$("$work/a:b/bin/tool"; true)"

echo "sealift-start finds the real program everywhere"
