# sacct by nodes, CPUs and time limits.
# cluster: {accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
sbatch -J one -n2 -t 5 -o /dev/null --wrap 'true' >/dev/null
sbatch -J two -n1 -t 6 -o /dev/null --wrap 'exit 3' >/dev/null
sbatch -J three -N2 -t 7 -o /dev/null --wrap 'true' >/dev/null
settle
sleep 3
run() { echo "== $*"; sacct -n -X -P -o jobname "$@" 2>/dev/null | sort; }
run -i 2
run -i 1-2
run -i 3-4
run --nnodes=1
run -I 2
run -I 1-1
run --ncpus 1-8
run -k 6
run -k 5 -K 6
run -k 0:30 -K 5
run --timelimit-min=6 --timelimit-max=1:00:00
