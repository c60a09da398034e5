# Formats, times and filters of sacct.
# cluster: {accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
sbatch -J good -n2 -t 5 -o /dev/null --wrap 'srun -n2 true; srun -n1 -J second sleep 1' >/dev/null
sbatch -J bad -n1 -t 5 -o /dev/null --wrap 'exit 3' >/dev/null
sbatch -J sig -n1 -t 5 -o /dev/null --wrap 'kill -9 $$' >/dev/null
sbatch -J never -H -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J arr -a 1-3 -n1 -t 5 -o /dev/null --wrap 'exit $((SLURM_ARRAY_TASK_ID > 1))' >/dev/null
sleep 14
scancel 1004
settle
sleep 3
run() { echo "== $*"; sacct "$@" 2>/dev/null | sed 's/CANCELLED by 0/CANCELLED/'; echo "-> ${PIPESTATUS[0]}"; }
run -n -X -P -j 1001,1002,1003,1004,1005 -o jobid,jobname,state,exitcode
run -n -P -j 1001,1002,1003 -o jobid,jobname,state,exitcode
run -n -X -P -s FAILED -S 00:00 -E now -o jobname
run -n -X -P -s F,CA -S 00:00 -E now -o jobname,state
run -n -X -P --name=bad,sig -o jobname
run -n -X -P -j 1001,1003 -o jobid
run -n -P -j 1001.batch -o jobid
run -n -P -j 1001.0 -o jobid,jobname,ntasks
run -n -P -j 1001.0,1002 -o jobid
run -n -X -P -j 1005_2 -o jobid,exitcode
run -n -X -P -j 7777 -o jobid
run -n -X -P -j abc -o jobid
run -n -X -P -o bogus
run -X -j 1002 -o jobid%5,jobname%-8,state%3,exitcode
run -X -j 1002 -o 'jobid,jobname%0'
run -X -p -j 1002 -o jobid,state
run -X -P --delimiter=';' -j 1002 -o jobid,state
run -X -b -j 1002
run -n -X -P -S 2020-01-01 -E 2020-01-02 -o jobid
run -n -X -P -S 2030-01-01 -o jobid
run -n -X -P -S bogus -o jobid
run -n -X -P -s bogus -o jobid
run -n -X -P -p -j 1002 -o jobid
run -n -X -P -r nope -o jobid
run -n -X -P -r main -j 1002 -o jobid,partition
run -n -X -P -N n9 -o jobid
run --bogus
run -X -j 1004 -n -P -o jobid,state,start,nodelist,elapsed,exitcode,alloccpus,reqcpus
SACCT_FORMAT=jobid,state sacct -n -X -P -j 1002 2>/dev/null
