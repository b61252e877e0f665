#!/usr/bin/env bash
# Measures the arena sealed and unsealed at the same time: two servers, a crowd of
# bots for each, and the processor time of the servers over the same minute, so
# that whatever else the machine does concerns both alike.
#
#   ./load.sh [BOTS [SECONDS]]                  500 bots at each server for 60 seconds
#   MODES=sealed ./load.sh 1000                 one server, 1000 bots
#   MAP=1 ./load.sh                             each bot fetches the map first, as people do
#   PROFILE=p METRICS=m ./load.sh               also a profile and the metrics of the first server
set -euo pipefail
modes=${MODES:-sealed unsealed}
cd "$(dirname "$0")"
bots=${1:-500} seconds=${2:-60} ramp=8 settle=5
lines=4 # of the bots' report
[ -z "${MAP:-}" ] || lines=5
dir=$(mktemp -d)
pids=()
cleanup() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"
go build -o "$dir/arena" .

# cpu prints the processor time of a process so far, in hundredths of a second.
cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; }

declare -A server
declare -a crowd
port=17777
for mode in $modes; do
	flag=
	[ "$mode" = unsealed ] && flag=-unsealed
	"$dir/arena" serve $flag -listen "127.0.0.1:$port" -rooms $(((bots + 31) / 32 + 2)) -idle 0 -per-address $((4 * bots)) -per-network 0 -chat 0 -key "$dir/key" \
		-http "127.0.0.1:$((port + 1))" -pprof -ledger "$dir/$mode.server" 2>"$dir/$mode.log" &
	server[$mode]=$!
	pids+=($!)
	sleep 0.5
	key=$(sed -n 's/.* key=\([^ ]*\).*/\1/p' "$dir/$mode.log")
	"$dir/arena" bots $flag ${MAP:+-map} -n "$bots" -t $((ramp + settle + seconds + 5))s -ramp ${ramp}s -loss 0.05 -rtt 60ms \
		-join "127.0.0.1:$port" -key "$key" -ledger "$dir/$mode.bots" -against "$dir/$mode.server" >"$dir/$mode.out" &
	crowd[$port]=$!
	pids+=($!)
	port=$((port + 10))
done

sleep $((ramp + settle))
declare -A before
for mode in $modes; do before[$mode]=$(cpu "${server[$mode]}"); done
if [ -n "${PROFILE:-}" ]; then
	curl -s -o "$PROFILE" "http://127.0.0.1:17778/debug/pprof/profile?seconds=$((seconds - 2))" &
fi
sleep "$seconds"
if [ -n "${METRICS:-}" ]; then
	curl -s "http://127.0.0.1:17778/metrics" | grep ^arena_ >"$METRICS"
fi
for mode in $modes; do
	used=$(($(cpu "${server[$mode]}") - before[$mode]))
	grep VmRSS "/proc/${server[$mode]}/status" >"$dir/$mode.memory"
	echo "$mode: server $((used / seconds)).$(printf %02d $((used * 100 / seconds % 100))) hundredths of a core" >"$dir/$mode.cpu"
done
for pid in "${crowd[@]}"; do wait "$pid" || echo "a crowd ended with an error"; done
for mode in $modes; do
	cat "$dir/$mode.cpu" "$dir/$mode.memory"
	sed -n "$((ramp + settle + seconds / 2 + 1))p" "$dir/$mode.out"
	tail "-$lines" "$dir/$mode.out"
done
cat /proc/loadavg
