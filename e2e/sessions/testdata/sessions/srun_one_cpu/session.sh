# srun -c in jobs of many shapes: which tasks are where, which CPUs and variables they get.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_NODEID ${SLURM_CPUS_PER_TASK:-none} $SLURM_CPUS_ON_NODE' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; sleep 0.3; }
echo "$SLURM_JOB_CPUS_PER_NODE ${SLURM_CPUS_PER_TASK:-none}"
d -c1; d -n1 -c1; d -n2 -c1; d -c1 -N1; d -c1 -n3 -N2; d -c2; d -n1 -c2; d -c1 --overlap; d -c1 --exact; d -O -c1 -n5
[ $SLURM_CPUS_ON_NODE = 1 ] || { srun -c1 -n1 bash -c "sleep 0.6; echo first" 2> /dev/null & srun -c1 -n1 bash -c "echo second" 2> /dev/null & wait; }
X
for o in "" "-n2" "-n4" "-N2" "-c2" "-c4" "-n2 -c2" "-N2 -c2 -n3"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
