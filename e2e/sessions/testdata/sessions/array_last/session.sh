# The last task of an array that waits: alone, left by scancel, left by a start; dependencies of an array; what is said of canceled jobs.
one=$(sbatch --parsable -H -a 5 -n1 -t 5 -o /dev/null --wrap true)
left=$(sbatch --parsable -H -a 1-3%2 -n1 -t 5 -o /dev/null --wrap true)
plain=$(sbatch --parsable -H -n1 -t 5 -o /dev/null --wrap true)
other=$(sbatch --parsable -H -n1 -t 5 -o /dev/null --wrap true)
runs=$(sbatch --parsable -a 1-2%1 -n1 -t 5 -o /dev/null --wrap 'sleep 12')
sleep 3
run() { echo "== $*"; "$@" 2>/dev/null; echo "-> $?"; }
all() { squeue -h -t PD -S i -o "%i|%K|%F" -j $1; }
all $one; all $runs
scancel ${left}_1 ${left}_3; all $left
run squeue -h -r -j $one -o "%i|%K"
run squeue -h -j ${one}_5 -o "%i|%K"
run squeue -h -j ${left}_2 -o "%i|%K"
run squeue -h -j ${left}_9 -o "%i|%K"
run squeue -h -j 7777_1 -o "%i|%K"
run scontrol show hostname 'n[08-09]'
run scontrol show job $one $runs
run scontrol show hostnames n1 n2
run scontrol update jobid=$left Dependency=afterok:$plain
squeue -h -j $left -o "%E"
run scontrol update jobid=$left Dependency=afterany:$plain,afternotok:$other
squeue -h -j $left -o "%E"
run scontrol update jobid=$left Dependency=bogus:1
run scontrol update jobid=$left Dependency=
squeue -h -j $left -o "%E"
run scontrol update jobid=$left Nice
squeue -h -j $left -o "%y"
sbatch -J waits -n1 -t 5 -d afterok:$plain -o /dev/null --wrap true >/dev/null
sbatch -J begins -n1 -t 5 --begin=now+1hour -o /dev/null --wrap true >/dev/null
sbatch -J both -n1 -t 5 --begin=now+1hour -d afterok:$plain -o /dev/null --wrap true >/dev/null
sbatch -J held -n1 -t 5 --begin=now+1hour -H -o /dev/null --wrap true >/dev/null
sleep 2
scancel --name=waits; scancel --name=begins; scancel --name=both; scancel --name=held
sleep 1
squeue -h -t CA -o '%j|%T|%r' -n waits,begins,both,held -S j
scancel $one; scancel $runs; scancel $plain $other; scancel $left
settle
