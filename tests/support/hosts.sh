# SPDX-License-Identifier: Apache-2.0
# Hosts made of namespaces, host1 at 10.77.0.1 and so on: two on one cable, or more on one switch. Sourced by the multi_host tests.
# Runs the sourcing script again inside its own process, mount and network namespace: when it ends, however it ends,
# every daemon, rank and interface is gone. Exits with 77, ctest's code for "skipped", where that is not permitted.
#   kHostCount=4           before: how many; without: 2
#   on HOST COMMAND...     runs a command on host1, host2 …; their names resolve, nothing else does. Host N has cableN
#   fail WHY               ends the test with the ends of all .txt files of the current folder
#   says FILE TEXT         or fail

if [ $$ != 1 ]; then
  unshare --pid --fork --mount --net --uts true 2>/dev/null ||
    { echo "SKIPPED: making namespaces is not permitted here" >&2; exit 77; }
  exec unshare --pid --fork --mount-proc --kill-child --net --uts "$0" "$@"
fi

kHostNames=$(seq -f host%g "${kHostCount:-2}")
kHosts=$(mktemp -d)
trap 'rm -rf "$kHosts" ${work:+"$work"}' EXIT
echo "127.0.0.1 localhost" >"$kHosts/names"
for _host in $kHostNames; do echo "10.77.0.${_host#host} $_host" >>"$kHosts/names"; done

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

no_network() { echo "SKIPPED: a network between namespaces cannot be made here" >&2; exit 77; }

for _name in $kHostNames; do start_host "$_name"; done
if [ "${kHostCount:-2}" = 2 ]; then
  ip link add cable1 netns "$(cat "$kHosts/host1")" type veth peer name cable2 netns "$(cat "$kHosts/host2")" || no_network
else
  { ip link add switch type bridge && ip link set switch up; } || no_network
  for _name in $kHostNames; do
    ip link add "port${_name#host}" type veth peer name "cable${_name#host}" netns "$(cat "$kHosts/$_name")" || no_network
    ip link set "port${_name#host}" master switch up
  done
fi
for _name in $kHostNames; do
  on "$_name" ip address add "10.77.0.${_name#host}/24" dev "cable${_name#host}"
  on "$_name" ip link set "cable${_name#host}" up
done

fail() {
  echo "FAILED: $1" >&2
  for file in *.txt; do echo "--- $file" >&2; tail -n 20 "$file" >&2; done
  exit 1
}
says() { grep -qF -- "$2" "$1" || fail "$1 does not say '$2'"; }
