# How many tasks srun -c starts where nobody says their number, and the CPUs of steps with --exact and --overlap.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(timeout 20 srun -Q "$@" bash -c 'echo $SLURM_NODEID $SLURM_NTASKS $SLURM_CPUS_ON_NODE' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; }
echo "$SLURM_JOB_CPUS_PER_NODE ${SLURM_NTASKS:-none} ${SLURM_CPUS_PER_TASK:-none}"
d; for c in 1 2 3 4; do d -c$c; d -c$c -N1; done; d -c2 --ntasks-per-node=1; d -c1 --ntasks-per-node=1; d -c2 -n1
SRUN_CPUS_PER_TASK=2 d; SRUN_CPUS_PER_TASK=1 d -N1
d --exact; d --exact -n1; d --overlap -n1; d --overlap; d --exact -n1 -O; d --exact -n2 --overlap; d -n1; d -c2 --overlap; d -O -c2; d --mem=10 -n1; d --exclusive -n1
X
for o in "-N2 -c3" "-N3 -c3" "-N2 --exclusive" "-c3" "-N1 --exclusive -c2" "-N2 -n3 -c2" "-n3" "-N2 --ntasks-per-node=2"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
