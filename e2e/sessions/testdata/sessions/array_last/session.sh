# The last task of an array that waits: alone, with a throttle, set apart.
sbatch -H -a 5 -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -a 1-2%1 -n1 -t 5 -o /dev/null --wrap 'sleep 6' >/dev/null
sbatch -H -a 1-3%2 -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -H -a 1-2 -n1 -t 5 -o /dev/null --wrap true >/dev/null
sleep 3
run() { echo "== $*"; "$@" 2>/dev/null; echo "-> $?"; }
all() { squeue -h -t PD -S i -o "%i|%K|%F" -j $1; }
all 1001; all 1002
scancel 1003_1 1003_3; all 1003
scontrol update jobid=1004_1 nice=5; all 1004; scancel 1004_2; all 1004
run squeue -h -r -j 1001 -o "%i|%K"
run squeue -h -j 1001_5 -o "%i|%K"
run squeue -h -j 1003_2 -o "%i|%K"
run squeue -h -j 1003_9 -o "%i|%K"
run squeue -h -j 7777_1 -o "%i|%K"
run scontrol show hostname 'n[08-09]'
run scontrol show job 1001 1002
run scontrol show hostnames n1 n2
run scontrol update jobid=1003 Dependency=afterok:1002
squeue -h -j 1003 -o "%E"
run scontrol update jobid=1003 Dependency=afterany:1002,afternotok:1001
squeue -h -j 1003 -o "%E"
run scontrol update jobid=1003 Dependency=bogus:1
run scontrol update jobid=1003 Dependency=
squeue -h -j 1003 -o "%E"
run scontrol update jobid=1003 Nice
squeue -h -j 1003 -o "%y"
sbatch -J waits -n1 -t 5 -d afterok:1002 -o /dev/null --wrap true >/dev/null
sbatch -J begins -n1 -t 5 --begin=now+1hour -o /dev/null --wrap true >/dev/null
sbatch -J both -n1 -t 5 --begin=now+1hour -d afterok:1002 -o /dev/null --wrap true >/dev/null
sbatch -J held -n1 -t 5 --begin=now+1hour -H -o /dev/null --wrap true >/dev/null
sleep 2
scancel --name=waits; scancel --name=begins; scancel --name=both; scancel --name=held
sleep 1
squeue -h -t CA -o '%j|%T|%r' -n waits,begins,both,held -S j
scancel 1001; scancel 1002; scancel 1003; scancel 1004
settle
