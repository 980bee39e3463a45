#!/usr/bin/env bash
# Starts a training command on some ranks, with the argument lists of the manual's section 11:
#   msrun_launcher.sh "COMMAND" WORKER_NUM
#   msrun_launcher.sh "COMMAND" WORKER_NUM MASTER_PORT LOG_DIR JOIN CLUSTER_TIME_OUT
#   msrun_launcher.sh "COMMAND" WORKER_NUM LOCAL_WORKER MASTER_ADDR MASTER_PORT NODE_RANK LOG_DIR JOIN CLUSTER_TIME_OUT
# COMMAND is what follows `python`. JOIN True waits for the end and returns the run's status; JOIN False starts it in the
# background, with its output in LOG_DIR/worker_0.log, and returns once it trains. CLUSTER_TIME_OUT, in seconds, limits
# that wait. The short form joins.
set -uf # COMMAND is split into words, and sizes=[4,0,0] in it is no file pattern

usage() {
    echo "$1" >&2
    sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

# number NAME VALUE LEAST MOST
number() {
    case "$2" in
        '' | *[!0-9]*) usage "$1 is '$2'; it must be a number." ;;
    esac
    if [ "${#2}" -gt 9 ] || [ "$((10#$2))" -lt "$3" ] || [ "$((10#$2))" -gt "$4" ]; then
        usage "$1 is $2; it must be from $3 to $4."
    fi
}

many=999999999
log_dir="output/msrun_log"
join="True"
timeout=7200
case $# in
    2 | 6 | 9) ;;
    *) usage "msrun_launcher.sh takes 2, 6 or 9 arguments; it got $#." ;;
esac
command=${1#python }
number WORKER_NUM "$2" 1 $many
workers=$((10#$2))
case $# in
    6)
        number MASTER_PORT "$3" 1 65535
        log_dir=$4 join=$5 timeout=$6
        ;;
    9)
        number LOCAL_WORKER "$3" 1 "$workers"
        number MASTER_PORT "$5" 1 65535
        nodes=$(((workers + 10#$3 - 1) / 10#$3))
        number NODE_RANK "$6" 0 $((nodes - 1))
        log_dir=$7 join=$8 timeout=$9
        ;;
esac
number CLUSTER_TIME_OUT "$timeout" 1 $many
timeout=$((10#$timeout))
case "$join" in
    True | False) ;;
    *) usage "JOIN is '$join'; it must be True or False." ;;
esac
case "$command" in
    *[![:space:]]*) ;;
    *) usage "COMMAND is empty; it must be what follows \`python\`, such as \"run_mindformer.py --mode 1 --config FILE\"." ;;
esac
if [ "$workers" -ne 1 ]; then
    echo "WORKER_NUM is $workers; training on several ranks is not there yet. Start it with 1." >&2
    exit 1
fi

# The command is one word list, as in the manual; word splitting is wanted.
# shellcheck disable=SC2086
if [ "$join" = True ]; then
    exec python $command
fi

log="$log_dir/worker_0.log"
if ! reason=$({ LC_ALL=C mkdir -p -- "$log_dir" && : >"$log"; } 2>&1); then
    echo "LOG_DIR '$log_dir' cannot be written: ${reason##*: }." >&2
    exit 3
fi
# shellcheck disable=SC2086
nohup python $command >"$log" 2>&1 </dev/null &
worker=$!
waited=0
until grep -q '^note: Training ' "$log"; do
    if ! kill -0 "$worker" 2>/dev/null; then
        wait "$worker"
        status=$?
        cat "$log" >&2
        exit "$status"
    fi
    if [ "$waited" -ge "$timeout" ]; then
        echo "The run is not training after $timeout seconds; see $log. It goes on as process $worker." >&2
        exit 1
    fi
    sleep 1
    waited=$((waited + 1))
done
echo "Training in the background as process $worker; its output is in $log." >&2
