# srun in a job that its user has suspended: a signal ends it at once.
sbatch --parsable -n2 -o /dev/null --wrap 'sleep 60' > id; id=$(cat id); sleep 4
scontrol suspend $id; sleep 1.5
for s in TERM INT HUP; do began=$(date +%s); timeout -s $s 3 srun --jobid=$id --overlap -n1 echo never > out 2>&1; echo "$s $? $(( $(date +%s) - began < 8 )) $(grep -c never out)"; done
scontrol resume $id; sleep 1; scancel $id; settle
