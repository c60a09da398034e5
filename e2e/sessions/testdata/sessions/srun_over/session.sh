# More tasks than CPUs on nodes with unequal CPUs: how many go where, and in which order.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID' 2>/dev/null | sort -n | tr '\n' ' ')"; }
for how in cyclic block plane=2 plane=3; do for n in 6 7 8 9 11; do d -O -n$n -m $how; done; done
X
sbatch -N2 -n5 -o a job.sh; settle; sbatch -N3 -n9 -o b job.sh; settle; sbatch -N3 -n6 -o c job.sh; settle; cat a b c
