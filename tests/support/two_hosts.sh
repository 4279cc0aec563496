# SPDX-License-Identifier: Apache-2.0
# Two hosts made of namespaces, 10.77.0.1 and 10.77.0.2 on one cable. Sourced by the multi_host tests.
# Runs the sourcing script again inside its own process, mount and network namespace: when it ends, however it ends,
# every daemon, rank and interface is gone. Exits with 77, ctest's code for "skipped", where that is not permitted.
#   on HOST COMMAND...     runs a command on host1 or host2; names of both resolve, nothing else does
#   fail WHY               ends the test with the ends of all .txt files of the current folder
#   says FILE TEXT         or fail

if [ $$ != 1 ]; then
  unshare --pid --fork --mount --net --uts true 2>/dev/null ||
    { echo "SKIPPED: making namespaces is not permitted here" >&2; exit 77; }
  exec unshare --pid --fork --mount-proc --kill-child --net --uts "$0" "$@"
fi

kHosts=$(mktemp -d)
trap 'rm -rf "$kHosts" ${work:+"$work"}' EXIT
cat > "$kHosts/names" <<NAMES
127.0.0.1 localhost
10.77.0.1 host1
10.77.0.2 host2
NAMES

start_host() {
  unshare --net --uts --mount sh -c '
    hostname "$1" && mount --bind "$2/names" /etc/hosts && ip link set lo up && touch "$2/$1.up" && exec sleep infinity
  ' sh "$1" "$kHosts" &
  echo $! > "$kHosts/$1"
  until [ -e "$kHosts/$1.up" ]; do
    kill -0 $! 2>/dev/null || { echo "SKIPPED: a host cannot be made here" >&2; exit 77; }
    sleep 0.05
  done
}

on() {
  _host=$(cat "$kHosts/$1")
  shift
  # Entering a mount namespace leaves the working directory.
  nsenter -t "$_host" --net --uts --mount -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

start_host host1
start_host host2
ip link add cable1 netns "$(cat "$kHosts/host1")" type veth peer name cable2 netns "$(cat "$kHosts/host2")" ||
  { echo "SKIPPED: a network between namespaces cannot be made here" >&2; exit 77; }
for _i in 1 2; do
  on host$_i ip address add 10.77.0.$_i/24 dev cable$_i
  on host$_i ip link set cable$_i up
done

fail() {
  echo "FAILED: $1" >&2
  for file in *.txt; do echo "--- $file" >&2; tail -n 20 "$file" >&2; done
  exit 1
}
says() { grep -qF -- "$2" "$1" || fail "$1 does not say '$2'"; }
