# What sacct says of a job's script and steps, however they end.
# cluster: {accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
cat > job.sh <<'JOB'
#!/bin/bash
srun -n2 -J one true
srun -n2 -J two false
srun -n1 -J three sh -c 'kill -TERM $$'
srun -n1 -J four -t 0:02 true
exit 0
JOB
sbatch -J steps -n2 -t 5 -o /dev/null job.sh >/dev/null
sbatch -J fails -n1 -t 5 -o /dev/null --wrap 'srun false' >/dev/null
settle
sleep 3
run() { echo "== $*"; sacct "$@" 2>/dev/null; echo "-> $?"; }
run -n -P -j 1001 -o jobid,jobname,state,exitcode,ntasks,nnodes,partition
run -n -P -j 1001 -o jobid,jobname,reqmem,timelimit,priority,user,group
run -n -P -j 1001 -o jobidraw,allocnodes
run -j 1001 -o jobid,jobname%6,state,exitcode
run -n -P -j 1002 -o jobid,state,exitcode,derivedexitcode
run -n -P -j 1001 -o jobid,derivedexitcode
