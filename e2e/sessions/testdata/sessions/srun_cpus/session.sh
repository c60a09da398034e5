# Steps with -c on nodes with unequal CPUs.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_NODEID' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ') ${PIPESTATUS[0]}"; }
echo "$SLURM_JOB_CPUS_PER_NODE"
d -c2 -n2; d -c2 -n1; d -c1 -n2; d -c2 -N2 -n2; d -c3 -n1; d -c3 -n2; d -c4 -n1; d -c2; d -N1 -n1; d -N1 -n3; d -N2 -n3; d -N1 -n4; d -N1 -c2 -n1; d -N1 -c3; d --exact -n1; d --exact -n3; d --exact -c2 -n2
X
sbatch -N2 -n5 -o b job.sh; settle; sbatch -N2 -n4 -c2 -o c job.sh; settle; sbatch -N3 -n3 -o d job.sh; settle; sbatch -N3 -n7 -o e job.sh; settle; cat b c d e
