# How many tasks there are, and how they are told, by what is asked for.
cat > j.sh <<'X'
#!/bin/bash
echo "n ${SLURM_NTASKS:-unset} tpn $SLURM_TASKS_PER_NODE ntpn ${SLURM_NTASKS_PER_NODE:-unset} cpus $SLURM_JOB_CPUS_PER_NODE cpt ${SLURM_CPUS_PER_TASK:-unset} tpc ${SLURM_THREADS_PER_CORE:-unset} N $SLURM_NNODES oc ${SLURM_OVERCOMMIT:-no} hint ${SLURM_HINT:-no}"
X
for o in "--exclusive" "--exclusive -N2" "--exclusive -c2" "--hint=nomultithread" "--hint=multithread" "--exclusive -n1" "--mem=0" "-O" "--mincpus=2" "--ntasks-per-node=2" "-N2 --exclusive --ntasks-per-node=1" "-B 1:2" "-B 1:2:1" "--threads-per-core=1" "-N2-3" "-N2 -n3" "-N2 -c2"; do
  sbatch -W -o o $o j.sh > /dev/null 2>&1; echo "$o: $(cat o)"
done
